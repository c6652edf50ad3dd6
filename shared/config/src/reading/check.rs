//! What no single key can get wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::ExposeSecret;

use super::table::Context;
use crate::{Config, Provider, ReplyTo};

/// How much longer a queue hides a message than one invocation may take (Lambda's own advice for event sources).
const VISIBILITY_FACTOR: u32 = 6;

pub(super) fn check(config: &Config, context: &mut Context<'_>) {
    duplicate_identities(config, context);
    reply_targets(config, context);
    prices(config, context);
    let limits = &config.agent.limits;
    let visibility = Duration::from_secs(u64::from(limits.turn_seconds)) * VISIBILITY_FACTOR;
    if !context.is_trusted() && limits.max_wait <= visibility {
        let message = format!(
            "must be longer than {VISIBILITY_FACTOR} x turn_seconds ({} s), or a message whose worker died is too old \
             when it comes back",
            visibility.as_secs()
        );
        context.problem("agent.limits.max_wait", message);
    }
}

/// Two accounts of one identity would take every event twice, or each other's.
fn duplicate_identities(config: &Config, context: &mut Context<'_>) {
    let bots = config.telegram.iter().map(|(name, bot)| (format!("telegram.{name}.bot_id"), bot.bot_id.to_string()));
    duplicates(bots.filter(|(_, id)| id != "0"), context, "is the bot of");
    let apps = config
        .slack
        .iter()
        .map(|(name, app)| (format!("slack.{name}.app_id"), format!("{} in {}", app.app_id, app.team_id)));
    duplicates(apps, context, "is, in the same workspace, the app of");
    let keys = config.gateway.keys.iter().filter_map(|(name, key)| {
        Some((format!("gateway.keys.{name}.key"), key.key.as_ref()?.expose_secret().to_owned()))
    });
    duplicates(keys, context, "is the key of");
}

/// Says which two are the same, never what they are: the values may be secrets.
fn duplicates(values: impl Iterator<Item = (String, String)>, context: &mut Context<'_>, is: &str) {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for (path, value) in values {
        if let Some(first) = seen.get(&value) {
            context.problem(&path, format!("{is} {first} already; each needs its own"));
        } else {
            seen.insert(value, path);
        }
    }
}

/// A day whose models cost nothing never costs what it may. The stand-in is nobody's bill.
fn prices(config: &Config, context: &mut Context<'_>) {
    if config.agent.limits.daily_cost.is_none() {
        return;
    }
    for (index, model) in config.models.iter().enumerate() {
        if model.price.is_none() && model.provider != Provider::Scripted {
            let message = format!(
                "is missing, and agent.limits.daily_cost counts what `{}` costs: price = {{ input = 3, output = 15 }} is for a \
                 million tokens, with 0 for a model that is free",
                model.model
            );
            context.problem(&format!("models[{index}].price"), message);
        }
    }
}

fn reply_targets(config: &Config, context: &mut Context<'_>) {
    let webhooks = config.webhook.iter().map(|(name, source)| (format!("webhook.{name}"), &source.reply_to));
    let crons = config.cron.iter().map(|(name, cron)| (format!("cron.{name}"), &cron.reply_to));
    for (path, reply_to) in webhooks.chain(crons) {
        let Some(ReplyTo::Chat { channel, account, .. }) = reply_to else { continue };
        let is_there = match channel.as_str() {
            "telegram" => config.telegram.contains_key(account),
            _ => config.slack.contains_key(account),
        };
        if !is_there {
            context.problem(&format!("{path}.reply_to"), format!("there is no [{channel}.{account}] to send it"));
        }
    }
}
