//! The sign that an event is committed: written in the commit's transaction, never changed, read before anything is
//! done for an event.

use aws_sdk_dynamodb::types::{Put, ReturnValuesOnConditionCheckFailure};
use turnlock_domain::commit::{Draft, Marker, Written};
use turnlock_domain::ids::EventId;

use crate::error::StoreError;
use crate::item::{from_item, to_item};
use crate::memory::ScopeHead;
use crate::request::{Conditional, Item};
use crate::{MARKER_LIFETIME, Store, keys};

/// What is looked at before a turn begins.
#[derive(Debug, Default)]
pub struct Look {
    /// The event's marker, if it is committed.
    pub marker: Option<Marker>,
    /// The heads of the memory scopes that exist, in no order.
    pub scopes: Vec<ScopeHead>,
}

impl Store {
    /// The event's marker.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn marker(&self, event: &EventId) -> Result<Option<Marker>, StoreError> {
        let (pk, sk) = keys::marker(event);
        self.get(self.get_item(pk, sk)).await?.map(from_stored).transpose()
    }

    /// The event's marker and the heads of `scopes`, in one strongly consistent request.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn look(&self, event: &EventId, scopes: &[String]) -> Result<Look, StoreError> {
        let wanted = scopes.iter().map(|scope| keys::scope_head(scope)).chain([keys::marker(event)]).collect();
        let mut look = Look::default();
        for item in self.batch_get(wanted).await? {
            if crate::item::text(&item, keys::SK) == Some(&keys::marker(event).1) {
                look.marker = Some(from_stored(item)?);
            } else {
                look.scopes.push(from_item("scope head", item)?);
            }
        }
        Ok(look)
    }

    /// Writes the marker of an event that needs no turn (a command that control answered), unless there is one.
    ///
    /// # Errors
    /// [`StoreError`]; writing it again is harmless.
    pub async fn put_marker(&self, draft: &Draft) -> Result<Written<Box<Marker>>, StoreError> {
        let marker = draft.marker();
        let request = self
            .put_item(to_stored(&marker)?)
            .condition_expression("attribute_not_exists(pk)")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match self.put(request).await? {
            Conditional::Met(_) => Ok(Written::Committed),
            Conditional::Failed(old) => {
                let old = from_stored(old.unwrap_or_default())?;
                let ours = old == marker;
                Ok(if ours { Written::Committed } else { Written::Refused(Box::new(old)) })
            }
        }
    }
}

pub(crate) fn put_marker(store: &Store, marker: &Marker) -> Result<Put, StoreError> {
    store.put_new(to_stored(marker)?)
}

pub(crate) fn from_stored(item: Item) -> Result<Marker, StoreError> {
    from_item("event marker", item)
}

fn to_stored(marker: &Marker) -> Result<Item, StoreError> {
    let ttl = marker.at().ttl(MARKER_LIFETIME);
    to_item("event marker", keys::marker(marker.event_id()), marker, Some(ttl))
}
