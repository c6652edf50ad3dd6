//! A ledger as a value: its states, what follows from them, and the transitions. No I/O.

use serde::{Deserialize, Serialize};
use turnlock_domain::event::{Channel, MessageKind, OutboundEvent, Revision};
use turnlock_domain::ids::EventId;
use turnlock_domain::time::Millis;

/// How far a part, or a whole outbound event, has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerState {
    /// Not tried, or known not to have arrived.
    #[default]
    Pending,
    /// The platform is being called, or was when the worker died.
    Sending,
    /// The platform confirmed it with a message id.
    Sent,
    /// The platform refused it for good.
    Failed,
    /// The call's outcome is unknown; also a state that this version does not know.
    #[serde(other)]
    Uncertain,
}

/// One part of an outbound event: one platform message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LedgerPart {
    state: LedgerState,
    #[serde(skip_serializing_if = "is_default")]
    revision: Revision,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    message_ids: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    attempts: u32,
    #[serde(skip_serializing_if = "is_default")]
    resent: bool,
    #[serde(skip_serializing_if = "is_default")]
    stray: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl LedgerPart {
    /// How far it has come. Without a confirmed message id nothing is sent; and what was sent while another message of
    /// it may stand, whose answer was lost, stays uncertain.
    #[must_use]
    pub fn state(&self) -> LedgerState {
        match self.known() {
            LedgerState::Sent if self.stray => LedgerState::Uncertain,
            state => state,
        }
    }

    /// How far this part's newest call has come.
    fn known(&self) -> LedgerState {
        match self.state {
            LedgerState::Sent if self.message_ids.is_empty() => LedgerState::Uncertain,
            state => state,
        }
    }

    /// The revision that [`LedgerPart::state`] is about.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The platform message that shows it now: what an edit goes to.
    #[must_use]
    pub fn message_id(&self) -> Option<&str> {
        self.message_ids.last().map(String::as_str)
    }

    /// Every platform message that ever showed it, oldest first.
    #[must_use]
    pub fn message_ids(&self) -> &[String] {
        &self.message_ids
    }

    /// How often the platform was called for this revision.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Whether it was sent once more after an unknown outcome; stays so.
    #[must_use]
    pub fn resent(&self) -> bool {
        self.resent
    }

    /// Whether a message of it may stand in the chat whose id nobody knows: a call's answer was lost.
    #[must_use]
    pub fn stray(&self) -> bool {
        self.stray
    }

    /// Why it failed, is uncertain or was put off: a short word, never a platform's text.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }
}

/// The ledger of one outbound event, or of a turn's preview and final together: whoever delivers chooses the key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    pub(super) event: String,
    chat: String,
    channel: Channel,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    caused_by: Option<EventId>,
    #[serde(default)]
    kind: MessageKind,
    #[serde(default)]
    revision: Revision,
    pub(super) version: u64,
    pub(super) writer: String,
    #[serde(default)]
    parts: Vec<LedgerPart>,
    pub(super) at: Millis,
}

/// What to do about a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartPlan {
    /// Send it: as an edit of that message, or as a new one.
    Send {
        /// The platform message that shows an earlier revision.
        edit: Option<String>,
    },
    /// Its outcome is unknown and it is a final's part: send it once more. It stays marked.
    SendAgain {
        /// The platform message that it was to replace.
        edit: Option<String>,
    },
    /// Nothing: it is sent, failed, uncertain for good, or a later revision is there.
    Leave(LedgerState),
}

impl Ledger {
    /// A ledger that is not stored yet, under the key `event` (an outbound event's id), for `parts` parts.
    #[must_use]
    pub fn new(event: impl Into<String>, outbound: &OutboundEvent, parts: usize, now: Millis) -> Self {
        Self {
            event: event.into(),
            chat: outbound.chat(),
            channel: outbound.channel,
            caused_by: outbound.caused_by.clone(),
            kind: outbound.message_kind,
            revision: outbound.revision,
            version: 0,
            writer: String::new(),
            parts: vec![LedgerPart::default(); parts],
            at: now,
        }
    }

    /// The outbound event's id.
    #[must_use]
    pub fn event(&self) -> &str {
        &self.event
    }

    /// The chat it goes to, as [`OutboundEvent::chat`] names it.
    #[must_use]
    pub fn chat(&self) -> &str {
        &self.chat
    }

