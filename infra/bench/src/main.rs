//! `cargo xtask bench`: what a turn takes on this machine, and what a cold start. What is measured, and how, is in
//! [`turns`], [`path`], [`host`], [`delivery`] and [`stream`], and in [`turnlock_bench::cold`].

#![expect(clippy::print_stdout, reason = "the figures are the output")]

mod delivery;
mod host;
mod path;
mod report;
mod stream;
mod turns;

use std::fmt::Display;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use serde::Serialize;
use turnlock_bench::cold;

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
    Turn(Turn),
    /// Deliveries: from the commit to what the chat shows, plain and streamed
    Delivery(Delivery),
    /// Streams: what a delta costs, and the gaps between frames, alone and a hundred at once
    Stream(Stream),
    /// Cold starts: the functions' binaries that stand beside this program
    Cold(Cold),
}

#[derive(Debug, clap::Args)]
struct Cold {
    /// Write the result as one JSON object
    #[arg(long)]
    json: bool,
    /// How many runs of each function count
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// How many events a function is given after the first
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..))]
    warm: u16,
    /// Measure these only, by the names in the output
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct Delivery {
    /// Write the result as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Stream {
    /// Write the result as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: stream::Settings,
}

#[derive(Debug, clap::Args)]
struct Turn {
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
    match Arguments::parse().benchmark {
        Benchmark::Turn(options) => print(&turn(&options)?, options.json)?,
        Benchmark::Delivery(options) => print(&deliveries()?, options.json)?,
        Benchmark::Stream(options) => print(&streams(&options.settings)?, options.json)?,
        Benchmark::Cold(options) => print(&cold(&options)?, options.json)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print(report: &(impl Serialize + Display), json: bool) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string(report)?);
    } else {
        print!("{report}");
    }
    Ok(())
}

fn cold(options: &Cold) -> anyhow::Result<cold::Report> {
    let settings = cold::Settings {
        binaries: std::env::current_exe()?.parent().context("this program is in no folder")?.to_owned(),
        runs: options.runs.into(),
        warm: options.warm.into(),
        only: options.only.clone(),
    };
    // One thread, so that the function has the other processor to itself.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(cold::measure(&settings))
}

/// One thread, as the host runs.
fn deliveries() -> anyhow::Result<delivery::Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(delivery::measure())
}

/// One thread, as the host runs.
fn streams(settings: &stream::Settings) -> anyhow::Result<stream::Report> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(stream::measure(settings))
}

fn turn(options: &Turn) -> anyhow::Result<Report> {
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
