//! The lease of a running turn: how long it still holds by our own monotonic clock, and the renewal that runs beside the
//! work. The renewal is never cut off in the middle of a request: what comes after the work finds it settled.

use std::sync::Mutex;
use std::time::Duration;

use tokio::pin;
use tokio::time::{Instant, sleep};
use turnlock_queue::{Queue, Record};
use turnlock_store::Store;
use turnlock_store::sessions::{Lock, Renewed};

/// How long a received record is hidden from others; renewed with the lease.
pub(super) const VISIBILITY: Duration = Duration::from_secs(90);
/// How often the lease is renewed.
const RENEWAL: Duration = Duration::from_secs(20);
/// No tool starts when less than this is left of the lease.
pub(super) const TOOL_MARGIN: Duration = Duration::from_secs(15);

/// The lease as this worker knows it.
#[derive(Debug)]
pub(super) struct Lease {
    length: Duration,
    until: Mutex<Instant>,
}

impl Lease {
    /// A lease that was asked for at `asked_at`: it may have begun any time after.
    pub(super) fn new(length: Duration, asked_at: Instant) -> Self {
        Self { length, until: Mutex::new(asked_at + length) }
    }

    /// How long it was asked for.
    pub(super) fn length(&self) -> Duration {
        self.length
    }

    /// Notes a renewal that was asked for at `asked_at` and granted.
    pub(super) fn renewed(&self, asked_at: Instant) {
        if let Ok(mut until) = self.until.lock() {
            *until = (*until).max(asked_at + self.length);
        }
    }

    /// How long it still holds for sure.
    pub(super) fn left(&self) -> Duration {
        self.until.lock().map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }
}

/// The lock went to somebody else while the work ran.
#[derive(Debug)]
pub(super) struct LeaseLost;

/// Runs `work` and renews the lease and the record's visibility beside it. When the work is done the renewal is awaited.
pub(super) async fn renewing<T>(
    work: impl Future<Output = T>,
    lease: &Lease,
    (store, lock): (&Store, &Lock),
    (queue, record): (&dyn Queue, &Record),
) -> Result<T, LeaseLost> {
    pin!(work);
    loop {
        tokio::select! { biased;
            done = &mut work => return Ok(done),
            () = sleep(RENEWAL) => {}
        }
        let renewal = renew(lease, (store, lock), (queue, record));
        pin!(renewal);
        let kept = tokio::select! { biased;
            done = &mut work => {
                renewal.await;
                return Ok(done);
            }
            kept = &mut renewal => kept,
        };
        if !kept {
            return Err(LeaseLost);
        }
    }
}

/// Whether the lock may still be ours: a request that failed is tried again at the next renewal, and the margins keep
/// us from acting on a lease that ran out in between.
async fn renew(lease: &Lease, (store, lock): (&Store, &Lock), (queue, record): (&dyn Queue, &Record)) -> bool {
    let asked_at = Instant::now();
    let (renewed, hidden) =
        tokio::join!(store.renew(lock, lease.length), queue.set_visibility(&record.receipt, VISIBILITY));
    if let Err(error) = hidden {
        tracing::debug!(event_id = %lock.event, %error, "the visibility was not renewed");
    }
    match renewed {
        Ok(Renewed::Kept(_)) => {
            lease.renewed(asked_at);
            true
        }
        Ok(Renewed::Lost) => false,
        Err(error) => {
            tracing::warn!(event_id = %lock.event, %error, "the lease was not renewed");
            lease.left() > Duration::ZERO
        }
    }
}
