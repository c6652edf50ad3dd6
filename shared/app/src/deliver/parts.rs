//! An event's parts to its platform. For each part: `sending` is written, the platform is called, the result is written;
//! every write compares the ledger's version, so of two workers with the same record one calls, and the other learns of
//! it and repairs (trace V11, `late`). Frames go the same way, with less at stake (`preview`).
//!
//! No call starts unless the record stays ours until its result is written. A worker that finds `sending` finds a dead
//! or sleeping one's: the ledger's policy decides what follows ([`Ledger::plan`]). A part whose message shows its text
//! already is delivered without a call.

use std::borrow::Cow;

use turnlock_channels::SendError;
use turnlock_channels::outbound::Part;
use turnlock_domain::event::OutboundEvent;
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;
use turnlock_store::chats::ChatState;
use turnlock_store::ledger::{Ledger, LedgerPart, LedgerState, LedgerWrite, PartPlan};

use super::hold::Hold;
use super::{DELIVERY, Delivery, Stop, rules, slots};

/// Delivers the parts of `event` that are not delivered yet; of a frame, one.
pub(super) async fn deliver(delivery: &Delivery, event: OutboundEvent, hold: &mut Hold<'_>) -> Result<(), Stop> {
    let (chat, key, is_frame) = (event.chat(), rules::ledger_key(&event), rules::is_frame(&event));
    let (state, ledger) = tokio::try_join!(delivery.store.chat(&chat), delivery.store.ledger(&key))?;
    let limits = ledger.as_ref().map(Ledger::limits).unwrap_or_default();
    let shown = delivery.channels.render(&event, &limits);
    if shown.is_empty() && !is_frame {
        return delivery.undeliverable(&event, "nothing_to_show", hold.record).await;
    }
    let ledger = match ledger {
        Some(ledger) if is_frame => ledger,
        Some(ledger) => ledger.taken_up(&event),
        None => Ledger::new(key, &event, shown.len(), delivery.clock.now_ms()),
    };
    let repeatable = !is_frame;
    let mut work = Work { delivery, event, chat, hold, shown, repeatable, moved: false, aside: None };
    let state = state.unwrap_or_default();
    // Boxed, here and where a call's outcome is settled: together these futures are larger than a thread's stack likes.
    if is_frame { Box::pin(work.frame(ledger, state)).await } else { Box::pin(work.run(ledger, state)).await }
}

/// The delivery of one event.
pub(super) struct Work<'a, 'h> {
    pub(super) delivery: &'a Delivery,
    /// The event, with the address that turned out to be right.
    pub(super) event: OutboundEvent,
    /// The chat that the platform is called for.
    pub(super) chat: String,
    pub(super) hold: &'a mut Hold<'h>,
    pub(super) shown: Vec<Part>,
    /// Whether what is lost is sent once more; a frame never is.
    pub(super) repeatable: bool,
    /// Whether the chat has moved under this delivery already.
    pub(super) moved: bool,
    /// The chat with the person who asked, where the chat itself does not have us.
    pub(super) aside: Option<String>,
}

/// A call that did not show its part.
pub(super) struct Called {
    pub(super) began: Millis,
    /// The message that it was to edit.
    pub(super) edit: Option<String>,
}

