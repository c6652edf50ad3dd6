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

    /// The place that `text` names, if it has the form of one: it came from outside and back.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (at, id) = text.split_once('#')?;
        let is_place = at.len() == 15 && at.bytes().all(|b| b.is_ascii_digit()) && !id.is_empty();
        is_place.then(|| Self(text.to_owned()))
    }

    /// The place right behind this one: a stop there reaches this event and nothing later, for ids that are equally long or
    /// numbers.
    #[must_use]
    pub fn right_behind(&self) -> Self {
        Self(format!("{}~", self.0))
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

    /// A message id, a `ts` in microseconds, a UUID: what comes next may have come in the same millisecond.
    #[test]
    fn right_behind_an_event_is_before_the_next_one() {
        let at = Millis(1_760_000_000_000);
        for (id, next) in [
            ("9", "10"),
            ("1", "2"),
            ("1760000000000100", "1760000000000101"),
            ("1760000000000999", "1760000000001000"),
            ("019a0b1c-2d30-7000-8000-00000000000f", "019a0b1c-2d30-7000-8000-000000000010"),
        ] {
            let (place, next) = (Position::new(at, id), Position::new(at, next));
            assert!(place < place.right_behind() && place.right_behind() < next, "{place:?}");
            assert!(place.right_behind() < Position::new(Millis(at.0 + 1), "1"));
            assert_eq!(Position::parse(place.right_behind().as_str()), Some(place.right_behind()));
        }
    }

    #[test]
    fn what_has_not_the_form_of_a_place_is_none() {
        for text in ["", "#", "001760000000000#", "1760000000000#1", "00176000000000x#1", "001760000000000", "x:1#2"] {
            assert_eq!(Position::parse(text), None, "{text}");
        }
    }
}
