//! Messages on their way in and out, and the rules of SQS that hold for all of them. Pure values: nothing here sends.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use turnlock_domain::ids::QUEUE_ID_MAX;
use turnlock_domain::time::Millis;

use crate::{InvalidMessage, SendError};

/// What a queue takes by default: 1 MiB, attributes included (SQS quotas, since August 2025).
pub const MAX_BYTES: usize = 1024 * 1024;

/// The longest delay of a message (SQS API Reference, `SendMessage`).
pub const MAX_DELAY: Duration = Duration::from_secs(15 * 60);

/// The longest visibility (SQS API Reference, `ChangeMessageVisibility`).
pub const MAX_VISIBILITY: Duration = Duration::from_secs(12 * 60 * 60);

const MAX_ATTRIBUTES: usize = 10;

/// All our attributes are strings; SQS counts the name of their type too.
pub(crate) const ATTRIBUTE_TYPE: &str = "String";

/// A message to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewMessage {
    /// The content.
    pub body: String,
    /// What keeps order among its messages; required by FIFO queues.
    pub group: Option<String>,
    /// What a second sending is recognised by within the group; required by FIFO queues, refused by standard ones.
    pub deduplication_id: Option<String>,
    /// What travels beside the body, e.g. `traceparent`.
    pub attributes: BTreeMap<String, String>,
    /// How long the message stays out of sight at first; standard queues only.
    pub delay: Duration,
}

impl NewMessage {
    /// A message for a FIFO queue.
    #[must_use]
    pub fn fifo(body: impl Into<String>, group: impl Into<String>, deduplication_id: impl Into<String>) -> Self {
        Self {
            body: body.into(),
            group: Some(group.into()),
            deduplication_id: Some(deduplication_id.into()),
            ..Self::default()
        }
    }

    /// A message for a standard queue.
    #[must_use]
    pub fn standard(body: impl Into<String>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    /// The size that counts against a queue's limit: body, and name, type and value of every attribute.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let attributes = self.attributes.iter();
        self.body.len() + attributes.map(|(name, value)| name.len() + ATTRIBUTE_TYPE.len() + value.len()).sum::<usize>()
    }

    /// Whether a queue of this kind and limit takes the message. Every implementation asks this before it does anything,
    /// and an ingress may, before it accepts an event that could not be sent.
    pub fn check(&self, fifo: bool, max_bytes: usize) -> Result<(), SendError> {
        self.check_rules(fifo).map_err(SendError::Invalid)?;
        let bytes = self.bytes();
        if bytes > max_bytes {
            return Err(SendError::TooLarge { bytes, limit: max_bytes });
        }
        Ok(())
    }

    fn check_rules(&self, fifo: bool) -> Result<(), InvalidMessage> {
        if self.body.is_empty() {
            return Err(InvalidMessage::EmptyBody);
        }
        if !is_xml(&self.body) || !self.attributes.values().all(|value| is_xml(value)) {
            return Err(InvalidMessage::ControlCharacter);
        }
        let are_attributes = self.attributes.iter().all(|(name, value)| is_attribute_name(name) && !value.is_empty());
        if self.attributes.len() > MAX_ATTRIBUTES || !are_attributes {
            return Err(InvalidMessage::BadAttribute);
        }
        if !self.group.iter().chain(&self.deduplication_id).all(|id| is_identifier(id)) {
            return Err(InvalidMessage::BadIdentifier);
        }
        match (fifo, &self.group, &self.deduplication_id) {
            (true, None, _) => Err(InvalidMessage::NoGroup),
            (true, Some(_), None) => Err(InvalidMessage::NoDeduplicationId),
            (true, Some(_), Some(_)) if !self.delay.is_zero() => Err(InvalidMessage::DelayOnFifo),
            (false, _, Some(_)) => Err(InvalidMessage::DeduplicationOnStandard),
            (false, _, None) if self.delay > MAX_DELAY => Err(InvalidMessage::DelayTooLong),
            (true, Some(_), Some(_)) | (false, _, None) => Ok(()),
        }
    }
}

