//! The commit door. A [`CommittedTurn`] comes into being in two ways only: a [`Draft`] went through [`commit`], or the
//! store holds the [`Marker`] of an earlier commit. Replies and jobs are made from it and from nothing else, so nothing
//! can be let out that is not in the history.

use serde::{Deserialize, Serialize};

use crate::ids::EventId;
use crate::message::Message;
use crate::session::SessionKey;
use crate::time::Millis;
use crate::turn::{ModelCall, Outcome, Owed, Usage};

/// A turn that is ready to be committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// The event that caused it.
    pub event_id: EventId,
    /// Its session.
    pub session: SessionKey,
    /// The session's generation after the commit.
    pub generation: u32,
    /// The fence it was made under.
    pub fence: u64,
    /// The index of its first message in the session.
    pub first: u64,
    /// Its messages: the user's first, the reply last.
    pub messages: Vec<Message>,
    /// How it ended.
    pub outcome: Outcome,
    /// What it used.
    pub usage: Usage,
    /// The calls of models that it used it for.
    pub calls: Vec<ModelCall>,
    /// What must follow.
    pub owed: Vec<Owed>,
    /// The events whose texts it used besides its own: they are committed with it.
    pub merged: Vec<EventId>,
    /// When.
    pub at: Millis,
}

/// The stored sign that an event is committed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Marker {
    event_id: EventId,
    session: SessionKey,
    generation: u32,
    fence: u64,
    first: u64,
    messages: u64,
    outcome: Outcome,
    owed: Vec<Owed>,
    at: Millis,
}

impl Marker {
    /// The event that is committed.
    #[must_use]
    pub fn event_id(&self) -> &EventId {
        &self.event_id
    }

    /// Its session.
    #[must_use]
    pub fn session(&self) -> &SessionKey {
        &self.session
    }

    /// The fence under which it was committed.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// How it ended.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// What must follow.
    #[must_use]
    pub fn owed(&self) -> &[Owed] {
        &self.owed
    }

    /// The generation and index of the turn's first message, and how many there are.
    #[must_use]
    pub fn range(&self) -> (u32, u64, u64) {
        (self.generation, self.first, self.messages)
    }

    /// When it was committed.
    #[must_use]
    pub fn at(&self) -> Millis {
        self.at
    }
}

impl Draft {
    /// The marker that is written with this draft.
    #[must_use]
    pub fn marker(&self) -> Marker {
        Marker {
            event_id: self.event_id.clone(),
            session: self.session.clone(),
            generation: self.generation,
            fence: self.fence,
            first: self.first,
            messages: self.messages.len() as u64,
            outcome: self.outcome.clone(),
            owed: self.owed.clone(),
            at: self.at,
        }
    }

    /// The markers of the events whose texts this draft used: their answer is this turn's.
    pub fn merged_markers(&self) -> impl Iterator<Item = Marker> {
        self.merged.iter().map(|event| Marker {
            event_id: event.clone(),
            messages: 0,
            outcome: Outcome::Merged { into: self.event_id.clone() },
            owed: Vec::new(),
            ..self.marker()
        })
    }
}

/// A turn that is in the session's history.
#[derive(Debug, Clone, PartialEq)]
pub struct CommittedTurn {
    marker: Marker,
    reply: String,
}

impl CommittedTurn {
    /// The turn that `marker` stands for, with the messages its item holds.
    #[must_use]
    pub fn from_stored(marker: Marker, messages: &[Message]) -> Self {
        Self { reply: reply(messages), marker }
    }

    /// The marker it was committed with.
    #[must_use]
    pub fn marker(&self) -> &Marker {
        &self.marker
    }

    /// The text of its last message: what people are told. Empty where a command's answer is made from the outcome.
    #[must_use]
    pub fn reply(&self) -> &str {
        &self.reply
    }
}

/// What writing a draft came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Written<Refusal> {
    /// It is in the history, by this write or by an earlier one of the same event and fence.
    Committed,
    /// It is not; the store says why.
    Refused(Refusal),
}

/// Commits `draft` by `write`, which persists it in one transaction.
///
/// # Errors
/// Those of `write`: nothing is known about the commit then, and the same draft may be written again.
pub async fn commit<R, E>(
    draft: &Draft,
    write: impl AsyncFnOnce(&Draft) -> Result<Written<R>, E>,
) -> Result<Result<CommittedTurn, R>, E> {
    Ok(match write(draft).await? {
        Written::Committed => Ok(CommittedTurn { marker: draft.marker(), reply: reply(&draft.messages) }),
        Written::Refused(refusal) => Err(refusal),
    })
}

fn reply(messages: &[Message]) -> String {
    messages.last().map(Message::text).unwrap_or_default()
}
