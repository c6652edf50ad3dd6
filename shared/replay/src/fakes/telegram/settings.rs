//! What a bot's owner sets: the webhook and the list of commands, with the server's rules on them.

use serde_json::{Value, json};

use super::{Context, Outcome, Telegram, bad_request};

/// The ports that the server calls.
const PORTS: [&str; 4] = ["443", "80", "88", "8443"];

/// How many requests the server makes at a time, if nothing else is said.
const DEFAULT_CONNECTIONS: u64 = 40;

/// A list argument, which a form sends as JSON text.
fn list(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(list) => Some(list.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

pub(super) fn set_webhook(telegram: &mut Telegram, context: &Context<'_>) -> Outcome {
    let url = context.arguments["url"].as_str().unwrap_or_default();
    let secret = context.arguments["secret_token"].as_str().unwrap_or_default();
    if secret.len() > 256 {
        return Err(bad_request("secret token is too long"));
    }
    if !secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-') {
        return Err(bad_request("secret token contains unallowed characters"));
    }
    if url.is_empty() {
        return Ok(delete_webhook(telegram, context));
    }
    let Some(rest) = url.strip_prefix("https://") else {
        return Err(bad_request("bad webhook: An HTTPS URL must be provided for webhook"));
    };
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    if host.rsplit_once(':').is_some_and(|(_, port)| !PORTS.contains(&port)) {
        return Err(bad_request("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443"));
    }
    let connections = context.arguments["max_connections"].as_u64().unwrap_or(DEFAULT_CONNECTIONS).clamp(1, 100);
    let before = telegram.webhooks.get(context.account);
    // Left out, the list of before stays.
    let updates = list(&context.arguments["allowed_updates"])
        .or_else(|| before.and_then(|webhook| webhook["allowed_updates"].as_array().cloned()))
        .unwrap_or_default();
    let mut webhook = json!({ "url": url, "max_connections": connections });
    if !updates.is_empty() {
        webhook["allowed_updates"] = json!(updates);
    }
    telegram.webhooks.insert(context.account.to_owned(), webhook);
    Ok(json!(true))
}

pub(super) fn webhook_info(telegram: &Telegram, context: &Context<'_>) -> Value {
    let mut info = json!({ "url": "", "has_custom_certificate": false, "pending_update_count": 0 });
    for (field, value) in telegram.webhooks.get(context.account).and_then(Value::as_object).into_iter().flatten() {
        info[field] = value.clone();
    }
    info
}

pub(super) fn delete_webhook(telegram: &mut Telegram, context: &Context<'_>) -> Value {
    telegram.webhooks.remove(context.account);
    json!(true)
}

pub(super) fn set_commands(telegram: &mut Telegram, context: &Context<'_>) -> Outcome {
    let commands = list(&context.arguments["commands"]).unwrap_or_default();
    if commands.len() > 100 {
        return Err(bad_request("BOT_COMMANDS_TOO_MUCH"));
    }
    for command in &commands {
        let name = command["command"].as_str().unwrap_or_default();
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if name.is_empty() || name.len() > 32 || !name.bytes().all(is_plain) {
            return Err(bad_request("BOT_COMMAND_INVALID"));
        }
        if !(1..=256).contains(&command["description"].as_str().unwrap_or_default().chars().count()) {
            return Err(bad_request("BOT_COMMAND_DESCRIPTION_INVALID"));
        }
    }
    telegram.commands.insert(list_name(context), commands);
    Ok(json!(true))
}

pub(super) fn commands(telegram: &Telegram, context: &Context<'_>) -> Value {
    json!(telegram.commands.get(&list_name(context)).cloned().unwrap_or_default())
}

pub(super) fn delete_commands(telegram: &mut Telegram, context: &Context<'_>) -> Value {
    telegram.commands.remove(&list_name(context));
    json!(true)
}

/// A bot has a list for each language; scopes are not told apart here.
fn list_name(context: &Context<'_>) -> (String, String) {
    let language = context.arguments["language_code"].as_str().unwrap_or_default();
    (context.account.to_owned(), language.to_owned())
}
