//! Finds out which API caller asks, by the bearer key (RFC 6750, section 2.1).

use http::HeaderMap;
use secrecy::SecretString;

use crate::ingress::Refusal;
use crate::secret;

/// The name of the caller whose key the request carries. All keys are compared, in constant time; a blank key lets
/// nobody in.
///
/// # Errors
/// [`Refusal::SecretMissing`] when no key is configured, [`Refusal::BadSignature`] when none fits.
pub fn verify<'k>(keys: &'k [(String, SecretString)], headers: &HeaderMap) -> Result<&'k str, Refusal> {
    let usable: Vec<(&str, &str)> =
        keys.iter().filter_map(|(name, key)| secret::usable(Some(key)).ok().map(|key| (name.as_str(), key))).collect();
    if usable.is_empty() {
        return Err(Refusal::SecretMissing);
    }
    let given = secret::bearer(headers).ok_or(Refusal::BadSignature)?;
    let mut caller = None;
    for (name, key) in usable {
        if secret::same(key.as_bytes(), given.as_bytes()) {
            caller = caller.or(Some(name));
        }
    }
    caller.ok_or(Refusal::BadSignature)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn keys(keys: &[(&str, &str)]) -> Vec<(String, SecretString)> {
        keys.iter().map(|(name, key)| ((*name).to_owned(), SecretString::from(*key))).collect()
    }

    fn authorization(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(http::header::AUTHORIZATION, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn the_key_names_the_caller() {
        let keys = keys(&[("ops", "key-of-ops"), ("ci", "key-of-ci"), ("unset", "")]);
        assert_eq!(verify(&keys, &authorization("Bearer key-of-ci")), Ok("ci"));
        assert_eq!(verify(&keys, &authorization("bearer  key-of-ops")), Ok("ops"));
        for refused in ["Bearer key-of-c", "Bearer ", "Bearer", "Basic key-of-ci", "key-of-ci"] {
            assert_eq!(verify(&keys, &authorization(refused)), Err(Refusal::BadSignature), "{refused}");
        }
        assert_eq!(verify(&keys, &HeaderMap::new()), Err(Refusal::BadSignature));
    }

    #[test]
    fn without_a_key_the_route_is_closed() {
        assert_eq!(verify(&[], &authorization("Bearer x")), Err(Refusal::SecretMissing));
        assert_eq!(verify(&keys(&[("ops", " ")]), &authorization("Bearer  ")), Err(Refusal::SecretMissing));
    }
}
