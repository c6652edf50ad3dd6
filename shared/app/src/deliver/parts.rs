//! An event's parts to its platform. For each part: `sending` is written, the platform is called, the result is written;
//! every write compares the ledger's version, so of two workers with the same record one calls, and the other learns of
//! it and takes back what it posted (trace V11).
//!
//! No call starts unless the record stays ours until its result is written. A worker that finds `sending` finds a dead
//! or sleeping one's: the ledger's policy decides what follows ([`Ledger::plan`]).

use std::time::Duration;

use percent_encoding::percent_decode_str;
use turnlock_channels::SendError;
use turnlock_channels::outbound::Part;
use turnlock_domain::event::OutboundEvent;
use turnlock_domain::time::Millis;
use turnlock_store::StoreError;
use turnlock_store::chats::ChatState;
use turnlock_store::ledger::{Ledger, LedgerState, LedgerWrite, PartPlan};

use super::hold::Hold;
use super::{DELIVERY, Delivery, Stop, growing, rules};

/// How often a confirmed message is written over another worker's unfinished call. Each time somebody else wrote in
/// between.
const ADOPTIONS: usize = 4;
/// How long the chat waits before a part whose answer was lost is sent once more: there is one such sending, and a platform
/// that fails does so for longer than a moment.
const UNKNOWN_PAUSE: Duration = Duration::from_secs(10);
/// How long the table is left alone when it did not take the result of a call.
const WRITE_PAUSE: Duration = Duration::from_secs(2);
/// The longest time that a platform's "later" is taken for.
const LONGEST_BLOCK: Duration = Duration::from_secs(3600);

/// Delivers the parts of `event` that are not delivered yet.
pub(super) async fn deliver(delivery: &Delivery, event: OutboundEvent, hold: &mut Hold<'_>) -> Result<(), Stop> {
    let chat = event.chat();
    let (state, ledger) = tokio::try_join!(delivery.store.chat(&chat), delivery.store.ledger(&event.event_id))?;
    let shown = delivery.channels.render(&event, &[]);
    if shown.is_empty() {
        return delivery.undeliverable(&event, "nothing_to_show").await;
    }
    let ledger = match ledger {
        Some(ledger) => ledger,
        None => Ledger::new(&event.event_id, &event, shown.len(), delivery.clock.now_ms()),
    };
    let repeatable = !rules::is_frame(&event);
    Work { delivery, event, chat, hold, shown, repeatable, moved: false }.run(ledger, state.unwrap_or_default()).await
}

/// The delivery of one event.
struct Work<'a, 'h> {
    delivery: &'a Delivery,
    /// The event, with the address that turned out to be right.
    event: OutboundEvent,
    /// The chat that the platform is called for.
    chat: String,
    hold: &'a mut Hold<'h>,
    shown: Vec<Part>,
    /// Whether what is lost is sent once more; a frame never is.
    repeatable: bool,
    /// Whether the chat has moved under this delivery already.
    moved: bool,
}

/// A call that did not show its part.
struct Called {
    began: Millis,
    was_edit: bool,
}

/// What follows a part, or a call for it.
enum Next {
    /// The same part again at once, changed as the platform asked.
    Again(Ledger),
    /// The next part.
    Part(Ledger),
    /// Nothing: no part of this event can be shown.
    End(Ledger),
}

impl Work<'_, '_> {
    async fn run(&mut self, mut ledger: Ledger, chat: ChatState) -> Result<(), Stop> {
        let gone = chat.gone.is_some();
        if (0..self.shown.len()).any(|part| !matches!(self.plan(&ledger, part), PartPlan::Leave(_))) {
            // Who is answered has written since; everybody else is spared calls that are refused.
            if gone && self.event.caused_by.is_none() {
                return self.delivery.undeliverable(&self.event, "chat_gone").await;
            }
            self.wait_for_the_chat(chat).await?;
        }
        for part in 0..self.shown.len() {
            ledger = match self.part(ledger, part).await? {
                Next::Again(ledger) | Next::Part(ledger) => ledger,
                Next::End(ledger) => return self.finish(&ledger, false).await,
            };
        }
        self.finish(&ledger, gone).await
    }

    /// Follows the chat where it went, and stops while the platform wants to be left alone.
    async fn wait_for_the_chat(&mut self, mut chat: ChatState) -> Result<(), Stop> {
        if let Some(moved_to) = chat.alias.take() {
            self.readdress(&chat_id(&moved_to));
            chat = self.delivery.store.chat(&self.chat).await?.unwrap_or_default();
        }
        let wait = chat.next_at.since(self.now());
        if wait.is_zero() { Ok(()) } else { Err(Stop::Wait(wait.min(LONGEST_BLOCK))) }
    }

