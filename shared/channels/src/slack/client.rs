//! Requests to Slack's Web API, and what its answers mean (docs.slack.dev, `chat.postMessage` and `chat.update`,
//! "Errors"): success is `ok: true` and nothing else, a failure comes as HTTP 200 with an error's name.
//!
//! A post without an answer has an unknown outcome, and so has `internal_error` or `fatal_error` ("it's possible some
//! aspect of the operation succeeded"). An edit may be repeated.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Value, json};
use turnlock_domain::event::{ASKED_BY, Button, OutboundEvent, TAP};
use turnlock_domain::text::{is_blank, utf16_len};

use super::connection::Connection;
use super::outbound::{FENCE, MAX_SECTION};
use crate::http::{PlatformError, PlatformHttp, PlatformResponse};
use crate::json;
use crate::outbound::{Part, SendError};

/// The public Web API.
pub const DEFAULT_BASE_URL: &str = "https://slack.com/api";

/// How long to wait when a rate limit does not say: `chat.postMessage` allows about one message a second and channel.
const DEFAULT_WAIT: Duration = Duration::from_secs(1);

/// The client of one Slack app.
#[derive(Debug, Clone)]
pub struct Client(pub(super) Connection);

impl Client {
    /// A client for the app called `account` with its bot token; `base_url` is [`DEFAULT_BASE_URL`] or a fake's.
    #[must_use]
    pub fn new(http: Arc<dyn PlatformHttp>, account: &str, token: SecretString, base_url: &str) -> Self {
        Self(Connection::new(http, account, token, base_url))
    }

    /// The app's account.
    #[must_use]
    pub fn account(&self) -> &str {
        self.0.account()
    }

    /// Posts `part`, or updates the message `edit` to it; returns the message's `ts`. Only who pressed a button sees the
    /// answer to it.
    ///
    /// # Errors
    /// [`SendError`], by what the caller must do.
    pub async fn send(&self, event: &OutboundEvent, part: &Part, edit: Option<&str>) -> Result<String, SendError> {
        let tapped_by = event.metadata.get(TAP).and_then(|tap| json::string(tap, "/user"));
        let (method, mut arguments) = match (edit, tapped_by) {
            (_, Some(user)) => ("chat.postEphemeral", ephemeral_arguments(event, &part.text, user)),
            (Some(ts), None) => ("chat.update", update_arguments(event, &part.text, ts)),
            (None, None) => ("chat.postMessage", post_arguments(event, &part.text)),
        };
        if let Some(blocks) = blocks(&part.text, &part.buttons) {
            arguments["blocks"] = blocks;
        }
        match self.0.call(method, &arguments).await {
            Ok(response) => read(&response, edit).map_err(|error| not_member(error, event)),
            Err(PlatformError::Unreachable(_)) => Err(SendError::Transient("unreachable".to_owned())),
            Err(PlatformError::AnswerLost(_)) => Err(unclear(edit, "answer lost")),
        }
    }

    /// Deletes the message `ts` from the event's channel; one that is not there is deleted.
    ///
    /// # Errors
    /// [`SendError`], by what the caller must do.
    pub async fn delete(&self, event: &OutboundEvent, ts: &str) -> Result<(), SendError> {
        match self.0.call("chat.delete", &json!({ "channel": channel(event), "ts": ts })).await {
            Ok(response) => match read(&response, Some(ts)) {
                Err(SendError::EditGone) => Ok(()),
                answer => answer.map(|_| ()),
            },
            Err(PlatformError::Unreachable(_)) => Err(SendError::Transient("unreachable".to_owned())),
            Err(PlatformError::AnswerLost(_)) => Err(SendError::Transient("answer lost".to_owned())),
        }
    }
}

/// The channel of a chat id, which names the workspace too where that is not the app's own (`team/channel`).
fn channel(event: &OutboundEvent) -> &str {
    event.chat_id.rsplit('/').next().unwrap_or_default()
}

fn post_arguments(event: &OutboundEvent, part: &str) -> Value {
    // No unfurling: a link that a model wrote must not make Slack fetch it unseen.
    let mut arguments =
        json!({ "channel": channel(event), "text": part, "unfurl_links": false, "unfurl_media": false });
    if let Some(thread) = &event.thread_id {
        arguments["thread_ts"] = json!(thread);
    }
    arguments
}

fn ephemeral_arguments(event: &OutboundEvent, part: &str, user: &str) -> Value {
    let mut arguments = json!({ "channel": channel(event), "user": user, "text": part });
    if let Some(thread) = &event.thread_id {
        arguments["thread_ts"] = json!(thread);
    }
    arguments
}

fn update_arguments(event: &OutboundEvent, part: &str, ts: &str) -> Value {
    // Left out, `parse` is `client` for an update (for a post it is `none`): names without brackets would call people.
    // Whether an update without blocks keeps the old ones has changed over the years: an empty list takes them away.
    json!({ "channel": channel(event), "ts": ts, "text": part, "parse": "none", "link_names": false, "blocks": [] })
}

