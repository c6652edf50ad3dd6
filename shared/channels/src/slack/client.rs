//! Requests to Slack's Web API, and what its answers mean (docs.slack.dev, `chat.postMessage` and `chat.update`,
//! "Errors"): success is `ok: true` and nothing else, a failure comes as HTTP 200 with an error's name.
//!
//! A post without an answer has an unknown outcome, and so has `internal_error` or `fatal_error` ("it's possible some
//! aspect of the operation succeeded"). An edit may be repeated.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use turnlock_domain::event::{Channel, OutboundEvent, TAP};

use crate::http::{PlatformError, PlatformHttp, PlatformRequest, PlatformResponse};
use crate::json;
use crate::outbound::{CALL_TIMEOUT, Part, SendError};

/// The public Web API.
pub const DEFAULT_BASE_URL: &str = "https://slack.com/api";

/// How long to wait when a rate limit does not say: `chat.postMessage` allows about one message a second and channel.
const DEFAULT_WAIT: Duration = Duration::from_secs(1);

/// The client of one Slack app.
#[derive(Clone)]
pub struct Client {
    account: String,
    token: SecretString,
    base_url: String,
    http: Arc<dyn PlatformHttp>,
}

impl Client {
    /// A client for the app called `account` with its bot token; `base_url` is [`DEFAULT_BASE_URL`] or a fake's.
    #[must_use]
    pub fn new(http: Arc<dyn PlatformHttp>, account: &str, token: SecretString, base_url: &str) -> Self {
        Self { account: account.to_owned(), token, base_url: base_url.trim_end_matches('/').to_owned(), http }
    }

    /// The app's account.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.account
    }

    /// Posts `part`, or updates the message `edit` to it; returns the message's `ts`. Only who pressed a button sees the
    /// answer to it.
    ///
    /// # Errors
    /// [`SendError`], by what the caller must do.
    pub async fn send(&self, event: &OutboundEvent, part: &Part, edit: Option<&str>) -> Result<String, SendError> {
        let tapped_by = event.metadata.get(TAP).and_then(|tap| json::string(tap, "/user"));
        let (method, arguments) = match (edit, tapped_by) {
            (_, Some(user)) => ("chat.postEphemeral", ephemeral_arguments(event, &part.text, user)),
            (Some(ts), None) => ("chat.update", update_arguments(event, &part.text, ts)),
            (None, None) => ("chat.postMessage", post_arguments(event, &part.text)),
        };
        let request = self.request(method, &arguments)?;
        match self.http.send(request, CALL_TIMEOUT).await {
            Ok(response) => read(&response, edit),
            Err(PlatformError::Unreachable(_)) => Err(SendError::Transient("unreachable".to_owned())),
            Err(PlatformError::AnswerLost(_)) => Err(unclear(edit, "answer lost")),
        }
    }

    /// Deletes the message `ts` from the event's channel; one that is not there is deleted.
    ///
    /// # Errors
    /// [`SendError`], by what the caller must do.
    pub async fn delete(&self, event: &OutboundEvent, ts: &str) -> Result<(), SendError> {
        let request = self.request("chat.delete", &json!({ "channel": channel(event), "ts": ts }))?;
        match self.http.send(request, CALL_TIMEOUT).await {
            Ok(response) => match read(&response, Some(ts)) {
                Err(SendError::EditGone) => Ok(()),
                answer => answer.map(|_| ()),
            },
            Err(PlatformError::Unreachable(_)) => Err(SendError::Transient("unreachable".to_owned())),
            Err(PlatformError::AnswerLost(_)) => Err(SendError::Transient("answer lost".to_owned())),
        }
    }

    fn request(&self, method: &str, arguments: &Value) -> Result<PlatformRequest, SendError> {
        // A token that is no header value is a broken configuration: Slack would say the same.
        let mut token = HeaderValue::from_str(&format!("Bearer {}", self.token.expose_secret()))
            .map_err(|_| SendError::Rejected { code: "invalid_auth".to_owned() })?;
        token.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(http::header::AUTHORIZATION, token);
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
        Ok(PlatformRequest {
            channel: Channel::Slack,
            account: self.account.clone(),
            method: method.to_owned(),
            url: format!("{}/{method}", self.base_url),
            headers,
            body: Bytes::from(arguments.to_string()),
        })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("slack::Client").field("account", &self.account).finish_non_exhaustive()
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
    json!({ "channel": channel(event), "ts": ts, "text": part })
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
