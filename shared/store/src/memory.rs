//! Long-term memory, by scope (a person, a chat, a workspace): facts, episodes, and the scope's head with its epoch.
//!
//! Every write to a scope raises its epoch in the same transaction, so a snapshot (the text that turns are given) that
//! was built before is recognised as old. A rebuilt snapshot is stamped with the epoch that was read **before** its facts
//! were read: a fact that was forgotten meanwhile raised the epoch, so the snapshot that still holds it is already old
//! (trace V14).
//!
//! No evidence, no memory: neither a [`Fact`] nor an [`Episode`] can be made without an [`Evidence`]. Texts and lists are
//! bounded when they are made, so no item comes near DynamoDB's limit.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{ReturnValuesOnConditionCheckFailure, TransactWriteItem};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;

use crate::error::StoreError;
use crate::item::{from_item, n, s, to_item};
use crate::request::{Conditional, Item, Transaction};
use crate::sessions::{put, update};
use crate::{Store, keys};

/// The most facts that one write keeps.
pub const MAX_FACTS: usize = 40;
/// The most facts of a scope that a search or a snapshot looks at.
pub const MAX_FACTS_READ: usize = 500;
/// The most characters of a fact's text.
pub const MAX_FACT_CHARS: usize = 1_000;
/// The most characters of an episode's summary.
pub const MAX_SUMMARY_CHARS: usize = 8_000;
/// The most characters of a fact's key; a longer one is hashed.
pub const MAX_KEY_CHARS: usize = 128;
/// The most event ids that an evidence names: the newest.
pub const MAX_EVIDENCE_EVENTS: usize = 20;
/// The most episodes that are read to find the newest.
const MAX_EPISODES_READ: usize = 100;

/// The head of a memory scope.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScopeHead {
    /// Whose memory it is.
    pub scope: String,
    /// How often the scope was written to.
    pub epoch: u64,
    /// The text built from its facts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The epoch that was read before the facts of that text were.
    pub snapshot_epoch: u64,
}

impl ScopeHead {
    /// The snapshot, if nothing was written to the scope since.
    #[must_use]
    pub fn fresh_snapshot(&self) -> Option<&str> {
        self.snapshot.as_deref().filter(|_| self.snapshot_epoch == self.epoch)
    }

    /// Whether there is something that no fresh snapshot shows. A scope that was never written to has nothing to build.
    #[must_use]
    pub fn needs_snapshot(&self) -> bool {
        self.epoch > 0 && self.fresh_snapshot().is_none()
    }
}

/// Where a memory comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    session: SessionKey,
    generation: u32,
    from: u64,
    to: u64,
    #[serde(default)]
    event_ids: Vec<EventId>,
    model: String,
    at: Millis,
}

/// Why something cannot be remembered. Trying again does not help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unmemorable {
    /// There is no message that it comes from.
    #[error("no evidence, no memory: the range of messages is empty")]
    NoEvidence,
    /// There is no text.
    #[error("there is no text to remember")]
    NoText,
}

impl Evidence {
    /// The messages from `from` up to but without `to` of a session's generation, seen by `model` at `at`; of
    /// `event_ids`, oldest first, the newest [`MAX_EVIDENCE_EVENTS`] are kept.
    ///
    /// # Errors
    /// [`Unmemorable::NoEvidence`] when the range is empty.
    pub fn new(
        session: SessionKey,
        generation: u32,
        range: std::ops::Range<u64>,
        mut event_ids: Vec<EventId>,
        model: impl Into<String>,
        at: Millis,
    ) -> Result<Self, Unmemorable> {
        if range.is_empty() {
            return Err(Unmemorable::NoEvidence);
        }
        event_ids.drain(..event_ids.len().saturating_sub(MAX_EVIDENCE_EVENTS));
        Ok(Self { session, generation, from: range.start, to: range.end, event_ids, model: model.into(), at })
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &SessionKey {
        &self.session
    }

    /// Its generation.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The messages: the first, and the one after the last.
    #[must_use]
    pub fn range(&self) -> std::ops::Range<u64> {
        self.from..self.to
    }

    /// The events of these messages, oldest first; the newest [`MAX_EVIDENCE_EVENTS`].
    #[must_use]
    pub fn event_ids(&self) -> &[EventId] {
        &self.event_ids
    }

    /// The model that found it.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// When.
    #[must_use]
    pub fn at(&self) -> Millis {
        self.at
    }
}

/// One thing that is remembered. In its scope a later fact of the same key replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    key: String,
    text: String,
    evidence: Evidence,
}

