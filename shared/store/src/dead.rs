//! What was given up: for the operator's alarm and for redrive. One item an event, with the body as the queue had it, and
//! one small item in a list by time.
//!
//! A queue may hand over the same dead letter twice: the first one is kept. What was sent again is removed
//! ([`Store::remove_dead`]), so that an event that dies once more is kept once more.

use serde::{Deserialize, Serialize};
use turnlock_domain::ids::EventId;
use turnlock_domain::time::Millis;

use crate::error::StoreError;
use crate::item::{from_item, s, to_item};
use crate::request::{Item, Transaction};
use crate::sessions::put;
use crate::write;
use crate::{MARKER_LIFETIME, Store, keys};

/// The most bytes of a body that are kept: what an item holds beside the rest.
pub const MAX_BODY_BYTES: usize = 350 * 1024;

/// An event, or a job, that was given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadItem {
    /// The event; for a job or an outbound event, its own id.
    pub event_id: EventId,
    /// The queue that gave it up.
    pub queue: String,
    /// Why: a short word.
    pub reason: String,
    /// The message as the queue had it. Empty in lists, and where it was larger than [`MAX_BODY_BYTES`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// When.
    pub at: Millis,
    /// How often it was received.
    #[serde(default)]
    pub receive_count: u32,
}

/// What keeping a dead item came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeadPut {
    /// It is kept.
    Kept,
    /// One of that event was kept before, and stays.
    AlreadyThere,
}

impl Store {
    /// Keeps a dead item, unless there is one of its event.
    ///
    /// # Errors
    /// [`StoreError`]; keeping it again is harmless.
    pub async fn put_dead(&self, dead: &DeadItem) -> Result<DeadPut, StoreError> {
        let ttl = Some(dead.at.ttl(MARKER_LIFETIME));
        let listed = DeadItem { body: String::new(), ..dead.clone() };
        let whole = if dead.body.len() > MAX_BODY_BYTES { &listed } else { dead };
        let whole = to_item("dead item", keys::dead_event(&dead.event_id), whole, ttl)?;
        let listed = to_item("dead item", keys::dead(dead.at, &dead.event_id), &listed, ttl)?;
        let actions = vec![put(self.put_absent(whole, self.clock().now_ms())?), put(self.put_over(listed)?)];
        let token = format!("dead {} {} {}", dead.event_id, dead.at.0, self.write_name());
        Ok(match self.transact(actions, &token).await? {
            Transaction::Done => DeadPut::Kept,
            Transaction::Cancelled(_) => DeadPut::AlreadyThere,
        })
    }

    /// What is known of an event that was given up, with its body.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn dead_item(&self, event: &EventId) -> Result<Option<DeadItem>, StoreError> {
        let (pk, sk) = keys::dead_event(event);
        let item = self.get(self.get_item(pk, sk)).await?;
        write::live(item, self.clock().now_ms()).map(from_stored).transpose()
    }

    /// The newest `limit` dead items, newest first, without their bodies.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn dead_items(&self, limit: usize) -> Result<Vec<DeadItem>, StoreError> {
        let request = self
            .query()
            .key_condition_expression("pk = :pk")
            .expression_attribute_values(":pk", s(keys::DEAD))
            .scan_index_forward(false);
        let now = self.clock().now_ms();
        let items = self.query_pages(request, limit).await?;
        items.into_iter().filter_map(|item| write::live(Some(item), now)).map(from_stored).collect()
    }

    /// Removes a dead item, after it was sent again.
    ///
    /// # Errors
    /// [`StoreError`]; removing it again is harmless.
    pub async fn remove_dead(&self, dead: &DeadItem) -> Result<(), StoreError> {
        let keys = [keys::dead_event(&dead.event_id), keys::dead(dead.at, &dead.event_id)];
        let actions: Result<Vec<_>, StoreError> = keys.into_iter().map(|key| self.delete_over(key, None)).collect();
        match self.transact(actions?, &self.write_name()).await? {
            Transaction::Done => Ok(()),
            Transaction::Cancelled(_) => {
                Err(StoreError::corrupt("dead item", &dead.event_id, "refused without a condition"))
            }
        }
    }
}

fn from_stored(item: Item) -> Result<DeadItem, StoreError> {
    from_item("dead item", item)
}
