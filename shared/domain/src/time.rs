//! Typed time units: one number compared with a field of another unit is a compile error.

use std::ops::{Add, Sub};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch: leases, expiries and every condition on time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

/// Seconds since the Unix epoch: DynamoDB's TTL attribute, and nothing else. TTL is garbage collection only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seconds(pub i64);

impl Millis {
    /// The time from `earlier` to `self`; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The same instant as a timestamp; out-of-range values are clamped.
    #[must_use]
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_millisecond(self.0).unwrap_or(if self.0 < 0 { Timestamp::MIN } else { Timestamp::MAX })
    }

    /// The TTL attribute of an item that may be collected `lifetime` after this instant.
    #[must_use]
    pub fn ttl(self, lifetime: Duration) -> Seconds {
        Seconds((self + lifetime).0.div_euclid(1000))
    }
}

impl From<Timestamp> for Millis {
    fn from(timestamp: Timestamp) -> Self {
        Self(timestamp.as_millisecond())
    }
}

impl Add<Duration> for Millis {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Duration> for Millis {
    type Output = Self;
    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case ddb-sec-vs-ms: one `now`, two units, both right.
    #[test]
    fn ddb_sec_vs_ms() {
        let now = Millis(1_760_000_001_000);
        assert!(Millis(1_760_000_000_000) < now);
        assert_eq!(now.ttl(Duration::ZERO), Seconds(1_760_000_001));
        assert!(Seconds(1_760_000_000) < now.ttl(Duration::ZERO));
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Millis(i64::MAX) + Duration::MAX, Millis(i64::MAX));
        assert_eq!(Millis(5).since(Millis(9)), Duration::ZERO);
    }
}
