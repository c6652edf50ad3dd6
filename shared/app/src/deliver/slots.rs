//! How often frames may be shown, so that finals always have room.
//!
//! Telegram asks for about one message a second and chat and for twenty a minute in a group; edits count. Slack allows
//! `chat.update` fifty times a minute for an app in a workspace, whatever the chat: those frames share a second slot.
//! Telegram's thirty messages a second for a whole bot have no slot of their own: it would take frames of more than
//! forty chats at the same time, would cost every frame a write to one item, and a 429 stops frames as it is.

use std::time::Duration;

use turnlock_domain::event::{Channel, OutboundEvent};
use turnlock_domain::time::Millis;
use turnlock_store::chats::Slot;
use turnlock_store::{Store, StoreError};

/// The least time between two frames of a chat, and of a budget: 40 of Slack's 50 edits a minute.
const INTERVAL: Duration = Duration::from_millis(1500);
/// The same in a Telegram group: 15 of 20 messages a minute.
const GROUP_INTERVAL: Duration = Duration::from_secs(4);
/// How long a chat gets no frames after one that its platform did not take.
const FAILING_PAUSE: Duration = Duration::from_secs(30);
/// The method whose budget the chats of a workspace share.
const SHARED: &str = "chat.update";

/// Takes the right to show a frame of `event` now, as an edit or as a new message.
pub(super) async fn take(store: &Store, event: &OutboundEvent, is_edit: bool, now: Millis) -> Result<bool, StoreError> {
    if store.reserve_slot(&event.chat(), now, interval(event)).await? != Slot::Free {
        return Ok(false);
    }
    match budget(event, is_edit) {
        Some(budget) => Ok(store.reserve_slot(&budget, now, INTERVAL).await? == Slot::Free),
        None => Ok(true),
    }
}

/// What a call for `event` shares with those for other chats: named like a chat of the same workspace, which no chat is.
pub(super) fn budget(event: &OutboundEvent, is_edit: bool) -> Option<String> {
    if event.channel != Channel::Slack || !is_edit {
        return None;
    }
    let team = event.chat_id.rsplit_once('/').map(|(team, _)| team);
    let chat_id = team.map_or_else(|| SHARED.to_owned(), |team| format!("{team}/{SHARED}"));
    Some(OutboundEvent { chat_id, ..event.clone() }.chat())
}

/// How long after it was sent a frame still says something new: by then the next ones are waiting behind it. Where a
/// platform is slow they are dropped, so that the final waits for two calls at most.
pub(super) fn fresh_for(event: &OutboundEvent) -> Duration {
    interval(event) * 2
}

/// Keeps frames out of a chat whose platform fails, or does not answer: each costs the final behind it the time of a call.
pub(super) async fn pause(store: &Store, event: &OutboundEvent, now: Millis) -> Result<(), StoreError> {
    store.hold_frames_until(&event.chat(), now + FAILING_PAUSE).await
}

fn interval(event: &OutboundEvent) -> Duration {
    let chat = event.chat_id.rsplit('/').next().unwrap_or_default();
    if event.channel == Channel::Telegram && chat.starts_with('-') { GROUP_INTERVAL } else { INTERVAL }
}
