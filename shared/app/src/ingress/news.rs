//! What a platform says about a chat itself: it is gone, it is back, it has another id. No turn; delivery and the next
//! message find it in the table. Telling it again changes nothing, and what crosses on the way is put right by its time.

use std::time::Duration;

use tokio::time::timeout;
use turnlock_channels::{ChatNews, IngressResponse};
use turnlock_domain::event::Channel;
use turnlock_domain::ids::EventId;
use turnlock_store::StoreError;

use super::slack::ANSWER_WITHIN;
use super::{Ingress, done, ignore, later};
use crate::admit::{BUSY_RETRY, chain};

/// How long the table may take where the platform waits long enough.
const NOTED_WITHIN: Duration = Duration::from_secs(5);

impl Ingress {
    /// Notes `news`. Where the table cannot be reached the platform is asked to send it again: a message that comes
    /// after a move must find where its conversation was.
    pub(super) async fn chat_news(
        &self,
        (channel, account): (Channel, &str),
        event_id: &EventId,
        news: &ChatNews,
    ) -> IngressResponse {
        let within = if channel == Channel::Slack { ANSWER_WITHIN } else { NOTED_WITHIN };
        let cause = match timeout(within, self.note(news)).await {
            Ok(Ok(())) => {
                ignore(channel, account, Some(event_id), news.reason());
                return done();
            }
            Ok(Err(error)) => chain(&error),
            Err(_) => "the table did not answer in time".to_owned(),
        };
        tracing::error!(%event_id, cause, "what {event_id} says of its chat was not noted: it has to come again");
        later(503, "busy", BUSY_RETRY)
    }

    async fn note(&self, news: &ChatNews) -> Result<(), StoreError> {
        let store = &self.admission.store;
        match news {
            ChatNews::Gone { chat, reason, at } => store.mark_chat_gone(chat.as_str(), reason, *at).await,
            ChatNews::Back { chat, at } => store.clear_chat_gone(chat.as_str(), *at).await,
            ChatNews::Moved { from, to } => store.alias_chat(from.as_str(), to.as_str()).await,
        }
    }
}
