//! The way to the platforms: over the network, or to the stand-ins of the demo.

use std::sync::Arc;

use anyhow::Context;
use secrecy::{ExposeSecret, SecretString};
use turnlock_channels::http::{PlatformHttp, ReqwestHttp};
use turnlock_clock::Clock;
use turnlock_config::{Config, Slack, Telegram};
use turnlock_replay::fakes::{Accounts, FakePlatforms, SlackApp, TelegramBot, WebhookReceiver};

/// The platforms over the network.
pub(crate) fn real() -> anyhow::Result<Arc<dyn PlatformHttp>> {
    Ok(Arc::new(ReqwestHttp::new().context("the HTTP client cannot be set up")?))
}

/// Stand-ins that know the identities in `config`.
pub(crate) fn stand_ins(config: &Config) -> Arc<FakePlatforms> {
    let accounts = Accounts {
        telegram: config.telegram.iter().map(|(name, bot)| (name.clone(), telegram(bot))).collect(),
        slack: config.slack.iter().map(|(name, app)| (name.clone(), slack(app))).collect(),
        webhook: config
            .webhook
            .iter()
            .map(|(name, source)| (name.clone(), WebhookReceiver { secret: exposed(source.secret.as_ref()) }))
            .collect(),
    };
    Arc::new(FakePlatforms::new(Clock::system(), accounts))
}

fn telegram(bot: &Telegram) -> TelegramBot {
    TelegramBot { bot_id: bot.bot_id, username: bot.username.clone(), token: exposed(bot.bot_token.as_ref()) }
}

fn slack(app: &Slack) -> SlackApp {
    SlackApp {
        app_id: app.app_id.clone(),
        team_id: app.team_id.clone(),
        bot_user_id: app.bot_user_id.clone(),
        bot_id: app.bot_id.clone().unwrap_or_default(),
        token: exposed(app.bot_token.as_ref()),
        other_teams: std::collections::BTreeMap::new(),
    }
}

fn exposed(secret: Option<&SecretString>) -> Option<String> {
    secret.map(|secret| secret.expose_secret().to_owned())
}
