//! The end of a turn: its draft goes through the commit door. What refuses it decides how it goes on: a stop commits what
//! there is, a decision in the last moment is looked at, another worker's marker is the outcome.

use turnlock_domain::commit::{CommittedTurn, Draft, Marker, Written, commit};
use turnlock_domain::ids::EventId;
use turnlock_domain::message::Message;
use turnlock_domain::turn::{Failure, Outcome};
use turnlock_store::StoreError;
use turnlock_store::sessions::{CommitRefused, Head, HeadChange, Lock, Release};

use super::response::{self, Ending, Said};
use super::{Agent, Receive, Unsettled, context, stored_turn};
use crate::journal_line::{self, EventOutcome};

impl Agent {
    pub(super) async fn respond(
        &self,
        receive: &Receive<'_>,
        (lock, head): (&Lock, &Head),
        said: &Said,
        ending: Ending,
        scope: &str,
    ) -> Result<Result<CommittedTurn, Unsettled>, StoreError> {
        let user: Message = context::user_message(&receive.envelope.event);
        let now = self.store.clock().now_ms();
        let parts = (user, said, ending);
        let (draft, change) = response::draft(&self.settings, &receive.envelope, (head, lock), parts, scope, now);
        self.commit(receive, lock, draft, change, head, Some((said, ending, scope))).await
    }

    /// Commits a draft. A refusal for a stop commits what there is, with the mark; another worker's marker is the
    /// outcome.
    pub(super) async fn commit(
        &self,
        receive: &Receive<'_>,
        lock: &Lock,
        mut draft: Draft,
        mut change: HeadChange,
        head: &Head,
        again: Option<(&Said, Ending, &str)>,
    ) -> Result<Result<CommittedTurn, Unsettled>, StoreError> {
        change.keep_unfinished =
            receive.dead_letter && head.unfinished.as_ref().is_some_and(|unfinished| *unfinished != lock.event);
        // A reset is not stopped: its own command is the stop. A stopped or failed turn says so whatever comes.
        let stoppable = matches!(draft.outcome, Outcome::Replied);
        let position = stoppable.then_some(&receive.envelope.position);
        let committed = loop {
            let write = async |draft: &Draft| -> Result<Written<CommitRefused>, StoreError> {
                self.store.commit(draft, lock, position, &change).await
            };
            match commit(&draft, write).await? {
                // As often at the most as there are texts: an event that was answered meanwhile keeps its own answer.
                Err(CommitRefused::MergedBefore(event)) if draft.merged.contains(&event) => {
                    draft.merged.retain(|merged| *merged != event);
                }
                committed => break committed,
            }
        };
        match committed {
            Ok(turn) => {
                self.log_committed(receive, &turn, &draft.merged, head);
                Ok(Ok(turn))
            }
            Err(CommitRefused::AlreadyCommitted(marker)) => {
                journal_line::fence_rejection(&lock.event, &lock.session, lock.fence, "commit");
                self.committed_before(receive, lock, *marker).await.map(Ok)
            }
            Err(CommitRefused::LockLost) => Ok(Err(Unsettled::LockLost)),
            Err(CommitRefused::Decided | CommitRefused::MergedBefore(_)) => Ok(Err(Unsettled::at_once())),
            Err(CommitRefused::Stopped) => match again {
                Some((said, _, scope)) => {
                    Box::pin(self.respond(receive, (lock, head), said, Ending::Stopped, scope)).await
                }
                None => Ok(Err(Unsettled::LockLost)),
            },
        }
    }

    fn log_committed(&self, receive: &Receive<'_>, turn: &CommittedTurn, merged: &[EventId], head: &Head) {
        let marker = turn.marker();
        let (outcome, reason) = match marker.outcome() {
            Outcome::Failed { reason: Failure::Dead } => (EventOutcome::Dead, Failure::Dead.as_str()),
            Outcome::Failed { reason } => (EventOutcome::Failed, reason.as_str()),
            Outcome::Stopped => (EventOutcome::Committed, "stopped"),
            Outcome::Reset => (EventOutcome::Committed, "reset"),
            Outcome::Replied | Outcome::Answered | Outcome::Merged { .. } | Outcome::Unknown => {
                (EventOutcome::Committed, "")
            }
        };
        let channel = receive.envelope.event.channel;
        journal_line::event(marker.event_id(), Some(marker.session()), channel, outcome, reason, head.attempts);
        for event_id in merged {
            journal_line::event(event_id, Some(marker.session()), channel, EventOutcome::Committed, "merged", 0);
        }
    }

    /// The event is committed: the stored outcome is sent again, no model and no tool is called.
    pub(super) async fn committed_before(
        &self,
        receive: &Receive<'_>,
        lock: &Lock,
        marker: Marker,
    ) -> Result<CommittedTurn, StoreError> {
        let turn = stored_turn(&self.store, marker).await?;
        if receive.dead_letter {
            self.store.release_dead_letter(lock).await?;
        } else {
            self.store.release(lock, Release { finished: true, ..Release::default() }).await?;
        }
        Ok(turn)
    }
}
