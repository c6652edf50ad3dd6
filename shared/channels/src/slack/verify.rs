//! Proves that a request comes from Slack (docs.slack.dev, "Verifying requests from Slack"): `v0=` and the HMAC-SHA256
//! of `v0:{timestamp}:{body}` over the raw bytes, five minutes either way. A wrong signature is answered without
//! naming the right one.

use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};

use crate::ingress::{Refusal, header};
use crate::secret;

/// The header with the signature.
pub const SIGNATURE_HEADER: HeaderName = HeaderName::from_static("x-slack-signature");
/// The header with the time of signing, in seconds.
pub const TIMESTAMP_HEADER: HeaderName = HeaderName::from_static("x-slack-request-timestamp");

/// Checks the signature of `body` at `now`, in constant time. A retry is signed anew, so its age is its own.
///
/// # Errors
/// [`Refusal::SecretMissing`] without a configured secret, [`Refusal::Stale`] outside the five minutes,
/// [`Refusal::BadSignature`] for everything else that does not fit.
pub fn verify(
    signing_secret: Option<&SecretString>,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Result<(), Refusal> {
    let key = secret::usable(signing_secret)?;
    let given = header(headers, SIGNATURE_HEADER.as_str()).ok_or(Refusal::BadSignature)?;
    let seconds = header(headers, TIMESTAMP_HEADER.as_str()).ok_or(Refusal::BadSignature)?;
    if !secret::same(signature(key, seconds, body).as_bytes(), given.as_bytes()) {
        return Err(Refusal::BadSignature);
    }
    secret::fresh(seconds, now).map(|_| ())
}

/// The headers of a request that [`verify`] accepts at `at`: for tests, replays and `send`.
#[must_use]
pub fn sign(signing_secret: &SecretString, at: Timestamp, body: &[u8]) -> HeaderMap {
    let seconds = at.as_second();
    let mut headers = HeaderMap::new();
    headers.insert(TIMESTAMP_HEADER, HeaderValue::from(seconds));
    let signature = signature(signing_secret.expose_secret(), &seconds.to_string(), body);
    if let Ok(value) = HeaderValue::from_str(&signature) {
        headers.insert(SIGNATURE_HEADER, value);
    }
    headers
}

fn signature(key: &str, seconds: &str, body: &[u8]) -> String {
    let mac = secret::hmac_sha256(key.as_bytes(), &[b"v0:", seconds.as_bytes(), b":", body]);
    format!("v0={}", hex::encode(mac))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_760_000_000).unwrap()
    }

    fn secret() -> SecretString {
        SecretString::from("test")
    }

    /// The example of Slack's own page.
    #[test]
    fn the_documented_example_verifies() {
        let body = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
        let secret = SecretString::from("8f742231b10e8888abcd99yyyzzz85a5");
        let at = Timestamp::from_second(1_531_420_618).unwrap();
        let headers = sign(&secret, at, body);
        assert_eq!(headers[SIGNATURE_HEADER], "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503");
        assert_eq!(verify(Some(&secret), &headers, body, at), Ok(()));
    }

    /// Case sl-sig-lossy: bytes that are no UTF-8 are signed as they are; whether they parse is another matter.
    #[test]
    fn sl_sig_lossy() {
        let body = hex::decode("7b2274223a22ff227d").unwrap();
        assert_eq!(verify(Some(&secret()), &sign(&secret(), now(), &body), &body, now()), Ok(()));
        let replaced = String::from_utf8_lossy(&body).into_owned();
        let refused = verify(Some(&secret()), &sign(&secret(), now(), &body), replaced.as_bytes(), now());
        assert_eq!(refused, Err(Refusal::BadSignature));
    }

    /// Case sl-sig-empty-secret: without a secret nothing is compared, so nobody can sign with the empty key.
    #[test]
    fn sl_sig_empty_secret() {
        for blank in ["", " "] {
            let blank = SecretString::from(blank);
            let refused = verify(Some(&blank), &sign(&blank, now(), b"{}"), b"{}", now());
            assert_eq!(refused, Err(Refusal::SecretMissing));
        }
        assert_eq!(verify(None, &HeaderMap::new(), b"{}", now()).unwrap_err().status(), 503);
    }

    /// Case sl-header-case: a header map has no case, whatever the front door passed on.
    #[test]
    fn sl_header_case() {
        let signed = sign(&secret(), now(), b"{}");
        let mut headers = HeaderMap::new();
        for (as_sent, name) in
            [("X-Slack-Signature", SIGNATURE_HEADER), ("X-Slack-Request-Timestamp", TIMESTAMP_HEADER)]
        {
            headers.insert(HeaderName::from_bytes(as_sent.as_bytes()).unwrap(), signed[name].clone());
        }
        assert_eq!(verify(Some(&secret()), &headers, b"{}", now()), Ok(()));
    }

    #[test]
    fn five_minutes_either_way_and_no_more() {
        for (age, wanted) in [(300, Ok(())), (-300, Ok(())), (301, Err(Refusal::Stale)), (-301, Err(Refusal::Stale))] {
            let at = Timestamp::from_second(now().as_second() - age).unwrap();
            assert_eq!(verify(Some(&secret()), &sign(&secret(), at, b"{}"), b"{}", now()), wanted, "{age}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_without_the_expected_signature() {
        let good = sign(&secret(), now(), b"{}");
        let expected = good[SIGNATURE_HEADER].to_str().unwrap().to_owned();
        for (name, value) in [
            (SIGNATURE_HEADER, "v0="),
            (SIGNATURE_HEADER, "v1=00"),
            (TIMESTAMP_HEADER, "soon"),
            (TIMESTAMP_HEADER, "1760000001"),
            (TIMESTAMP_HEADER, "99999999999999999999"),
        ] {
            let mut headers = good.clone();
            headers.insert(name, HeaderValue::from_static(value));
            let refusal = verify(Some(&secret()), &headers, b"{}", now()).unwrap_err();
            assert_eq!(refusal, Refusal::BadSignature, "{value}");
            assert!(!format!("{refusal} {refusal:?}").contains(&expected[3..]));
        }
        let other = SecretString::from("other");
        assert_eq!(verify(Some(&other), &good, b"{}", now()), Err(Refusal::BadSignature));
    }
}
