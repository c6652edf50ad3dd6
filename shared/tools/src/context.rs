//! What a call knows of its turn: whose memory it may touch, and the facts that become the evidence of what it stores.

use jiff::Timestamp;
use turnlock_domain::ids::{EventId, queue_id};
use turnlock_domain::session::SessionKey;

/// One call's surroundings. Values only: nothing here reaches the session, the user or a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolContext {
    /// The session.
    pub session: SessionKey,
    /// The memory scope of its chat; a tool reads and writes no other.
    pub scope: String,
    /// The event whose turn calls.
    pub event_id: EventId,
    /// The idempotency key of this call, made by [`ToolContext::key_of`]: the same when a successor asks again.
    pub key: String,
    /// The session's generation.
    pub generation: u32,
    /// The index in the session of the turn's first message.
    pub message: u64,
    /// The name of the model that calls.
    pub model: String,
    /// The time of the call.
    pub now: Timestamp,
}

impl ToolContext {
    /// The idempotency key of a call: a turn that is resumed, or run again after a redelivery, finds the same one.
    #[must_use]
    pub fn key_of(event_id: &EventId, step: u32, call: &str) -> String {
        queue_id(&format!("{event_id}.tool.{step}.{call}"))
    }
}

#[cfg(test)]
pub(crate) fn example() -> ToolContext {
    let event_id = EventId::derive("telegram", &["1", "1003"]);
    ToolContext {
        session: SessionKey::from_text("telegram:1000001"),
        scope: "telegram:1000001".to_owned(),
        key: ToolContext::key_of(&event_id, 1, "call_0"),
        event_id,
        generation: 0,
        message: 4,
        model: "scripted".to_owned(),
        now: "2026-01-05T09:00:00Z".parse().expect("a time"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_derives_from_event_step_and_call() {
        let event = EventId::derive("telegram", &["1", "1003"]);
        assert_eq!(ToolContext::key_of(&event, 2, "call_0"), "telegram:1:1003.tool.2.call_0");
        assert_ne!(ToolContext::key_of(&event, 2, "call_0"), ToolContext::key_of(&event, 3, "call_0"));
        assert!(ToolContext::key_of(&event, 1, &"x".repeat(500)).len() <= 128);
    }
}
