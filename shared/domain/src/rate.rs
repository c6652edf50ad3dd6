//! The arithmetic of the session rate: GCRA, the "leaky bucket as a meter", on whole milliseconds.
//!
//! A bucket is one number, the *theoretical arrival time* (`tat`): when the events admitted so far would have come if
//! they had been evenly spaced. An event is admitted while that time is less than a burst ahead of the clock. The module
//! decides and stores nothing; nothing in it can fail or overflow.
//!
//! The spacing is rounded up to a whole millisecond, so a rate never admits more than it says; above 60 000 events a
//! minute it is one event a millisecond.

use std::time::Duration;

use crate::time::Millis;

const MINUTE_MS: i64 = 60_000;

/// How far beyond a full burst a stored `tat` may lie before it is taken for the trace of a clock that was wrong.
/// Clocks of workers differ by less, so their small differences never open a bucket.
const SKEW_MS: i64 = MINUTE_MS;

/// How often a session may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Events a minute in the long run; 0 switches the limit off.
    pub rpm: u32,
    /// Events at once after a silence; 0 counts as 1.
    pub burst: u32,
}

/// Whether an event may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    Allowed {
        /// The bucket's new theoretical arrival time, to be stored in place of the one that was read.
        tat: Millis,
    },
    /// It may not; the bucket stays as it is.
    Limited {
        /// When the next one may; never zero.
        retry_after: Duration,
    },
}

impl Default for Rate {
    fn default() -> Self {
        Self { rpm: 20, burst: 5 }
    }
}

impl Rate {
    /// Whether there is no limit. Nothing has to be stored then.
    #[must_use]
    pub fn is_off(self) -> bool {
        self.rpm == 0
    }

    /// What to store when the bucket turns out to be idle, so that one conditional update is enough: it sets this `tat`
    /// if none is stored or the stored one is not later than `now`. If that condition fails, read the bucket and
    /// [`decide`].
    #[must_use]
    pub fn idle_tat(self, now: Millis) -> Millis {
        Millis(now.0.saturating_add(self.spacing_ms()))
    }

    /// How many events one burst can hold: the number of event ids a bucket has to remember to recognise a redelivery.
    #[must_use]
    pub fn burst_events(self) -> usize {
        usize::try_from(self.burst.max(1)).unwrap_or(usize::MAX)
    }

    fn spacing_ms(self) -> i64 {
        match i64::from(self.rpm) {
            0 => 0,
            rpm => (MINUTE_MS + rpm - 1) / rpm,
        }
    }

    /// How far the `tat` may be ahead of the clock for an event still to pass.
    fn tolerance_ms(self) -> i64 {
        // At most (2^32 - 2) * 60 000: fits.
        (i64::from(self.burst.max(1)) - 1) * self.spacing_ms()
    }
}

