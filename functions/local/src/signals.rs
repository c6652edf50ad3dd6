//! The wish of a person or a service manager that the process ends.

use anyhow::Context;

/// SIGINT and SIGTERM; Ctrl-C where there are no signals.
pub(crate) struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

/// Listens from now on: a signal is no longer the end of the process.
#[cfg(unix)]
pub(crate) fn listen() -> anyhow::Result<Signals> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).context("signals cannot be received");
    Ok(Signals { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
}

/// Listens from now on.
#[cfg(not(unix))]
pub(crate) fn listen() -> anyhow::Result<Signals> {
    Ok(Signals {})
}

impl Signals {
    /// The next wish.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// The next wish.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
