//! Identities for what brings none: UUIDv7 from our clock and a seeded source of chance, so that a replay repeats them.

use std::sync::{Mutex, PoisonError};

use turnlock_clock::Clock;

/// Makes UUIDs (RFC 9562, version 7), in order of time.
#[derive(Debug)]
pub struct FreshIds {
    clock: Clock,
    random: Mutex<fastrand::Rng>,
}

impl FreshIds {
    /// Ids from `clock` and `seed`; two processes need two seeds.
    #[must_use]
    pub fn new(clock: Clock, seed: u64) -> Self {
        Self { clock, random: Mutex::new(fastrand::Rng::with_seed(seed)) }
    }

    /// A new id.
    pub fn next(&self) -> String {
        let mut random = [0; 10];
        self.random.lock().unwrap_or_else(PoisonError::into_inner).fill(&mut random);
        let at = u64::try_from(self.clock.now_ms().0).unwrap_or_default();
        uuid::Builder::from_unix_timestamp_millis(at, &random).into_uuid().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_repeats_the_same_ids() {
        let at = jiff::Timestamp::from_second(1_760_000_000).unwrap();
        let ids = || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            runtime.block_on(async move {
                let ids = FreshIds::new(Clock::starting_at(at), 7);
                [ids.next(), ids.next()]
            })
        };
        let [one, two] = ids();
        assert_eq!([one.clone(), two.clone()], ids());
        assert_ne!(one, two);
        assert_eq!((one.len(), &one[14..15]), (36, "7"));
    }
}