/// What follows a part, or a call for it.
pub(super) enum Next {
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
                return self.delivery.undeliverable(&self.event, "chat_gone", self.hold.record).await;
            }
            self.wait_for_the_chat(chat).await?;
            self.wait_for_the_budget(&ledger).await?;
        }
        let mut part = 0;
        // A part that was too long makes more of them.
        while part < self.shown.len() {
            ledger = match self.part(ledger, part).await? {
                Next::Again(ledger) | Next::Part(ledger) => ledger,
                Next::End(ledger) => return self.finish(&ledger, false).await,
            };
            part += 1;
        }
        let ledger = self.tidy(ledger).await?;
        self.finish(&ledger, gone).await
    }

    /// Follows the chat where it went, and stops while the platform wants to be left alone.
    async fn wait_for_the_chat(&mut self, mut chat: ChatState) -> Result<(), Stop> {
        if let Some(moved_to) = chat.alias.take() {
            self.readdress(&chat_id(&moved_to));
            chat = self.delivery.store.chat(&self.chat).await?.unwrap_or_default();
        }
        self.wait_until(chat.blocked_until)
    }

    /// Stops while the platform wants to be left alone with edits, if there is one to make.
    async fn wait_for_the_budget(&self, ledger: &Ledger) -> Result<(), Stop> {
        let edits = ledger.parts().iter().any(|part| part.message_id().is_some());
        let Some(budget) = slots::budget(&self.event, edits) else { return Ok(()) };
        let shared = self.delivery.store.chat(&budget).await?.unwrap_or_default();
        self.wait_until(shared.blocked_until)
    }

    fn wait_until(&self, until: Millis) -> Result<(), Stop> {
        let wait = until.since(self.now());
        if wait.is_zero() { Ok(()) } else { Err(Stop::Wait(wait.min(super::LONGEST_BLOCK))) }
    }

    /// One part, until it is shown or given up.
    async fn part(&mut self, mut ledger: Ledger, part: usize) -> Result<Next, Stop> {
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
            let known = ledger.parts().get(part);
            if known.zip(self.shown.get(part)).is_some_and(|(known, shown)| known.shows(&shown.text)) {
                ledger = self.settle(ledger.kept(part, self.event.revision, self.now())).await?;
                continue;
            }
            let closed = known.filter(|part| part.is_closed());
            let replaces = closed.and_then(|part| part.message_ids().last()).cloned();
            let named = self.event.edit_message_id.clone().filter(|_| part == 0 && closed.is_none());
            let edit = edit.or(named);
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
                Ok(message) => {
                    let confirmed = Box::pin(self.confirm(claimed, part, &message, edit.is_some())).await?;
                    return self.remove(confirmed, part, replaces).await.map(Next::Part);
                }
                Err(error) => error,
            };
            match Box::pin(self.refused(claimed, part, error, &Called { began, edit })).await? {
                Next::Again(changed) => ledger = changed,
                settled @ (Next::Part(_) | Next::End(_)) => return Ok(settled),
            }
        }
    }

    pub(super) async fn call(&self, part: usize, edit: Option<&str>) -> Result<String, SendError> {
        let mut event = self.event.clone();
        if part > 0 {
            // Only the first message quotes what it answers.
            event.reply_to_id = None;
        }
        let Some(shown) = self.shown.get(part) else { return Err(SendError::NoHandler) };
        let mut shown = Cow::Borrowed(shown);
        if let Some(aside) = &self.aside {
            event.chat_id.clone_from(aside);
            event.thread_id = None;
            if part == 0 {
                // In front of what the ledger knows the part by: the part itself is the same wherever it is shown.
                shown.to_mut().text.insert_str(0, &format!("{}\n\n", self.delivery.language.not_a_member()));
            }
        }
        self.delivery.channels.send_part(&event, &shown, edit).await
    }

    /// Another worker wrote the ledger since we read it. If the record is ours all the same, what stands there decides;
    /// but a call that may be running now is left alone.
    async fn overtaken(&mut self, current: Ledger, part: usize) -> Result<Ledger, Stop> {
        self.hold.renew().await?;
        if state(&current, part) == Some(LedgerState::Sending) {
            return Err(Stop::Ended);
        }
        Ok(current.taken_up(&self.event))
    }

    /// Takes away the message `old`, which took no more edits and is replaced by now. If it stays, it is marked.
    async fn remove(&mut self, ledger: Ledger, part: usize, old: Option<String>) -> Result<Ledger, Stop> {
        let Some(old) = old else { return Ok(ledger) };
        match self.delivery.channels.delete(&self.event, &old).await {
            Ok(()) | Err(SendError::EditGone) => Ok(ledger),
            Err(error) => {
                let event_id = &self.event.event_id;
                tracing::warn!(target: DELIVERY, event_id, part, %error, "an old message of event {event_id} stays");
                self.settle(ledger.doubled(part, self.now())).await
            }
        }
    }

    /// Takes away the messages of a preview that was longer than the final. What cannot be taken away is marked.
    async fn tidy(&mut self, mut ledger: Ledger) -> Result<Ledger, Stop> {
        // What is not of a preview stays: an earlier version may have cut the same final into more parts.
        let is_extra = |part: &LedgerPart| part.revision() < self.event.revision;
        let parts = ledger.parts().iter().enumerate().skip(self.shown.len());
        let extras: Vec<usize> = parts.filter(|(_, part)| is_extra(part)).map(|(index, _)| index).collect();
        if extras.is_empty() {
            return Ok(ledger);
        }
        for part in extras.into_iter().rev() {
            let extra = &ledger.parts()[part];
            let lost = extra.is_lost();
            let Some(message) = extra.message_id().map(str::to_owned) else {
                ledger = if lost {
                    ledger.uncertain(part, "worker_lost", self.now())
                } else {
                    ledger.without(part, self.now())
                };
                continue;
            };
            self.hold.for_a_call().await?;
            ledger = match self.delivery.channels.delete(&self.event, &message).await {
                Ok(()) | Err(SendError::EditGone) => ledger.without(part, self.now()),
                Err(error) => {
                    let event_id = &self.event.event_id;
                    tracing::warn!(target: DELIVERY, event_id, part, %error, "a rest of the preview of event {event_id} stays");
                    ledger.uncertain(part, "not_taken_away", self.now())
                }
            };
        }
        self.settle(ledger).await
    }

    /// Writes a result. If another worker wrote first and the record is still ours, what stands there counts.
    pub(super) async fn settle(&mut self, ledger: Ledger) -> Result<Ledger, Stop> {
        match self.write(ledger).await? {
            LedgerWrite::Written(written) => Ok(written),
            LedgerWrite::Raced(current) => {
                self.hold.renew().await?;
                Ok(current)
            }
        }
    }

    async fn finish(&self, ledger: &Ledger, was_gone: bool) -> Result<(), Stop> {
        // Uncertain with an id: it stands, and may stand twice. What is left of a longer preview is no part of the answer.
        let Some(missing) = (0..self.shown.len()).find(|part| !self.stands(ledger, *part)) else {
            if was_gone && self.aside.is_none() {
                self.delivery.store.clear_chat_gone(&self.chat, self.now()).await?;
            }
            return Ok(());
        };
        let reason = ledger.parts().get(missing).and_then(|part| part.reason()).unwrap_or("uncertain");
        self.delivery.give_up(&self.event, reason, self.hold.record).await
    }

    /// Whether a message is known to show this part of this event.
    pub(super) fn stands(&self, ledger: &Ledger, part: usize) -> bool {
        let shown = matches!(state(ledger, part), Some(LedgerState::Sent | LedgerState::Uncertain));
        let ours = |part: &LedgerPart| part.message_id().is_some() && part.revision() >= self.event.revision;
        shown && ledger.parts().get(part).is_some_and(ours)
    }

    pub(super) fn plan(&self, ledger: &Ledger, part: usize) -> PartPlan {
        ledger.plan(part, self.event.revision, self.repeatable)
    }

    pub(super) async fn write(&self, ledger: Ledger) -> Result<LedgerWrite, Stop> {
        Ok(self.delivery.store.write_ledger(ledger).await?)
    }

    pub(super) fn readdress(&mut self, chat_id: &str) {
        chat_id.clone_into(&mut self.event.chat_id);
        self.chat = self.event.chat();
    }

    pub(super) fn now(&self) -> Millis {
        self.delivery.clock.now_ms()
    }
}

pub(super) fn state(ledger: &Ledger, part: usize) -> Option<LedgerState> {
    ledger.parts().get(part).map(|part| part.state())
}

/// The platform's id in our name for a chat ([`OutboundEvent::chat`]): its last part.
pub(super) fn chat_id(chat: &str) -> String {
    SessionKey::from_text(chat).last_part()
}
