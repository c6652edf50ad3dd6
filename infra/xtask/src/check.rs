//! `cargo xtask check`: everything that must hold before a change is taken, except the tests.

use anyhow::bail;
use clap::ValueEnum;

use crate::cargo::Program;
use crate::{progress, python, rules};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only these, in this order [default: all]
    steps: Vec<Step>,
}

/// A part of the check, the quick ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    /// `cargo fmt`
    Formatting,
    /// The repository's own rules: packages, dependencies, licences, files
    Rules,
    /// `cargo clippy`, every warning an error
    Lints,
    /// `cargo doc`, every warning an error
    Documentation,
    /// `cfn-lint` on the template, and `sam validate` where SAM's command line is installed
    Template,
}

impl Step {
    fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Formatting => Program::cargo("fmt --all --check").run(),
            Self::Rules => rules::check(),
            Self::Lints => Program::cargo("clippy --locked --workspace --all-targets -- -D warnings").run(),
            Self::Documentation => {
                Program::cargo("doc --locked --workspace --no-deps").variable("RUSTDOCFLAGS", "-D warnings").run()
            }
            Self::Template => {
                let linter = python::programs()?.join("cfn-lint");
                Program::new(&linter.to_string_lossy()).words("template.yaml").run()?;
                // Large and rarely needed, so nobody is made to install it.
                if Program::new("sam").words("--version").works() {
                    Program::new("sam").words("validate --lint --region us-east-1 --template template.yaml").run()?;
                }
                Ok(())
            }
        }
    }

    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Runs every step, whatever the ones before it said, so that one run names everything.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let steps = if arguments.steps.is_empty() { Step::value_variants() } else { &arguments.steps };
    let mut failed = Vec::new();
    for step in steps {
        let name = step.name();
        if progress::step(format_args!("check {name}"), || step.run()).is_err() {
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!("check failed: {}", failed.join(", "));
    }
    progress::say("check: everything holds");
    Ok(())
}
