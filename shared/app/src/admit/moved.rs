//! Chats that had another id before: a group that became a supergroup.

use tokio::time::timeout;
use turnlock_channels::Arrival;
use turnlock_domain::session::SessionKey;

use super::entry::NotKnown;
use super::{Admission, HELD_WITHIN, report};

impl Admission {
    /// What the chat was called before it moved. The read is a consistent one, for a whole read unit instead of a half:
    /// the first message after the move comes within milliseconds of it, and one that did not know of it would begin a
    /// second conversation. For the same reason nothing passes while the table cannot be asked: the platform sends again.
    pub(super) async fn former(&self, arrival: &Arrival) -> Result<Option<SessionKey>, NotKnown> {
        let event = &arrival.event;
        if !arrival.can_have_moved {
            return Ok(None);
        }
        let chat = SessionKey::new(event.channel.as_str(), &event.account, &event.chat_id, None);
        match timeout(HELD_WITHIN, self.store.chat(chat.as_str())).await {
            Ok(Ok(state)) => Ok(state.and_then(|state| state.former).map(SessionKey::from_text)),
            Ok(Err(error)) => {
                report(event, &error, "where its chat was before is not known");
                Err(NotKnown)
            }
            Err(_) => {
                tracing::warn!(event_id = %event.event_id, "where the chat of event {} was before is not known in time", event.event_id);
                Err(NotKnown)
            }
        }
    }
}
