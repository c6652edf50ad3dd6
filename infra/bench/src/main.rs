//! `cargo xtask bench turn`: what a turn takes on this machine. What is measured, and how, is in [`turns`], [`path`] and
//! [`host`]; [`report`] is what is printed.

#![expect(clippy::print_stdout, reason = "the figures are the output")]

mod host;
mod path;
mod report;
mod turns;

use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::report::Report;

/// The allocator of `turnlock`, which is what is measured.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures a release build.
#[derive(Debug, Parser)]
#[command(name = "turnlock-bench")]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Plain turns: the agent's handler, the whole path, the host as a process
    Turn(Options),
}

#[derive(Debug, clap::Args)]
struct Options {
    /// Write the result as one JSON object
    #[arg(long)]
    json: bool,
    /// How many threads handle turns
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: u8,
    /// Measure the agent's handler only
    #[arg(long)]
    handler_only: bool,
    #[command(flatten)]
    rounds: turns::Settings,
}

fn main() -> anyhow::Result<ExitCode> {
    let Arguments { benchmark: Benchmark::Turn(options) } = Arguments::parse();
    let report = turn(&options)?;
    if options.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        print!("{report}");
    }
    Ok(ExitCode::SUCCESS)
}

fn turn(options: &Options) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(options.threads.into())
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    // Spawned, so that the turns and what is between them run on the threads that are counted.
    let turns = runtime.block_on(runtime.spawn(turns::measure(options.rounds.clone())))??;
    let mut report = Report::new(options.threads, &turns)?;
    if !options.handler_only {
        report.path = Some(runtime.block_on(runtime.spawn(path::measure()))??);
        report.host = host::measure()?;
    }
    Ok(report)
}
