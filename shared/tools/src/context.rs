//! What a call knows of its turn: whose memory it may touch, and the facts that become the evidence of what it stores.

use jiff::Timestamp;
use turnlock_domain::ids::EventId;
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
    /// The idempotency key of this call, made from event, step and call: the same when a successor asks again.
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

#[cfg(test)]
pub(crate) fn example() -> ToolContext {
    let event_id = EventId::derive("telegram", &["1", "1003"]);
    ToolContext {
        session: SessionKey::from_text("telegram:1000001"),
        scope: "telegram:1000001".to_owned(),
        key: format!("{event_id}:1:0"),
        event_id,
        generation: 0,
        message: 4,
        model: "scripted".to_owned(),
        now: "2026-01-05T09:00:00Z".parse().expect("a time"),
    }
}
