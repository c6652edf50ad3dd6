//! The platforms' clients and reply routes that a configuration describes.

use std::collections::BTreeMap;
use std::sync::Arc;

use turnlock_channels::http::PlatformHttp;
use turnlock_channels::{Outbound, slack, telegram, webhook};
use turnlock_clock::Clock;
use turnlock_config::{Config, ReplyTo};
use turnlock_domain::event::Channel;

use super::ReplyRoute;
use crate::ingress::{ConfigMismatch, source};

/// A client for every account that can send: one without a token has none, and its events end as undeliverable.
///
/// # Errors
/// [`ConfigMismatch`] for a webhook's header or address that is none.
pub fn clients(config: &Config, http: &Arc<dyn PlatformHttp>, clock: &Clock) -> Result<Outbound, ConfigMismatch> {
    let mut outbound = Outbound::new();
    for (account, bot) in &config.telegram {
        if let Some(token) = bot.bot_token.clone() {
            let base = bot.base_url.as_deref().unwrap_or(telegram::DEFAULT_BASE_URL);
            outbound = outbound.with_telegram(telegram::Client::new(Arc::clone(http), account, token, base));
        }
    }
    for (account, app) in &config.slack {
        if let Some(token) = app.bot_token.clone() {
            let base = app.base_url.as_deref().unwrap_or(slack::DEFAULT_BASE_URL);
            outbound = outbound.with_slack(slack::Client::new(Arc::clone(http), account, token, base));
        }
    }
    for (account, webhook) in &config.webhook {
        let source = source(account, webhook)?;
        if let Some(client) = webhook::Client::new(Arc::clone(http), clock.clone(), &source) {
            outbound = outbound.with_webhook(client);
        }
    }
    Ok(outbound)
}

/// The webhook sources and schedules whose replies go to a chat.
pub(super) fn reply_routes(config: &Config) -> BTreeMap<(Channel, String), ReplyRoute> {
    let webhooks = config.webhook.iter().map(|(name, webhook)| (Channel::Webhook, name, &webhook.reply_to));
    let crons = config.cron.iter().map(|(name, cron)| (Channel::Cron, name, &cron.reply_to));
    let routes = webhooks.chain(crons).filter_map(|(source, name, reply_to)| match reply_to {
        Some(ReplyTo::Chat { channel, account: ours, chat, thread }) => {
            let channel = match channel.as_str() {
                "telegram" => Channel::Telegram,
                "slack" => Channel::Slack,
                // The configuration allows no other; nobody would show it.
                _ => Channel::Unknown,
            };
            let route = ReplyRoute { channel, account: ours.clone(), chat: chat.clone(), thread: thread.clone() };
            Some(((source, name.clone()), route))
        }
        Some(ReplyTo::Url(_)) | None => None,
    });
    routes.collect()
}
