//! `[telegram.<account>]`, `[slack.<account>]`, `[webhook.<source>]`, `[cron.<name>]`, `[gateway.keys.<name>]` and
//! `[server]`.

use std::collections::BTreeMap;

use secrecy::ExposeSecret;
use serde_json::{Map, Value};
use turnlock_domain::session::DEFAULT_ACCOUNT;

use super::table::{Context, Table};
use super::values::{address, allow, flag, one_of, text, texts, word};
use crate::{Account, Config, Cron, GatewayKey, Groups, ReplyTo, Slack, Telegram, Verify, Webhook};

const GROUPS: &[(&str, Groups)] = &[("mention", Groups::Mention), ("always", Groups::Always), ("never", Groups::Never)];

pub(super) fn read_all(root: &mut Table, context: &mut Context<'_>, config: &mut Config) {
    let account = context.new_account();
    let telegram = Telegram { account: account.clone(), ..Telegram::default() };
    named(root, context, "telegram", &mut config.telegram, &telegram, read_telegram);
    let slack = Slack { account, ..Slack::default() };
    named(root, context, "slack", &mut config.slack, &slack, read_slack);
    named(root, context, "webhook", &mut config.webhook, &Webhook::default(), read_webhook);
    named(root, context, "cron", &mut config.cron, &Cron::default(), read_cron);
    root.table(context, "gateway", |table, context| {
        named(table, context, "keys", &mut config.gateway.keys, &GatewayKey::default(), read_key);
    });
    root.table(context, "server", |table, context| {
        table.read(context, "directory", &mut config.server.directory, |value| word(value).map(Into::into));
        table.read(context, "listen", &mut config.server.listen, listen);
        table.read(context, "hosts", &mut config.server.hosts, texts);
    });
}

/// One entry of a table of names, while it is read.
pub(super) struct Entry<'t, T> {
    name: &'t str,
    pub(super) table: Table,
    /// Whether nothing has been read for it before.
    pub(super) is_new: bool,
    pub(super) into: &'t mut T,
}

/// Reads a table whose keys are names. Our own JSON removes an entry by `null`.
pub(super) fn named<T: Clone>(
    parent: &mut Table,
    context: &mut Context<'_>,
    key: &'static str,
    entries: &mut BTreeMap<String, T>,
    blank: &T,
    read: fn(&mut Entry<'_, T>, &mut Context<'_>),
) {
    if context.is_trusted() && parent.is_null(key) {
        parent.take(key);
        entries.clear();
        return;
    }
    parent.table(context, key, |table, context| {
        for (name, value) in table.take_all() {
            let path = table.path_of(&name);
            if !is_name(&name) {
                context.problem(&path, "a name here is a small letter and up to 31 of a-z, 0-9, _ and -");
            }
            match value {
                Value::Object(fields) => {
                    let is_new = !entries.contains_key(&name);
                    let into = entries.entry(name.clone()).or_insert_with(|| blank.clone());
                    let mut entry = Entry { name: &name, table: Table::new(path, fields), is_new, into };
                    read(&mut entry, context);
                    entry.table.finish(context);
                }
                Value::Null if context.is_trusted() => {
                    entries.remove(&name);
                }
                _ => context.problem(&path, "is a table of keys, not a single value"),
            }
        }
    });
}

/// Session keys rely on it: such a name never looks like a chat's id.
fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_lowercase())
        && name.len() <= 32
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-')
}

fn read_telegram(entry: &mut Entry<'_, Telegram>, context: &mut Context<'_>) {
    let Entry { name, table, is_new, into: bot } = entry;
    let route = format!("/telegram/{name}");
    table.secret(context, "bot_token", &route, *is_new, &mut bot.bot_token);
    table.secret(context, "secret_token", &route, *is_new, &mut bot.secret_token);
    table.read(context, "bot_id", &mut bot.bot_id, |value| {
        value.as_i64().filter(|id| *id > 0).ok_or_else(|| "must be the bot's numeric id".to_owned())
    });
    if bot.bot_id == 0 {
        bot.bot_id = bot.bot_token.as_ref().and_then(|token| id_in_token(token.expose_secret())).unwrap_or(0);
    }
    if bot.bot_id == 0 && bot.bot_token.is_some() {
        context.problem(&table.path_of("bot_id"), "is missing, and the token does not begin with it as tokens do");
    } else if bot.bot_id == 0 && bot.secret_token.is_some() && !context.is_trusted() {
        let path = table.path_of("bot_id");
        context.problem(&path, "is missing: write it out, since not every function may read the token it begins");
    }
    table.read(context, "username", &mut bot.username, |value| Ok(word(value)?.trim_start_matches('@').to_owned()));
    if bot.username.is_empty() {
        context.problem(&table.path_of("username"), "is missing: the bot's name, by which groups mention it");
    }
    table.read_optional(context, "base_url", &mut bot.base_url, address);
    let is_id = |id: &str| id.parse::<i64>().is_ok();
    table.read(context, "allow", &mut bot.account.allow, allow(is_id, "1000001"));
    read_account(table, context, &mut bot.account);
}

/// A token is `<bot id>:<secret>`.
fn id_in_token(token: &str) -> Option<i64> {
    token.split_once(':')?.0.parse().ok().filter(|id| *id > 0)
}

