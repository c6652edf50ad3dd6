//! `POST /v1/messages` to an event.
use crate::ingress::{Arrival, IngressRequest, Refusal};
use http::{HeaderMap, HeaderName};
use jiff::Timestamp;
use turnlock_domain::event::Channel;

/// The most bytes of a message that are read.
pub const MAX_BODY: usize = 256 << 10;
/// The header with the caller's own id for a message: 1-255 visible ASCII characters.
pub const IDEMPOTENCY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");

/// A message of an API caller.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiMessage {
    /// The event; always with text or media.
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
/// [`Refusal::Malformed`] and [`Refusal::Invalid`]: what is wrong and what is allowed.
pub fn normalise(
    channel: Channel,
    account: &str,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
    fresh_id: &str,
) -> Result<ApiMessage, Refusal> {
    let _ = (channel, account, headers, now, fresh_id);
    crate::json::object(body)?;
    Err(Refusal::Invalid { field: "text", expected: "not yet" })
}
