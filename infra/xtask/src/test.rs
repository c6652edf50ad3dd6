//! `cargo xtask test [SUITE]`: the tests, on a machine that has nothing but Rust and a C compiler.
//!
//! What the tests write besides the build goes to one temporary folder, which is removed at the end, however it ends
//! (unless this program itself is killed).

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::cargo::Program;
use crate::{progress, python};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which tests
    #[arg(value_parser = names(), default_value = SUITES[0].name)]
    suite: String,
    /// Passed on to the runner: names of tests, its own options
    #[arg(last = true)]
    rest: Vec<OsString>,
}

/// A set of tests that is run as one.
struct Suite {
    name: &'static str,
    about: &'static str,
    run: fn(&Folder, &[OsString]) -> anyhow::Result<()>,
}

/// Every suite, the usual one first.
const SUITES: [Suite; 3] = [
    Suite { name: "all", about: "Every test", run: all },
    Suite { name: "aws", about: "The template and the binaries on a local AWS", run: aws },
    Suite { name: "crash", about: "The host under load, killed 50 times", run: crash },
];

/// How often the long crash suite kills the host; the test itself kills it ten times.
const KILLS: &str = "50";

fn names() -> PossibleValuesParser {
    SUITES.map(|suite| PossibleValue::new(suite.name).help(suite.about)).into()
}

/// Every program, together with the tests: alone, the programs would be built without the features that tests switch on, and
/// then everything below them a second time with these.
const PROGRAMS: &str = "build --locked --workspace --bins --tests";

/// Runs one.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let folder = Folder::new()?;
    for suite in SUITES.iter().filter(|suite| suite.name == arguments.suite) {
        progress::step(format_args!("test {}", suite.name), || (suite.run)(&folder, &arguments.rest))?;
    }
    Ok(())
}

/// Every test of the workspace, after what they run as processes of their own: the Python of the local AWS, and every
/// binary (cargo builds those of other packages only when it is told to). `cargo nextest` runs the tests where it is
/// installed: it ends a test that hangs, and runs the tests of different files at once. It knows no documentation tests,
/// so these follow.
fn all(folder: &Folder, rest: &[OsString]) -> anyhow::Result<()> {
    python::programs()?;
    folder.program(PROGRAMS).run()?;
    if !Program::cargo("nextest --version").works() {
        return folder.program("test --locked --workspace --no-fail-fast --").arguments(rest).run();
    }
    folder.program("nextest run --locked --workspace --no-fail-fast").arguments(rest).run()?;
    if rest.is_empty() {
        folder.program("test --locked --workspace --doc").run()?;
    }
    Ok(())
}

/// The flows on the local AWS.
fn aws(folder: &Folder, rest: &[OsString]) -> anyhow::Result<()> {
    python::programs()?;
    folder.program(PROGRAMS).run()?;
    folder.program("test --locked --workspace --test aws --").arguments(rest).run()
}

/// The host under load, killed many times; the seeds are printed.
fn crash(folder: &Folder, rest: &[OsString]) -> anyhow::Result<()> {
    folder.program("build --locked --package turnlock").run()?;
    let test = "test --locked --package turnlock-tests --test crash -- --nocapture kill";
    folder.program(test).arguments(rest).variable("TURNLOCK_TEST_KILLS", KILLS).run()
}

/// A temporary folder that lives as long as this value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("turnlock-test-{}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        Ok(Self(path))
    }

    /// Cargo, whose tests find this folder where they look for one.
    fn program(&self, words: &str) -> Program {
        Program::cargo(words).variable("TMPDIR", &self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            progress::say(format_args!("{} could not be removed: {error}", self.0.display()));
        }
    }
}
