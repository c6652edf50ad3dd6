//! The one clock: leases, visibility, rates, signatures and expiry all read it, so that a replay can run an hour in a
//! millisecond and two parts of one process never disagree about the time.
//!
//! A virtual clock follows tokio's own time, which a paused runtime advances; the system clock is the wall clock (on
//! Lambda a monotonic clock stands still while the sandbox is frozen, so it is never the source of a lease).

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use turnlock_domain::time::Millis;

/// Tells the time; cheap to clone.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    System,
    Virtual { start: Timestamp, origin: Instant },
}

impl Clock {
    /// The machine's wall clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that says `start` now and moves with tokio's time. Must be called inside a tokio runtime.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        Self(Source::Virtual { start, origin: Instant::now() })
    }

    /// The current instant.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => Timestamp::now(),
            Source::Virtual { start, origin } => {
                let elapsed = SignedDuration::try_from(origin.elapsed()).unwrap_or(SignedDuration::MAX);
                start.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// The current instant in milliseconds since the Unix epoch: what items and conditions hold.
    #[must_use]
    pub fn now_ms(&self) -> Millis {
        Millis::from(self.now())
    }
}
