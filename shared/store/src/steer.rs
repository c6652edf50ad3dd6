//! Texts for a turn that runs: what somebody says meanwhile reaches the model at its next step, instead of a turn of its
//! own. Control adds them, under the event's id, while an older event is unfinished and the text's own is not committed
//! (trace V9); the commit that used them takes them away and writes their markers.
//!
//! A turn hears only the person whose turn it is, for what it does is judged by that person's rights; and no text overtakes
//! another message: the first one that the turn cannot take holds back what was sent behind it.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::{AttributeValue, ConditionCheck, TransactWriteItem};
use serde::{Deserialize, Serialize};
use turnlock_domain::envelope::Position;
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;

use crate::error::StoreError;
use crate::item::{json_fault, n, s};
use crate::request::Transaction;
use crate::sessions::{Head, update};
use crate::{Store, keys};

/// The most texts that wait on a session's head.
pub const MAX_TEXTS: usize = 10;
/// The longest text, in bytes: a head that has ten of them is still read and renewed every few seconds.
pub const MAX_TEXT: usize = 2 * 1024;
/// The same of a text as it is stored: what JSON writes in front of quotes and newlines counts as well.
const MAX_JSON: usize = 2 * MAX_TEXT;

/// A text for the turn that runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SteerText {
    /// The event's place in its session: texts are used in that order.
    pub position: Position,
    /// The event it is from.
    pub event_id: EventId,
    /// Who said it, as [`turnlock_domain::event::InboundEvent::person`] says it.
    #[serde(default)]
    pub by: String,
    /// The text, as the model reads it; empty is a message that no other turn takes, and that none behind it overtakes.
    pub text: String,
}

/// What adding a text came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steered {
    /// It waits for the next step of the turn that runs.
    Added,
    /// No older event is unfinished, the text's own is committed or stopped, it is too long, or too much waits: its own turn
    /// takes it.
    NotNow,
}

impl Store {
    /// Adds a text. Adding it again changes nothing. Of one that is too long its place is added, so that none overtakes it.
    ///
    /// # Errors
    /// [`StoreError`]; the event's own turn takes the text then.
    pub async fn steer(&self, session: &SessionKey, text: &SteerText) -> Result<Steered, StoreError> {
        let mut json = to_json(text)?;
        let fits = text.text.len() <= MAX_TEXT && json.len() <= MAX_JSON;
        if !fits {
            json = to_json(&SteerText { text: String::new(), ..text.clone() })?;
        }
        let head = self
            .update_over(keys::head(session), "ADD steer :text")
            .condition_expression(
                "attribute_exists(unfinished) AND unfinished <> :event AND unfinished_position < :position AND \
                 (attribute_not_exists(steer) OR size(steer) < :max) AND \
                 (attribute_not_exists(stop_before) OR stop_before <= :position)",
            )
            .expression_attribute_values(":text", AttributeValue::Ss(vec![json]))
            .expression_attribute_values(":event", s(text.event_id.as_str()))
            .expression_attribute_values(":position", s(text.position.as_str()))
            .expression_attribute_values(":max", n(MAX_TEXTS));
        let (pk, sk) = keys::marker(&text.event_id);
        let uncommitted = ConditionCheck::builder()
            .table_name(&*self.table)
            .key(keys::PK, s(pk))
            .key(keys::SK, s(sk))
            .condition_expression("attribute_not_exists(pk)")
            .build()
            .map_err(|error| StoreError::Refused { operation: "TransactWriteItems", source: error.into() })?;
        let actions =
            vec![update(Self::built(head)?), TransactWriteItem::builder().condition_check(uncommitted).build()];
        match self.transact(actions, &format!("steer {} {}", text.event_id, self.write_name())).await? {
            Transaction::Done if fits => Ok(Steered::Added),
            Transaction::Done | Transaction::Cancelled(_) => Ok(Steered::NotNow),
        }
    }
}

impl Head {
    /// The texts for the turn of `who` at `position`, in order: none that is its own, none sent before it, and none behind a
    /// message that it cannot take. One that cannot be read is left to its own turn.
    #[must_use]
    pub fn texts_for(&self, position: &Position, who: &str) -> Vec<SteerText> {
        let texts: BTreeSet<SteerText> = self
            .steer
            .iter()
            .filter_map(|json| serde_json::from_str::<SteerText>(json).ok())
            .filter(|text| text.position > *position)
            .collect();
        // Nobody known is not the same person twice.
        let is_heard = |text: &SteerText| !who.is_empty() && text.by == who && !text.text.is_empty();
        // An event that was sent again may stand there under a second place.
        let mut known = BTreeSet::new();
        let is_new = |text: &SteerText| known.insert(text.event_id.clone());
        texts.into_iter().take_while(is_heard).filter(is_new).collect()
    }

    /// What of the texts goes with the commit of the event at `position`: its own, what a turn before it has left, those of
    /// the events it used, and what cannot be read: nobody else would take it away.
    #[must_use]
    pub fn steer_done(&self, position: &Position, used: &[EventId]) -> Vec<String> {
        let done = |json: &&String| {
            serde_json::from_str::<SteerText>(json)
                .map_or(true, |text| text.position <= *position || used.contains(&text.event_id))
        };
        self.steer.iter().filter(done).cloned().collect()
    }
}

fn to_json(text: &SteerText) -> Result<String, StoreError> {
    serde_json::to_string(text).map_err(|error| StoreError::corrupt("steer text", &text.event_id, json_fault(&error)))
}