    /// One part, until it is shown or given up.
    async fn part(&mut self, mut ledger: Ledger, part: usize) -> Result<Next, Stop> {
        let mut anew = false;
        loop {
            let edit = match self.plan(&ledger, part) {
                // A second worker died in the middle of the call: nobody will ever know.
                PartPlan::Leave(LedgerState::Sending) => {
                    let lost = ledger.uncertain(part, "worker_lost", self.now());
                    return self.settle(lost).await.map(Next::Part);
                }
                PartPlan::Leave(_) => return Ok(Next::Part(ledger)),
                PartPlan::Send { edit } | PartPlan::SendAgain { edit } => edit,
            };
            let edit = edit.or_else(|| self.event.edit_message_id.clone().filter(|_| part == 0)).filter(|_| !anew);
            self.hold.for_a_call().await?;
            let began = self.now();
            let claimed = match self.write(ledger.sending(part, self.event.revision, began)).await? {
                LedgerWrite::Written(claimed) => claimed,
                LedgerWrite::Raced(current) => {
                    ledger = self.overtaken(current, part).await?;
                    continue;
                }
            };
            let error = match self.call(part, edit.as_deref()).await {
                Ok(message) => return self.confirm(claimed, part, &message).await.map(Next::Part),
                Err(error) => error,
            };
            anew |= error == SendError::EditGone;
            match self.refused(claimed, part, error, &Called { began, was_edit: edit.is_some() }).await? {
                Next::Again(changed) => ledger = changed,
                settled @ (Next::Part(_) | Next::End(_)) => return Ok(settled),
            }
        }
    }

    async fn call(&self, part: usize, edit: Option<&str>) -> Result<String, SendError> {
        let mut event = self.event.clone();
        if part > 0 {
            // Only the first message quotes what it answers.
            event.reply_to_id = None;
        }
        let Some(part) = self.shown.get(part) else { return Err(SendError::NoHandler) };
        self.delivery.channels.send_part(&event, part, edit).await
    }

    /// Another worker wrote the ledger since we read it. If the record is ours all the same, what stands there decides;
    /// but a call that may be running now is left alone.
    async fn overtaken(&mut self, current: Ledger, part: usize) -> Result<Ledger, Stop> {
        self.hold.renew().await?;
        if state(&current, part) == Some(LedgerState::Sending) {
            return Err(Stop::Ended);
        }
        Ok(current)
    }

    /// Writes that `part` stands as `message`. If another worker has shown it meanwhile, ours is one too many and is
    /// taken back; if that worker is still at it or gave up, ours is the one that stands, and it will take back its own.
    async fn confirm(&mut self, ledger: Ledger, part: usize, message: &str) -> Result<Ledger, Stop> {
        let mut next = ledger;
        for attempt in 0..=ADOPTIONS {
            let current = match self.write_surely(next.sent(part, message, self.now())).await? {
                LedgerWrite::Written(written) if attempt == 0 => return Ok(written),
                LedgerWrite::Written(written) => {
                    self.hold.renew().await?;
                    return Ok(written);
                }
                LedgerWrite::Raced(current) => current,
            };
            let known = current.parts().get(part).is_some_and(|part| part.message_ids().iter().any(|id| id == message));
            if known || stands(&current, part) || attempt == ADOPTIONS {
                let current = if known { current } else { self.take_back(current, part, message).await? };
                self.hold.renew().await?;
                return Ok(current);
            }
            next = current;
        }
        Err(Stop::Ended)
    }

    /// Writes that a message stands. Whoever cannot, sends it again in the next invocation: so it is tried for as long as
    /// the record is ours.
    async fn write_surely(&mut self, ledger: Ledger) -> Result<LedgerWrite, Stop> {
        loop {
            match self.write(ledger.clone()).await {
                Err(Stop::Store(StoreError::Unavailable { .. })) if self.hold.for_a_call().await.is_ok() => {
                    tokio::time::sleep(WRITE_PAUSE).await;
                }
                written => return written,
            }
        }
    }

    /// Takes back our message beside the one that stands; with it the doubt about it is gone.
    async fn take_back(&self, current: Ledger, part: usize, message: &str) -> Result<Ledger, Stop> {
        let event_id = &self.event.event_id;
        if let Err(error) = self.delivery.channels.delete(&self.event, message).await {
            tracing::error!(target: DELIVERY, event_id, %error, "event {event_id} is shown twice");
            return Ok(current);
        }
        tracing::info!(target: DELIVERY, event_id, "event {event_id} was shown twice: one is taken back");
        match self.write(current.resolved(part, self.now())).await? {
            LedgerWrite::Written(ledger) | LedgerWrite::Raced(ledger) => Ok(ledger),
        }
    }