/// SQS takes what XML 1.0 takes.
fn is_xml(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..))
}

fn is_attribute_name(name: &str) -> bool {
    (1..=256).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

fn is_identifier(id: &str) -> bool {
    (1..=QUEUE_ID_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The right of one receive to delete its message or to change its visibility, until it ends. It may be stored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Receipt(pub String);

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A message as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The queue's name for the message: the same at every receive, meaningless outside the queue.
    pub message_id: String,
    /// What holds the message for this receive.
    pub receipt: Receipt,
    /// The content.
    pub body: String,
    /// The group it was sent with.
    pub group: Option<String>,
    /// The attributes it was sent with.
    pub attributes: BTreeMap<String, String>,
    /// How often it has been received, this time included.
    pub receive_count: u32,
    /// When the queue accepted it.
    pub sent_at: Millis,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(message: &NewMessage, fifo: bool) -> Option<InvalidMessage> {
        match message.check(fifo, MAX_BYTES) {
            Err(SendError::Invalid(reason)) => Some(reason),
            _ => None,
        }
    }

    #[test]
    fn rules_of_both_kinds() {
        let fifo = NewMessage::fifo("b", "g", "d");
        let standard = NewMessage::standard("b");
        let delay = Duration::from_secs(1);
        let with_attribute = |name: &str, value: &str| NewMessage {
            attributes: BTreeMap::from([(name.to_owned(), value.to_owned())]),
            ..NewMessage::standard("b")
        };
        let cases = [
            (fifo.clone(), true, None),
            (standard.clone(), false, None),
            (NewMessage { group: Some("tenant".into()), ..standard.clone() }, false, None),
            (NewMessage { body: String::new(), ..fifo.clone() }, true, Some(InvalidMessage::EmptyBody)),
            (NewMessage { body: "a\u{0}".into(), ..fifo.clone() }, true, Some(InvalidMessage::ControlCharacter)),
            (NewMessage { body: "a\t\r\n\u{FFFD}😀".into(), ..fifo.clone() }, true, None),
            (NewMessage { group: None, ..fifo.clone() }, true, Some(InvalidMessage::NoGroup)),
            (NewMessage { deduplication_id: None, ..fifo.clone() }, true, Some(InvalidMessage::NoDeduplicationId)),
            (NewMessage { group: Some("ü".into()), ..fifo.clone() }, true, Some(InvalidMessage::BadIdentifier)),
            (NewMessage { group: Some("g".repeat(129)), ..fifo.clone() }, true, Some(InvalidMessage::BadIdentifier)),
            (NewMessage { delay, ..fifo.clone() }, true, Some(InvalidMessage::DelayOnFifo)),
            (fifo, false, Some(InvalidMessage::DeduplicationOnStandard)),
            (NewMessage { delay, ..standard.clone() }, false, None),
            (NewMessage { delay: MAX_DELAY + delay, ..standard }, false, Some(InvalidMessage::DelayTooLong)),
            (with_attribute("a", ""), false, Some(InvalidMessage::BadAttribute)),
            (with_attribute("a b", "c"), false, Some(InvalidMessage::BadAttribute)),
            (with_attribute("traceparent", "00-0af7-b7ad-01"), false, None),
        ];
        for (message, fifo, expected) in cases {
            assert_eq!(reason(&message, fifo), expected, "{message:?}");
        }
    }

    /// Case sqs-size: the attributes count, the limit itself fits.
    #[test]
    fn sqs_size() {
        let mut message = NewMessage::fifo("x".repeat(90), "g", "d");
        message.attributes.insert("key".into(), "v".into());
        assert_eq!(message.bytes(), 100);
        assert!(message.check(true, 100).is_ok());
        assert!(matches!(message.check(true, 99), Err(SendError::TooLarge { bytes: 100, limit: 99 })));
    }
}