    /// The channel it goes to.
    #[must_use]
    pub fn channel(&self) -> Channel {
        self.channel
    }

    /// The inbound event that led to it.
    #[must_use]
    pub fn caused_by(&self) -> Option<&EventId> {
        self.caused_by.as_ref()
    }

    /// What it was to the person who sees it when the ledger was begun.
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        self.kind
    }

    /// The latest revision that the platform was called for.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// How often it was written; 0 = not stored yet.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Its parts, in order.
    #[must_use]
    pub fn parts(&self) -> &[LedgerPart] {
        &self.parts
    }

    /// When it last changed.
    #[must_use]
    pub fn at(&self) -> Millis {
        self.at
    }

    /// How far the whole has come: what is still open first, then the worst.
    #[must_use]
    pub fn state(&self) -> LedgerState {
        let any = |state| self.parts.iter().any(|part| part.state() == state);
        if any(LedgerState::Sending) {
            LedgerState::Sending
        } else if self.parts.is_empty() || any(LedgerState::Pending) {
            LedgerState::Pending
        } else if any(LedgerState::Failed) {
            LedgerState::Failed
        } else if any(LedgerState::Uncertain) {
            LedgerState::Uncertain
        } else {
            LedgerState::Sent
        }
    }

    /// Whether something later was begun: a later revision, or the final where this is a frame. Nothing of a stale
    /// revision is shown.
    #[must_use]
    pub fn is_stale(&self, revision: Revision) -> bool {
        let frame_after_final = self.revision.sequence == Revision::FINAL && revision.sequence != Revision::FINAL;
        self.version > 0 && (revision < self.revision || frame_after_final)
    }

    /// What to do about `part` at `revision`; `is_final` is the outbound event's.
    #[must_use]
    pub fn plan(&self, part: usize, revision: Revision, is_final: bool) -> PartPlan {
        let empty = LedgerPart::default();
        let part = self.parts.get(part).unwrap_or(&empty);
        let edit = part.message_id().map(str::to_owned);
        let unknown = matches!(part.known(), LedgerState::Sending | LedgerState::Uncertain);
        if self.is_stale(revision) || part.revision > revision {
            return PartPlan::Leave(part.state());
        }
        if part.known() == LedgerState::Pending || part.known() == LedgerState::Sent && part.revision < revision {
            return PartPlan::Send { edit };
        }
        if part.revision < revision {
            // A preview whose message nobody knows gets no more frames; the final is a new message then (trace V13).
            let lost_preview = unknown && edit.is_none() && !is_final;
            return if lost_preview { PartPlan::Leave(part.state()) } else { PartPlan::Send { edit } };
        }
        if unknown && is_final && !part.resent { PartPlan::SendAgain { edit } } else { PartPlan::Leave(part.state()) }
    }

    /// The platform is about to be called for `part` at `revision`. An unknown outcome of the same revision becomes the
    /// mark that it was sent again; of an earlier one, the mark that a stray message may stand there.
    #[must_use]
    pub fn sending(mut self, part: usize, revision: Revision, now: Millis) -> Self {
        self.revision = self.revision.max(revision);
        self.change(part, now, |part| {
            let unknown = matches!(part.known(), LedgerState::Sending | LedgerState::Uncertain);
            part.stray |= unknown && part.message_ids.is_empty();
            if part.revision != revision && part.attempts > 0 {
                part.resent = false;
                part.attempts = 0;
            } else {
                part.resent |= unknown;
            }
            part.revision = revision;
            part.attempts = part.attempts.saturating_add(1);
            part.state = LedgerState::Sending;
            part.reason = None;
        })
    }

    /// The platform confirmed `part` as `message_id`. An empty id confirms nothing.
    #[must_use]
    pub fn sent(self, part: usize, message_id: impl Into<String>, now: Millis) -> Self {
        let message_id = message_id.into();
        if message_id.is_empty() {
            return self.uncertain(part, "no_message_id", now);
        }
        self.change(part, now, |part| {
            part.state = LedgerState::Sent;
            part.reason = None;
            part.message_ids.retain(|known| *known != message_id);
            part.message_ids.push(message_id);
        })
    }

    /// Whether the platform has `part` is unknown.
    #[must_use]
    pub fn uncertain(self, part: usize, reason: impl Into<String>, now: Millis) -> Self {
        self.settle(part, LedgerState::Uncertain, reason.into(), now)
    }

    /// The message of `part` whose answer was lost has been found and taken back: nothing of it stands twice.
    #[must_use]
    pub fn resolved(self, part: usize, now: Millis) -> Self {
        self.change(part, now, |part| part.stray = false)
    }

    /// The platform refused `part` for good.
    #[must_use]
    pub fn failed(self, part: usize, reason: impl Into<String>, now: Millis) -> Self {
        self.settle(part, LedgerState::Failed, reason.into(), now)
    }

    /// The platform is known not to have taken `part`, and may later (a 429, a refused connection).
    #[must_use]
    pub fn postponed(self, part: usize, reason: impl Into<String>, now: Millis) -> Self {
        self.settle(part, LedgerState::Pending, reason.into(), now)
    }

    fn settle(self, part: usize, state: LedgerState, reason: String, now: Millis) -> Self {
        self.change(part, now, |part| {
            part.state = state;
            part.reason = Some(reason);
        })
    }

    fn change(mut self, part: usize, now: Millis, change: impl FnOnce(&mut LedgerPart)) -> Self {
        if self.parts.len() <= part {
            self.parts.resize(part + 1, LedgerPart::default());
        }
        change(&mut self.parts[part]);
        self.at = now;
        self
    }
}

