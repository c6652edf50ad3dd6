//! How many events wait, as far as this process knows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use turnlock_clock::Clock;
use turnlock_domain::time::Millis;
use turnlock_queue::Queue;

/// How often a process asks the queue how many events wait.
pub const DEPTH_INTERVAL: Duration = Duration::from_secs(10);

/// The number of waiting events, asked for at most once in [`DEPTH_INTERVAL`]. Clones are one and the same.
#[derive(Debug, Clone, Default)]
pub struct Depth(Arc<Mutex<Asked>>);

#[derive(Debug, Clone, Copy, Default)]
struct Asked {
    at: Option<Millis>,
    waiting: u64,
}

impl Depth {
    /// Whether `limit` events wait already. Who cannot be told lets the event pass.
    pub(super) async fn full(&self, queue: &dyn Queue, limit: u64, clock: &Clock) -> bool {
        self.ask(queue, clock).await;
        self.asked().waiting >= limit
    }

    /// Asks `queue`, if it is time to. Whoever starts may do so before there is an event that would wait for the answer.
    pub async fn ask(&self, queue: &dyn Queue, clock: &Clock) {
        if !self.due(clock.now_ms()) {
            return;
        }
        let waiting = match queue.waiting().await {
            Ok(waiting) => waiting,
            Err(error) => {
                tracing::warn!(%error, "the number of waiting events is not known: events pass");
                0
            }
        };
        self.asked().waiting = waiting;
    }

    /// Whether it is time to ask. Who is told so asks; others use the last answer meanwhile.
    fn due(&self, now: Millis) -> bool {
        let mut asked = self.asked();
        let fresh = asked.at.is_some_and(|at| at <= now && now.since(at) < DEPTH_INTERVAL);
        if !fresh {
            asked.at = Some(now);
        }
        !fresh
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
