//! The one cap on what all models together may cost in a day, UTC: looked at before the first call of a turn's invocation
//! and before every call of a job, counted behind them. Calls that run when the cap is reached end, so a day costs more
//! than its cap by what was under way: at most what every worker asks for in one invocation. An invocation that dies takes
//! its own count along.
//!
//! Without a cap nothing is read and nothing is counted. A counter that cannot be read stops nobody: an outage of the table
//! ends turns by itself.

use std::time::Duration;

use turnlock_domain::time::Millis;
use turnlock_store::Store;

use crate::admit::chain;

const DAY_MS: i64 = 24 * 3600 * 1000;

/// Whether today has cost `cap`, in millionths of the currency, or more.
pub(crate) async fn is_reached(store: &Store, cap: Option<u64>) -> bool {
    let Some(cap) = cap else { return false };
    match store.spent_today().await {
        Ok(spent) => spent >= cap,
        Err(error) => {
            tracing::warn!(
                cause = chain(&error),
                "what today has cost cannot be read; the models are asked all the same"
            );
            false
        }
    }
}

/// Counts `cost` as today's, if there is a cap.
pub(crate) async fn add(store: &Store, cap: Option<u64>, cost: u64) {
    if cap.is_none() || cost == 0 {
        return;
    }
    if let Err(error) = store.add_spent(cost).await {
        tracing::warn!(cost, cause = chain(&error), "a cost was not counted");
    }
}

/// How long the day of `now` still is.
pub(crate) fn left_of_day(now: Millis) -> Duration {
    Duration::from_millis((DAY_MS - now.0.rem_euclid(DAY_MS)).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_at_midnight_utc() {
        let left = |time: &str| left_of_day(time.parse::<jiff::Timestamp>().expect("a time").into()).as_secs();
        assert_eq!(left("2026-01-05T00:00:00Z"), 86_400);
        assert_eq!(left("2026-01-05T23:59:59Z"), 1);
        assert_eq!(left("2026-01-05T09:30:00Z"), 52_200);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cap_is_reached_by_what_was_added_and_a_counter_that_cannot_be_read_stops_nobody() {
        let clock = turnlock_clock::Clock::starting_at("2026-01-05T09:00:00Z".parse().expect("a time"));
        let database = turnlock_embedded::EmbeddedDynamoDb::memory().expect("a database");
        let store = Store::embedded(database.http_client(), "turnlock", clock, 1);
        assert!(!is_reached(&store, Some(0)).await, "there is no table");
        add(&store, Some(10), 5).await;
        store.create_table().await.expect("a table");
        for (cost, cap, want) in [(9, Some(10), false), (0, Some(10), false), (1, Some(10), true), (1, None, false)] {
            add(&store, cap, cost).await;
            assert_eq!(is_reached(&store, cap).await, want, "{cost}");
        }
        assert_eq!(store.spent_today().await.expect("read"), 10, "without a cap nothing is counted");
    }
}
