//! Events that their readers fetch: the item of an API event is the delivery of its frames and of its final.

use std::borrow::Cow;

use turnlock_domain::event::{MessageKind, OutboundEvent, Revision};
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;
use turnlock_domain::text::cut;
use turnlock_store::gateway::{FinalPut, GatewayFinal, GatewayFrame};
use turnlock_store::{Store, StoreError};

use super::rules::{is_frame, is_typing};
use crate::words::Language;

/// The longest text that an item shows, in bytes: DynamoDB's limit is 400 KB with names and keys.
const LONGEST: usize = 350 * 1024;

/// What writing an event to its item came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// Readers see it, or something later of the same turn.
    Shown,
    /// Another final stands there and stays.
    Different,
    /// It answers no event that could be read by its id.
    NoCause,
}

/// Writes `event` where whoever waits for the event that caused it reads it. Writing it again changes nothing.
pub(super) async fn put(store: &Store, event: &OutboundEvent, language: Language) -> Result<Put, StoreError> {
    if is_typing(event) {
        return Ok(Put::Shown);
    }
    let text = event.text();
    let text = fitting(&text, language).into_owned();
    let Some(cause) = &event.caused_by else { return Ok(Put::NoCause) };
    let (session, now) = (session(event), store.clock().now_ms());
    if event.message_kind == MessageKind::ApprovalRequest {
        // What became of a card is read where it was decided.
        if event.edits.is_none() {
            let revision = card_revision(store, cause).await?;
            let card = GatewayFrame { revision, text, kind: event.message_kind };
            store.put_frame(cause, &session, &card, now).await?;
        }
        return Ok(Put::Shown);
    }
    if is_frame(event) || !event.is_final {
        let frame = GatewayFrame { revision: event.revision, text, kind: event.message_kind };
        // A frame that comes late is no loss: what stands there says more.
        store.put_frame(cause, &session, &frame, now).await?;
        return Ok(Put::Shown);
    }
    let last = GatewayFinal { text, kind: event.message_kind, at: now };
    Ok(match store.put_final(cause, &session, &last).await? {
        FinalPut::Written | FinalPut::AlreadyThere => Put::Shown,
        FinalPut::Different(_) => Put::Different,
    })
}

/// A card's place: behind the frames of the turn that parked, and before those of the lock under which it goes on.
async fn card_revision(store: &Store, cause: &EventId) -> Result<Revision, StoreError> {
    let frame = store.gateway_event(cause).await?.and_then(|event| event.frame);
    let fence = frame.map_or(0, |frame| frame.revision.fence);
    Ok(Revision { fence, sequence: Revision::FINAL - 1 })
}

/// The session that the event's turn belongs to: a thread is its own, as on the way in.
fn session(event: &OutboundEvent) -> SessionKey {
    SessionKey::new(event.channel.as_str(), &event.account, &event.chat_id, event.thread_id.as_deref())
}

/// As much of `text` as an item holds; the session's history has all of it.
fn fitting(text: &str, language: Language) -> Cow<'_, str> {
    if text.len() <= LONGEST {
        return Cow::Borrowed(text);
    }
    let chars = text[..text.floor_char_boundary(LONGEST)].chars().count();
    Cow::Owned(format!("{}\n\n{}", cut(text, chars), language.rest_in_history()))
}
