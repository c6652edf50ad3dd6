//! API events between acceptance and commit. The item is written before the event is sent to its queue, so that the same
//! idempotency key with another body is a conflict, also while the first is on its way. "Admitted", `queued` and the
//! event's marker are one event in three states.
//!
//! Who dies between the item and the send leaves an event that is admitted and not queued: the client's repetition finds
//! it ([`Admitted::Again`]) and sends it. Chat channels write no such item: their platforms send no other body.

use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use serde::{Deserialize, Serialize};
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;

use crate::error::StoreError;
use crate::item::{from_item, s, to_item};
use crate::request::Conditional;
use crate::write::{self, ABSENT, SECOND};
use crate::{MARKER_LIFETIME, Store, keys};

/// An API event as it was admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission {
    /// The event: derives from the caller and its idempotency key.
    pub event_id: EventId,
    /// Its session.
    pub session: SessionKey,
    /// The digest of its body.
    pub digest: String,
    /// How far it is.
    pub state: AdmissionState,
    /// When it was admitted.
    pub at: Millis,
}

/// How far an admitted event is; its marker says the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdmissionState {
    /// Its queue may or may not have it.
    Admitted,
    /// Its queue has it; also a state that this version does not know.
    #[serde(other)]
    Queued,
}

/// What admitting an event came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admitted {
    /// It is new: send it.
    New,
    /// The same event was admitted before.
    Again {
        /// Whether its queue has it. If not, send it: a second sending is recognised.
        queued: bool,
    },
    /// The key was used with another body.
    Conflict,
}

impl Store {
    /// Admits the event whose body has this digest.
    ///
    /// # Errors
    /// [`StoreError`]; admitting it again is harmless.
    pub async fn admit(
        &self,
        event: &EventId,
        digest: &str,
        session: &SessionKey,
        now: Millis,
    ) -> Result<Admitted, StoreError> {
        let admission = Admission {
            event_id: event.clone(),
            session: session.clone(),
            digest: digest.to_owned(),
            state: AdmissionState::Admitted,
            at: now,
        };
        let item = to_item("admission", keys::admission(event), &admission, Some(now.ttl(MARKER_LIFETIME)))?;
        let request = self
            .put_item(item)
            .condition_expression(ABSENT)
            .expression_attribute_values(SECOND, write::second(now))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let Conditional::Failed(old) = self.put(request).await? else { return Ok(Admitted::New) };
        let old: Admission = from_item("admission", old.unwrap_or_default())?;
        // The session belongs to what was asked for: the same words in another conversation are another request.
        Ok(match old.state {
            _ if old.digest != admission.digest || old.session != admission.session => Admitted::Conflict,
            AdmissionState::Admitted => Admitted::Again { queued: false },
            AdmissionState::Queued => Admitted::Again { queued: true },
        })
    }

    /// The event's queue has it.
    ///
    /// # Errors
    /// [`StoreError`]; without this write the event is sent once more when its client asks again.
    pub async fn mark_queued(&self, event: &EventId) -> Result<(), StoreError> {
        let (pk, sk) = keys::admission(event);
        let request = self
            .update_item(pk, sk)
            .update_expression("SET #state = :queued")
            .condition_expression("attribute_exists(pk)")
            .expression_attribute_names("#state", "state")
            .expression_attribute_values(":queued", s("queued"));
        self.update(request).await.map(|_| ())
    }

    /// The event as it was admitted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn admission(&self, event: &EventId) -> Result<Option<Admission>, StoreError> {
        let (pk, sk) = keys::admission(event);
        let item = self.get(self.get_item(pk, sk)).await?;
        write::live(item, self.clock().now_ms()).map(|item| from_item("admission", item)).transpose()
    }
}
