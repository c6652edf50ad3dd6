//! Our identities, as the platforms know them.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};
use turnlock_config::Config;

use super::{SlackApp, TelegramBot, WebhookReceiver};

/// Our identities, as the platforms know them, by account.
#[derive(Debug, Clone, Default)]
pub struct Accounts {
    /// Our bots.
    pub telegram: BTreeMap<String, TelegramBot>,
    /// Our apps.
    pub slack: BTreeMap<String, SlackApp>,
    /// The receivers behind our webhook sources.
    pub webhook: BTreeMap<String, WebhookReceiver>,
}

impl Accounts {
    /// The identities that `config` names.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        let telegram = config.telegram.iter().map(|(name, bot)| {
            let token = exposed(bot.bot_token.as_ref());
            (name.clone(), TelegramBot { bot_id: bot.bot_id, username: bot.username.clone(), token })
        });
        let slack = config.slack.iter().map(|(name, app)| {
            let app = SlackApp {
                app_id: app.app_id.clone(),
                team_id: app.team_id.clone(),
                bot_user_id: app.bot_user_id.clone(),
                bot_id: app.bot_id.clone().unwrap_or_default(),
                token: exposed(app.bot_token.as_ref()),
                other_teams: BTreeMap::new(),
            };
            (name.clone(), app)
        });
        let webhook = config
            .webhook
            .iter()
            .map(|(name, source)| (name.clone(), WebhookReceiver { secret: exposed(source.secret.as_ref()) }));
        Self { telegram: telegram.collect(), slack: slack.collect(), webhook: webhook.collect() }
    }
}

fn exposed(secret: Option<&SecretString>) -> Option<String> {
    secret.map(|secret| secret.expose_secret().to_owned())
}