impl Fact {
    /// The fact `text` under a normalised `key` (see [`fact_key`]); without a key, the text is its own.
    ///
    /// # Errors
    /// [`Unmemorable::NoText`] when there is no visible text.
    pub fn new(key: &str, text: &str, evidence: Evidence) -> Result<Self, Unmemorable> {
        let text = bounded(text, MAX_FACT_CHARS).ok_or(Unmemorable::NoText)?;
        let key = fact_key(if key.trim().is_empty() { &text } else { key });
        Ok(Self { key, text, evidence })
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where it comes from.
    #[must_use]
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }
}

/// A stretch of a conversation, in a few sentences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Episode {
    summary: String,
    evidence: Evidence,
}

impl Episode {
    /// The summary of the messages that `evidence` names.
    ///
    /// # Errors
    /// [`Unmemorable::NoText`] when there is no visible text.
    pub fn new(summary: &str, evidence: Evidence) -> Result<Self, Unmemorable> {
        let summary = bounded(summary, MAX_SUMMARY_CHARS).ok_or(Unmemorable::NoText)?;
        Ok(Self { summary, evidence })
    }

    /// The summary.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// Where it comes from: session, generation and range of the stretch.
    #[must_use]
    pub fn evidence(&self) -> &Evidence {
        &self.evidence
    }
}

fn bounded(text: &str, max: usize) -> Option<String> {
    let text: String = text.trim().chars().take(max).collect();
    (!text.is_empty()).then_some(text)
}

/// `text` as a fact's key: lower case, letters and digits of every script, everything else one `-`. What is longer than
/// [`MAX_KEY_CHARS`] or has no letter at all is hashed. Never empty.
#[must_use]
pub fn fact_key(text: &str) -> String {
    let mut key = String::new();
    for character in text.to_lowercase().chars() {
        if character.is_alphanumeric() {
            key.push(character);
        } else if !key.is_empty() && !key.ends_with('-') {
            key.push('-');
        }
    }
    let key = key.trim_end_matches('-');
    if key.is_empty() || key.chars().count() > MAX_KEY_CHARS {
        return format!("~{}", hex::encode(&Sha256::digest(text.as_bytes())[..16]));
    }
    key.to_owned()
}

/// What forgetting a fact came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgotten {
    /// It is gone, and every snapshot that shows it is old.
    Gone,
    /// There is no such fact.
    NotThere,
}

/// What writing a snapshot came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotWrite {
    /// It is the scope's snapshot.
    Written,
    /// One as new, or newer, is there; or the scope is gone.
    NotNewer,
}

