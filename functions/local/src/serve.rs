//! `turnlock serve`: every function in one process, until a signal.

use std::process::ExitCode;

use tokio::sync::oneshot;

use crate::arguments::Options;
use crate::journal::Journal;
use crate::running::Running;
use crate::setup::Setup;
use crate::{banner, console, logs, signals};

/// Serves until SIGINT or SIGTERM; a second one does not wait for what is in progress.
pub(crate) async fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let journal = Journal::default();
    logs::start(options, &journal, false)?;
    let setup = Setup::read(options)?;
    let mut signals = signals::listen()?;
    let running = Running::start(&setup, setup.listen, &journal).await?;
    banner::show(running.announcement(), setup.configured());
    let (end, ended) = oneshot::channel::<()>();
    let work = running.work(async move { drop(ended.await) });
    tokio::pin!(work);
    tokio::select! {
        worked = &mut work => return worked.map(|()| ExitCode::SUCCESS),
        () = signals.next() => {}
    }
    console::line("\nStopping: what is in progress may finish (once more ends at once, nothing is lost).");
    drop(end);
    tokio::select! {
        biased;
        worked = &mut work => worked.map(|()| ExitCode::SUCCESS),
        () = signals.next() => Ok(ExitCode::SUCCESS),
    }
}
