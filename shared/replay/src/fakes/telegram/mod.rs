//! A Telegram in memory: the methods of the Bot API that a chat agent calls, with the rules that the public server
//! enforces and its very error texts (platforms.md of the project's sources: tdlib/telegram-bot-api, tdlib/td).
//!
//! It knows what it was told: chats of which an update was noted have the messages and topics that those updates named;
//! a chat that nobody heard of takes everything. Not here: MarkdownV2 (refused: our
//! renderer writes text, entities or HTML), rich messages, uploads; a method outside the list is unknown, as on an old
//! server.

mod content;
mod html;
mod methods;
mod settings;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use turnlock_channels::http::PlatformRequest;
use turnlock_domain::event::Channel;
use turnlock_domain::time::Millis;

use super::answers::{Call, Reply};
use super::budgets::{A_SECOND, Budget, Limit};
use super::chats::{ChatId, Chats};

/// The number of our first message in a chat, above what hand-written updates use.
const FIRST_MESSAGE: i64 = 1_001;

/// How many pressed buttons may wait for their answer.
const MAX_QUERIES: usize = 1_000;

/// The largest file that a bot may download.
const MAX_DOWNLOAD: usize = 20 << 20;

/// What a group takes, all its topics together (bots FAQ: "not more than 20 messages per minute to the same group").
const A_GROUP: Budget = Budget::a_minute(20);

/// What one bot may send over all chats (bots FAQ: "30 messages per second").
const A_BOT: Budget = Budget::at_once(30);

/// The method that stands for the download of a file.
pub(super) const FILE: &str = "file";

/// One of our bots, as the platform knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelegramBot {
    /// Its id.
    pub bot_id: i64,
    /// Its name, without `@`.
    pub username: String,
    /// Its token; none = every token is taken.
    pub token: Option<String>,
}

/// The platform's own state, beside the chats.
#[derive(Debug, Default)]
pub(super) struct Telegram {
    pub(super) bots: BTreeMap<String, TelegramBot>,
    /// Files by their reference.
    pub(super) files: BTreeMap<String, Bytes>,
    /// Pressed buttons that were not answered yet: account and query.
    queries: VecDeque<(String, String)>,
    /// Messages that were posted by way of us elsewhere, as pressed buttons named them: account and message.
    inline: VecDeque<(String, String)>,
    /// What was set, by account, as it is told.
    webhooks: BTreeMap<String, Value>,
    /// By account and language.
    commands: BTreeMap<(String, String), Vec<Value>>,
}

/// A refusal: the status and Telegram's description.
#[derive(Debug, PartialEq)]
struct Refused(u16, String);

/// The outcome of a method: its `result`.
type Outcome = Result<Value, Refused>;

fn bad_request(description: impl Into<String>) -> Refused {
    Refused(400, format!("Bad Request: {}", description.into()))
}

/// What a method works on.
struct Context<'a> {
    account: &'a str,
    bot: &'a TelegramBot,
    arguments: &'a Value,
    chats: &'a mut Chats,
    now: Millis,
}

/// A request in Telegram's address: `…/bot<token>/<method>` or `…/file/bot<token>/<path>`.
pub(super) struct Address {
    token: String,
    method: String,
    /// The path of a download.
    path: String,
}

impl Telegram {
    /// What is asked of whom. The account is the token's, as on the platform; where no bot has that token, the caller's.
    pub(super) fn call(&self, request: &PlatformRequest) -> (Call, Address) {
        let address = Address::read(&request.url);
        let by_token = self.bots.iter().find(|(_, bot)| bot.token.as_deref() == Some(address.token.as_str()));
        let account = by_token.map_or_else(|| request.account.clone(), |(account, _)| account.clone());
        let mut arguments = super::arguments(request);
        if address.method == FILE {
            arguments = json!({ "file": self.file_of(&address.path).unwrap_or(&address.path) });
        }
        let call = Call {
            channel: Channel::Telegram,
            account,
            method: methods::canonical(&address.method),
            chat: chat_of(&arguments),
            arguments,
        };
        (call, address)
    }

    /// Carries a call out.
    pub(super) fn apply(&mut self, call: &Call, address: &Address, chats: &mut Chats, now: Millis) -> Reply {
        let known = self.bots.get(&call.account).cloned();
        let fits = |bot: &TelegramBot| bot.token.as_ref().is_none_or(|token| *token == address.token);
        let Some(bot) = known.filter(fits) else {
            let (id, secret) = address.token.split_once(':').unwrap_or_default();
            let malformed = id.parse::<u64>().is_err() || secret.is_empty();
            let description = if malformed { "Unauthorized: invalid token specified" } else { "Unauthorized" };
            return reply(Err(Refused(401, description.to_owned())));
        };
        if call.method == FILE {
            return self.download(&address.path);
        }
        let context = Context { account: &call.account, bot: &bot, arguments: &call.arguments, chats, now };
        reply(methods::run(self, &call.method, context))
    }

