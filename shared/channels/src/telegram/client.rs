//! Requests to the Bot API, and what its answers mean ("Making requests": `ok`, `error_code`, `description`,
//! `parameters`). The descriptions that are told apart are those of the public server's source (tdlib/telegram-bot-api).
//!
//! No send method has an idempotency key: a send without an answer, or with a 5xx, has an unknown outcome. An edit may
//! be repeated: its outcome is the same.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Value, json};
use turnlock_domain::event::{Button, OutboundEvent, TAP, TAP_KEEPS_BUTTONS};
use turnlock_domain::text::cut_utf16;

use super::connection::Connection;
use crate::http::{PlatformError, PlatformHttp, PlatformResponse};
use crate::json;
use crate::outbound::{Part, SendError};

/// The public Bot API server.
pub const DEFAULT_BASE_URL: &str = "https://api.telegram.org";

/// The longest text of an answer to a pressed button.
pub(super) const LONGEST_ALERT: usize = 200;

/// As much of a description as is kept.
const MOST_WORDS: usize = 16;
const LONGEST_WORD: usize = 24;

/// How long to wait when a 429 does not say.
const DEFAULT_WAIT: Duration = Duration::from_secs(5);

/// The client of one bot.
#[derive(Debug, Clone)]
pub struct Client(pub(super) Connection);

impl Client {
    /// A client for the bot called `account`; `base_url` is [`DEFAULT_BASE_URL`] or a server of one's own.
    #[must_use]
    pub fn new(http: Arc<dyn PlatformHttp>, account: &str, token: SecretString, base_url: &str) -> Self {
        Self(Connection::new(http, account, token, base_url))
    }

    /// The bot's account.
    #[must_use]
    pub fn account(&self) -> &str {
        self.0.account()
    }

    /// Sends `part`, or edits the message `edit` into it; returns the message's id. An answer to a pressed button goes to
    /// who pressed it, and its id is the query's.
    ///
    /// A part that Telegram cannot parse is sent once more without markup: a flaw in ours must not cost the text.
    ///
    /// # Errors
    /// [`SendError`], by what the caller must do.
    pub async fn send(&self, event: &OutboundEvent, part: &Part, edit: Option<&str>) -> Result<String, SendError> {
        if let Some(tap) = event.metadata.get(TAP) {
            return self.answer_tap(event, tap, &part.plain).await;
        }
        // A part that reads as it is written needs no parser, so that none can refuse it.
        let mode = (part.text != part.plain).then_some("HTML");
        let mut answer = self.say(event, (&part.text, mode), &part.buttons, edit).await;
        let mut sent = &part.text;
        if answer.as_ref().is_ok_and(|response| says(response, "can't parse entities")) {
            answer = self.say(event, (&part.plain, None), &part.buttons, edit).await;
            sent = &part.plain;
        }
        match answer {
            Ok(response) => read(&response, edit, sent),
            Err(PlatformError::Unreachable(_)) => Err(SendError::Transient("unreachable".to_owned())),
            Err(PlatformError::AnswerLost(_)) => Err(unclear(edit, "answer lost")),
        }
    }

    /// Shows for some seconds that the bot is typing.
    ///
    /// # Errors
    /// [`SendError`]; nobody misses it.
    pub async fn typing(&self, event: &OutboundEvent) -> Result<(), SendError> {
        let mut arguments = address(event);
        arguments["action"] = json!("typing");
        add_thread(&mut arguments, event);
        self.repeatable("sendChatAction", &arguments, &[]).await
    }

    async fn say(
        &self,
        event: &OutboundEvent,
        (text, mode): (&str, Option<&str>),
        buttons: &[Button],
        edit: Option<&str>,
    ) -> Result<PlatformResponse, PlatformError> {
        let (method, mut arguments) = match edit {
            Some(message) => ("editMessageText", edit_arguments(event, text, message)),
            None => ("sendMessage", send_arguments(event, text)),
        };
        if let Some(mode) = mode {
            arguments["parse_mode"] = json!(mode);
        }
        // An edit without a keyboard takes away the one that is there.
        if !buttons.is_empty() {
            arguments["reply_markup"] = keyboard(buttons);
        }
        // A link that a model wrote must not make Telegram fetch it unseen.
        arguments["link_preview_options"] = json!({ "is_disabled": true });
        self.0.call(method, &arguments).await
    }

