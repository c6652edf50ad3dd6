//! Events to events.
use super::{App, verify};
use crate::ingress::{IngressRequest, Normalised, Refusal};
use http::HeaderMap;
use jiff::Timestamp;
use secrecy::SecretString;

/// The most bytes of a request that are read.
pub const MAX_BODY: usize = 1 << 20;

/// Checks and normalises one request of Slack's.
///
/// # Errors
/// [`Refusal`]: the method, the size, the signature, or a malformed body.
pub fn receive(
    app: &App,
    signing_secret: Option<&SecretString>,
    request: &IngressRequest,
    now: Timestamp,
) -> Result<Normalised, Refusal> {
    request.check(MAX_BODY)?;
    verify(signing_secret, &request.headers, &request.body, now)?;
    normalise(app, &request.headers, &request.body, now)
}

/// Makes the event of a verified request.
///
/// # Errors
/// [`Refusal::Malformed`] when `body` is neither a JSON object nor a form of Slack's.
pub fn normalise(app: &App, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<Normalised, Refusal> {
    let _ = (app, headers, now);
    crate::json::object(body)?;
    Ok(Normalised::Ignored { reason: "unknown", event_id: None })
}
