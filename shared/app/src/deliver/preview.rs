//! Frames: a reply while it is written. Each may be dropped, so nothing about one is repeated, and none is given back; what
//! goes wrong is written down where the final needs it. One that waited long in the queue is dropped unread: newer ones are
//! behind it, and so may be the final.
//!
//! One frame is at most one platform call: for the first part whose message does not show it yet. The frames after it do
//! the rest, and the final does all of it.

use turnlock_channels::SendError;
use turnlock_store::chats::ChatState;
use turnlock_store::ledger::{Ledger, LedgerWrite, PartPlan};

use super::parts::{Called, Work};
use super::{Stop, rules, slots};

impl Work<'_, '_> {
    /// Shows the frame, unless something later is known, the chat takes nothing now, or it would change nothing.
    pub(super) async fn frame(&mut self, ledger: Ledger, chat: ChatState) -> Result<(), Stop> {
        if ledger.is_stale(self.event.revision) {
            return Ok(());
        }
        let (ledger, chat) = self.follow(ledger, chat).await?;
        let now = self.now();
        if chat.gone.is_some() || chat.blocked_until.max(chat.next_at) > now {
            return Ok(());
        }
        if rules::is_typing(&self.event) {
            return self.typing().await;
        }
        let Some(part) = self.unshown(&ledger) else { return Ok(()) };
        let edit = ledger.parts().get(part).and_then(|part| part.message_id()).map(str::to_owned);
        self.hold.for_a_call().await?;
        let began = self.now();
        if !slots::take(&self.delivery.store, &self.event, edit.is_some(), began).await? {
            return Ok(());
        }
        let LedgerWrite::Written(claimed) = self.write(ledger.sending(part, self.event.revision, began)).await? else {
            return Ok(());
        };
        match self.call(part, edit.as_deref()).await {
            Ok(message) => Box::pin(self.confirm(claimed, part, &message, edit.is_some())).await.map(|_| ()),
            Err(error) => {
                let fails = fails(&error);
                let refused = Box::pin(self.refused(claimed, part, error, &Called { began, edit })).await.map(|_| ());
                if fails {
                    slots::pause(&self.delivery.store, &self.event, self.now()).await?;
                }
                refused
            }
        }
    }

    /// The first part that a call would change; none where a preview's message is unknown or gone (trace V13).
    fn unshown(&self, ledger: &Ledger) -> Option<usize> {
        for (index, shown) in self.shown.iter().enumerate() {
            let Some(part) = ledger.parts().get(index) else { return Some(index) };
            match self.plan(ledger, index) {
                PartPlan::Send { .. } if part.is_closed() => return None,
                PartPlan::Send { .. } if part.shows(&shown.shown()) => {}
                PartPlan::Send { .. } => return Some(index),
                PartPlan::SendAgain { .. } | PartPlan::Leave(_) => return None,
            }
        }
        None
    }

    /// Shows that the turn is at work. It leaves nothing behind, so its errors mean nothing; but a chat that is to be left
    /// alone is.
    async fn typing(&mut self) -> Result<(), Stop> {
        match self.delivery.channels.typing(&self.event).await {
            Err(SendError::RetryAfter(wait)) => self.leave_alone(wait, false).await,
            Err(error) if fails(&error) => Ok(slots::pause(&self.delivery.store, &self.event, self.now()).await?),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Whether the platform fails, rather than refuses.
fn fails(error: &SendError) -> bool {
    matches!(error, SendError::Transient(_) | SendError::Unknown(_))
}