    /// Answers a pressed button, once, and takes the buttons away, unless the event leaves them. One that was pressed too
    /// long ago is answered.
    async fn answer_tap(&self, event: &OutboundEvent, tap: &Value, text: &str) -> Result<String, SendError> {
        let query = json::string(tap, "/query_id").unwrap_or_default();
        let answer = json!({ "callback_query_id": query, "text": cut_utf16(text, LONGEST_ALERT), "show_alert": true });
        self.repeatable("answerCallbackQuery", &answer, &["query is too old"]).await?;
        if tap.get(TAP_KEEPS_BUTTONS).and_then(Value::as_bool) == Some(true) {
            return Ok(query.to_owned());
        }
        let inline = json::string(tap, "/inline_message_id").map(|message| json!({ "inline_message_id": message }));
        let card = inline.or_else(|| {
            let mut card = address(event);
            card["message_id"] = tap.get("message_id")?.clone();
            Some(card)
        });
        if let Some(mut card) = card {
            card["reply_markup"] = keyboard(&[]);
            // Buttons that stay are answered again when they are pressed.
            let _ = self.repeatable("editMessageReplyMarkup", &card, &["message is not modified"]).await;
        }
        Ok(query.to_owned())
    }

    /// A call that may be made again without harm, and that a refusal in these words has done.
    async fn repeatable(&self, method: &str, arguments: &Value, done: &[&str]) -> Result<(), SendError> {
        match self.0.call(method, arguments).await {
            Ok(response) if done.iter().any(|words| says(&response, words)) => Ok(()),
            Ok(response) => {
                let sent = arguments["text"].as_str().unwrap_or_default();
                read(&response, Some(""), sent).map(|_| ())
            }
            Err(PlatformError::Unreachable(_)) => Err(SendError::Transient("unreachable".to_owned())),
            Err(PlatformError::AnswerLost(_)) => Err(SendError::Transient("answer lost".to_owned())),
        }
    }

    /// Deletes the message `message` from the event's chat; one that is not there is deleted.
    ///
    /// # Errors
    /// [`SendError`], by what the caller must do.
    pub async fn delete(&self, event: &OutboundEvent, message: &str) -> Result<(), SendError> {
        let mut arguments = address(event);
        arguments["message_id"] = number(message);
        self.repeatable("deleteMessage", &arguments, &["message to delete not found"]).await
    }
}

fn send_arguments(event: &OutboundEvent, part: &str) -> Value {
    let mut arguments = address(event);
    arguments["text"] = json!(part);
    add_thread(&mut arguments, event);
    if let Some(message) = event.reply_to_id.as_deref() {
        arguments["reply_parameters"] = json!({ "message_id": number(message), "allow_sending_without_reply": true });
    }
    arguments
}

/// Telegram refuses the id of the General topic ("message thread not found"): it is the chat itself.
fn add_thread(arguments: &mut Value, event: &OutboundEvent) {
    if let Some(thread) = event.thread_id.as_deref().filter(|thread| *thread != super::message::GENERAL_TOPIC) {
        arguments["message_thread_id"] = number(thread);
    }
}

fn edit_arguments(event: &OutboundEvent, part: &str, message: &str) -> Value {
    let mut arguments = address(event);
    arguments["text"] = json!(part);
    arguments["message_id"] = number(message);
    arguments
}

/// One row of buttons; without any it takes away those that are there.
fn keyboard(buttons: &[Button]) -> Value {
    let row: Vec<Value> =
        buttons.iter().map(|button| json!({ "text": button.label, "callback_data": button.data })).collect();
    let rows = if row.is_empty() { Vec::new() } else { vec![row] };
    json!({ "inline_keyboard": rows })
}

/// The chat, and the business connection where the chat id names one (`connection/chat`).
fn address(event: &OutboundEvent) -> Value {
    match event.chat_id.split_once('/') {
        Some((connection, chat)) => json!({ "business_connection_id": connection, "chat_id": number(chat) }),
        None => json!({ "chat_id": number(&event.chat_id) }),
    }
}

/// Ids are numbers; what is not (`@channelname`) goes as text.
fn number(id: &str) -> Value {
    id.parse::<i64>().map_or_else(|_| json!(id), |id| json!(id))
}

