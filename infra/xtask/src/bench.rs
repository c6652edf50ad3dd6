//! `cargo xtask bench NAME`: measurements, always of a release build.

use std::ffi::OsString;

use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::cargo::Program;
use crate::progress;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What to measure
    #[arg(value_parser = names(), default_value = BENCHMARKS[0].name)]
    name: String,
    /// Write the result as one JSON object to stdout
    #[arg(long)]
    json: bool,
    /// Passed on to the benchmark
    #[arg(last = true)]
    rest: Vec<OsString>,
}

/// A program that measures; it gets `--json` and what stands behind `--`.
struct Benchmark {
    name: &'static str,
    about: &'static str,
    /// What it runs as a process of its own; built first.
    needs: &'static str,
    /// How cargo runs it.
    run: &'static str,
}

/// Every benchmark.
const BENCHMARKS: [Benchmark; 1] = [Benchmark {
    name: "turn",
    about: "Plain turns: how many a second, and what one costs at any length of a session",
    needs: "build --locked --release --package turnlock",
    run: "run --locked --release --package turnlock-bench -- turn",
}];

fn names() -> PossibleValuesParser {
    BENCHMARKS.map(|benchmark| PossibleValue::new(benchmark.name).help(benchmark.about)).into()
}

/// Builds and runs one.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    for benchmark in BENCHMARKS.iter().filter(|benchmark| benchmark.name == arguments.name) {
        progress::step(format_args!("bench {}", benchmark.name), || {
            Program::cargo(benchmark.needs).run()?;
            let json = arguments.json.then_some("--json");
            Program::cargo(benchmark.run).arguments(json).arguments(&arguments.rest).run()
        })?;
    }
    Ok(())
}
