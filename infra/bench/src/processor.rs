//! The processor time of this process, all threads together.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How much processor time this process has used since it began.
#[must_use]
pub fn time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
