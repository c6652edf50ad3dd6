//! Sends what a committed turn owes: the final first, then the jobs. Only a [`CommittedTurn`] gets here, so nothing is
//! let out that is not in the history. Sending again is harmless: ids derive from the event.

use serde_json::json;
use turnlock_domain::commit::{CommittedTurn, Marker};
use turnlock_domain::event::{InboundEvent, MessageKind, OutboundEvent, Revision};
use turnlock_domain::turn::{Job, Outcome, Owed};
use turnlock_queue::{Queue, SendError};
use turnlock_store::{Store, StoreError};

use crate::approvals;
use crate::send;
use crate::words::Language;

/// Where what is owed goes.
pub struct Dispatch<'a> {
    /// What cards say.
    pub store: &'a Store,
    /// Finals.
    pub outbound: &'a dyn Queue,
    /// Consolidations.
    pub consolidate: &'a dyn Queue,
    /// Memory reviews.
    pub review: &'a dyn Queue,
    /// The language of answers that no model wrote.
    pub language: Language,
}

/// Why what is owed could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    /// It could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It was not taken.
    #[error(transparent)]
    Send(#[from] SendError),
    /// It was owed by a later version, which sends it when the message comes again.
    #[error("the turn owes something that this version does not know: a later version sends it")]
    Unknown,
}

impl Dispatch<'_> {
    /// Sends all that `turn` owes, as an answer to `event`.
    ///
    /// # Errors
    /// [`DispatchError`]; nothing is lost: the inbound message stays, and its redelivery sends it all again.
    pub async fn dispatch(&self, turn: &CommittedTurn, event: &InboundEvent) -> Result<(), DispatchError> {
        let mut known = true;
        for owed in turn.marker().owed() {
            match owed {
                Owed::Final => send::outbound(self.outbound, &self.final_event(turn, event)).await?,
                Owed::Job { job } => {
                    let queue = match job {
                        Job::Consolidate(_) => self.consolidate,
                        Job::ReviewMemory(_) => self.review,
                    };
                    send::job(queue, job, event.trace.as_deref()).await?;
                }
                Owed::Card { approval } => {
                    // One that is not there any more has no card either.
                    if let Some(approval) = self.store.approval(approval).await? {
                        send::outbound(self.outbound, &approvals::settled_card(self.language, &approval)).await?;
                    }
                }
                Owed::Unknown => known = false,
            }
        }
        if known { Ok(()) } else { Err(DispatchError::Unknown) }
    }

    fn final_event(&self, turn: &CommittedTurn, event: &InboundEvent) -> OutboundEvent {
        let marker = turn.marker();
        let (kind, text) = final_of(turn, self.language);
        let mut out = OutboundEvent::answering(event, "final", kind, text);
        out.turn = Some(marker.event_id().clone());
        out.revision = Revision { fence: marker.fence(), sequence: Revision::FINAL };
        out.metadata.insert("outcome".to_owned(), json!(marker.outcome()));
        out
    }
}

/// The committed turn that `marker` stands for, as the history has it.
pub(crate) async fn stored_turn(store: &Store, marker: Marker) -> Result<CommittedTurn, StoreError> {
    let (generation, first, messages) = marker.range();
    let stored = match messages {
        0 => None,
        _ => store.turn(marker.session(), generation, first).await?,
    };
    let messages = stored.map(|turn| turn.messages).unwrap_or_default();
    Ok(CommittedTurn::from_stored(marker, &messages))
}

/// What people are told of a committed turn: its reply, or, where it has no messages, its outcome.
pub(crate) fn final_of(turn: &CommittedTurn, language: Language) -> (MessageKind, String) {
    let (kind, instead) = match turn.marker().outcome() {
        Outcome::Failed { reason } => (MessageKind::Error, language.failed(*reason)),
        Outcome::Reset => (MessageKind::Final, language.new_conversation()),
        Outcome::Stopped => (MessageKind::Final, language.stopped()),
        Outcome::Answered => (MessageKind::Notice, String::new()),
        Outcome::Replied | Outcome::Merged { .. } | Outcome::Unknown => (MessageKind::Final, String::new()),
    };
    (kind, if turn.reply().is_empty() { instead } else { turn.reply().to_owned() })
}
