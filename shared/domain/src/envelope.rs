//! What only our own code may claim about an event. The envelope travels in our queues and nowhere else; nothing in it
//! is ever read from a payload.

use serde::{Deserialize, Serialize};

use crate::event::{EventType, InboundEvent};
use crate::session::SessionKey;
use crate::time::Millis;

/// An inbound event with what our own ingress vouches for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// The event.
    pub event: InboundEvent,
    /// When ingress accepted it: its age counts from here, not from the platform's date.
    pub accepted_at: Millis,
    /// Its place among the events of its session.
    pub position: Position,
    /// The command it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
    /// Whether no person waits for the answer (cron, most webhooks): such a turn never asks.
    #[serde(default)]
    pub unattended: bool,
    /// How many times an operator has sent it again.
    #[serde(default)]
    pub redrive: u32,
    /// What the chat was called before it moved: what is remembered of it stands under that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former_chat: Option<SessionKey>,
    /// Whether it stands for an album, whose parts are stored: the event itself has one of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub album: bool,
}

impl Envelope {
    /// The event, unless it claims to be control without being a command of ours.
    ///
    /// # Errors
    /// [`Forged`] for an event of type `control` that no ingress of ours made a command.
    pub fn trusted(self) -> Result<Self, Forged> {
        if self.event.event_type == EventType::Control && self.command.is_none() {
            return Err(Forged);
        }
        Ok(self)
    }
}

/// An event that claims to be control. Sending it again does not help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of type `control` came without our own envelope")]
pub struct Forged;

/// What a person can tell the runtime itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// End what was sent before this, queued or running.
    Stop,
    /// Begin a new conversation.
    New,
    /// Say what the session is doing.
    Status,
    /// Say what can be done here.
    Help,
    /// A button of ours was pressed; which one, the event's metadata says under `tap`.
    Tap,
    /// Let the call run that waits for a person; its code may stand behind the command.
    Approve,
    /// Do not let it run.
    Deny,
    /// Not a command that anybody types: the copy of a message that may reach the turn that runs before it.
    Steer,
    /// A command that this version does not know: it is left to a later version during a rolling deploy.
    #[serde(other)]
    Unknown,
}

/// An event's place among those of its session: platform time, then the platform's own order within it. Compared as
/// text, also by DynamoDB's conditions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Position(String);

impl Position {
    /// The place of the event sent at `at` as number `id` (a message id, a `ts`, a UUID).
    #[must_use]
    pub fn new(at: Millis, id: &str) -> Self {
        let at = at.0.max(0);
        if !id.is_empty() && id.len() <= 20 && id.bytes().all(|b| b.is_ascii_digit()) {
            Self(format!("{at:015}#{id:0>20}"))
        } else {
            Self(format!("{at:015}#{id}"))
        }
    }

    /// The place as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_one_second_are_ordered_by_id() {
        let at = Millis(1_760_000_000_000);
        assert!(Position::new(at, "99") < Position::new(at, "100"));
        assert!(Position::new(at, "999999") < Position::new(Millis(1_760_000_001_000), "1"));
    }
}
