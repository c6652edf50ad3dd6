//! Cold starts, measured by `cargo xtask bench cold`: the functions' own binaries, each as a new process that asks a Runtime
//! API for work and finds AWS's endpoints on loopback, over TLS.
//!
//! | module | holds |
//! |---|---|
//! | `targets` | what is measured: a binary, its settings, and events that it is given |
//! | `process` | Lambda, as far as one process can tell |
//! | `endpoints` | SQS, DynamoDB and Secrets Manager |
//! | `server` | HTTP on loopback |
//! | `report` | the figures |
//!
//! A run: from the start of the process to its first request for work (`init`), from the first event to its answer
//! (`first`), then the median of further events (`warm`). Every answer is looked at, and so is what it sent: a figure of a
//! refusal would say nothing.
//!
//! The targets take turns, so that whatever else the machine does falls on all of them; `minimal` is one of them, and
//! what it takes is the measure of the others. What is not in the figures: the download of the package and the machine
//! around the process, which are the same for every function of a size, and the distance to the real endpoints.

mod endpoints;
mod process;
mod report;
mod server;
mod targets;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};

use self::endpoints::Endpoints;
use self::process::Process;
use self::targets::{TARGETS, Target};

pub use self::report::{Report, Run};

/// How many rounds come before those that count: whatever is read from the disk is in memory then.
const WARM_UP: usize = 2;

/// What is measured, and how often.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the binaries are.
    pub binaries: PathBuf,
    /// How many runs of each target count.
    pub runs: usize,
    /// How many events a process is given after the first.
    pub warm: usize,
    /// The targets by name; none = all.
    pub only: Vec<String>,
}

/// Measures the targets.
///
/// # Errors
/// A binary that is not there, and anything that does not answer as it should.
pub async fn measure(settings: &Settings) -> anyhow::Result<Report> {
    let directory = tempfile::tempdir()?;
    let endpoints = Endpoints::start(directory.path()).await?;
    let chosen = |target: &&Target| settings.only.is_empty() || settings.only.iter().any(|name| name == target.name);
    let targets: Vec<&Target> = TARGETS.iter().filter(chosen).collect();
    ensure!(!targets.is_empty(), "no target has that name");
    targets::write_settings(directory.path())?;
    let mut runs: Vec<Vec<Run>> = targets.iter().map(|_| Vec::new()).collect();
    for round in 0..WARM_UP + settings.runs {
        for (target, runs) in targets.iter().zip(&mut runs) {
            let run = run(target, settings, &endpoints, directory.path()).await;
            let run = run.with_context(|| format!("{} in round {round}", target.name))?;
            if round >= WARM_UP {
                runs.push(run);
            }
        }
    }
    Ok(Report::new(targets.iter().zip(&runs).map(|(target, runs)| (target.name, runs.as_slice()))))
}

/// One life of a function.
async fn run(target: &Target, settings: &Settings, endpoints: &Endpoints, directory: &Path) -> anyhow::Result<Run> {
    let program = settings.binaries.join(target.program).with_extension(std::env::consts::EXE_EXTENSION);
    let environment = target.environment(endpoints, directory);
    let (mut process, init) = Process::start(&program, &environment, &directory.join("log")).await?;
    let first = invoke(target, &mut process, endpoints).await?;
    let resident_kb = process.resident_kb();
    let mut warm = Vec::new();
    for _ in 0..settings.warm {
        warm.push(invoke(target, &mut process, endpoints).await?);
    }
    Ok(Run { init, first, warm, resident_kb })
}

async fn invoke(target: &Target, process: &mut Process, endpoints: &Endpoints) -> anyhow::Result<Duration> {
    let event = target.event(endpoints.number())?;
    drop(endpoints.take_sent());
    let invoked = process.invoke(event).await.and_then(|(took, answer)| {
        let sent = endpoints.take_sent();
        ensure!((target.is_well)(&answer), "the answer is {answer}");
        ensure!(sent == [target.sends_to], "it sent to {sent:?} and not one message to {}", target.sends_to);
        Ok(took)
    });
    invoked.with_context(|| process.output())
}
