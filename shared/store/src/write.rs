//! What conditional writes of several modules share: the name of a write, and time beside TTL.
//!
//! A write whose answer was lost is sent again and then fails its own condition. Where two writers may write the same
//! value, the item carries the name of its last write, so that each recognises its own in the old image. DynamoDB keeps
//! an expired item until it finds the time to collect it, so whether an item is there is asked of the time as well.

use std::time::Duration;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::builders::UpdateBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, Delete, Put, TransactWriteItem, Update};
use turnlock_domain::time::{Millis, Seconds};

use crate::error::StoreError;
use crate::item::n;
use crate::request::{Item, Reason};
use crate::{Store, keys};

/// The condition of an item that is not there, or no longer: needs [`SECOND`].
pub(crate) const ABSENT: &str = "(attribute_not_exists(pk) OR expires_at <= :second)";
/// The placeholder of the current second in [`ABSENT`].
pub(crate) const SECOND: &str = ":second";

/// The current second, as [`SECOND`] takes it: TTL's unit, and only compared with a TTL.
pub(crate) fn second(now: Millis) -> AttributeValue {
    n(now.ttl(Duration::ZERO).0)
}

/// The item, unless its lifetime is over.
pub(crate) fn live(item: Option<Item>, now: Millis) -> Option<Item> {
    item.filter(|item| expiry(item).is_none_or(|expiry| expiry > now.ttl(Duration::ZERO)))
}

fn expiry(item: &Item) -> Option<Seconds> {
    item.get(keys::TTL)?.as_n().ok()?.parse().ok().map(Seconds)
}

/// The number of an attribute.
pub(crate) fn number<T: std::str::FromStr>(item: &Item, name: &str) -> Option<T> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

/// The reason at `index` of a cancelled transaction.
pub(crate) fn reason(reasons: &mut [Reason], index: usize) -> Reason {
    reasons.get_mut(index).map(std::mem::take).unwrap_or_default()
}

/// A transaction's action that could not be put together.
fn unbuilt(error: BuildError) -> StoreError {
    StoreError::Refused { operation: "TransactWriteItems", source: error.into() }
}

impl Store {
    /// A name for one write: another for every call, the same for all sendings of it.
    pub fn write_name(&self) -> String {
        let random = self.jitter.lock().map_or(0, |mut random| random.u128(..));
        format!("{random:032x}")
    }

    /// Puts an item into a transaction, whether there is one or not.
    pub(crate) fn put_over(&self, item: Item) -> Result<Put, StoreError> {
        Put::builder().table_name(&*self.table).set_item(Some(item)).build().map_err(unbuilt)
    }

    /// Puts an item into a transaction: refused if there is one whose lifetime is not over.
    pub(crate) fn put_absent(&self, item: Item, now: Millis) -> Result<Put, StoreError> {
        Put::builder()
            .table_name(&*self.table)
            .set_item(Some(item))
            .condition_expression(ABSENT)
            .expression_attribute_values(SECOND, second(now))
            .build()
            .map_err(unbuilt)
    }

    /// Deletes an item in a transaction; `condition` may be what must hold of it.
    pub(crate) fn delete_over(&self, key: keys::Key, condition: Option<&str>) -> Result<TransactWriteItem, StoreError> {
        let delete = Delete::builder()
            .table_name(&*self.table)
            .key(keys::PK, AttributeValue::S(key.0))
            .key(keys::SK, AttributeValue::S(key.1))
            .set_condition_expression(condition.map(str::to_owned))
            .build()
            .map_err(unbuilt)?;
        Ok(TransactWriteItem::builder().delete(delete).build())
    }

    /// The start of an update in a transaction.
    pub(crate) fn update_over(&self, key: keys::Key, expression: &str) -> UpdateBuilder {
        Update::builder()
            .table_name(&*self.table)
            .key(keys::PK, AttributeValue::S(key.0))
            .key(keys::SK, AttributeValue::S(key.1))
            .update_expression(expression)
    }

    /// The end of [`Store::update_over`].
    pub(crate) fn built(update: UpdateBuilder) -> Result<Update, StoreError> {
        update.build().map_err(unbuilt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case ddb-sec-vs-ms: the TTL is in seconds, every other time in milliseconds.
    #[test]
    fn ddb_sec_vs_ms() {
        let item = |expires_at: i64| Some(Item::from([(keys::TTL.to_owned(), n(expires_at))]));
        let now = Millis(1_760_000_001_000);
        assert!(live(item(1_760_000_000), now).is_none());
        assert!(live(item(1_760_000_001), now).is_none(), "an item ends with its last second, as in ABSENT");
        assert!(live(item(1_760_000_002), now).is_some());
        assert!(live(Some(Item::new()), now).is_some(), "no TTL, no end");
        assert_eq!(second(now), n(1_760_000_001));
    }
}