#[cfg(test)]
mod tests {
    use turnlock_domain::event::InboundEvent;

    use super::*;

    const NOW: Millis = Millis(1_760_000_000_000);
    const FRAME: Revision = Revision { fence: 7, sequence: 1 };
    const NEXT_FRAME: Revision = Revision { fence: 7, sequence: 2 };
    const FINAL: Revision = Revision { fence: 7, sequence: Revision::FINAL };

    fn ledger() -> Ledger {
        let inbound: InboundEvent = serde_json::from_value(serde_json::json!({
            "event_id": "telegram:1:2", "channel": "telegram", "chat_id": "5", "timestamp": "2026-01-05T09:00:00Z",
        }))
        .expect("an event");
        let mut outbound = OutboundEvent::answering(&inbound, "final", MessageKind::Final, "hi");
        outbound.revision = Revision { fence: 7, sequence: 0 };
        let mut ledger = Ledger::new("telegram:1:2.final", &outbound, 1, NOW);
        ledger.version = 1;
        ledger
    }

    fn send(message: &str) -> PartPlan {
        PartPlan::Send { edit: (!message.is_empty()).then(|| message.to_owned()) }
    }

    /// Case dl-sent-flag-lies: three refused tries are no delivery, and an empty id confirms nothing.
    #[test]
    fn dl_sent_flag_lies() {
        let mut ledger = ledger();
        for _ in 0..3 {
            assert_eq!(ledger.plan(0, FINAL, true), send(""));
            ledger = ledger.sending(0, FINAL, NOW).postponed(0, "429", NOW);
            assert_eq!(ledger.state(), LedgerState::Pending);
        }
        assert_eq!(ledger.parts()[0].attempts(), 3);
        assert_eq!(ledger.clone().sending(0, FINAL, NOW).sent(0, "", NOW).state(), LedgerState::Uncertain);
        let claimed: LedgerPart = serde_json::from_value(serde_json::json!({"state": "sent"})).expect("a part");
        assert_eq!(claimed.state(), LedgerState::Uncertain);
        assert_eq!(ledger.sending(0, FINAL, NOW).sent(0, "10", NOW).state(), LedgerState::Sent);
    }

    #[test]
    fn a_final_whose_answer_was_lost_is_sent_once_more_and_stays_marked() {
        let died = ledger().sending(0, FINAL, NOW);
        assert_eq!(died.state(), LedgerState::Sending);
        assert_eq!(died.plan(0, FINAL, true), PartPlan::SendAgain { edit: None });
        let again = died.uncertain(0, "timeout", NOW).sending(0, FINAL, NOW);
        assert!(again.parts()[0].resent());
        assert_eq!(again.plan(0, FINAL, true), PartPlan::Leave(LedgerState::Sending));
        let twice = again.clone().uncertain(0, "timeout", NOW);
        assert_eq!(twice.plan(0, FINAL, true), PartPlan::Leave(LedgerState::Uncertain));
        let sent = again.sent(0, "11", NOW);
        assert_eq!(sent.plan(0, FINAL, true), PartPlan::Leave(LedgerState::Uncertain));
        assert!(sent.parts()[0].resent() && sent.state() == LedgerState::Uncertain);
    }

