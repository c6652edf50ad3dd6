//! What API clients read of an event: its newest frame while it runs, its final for good.
//!
//! Delivery writes here what it sends to a platform elsewhere. Frames come in any order and late: one that is not newer
//! than what stands there, or that comes after the final, changes nothing. The final is written once and takes the
//! frame's place; the same final again is no error, another one is reported and changes nothing.

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use serde::{Deserialize, Serialize};
use turnlock_domain::event::{MessageKind, Revision};
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;

use crate::error::StoreError;
use crate::item::{from_item, ms, n, s};
use crate::request::{Conditional, Item};
use crate::write::{self, SECOND};
use crate::{MARKER_LIFETIME, Store, keys};

/// An event as API clients see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayEvent {
    /// The inbound event.
    pub event_id: EventId,
    /// Its session.
    pub session: SessionKey,
    /// The whole visible text so far, while there is no final.
    pub frame: Option<GatewayFrame>,
    /// The final.
    pub final_: Option<GatewayFinal>,
    /// Grows with every change.
    pub version: u64,
}

/// The visible text of a turn that still runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayFrame {
    /// Where in the turn's output it stands.
    pub revision: Revision,
    /// The whole visible text so far.
    pub text: String,
    /// What it is to the person who sees it.
    pub kind: MessageKind,
}

/// What a turn ended with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayFinal {
    /// The text.
    pub text: String,
    /// Reply, error or notice.
    pub kind: MessageKind,
    /// When it was delivered.
    pub at: Millis,
}

/// What writing a frame came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramePut {
    /// It is what clients see.
    Shown,
    /// A later frame or the final stands there.
    Superseded,
}

/// What writing a final came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinalPut {
    /// It is what clients see from now on.
    Written,
    /// It was there already.
    AlreadyThere,
    /// Another one stands there and stays.
    Different(GatewayFinal),
}

/// The item, flat: its attributes are written one by one.
#[derive(Serialize, Deserialize)]
struct Stored {
    event_id: EventId,
    session: SessionKey,
    #[serde(default)]
    frame_fence: u64,
    #[serde(default)]
    frame_sequence: u32,
    frame_text: Option<String>,
    frame_kind: Option<MessageKind>,
    final_text: Option<String>,
    final_kind: Option<MessageKind>,
    final_at: Option<Millis>,
    #[serde(default)]
    version: u64,
}

impl From<Stored> for GatewayEvent {
    fn from(stored: Stored) -> Self {
        let revision = Revision { fence: stored.frame_fence, sequence: stored.frame_sequence };
        let frame_kind = stored.frame_kind.unwrap_or(MessageKind::Streaming);
        let final_kind = stored.final_kind.unwrap_or_default();
        let final_at = stored.final_at.unwrap_or_default();
        Self {
            event_id: stored.event_id,
            session: stored.session,
            frame: stored.frame_text.map(|text| GatewayFrame { revision, text, kind: frame_kind }),
            final_: stored.final_text.map(|text| GatewayFinal { text, kind: final_kind, at: final_at }),
            version: stored.version,
        }
    }
}

impl GatewayEvent {
    /// Whether what it shows is a card that asks a person.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.frame.as_ref().is_some_and(|frame| frame.kind == MessageKind::ApprovalRequest)
    }
}

impl Store {
    /// The event as API clients see it, strongly consistent; `None` as long as nothing was delivered.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn gateway_event(&self, event: &EventId) -> Result<Option<GatewayEvent>, StoreError> {
        let (pk, sk) = keys::gateway(event);
        let item = self.get(self.get_item(pk, sk)).await?;
        write::live(item, self.clock().now_ms()).map(from_stored).transpose()
    }

    /// Shows a frame, unless a later one or the final is there.
    ///
    /// # Errors
    /// [`StoreError`]; a frame that was not written is not missed.
    pub async fn put_frame(
        &self,
        event: &EventId,
        session: &SessionKey,
        frame: &GatewayFrame,
        now: Millis,
    ) -> Result<FramePut, StoreError> {
        let request = self
            .gateway_update(event, session, now)
            .update_expression(
                "SET event_id = :event, #session = :session, expires_at = :ttl, frame_fence = :fence, \
                 frame_sequence = :sequence, frame_text = :text, frame_kind = :kind \
                 REMOVE final_text, final_kind, final_at ADD version :one",
            )
            .condition_expression(
                "expires_at <= :second OR (attribute_not_exists(final_text) AND (attribute_not_exists(frame_fence) \
                 OR frame_fence < :fence OR (frame_fence = :fence AND frame_sequence < :sequence)))",
            )
            .expression_attribute_values(":fence", n(frame.revision.fence))
            .expression_attribute_values(":sequence", n(frame.revision.sequence))
            .expression_attribute_values(":text", s(&frame.text))
            .expression_attribute_values(":kind", kind(frame.kind)?);
        let Conditional::Failed(old) = self.update(request).await? else { return Ok(FramePut::Shown) };
        let old = from_stored(old.unwrap_or_default())?;
        let same = old.frame.is_some_and(|old| old.revision == frame.revision);
        Ok(if same { FramePut::Shown } else { FramePut::Superseded })
    }

    /// Writes the final in the frame's place, unless a final is there.
    ///
    /// # Errors
    /// [`StoreError`]; writing it again is harmless.
    pub async fn put_final(
        &self,
        event: &EventId,
        session: &SessionKey,
        last: &GatewayFinal,
    ) -> Result<FinalPut, StoreError> {
        let request = self
            .gateway_update(event, session, last.at)
            .update_expression(
                "SET event_id = :event, #session = :session, expires_at = :ttl, final_text = :text, \
                 final_kind = :kind, final_at = :at REMOVE frame_fence, frame_sequence, frame_text, frame_kind \
                 ADD version :one",
            )
            .condition_expression("expires_at <= :second OR attribute_not_exists(final_text)")
            .expression_attribute_values(":text", s(&last.text))
            .expression_attribute_values(":kind", kind(last.kind)?)
            .expression_attribute_values(":at", ms(last.at));
        let Conditional::Failed(old) = self.update(request).await? else { return Ok(FinalPut::Written) };
        let old = from_stored(old.unwrap_or_default())?.final_;
        let old = old.ok_or_else(|| StoreError::corrupt("gateway event", event, "a final was refused by no final"))?;
        let same = old.text == last.text && old.kind == last.kind;
        Ok(if same { FinalPut::AlreadyThere } else { FinalPut::Different(old) })
    }

    fn gateway_update(&self, event: &EventId, session: &SessionKey, now: Millis) -> UpdateItemFluentBuilder {
        let (pk, sk) = keys::gateway(event);
        self.update_item(pk, sk)
            .expression_attribute_names("#session", "session")
            .expression_attribute_values(":event", s(event.as_str()))
            .expression_attribute_values(":session", s(session.as_str()))
            .expression_attribute_values(":ttl", n(now.ttl(MARKER_LIFETIME).0))
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(SECOND, write::second(now))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
    }
}

fn kind(kind: MessageKind) -> Result<AttributeValue, StoreError> {
    serde_dynamo::to_attribute_value(kind).map_err(|error| StoreError::corrupt("gateway event", "its kind", error))
}

fn from_stored(item: Item) -> Result<GatewayEvent, StoreError> {
    from_item::<Stored>("gateway event", item).map(GatewayEvent::from)
}
