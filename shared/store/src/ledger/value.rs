//! A ledger as a value: what follows from its states, and the transitions. No I/O.

use serde::{Deserialize, Serialize};
use turnlock_domain::event::{Channel, MessageKind, OutboundEvent, Revision};
use turnlock_domain::ids::EventId;
use turnlock_domain::time::Millis;

use super::part::{LedgerPart, LedgerState, digest_of};

/// The ledger of one outbound event; of a turn's preview and final together, under the final's id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    pub(super) event: String,
    chat: String,
    channel: Channel,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    caused_by: Option<EventId>,
    #[serde(default)]
    pub(super) kind: MessageKind,
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
    /// Its outcome is unknown and it is a final's part: send it once more, and an edit as often as it takes. It stays
    /// marked.
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

    /// The limits of the parts that a platform found too long, as rendering takes them.
    #[must_use]
    pub fn limits(&self) -> Vec<usize> {
        self.parts.iter().map(|part| part.limit).collect()
    }

    /// How far the whole has come: what is still open first, then the worst. What shows an earlier revision, or a preview
    /// alone, is open.
    #[must_use]
    pub fn state(&self) -> LedgerState {
        let preview = matches!(self.kind, MessageKind::Streaming | MessageKind::Progress | MessageKind::ToolHint);
        let so_far = |part: &LedgerPart| match part.state() {
            LedgerState::Sent if preview || part.revision < self.revision => LedgerState::Pending,
            state => state,
        };
        let any = |state| self.parts.iter().any(|part| so_far(part) == state);
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
        let unknown = part.is_open();
        if self.is_stale(revision) || part.revision > revision {
            return PartPlan::Leave(part.state());
        }
        if part.known() == LedgerState::Pending || part.known() == LedgerState::Sent && part.revision < revision {
            return PartPlan::Send { edit };
        }
        if part.revision < revision {
            // A preview whose message nobody knows gets no more frames; the final is a new message then (trace V13).
            return if part.is_lost() && !is_final { PartPlan::Leave(part.state()) } else { PartPlan::Send { edit } };
        }
        // An edit can be repeated without harm, so one that nobody knows of is repeated until its outcome is known.
        let again = unknown && is_final && (!part.resent || edit.is_some());
        if again { PartPlan::SendAgain { edit } } else { PartPlan::Leave(part.state()) }
    }

    /// The platform is about to be called for `part` at `revision`. An unknown outcome of the same revision becomes the
    /// mark that it was sent again; of an earlier one, the mark that a stray message may stand there.
    #[must_use]
    pub fn sending(mut self, part: usize, revision: Revision, now: Millis) -> Self {
        self.revision = self.revision.max(revision);
        self.change(part, now, |part| {
            let unknown = part.is_open();
            part.doubt(part.is_lost());
            if unknown {
                part.digest.clear();
            }
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

    /// The ledger as `outbound` takes it up: a turn's final takes up what its frames began.
    #[must_use]
    pub fn taken_up(mut self, outbound: &OutboundEvent) -> Self {
        self.kind = outbound.message_kind;
        self
    }

    /// The platform confirmed `part` as `message_id`. An empty id confirms nothing. What it shows is another question:
    /// [`Ledger::showing`].
    #[must_use]
    pub fn sent(self, part: usize, message_id: impl Into<String>, now: Millis) -> Self {
        let message_id = message_id.into();
        if message_id.is_empty() {
            return self.uncertain(part, "no_message_id", now);
        }
        self.change(part, now, |part| {
            part.state = LedgerState::Sent;
            part.reason = None;
            part.closed = false;
            part.digest.clear();
            part.message_ids.retain(|known| *known != message_id);
            part.message_ids.push(message_id);
        })
    }

    /// The message of `part` shows just this: its rendered text, and what stands under it.
    #[must_use]
    pub fn showing(self, part: usize, text: &str) -> Self {
        let at = self.at;
        self.change(part, at, |part| part.digest = digest_of(text))
    }

    /// Nobody knows any more what the message of `part` shows: an edit's answer was lost, or came late.
    #[must_use]
    pub fn doubted(self, part: usize, now: Millis) -> Self {
        self.change(part, now, |part| part.digest.clear())
    }

    /// The message of `part` shows what `revision` says: no call was needed.
    #[must_use]
    pub fn kept(mut self, part: usize, revision: Revision, now: Millis) -> Self {
        self.revision = self.revision.max(revision);
        self.change(part, now, |part| {
            part.state = LedgerState::Sent;
            part.revision = revision;
            part.reason = None;
        })
    }

    /// The message of `part` is gone or takes no edits: the next call posts a new one. The old one may stand until it is
    /// taken away ([`Ledger::removed`]).
    #[must_use]
    pub fn closed(self, part: usize, now: Millis) -> Self {
        self.change(part, now, |part| {
            part.state = LedgerState::Pending;
            part.closed = true;
            part.replaced = !part.message_ids.is_empty();
            part.digest.clear();
            part.reason = Some("edit_gone".to_owned());
        })
    }

    /// The platform found `part` too long: it, and no other, has a limit of its own from now on. What the parts after it
    /// show is another text then.
    #[must_use]
    pub fn limited(mut self, part: usize, limit: usize, now: Millis) -> Self {
        for later in self.parts.iter_mut().skip(part + 1).filter(|later| later.known() == LedgerState::Sent) {
            later.revision = Revision::default();
            if later.closed {
                // It stands in the chat that this one was, where nothing is replaced.
                later.message_ids.clear();
                later.doubt(true);
            }
        }
        self.change(part, now, |part| {
            part.state = LedgerState::Pending;
            part.limit = limit;
            part.reason = Some("too_long".to_owned());
        })
    }

    /// A message of `part` stands beside the one that counts and cannot be taken away.
    #[must_use]
    pub fn doubled(self, part: usize, now: Millis) -> Self {
        self.change(part, now, |part| {
            part.doubt(true);
            part.replaced = false;
        })
    }

    /// The messages that the newest one of `part` replaced are taken away.
    #[must_use]
    pub fn removed(self, part: usize, now: Millis) -> Self {
        self.change(part, now, |part| part.replaced = false)
    }

    /// A late frame stands in the message of `part`, over the final that it showed: to be sent again.
    #[must_use]
    pub fn overwritten(self, part: usize, now: Millis) -> Self {
        self.doubted(part, now).postponed(part, "overwritten", now)
    }

    /// The chat is `chat` from now on. Message ids count anew there, so those of the old chat name nothing any more: what
    /// shows `revision` stays as it stands, everything else is a new message and what was shown of it stays above.
    #[must_use]
    pub fn moved(mut self, chat: &str, revision: Revision, now: Millis) -> Self {
        for part in self.parts.iter_mut().filter(|part| !part.message_ids.is_empty()) {
            if part.known() == LedgerState::Sent && part.revision >= revision {
                part.message_ids.drain(..part.message_ids.len() - 1);
                part.closed = true;
                part.doubt(part.replaced);
            } else {
                part.message_ids.clear();
                part.closed = false;
                part.doubt(true);
                part.digest.clear();
            }
            part.replaced = false;
        }
        chat.clone_into(&mut self.chat);
        self.at = now;
        self
    }

    /// `part` of a longer preview is not needed any more, and is taken away.
    #[must_use]
    pub fn without(mut self, part: usize, now: Millis) -> Self {
        if part < self.parts.len() {
            self.parts.remove(part);
        }
        self.at = now;
        self
    }

    /// What was given up is open again, by an operator's wish; what is sent stays sent. `None` = nothing was given up.
    #[must_use]
    pub fn reopened(mut self, now: Millis) -> Option<Self> {
        let given_up = |part: &LedgerPart| part.is_open() || part.known() == LedgerState::Failed;
        if !self.parts.iter().any(given_up) {
            return None;
        }
        for part in self.parts.iter_mut().filter(|part| given_up(part)) {
            part.doubt(part.is_lost());
            part.state = LedgerState::Pending;
            part.resent = false;
            part.attempts = 0;
            part.digest.clear();
        }
        self.at = now;
        Some(self)
    }

    /// Whether the platform has `part` is unknown.
    #[must_use]
    pub fn uncertain(self, part: usize, reason: impl Into<String>, now: Millis) -> Self {
        self.settle(part, LedgerState::Uncertain, reason.into(), now)
    }

    /// A message of `part` whose answer was lost has been found and taken back: that doubt is gone, any other one stays.
    #[must_use]
    pub fn resolved(self, part: usize, now: Millis) -> Self {
        self.change(part, now, LedgerPart::resolve)
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