fn read_slack(entry: &mut Entry<'_, Slack>, context: &mut Context<'_>) {
    let Entry { name, table, is_new, into: app } = entry;
    let route = format!("/slack/{name}");
    table.secret(context, "bot_token", &route, *is_new, &mut app.bot_token);
    table.secret(context, "signing_secret", &route, *is_new, &mut app.signing_secret);
    let ids = [
        ("app_id", &mut app.app_id, "the app's id, A…"),
        ("team_id", &mut app.team_id, "the workspace's id, T…"),
        ("bot_user_id", &mut app.bot_user_id, "the id of the app's bot user, U…"),
    ];
    for (key, into, what) in ids {
        table.read(context, key, into, word);
        if into.is_empty() {
            context.problem(&table.path_of(key), format!("is missing: {what}"));
        }
    }
    table.read_optional(context, "bot_id", &mut app.bot_id, word);
    table.read_optional(context, "base_url", &mut app.base_url, address);
    table.read(context, "allowed_bots", &mut app.allowed_bots, texts);
    let is_id = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    table.read(context, "allow", &mut app.account.allow, allow(is_id, "\"U0123456789\""));
    read_account(table, context, &mut app.account);
}

fn read_account(table: &mut Table, context: &mut Context<'_>, account: &mut Account) {
    table.read(context, "stream", &mut account.stream, flag);
    table.read(context, "groups", &mut account.groups, one_of(GROUPS));
}

fn read_webhook(entry: &mut Entry<'_, Webhook>, context: &mut Context<'_>) {
    let Entry { name, table, is_new, into: source } = entry;
    let route = format!("/webhook/{name}");
    match table.take("verify") {
        // `{ bearer = "env:NAME" }` names the way and the secret at once.
        Some(Value::Object(mut fields)) if fields.len() == 1 && fields.contains_key("bearer") => {
            source.verify = Verify::Bearer;
            if let Some(secret) = fields.remove("bearer") {
                table.put("secret", secret);
            }
        }
        Some(value) => match verify(&value) {
            Some(verify) => source.verify = verify,
            None => context.problem(&table.path_of("verify"), VERIFY),
        },
        None => {}
    }
    table.secret(context, "secret", &route, *is_new, &mut source.secret);
    table.read_optional(context, "template", &mut source.template, text);
    table.read_optional(context, "session", &mut source.session, word);
    table.read_optional(context, "reply_to", &mut source.reply_to, reply_to);
}

const VERIFY: &str = "must be \"standard\", \"slack\", { hmac = \"X-Hub-Signature-256\" } (a header) or \
                      { bearer = \"env:NAME\" }; a webhook that proves nothing is not accepted";

fn verify(value: &Value) -> Option<Verify> {
    match value {
        Value::String(name) if name == "standard" => Some(Verify::Standard),
        Value::String(name) if name == "slack" => Some(Verify::Slack),
        Value::String(name) if name == "bearer" => Some(Verify::Bearer),
        Value::Object(fields) if fields.len() == 1 => {
            let header = fields.get("hmac")?.as_str()?;
            let is_header =
                !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            is_header.then(|| Verify::Hmac { header: header.to_owned() })
        }
        _ => None,
    }
}

/// A chat as `"telegram:1000001"` or a table, or an address.
fn reply_to(value: Value) -> Result<ReplyTo, String> {
    let wrong = "must be a chat, as \"telegram:1000001\", \"telegram:<account>:<chat>\" or \
                 { channel = \"slack\", account = \"main\", chat = \"C0123\", thread = \"…\" }, or an https:// address";
    let chat = match value {
        Value::String(text) if text.starts_with("http") => return address(Value::String(text)).map(ReplyTo::Url),
        Value::String(text) => match text.split(':').collect::<Vec<_>>()[..] {
            [channel, chat] => chat_of(channel, DEFAULT_ACCOUNT, chat, None),
            [channel, account, chat] => chat_of(channel, account, chat, None),
            _ => None,
        },
        Value::Object(fields) => chat_in(&fields),
        _ => None,
    };
    chat.ok_or_else(|| wrong.to_owned())
}

fn chat_in(fields: &Map<String, Value>) -> Option<ReplyTo> {
    let known = |key: &String| ["channel", "account", "chat", "thread"].contains(&key.as_str());
    let id = |key: &str| match fields.get(key) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let account = id("account").unwrap_or_else(|| DEFAULT_ACCOUNT.to_owned());
    fields.keys().all(known).then_some(())?;
    chat_of(&id("channel")?, &account, &id("chat")?, id("thread"))
}

fn chat_of(channel: &str, account: &str, chat: &str, thread: Option<String>) -> Option<ReplyTo> {
    let is_chat = matches!(channel, "telegram" | "slack") && is_name(account) && !chat.is_empty();
    is_chat.then(|| ReplyTo::Chat {
        channel: channel.to_owned(),
        account: account.to_owned(),
        chat: chat.to_owned(),
        thread,
    })
}

fn read_cron(entry: &mut Entry<'_, Cron>, context: &mut Context<'_>) {
    let Entry { table, into: cron, .. } = entry;
    table.read(context, "text", &mut cron.text, text);
    if cron.text.is_empty() {
        context.problem(&table.path_of("text"), "is missing: what the agent is told to do");
    }
    table.read_optional(context, "reply_to", &mut cron.reply_to, |value| match reply_to(value)? {
        ReplyTo::Url(_) => Err("must be a chat: an answer to a schedule goes to no address".to_owned()),
        chat => Ok(chat),
    });
}

fn read_key(entry: &mut Entry<'_, GatewayKey>, context: &mut Context<'_>) {
    let Entry { name, table, is_new, into: key } = entry;
    table.secret(context, "key", &format!("the API for the caller {name}"), *is_new, &mut key.key);
    table.read(context, "allow", &mut key.allow, allow(|id| !id.is_empty(), "\"support\""));
}

fn listen(value: Value) -> Result<String, String> {
    let address = text(value)?;
    match address.parse::<std::net::SocketAddr>() {
        Ok(_) => Ok(address),
        Err(_) => Err("must be an address and a port, e.g. \"127.0.0.1:8787\"".to_owned()),
    }
}
