//! Acquire: the session's lock for this event, or what is in its way.
//!
//! Another event may stand as unfinished: if its marker is there, the field is a leftover and is cleared (trace V1); if
//! it is older than it may become, it is settled with the error outcome first; else its own message comes first.

use std::time::Duration;

use tokio::time::Instant;
use turnlock_domain::commit::{CommittedTurn, Draft, Written, commit};
use turnlock_domain::envelope::Position;
use turnlock_domain::event::InboundEvent;
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;
use turnlock_domain::turn::{Failure, Outcome, Usage};
use turnlock_store::StoreError;
use turnlock_store::sessions::{Acquire, Acquired, Head, HeadChange, LEASE_MARGIN, Lock, Release};

use super::calls::journalled;
use super::lease::Lease;
use super::response::{self, Ending, Said};
use super::{Agent, Receive};
use crate::admit::chain;
use crate::journal_line::{self, EventOutcome};

/// How often acquiring is tried when something was cleared out of the way.
const TRIES: usize = 3;
/// The longest a busy message sleeps.
const LONGEST_BUSY: Duration = Duration::from_secs(60);

/// What acquiring came to.
pub(super) enum Taken {
    /// The session is mine.
    Mine(Lock, Box<Head>, Lease),
    /// It is not; the message comes back after this.
    Busy(Duration, Box<Head>),
}

impl Agent {
    /// Acquires the session for the received event.
    pub(super) async fn acquire(&self, receive: &Receive<'_>) -> Result<Taken, StoreError> {
        let event = &receive.envelope.event;
        let route = serde_json::to_string(&InboundEvent { content: Vec::new(), ..event.clone() }).unwrap_or_default();
        let mut last = Box::default();
        for _ in 0..TRIES {
            let asked_at = Instant::now();
            let owner = self.store.write_name();
            let acquired = self
                .store
                .acquire(&Acquire {
                    session: &receive.session,
                    event: &event.event_id,
                    accepted_at: receive.envelope.accepted_at,
                    position: &receive.envelope.position,
                    route: &route,
                    owner: &owner,
                    lease: self.settings.limits.lease,
                    dead_letter: receive.dead_letter,
                })
                .await?;
            let head = match acquired {
                Acquired::Mine(lock, head) => {
                    return Ok(Taken::Mine(lock, head, Lease::new(self.settings.limits.lease, asked_at)));
                }
                Acquired::Busy(head) => head,
            };
            if !self.clear_the_way(receive, &head).await? {
                return Ok(Taken::Busy(self.until_free(&event.event_id, &head), head));
            }
            last = head;
        }
        Ok(Taken::Busy(LEASE_MARGIN, last))
    }

    /// How long until the lock may be free for `event`, or the turn that waits before it is settled.
    fn until_free(&self, event: &EventId, head: &Head) -> Duration {
        let waits = head.open_ask().is_some() && head.unfinished.as_ref() != Some(event);
        let settled = waits.then(|| head.waits_since(Millis::default()) + self.settings.limits.max_wait);
        let until = head.lease_until.into_iter().chain(settled).max();
        let left = until.map_or(Duration::ZERO, |until| until.since(self.store.clock().now_ms()));
        (left + LEASE_MARGIN).min(LONGEST_BUSY)
    }

    /// Whether something was cleared, so that acquiring is worth another try.
    async fn clear_the_way(&self, receive: &Receive<'_>, head: &Head) -> Result<bool, StoreError> {
        let now = self.store.clock().now_ms();
        let free = head.owner.is_none() || head.lease_until.is_some_and(|until| until < now - LEASE_MARGIN);
        let Some(other) = head.unfinished.as_ref().filter(|other| **other != receive.envelope.event.event_id) else {
            return Ok(false);
        };
        if !free || receive.dead_letter {
            return Ok(false);
        }
        if self.store.marker(other).await?.is_some() {
            self.store.clear_unfinished(&receive.session, other).await?;
            return Ok(true);
        }
        if !self.is_too_old(head) {
            return Ok(false);
        }
        Box::pin(self.settle_other(&receive.session, other, head)).await
    }

