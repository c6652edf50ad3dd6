//! `turnlock setup telegram|slack`: connects an account with its platform.

mod address;
mod slack;
mod telegram;

use std::process::ExitCode;

use turnlock_app::words::Language;
use turnlock_config::Config;

use crate::arguments::{Options, SetupPlatform};

/// Exit code 0 = what could be done is done.
pub(crate) async fn run(options: &Options, platform: &SetupPlatform) -> anyhow::Result<ExitCode> {
    match platform {
        SetupPlatform::Telegram(wanted) => telegram::run(options, wanted).await?,
        SetupPlatform::Slack(wanted) => slack::run(options, wanted)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The language of what platforms show of us.
fn language(config: &Config) -> Language {
    Language::from_code(&config.agent.language).unwrap_or_default()
}
