//! `POST /v1/messages` to an event. The body is ours to define, so it is strict: an unknown field is refused with the
//! list of those that exist, as a caller who mistypes `session` would otherwise talk to the wrong one.

use http::{HeaderMap, HeaderName};
use jiff::Timestamp;
use serde_json::{Map, Value};
use turnlock_domain::envelope::Position;
use turnlock_domain::event::{Channel, ContentBlock, ContentType, EventType, InboundEvent, SCHEMA};
use turnlock_domain::ids::{EventId, digest};
use turnlock_domain::text::{clean, is_blank};
use turnlock_domain::time::Millis;

use crate::ingress::{Arrival, IngressRequest, Refusal, trace};
use crate::{command, json};

/// The most bytes of a message that are read: with quotes and newlines escaped it still fits the queue's 1 MiB.
pub const MAX_BODY: usize = 256 << 10;

/// The header with the caller's own id for a message: 1-255 visible ASCII characters.
pub const IDEMPOTENCY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// The session of a caller who names none.
const DEFAULT_SESSION: &str = "default";

/// The longest name of a session or sender, in characters.
const MAX_NAME: usize = 128;

const FIELDS: [&str; 5] = ["text", "content", "session", "sender", "metadata"];

/// A message of an API caller.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiMessage {
    /// The event; it always has content.
    pub arrival: Box<Arrival>,
    /// The digest of the raw body: the same key with another digest is a conflict (409).
    pub digest: String,
    /// Whether the caller gave an `Idempotency-Key`: then the event's identity derives from it.
    pub keyed: bool,
}

/// Checks the method and size and normalises one message of `caller`, whom [`super::verify`] found. `fresh_id` (a
/// UUIDv7) is its identity where no `Idempotency-Key` is given.
///
/// # Errors
/// [`Refusal::MethodNotAllowed`], [`Refusal::TooLarge`], [`Refusal::Malformed`], [`Refusal::Invalid`].
pub fn receive(caller: &str, request: &IngressRequest, now: Timestamp, fresh_id: &str) -> Result<ApiMessage, Refusal> {
    request.check(MAX_BODY)?;
    normalise(Channel::Gateway, caller, &request.headers, &request.body, now, fresh_id)
}

/// Makes the event of one message of `account` on `channel` (gateway or cli).
///
/// # Errors
/// [`Refusal::Malformed`] and [`Refusal::Invalid`]: what is wrong, and what is allowed.
pub fn normalise(
    channel: Channel,
    account: &str,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
    fresh_id: &str,
) -> Result<ApiMessage, Refusal> {
    let key = idempotency_key(headers)?;
    let document = json::object(body)?;
    only_known_fields(&document)?;
    let content = content(&document)?;
    let command = only_text(&content).and_then(command::typed);
    let metadata = metadata("metadata", &document)?;
    let event = InboundEvent {
        schema: SCHEMA,
        event_id: EventId::derive(channel.as_str(), &[account, key.unwrap_or(fresh_id)]),
        event_type: event_type(channel, command.is_some()),
        channel,
        account: account.to_owned(),
        sender_id: name(&document, "sender")?.unwrap_or_else(|| account.to_owned()),
        chat_id: name(&document, "session")?.unwrap_or_else(|| DEFAULT_SESSION.to_owned()),
        content,
        timestamp: now,
        reply_to_id: None,
        thread_id: None,
        session_key_override: None,
        metadata,
        gateway_metadata: Map::new(),
        trace: trace(headers),
    };
    let position = Position::new(Millis::from(now), fresh_id);
    let arrival = Box::new(Arrival { event, position, command, unattended: false, can_have_moved: false });
    Ok(ApiMessage { arrival, digest: digest(body), keyed: key.is_some() })
}

fn event_type(channel: Channel, is_command: bool) -> EventType {
    if is_command {
        EventType::Control
    } else if channel == Channel::Cli {
        EventType::Cli
    } else {
        EventType::Message
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let Some(value) = headers.get(IDEMPOTENCY_HEADER) else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=255).contains(&key.len()));
    key.filter(|key| key.bytes().all(|b| b.is_ascii_graphic()))
        .map(Some)
        .ok_or(Refusal::Invalid { field: "Idempotency-Key", expected: "1 to 255 visible ASCII characters" })
}

