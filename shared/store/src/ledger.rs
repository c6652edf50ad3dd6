//! The delivery ledger: for each outbound event and each part of it, what was tried and what came of it.
//!
//! `sending` is written, with the revision, before the platform is called, and the result after the call. Every write
//! compares the version that was read ([`LedgerWrite::Raced`] returns what stands there instead), so that of two workers
//! that hold the same record only one calls the platform, and a worker that wakes late learns that its result is no
//! longer wanted and repairs what it posted (trace V11).
//!
//! What a crash leaves is `sending`: whether the platform has the message is unknown, as after a lost answer. One policy
//! decides what follows ([`Ledger::plan`]): a final's part is sent once more, by edit where its message is known, and
//! stays marked; a frame is never repeated. "Sent" is derived from a confirmed platform message id and from nothing else.

use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use serde::{Deserialize, Serialize};
use turnlock_domain::event::{Channel, MessageKind, OutboundEvent, Revision};
use turnlock_domain::ids::EventId;
use turnlock_domain::time::Millis;

use crate::error::StoreError;
use crate::item::{from_item, n, to_item};
use crate::request::{Conditional, Item};
use crate::write::{self, ABSENT, SECOND};
use crate::{LEDGER_LIFETIME, Store, keys};

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
    /// How far it has come. Without a confirmed message id nothing is sent.
    #[must_use]
    pub fn state(&self) -> LedgerState {
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

    /// Whether a message of it may stand in the chat whose id nobody knows (an earlier revision's answer was lost).
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
    event: String,
    chat: String,
    channel: Channel,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    caused_by: Option<EventId>,
    #[serde(default)]
    kind: MessageKind,
    #[serde(default)]
    revision: Revision,
    version: u64,
    writer: String,
    #[serde(default)]
    parts: Vec<LedgerPart>,
    at: Millis,
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
        let unknown = matches!(part.state(), LedgerState::Sending | LedgerState::Uncertain);
        if self.is_stale(revision) || part.revision > revision {
            return PartPlan::Leave(part.state());
        }
        if part.state() == LedgerState::Pending || part.state() == LedgerState::Sent && part.revision < revision {
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
            let unknown = matches!(part.state(), LedgerState::Sending | LedgerState::Uncertain);
            if part.revision != revision && part.attempts > 0 {
                part.stray |= unknown && part.message_ids.is_empty();
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

/// What writing a ledger came to.
#[derive(Debug, Clone, PartialEq)]
pub enum LedgerWrite {
    /// It stands as written; its version is what the next write compares.
    Written(Ledger),
    /// Somebody else wrote first; the ledger as it is now.
    Raced(Ledger),
}

impl Store {
    /// The ledger under `event`, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ledger(&self, event: &str) -> Result<Option<Ledger>, StoreError> {
        let (pk, sk) = keys::ledger(event);
        let item = self.get(self.get_item(pk, sk)).await?;
        write::live(item, self.clock().now_ms()).map(from_stored).transpose()
    }

    /// Writes `next`, which was made from the ledger that was read (or from none): only if that is still the last one.
    ///
    /// # Errors
    /// [`StoreError`]; on a transient one it is unknown whether it was written: read it again.
    pub async fn write_ledger(&self, mut next: Ledger) -> Result<LedgerWrite, StoreError> {
        let before = next.version;
        next.version += 1;
        next.writer = self.write_name();
        let request = self
            .put_item(to_stored(&next)?)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let request = if before == 0 {
            request.condition_expression(ABSENT).expression_attribute_values(SECOND, write::second(next.at))
        } else {
            request.condition_expression("version = :before").expression_attribute_values(":before", n(before))
        };
        match self.put(request).await? {
            Conditional::Met(_) => Ok(LedgerWrite::Written(next)),
            Conditional::Failed(Some(old)) => {
                let old = from_stored(old)?;
                let ours = old.writer == next.writer;
                Ok(if ours { LedgerWrite::Written(next) } else { LedgerWrite::Raced(old) })
            }
            Conditional::Failed(None) => {
                Err(StoreError::corrupt("delivery ledger", &next.event, "gone between two writes"))
            }
        }
    }

    /// At most `limit` ledgers, in no order: for the replay's output.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ledgers(&self, limit: usize) -> Result<Vec<Ledger>, StoreError> {
        self.scan("sk = :sk", "LEDGER", limit).await?.into_iter().map(from_stored).collect()
    }
}

fn from_stored(item: Item) -> Result<Ledger, StoreError> {
    from_item("delivery ledger", item)
}

fn to_stored(ledger: &Ledger) -> Result<Item, StoreError> {
    to_item("delivery ledger", keys::ledger(&ledger.event), ledger, Some(ledger.at.ttl(LEDGER_LIFETIME)))
}