    /// Takes notice of an update that was sent to us: its chat, message and topic exist, its button was pressed.
    pub(super) fn note(&mut self, account: &str, update: &Value, chats: &mut Chats) {
        for (kind, content) in update.as_object().into_iter().flatten() {
            if kind == "callback_query" {
                self.note_query(account, content);
                note_message(account, &content["message"], chats);
            } else if content.is_object() {
                note_message(account, content, chats);
            }
        }
    }

    fn note_query(&mut self, account: &str, query: &Value) {
        for (known, field) in [(&mut self.queries, "id"), (&mut self.inline, "inline_message_id")] {
            let Some(id) = query[field].as_str() else { continue };
            if known.len() == MAX_QUERIES {
                known.pop_front();
            }
            known.push_back((account.to_owned(), id.to_owned()));
        }
    }

    fn file_of<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.rsplit('/').next().and_then(|name| name.strip_prefix("file_"))
    }

    fn download(&self, path: &str) -> Reply {
        match self.file_of(path).and_then(|file| self.files.get(file)) {
            Some(bytes) => Reply::bytes(bytes.clone()),
            None => reply(Err(Refused(404, "Not Found".to_owned()))),
        }
    }
}

/// The budgets that a call draws on. What shows something in a chat counts, and so do edits and chat actions: users
/// report that they share the chat's budget.
pub(super) fn limits(call: &Call, chats: &Chats) -> Vec<Limit> {
    let shows = ["send", "editMessage"].iter().any(|verb| call.method.starts_with(verb));
    let Some(name) = call.chat.as_ref().filter(|_| shows) else { return Vec::new() };
    let (account, id) = (&call.account, name.rsplit('/').next().unwrap_or_default());
    let kind = chats.get(&chat(account, name)).and_then(|chat| chat.kind.as_deref());
    // Groups have negative numbers, and so have channels, of which one hears first.
    let is_group = kind.map_or_else(|| id.starts_with('-'), |kind| kind == "group" || kind == "supergroup");
    let of_chat = Limit { name: format!("{account} {name}"), budget: A_SECOND };
    let of_group = Limit { name: format!("{account} {name} a minute"), budget: A_GROUP };
    let of_bot = Limit { name: account.clone(), budget: A_BOT };
    [of_chat, of_bot].into_iter().chain(is_group.then_some(of_group)).collect()
}

impl Address {
    fn read(url: &str) -> Self {
        let path = url.split(['?', '#']).next().unwrap_or_default();
        // A server of one's own may stand below any path: the last `/bot` is the API's.
        let (before, rest) = path.rsplit_once("/bot").unwrap_or(("", ""));
        let (token, last) = rest.split_once('/').unwrap_or((rest, ""));
        let is_file = before.ends_with("/file");
        let (method, path) = if is_file { (FILE, last) } else { (last, "") };
        Self { token: token.to_owned(), method: method.to_owned(), path: path.to_owned() }
    }
}

fn note_message(account: &str, message: &Value, chats: &mut Chats) {
    let Some(chat_id) = message.pointer("/chat/id").and_then(id_text) else { return };
    let connection = message["business_connection_id"].as_str();
    let chat = chats.open(&chat(account, &in_connection(connection, &chat_id)));
    if let Some(kind) = message.pointer("/chat/type").and_then(Value::as_str) {
        chat.kind = Some(kind.to_owned());
    }
    for id in [&message["message_id"], &message["reply_to_message"]["message_id"]] {
        // Our own messages come back inside of others; they are here already.
        if let Some(id) = id.as_i64().filter(|id| !chat.has(*id)) {
            chat.see(id);
        }
    }
    if message["is_topic_message"] == true || message["forum_topic_created"].is_object() {
        chat.threads.extend(id_text(&message["message_thread_id"]));
    }
}

fn chat(account: &str, chat: &str) -> ChatId {
    ChatId { channel: Channel::Telegram, account: account.to_owned(), chat: chat.to_owned() }
}

fn in_connection(connection: Option<&str>, chat: &str) -> String {
    connection.map_or_else(|| chat.to_owned(), |connection| format!("{connection}/{chat}"))
}

/// The chat that a call names, as the output names it.
fn chat_of(arguments: &Value) -> Option<String> {
    let chat = id_text(&arguments["chat_id"])?;
    Some(in_connection(arguments["business_connection_id"].as_str(), &chat))
}

/// An id as text, whether it was sent as a number or not.
fn id_text(id: &Value) -> Option<String> {
    match id {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn reply(outcome: Outcome) -> Reply {
    match outcome {
        Ok(result) => Reply::json(200, &json!({ "ok": true, "result": result }), true),
        Err(Refused(status, description)) => {
            Reply::json(status, &json!({ "ok": false, "error_code": status, "description": description }), false)
        }
    }
}

/// An object argument, which a form sends as JSON text.
fn object<'a>(arguments: &'a Value, name: &str) -> Option<std::borrow::Cow<'a, Map<String, Value>>> {
    match &arguments[name] {
        Value::Object(object) => Some(std::borrow::Cow::Borrowed(object)),
        Value::String(text) => serde_json::from_str(text).ok().map(std::borrow::Cow::Owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