    /// Writes what a call came to that did not show its part, and says what follows.
    async fn refused(&mut self, ledger: Ledger, part: usize, error: SendError, call: &Called) -> Result<Next, Stop> {
        let now = self.now();
        let later = growing(self.hold.record.receive_count);
        let (event_id, channel, account) = (&self.event.event_id, self.event.channel.as_str(), &self.event.account);
        tracing::warn!(target: DELIVERY, event_id, channel, account, part, %error,
            "a part of event {event_id} was not shown by {channel} {account}");
        match error {
            SendError::RetryAfter(wait) => {
                let wait = wait.min(LONGEST_BLOCK);
                // The ledger first: a part whose call is known to have come to nothing never stands as `sending`.
                self.settle(ledger.postponed(part, "retry_after", now)).await?;
                self.delivery.store.block_chat_until(&self.chat, now + wait).await?;
                Err(Stop::Wait(wait))
            }
            SendError::Transient(_) => {
                self.settle(ledger.postponed(part, "unavailable", now)).await?;
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
            SendError::EditGone if call.was_edit => {
                self.settle(ledger.postponed(part, "edit_gone", now)).await.map(Next::Again)
            }
            SendError::ChatGone { reason } => {
                let reason = if reason.is_empty() { "gone" } else { reason.as_str() };
                self.delivery.store.mark_chat_gone(&self.chat, reason, call.began).await?;
                self.end(ledger, part, "chat_gone").await
            }
            SendError::NoHandler => self.end(ledger, part, "no_handler").await,
            SendError::Rejected { code } => self.give_up_part(ledger, part, "rejected", &code).await,
            SendError::TooLong => self.give_up_part(ledger, part, "too_long", "").await,
            SendError::ThreadGone => self.give_up_part(ledger, part, "thread_gone", "").await,
            SendError::EditGone => self.give_up_part(ledger, part, "edit_gone", "").await,
        }
    }

    /// Follows the chat to its new id, once.
    async fn moved(&mut self, ledger: Ledger, part: usize, to: &str) -> Result<Next, Stop> {
        if self.moved {
            return self.give_up_part(ledger, part, "moved", "").await;
        }
        self.moved = true;
        let from = self.chat.clone();
        self.readdress(to);
        self.delivery.store.alias_chat(&from, &self.chat).await?;
        self.settle(ledger.postponed(part, "moved", self.now())).await.map(Next::Again)
    }

    /// Gives up one part that no repetition would show; the others may still be.
    async fn give_up_part(&mut self, ledger: Ledger, part: usize, reason: &str, code: &str) -> Result<Next, Stop> {
        let event_id = &self.event.event_id;
        tracing::warn!(target: DELIVERY, event_id, part, reason, code, "a part of event {event_id} is given up: {reason}");
        self.settle(ledger.failed(part, reason, self.now())).await.map(Next::Part)
    }

    /// Gives up this part and those after it: no call for them can do better.
    async fn end(&mut self, ledger: Ledger, part: usize, reason: &str) -> Result<Next, Stop> {
        let now = self.now();
        let ended = (part..self.shown.len()).fold(ledger, |ledger, part| match state(&ledger, part) {
            Some(LedgerState::Sent) => ledger,
            _ => ledger.failed(part, reason, now),
        });
        self.settle(ended).await.map(Next::End)
    }

    /// Writes a result. If another worker wrote first and the record is still ours, what stands there counts.
    async fn settle(&mut self, ledger: Ledger) -> Result<Ledger, Stop> {
        match self.write(ledger).await? {
            LedgerWrite::Written(written) => Ok(written),
            LedgerWrite::Raced(current) => {
                self.hold.renew().await?;
                Ok(current)
            }
        }
    }

    async fn finish(&self, ledger: &Ledger, was_gone: bool) -> Result<(), Stop> {
        // Uncertain with an id: it stands, and may stand twice.
        let stands = ledger.parts().iter().all(|part| part.message_id().is_some());
        if ledger.state() == LedgerState::Sent || (ledger.state() == LedgerState::Uncertain && stands) {
            if was_gone {
                self.delivery.store.clear_chat_gone(&self.chat, self.now()).await?;
            }
            return Ok(());
        }
        let reason = ledger.parts().iter().find_map(|part| part.reason()).unwrap_or("uncertain");
        self.delivery.give_up(&self.event, reason);
        Ok(())
    }

    fn plan(&self, ledger: &Ledger, part: usize) -> PartPlan {
        ledger.plan(part, self.event.revision, self.repeatable)
    }

    async fn write(&self, ledger: Ledger) -> Result<LedgerWrite, Stop> {
        Ok(self.delivery.store.write_ledger(ledger).await?)
    }

    fn readdress(&mut self, chat_id: &str) {
        chat_id.clone_into(&mut self.event.chat_id);
        self.chat = self.event.chat();
    }

    fn now(&self) -> Millis {
        self.delivery.clock.now_ms()
    }
}

/// Whether a message of the part is known to stand.
fn stands(ledger: &Ledger, part: usize) -> bool {
    let shown = matches!(state(ledger, part), Some(LedgerState::Sent | LedgerState::Uncertain));
    shown && ledger.parts().get(part).is_some_and(|part| part.message_id().is_some())
}

fn state(ledger: &Ledger, part: usize) -> Option<LedgerState> {
    ledger.parts().get(part).map(|part| part.state())
}

/// The platform's id in our name for a chat ([`OutboundEvent::chat`]): its last part.
fn chat_id(chat: &str) -> String {
    let part = chat.rsplit(':').next().unwrap_or_default();
    percent_decode_str(part).decode_utf8_lossy().into_owned()
}
