//! Any producer's body to an event. No person waits for the answer, so nothing can be asked back: the text is the
//! source's template, else the body's own `text` or `message`, else the body itself, cut where it is too long.

use http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use turnlock_domain::envelope::Position;
use turnlock_domain::event::{Channel, ContentBlock, EventType, InboundEvent, SCHEMA};
use turnlock_domain::ids::{EventId, digest, queue_id};
use turnlock_domain::text::{clean, cut_utf16, is_blank, parse_json};
use turnlock_domain::time::Millis;

use super::{Proof, Source, template, verify};
use crate::ingress::{Arrival, IngressRequest, Normalised, Refusal, header, trace};
use crate::json;

/// The most bytes of a webhook that are read.
pub const MAX_BODY: usize = 1 << 20;

/// The longest text that an event gets from a webhook, in UTF-16 units: it has to fit a model's context and our queue.
pub const MAX_TEXT: usize = 100_000;

/// What stands behind a text that was cut.
const CUT_MARK: &str = "\n… (cut)";

/// The longest name of a chat that a body may choose through the source's `session`.
const MAX_CHAT: usize = 128;

/// The longest delivery id that is taken as it is.
const MAX_ID: usize = 255;

/// Checks and normalises one webhook: method, size, signature, body. `fresh_id` (a UUIDv7) is its identity where the
/// delivery has none.
///
/// # Errors
/// [`Refusal`]: the method, the size, the signature, or a malformed body.
pub fn receive(
    source: &Source,
    request: &IngressRequest,
    now: Timestamp,
    fresh_id: &str,
) -> Result<Normalised, Refusal> {
    request.check(MAX_BODY)?;
    let proof = verify(source, &request.headers, &request.body, now)?;
    normalise(source, &proof, &request.headers, &request.body, now, fresh_id)
}

/// Makes the event of a verified webhook.
///
/// # Errors
/// [`Refusal::Malformed`] when the body claims to be JSON and is not, [`Refusal::Invalid`] when it says nothing.
pub fn normalise(
    source: &Source,
    proof: &Proof,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
    fresh_id: &str,
) -> Result<Normalised, Refusal> {
    let document = document(headers, body)?;
    let text =
        text(source, &document).ok_or(Refusal::Invalid { field: "body", expected: "something that can be read" })?;
    // More than an event should carry is left out, the text is kept.
    let metadata = json::metadata(document.get("metadata"));
    let mut gateway_metadata = request_facts(headers);
    if metadata.is_none() {
        gateway_metadata.insert("metadata_left_out".to_owned(), json!(true));
    }
    let event = InboundEvent {
        schema: SCHEMA,
        event_id: identity(source, proof, headers, body, fresh_id),
        event_type: EventType::Webhook,
        channel: Channel::Webhook,
        account: source.name.clone(),
        sender_id: source.name.clone(),
        chat_id: chat_id(source, &document),
        content: vec![ContentBlock::text(text)],
        timestamp: now,
        reply_to_id: None,
        thread_id: None,
        session_key_override: None,
        metadata: metadata.unwrap_or_default(),
        gateway_metadata,
        trace: trace(headers),
    };
    let position = Position::new(Millis::from(now), fresh_id);
    Ok(Normalised::Event(Box::new(Arrival { event, position, command: None, unattended: true, can_have_moved: false })))
}

/// What the delivery is recognised by: the signed id, an id in a header, the signed time with the body's digest (two
/// honest deliveries of one body differ in it), else nothing that was there before.
fn identity(source: &Source, proof: &Proof, headers: &HeaderMap, body: &[u8], fresh_id: &str) -> EventId {
    let in_header = || source.id_headers.iter().find_map(|name| header(headers, name.as_str()));
    let id = proof.delivery_id.as_deref().or_else(in_header).filter(|id| !id.is_empty() && id.len() <= MAX_ID);
    match (id, proof.signed_at) {
        (Some(id), _) => EventId::derive("webhook", &[&source.name, id]),
        (None, Some(at)) => EventId::derive("webhook", &[&source.name, &at.as_second().to_string(), &digest(body)]),
        (None, None) => EventId::derive("webhook", &[&source.name, fresh_id]),
    }
}

/// The body as a value: JSON, the JSON in a form's `payload` (GitHub's other format), a form, else the text itself.
fn document(headers: &HeaderMap, body: &[u8]) -> Result<Value, Refusal> {
    let content_type = header(headers, "content-type").unwrap_or_default();
    if content_type.contains("x-www-form-urlencoded") {
        let form: Map<String, Value> =
            form_urlencoded::parse(body).map(|(name, value)| (name.into_owned(), json!(value))).collect();
        return match form.get("payload").and_then(Value::as_str) {
            Some(payload) => Ok(parse_json(payload.as_bytes())?),
            None => Ok(Value::Object(form)),
        };
    }
    match parse_json(body) {
        Ok(value) => Ok(value),
        Err(error) if content_type.contains("json") => Err(error.into()),
        Err(_) => Ok(Value::String(String::from_utf8_lossy(body).into_owned())),
    }
}

fn text(source: &Source, document: &Value) -> Option<String> {
    let templated = source.template.as_deref().map(|template| template::fill(template, document));
    let own = || ["/text", "/message"].iter().find_map(|field| json::string(document, field)).map(str::to_owned);
    let whole = || match document {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        document => serde_json::to_string_pretty(document).ok(),
    };
    let visible = |text: &String| !is_blank(text);
    let text = templated.filter(visible).or_else(own).filter(visible).or_else(whole).filter(visible)?;
    let text = clean(&text);
    let kept = cut_utf16(&text, MAX_TEXT);
    let text = if kept.len() < text.len() { format!("{kept}{CUT_MARK}") } else { text.into_owned() };
    (!is_blank(&text)).then_some(text)
}

/// The source's name, or what its `session` makes of the body; a long one becomes its start and a hash.
fn chat_id(source: &Source, document: &Value) -> String {
    let chosen = source.session.as_deref().map(|session| template::fill(session, document));
    match chosen.filter(|chat| !is_blank(chat)) {
        Some(chat) if chat.len() > MAX_CHAT => queue_id(&chat),
        Some(chat) => clean(&chat).into_owned(),
        None => source.name.clone(),
    }
}

/// Facts about the request that are worth a line in the log.
fn request_facts(headers: &HeaderMap) -> Map<String, Value> {
    let fact = |name| header(headers, name).map(|value| json!(value));
    json::facts([("user_agent", fact("user-agent")), ("event", fact("x-github-event"))])
}

#[cfg(test)]
mod tests;
