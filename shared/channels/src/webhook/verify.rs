//! Proves that a webhook comes from its source, over the raw bytes and in constant time.
//!
//! Standard Webhooks (standardwebhooks.com, "Verifying signatures") is done here with the HMAC itself: the published
//! crate refuses bodies that are not UTF-8, the rule signs bytes. HMAC of the body alone (GitHub, "Validating webhook
//! deliveries") has no time in it: an old delivery can be sent again, and is then recognised by its id as long as
//! markers live.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
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
