//! Programs, run as a person would run them.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Context, bail};

use crate::progress;

/// The platforms that are built for: Lambda's two, and the laptops that differ from them.
const PLATFORMS: [&str; 3] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin"];

/// What `cargo run` tells this program about itself. A build script below that watches one of them would run anew each
/// time a developer changes between `cargo` and `cargo xtask`.
const OWN_VARIABLES: [&str; 17] = [
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "CARGO_PKG_AUTHORS",
    "CARGO_PKG_DESCRIPTION",
    "CARGO_PKG_HOMEPAGE",
    "CARGO_PKG_LICENSE",
    "CARGO_PKG_LICENSE_FILE",
    "CARGO_PKG_NAME",
    "CARGO_PKG_README",
    "CARGO_PKG_REPOSITORY",
    "CARGO_PKG_RUST_VERSION",
    "CARGO_PKG_VERSION",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
    "CARGO_PRIMARY_PACKAGE",
];

/// A program that is about to run.
pub(crate) struct Program {
    command: Command,
}

impl Program {
    /// The program `name`, found as the shell finds it.
    pub(crate) fn new(name: &str) -> Self {
        let mut command = Command::new(name);
        for variable in OWN_VARIABLES {
            command.env_remove(variable);
        }
        Self { command }
    }

    /// Cargo, by the words of a command line.
    pub(crate) fn cargo(words: &str) -> Self {
        Self::new("cargo").words(words)
    }

    /// `cargo` with the platforms that are built for, where it resolves dependencies.
    pub(crate) fn cargo_tree(words: &str) -> Self {
        let platforms = PLATFORMS.iter().flat_map(|platform| ["--target", platform]);
        Self::cargo("tree --locked --prefix none").arguments(platforms).words(words)
    }

    /// Adds the words of `line`.
    pub(crate) fn words(self, line: &str) -> Self {
        self.arguments(line.split_whitespace())
    }

    /// Adds arguments.
    pub(crate) fn arguments(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets a variable of its environment.
    pub(crate) fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it with its output shown; anything but success is an error.
    pub(crate) fn run(mut self) -> anyhow::Result<()> {
        let line = self.line();
        progress::say(format_args!("    $ {line}"));
        let status = self.command.status().with_context(|| format!("`{line}` cannot be started"))?;
        if !status.success() {
            bail!("`{line}` ended with {status}");
        }
        Ok(())
    }

    /// Runs it and returns what it wrote to stdout.
    pub(crate) fn output(mut self) -> anyhow::Result<String> {
        let line = self.line();
        let output = self.command.output().with_context(|| format!("`{line}` cannot be started"))?;
        if !output.status.success() {
            bail!("`{line}` ended with {}:\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
        }
        String::from_utf8(output.stdout).with_context(|| format!("`{line}` wrote no UTF-8"))
    }

    /// Whether it can be run and says that all is well; its output is not shown.
    pub(crate) fn works(mut self) -> bool {
        self.command.output().is_ok_and(|output| output.status.success())
    }

    fn line(&self) -> String {
        let words = std::iter::once(self.command.get_program()).chain(self.command.get_args());
        words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
    }
}
