//! The configuration of the first run.

use secrecy::SecretString;

use super::{Account, Allow, Gateway, GatewayKey, Slack, Telegram, Verify, Webhook};
use crate::Config;

/// The secrets of the first run. Whoever starts it makes them up: here is no source of chance.
#[derive(Debug, Clone)]
pub struct DemoSecrets {
    /// The Telegram bot's token.
    pub telegram_bot_token: SecretString,
    /// What the fake Telegram sends with every update.
    pub telegram_secret_token: SecretString,
    /// The Slack app's token.
    pub slack_bot_token: SecretString,
    /// What the fake Slack signs with.
    pub slack_signing_secret: SecretString,
    /// What a webhook is signed with (`whsec_…`).
    pub webhook_secret: SecretString,
    /// The API's key.
    pub gateway_key: SecretString,
}

pub(crate) fn demo(secrets: DemoSecrets) -> Config {
    let account = Account { allow: Allow::Everybody, ..Account::default() };
    let telegram = Telegram {
        account: account.clone(),
        bot_token: Some(secrets.telegram_bot_token),
        secret_token: Some(secrets.telegram_secret_token),
        bot_id: 1,
        username: "echo_bot".to_owned(),
        base_url: None,
    };
    let slack = Slack {
        account,
        bot_token: Some(secrets.slack_bot_token),
        signing_secret: Some(secrets.slack_signing_secret),
        app_id: "A0APP".to_owned(),
        team_id: "T0TEAM".to_owned(),
        bot_user_id: "U0BOT".to_owned(),
        bot_id: Some("B0BOT".to_owned()),
        ..Slack::default()
    };
    let webhook = Webhook { verify: Verify::Standard, secret: Some(secrets.webhook_secret), ..Webhook::default() };
    let key = GatewayKey { key: Some(secrets.gateway_key), allow: Allow::Everybody };
    let main = || "main".to_owned();
    Config {
        telegram: [(main(), telegram)].into(),
        slack: [(main(), slack)].into(),
        webhook: [(main(), webhook)].into(),
        gateway: Gateway { keys: [(main(), key)].into() },
        ..Config::default()
    }
}
