//! Proves that an update comes from Telegram: the token given to `setWebhook` comes back in a header (Bot API,
//! `setWebhook`, `secret_token`). Checked before the body is looked at.

use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use crate::ingress::{Refusal, header};
use crate::secret;

/// The header that carries the token.
pub const SECRET_HEADER: HeaderName = HeaderName::from_static("x-telegram-bot-api-secret-token");

/// Checks the secret token in constant time.
///
/// # Errors
/// [`Refusal::SecretMissing`] without a configured token, [`Refusal::BadSignature`] when the header's differs or is
/// absent.
pub fn verify(secret: Option<&SecretString>, headers: &HeaderMap) -> Result<(), Refusal> {
    let expected = secret::usable(secret)?;
    let given = header(headers, SECRET_HEADER.as_str()).unwrap_or_default();
    if secret::same(expected.as_bytes(), given.as_bytes()) { Ok(()) } else { Err(Refusal::BadSignature) }
}

/// The headers of a delivery that [`verify`] accepts: for tests, replays and `send`.
#[must_use]
pub fn sign_headers(secret: &SecretString) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(mut value) = HeaderValue::from_str(secret.expose_secret()) {
        value.set_sensitive(true);
        headers.insert(SECRET_HEADER, value);
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(configured: &str, sent: Option<&str>) -> Result<(), Refusal> {
        let headers = sent.map_or_else(HeaderMap::new, |token| sign_headers(&SecretString::from(token)));
        verify(Some(&SecretString::from(configured)), &headers)
    }

    /// Case se-tg-no-secret: a request without the token is refused, whatever it says.
    #[test]
    fn se_tg_no_secret() {
        assert_eq!(check("hook-token", None), Err(Refusal::BadSignature));
        assert_eq!(check("hook-token", Some("hook-tokem")), Err(Refusal::BadSignature));
        assert_eq!(check("hook-token", Some("")), Err(Refusal::BadSignature));
        assert_eq!(check("hook-token", Some("hook-token")), Ok(()));
    }

    #[test]
    fn a_route_without_a_token_is_closed_even_to_an_empty_header() {
        assert_eq!(check("", Some("")), Err(Refusal::SecretMissing));
        assert_eq!(check("  ", Some("  ")), Err(Refusal::SecretMissing));
        assert_eq!(verify(None, &HeaderMap::new()), Err(Refusal::SecretMissing));
    }
}
