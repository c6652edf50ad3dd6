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
use turnlock_domain::event::{MessageKind, OutboundEvent, Revision};
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;
use turnlock_store::chats::ChatState;
use turnlock_store::ledger::{Ledger, LedgerPart, LedgerState, LedgerWrite, PartPlan};

use super::hold::Hold;
use super::{Delivery, Stop, rules, slots};

/// Delivers the parts of `event` that are not delivered yet; of a frame, one.
pub(super) async fn deliver(
    delivery: &Delivery,
    event: OutboundEvent,
    routed: bool,
    hold: &mut Hold<'_>,
) -> Result<(), Stop> {
    if rules::is_frame(&event) && delivery.clock.now_ms().since(hold.record.sent_at) > slots::fresh_for(&event) {
        return Ok(());
    }
    if event.message_kind == MessageKind::ApprovalRequest && event.edits.is_none() {
        leave_preview(delivery, &event).await?;
    }
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
    let mut work = Work {
        delivery,
        event,
        chat,
        hold,
        shown,
        repeatable: !is_frame,
        routed,
        moved: false,
        gone: false,
        shown_at: None,
        aside: None,
    };
    let state = state.unwrap_or_default();
    // Boxed, here and where a call's outcome is settled: together these futures are larger than a thread's stack likes.
    if is_frame { Box::pin(work.frame(ledger, state)).await } else { Box::pin(work.run(ledger, state)).await }
}

