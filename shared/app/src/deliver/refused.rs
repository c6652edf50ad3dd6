//! What follows a call that did not show its part, by what the platform said.

use std::time::Duration;

use turnlock_channels::SendError;
use turnlock_store::ledger::{Ledger, LedgerWrite, PartPlan};

use super::parts::{Called, Next, Work};
use super::{DELIVERY, LONGEST_BLOCK, Stop, growing, slots};

/// How long the chat waits before a part whose answer was lost is sent once more: there is one such post, and a platform
/// that fails does so for longer than a moment.
const UNKNOWN_PAUSE: Duration = Duration::from_secs(10);
/// The least limit that a part gets for being too long. A platform that takes less than this takes nothing.
const LEAST_LIMIT: usize = 64;

impl Work<'_, '_> {
    /// Writes what a call came to that did not show its part, and says what follows.
    pub(super) async fn refused(
        &mut self,
        ledger: Ledger,
        part: usize,
        error: SendError,
        call: &Called,
    ) -> Result<Next, Stop> {
        let now = self.now();
        let later = growing(self.hold.record.receive_count);
        let (event_id, channel, account) = (&self.event.event_id, self.event.channel.as_str(), &self.event.account);
        if self.repeatable {
            tracing::warn!(target: DELIVERY, event_id, channel, account, part, %error,
                "a part of event {event_id} was not shown by {channel} {account}");
        } else {
            tracing::debug!(target: DELIVERY, event_id, channel, account, part, %error, "frame {event_id} was not shown");
        }
        match error {
            SendError::RetryAfter(wait) => {
                // The ledger first: a part whose call is known to have come to nothing never stands as `sending`.
                self.settle(ledger.postponed(part, "retry_after", now)).await?;
                self.leave_alone(wait, call.edit.is_some()).await?;
                Err(Stop::Wait(wait.min(LONGEST_BLOCK)))
            }
            SendError::Transient(_) => {
                self.put_off(ledger, part, call).await?;
                Err(Stop::Wait(later))
            }
            SendError::Unknown(_) => {
                let ledger = self.settle(ledger.uncertain(part, "answer_lost", now)).await?;
                let again = !matches!(self.plan(&ledger, part), PartPlan::Leave(_));
                if again { Err(Stop::Wait(later.max(UNKNOWN_PAUSE))) } else { Ok(Next::Part(ledger)) }
            }
            SendError::Migrated { to } => self.moved(ledger, part, &to).await,
            SendError::ThreadGone if self.event.thread_id.is_some() => {
                // The same chat without the thread: never another audience.
                self.event.thread_id = None;
                self.settle(ledger.postponed(part, "thread_gone", now)).await.map(Next::Again)
            }
            SendError::EditGone if call.edit.is_some() => self.settle(ledger.closed(part, now)).await.map(Next::Again),
            // A frame waits for the final.
            SendError::NotMember { instead } if self.repeatable && self.aside.is_none() => {
                self.aside = Some(instead);
                self.settle(ledger.postponed(part, "not_member", now)).await.map(Next::Again)
            }
            SendError::NotMember { .. } => self.end(ledger, part, "not_member").await,
            SendError::ChatGone { .. } if self.aside.is_some() => self.end(ledger, part, "not_member").await,
            SendError::ChatGone { reason } => {
                let reason = if reason.is_empty() { "gone" } else { reason.as_str() };
                let ended = self.end(ledger, part, "chat_gone").await?;
                self.delivery.store.mark_chat_gone(&self.chat, reason, call.began).await?;
                Ok(ended)
            }
            SendError::NoHandler => self.end(ledger, part, "no_handler").await,
            SendError::Rejected { code } => self.give_up_part(ledger, part, "rejected", &code).await,
            SendError::TooLong => self.halve(ledger, part).await,
            SendError::ThreadGone => self.give_up_part(ledger, part, "thread_gone", "").await,
            SendError::EditGone => self.give_up_part(ledger, part, "edit_gone", "").await,
        }
    }

    /// Notes that the platform wants to be left alone: with the chat, or with all edits of a workspace.
    pub(super) async fn leave_alone(&self, wait: Duration, was_edit: bool) -> Result<(), Stop> {
        let what = slots::budget(&self.event, was_edit).unwrap_or_else(|| self.chat.clone());
        self.delivery.store.block_chat_until(&what, self.now() + wait.min(LONGEST_BLOCK)).await?;
        Ok(())
    }

    /// The part comes again later. An edit may have been carried out all the same: what its message shows is unknown, and
    /// a late worker repairs.
    async fn put_off(&mut self, ledger: Ledger, part: usize, call: &Called) -> Result<(), Stop> {
        let next = ledger.postponed(part, "unavailable", self.now());
        let Some(message) = &call.edit else { return self.settle(next).await.map(|_| ()) };
        match self.write(next.doubted(part, self.now())).await? {
            LedgerWrite::Written(_) => Ok(()),
            LedgerWrite::Raced(current) if current.is_stale(self.event.revision) => {
                self.repair(current, part, message).await.map(|_| ())
            }
            LedgerWrite::Raced(_) => Ok(self.hold.renew().await?),
        }
    }

    /// Cuts a part that is too long, and it alone, into shorter ones: what stands before it keeps its text.
    async fn halve(&mut self, ledger: Ledger, part: usize) -> Result<Next, Stop> {
        let units = self.shown.get(part).map_or(0, |part| part.units);
        let limit = (units / 2).max(LEAST_LIMIT);
        let ledger = self.settle(ledger.limited(part, limit, self.now())).await?;
        self.shown = self.delivery.channels.render(&self.event, &ledger.limits());
        let shorter = self.shown.get(part).is_none_or(|part| part.units < units);
        // A platform that takes not even this takes none of the others.
        if shorter { Ok(Next::Again(ledger)) } else { self.end(ledger, part, "too_long").await }
    }

    /// Follows the chat to its new id, once.
    async fn moved(&mut self, ledger: Ledger, part: usize, to: &str) -> Result<Next, Stop> {
        if self.moved {
            return self.give_up_part(ledger, part, "moved", "").await;
        }
        self.moved = true;
        // What was known was said of the old one.
        self.gone = false;
        let from = self.chat.clone();
        self.readdress(to);
        let next = self.here(ledger.postponed(part, "moved", self.now()));
        let ledger = self.settle(next).await?;
        self.delivery.store.alias_chat(&from, &self.chat).await?;
        Ok(Next::Again(ledger))
    }

    /// Gives up one part that no repetition would show; the others may still be.
    async fn give_up_part(&mut self, ledger: Ledger, part: usize, reason: &str, code: &str) -> Result<Next, Stop> {
        if self.repeatable {
            let event_id = &self.event.event_id;
            tracing::warn!(target: DELIVERY, event_id, part, reason, code,
                "a part of event {event_id} is given up: {reason}");
        }
        self.settle(ledger.failed(part, reason, self.now())).await.map(Next::Part)
    }

    /// Gives up this part and those after it: no call for them can do better.
    async fn end(&mut self, ledger: Ledger, part: usize, reason: &str) -> Result<Next, Stop> {
        let now = self.now();
        let ended = (part..self.shown.len()).fold(ledger, |ledger, part| {
            if self.stands(&ledger, part) { ledger } else { ledger.failed(part, reason, now) }
        });
        self.settle(ended).await.map(Next::End)
    }
}
