//! A record's visibility as this worker knows it: by its own monotonic clock, counted from before the request, so that
//! it never believes to hold a record longer than the queue does.

use std::time::Duration;

use tokio::time::Instant;
use turnlock_queue::{MAX_VISIBILITY, Queue, Record};

use crate::admit::whole_seconds;

/// How long a record is kept out of sight at a time: whoever takes over from a dead worker waits no longer than this.
pub(super) const VISIBILITY: Duration = Duration::from_secs(90);
/// What must be left of it when a platform call starts: the call, and the write of its result.
pub(super) const CALL_MARGIN: Duration = Duration::from_secs(30);

/// The record is not ours any more, nobody knows, or there is no time left for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended;

/// A record in our hands.
pub(super) struct Hold<'a> {
    queue: &'a dyn Queue,
    pub(super) record: &'a Record,
    until: Instant,
    /// When the invocation ends, and whoever works on the record with it.
    deadline: Instant,
}

impl<'a> Hold<'a> {
    /// Takes the record out of sight; until then nothing is known about how long it is ours.
    pub(super) async fn take(queue: &'a dyn Queue, record: &'a Record, deadline: Instant) -> Self {
        let mut hold = Self { queue, record, until: Instant::now(), deadline };
        // An ended handle shows again, and is dealt with, where the record is worked on.
        let _ = hold.renew().await;
        hold
    }

    /// Whether a call that starts now ends before the invocation does.
    pub(super) fn has_time(&self) -> bool {
        self.deadline.saturating_duration_since(Instant::now()) >= CALL_MARGIN
    }

    /// Makes sure that the record stays ours, and we stay alive, for [`CALL_MARGIN`].
    pub(super) async fn for_a_call(&mut self) -> Result<(), Ended> {
        if !self.has_time() {
            return Err(Ended);
        }
        let left = self.until.saturating_duration_since(Instant::now());
        if left >= CALL_MARGIN { Ok(()) } else { self.renew().await }
    }

    /// Asks the queue for the whole time anew.
    pub(super) async fn renew(&mut self) -> Result<(), Ended> {
        let asked_at = Instant::now();
        match self.queue.set_visibility(&self.record.receipt, VISIBILITY).await {
            Ok(()) => {
                self.until = asked_at + VISIBILITY;
                Ok(())
            }
            Err(error) => {
                tracing::warn!(message_id = self.record.message_id, %error,
                    "record {} is not known to be ours", self.record.message_id);
                Err(Ended)
            }
        }
    }

    /// Gives the record back, to come again after `visibility`. If that fails it comes when its time is over.
    pub(super) async fn give_back(&self, visibility: Duration) {
        let visibility = Duration::from_secs(whole_seconds(visibility)).min(MAX_VISIBILITY);
        if let Err(error) = self.queue.set_visibility(&self.record.receipt, visibility).await {
            tracing::debug!(message_id = self.record.message_id, %error,
                "record {} comes back by itself", self.record.message_id);
        }
    }
}