    /// Whether the unfinished event has made somebody wait for longer than it may.
    fn is_too_old(&self, head: &Head) -> bool {
        let now = self.store.clock().now_ms();
        age(head.unfinished_accepted_at.unwrap_or(now), head, now) > self.settings.limits.max_wait
    }

    /// Settles an unfinished event whose message is gone or given up: the error outcome, answered where it came from.
    async fn settle_other(&self, session: &SessionKey, other: &EventId, head: &Head) -> Result<bool, StoreError> {
        let Some(route) =
            head.unfinished_route.as_deref().and_then(|route| serde_json::from_str::<InboundEvent>(route).ok())
        else {
            return Err(StoreError::Corrupt {
                item: "session head",
                id: session.to_string(),
                what: "it names an unfinished event without its route".to_owned(),
            });
        };
        let owner = self.store.write_name();
        // A head of an earlier version does not say where its event stands.
        let unplaced = Position::new(head.unfinished_accepted_at.unwrap_or_default(), "");
        let want = Acquire {
            session,
            event: other,
            accepted_at: head.unfinished_accepted_at.unwrap_or_default(),
            position: head.unfinished_position.as_ref().unwrap_or(&unplaced),
            route: head.unfinished_route.as_deref().unwrap_or_default(),
            owner: &owner,
            lease: self.settings.limits.lease,
            dead_letter: false,
        };
        let Acquired::Mine(lock, head) = self.store.acquire(&want).await? else { return Ok(false) };
        // Before the lock was ours it may have moved on: what counts is the head under the lock.
        if !self.is_too_old(&head) {
            let unstarted = head.unstarted_for(&lock);
            let how = Release { reset_attempts: true, unstarted, ..Release::default() };
            self.store.release(&lock, how).await?;
            return Ok(false);
        }
        let said = match head.step {
            0 => Said::default(),
            _ => {
                let unstarted = head.unstarted_for(&lock);
                journalled(&self.store.journal(session, other).await?, unstarted)
            }
        };
        let messages = response::without_question(&self.settings, said, Failure::TooOld);
        let change = HeadChange {
            tool_calls: head.tool_calls,
            introduced: head.introduced,
            steer_done: head.steer_done(want.position, &[]),
            ask_ended: response::ask_ended(&head, &lock, Ending::Failed(Failure::TooOld)),
            ..HeadChange::default()
        };
        let draft = Draft {
            event_id: other.clone(),
            session: session.clone(),
            generation: head.generation,
            fence: lock.fence,
            first: head.message_count,
            messages,
            outcome: Outcome::Failed { reason: Failure::TooOld },
            usage: Usage::default(),
            calls: Vec::new(),
            owed: response::owed(&change),
            merged: Vec::new(),
            at: self.store.clock().now_ms(),
        };
        let write = async |draft: &Draft| -> Result<Written<_>, StoreError> {
            self.store.commit(draft, &lock, None, &change).await
        };
        match commit(&draft, write).await? {
            Ok(turn) => {
                let (outcome, attempts) = (EventOutcome::Failed, head.attempts);
                journal_line::event(other, Some(session), route.channel, outcome, "too_old", attempts);
                self.tell(&turn, &route).await;
            }
            Err(_) => {
                let unstarted = head.unstarted_for(&lock);
                self.store.release(&lock, Release { unstarted, ..Release::default() }).await?;
            }
        }
        Ok(true)
    }

    /// Sends what a settled event is owed. Its own message is not here to be received again, so a send that fails is
    /// repeated at once; after that only its dead letter, if there is one, can send it.
    async fn tell(&self, turn: &CommittedTurn, route: &InboundEvent) {
        for _ in 0..TRIES {
            match self.dispatcher().dispatch(turn, route).await {
                Ok(()) => return,
                Err(error) => {
                    let (event_id, cause) = (turn.marker().event_id(), chain(&error));
                    tracing::warn!(%event_id, cause, "the answer to event {event_id}, which became too old, was not sent");
                }
            }
        }
    }
}

/// How long an event has made somebody wait: [`Head::waits_since`].
pub(super) fn age(accepted_at: Millis, head: &Head, now: Millis) -> Duration {
    now.since(head.waits_since(accepted_at))
}