    #[test]
    fn a_frame_is_never_repeated_and_a_lost_preview_gets_no_more_frames() {
        let lost = ledger().sending(0, FRAME, NOW);
        assert_eq!(lost.plan(0, FRAME, false), PartPlan::Leave(LedgerState::Sending));
        assert_eq!(lost.plan(0, NEXT_FRAME, false), PartPlan::Leave(LedgerState::Sending));
        assert_eq!(lost.plan(0, FINAL, true), send(""), "the final is a new message");
        let last = lost.sending(0, FINAL, NOW);
        assert!(last.parts()[0].stray(), "half a preview may stand above it");
        assert_eq!(last.plan(0, FINAL, true), PartPlan::SendAgain { edit: None }, "its own answer may be lost as well");
    }

    #[test]
    fn the_final_goes_into_the_previews_message() {
        let shown = ledger().sending(0, FRAME, NOW).sent(0, "10", NOW);
        assert_eq!(shown.plan(0, FRAME, false), PartPlan::Leave(LedgerState::Sent));
        assert_eq!(shown.plan(0, NEXT_FRAME, false), send("10"));
        let doubtful = shown.sending(0, NEXT_FRAME, NOW).uncertain(0, "timeout", NOW);
        assert_eq!(doubtful.plan(0, FINAL, true), send("10"));
        let last = doubtful.sending(0, FINAL, NOW);
        assert!(!last.parts()[0].stray() && !last.parts()[0].resent());
        assert_eq!(last.plan(0, FINAL, true), PartPlan::SendAgain { edit: Some("10".to_owned()) });
    }

    /// Case dl-flood-two-bubbles: where the preview could not be edited, the ledger keeps both messages.
    #[test]
    fn dl_flood_two_bubbles() {
        let shown = ledger().sending(0, FRAME, NOW).sent(0, "10", NOW);
        let flooded = shown.sending(0, FINAL, NOW).postponed(0, "429", NOW);
        assert_eq!(flooded.plan(0, FINAL, true), send("10"), "wait, and edit the same message");
        let replaced = flooded.sending(0, FINAL, NOW).sent(0, "11", NOW);
        assert_eq!(replaced.parts()[0].message_ids(), ["10", "11"]);
        assert_eq!(replaced.parts()[0].message_id(), Some("11"));
    }

    #[test]
    fn nothing_stale_is_shown() {
        let committed = ledger().sending(0, FINAL, NOW).sent(0, "10", NOW);
        assert!(committed.is_stale(FRAME));
        assert!(committed.is_stale(Revision { fence: 8, sequence: 1 }), "a frame never follows the final");
        assert!(!committed.is_stale(FINAL));
        assert_eq!(committed.plan(0, NEXT_FRAME, false), PartPlan::Leave(LedgerState::Sent));
        let successor = ledger().sending(0, Revision { fence: 8, sequence: 0 }, NOW);
        assert!(successor.is_stale(NEXT_FRAME), "frames of a lost lock");
    }

    #[test]
    fn the_whole_is_as_far_as_its_last_part() {
        let mut ledger = ledger().sending(0, FINAL, NOW).sent(0, "10", NOW);
        assert_eq!(ledger.state(), LedgerState::Sent);
        assert_eq!(ledger.plan(2, FINAL, true), send(""), "a part that nobody tried");
        ledger = ledger.sending(2, FINAL, NOW);
        assert_eq!((ledger.parts().len(), ledger.state()), (3, LedgerState::Sending));
        ledger = ledger.failed(2, "400", NOW);
        assert_eq!(ledger.state(), LedgerState::Pending, "part 1 is open");
        ledger = ledger.sending(1, FINAL, NOW).sent(1, "11", NOW);
        assert_eq!(ledger.state(), LedgerState::Failed);
        assert_eq!(ledger.plan(2, FINAL, true), PartPlan::Leave(LedgerState::Failed));
    }

    #[test]
    fn a_state_of_a_later_version_is_uncertain() {
        let part: LedgerPart = serde_json::from_value(serde_json::json!({"state": "teleported"})).expect("a part");
        assert_eq!(part.state(), LedgerState::Uncertain);
    }
}
