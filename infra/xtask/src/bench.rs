//! `cargo xtask bench NAME`: measurements, of a release build unless told otherwise.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde_json::Value;

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
    /// The profile of what is measured; `dist` is what is shipped, and takes minutes to build
    #[arg(long, default_value = "release")]
    profile: String,
    /// Passed on to the benchmark, e.g. `--runs 5`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

/// A program that measures; it gets `--json` and what stands behind its name.
struct Benchmark {
    name: &'static str,
    about: &'static str,
    /// How cargo builds it and what it runs as processes of their own, in one go: packages that are built together share
    /// their dependencies.
    build: &'static str,
}

/// Every benchmark.
const BENCHMARKS: [Benchmark; 4] = [
    Benchmark {
        name: "turn",
        about: "Plain turns: how many a second, and what one costs at any length of a session",
        build: "build --locked --package turnlock-bench --package turnlock",
    },
    Benchmark {
        name: "delivery",
        about: "Deliveries: from the commit to what a chat shows, and calls to the platforms",
        build: "build --locked --package turnlock-bench",
    },
    Benchmark {
        name: "stream",
        about: "Streams: what a delta costs, and the gaps between frames, alone and a hundred at once",
        build: "build --locked --package turnlock-bench",
    },
    Benchmark {
        name: "cold",
        about: "Cold starts of the functions that take events in and of the agent, beside a minimal one",
        build: "build --locked --package turnlock-bench --package turnlock-ingress-telegram \
                --package turnlock-ingress-slack --package turnlock-ingress-webhook --package turnlock-ingress-cron \
                --package turnlock-agent",
    },
];

fn names() -> PossibleValuesParser {
    BENCHMARKS.map(|benchmark| PossibleValue::new(benchmark.name).help(benchmark.about)).into()
}

/// Builds and runs one.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    for benchmark in BENCHMARKS.iter().filter(|benchmark| benchmark.name == arguments.name) {
        progress::step(format_args!("bench {}", benchmark.name), || {
            Program::cargo(benchmark.build).arguments(["--profile", &arguments.profile]).run()?;
            let program = folder(&arguments.profile)?.join("turnlock-bench");
            let json = arguments.json.then_some("--json");
            let program = Program::new(&program.to_string_lossy()).arguments([benchmark.name]);
            program.arguments(json).arguments(&arguments.rest).run()
        })?;
    }
    Ok(())
}

/// Where cargo puts what it builds under `profile`.
fn folder(profile: &str) -> anyhow::Result<PathBuf> {
    let metadata = Program::cargo("metadata --format-version 1 --no-deps --locked").output()?;
    let metadata: Value = serde_json::from_str(&metadata).context("`cargo metadata` wrote no JSON")?;
    let target = metadata["target_directory"].as_str().context("`cargo metadata` has changed")?;
    Ok(PathBuf::from(target).join(if profile == "dev" { "debug" } else { profile }))
}
