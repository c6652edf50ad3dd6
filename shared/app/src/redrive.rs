//! Sends what was given up again, by the operator's wish, after its cause is gone.
//!
//! A message goes back to the queue that gave it up, under a deduplication id of its own: the old one would make the queue
//! accept and drop it for five minutes. An event that is committed runs no second time: one that failed is refused here,
//! since its sender was told so; what any other still owes is sent. Of a reply, the parts that were given up are opened
//! once more; those that are shown stay. What is older than a marker lives is refused: nobody
//! could tell any more whether it is committed.
//!
//! How it fails: an item is removed after its message was sent. If that does not happen, the next redrive sends it again,
//! which its queue, its marker or its ledger recognises.

use std::sync::Arc;
use std::time::Duration;

use turnlock_domain::envelope::{Command, Envelope};
use turnlock_domain::event::OutboundEvent;
use turnlock_domain::time::Millis;
use turnlock_domain::turn::{Job, Outcome};
use turnlock_queue::{NewMessage, Queue, SendError};
use turnlock_store::dead::DeadItem;
use turnlock_store::{LEDGER_LIFETIME, MARKER_LIFETIME, Store, StoreError};

use crate::deliver::rules;
use crate::{dead_letter, send};

/// How long a dead-letter queue keeps a message.
const RETENTION: Duration = Duration::from_secs(14 * 24 * 3600);

/// What a redrive needs.
pub struct Redrive {
    /// The dead items.
    pub store: Store,
    /// Events.
    pub inbound: Arc<dyn Queue>,
    /// Finals and notices.
    pub outbound: Arc<dyn Queue>,
    /// Consolidations.
    pub consolidate: Arc<dyn Queue>,
    /// Memory reviews.
    pub review: Arc<dyn Queue>,
}

/// Why a dead item is not sent again. Trying later does not help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its marker may be gone by now.
    #[error("it is older than {} days: nobody knows any more whether it was answered", MARKER_LIFETIME.as_secs() / 86_400)]
    TooOld,
    /// Its turn is in the history, as one that failed, and its sender was told so: the message has to be sent anew.
    #[error("its sender was told that it failed, and has to send it again")]
    Answered,
    /// A command is about the moment at which it was sent.
    #[error("it is a command, and was answered when it was given up")]
    Command,
    /// Its body is none of ours.
    #[error("it is no message of this version")]
    Unreadable,
    /// It was too large to be kept.
    #[error("its body was too large to be kept")]
    NotKept,
}

/// What became of a dead item.
#[derive(Debug, thiserror::Error)]
pub enum NotSent {
    /// It stays where it is.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Its queue did not take it.
    #[error(transparent)]
    Queue(#[from] SendError),
}

/// The queues a message can go back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Inbound,
    Outbound,
    Consolidate,
    Review,
}

impl Redrive {
    /// The newest `limit` dead items.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list(&self, limit: usize) -> Result<Vec<DeadItem>, StoreError> {
        self.store.dead_items(limit).await
    }

    /// Sends `items` again, the oldest first, and says of each what became of it.
    ///
    /// # Errors
    /// [`StoreError`]; what was sent by then may be sent again by the next redrive.
    pub async fn send(&self, items: Vec<DeadItem>) -> Result<Vec<(DeadItem, Result<(), NotSent>)>, StoreError> {
        let (mut done, mut ready) = (Vec::new(), Vec::new());
        let now = self.store.clock().now_ms();
        for item in items.into_iter().rev() {
            // One that is gone was sent by somebody else meanwhile.
            let Some(item) = self.store.dead_item(&item.event_id).await? else { continue };
            let answered = self.store.marker(&item.event_id).await?.is_some_and(|marker| failed(marker.outcome()));
            let message = if answered { Err(Refusal::Answered) } else { message(&item, now) };
            match message {
                Ok((target, message)) => {
                    if target == Target::Outbound {
                        self.reopen(&item).await?;
                    }
                    ready.push((target, item, message));
                }
                Err(refusal) => done.push((item, Err(refusal.into()))),
            }
        }
        for target in [Target::Inbound, Target::Outbound, Target::Consolidate, Target::Review] {
            let (these, others): (Vec<_>, Vec<_>) = ready.into_iter().partition(|(its, ..)| *its == target);
            ready = others;
            let (items, messages): (Vec<_>, Vec<_>) =
                these.into_iter().map(|(_, item, message)| (item, message)).unzip();
            if items.is_empty() {
                continue;
            }
            for (item, sent) in items.into_iter().zip(self.queue(target).send_all(messages).await) {
                if sent.is_ok() {
                    self.store.remove_dead(&item).await?;
                }
                done.push((item, sent.map_err(NotSent::from)));
            }
        }
        Ok(done)
    }

    /// Opens the ledger of a reply once more. If the reply is not sent after all, the next redrive does it again.
    async fn reopen(&self, item: &DeadItem) -> Result<(), StoreError> {
        match serde_json::from_str::<OutboundEvent>(&item.body) {
            Ok(event) => self.store.reopen_ledger(&rules::ledger_key(&event)).await,
            Err(_) => Ok(()),
        }
    }

    fn queue(&self, target: Target) -> &dyn Queue {
        match target {
            Target::Inbound => &*self.inbound,
            Target::Outbound => &*self.outbound,
            Target::Consolidate => &*self.consolidate,
            Target::Review => &*self.review,
        }
    }
}

fn failed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed { .. })
}

/// The message that a dead item becomes, and where it goes.
fn message(item: &DeadItem, now: Millis) -> Result<(Target, NewMessage), Refusal> {
    let fresh = |at: Millis| if now.since(at) < MARKER_LIFETIME { Ok(()) } else { Err(Refusal::TooOld) };
    fresh(item.at)?;
    if item.body.is_empty() {
        return Err(Refusal::NotKept);
    }
    if let Ok(mut envelope) = serde_json::from_str::<Envelope>(&item.body) {
        fresh(envelope.accepted_at)?;
        let is_reset = matches!(envelope.command, Some(Command::New)) && item.queue != dead_letter::CONTROL;
        if envelope.command.is_some() && !is_reset {
            return Err(Refusal::Command);
        }
        envelope.redrive += 1;
        return Ok((Target::Inbound, send::event_message(&envelope)));
    }
    if let Ok(event) = serde_json::from_str::<OutboundEvent>(&item.body) {
        // It was written to the ledger before it waited among the dead letters, for as long as a queue keeps them.
        if now.since(item.at) >= LEDGER_LIFETIME.saturating_sub(RETENTION) {
            return Err(Refusal::TooOld);
        }
        return Ok((Target::Outbound, send::outbound_message(&event, Some(item.at))));
    }
    match serde_json::from_str::<Job>(&item.body) {
        Ok(job @ Job::Consolidate(_)) => Ok((Target::Consolidate, send::job_message(&job, None))),
        Ok(job @ Job::ReviewMemory(_)) => Ok((Target::Review, send::job_message(&job, None))),
        Err(_) => Err(Refusal::Unreadable),
    }
}
