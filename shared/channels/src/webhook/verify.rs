//! Proves that a webhook comes from its source, over the raw bytes and in constant time.
//!
//! Standard Webhooks (standardwebhooks.com, "Verifying signatures") is done here with the HMAC itself: the published
//! crate refuses bodies that are not UTF-8, the rule signs bytes. HMAC of the body alone (GitHub, "Validating webhook
//! deliveries") has no time in it: an old delivery can be sent again, and is then recognised by its id as long as
//! markers live.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use secrecy::SecretString;

use super::{Source, Verify};
use crate::ingress::{Refusal, header};
use crate::{secret, slack};

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// What a valid signature vouches for besides the body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proof {
    /// The delivery's id, where it is signed.
    pub delivery_id: Option<String>,
    /// The time of signing, where it is signed.
    pub signed_at: Option<Timestamp>,
}

/// Checks that `source` sent `body`.
///
/// # Errors
/// [`Refusal::SecretMissing`] without a usable secret, [`Refusal::Stale`] outside the five minutes,
/// [`Refusal::BadSignature`] for everything else that does not fit.
pub fn verify(source: &Source, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<Proof, Refusal> {
    match &source.verify {
        Verify::Standard { secret } => standard(secret, headers, body, now),
        Verify::Hmac { header: name, secret, prefix } => {
            let key = secret::usable(Some(secret))?;
            let given = header(headers, name.as_str()).ok_or(Refusal::BadSignature)?;
            let expected = format!("{prefix}{}", hex::encode(secret::hmac_sha256(key.as_bytes(), &[body])));
            matches(expected.as_bytes(), given.to_ascii_lowercase().as_bytes())?;
            Ok(Proof::default())
        }
        Verify::Slack { secret } => {
            slack::verify(Some(secret), headers, body, now)?;
            let seconds = header(headers, slack::TIMESTAMP_HEADER.as_str()).unwrap_or_default();
            Ok(Proof { delivery_id: None, signed_at: secret::fresh(seconds, now).ok() })
        }
        Verify::Bearer { token } => {
            let expected = secret::usable(Some(token))?;
            let given = secret::bearer(headers).ok_or(Refusal::BadSignature)?;
            matches(expected.as_bytes(), given.as_bytes())?;
            Ok(Proof::default())
        }
    }
}

/// The headers of a delivery that [`verify`] accepts at `at`; `id` is the delivery's, where the source's kind has one.
///
/// # Errors
/// [`Refusal::SecretMissing`] without a usable secret, [`Refusal::Invalid`] for one that no header can carry.
pub fn sign(source: &Source, id: &str, at: Timestamp, body: &[u8]) -> Result<HeaderMap, Refusal> {
    let header = |name: HeaderName, value: String| {
        let invalid = |_| Refusal::Invalid { field: "secret", expected: "visible ASCII" };
        let mut value = HeaderValue::from_str(&value).map_err(invalid)?;
        value.set_sensitive(true);
        Ok(HeaderMap::from_iter([(name, value)]))
    };
    match &source.verify {
        Verify::Standard { secret } => sign_standard(secret, id, at, body),
        Verify::Slack { secret } => {
            secret::usable(Some(secret))?;
            Ok(slack::sign(secret, at, body))
        }
        Verify::Hmac { header: name, secret, prefix } => {
            let key = secret::usable(Some(secret))?;
            header(name.clone(), format!("{prefix}{}", hex::encode(secret::hmac_sha256(key.as_bytes(), &[body]))))
        }
        Verify::Bearer { token } => header(AUTHORIZATION, format!("Bearer {}", secret::usable(Some(token))?)),
    }
}

/// The headers of a delivery that [`verify`] accepts at `at` from a source with [`Verify::Standard`].
///
/// # Errors
/// [`Refusal::SecretMissing`] when `secret` is blank or its base64 is broken.
pub fn sign_standard(secret: &SecretString, id: &str, at: Timestamp, body: &[u8]) -> Result<HeaderMap, Refusal> {
    let key = standard_key(secret)?;
    let seconds = at.as_second().to_string();
    let signature = format!("v1,{}", STANDARD.encode(standard_mac(&key, id, &seconds, body)));
    let mut headers = HeaderMap::new();
    for (name, value) in [(ID, id), (TIMESTAMP, &seconds), (SIGNATURE, &signature)] {
        let value = HeaderValue::from_str(value)
            .map_err(|_| Refusal::Invalid { field: "webhook-id", expected: "visible ASCII" })?;
        headers.insert(name, value);
    }
    Ok(headers)
}

fn standard(secret: &SecretString, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<Proof, Refusal> {
    let key = standard_key(secret)?;
    let id = header(headers, ID.as_str()).filter(|id| !id.is_empty()).ok_or(Refusal::BadSignature)?;
    let seconds = header(headers, TIMESTAMP.as_str()).ok_or(Refusal::BadSignature)?;
    let signatures = header(headers, SIGNATURE.as_str()).ok_or(Refusal::BadSignature)?;
    let expected = STANDARD.encode(standard_mac(&key, id, seconds, body));
    // During a change of keys a producer signs with both: one that fits is enough, all are compared.
    let fitting = signatures
        .split(' ')
        .filter_map(|signature| signature.strip_prefix("v1,"))
        .filter(|given| secret::same(expected.as_bytes(), given.as_bytes()))
        .count();
    if fitting == 0 {
        return Err(Refusal::BadSignature);
    }
    Ok(Proof { delivery_id: Some(id.to_owned()), signed_at: Some(secret::fresh(seconds, now)?) })
}

fn standard_mac(key: &[u8], id: &str, seconds: &str, body: &[u8]) -> [u8; 32] {
    secret::hmac_sha256(key, &[id.as_bytes(), b".", seconds.as_bytes(), b".", body])
}

/// The key's bytes: base64 after `whsec_`. A secret without that prefix which is no base64 is the key itself.
fn standard_key(secret: &SecretString) -> Result<Vec<u8>, Refusal> {
    let text = secret::usable(Some(secret))?.trim();
    let key = match text.strip_prefix("whsec_") {
        Some(encoded) => STANDARD.decode(encoded).map_err(|_| Refusal::SecretMissing)?,
        None => STANDARD.decode(text).unwrap_or_else(|_| text.as_bytes().to_vec()),
    };
    if key.is_empty() { Err(Refusal::SecretMissing) } else { Ok(key) }
}

fn matches(expected: &[u8], given: &[u8]) -> Result<(), Refusal> {
    if secret::same(expected, given) { Ok(()) } else { Err(Refusal::BadSignature) }
}

/// The secret with which replies to `source` are signed: the one it already shares with us.
pub(super) fn reply_secret(verify: &Verify) -> &SecretString {
    match verify {
        Verify::Standard { secret } | Verify::Hmac { secret, .. } | Verify::Slack { secret } => secret,
        Verify::Bearer { token } => token,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_760_000_000).unwrap()
    }

    fn source(verify: Verify) -> Source {
        Source {
            name: "main".to_owned(),
            verify,
            template: None,
            session: None,
            reply_to: None,
            id_headers: Source::default_id_headers(),
        }
    }

    fn standard_source(secret: &str) -> Source {
        source(Verify::Standard { secret: SecretString::from(secret) })
    }

    /// The example of the specification's reference implementations.
    #[test]
    fn the_published_example_verifies() {
        let source = standard_source("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let mut headers = HeaderMap::new();
        headers.insert(ID, HeaderValue::from_static("msg_p5jXN8AQM9LWM0D4loKWxJek"));
        headers.insert(TIMESTAMP, HeaderValue::from_static("1614265330"));
        headers.insert(
            SIGNATURE,
            HeaderValue::from_static("v1,bm9ldHUjKzFob2VudXRob2VodWUzMjRvdWVvdW9ldQo= v2,xyz v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        );
        let at = Timestamp::from_second(1_614_265_330).unwrap();
        let proof = verify(&source, &headers, br#"{"test": 2432232314}"#, at).unwrap();
        assert_eq!(proof.delivery_id.as_deref(), Some("msg_p5jXN8AQM9LWM0D4loKWxJek"));
        assert_eq!(verify(&source, &headers, br#"{"test": 2432232315}"#, at), Err(Refusal::BadSignature));
    }

    #[test]
    fn every_kind_of_source_accepts_what_is_signed_for_it() {
        let secret = || SecretString::from("whsec_dGVzdC1rZXk=");
        let hub = HeaderName::from_static("x-hub-signature-256");
        let kinds = [
            Verify::Standard { secret: secret() },
            Verify::Hmac { header: hub, secret: secret(), prefix: "sha256=".to_owned() },
            Verify::Slack { secret: secret() },
            Verify::Bearer { token: secret() },
        ];
        for kind in kinds {
            let source = source(kind);
            let headers = sign(&source, "msg_1", now(), b"{}").unwrap();
            assert!(verify(&source, &headers, b"{}", now()).is_ok(), "{:?}", source.verify);
            assert!(verify(&source, &HeaderMap::new(), b"{}", now()).is_err());
        }
    }

    #[test]
    fn bodies_that_are_no_utf8_are_signed_as_they_are() {
        let secret = SecretString::from("whsec_dGVzdC1rZXk=");
        let headers = sign_standard(&secret, "m", now(), b"\xff\x00").unwrap();
        assert!(verify(&standard_source("whsec_dGVzdC1rZXk="), &headers, b"\xff\x00", now()).is_ok());
    }

    #[test]
    fn time_and_id_are_part_of_what_is_signed() {
        let secret = SecretString::from("whsec_dGVzdC1rZXk=");
        let source = standard_source("whsec_dGVzdC1rZXk=");
        for (age, wanted) in [(300, None), (-300, None), (301, Some(Refusal::Stale)), (-301, Some(Refusal::Stale))] {
            let at = Timestamp::from_second(now().as_second() - age).unwrap();
            let headers = sign_standard(&secret, "m", at, b"{}").unwrap();
            assert_eq!(verify(&source, &headers, b"{}", now()).err(), wanted, "{age}");
        }
        let mut other_id = sign_standard(&secret, "m", now(), b"{}").unwrap();
        other_id.insert(ID, HeaderValue::from_static("n"));
        assert_eq!(verify(&source, &other_id, b"{}", now()), Err(Refusal::BadSignature));
        assert_eq!(verify(&source, &HeaderMap::new(), b"{}", now()), Err(Refusal::BadSignature));
    }

    /// The example of GitHub's page "Validating webhook deliveries".
    #[test]
    fn githubs_example_verifies() {
        let source = source(Verify::Hmac {
            header: HeaderName::from_static("x-hub-signature-256"),
            secret: SecretString::from("It's a Secret to Everybody"),
            prefix: "sha256=".to_owned(),
        });
        let mut headers = HeaderMap::new();
        headers.insert(
            "x-hub-signature-256",
            HeaderValue::from_static("sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
        );
        assert_eq!(verify(&source, &headers, b"Hello, World!", now()), Ok(Proof::default()));
        assert_eq!(verify(&source, &headers, b"Hello, World?", now()), Err(Refusal::BadSignature));
        assert_eq!(verify(&source, &HeaderMap::new(), b"Hello, World!", now()), Err(Refusal::BadSignature));
    }

    #[test]
    fn slacks_scheme_and_bearer_tokens_verify() {
        let secret = SecretString::from("s");
        let slack = source(Verify::Slack { secret: secret.clone() });
        let proof = verify(&slack, &crate::slack::sign(&secret, now(), b"{}"), b"{}", now());
        assert_eq!(proof, Ok(Proof { delivery_id: None, signed_at: Some(now()) }));
        let bearer = source(Verify::Bearer { token: SecretString::from("token") });
        let sent = |value| HeaderMap::from_iter([(http::header::AUTHORIZATION, HeaderValue::from_static(value))]);
        assert_eq!(verify(&bearer, &sent("Bearer token"), b"", now()), Ok(Proof::default()));
        assert_eq!(verify(&bearer, &sent("Bearer tokem"), b"", now()), Err(Refusal::BadSignature));
    }

    #[test]
    fn a_blank_or_broken_secret_closes_the_route() {
        let blank = || SecretString::from(" ");
        let header = HeaderName::from_static("x-signature");
        for verify_by in [
            Verify::Standard { secret: blank() },
            Verify::Standard { secret: SecretString::from("whsec_") },
            Verify::Standard { secret: SecretString::from("whsec_not base64") },
            Verify::Hmac { header, secret: blank(), prefix: String::new() },
            Verify::Slack { secret: blank() },
            Verify::Bearer { token: blank() },
        ] {
            let refused = verify(&source(verify_by), &HeaderMap::new(), b"", now());
            assert_eq!(refused, Err(Refusal::SecretMissing));
        }
    }
}
