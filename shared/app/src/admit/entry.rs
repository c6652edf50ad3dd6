//! Who may talk: the list of the configuration, and whoever a pairing let in.

use tokio::time::timeout;
use turnlock_config::Allow;
use turnlock_domain::event::InboundEvent;
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;

use super::{Admission, Admitted, Answers, BUSY_RETRY, HELD_WITHIN, line, report};
use crate::journal_line::EventOutcome;
use crate::pairing::Standing;

/// The table did not say in time.
pub(super) struct NotKnown;

impl Admission {
    /// Lets in who may talk. Who sent the code of a pairing is welcomed; others are told once a day that they may not,
    /// with the id that an operator would put on the list. Nobody is refused because the table did not answer: a platform
    /// sends again.
    ///
    /// # Errors
    /// What became of an event that does not come in.
    pub(super) async fn entry(
        &self,
        event: &InboundEvent,
        former: Option<&SessionKey>,
        allow: &Allow,
    ) -> Result<(), Admitted> {
        match self.standing(event, former, allow).await {
            Ok(Standing::Allowed) => Ok(()),
            Ok(Standing::SentCode) => {
                self.notice(event, "paired", self.language.paired()).await;
                line(event, EventOutcome::Ignored, "paired");
                Err(Admitted::Noted)
            }
            Ok(Standing::Stranger) => {
                self.refuse(event).await;
                Err(Admitted::NotAllowed)
            }
            Err(NotKnown) => Err(self.busy(event, BUSY_RETRY)),
        }
    }

    /// How the sender stands to the account. Only who is on no list is asked for.
    pub(super) async fn standing(
        &self,
        event: &InboundEvent,
        former: Option<&SessionKey>,
        allow: &Allow,
    ) -> Result<Standing, NotKnown> {
        if permits(event, former, allow) {
            return Ok(Standing::Allowed);
        }
        if Answers::of(event.channel) == Answers::ByStatus {
            return Ok(Standing::Stranger);
        }
        let asked = self.pairings.standing(&self.store, event, self.clock.now_ms());
        match timeout(HELD_WITHIN, asked).await {
            Ok(Ok(standing)) => Ok(standing),
            Ok(Err(error)) => {
                report(event, &error, "whether its sender is paired is not known");
                Err(NotKnown)
            }
            Err(_) => Err(NotKnown),
        }
    }

    async fn refuse(&self, event: &InboundEvent) {
        line(event, EventOutcome::Refused, "not_allowed");
        if Answers::of(event.channel) == Answers::InChat {
            let mut refusal = self.answer(event, "refused", self.language.not_allowed(&event.sender_id, group(event)));
            refusal.event_id = refusal_id(event, self.clock.now_ms()).caused("refused");
            self.send_notice(&refusal).await;
        }
    }
}

/// The chat's id where several people share it: what an operator puts on the list for all of them.
fn group(event: &InboundEvent) -> Option<&str> {
    let kind = event.metadata.get("chat_type").or_else(|| event.metadata.get("channel_type"))?.as_str()?;
    (!matches!(kind, "private" | "im")).then_some(event.chat_id.as_str())
}

/// Whether the list has the sender or the chat, by the id it has or the one it had before it moved.
pub(super) fn permits(event: &InboundEvent, former: Option<&SessionKey>, allow: &Allow) -> bool {
    match Answers::of(event.channel) {
        Answers::InChat => {
            allow.permits(&[&event.sender_id, &event.chat_id])
                || former.is_some_and(|chat| allow.permits(&[&chat.last_part()]))
        }
        // Who sends is what the caller says; which chat it uses is what its key is for.
        Answers::ByStatus => allow.permits(&[&event.chat_id]),
    }
}

/// One refusal a sender, chat and day: a second one has the same id and is recognised by the delivery.
fn refusal_id(event: &InboundEvent, now: Millis) -> EventId {
    let day = now.timestamp().strftime("%Y-%m-%d").to_string();
    EventId::derive(event.channel.as_str(), &["refused", &event.account, &event.chat_id, &event.sender_id, &day])
}
