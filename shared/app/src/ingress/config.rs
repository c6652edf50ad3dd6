//! The routes that a configuration describes.

use std::collections::BTreeMap;

use http::HeaderName;
use secrecy::SecretString;
use turnlock_channels::webhook::{Source, Url, Verify};
use turnlock_channels::{Groups, slack, telegram};
use turnlock_config::{Config, ReplyTo, Slack, Telegram, Webhook};

use super::{SlackRoute, TelegramRoute, WebhookRoute};

/// The header of GitHub's signatures, which begin with the name of the hash; other producers send the digits alone.
const GITHUB_SIGNATURE: &str = "x-hub-signature-256";

/// A configured value that cannot be what it is meant to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("webhook.{account}: {what}")]
pub struct ConfigMismatch {
    /// The webhook source.
    pub account: String,
    /// What is wrong, and what is allowed.
    pub what: &'static str,
}

/// The routes of all configured Telegram bots.
#[must_use]
pub fn telegram_routes(config: &Config) -> BTreeMap<String, TelegramRoute> {
    config.telegram.iter().map(|(account, bot)| (account.clone(), telegram_route(account, bot))).collect()
}

/// The routes of all configured Slack apps.
#[must_use]
pub fn slack_routes(config: &Config) -> BTreeMap<String, SlackRoute> {
    config.slack.iter().map(|(account, app)| (account.clone(), slack_route(account, app))).collect()
}

/// The routes of all configured webhook sources.
///
/// # Errors
/// [`ConfigMismatch`] for a header or an address that is none.
pub fn webhook_routes(config: &Config) -> Result<BTreeMap<String, WebhookRoute>, ConfigMismatch> {
    let routes = config.webhook.iter();
    routes.map(|(account, webhook)| Ok((account.clone(), WebhookRoute { source: source(account, webhook)? }))).collect()
}

fn telegram_route(account: &str, bot: &Telegram) -> TelegramRoute {
    TelegramRoute {
        bot: telegram::Bot {
            account: account.to_owned(),
            bot_id: bot.bot_id,
            username: bot.username.clone(),
            groups: groups(bot.account.groups),
        },
        secret_token: bot.secret_token.clone(),
        allow: bot.account.allow.clone(),
    }
}

fn slack_route(account: &str, app: &Slack) -> SlackRoute {
    SlackRoute {
        app: slack::App {
            account: account.to_owned(),
            app_id: app.app_id.clone(),
            team_id: app.team_id.clone(),
            bot_user_id: app.bot_user_id.clone(),
            bot_id: app.bot_id.clone().unwrap_or_default(),
            allowed_bots: app.allowed_bots.clone(),
            groups: groups(app.account.groups),
        },
        signing_secret: app.signing_secret.clone(),
        allow: app.account.allow.clone(),
    }
}

/// A source as its channel knows it. A secret that is not configured is a blank one, which lets nobody in.
///
/// # Errors
/// [`ConfigMismatch`] for a value that the configuration let pass and the channel cannot use.
pub fn source(account: &str, webhook: &Webhook) -> Result<Source, ConfigMismatch> {
    let mismatch = |what| ConfigMismatch { account: account.to_owned(), what };
    let secret = webhook.secret.clone().unwrap_or_else(|| SecretString::from(""));
    let reply_to = match &webhook.reply_to {
        Some(ReplyTo::Url(url)) => {
            Some(Url::parse(url).map_err(|_| mismatch("reply_to must be an address (https://…)"))?)
        }
        Some(ReplyTo::Chat { .. }) | None => None,
    };
    Ok(Source {
        name: account.to_owned(),
        verify: match &webhook.verify {
            turnlock_config::Verify::Standard => Verify::Standard { secret },
            turnlock_config::Verify::Slack => Verify::Slack { secret },
            turnlock_config::Verify::Bearer => Verify::Bearer { token: secret },
            turnlock_config::Verify::Hmac { header } => {
                let header = HeaderName::from_bytes(header.as_bytes())
                    .map_err(|_| mismatch("verify.hmac must be the name of a header"))?;
                let prefix = if header == GITHUB_SIGNATURE { "sha256=" } else { "" };
                Verify::Hmac { prefix: prefix.to_owned(), header, secret }
            }
        },
        template: webhook.template.clone(),
        session: webhook.session.clone(),
        reply_to,
        id_headers: Source::default_id_headers(),
    })
}

fn groups(groups: turnlock_config::Groups) -> Groups {
    match groups {
        turnlock_config::Groups::Mention => Groups::Mention,
        turnlock_config::Groups::Always => Groups::Always,
        turnlock_config::Groups::Never => Groups::Never,
    }
}