/// Decides about one event at `now` by the bucket's stored `tat` (`None`: no bucket).
///
/// A clock that goes backwards makes the bucket stricter for as long as it is behind; a `tat` that no clock of today can
/// have made (the clock was far ahead, or the rate was much lower) counts as no bucket, so that nobody is muted for hours.
#[must_use]
pub fn decide(rate: Rate, tat: Option<Millis>, now: Millis) -> Decision {
    if rate.is_off() {
        return Decision::Allowed { tat: tat.unwrap_or(now) };
    }
    let (spacing, tolerance) = (rate.spacing_ms(), rate.tolerance_ms());
    let latest = now.0.saturating_add(tolerance + spacing + SKEW_MS);
    let tat = tat.map(|tat| tat.0).filter(|tat| *tat <= latest).unwrap_or(now.0).max(now.0);
    let ahead = tat.saturating_sub(now.0);
    match u64::try_from(ahead - tolerance) {
        Ok(wait) if wait > 0 => Decision::Limited { retry_after: Duration::from_millis(wait) },
        _ => Decision::Allowed { tat: Millis(tat.saturating_add(spacing)) },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Millis = Millis(1_760_000_000_000);

    /// The number of events admitted at each of `times`, from an empty bucket.
    fn admitted(rate: Rate, times: &[i64]) -> Vec<i64> {
        let mut bucket = None;
        let mut admitted = Vec::new();
        for time in times {
            if let Decision::Allowed { tat } = decide(rate, bucket, Millis(*time)) {
                bucket = Some(tat);
                admitted.push(*time);
            }
        }
        admitted
    }

    #[test]
    fn a_burst_passes_and_the_next_waits_for_one_spacing() {
        let rate = Rate { rpm: 20, burst: 5 };
        let mut bucket = None;
        for _ in 0..5 {
            let Decision::Allowed { tat } = decide(rate, bucket, NOW) else { panic!("the burst passes") };
            bucket = Some(tat);
        }
        assert_eq!(decide(rate, bucket, NOW), Decision::Limited { retry_after: Duration::from_secs(3) });
        let later = Millis(NOW.0 + 2_999);
        assert_eq!(decide(rate, bucket, later), Decision::Limited { retry_after: Duration::from_millis(1) });
        assert!(matches!(decide(rate, bucket, Millis(NOW.0 + 3_000)), Decision::Allowed { .. }));
    }

    #[test]
    fn the_spacing_is_rounded_up() {
        for (rpm, spacing) in [(1, 60_000), (7, 8_572), (20, 3_000), (60_000, 1), (u32::MAX, 1)] {
            assert_eq!(Rate { rpm, burst: 1 }.idle_tat(Millis(0)), Millis(spacing));
        }
    }

    #[test]
    fn zero_switches_it_off() {
        let rate = Rate { rpm: 0, burst: 1 };
        assert!(rate.is_off());
        assert_eq!(admitted(rate, &[NOW.0; 100]).len(), 100);
    }

    #[test]
    fn a_burst_of_zero_is_a_burst_of_one() {
        let rate = Rate { rpm: 60, burst: 0 };
        assert_eq!(admitted(rate, &[0, 0, 999, 1000, 1000, 2000]), [0, 1000, 2000]);
        assert_eq!(rate.burst_events(), 1);
    }

    #[test]
    fn the_idle_update_is_what_the_decision_would_be() {
        let rate = Rate::default();
        for stored in [None, Some(Millis(NOW.0 - 5_000)), Some(NOW)] {
            assert_eq!(decide(rate, stored, NOW), Decision::Allowed { tat: rate.idle_tat(NOW) });
        }
    }

    #[test]
    fn a_clock_that_jumps_back_neither_opens_the_bucket_nor_mutes_for_long() {
        let rate = Rate { rpm: 20, burst: 1 };
        let bucket = Some(rate.idle_tat(NOW));
        let limited = decide(rate, bucket, Millis(NOW.0 - 50));
        assert_eq!(limited, Decision::Limited { retry_after: Duration::from_millis(3_050) });
        assert!(matches!(decide(rate, bucket, Millis(NOW.0 - 3_600_000)), Decision::Allowed { .. }));
    }

    #[test]
    fn extremes_do_not_overflow() {
        for rpm in [0, 1, 7, 60_001, u32::MAX] {
            for burst in [0, 1, u32::MAX] {
                for now in [i64::MIN, -1, 0, i64::MAX] {
                    for tat in [None, Some(Millis(i64::MIN)), Some(Millis(i64::MAX))] {
                        let rate = Rate { rpm, burst };
                        let _ = (decide(rate, tat, Millis(now)), rate.idle_tat(Millis(now)));
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn no_window_admits_more_than_the_rate(
            rpm in prop_oneof![1u32..100, Just(60_000u32), Just(u32::MAX)],
            burst in 0u32..8,
            steps in prop::collection::vec(0i64..4_000, 1..120),
        ) {
            let times: Vec<i64> = steps.iter().scan(0, |time, step| { *time += step; Some(*time) }).collect();
            let passed = admitted(Rate { rpm, burst }, &times);
            for from in 0..passed.len() {
                for to in from..passed.len() {
                    let window = passed[to] - passed[from];
                    let most = i64::from(burst.max(1)) + i64::from(rpm).saturating_mul(window) / MINUTE_MS + 1;
                    prop_assert!((to - from + 1) as i64 <= most);
                }
            }
        }

        #[test]
        fn who_waits_as_told_is_admitted(rpm in 1u32..1000, burst in 0u32..8, ahead in 0i64..500_000) {
            let rate = Rate { rpm, burst };
            let bucket = Some(Millis(NOW.0 + ahead));
            if let Decision::Limited { retry_after } = decide(rate, bucket, NOW) {
                let at_its_time = matches!(decide(rate, bucket, NOW + retry_after), Decision::Allowed { .. });
                prop_assert!(at_its_time);
            }
        }
    }
}