/// The text and the buttons below it. What a button brings back is the name of its action before the first colon of its
/// data, and the value behind it. None where there are no buttons, or the text is too long to have any.
fn blocks(text: &str, buttons: &[Button]) -> Option<Value> {
    if buttons.is_empty() {
        return None;
    }
    let section =
        |text: &str| json!({ "type": "section", "text": { "type": "mrkdwn", "text": text, "verbatim": true } });
    let mut blocks: Vec<Value> = sections(text)?.into_iter().map(section).collect();
    let elements: Vec<Value> = buttons
        .iter()
        .map(|button| {
            let (action, value) = button.data.split_once(':').unwrap_or((&button.data, ""));
            let label = json!({ "type": "plain_text", "text": button.label });
            json!({ "type": "button", "text": label, "action_id": action, "value": value })
        })
        .collect();
    blocks.push(json!({ "type": "actions", "elements": elements }));
    Some(Value::Array(blocks))
}

/// The text as the sections of a message: one, or two that are cut between lines and in no code block, where a mark could
/// reach from one into the other. None where it cannot be cut so.
fn sections(text: &str) -> Option<Vec<&str>> {
    if utf16_len(text) <= MAX_SECTION {
        return Some(vec![text]);
    }
    let fits = |text: &str| !is_blank(text) && utf16_len(text) <= MAX_SECTION;
    let cuts = text.rmatch_indices('\n').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let mut fitting =
        cuts.filter(|(before, after)| fits(before) && fits(after) && before.matches(FENCE).count() % 2 == 0);
    fitting.next().map(|(before, after)| vec![before, after])
}

/// A slash command can be typed where the app is no member, and its answer is refused there. That chat is not gone: it
/// never had us. Who asked can be written to by their own id.
fn not_member(error: SendError, event: &OutboundEvent) -> SendError {
    match (error, event.metadata.get(ASKED_BY).and_then(Value::as_str)) {
        (SendError::ChatGone { reason }, Some(user)) if reason == "not_in_channel" || reason == "channel_not_found" => {
            let team = event.chat_id.rsplit_once('/').map(|(team, _)| format!("{team}/"));
            SendError::NotMember { instead: format!("{}{user}", team.unwrap_or_default()) }
        }
        (error, _) => error,
    }
}

fn unclear(edit: Option<&str>, what: &str) -> SendError {
    match edit {
        Some(_) => SendError::Transient(what.to_owned()),
        None => SendError::Unknown(what.to_owned()),
    }
}

fn read(response: &PlatformResponse, edit: Option<&str>) -> Result<String, SendError> {
    let body = serde_json::from_slice::<Value>(&response.body).unwrap_or_default();
    if response.status == 429 {
        return Err(limited(response));
    }
    if json::flag(&body, "/ok") {
        let ts = json::string(&body, "/ts").or(json::string(&body, "/message_ts")).or(edit);
        return ts.map(str::to_owned).ok_or_else(|| unclear(edit, "no ts in the answer"));
    }
    match json::string(&body, "/error") {
        Some(error) => Err(failure(error, response, edit)),
        None if response.status == 401 => Err(SendError::Transient("status 401".to_owned())),
        None if (400..500).contains(&response.status) => {
            Err(SendError::Rejected { code: format!("status {}", response.status) })
        }
        None => Err(unclear(edit, &format!("status {}", response.status))),
    }
}

fn failure(error: &str, response: &PlatformResponse, edit: Option<&str>) -> SendError {
    match error {
        "ratelimited" | "rate_limited" => limited(response),
        "msg_too_long" | "msg_blocks_too_long" => SendError::TooLong,
        "service_unavailable" | "request_timeout" | "team_added_to_org" => SendError::Transient(error.to_owned()),
        // A token that was just replaced: the next try may have the new one. If nobody replaces it, the queue gives up.
        "invalid_auth" | "not_authed" | "token_revoked" | "token_expired" | "account_inactive" => {
            SendError::Transient(error.to_owned())
        }
        "internal_error" | "fatal_error" => unclear(edit, error),
        "channel_not_found"
        | "is_archived"
        | "not_in_channel"
        | "restricted_action"
        | "restricted_action_read_only_channel"
        | "user_not_found"
        | "messages_tab_disabled" => SendError::ChatGone { reason: error.to_owned() },
        "thread_not_found" | "invalid_thread_ts" | "cannot_reply_to_message" | "restricted_action_thread_locked" => {
            SendError::ThreadGone
        }
        "message_not_found" | "edit_window_closed" | "cant_update_message" if edit.is_some() => SendError::EditGone,
        // Slack's errors are names; whatever else stands there may be anything, and this ends in logs.
        _ if is_name(error) => SendError::Rejected { code: error.to_owned() },
        _ => SendError::Rejected { code: "an error without a name".to_owned() },
    }
}

pub(super) fn is_name(error: &str) -> bool {
    error.len() <= 60 && error.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn limited(response: &PlatformResponse) -> SendError {
    SendError::RetryAfter(crate::http::retry_after(&response.headers).unwrap_or(DEFAULT_WAIT))
}
