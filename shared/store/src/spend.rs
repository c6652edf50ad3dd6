//! What the models cost in a day, UTC, for the one cap of a deployment: a counter in [`SHARDS`] items, so that many workers
//! add to it at once. It is never part of a turn's commit: whoever adds does so behind the calls.
//!
//! An addition whose answer was lost is sent again and recognised, unless another worker added to the same item in
//! between: then it counts twice. The cap errs on the side that costs less.

use std::time::Duration;

use tokio::time::Instant;
use turnlock_domain::time::Millis;

use crate::error::StoreError;
use crate::item::{n, s};
use crate::request::{Conditional, Item};
use crate::{Store, keys};

/// How many items a day's counter has.
pub const SHARDS: u64 = 8;
/// How long a day's counter is kept.
const SPENT_LIFETIME: Duration = Duration::from_secs(40 * 24 * 3600);
/// How long a process goes by what it read.
const READ_EVERY: Duration = Duration::from_secs(10);

/// What a process knows of a day.
#[derive(Debug)]
pub(crate) struct Spent {
    day: String,
    /// In millionths of the currency: what was read, and what this process has added since.
    sum: u64,
    read_at: Instant,
}

impl Store {
    /// What today has cost, in millionths of the currency. Read at most every ten seconds; what this process adds itself it
    /// knows at once.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn spent_today(&self) -> Result<u64, StoreError> {
        let (day, now) = (day(self.clock().now_ms()), Instant::now());
        if let Some(spent) =
            self.spent.lock().ok().and_then(|spent| spent.as_ref().and_then(|spent| spent.on(&day, now)))
        {
            return Ok(spent);
        }
        let shards = (0..SHARDS).map(|shard| keys::spent(&day, shard)).collect();
        let sum = self.batch_get(shards).await?.iter().map(amount).fold(0, u64::saturating_add);
        if let Ok(mut spent) = self.spent.lock() {
            *spent = Some(Spent { day, sum, read_at: now });
        }
        Ok(sum)
    }

    /// Adds `cost`, in millionths of the currency, to what today has cost.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn add_spent(&self, cost: u64) -> Result<(), StoreError> {
        let now = self.clock().now_ms();
        let day = day(now);
        let chance = self.jitter.lock().map_or(0, |mut random| random.u64(..));
        let (pk, sk) = keys::spent(&day, chance % SHARDS);
        let request = self
            .update_item(pk, sk)
            .update_expression("SET added = :chance, expires_at = :ttl ADD cost :cost")
            .condition_expression("attribute_not_exists(added) OR added <> :chance")
            .expression_attribute_values(":chance", s(chance.to_string()))
            .expression_attribute_values(":cost", n(cost))
            .expression_attribute_values(":ttl", n(now.ttl(SPENT_LIFETIME).0));
        match self.update(request).await? {
            // The condition fails for what an earlier sending of this request has added.
            Conditional::Met(_) | Conditional::Failed(_) => {}
        }
        if let Ok(mut spent) = self.spent.lock()
            && let Some(spent) = spent.as_mut().filter(|spent| spent.day == day)
        {
            spent.sum = spent.sum.saturating_add(cost);
        }
        Ok(())
    }
}

impl Spent {
    /// The sum, if it is of this day and new enough.
    fn on(&self, day: &str, now: Instant) -> Option<u64> {
        (self.day == day && now.saturating_duration_since(self.read_at) < READ_EVERY).then_some(self.sum)
    }
}

/// The day's name: its date, UTC.
fn day(now: Millis) -> String {
    now.timestamp().strftime("%Y-%m-%d").to_string()
}

/// What an item has counted; more than can be counted is as much as can be.
fn amount(item: &Item) -> u64 {
    let number = item.get("cost").and_then(|value| value.as_n().ok());
    number.map_or(0, |number| number.parse().unwrap_or(u64::MAX))
}
