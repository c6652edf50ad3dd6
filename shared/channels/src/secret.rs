//! Comparing and signing with secrets: constant time, raw bytes, and a blank secret is no secret.

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::ingress::Refusal;

/// The text of `secret`, unless it is absent or blank: an empty HMAC key would let anybody sign.
pub(crate) fn usable(secret: Option<&SecretString>) -> Result<&str, Refusal> {
    secret.map(ExposeSecret::expose_secret).filter(|text| !text.trim().is_empty()).ok_or(Refusal::SecretMissing)
}

/// Whether both are the same, in a time that depends on neither: digests are compared, so not even lengths show.
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    Sha256::digest(one).ct_eq(&Sha256::digest(other)).into()
}

/// HMAC-SHA256 of `parts`, one after another.
pub(crate) fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // The key as one block (RFC 2104, section 2): the constructor for a block cannot fail, the one for any length can.
    let mut block = [0; 64];
    if key.len() > block.len() {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let mut mac = Hmac::<Sha256>::new((&block).into());
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// How far a signature's time may be from now, either way (Slack and Standard Webhooks say five minutes).
const TOLERANCE_SECONDS: u64 = 300;

/// The signature's time, if it is near enough to `now`.
pub(crate) fn fresh(seconds: &str, now: Timestamp) -> Result<Timestamp, Refusal> {
    let seconds: i64 = seconds.parse().map_err(|_| Refusal::BadSignature)?;
    if now.as_second().abs_diff(seconds) > TOLERANCE_SECONDS {
        return Err(Refusal::Stale);
    }
    Timestamp::from_second(seconds).map_err(|_| Refusal::BadSignature)
}

/// The token of an `Authorization: Bearer` header.
pub(crate) fn bearer(headers: &http::HeaderMap) -> Option<&str> {
    let value = crate::ingress::header(headers, "authorization")?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test cases 2 and 6.
    #[test]
    fn hmac_keeps_to_the_standard_for_short_and_long_keys() {
        assert_eq!(
            hex::encode(hmac_sha256(b"Jefe", &[b"what do ya want ", b"for nothing?"])),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        let data: &[u8] = b"Test Using Larger Than Block-Size Key - Hash Key First";
        assert_eq!(
            hex::encode(hmac_sha256(&[0xaa; 131], &[data])),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn a_blank_secret_is_no_secret() {
        for blank in ["", " ", "\t\n"] {
            assert_eq!(usable(Some(&SecretString::from(blank))), Err(Refusal::SecretMissing));
        }
        assert_eq!(usable(None), Err(Refusal::SecretMissing));
        assert_eq!(usable(Some(&SecretString::from("s"))), Ok("s"));
    }
}
