//! How a command ends: 0 = done, 1 = it failed, 2 = it was asked for something that cannot be.

use std::process::ExitCode;

use turnlock_app::model::ModelError;
use turnlock_config::ConfigError;
use turnlock_host::HostError;

use crate::console;

/// What the person has to change: a value, a file, a port. The sentence names it and the fix.
#[derive(Debug)]
pub(crate) struct Misuse(pub(crate) String);

impl std::fmt::Display for Misuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

/// Says what went wrong, and how the process ends for it.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    console::aside(format_args!("turnlock: {}", causes.join(": ")));
    if is_misuse(error) { ExitCode::from(2) } else { ExitCode::FAILURE }
}

fn is_misuse(error: &anyhow::Error) -> bool {
    let is_mismatch = |error: &HostError| matches!(error, HostError::Config(_));
    error.is::<Misuse>()
        || error.is::<ConfigError>()
        || error.is::<ModelError>()
        || error.downcast_ref::<HostError>().is_some_and(is_mismatch)
}
