//! How a record goes back: its visibility first, and on the head what this receive was, so that waiting is not taken for
//! dying. Whoever is received too often beyond that kills its workers, and is given up.

use std::time::Duration;

use turnlock_store::StoreError;
use turnlock_store::sessions::{Head, Lock, Release};

use super::{Agent, Handled, Receive, album};
use crate::admit::chain;
use crate::dead_letter;

/// From the how-manieth receive on a busy message is noted on the head, so that waiting is not taken for dying.
const NOTED_FROM: u32 = 8;
/// How many receives beyond the noted ones a message may have.
const UNNOTED_RECEIVES: u32 = 10;
/// The longest a message that failed sleeps.
pub(super) const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// How long a message sleeps while the table cannot be reached, after the first few tries.
const OUTAGE_BACKOFF: Duration = Duration::from_secs(300);
/// The same while an album may still be gathered.
const GATHERING_BACKOFF: Duration = Duration::from_secs(8);

impl Agent {
    /// Receives that nothing accounts for: workers that died before they could note anything.
    pub(super) fn unaccounted(&self, receive: &Receive<'_>, head: &Head) -> bool {
        let noted = head.noted(&receive.envelope.event.event_id);
        let known = noted.saturating_add(UNNOTED_RECEIVES).saturating_add(receive.gathering);
        !receive.dead_letter && receive.record.receive_count > known
    }

    pub(super) async fn too_many_receives(&self, receive: &Receive<'_>, lock: Option<&Lock>) -> Handled {
        let given_up =
            dead_letter::give_up(&*self.dead_letters, (receive.queue, dead_letter::INBOUND), receive.record).await;
        if let (Handled::Done, Some(lock)) = (given_up, lock) {
            let how = Release { receives: Some(receive.record.receive_count), ..Release::default() };
            if let Err(error) = self.store.release(lock, how).await {
                tracing::warn!(event_id = %lock.event, cause = chain(&error), "a lock was not released");
            }
        }
        given_up
    }

    /// Somebody else is at it: back with what is left of the lease. That is no attempt.
    pub(super) async fn busy(&self, receive: &Receive<'_>, after: Duration, head: &Head) -> Handled {
        let event_id = &receive.envelope.event.event_id;
        if self.unaccounted(receive, head) {
            return self.too_many_receives(receive, None).await;
        }
        if receive.record.receive_count >= NOTED_FROM && !receive.dead_letter {
            let noted = self.store.note_receives(&receive.session, event_id, receive.record.receive_count).await;
            if let Err(error) = noted {
                tracing::warn!(%event_id, cause = chain(&error), "a busy receive was not noted");
            }
        }
        self.back(receive, after).await
    }

    pub(super) async fn store_failed(&self, receive: &Receive<'_>, error: &StoreError) -> Handled {
        let event_id = &receive.envelope.event.event_id;
        tracing::warn!(%event_id, session = %receive.session, cause = chain(error), "a turn was handed back before it began");
        // Nothing can be noted while the table is away: few receives are spent on an outage, else an innocent message
        // would be taken for one that kills its workers. Those of an album that is being gathered were not.
        let age = self.store.clock().now_ms().since(receive.envelope.accepted_at);
        let wait = match receive.record.receive_count {
            times @ 0..=5 => backoff(times),
            _ if receive.envelope.album && age < album::LONGEST => GATHERING_BACKOFF,
            _ => OUTAGE_BACKOFF,
        };
        self.back(receive, wait).await
    }

    /// Sets the visibility and reports the record as unfinished.
    pub(super) async fn back(&self, receive: &Receive<'_>, after: Duration) -> Handled {
        if let Err(error) = receive.queue.set_visibility(&receive.record.receipt, after).await {
            tracing::debug!(event_id = %receive.envelope.event.event_id, %error, "the visibility was not set");
        }
        Handled::GivenBack(after)
    }

    /// Gives the lock up as `how` says, and notes this receive. The lock first: while the record is hidden nobody else can
    /// take its group, so whoever receives it next finds the lock free.
    pub(super) async fn hand_back(&self, receive: &Receive<'_>, lock: &Lock, after: Duration, how: Release) -> Handled {
        // A dead letter's receives are counted by another queue.
        let receives = (!receive.dead_letter).then_some(receive.record.receive_count);
        let how = Release { receives, ..how };
        if let Err(error) = self.store.release(lock, how).await {
            tracing::warn!(event_id = %lock.event, cause = chain(&error), "a lock was not released; it ends with its lease");
        }
        self.back(receive, after).await
    }
}

/// How long a message sleeps after its `times`-th failure: 1, 2, 4 … s.
pub(super) fn backoff(times: u32) -> Duration {
    Duration::from_secs(1 << times.saturating_sub(1).min(6)).min(LONGEST_BACKOFF)
}
