//! Session keys: the one place that makes them.
//!
//! `channel:chat` for the default account, `channel:account:chat` for others, plus `:thread` where a thread is its own
//! session. Parts are percent-encoded and an absent part is no part. The form is unambiguous because account names
//! (`[a-z][a-z0-9_-]*`, checked by the configuration) never look like a chat id of the channels that have threads:
//! Telegram's are numbers, Slack's are upper case.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::queue_id;

/// The account that does not stand in session keys.
pub const DEFAULT_ACCOUNT: &str = "main";

/// The longest key, in bytes; a longer one becomes its readable start and a hash.
const MAX_KEY: usize = 512;

const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'@');

/// One conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SessionKey(String);

impl SessionKey {
    /// The key of a chat, or of a thread in it. An empty thread is no thread.
    #[must_use]
    pub fn new(channel: &str, account: &str, chat: &str, thread: Option<&str>) -> Self {
        let mut key = encode_part(channel);
        let account = (account != DEFAULT_ACCOUNT && !account.is_empty()).then_some(account);
        for part in account.into_iter().chain([chat]).chain(thread.filter(|thread| !thread.is_empty())) {
            key.push(':');
            key.push_str(&encode_part(part));
        }
        // A sort key of the table has 1,024 bytes, and a session stands in one beside numbers.
        Self(if key.len() > MAX_KEY { queue_id(&key) } else { key })
    }

    /// A key that a producer chose (`session_key_override`), a person typed, or an item holds: taken as it is.
    #[must_use]
    pub fn from_text(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// The last part as it was before it was encoded: the chat's id, in a chat's key.
    #[must_use]
    pub fn last_part(&self) -> String {
        let part = self.0.rsplit(':').next().unwrap_or_default();
        percent_decode_str(part).decode_utf8_lossy().into_owned()
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `part` with everything percent-encoded that could be taken for a separator.
#[must_use]
pub fn encode_part(part: &str) -> String {
    utf8_percent_encode(part, PART).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_default_account_does_not_stand_in_the_key() {
        assert_eq!(SessionKey::new("telegram", "main", "1000001", None).as_str(), "telegram:1000001");
        assert_eq!(SessionKey::new("telegram", "other", "-100", Some("5")).as_str(), "telegram:other:-100:5");
        assert_eq!(SessionKey::new("slack", "main", "T1/C1", Some("1.2")).as_str(), "slack:T1%2FC1:1.2");
        assert_eq!(SessionKey::new("slack", "main", "T1/C1", None).last_part(), "T1/C1");
    }

    #[test]
    fn a_key_that_no_table_takes_is_its_start_and_a_hash() {
        let fits = SessionKey::new("gateway", "main", &"x".repeat(MAX_KEY - 8), None);
        assert_eq!(fits.as_str(), format!("gateway:{}", "x".repeat(MAX_KEY - 8)));
        let [one, other] = ["a", "b"].map(|end| SessionKey::new("gateway", "ops", &("👍".repeat(128) + end), None));
        assert!(one.as_str().starts_with("gateway:ops:") && one.as_str().len() <= 128, "{one}");
        assert_ne!(one, other);
    }

    /// Case ddb-empty-key-regression: an absent or empty thread adds no part, a thread named `-` does.
    #[test]
    fn ddb_empty_key_regression() {
        let absent = SessionKey::new("telegram", "main", "1", None);
        assert_eq!(SessionKey::new("telegram", "main", "1", Some("")), absent);
        assert_ne!(SessionKey::new("telegram", "main", "1", Some("-")), absent);
    }

    proptest! {
        #[test]
        fn different_chats_have_different_keys(
            one in ("[a-z][a-z0-9_-]{0,8}", -3000i64..3000, proptest::option::of(0u32..50)),
            two in ("[a-z][a-z0-9_-]{0,8}", -3000i64..3000, proptest::option::of(0u32..50)),
        ) {
            let key = |(account, chat, thread): &(String, i64, Option<u32>)| {
                SessionKey::new("telegram", account, &chat.to_string(), thread.map(|t| t.to_string()).as_deref())
            };
            prop_assert_eq!(one == two, key(&one) == key(&two));
        }
    }
}