/// A card stands below the preview of its turn. What the turn says once somebody has decided is a new message, below the
/// card, where it is seen; the preview stays as it is until then, and is taken away when that message stands.
async fn leave_preview(delivery: &Delivery, card: &OutboundEvent) -> Result<(), Stop> {
    let Some(turn) = &card.caused_by else { return Ok(()) };
    let Some(ledger) = delivery.store.ledger(&turn.caused("final")).await? else { return Ok(()) };
    let shown = |ledger: &Ledger, part: usize| ledger.parts()[part].message_id().is_some();
    let parts: Vec<usize> = (0..ledger.parts().len()).filter(|part| shown(&ledger, *part)).collect();
    if parts.is_empty() || ledger.revision().sequence == Revision::FINAL {
        return Ok(());
    }
    let now = delivery.clock.now_ms();
    let left = parts.into_iter().fold(ledger, |ledger, part| ledger.closed(part, now));
    match delivery.store.write_ledger(left).await? {
        // Whoever wrote meanwhile is late: the final finds what stands there.
        LedgerWrite::Written(_) | LedgerWrite::Raced(_) => Ok(()),
    }
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
    /// Whether it goes to a chat in which nobody asked for it.
    routed: bool,
    /// Whether the chat has moved under this delivery already.
    pub(super) moved: bool,
    /// Whether the chat was marked as gone.
    pub(super) gone: bool,
    /// When the last call began that showed a part.
    shown_at: Option<Millis>,
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
    async fn run(&mut self, ledger: Ledger, chat: ChatState) -> Result<(), Stop> {
        let (mut ledger, chat) = self.follow(ledger, chat).await?;
        self.gone = chat.gone.is_some();
        let unsent = (0..self.shown.len()).any(|part| !matches!(self.plan(&ledger, part), PartPlan::Leave(_)));
        // Who is answered has written since; a chat in which nobody did is spared calls that are refused.
        if unsent && self.gone && self.routed {
            return self.delivery.undeliverable(&self.event, "chat_gone", self.hold.record).await;
        }
        if unsent || self.has_rests(&ledger) {
            self.wait_until(chat.blocked_until)?;
            self.wait_for_the_budget(&ledger).await?;
        }
        let mut part = 0;
        // A part that was too long makes more of them.
        while part < self.shown.len() {
            ledger = match self.part(ledger, part).await? {
                Next::Again(ledger) | Next::Part(ledger) => ledger,
                Next::End(ledger) => return self.finish(&ledger).await,
            };
            part += 1;
        }
        let ledger = self.tidy(ledger).await?;
        self.finish(&ledger).await
    }

    /// Follows the chat where it went: what is known of the chat that is called, and the ledger as it is there.
    pub(super) async fn follow(&mut self, ledger: Ledger, mut chat: ChatState) -> Result<(Ledger, ChatState), Stop> {
        if let Some(moved_to) = chat.alias.take() {
            self.readdress(&chat_id(&moved_to));
            chat = self.delivery.store.chat(&self.chat).await?.unwrap_or_default();
        }
        Ok((self.here(ledger), chat))
    }

    /// The ledger in the chat that is called: message ids of another one name nothing here.
    pub(super) fn here(&self, ledger: Ledger) -> Ledger {
        if ledger.chat() == self.chat { ledger } else { ledger.moved(&self.chat, self.event.revision, self.now()) }
    }

    /// Stops while the platform wants to be left alone with edits, if there is one to make.
    async fn wait_for_the_budget(&self, ledger: &Ledger) -> Result<(), Stop> {
        let is_edit = |part| {
            matches!(self.plan(ledger, part), PartPlan::Send { edit: Some(_) } | PartPlan::SendAgain { edit: Some(_) })
        };
        let Some(budget) = slots::budget(&self.event, (0..self.shown.len()).any(is_edit)) else { return Ok(()) };
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
                PartPlan::Leave(_) => return self.remove(ledger, part).await.map(Next::Part),
                PartPlan::Send { edit } | PartPlan::SendAgain { edit } => edit,
            };
            let known = ledger.parts().get(part);
            if known.zip(self.shown.get(part)).is_some_and(|(known, shown)| known.shows(&shown.shown())) {
                ledger = self.settle(ledger.kept(part, self.event.revision, self.now())).await?;
                continue;
            }
            let is_closed = known.is_some_and(|part| part.is_closed());
            let named = self.event.edit_message_id.clone().filter(|_| part == 0 && !is_closed);
            // What stands in the chat cannot become an answer that is sent aside.
            let edit = edit.or(named).filter(|_| self.aside.is_none());
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
                    self.shown_at = Some(began);
                    let confirmed = Box::pin(self.confirm(claimed, part, &message, edit.is_some())).await?;
                    return self.remove(confirmed, part).await.map(Next::Part);
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
        Ok(self.here(current.taken_up(&self.event)))
    }

    /// Writes a result. If another worker wrote first and the record is still ours, what stands there counts.
    pub(super) async fn settle(&mut self, ledger: Ledger) -> Result<Ledger, Stop> {
        match self.write(ledger).await? {
            LedgerWrite::Written(written) => Ok(written),
            LedgerWrite::Raced(current) => {
                self.hold.renew().await?;
                Ok(self.here(current))
            }
        }
    }

    async fn finish(&self, ledger: &Ledger) -> Result<(), Stop> {
        // What is left of a longer preview is no part of the answer.
        let Some(missing) = (0..self.shown.len()).find(|part| !self.stands(ledger, *part)) else {
            if let Some(began) = self.shown_at.filter(|_| self.gone && self.aside.is_none()) {
                self.delivery.store.clear_chat_gone(&self.chat, began).await?;
            }
            return Ok(());
        };
        let reason = ledger.parts().get(missing).and_then(|part| part.reason()).unwrap_or("uncertain");
        self.delivery.give_up(&self.event, reason, self.hold.record.body.clone(), self.hold.record.receive_count).await
    }

    /// Whether a message is known to show this part of this event. Another one may stand beside it.
    pub(super) fn stands(&self, ledger: &Ledger, part: usize) -> bool {
        let is_ours = |part: &LedgerPart| part.known() == LedgerState::Sent && part.revision() >= self.event.revision;
        ledger.parts().get(part).is_some_and(is_ours)
    }

    pub(super) fn plan(&self, ledger: &Ledger, part: usize) -> PartPlan {
        ledger.plan(part, self.event.revision, self.repeatable)
    }

    pub(super) async fn write(&self, ledger: Ledger) -> Result<LedgerWrite, Stop> {
        Ok(self.delivery.store.write_ledger(ledger).await?)
    }

    pub(super) fn readdress(&mut self, chat_id: &str) {
        chat_id.clone_into(&mut self.event.chat_id);
        // It names a message of the chat that this was.
        self.event.edit_message_id = None;
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
