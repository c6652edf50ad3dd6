//! Slack's requests to events (docs.slack.dev, "Events API", "message event").
//!
//! One message can come several times: retried, under new `event_id`s, and both as `message` and as `app_mention`. Its
//! identity is app, team, channel and `ts`, which all of them share; retry headers decide nothing, as the retry may be
//! the only copy that arrived. After three seconds Slack calls again, so nothing here waits for anything.

use http::{HeaderMap, Method};
use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use turnlock_domain::ids::EventId;

use super::{App, form, message, verify};
use crate::ingress::{IngressRequest, IngressResponse, Normalised, Refusal, header};
use crate::json;

/// The reason of news that an operator has to know: the app, or one of its tokens, is not wanted any more.
pub const UNINSTALLED: &str = "uninstalled";

/// The most bytes of a request that are read: a message's text has 40,000 characters, its blocks repeat it.
pub const MAX_BODY: usize = 1 << 20;

/// The most bytes of a certificate check.
const MAX_PROBE: usize = 1024;

/// Checks and normalises one request of Slack's: method, size, signature, body.
///
/// # Errors
/// [`Refusal`]: the method, the size, the signature, or a malformed body.
pub fn receive(
    app: &App,
    signing_secret: Option<&SecretString>,
    request: &IngressRequest,
    now: Timestamp,
) -> Result<Normalised, Refusal> {
    // Slack's certificate check of a slash command's address is unsigned and wants nothing but a 200: nothing is read of
    // it, and nothing follows.
    let probe = match request.method {
        Method::GET => form::is_ssl_check(request.query.as_bytes()),
        Method::POST => request.body.len() <= MAX_PROBE && form::is_ssl_check(&request.body),
        _ => false,
    };
    if probe {
        return Ok(Normalised::Answer(IngressResponse::empty(200)));
    }
    request.check(MAX_BODY)?;
    verify(signing_secret, &request.headers, &request.body, now)?;
    normalise(app, &request.headers, &request.body, now)
}

/// Makes the event of a verified request. The headers tell forms from JSON and say how often Slack has tried.
///
/// # Errors
/// [`Refusal::Malformed`] or [`Refusal::Invalid`] when `body` is neither a JSON object nor a form of Slack's.
pub fn normalise(app: &App, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<Normalised, Refusal> {
    if is_form(headers, body) {
        return form::normalise(app, body, now);
    }
    let envelope = json::object(body)?;
    match json::string(&envelope, "/type") {
        Some("url_verification") => challenge(&envelope),
        Some("event_callback") => Ok(event(app, &envelope, retry_facts(headers))),
        Some("app_rate_limited") => Ok(Normalised::Ignored { reason: "app_rate_limited", event_id: None }),
        _ => Ok(Normalised::Ignored { reason: "unknown_envelope", event_id: None }),
    }
}

/// Interactivity and slash commands are forms. Front doors lose the content type now and then; JSON shows itself.
fn is_form(headers: &HeaderMap, body: &[u8]) -> bool {
    match header(headers, "content-type") {
        Some(content_type) if content_type.contains("json") => false,
        Some(content_type) if content_type.contains("x-www-form-urlencoded") => true,
        _ => !body.trim_ascii_start().starts_with(b"{"),
    }
}

fn challenge(envelope: &Value) -> Result<Normalised, Refusal> {
    let challenge =
        json::string(envelope, "/challenge").ok_or(Refusal::Invalid { field: "challenge", expected: "a text" })?;
    Ok(Normalised::Answer(IngressResponse::json(200, &json!({ "challenge": challenge }))))
}

fn event(app: &App, envelope: &Value, request_facts: Map<String, Value>) -> Normalised {
    let kind = json::string(envelope, "/event/type");
    if let Some("message" | "app_mention") = kind {
        return message::normalise(app, envelope, request_facts);
    }
    let event_id = json::string(envelope, "/event_id").map(|id| EventId::derive("slack", &[&app.app_id, "event", id]));
    let reason = match kind {
        Some("app_home_opened") => "app_home_opened",
        Some("app_context_changed" | "assistant_thread_started" | "assistant_thread_context_changed") => "context",
        Some("agent_session_stopped") => "stopped_generation",
        Some("member_joined_channel" | "member_left_channel") => "membership",
        Some("reaction_added" | "reaction_removed") => "reaction",
        Some("app_uninstalled" | "tokens_revoked") => UNINSTALLED,
        _ => "unknown_event",
    };
    Normalised::Ignored { reason, event_id }
}

/// Facts about the request, for the log alone.
fn retry_facts(headers: &HeaderMap) -> Map<String, Value> {
    let fact = |name| header(headers, name).map(|value| json!(value));
    json::facts([("retry_num", fact("x-slack-retry-num")), ("retry_reason", fact("x-slack-retry-reason"))])
}

#[cfg(test)]
mod tests;