fn unclear(edit: Option<&str>, what: &str) -> SendError {
    match edit {
        Some(_) => SendError::Transient(what.to_owned()),
        None => SendError::Unknown(what.to_owned()),
    }
}

/// What an answer means; `sent` is the text that it answers.
fn read(response: &PlatformResponse, edit: Option<&str>, sent: &str) -> Result<String, SendError> {
    let body = serde_json::from_slice::<Value>(&response.body).unwrap_or_default();
    let ok = body.get("ok").and_then(Value::as_bool);
    if ok == Some(true) {
        let id = json::integer(&body, "/result/message_id").map(|id| id.to_string());
        return id.or_else(|| edit.map(str::to_owned)).ok_or_else(|| unclear(edit, "no message id in the answer"));
    }
    // Behind a proxy the body may be no JSON at all: then the HTTP status has to do.
    let code = json::integer(&body, "/error_code").unwrap_or_else(|| i64::from(response.status));
    let description = json::string(&body, "/description").unwrap_or_default();
    match code {
        400 => bad_request(&body, description, edit, sent),
        403 => Err(SendError::ChatGone { reason: short(description, sent) }),
        413 => Err(SendError::TooLong),
        429 => Err(SendError::RetryAfter(wait(&body, response))),
        // A token that was just replaced: the next try may have the new one. If nobody replaces it, the queue gives up.
        401 => Err(SendError::Transient("the token is not accepted".to_owned())),
        402..=499 => {
            Err(SendError::Rejected { code: format!("{code} {}", short(description, sent)).trim_end().to_owned() })
        }
        _ => Err(unclear(edit, &format!("status {code}"))),
    }
}

/// Whether it is a refusal in these words.
fn says(response: &PlatformResponse, words: &str) -> bool {
    let body = serde_json::from_slice::<Value>(&response.body).unwrap_or_default();
    json::string(&body, "/description").is_some_and(|description| description.to_lowercase().contains(words))
}

fn bad_request(body: &Value, description: &str, edit: Option<&str>, sent: &str) -> Result<String, SendError> {
    if let Some(to) = json::integer(body, "/parameters/migrate_to_chat_id") {
        return Err(SendError::Migrated { to: to.to_string() });
    }
    let lower = description.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    if let Some(message) = edit.filter(|_| says(&["message is not modified"])) {
        return Ok(message.to_owned());
    }
    Err(if says(&["message is too long", "message_too_long"]) {
        SendError::TooLong
    } else if says(&["message thread not found", "topic_deleted", "topic_closed", "topic_id_invalid"]) {
        SendError::ThreadGone
    } else if edit.is_some() && says(&["message to edit not found", "message can't be edited", "message_id_invalid"]) {
        SendError::EditGone
    } else if says(&[
        "chat not found",
        "peer_id_invalid",
        "not enough rights to send",
        "no rights to send",
        "chat_write_forbidden",
        "user_is_blocked",
    ]) {
        SendError::ChatGone { reason: short(description, sent) }
    } else {
        SendError::Rejected { code: format!("400 {}", short(description, sent)).trim_end().to_owned() }
    })
}

fn wait(body: &Value, response: &PlatformResponse) -> Duration {
    json::integer(body, "/parameters/retry_after")
        .and_then(|seconds| u64::try_from(seconds).ok())
        .map(Duration::from_secs)
        .or_else(|| crate::http::retry_after(&response.headers))
        .unwrap_or(DEFAULT_WAIT)
}

/// A description as a code: the platform's own words, without its prefix, bounded. What is no plain word, or stands in what
/// we sent, may be a token or somebody's text that it repeats: this ends in logs and in the ledger.
fn short(description: &str, sent: &str) -> String {
    let text = description.trim_start_matches("Bad Request: ").trim_start_matches("Forbidden: ");
    let words = text.split_whitespace().take(MOST_WORDS).map(|word| {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let plain = word.len() <= LONGEST_WORD && word.chars().all(|c| c.is_ascii_alphabetic() || "'-_,.:".contains(c));
        if plain && (bare.len() <= 3 || !sent.contains(bare)) { word } else { "…" }
    });
    words.collect::<Vec<_>>().join(" ")
}