fn only_known_fields(document: &Value) -> Result<(), Refusal> {
    let known = document.as_object().is_none_or(|object| object.keys().all(|key| FIELDS.contains(&key.as_str())));
    let expected = "an unknown field; allowed are text, content, session, sender and metadata";
    if known { Ok(()) } else { Err(Refusal::Invalid { field: "body", expected }) }
}

/// Exactly one of `text` and `content`, with something in it.
fn content(document: &Value) -> Result<Vec<ContentBlock>, Refusal> {
    match (document.get("text"), document.get("content")) {
        (Some(text), None) => Ok(vec![text_block("text", text)?]),
        (None, Some(Value::Array(blocks))) if !blocks.is_empty() => blocks.iter().map(block).collect(),
        (None, Some(_)) => Err(Refusal::Invalid { field: "content", expected: "a list with at least one block" }),
        (Some(_), Some(_)) | (None, None) => {
            Err(Refusal::Invalid { field: "text", expected: "exactly one of text and content" })
        }
    }
}

fn text_block(field: &'static str, text: &Value) -> Result<ContentBlock, Refusal> {
    let text = clean(text.as_str().unwrap_or_default());
    if is_blank(&text) {
        return Err(Refusal::Invalid { field, expected: "a text that can be seen" });
    }
    Ok(ContentBlock::text(text))
}

fn block(block: &Value) -> Result<ContentBlock, Refusal> {
    let kind = match json::string(block, "/type") {
        Some("text") => return text_block("content.text", block.get("text").unwrap_or(&Value::Null)),
        Some("image") => ContentType::Image,
        Some("file") => ContentType::File,
        Some("audio") => ContentType::Audio,
        Some("voice") => ContentType::Voice,
        Some("video") => ContentType::Video,
        _ => {
            let expected = "text, image, file, audio, voice or video";
            return Err(Refusal::Invalid { field: "content.type", expected });
        }
    };
    // A channel's own references (`telegram-file:…`) open files with that channel's token: no caller may forge one.
    let url = json::string(block, "/url").filter(|url| url.starts_with("https://") || url.starts_with("http://"));
    let url = url.ok_or(Refusal::Invalid { field: "content.url", expected: "an http or https address" })?;
    let mime = json::string(block, "/mime_type").unwrap_or_default();
    let mut media = ContentBlock::media(kind, clean(url), clean(mime));
    media.text = clean(json::string(block, "/text").unwrap_or_default()).into_owned();
    media.name = json::string(block, "/name").map(|name| clean(name).into_owned());
    media.size = json::integer(block, "/size").and_then(|size| u64::try_from(size).ok());
    media.metadata = metadata("content.metadata", block)?;
    Ok(media)
}

fn metadata(field: &'static str, of: &Value) -> Result<Map<String, Value>, Refusal> {
    let value = of.get("metadata").filter(|value| !value.is_null());
    let metadata = value.is_none_or(Value::is_object).then(|| json::metadata(value)).flatten();
    metadata.ok_or(Refusal::Invalid { field, expected: "an object of at most 16 KiB and 32 levels" })
}

/// The text, where there is nothing else.
fn only_text(content: &[ContentBlock]) -> Option<&str> {
    match content {
        [block] if block.kind == ContentType::Text => Some(&block.text),
        _ => None,
    }
}

/// The optional name in `field`.
fn name(document: &Value, field: &'static str) -> Result<Option<String>, Refusal> {
    let Some(value) = document.get(field) else { return Ok(None) };
    let name = value.as_str().filter(|name| !is_blank(name) && name.chars().count() <= MAX_NAME);
    let name = name.filter(|name| !name.chars().any(char::is_control));
    name.map(|name| Some(name.to_owned()))
        .ok_or(Refusal::Invalid { field, expected: "a name of 1 to 128 visible characters" })
}

#[cfg(test)]
mod tests;