impl Store {
    /// The head of a scope; epoch 0 if nothing was ever written to it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn scope_head(&self, scope: &str) -> Result<ScopeHead, StoreError> {
        let (pk, sk) = keys::scope_head(scope);
        let Some(item) = self.get(self.get_item(pk, sk)).await? else {
            return Ok(ScopeHead { scope: scope.to_owned(), ..ScopeHead::default() });
        };
        from_item("scope head", item)
    }

    /// At most `limit` facts of a scope, by key, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn facts(&self, scope: &str, limit: usize) -> Result<Vec<Fact>, StoreError> {
        let items = self.memories(scope, "F#", true, limit).await?;
        items.into_iter().map(|item| from_item("fact", item)).collect()
    }

    /// The newest `limit` episodes of a scope, newest first, among those of the sessions that sort last: a scope with
    /// more than a hundred episodes of several sessions may hide newer ones.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn episodes(&self, scope: &str, limit: usize) -> Result<Vec<Episode>, StoreError> {
        let items = self.memories(scope, "P#", false, limit.max(MAX_EPISODES_READ)).await?;
        let episodes: Result<Vec<Episode>, _> = items.into_iter().map(|item| from_item("episode", item)).collect();
        let mut episodes = episodes?;
        episodes.sort_by_key(|episode| std::cmp::Reverse(episode.evidence.at));
        episodes.truncate(limit);
        Ok(episodes)
    }

    async fn memories(&self, scope: &str, prefix: &str, forward: bool, limit: usize) -> Result<Vec<Item>, StoreError> {
        let request = self
            .query()
            .key_condition_expression("pk = :pk AND begins_with(sk, :prefix)")
            .expression_attribute_values(":pk", s(keys::scope_partition(scope)))
            .expression_attribute_values(":prefix", s(prefix))
            .scan_index_forward(forward);
        self.query_pages(request, limit).await
    }

    /// Keeps facts in a scope: the first [`MAX_FACTS`], of several with the same key the last. One transaction with the
    /// scope's epoch. `token` names the piece of work; the same facts under the same token are recognised for ten minutes,
    /// later they are written again, which changes nothing but the epoch.
    ///
    /// # Errors
    /// [`StoreError`]; remembering it again is harmless.
    pub async fn remember(&self, scope: &str, facts: &[Fact], token: &str) -> Result<(), StoreError> {
        if facts.is_empty() {
            return Ok(());
        }
        let mut actions = vec![self.raise_epoch(scope)?];
        actions.extend(self.put_facts(scope, facts)?);
        match self.transact(actions, &format!("remember {scope} {token} {}", fingerprint(facts))).await? {
            Transaction::Done => Ok(()),
            Transaction::Cancelled(_) => Err(StoreError::corrupt("scope head", scope, "refused without a condition")),
        }
    }

    /// Forgets a fact, in one transaction with the scope's epoch. `key` may be as [`Fact::key`] gives it or as a person
    /// writes it.
    ///
    /// # Errors
    /// [`StoreError`]; forgetting it again is harmless.
    pub async fn forget(&self, scope: &str, key: &str) -> Result<Forgotten, StoreError> {
        let key = if key.starts_with('~') { key.to_owned() } else { fact_key(key) };
        let gone = self.delete_over(keys::fact(scope, &key), Some("attribute_exists(pk)"))?;
        let actions = vec![self.raise_epoch(scope)?, gone];
        // A name of its own for every call: a fact may be remembered and forgotten again within ten minutes.
        match self.transact(actions, &self.write_name()).await? {
            Transaction::Done => Ok(Forgotten::Gone),
            Transaction::Cancelled(_) => Ok(Forgotten::NotThere),
        }
    }

    /// Stores a snapshot, stamped with `epoch`: the one of the head that was read **before** the facts of this text.
    ///
    /// # Errors
    /// [`StoreError`]; the next turn builds it again.
    pub async fn write_snapshot(&self, scope: &str, snapshot: &str, epoch: u64) -> Result<SnapshotWrite, StoreError> {
        let (pk, sk) = keys::scope_head(scope);
        let request = self
            .update_item(pk, sk)
            .update_expression("SET #snapshot = :snapshot, snapshot_epoch = :epoch")
            // `epoch >= :epoch` holds of every scope that is still there: one that was purged must not come back.
            .condition_expression(
                "epoch >= :epoch AND (attribute_not_exists(snapshot_epoch) OR snapshot_epoch < :epoch)",
            )
            .expression_attribute_names("#snapshot", "snapshot")
            .expression_attribute_values(":snapshot", s(snapshot))
            .expression_attribute_values(":epoch", n(epoch))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let Conditional::Failed(old) = self.update(request).await? else { return Ok(SnapshotWrite::Written) };
        let old: ScopeHead = from_item("scope head", old.unwrap_or_default())?;
        let same = old.snapshot_epoch == epoch && old.snapshot.as_deref() == Some(snapshot);
        Ok(if same { SnapshotWrite::Written } else { SnapshotWrite::NotNewer })
    }

    /// The action that every write to a scope carries.
    pub(crate) fn raise_epoch(&self, scope: &str) -> Result<TransactWriteItem, StoreError> {
        let raise = self
            .update_over(keys::scope_head(scope), "SET #scope = :scope ADD epoch :one")
            .expression_attribute_names("#scope", "scope")
            .expression_attribute_values(":scope", s(scope))
            .expression_attribute_values(":one", n(1));
        Ok(update(Self::built(raise)?))
    }

    /// The actions that keep facts. One transaction may touch an item once, so of facts with one key the last is kept.
    pub(crate) fn put_facts(&self, scope: &str, facts: &[Fact]) -> Result<Vec<TransactWriteItem>, StoreError> {
        let kept: BTreeMap<&str, &Fact> = facts.iter().take(MAX_FACTS).map(|fact| (fact.key(), fact)).collect();
        kept.into_values()
            .map(|fact| Ok(put(self.put_over(to_item("fact", keys::fact(scope, &fact.key), fact, None)?)?)))
            .collect()
    }

    /// The action that keeps an episode, under its session, generation and first message.
    pub(crate) fn put_episode(&self, scope: &str, episode: &Episode) -> Result<TransactWriteItem, StoreError> {
        let evidence = &episode.evidence;
        let key = keys::episode(scope, &evidence.session, evidence.generation, evidence.from);
        Ok(put(self.put_over(to_item("episode", key, episode, None)?)?))
    }
}

/// What tells two writes of different facts apart: one token with two contents would be refused for good.
pub(crate) fn fingerprint(facts: &[Fact]) -> String {
    turnlock_domain::ids::digest(&serde_json::to_vec(facts).unwrap_or_default())
}
