//! Albums: several messages of a platform that a person sent as one. Ingress gathers the parts in one item, in whatever
//! order they come; the turn closes it once it has been quiet, and every later look finds the same parts.
//!
//! Gathering and closing are one conditional update each, so a part is either in the album that the turn reads or late,
//! and told so. Nothing here depends on the item's lifetime: one that outlives it takes parts and closes as before.

use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue, ReturnValuesOnConditionCheckFailure};
use serde::{Deserialize, Serialize};
use turnlock_domain::event::ContentBlock;
use turnlock_domain::ids::EventId;
use turnlock_domain::time::Millis;

use crate::error::StoreError;
use crate::item::{from_item, json_fault, ms, n, s};
use crate::request::{Conditional, Item};
use crate::{MARKER_LIFETIME, Store, keys};

/// The most parts of an album: twice as many as platforms send, so that none of theirs is left out.
pub const MAX_PARTS: usize = 20;
/// The most bytes of a part's content; all parts together fit into an item.
pub const MAX_PART: usize = 16 * 1024;
/// How long parts are kept that were said to somebody else: much longer than the part for us is behind them.
const UNADDRESSED_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// A message of an album.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The message, as an event of its own.
    pub event: EventId,
    /// Its place among the parts: the platform's number of the message.
    pub number: i64,
    /// What it holds.
    pub content: ContentBlocks,
    /// Whether it is for us by itself. Parts that are not are kept for one that is, and not for long.
    pub addressed: bool,
}

/// What gathering a part came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gathered {
    /// It is in the album, which is open.
    Kept,
    /// It is in the album, whose turn has begun.
    Taken,
    /// The album's turn began without it.
    Late,
    /// The album has no room for it.
    NoRoom,
}

/// What one message holds.
pub type ContentBlocks = Vec<ContentBlock>;

/// What closing an album came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Closed {
    /// These are its parts, in order, now and whenever it is asked for again.
    Whole(Vec<ContentBlocks>),
    /// Its last part is too new: ask again after this.
    NotQuiet(Duration),
    /// There is none.
    Unknown,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Album {
    events: Vec<String>,
    parts: Vec<Stored>,
    last_at: Millis,
    closed_at: Option<Millis>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Stored {
    number: i64,
    /// JSON.
    content: String,
}

impl Store {
    /// Puts a part into `album`, unless it is there or the album is closed.
    ///
    /// # Errors
    /// [`StoreError`]; gathering it again is harmless.
    pub async fn gather(&self, album: &EventId, part: &Part, now: Millis) -> Result<Gathered, StoreError> {
        let content = serde_json::to_string(&part.content)
            .map_err(|error| StoreError::corrupt("album part", &part.event, json_fault(&error)))?;
        if content.len() > MAX_PART {
            return Ok(Gathered::NoRoom);
        }
        let stored = serde_dynamo::to_attribute_value(Stored { number: part.number, content })
            .map_err(|_| StoreError::corrupt("album part", &part.event, "it cannot be written"))?;
        let (ttl, lifetime) = if part.addressed {
            (":ttl", MARKER_LIFETIME)
        } else {
            ("if_not_exists(expires_at, :ttl)", UNADDRESSED_LIFETIME)
        };
        let (pk, sk) = keys::album(album);
        let request = self
            .update_item(pk, sk)
            .update_expression(format!(
                "SET events = list_append(if_not_exists(events, :none), :events), \
                 parts = list_append(if_not_exists(parts, :none), :parts), last_at = :now, expires_at = {ttl}"
            ))
            .condition_expression(
                "attribute_not_exists(closed_at) AND (attribute_not_exists(events) \
                 OR (size(events) < :most AND NOT contains(events, :event)))",
            )
            .expression_attribute_values(":none", AttributeValue::L(Vec::new()))
            .expression_attribute_values(":events", AttributeValue::L(vec![s(part.event.as_str())]))
            .expression_attribute_values(":parts", AttributeValue::L(vec![stored]))
            .expression_attribute_values(":now", ms(now))
            .expression_attribute_values(":ttl", n(now.ttl(lifetime).0))
            .expression_attribute_values(":most", n(MAX_PARTS))
            .expression_attribute_values(":event", s(part.event.as_str()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let Conditional::Failed(old) = self.update(request).await? else { return Ok(Gathered::Kept) };
        let old: Album = from_item("album", old.unwrap_or_default())?;
        let is_in = old.events.iter().any(|event| event == part.event.as_str());
        Ok(match (is_in, old.closed_at) {
            (true, None) => Gathered::Kept,
            (true, Some(_)) => Gathered::Taken,
            (false, Some(_)) => Gathered::Late,
            (false, None) => Gathered::NoRoom,
        })
    }

    /// Closes `album` if its last part is at least `quiet` old, and returns its parts. One that is closed stays as it is.
    ///
    /// # Errors
    /// [`StoreError`]; closing it again is harmless.
    pub async fn close_album(&self, album: &EventId, quiet: Duration, now: Millis) -> Result<Closed, StoreError> {
        let (pk, sk) = keys::album(album);
        let request = self
            .update_item(pk, sk)
            .update_expression("SET closed_at = if_not_exists(closed_at, :now)")
            .condition_expression("attribute_exists(closed_at) OR last_at <= :quiet")
            .expression_attribute_values(":now", ms(now))
            .expression_attribute_values(":quiet", ms(now - quiet))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match self.update(request).await? {
            Conditional::Met(item) => whole(album, item.unwrap_or_default()).map(Closed::Whole),
            Conditional::Failed(None) => Ok(Closed::Unknown),
            Conditional::Failed(Some(old)) => {
                let old: Album = from_item("album", old)?;
                Ok(Closed::NotQuiet((old.last_at + quiet).since(now)))
            }
        }
    }
}

fn whole(id: &EventId, item: Item) -> Result<Vec<ContentBlocks>, StoreError> {
    let mut album: Album = from_item("album", item)?;
    album.parts.sort_by_key(|part| part.number);
    let contents = album.parts.iter().map(|part| {
        serde_json::from_str(&part.content).map_err(|error| StoreError::corrupt("album", id, json_fault(&error)))
    });
    contents.collect()
}
