//! One part of a ledger: one platform message, and what is known of it.

use serde::{Deserialize, Serialize};
use turnlock_domain::event::Revision;
use turnlock_domain::ids::digest;

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
    pub(super) state: LedgerState,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) revision: Revision,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) message_ids: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) attempts: u32,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) resent: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) stray: bool,
    /// How many more such messages there may be than that one.
    #[serde(skip_serializing_if = "is_default")]
    pub(super) more_strays: u32,
    /// Whether the newest of its messages takes no more edits.
    #[serde(skip_serializing_if = "is_default")]
    pub(super) closed: bool,
    /// Whether messages before the newest may still stand: each took no more edits.
    #[serde(skip_serializing_if = "is_default")]
    pub(super) replaced: bool,
    /// A digest of what its message was last known to show; empty = unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) digest: String,
    /// Its own limit, in the platform's units, where the platform took less than its channel's; 0 = none.
    #[serde(skip_serializing_if = "is_default")]
    pub(super) limit: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// How much of a digest is kept: 64 bits tell two texts of one message apart.
const DIGEST: usize = 16;

/// The digest of a rendered text, as short as an item should keep it. White space around it is not shown.
pub(super) fn digest_of(text: &str) -> String {
    let mut whole = digest(text.trim().as_bytes());
    whole.truncate(DIGEST);
    whole
}

impl LedgerPart {
    /// How far it has come. Without a confirmed message id nothing is sent; and what was sent while another message of
    /// it may stand, whose answer was lost, stays uncertain.
    #[must_use]
    pub fn state(&self) -> LedgerState {
        match self.known() {
            LedgerState::Sent if self.stray || self.replaced => LedgerState::Uncertain,
            state => state,
        }
    }

    /// How far this part's newest call has come.
    #[must_use]
    pub fn known(&self) -> LedgerState {
        match self.state {
            LedgerState::Sent if self.message_ids.is_empty() => LedgerState::Uncertain,
            state => state,
        }
    }

    /// Whether a call's outcome is open: it runs, or its answer was lost.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.known(), LedgerState::Sending | LedgerState::Uncertain)
    }

    /// The revision that [`LedgerPart::state`] is about.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The platform message that shows it now: what an edit goes to.
    #[must_use]
    pub fn message_id(&self) -> Option<&str> {
        self.message_ids.last().filter(|_| !self.closed).map(String::as_str)
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

    /// Whether a message of it may stand in the chat beside the one that counts: a call's answer was lost, or an old
    /// message could not be taken away.
    #[must_use]
    pub fn stray(&self) -> bool {
        self.stray
    }

    /// The messages that its newest one replaced and that may still stand, oldest first.
    #[must_use]
    pub fn replaced(&self) -> &[String] {
        match self.message_ids.split_last() {
            Some((_, replaced)) if self.replaced && self.known() == LedgerState::Sent => replaced,
            _ => &[],
        }
    }

    /// Where `is_lost`, one more message of it may stand.
    pub(super) fn doubt(&mut self, is_lost: bool) {
        self.more_strays = self.more_strays.saturating_add(u32::from(is_lost && self.stray));
        self.stray |= is_lost;
    }

    /// One message less may stand.
    pub(super) fn resolve(&mut self) {
        self.stray = self.more_strays > 0;
        self.more_strays = self.more_strays.saturating_sub(1);
    }

    /// Whether its message is gone or takes no edits: what follows is a new message.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether its message is known to show just this: a call would change nothing.
    #[must_use]
    pub fn shows(&self, text: &str) -> bool {
        let settled = !self.is_open() && self.message_id().is_some();
        settled && !self.digest.is_empty() && self.digest == digest_of(text)
    }

    /// Whether its post may have arrived, and nobody knows as which message: a preview like that gets no more frames
    /// (trace V13).
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.is_open() && self.message_id().is_none()
    }

    /// Why it failed, is uncertain or was put off: a short word, never a platform's text.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }
}
