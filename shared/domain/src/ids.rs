//! Identities. Every id derives from the source event, so that a redelivery, a relay and a retry recognise one another.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The longest id a queue takes as group or deduplication id (SQS API Reference, `SendMessage`).
pub const QUEUE_ID_MAX: usize = 128;

/// What an inbound event is recognised by, on every redelivery and in every id that derives from it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct EventId(String);

impl EventId {
    /// The id of the event that `channel` knows by `parts`, e.g. `telegram:<bot id>:<update id>`.
    #[must_use]
    pub fn derive(channel: &str, parts: &[&str]) -> Self {
        let mut whole = channel.to_owned();
        for part in parts {
            whole.push(':');
            whole.push_str(&crate::session::encode_part(part));
        }
        Self(bounded(&whole, 96))
    }

    /// An id read back from one of our own items, queues or URLs.
    #[must_use]
    pub fn from_stored(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of what this event causes: `suffix` names it (`final`, `frame.3.1`, `consolidate`).
    #[must_use]
    pub fn caused(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.0)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `text` as a queue's group or deduplication id: unchanged if it fits, else its readable start and a hash of the whole.
#[must_use]
pub fn queue_id(text: &str) -> String {
    bounded(text, QUEUE_ID_MAX)
}

fn bounded(text: &str, max: usize) -> String {
    let fits = text.len() <= max
        && !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~".contains(&b));
    if fits {
        return text.to_owned();
    }
    let hash = hex::encode(&Sha256::digest(text.as_bytes())[..16]);
    let start: String =
        text.chars().filter(|c| c.is_ascii_alphanumeric() || ":.-_".contains(*c)).take(max - hash.len() - 1).collect();
    format!("{start}~{hash}")
}

/// A digest of `bytes` in hexadecimal, for comparing bodies.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fitting_id_is_unchanged() {
        assert_eq!(EventId::derive("telegram", &["1", "1003"]).as_str(), "telegram:1:1003");
        assert_eq!(queue_id("telegram:1000001"), "telegram:1000001");
    }

    #[test]
    fn what_does_not_fit_is_hashed_and_stays_distinct() {
        let long = "x".repeat(400);
        let a = queue_id(&format!("{long}a"));
        let b = queue_id(&format!("{long}b"));
        assert_ne!(a, b);
        assert!(a.len() <= QUEUE_ID_MAX && a.is_ascii());
        assert!(queue_id("grüße 你好").is_ascii());
        assert!(!queue_id("").is_empty());
    }

    #[test]
    fn parts_cannot_run_into_each_other() {
        assert_ne!(EventId::derive("webhook", &["a:b", "c"]), EventId::derive("webhook", &["a", "b:c"]));
    }
}
