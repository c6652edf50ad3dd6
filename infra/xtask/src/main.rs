//! The developer's commands: `cargo xtask check`, `cargo xtask test`, `cargo xtask bench`. What they run, a person can run
//! by hand; they are here so that a developer and the build machine run the same.

mod bench;
mod cargo;
mod check;
mod licence;
mod progress;
mod python;
mod repository;
mod rules;
mod rust_text;
mod test;

use std::process::ExitCode;

use clap::Parser;

/// The developer's commands.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
enum Command {
    /// What must hold before a change is taken: formatting, the repository's rules, lints, documentation
    Check(check::Arguments),
    /// Run the tests, and install what they need
    Test(test::Arguments),
    /// Measure
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Check(arguments) => check::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            progress::say(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
