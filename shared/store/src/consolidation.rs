//! Consolidation: long-term memory takes in a range of a session's messages, and the boundary moves over it, in one
//! transaction.
//!
//! A claim on the session head says which job is queued or running ([`Claim`]): a turn's commit sets it when the job
//! falls due, and it ends by itself. The worker writes its name into it and fixes the end of its range there, so that a
//! repetition works on the same messages. It holds no session lock and delays no turn.
//!
//! Races: a second delivery of the job finds [`ClaimStart::HeldBy`]; a reset, another job or a boundary that moved makes
//! it [`ClaimStart::Superseded`]. Whatever happened meanwhile, the last transaction compares generation, boundary, job and
//! worker, and only then moves anything: an interrupted consolidation leaves no trace, a late one is
//! [`Finished::Superseded`], and one whose answer was lost finds its own name beside the boundary.

use std::time::Duration;

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem};
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;

use crate::error::StoreError;
use crate::item::{from_item, ms, n, s, text};
use crate::memory::{Episode, Fact, fingerprint};
use crate::request::{Conditional, Item, Transaction};
use crate::sessions::{Head, LEASE_MARGIN, update};
use crate::write::{number, reason};
use crate::{Store, keys};

/// Who consolidates what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The session.
    pub session: SessionKey,
    /// Its generation when the job was owed.
    pub generation: u32,
    /// The boundary that the job starts from.
    pub from: u64,
    /// The job's id.
    pub job: String,
    /// The worker's random id: one for each receive of the job.
    pub worker: String,
}

/// What starting a consolidation came to.
#[derive(Debug)]
pub enum ClaimStart {
    /// The claim is this worker's.
    Mine {
        /// The end of the range, if an earlier try fixed it.
        to: Option<u64>,
        /// The session head as it is now.
        head: Box<Head>,
    },
    /// The session moved on: reset, consolidated already, or another job's. There is nothing to do.
    Superseded,
    /// Another worker is at it.
    HeldBy {
        /// When that worker's claim ends by itself.
        until: Millis,
    },
}

/// What fixing the range came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetFixed {
    /// The range ends there: as asked, or as an earlier try fixed it.
    Fixed(u64),
    /// The claim is no longer this worker's.
    Lost,
}

/// What finishing a consolidation came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// The boundary moved, and memory has what was in the range.
    Moved,
    /// This worker's own earlier sending did it.
    AlreadyMoved,
    /// The session moved on; nothing was written.
    Superseded,
}

/// What noting a failure came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureNoted {
    /// So many failures in a row by now; the worker is free.
    Counted(u32),
    /// The claim is no longer this worker's; nothing was noted.
    NotMine,
}

/// The claim is this job's, on the range it was made for.
const SAME_RANGE: &str = "generation = :generation AND boundary = :from";
const MINE: &str = "claim_job = :job AND claim_worker = :worker";
/// What goes from the head when a consolidation is done.
const CLAIM: &str =
    "claim_job, claim_worker, claim_until, claim_to, claim_failures, claim_failed_count, claim_failed_by";

impl Store {
    /// Takes the claim for this worker until `now + lease`; a worker that has it renews it so.
    ///
    /// # Errors
    /// [`StoreError`]; a claim that was taken by a lost request is this worker's when it asks again.
    pub async fn start_consolidation(
        &self,
        claim: &Claim,
        now: Millis,
        lease: Duration,
    ) -> Result<ClaimStart, StoreError> {
        let request = self
            .claim_update(claim)
            .update_expression("SET claim_job = :job, claim_worker = :worker, claim_until = :until")
            .condition_expression(format!(
                "{SAME_RANGE} AND (attribute_not_exists(claim_job) OR claim_job = :job) AND \
                 (attribute_not_exists(claim_worker) OR claim_worker = :worker OR claim_until <= :over)"
            ))
            .expression_attribute_values(":generation", n(claim.generation))
            .expression_attribute_values(":from", n(claim.from))
            .expression_attribute_values(":until", ms(now + lease))
            .expression_attribute_values(":over", ms(now - LEASE_MARGIN))
            .return_values(ReturnValue::AllNew);
        let item = match self.update(request).await? {
            Conditional::Met(item) => item.unwrap_or_default(),
            Conditional::Failed(None) => return Ok(ClaimStart::Superseded),
            Conditional::Failed(Some(old)) => return held(claim, old),
        };
        let to = number(&item, "claim_to").filter(|to| *to > claim.from);
        Ok(ClaimStart::Mine { to, head: Box::new(from_item("session head", item)?) })
    }

    /// Fixes the end of the range in the claim; one that is fixed already stays.
    ///
    /// # Errors
    /// [`StoreError`]; fixing it again is harmless.
    pub async fn fix_consolidation_target(&self, claim: &Claim, to: u64) -> Result<TargetFixed, StoreError> {
        let request = self
            .claim_update(claim)
            .update_expression("SET claim_to = if_not_exists(claim_to, :to)")
            .condition_expression(format!("{SAME_RANGE} AND {MINE}"))
            .expression_attribute_values(":generation", n(claim.generation))
            .expression_attribute_values(":from", n(claim.from))
            .expression_attribute_values(":to", n(to))
            .return_values(ReturnValue::UpdatedNew);
        Ok(match self.update(request).await? {
            Conditional::Met(item) => {
                TargetFixed::Fixed(item.as_ref().and_then(|item| number(item, "claim_to")).unwrap_or(to))
            }
            Conditional::Failed(_) => TargetFixed::Lost,
        })
    }

    /// Moves the boundary over the range that `episode` is about, and keeps the episode and at most
    /// [`crate::memory::MAX_FACTS`] facts, in one transaction with the scope's epoch. The claim is gone then.
    ///
    /// # Errors
    /// [`StoreError`]; finishing again with the same worker is harmless. [`StoreError::Corrupt`] when the episode is
    /// about another range than the claim.
    pub async fn finish_consolidation(
        &self,
        claim: &Claim,
        scope: &str,
        episode: &Episode,
        facts: &[Fact],
    ) -> Result<Finished, StoreError> {
        let evidence = episode.evidence();
        let (range, same_session) = (evidence.range(), evidence.session() == &claim.session);
        if !same_session || evidence.generation() != claim.generation || range.start != claim.from {
            return Err(StoreError::corrupt("episode", &claim.job, "about another range than its claim"));
        }
        let mut actions = vec![self.move_boundary(claim, range.end)?];
        actions.push(self.raise_epoch(scope)?);
        actions.push(self.put_episode(scope, episode)?);
        actions.extend(self.put_facts(scope, facts)?);
        let content = turnlock_domain::ids::digest(episode.summary().as_bytes());
        let token = format!("{} {} {scope} {} {content} {}", claim.job, claim.worker, range.end, fingerprint(facts));
        match self.transact(actions, &token).await? {
            Transaction::Done => Ok(Finished::Moved),
            Transaction::Cancelled(mut reasons) => Ok(finished(claim, range.end, reason(&mut reasons, 0).item)),
        }
    }

    fn move_boundary(&self, claim: &Claim, to: u64) -> Result<TransactWriteItem, StoreError> {
        let expression = format!("SET boundary = :to, boundary_by = :worker REMOVE {CLAIM}");
        let head = self
            .update_over(keys::head(&claim.session), &expression)
            .condition_expression(format!(
                "{SAME_RANGE} AND {MINE} AND (attribute_not_exists(claim_to) OR claim_to = :to) AND message_count >= :to"
            ))
            .expression_attribute_values(":generation", n(claim.generation))
            .expression_attribute_values(":from", n(claim.from))
            .expression_attribute_values(":to", n(to))
            .expression_attribute_values(":job", s(&claim.job))
            .expression_attribute_values(":worker", s(&claim.worker))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        Ok(update(Self::built(head)?))
    }

    /// Notes that this worker failed, and frees the claim for the job's next receive. The fixed range stays.
    ///
    /// # Errors
    /// [`StoreError`]; a failure that was not noted costs the wait for the claim's end.
    pub async fn fail_consolidation(&self, claim: &Claim) -> Result<FailureNoted, StoreError> {
        let request = self
            .claim_update(claim)
            .update_expression(
                "SET claim_failures = if_not_exists(claim_failures, :zero) + :one, claim_failed_by = :worker, \
                 claim_failed_count = if_not_exists(message_count, :zero) REMOVE claim_worker",
            )
            .condition_expression(MINE)
            .expression_attribute_values(":zero", n(0))
            .expression_attribute_values(":one", n(1))
            .return_values(ReturnValue::UpdatedNew);
        let failures = |item: &Item| number(item, "claim_failures").unwrap_or(1);
        Ok(match self.update(request).await? {
            Conditional::Met(item) => FailureNoted::Counted(item.as_ref().map_or(1, failures)),
            Conditional::Failed(Some(old)) if text(&old, "claim_failed_by") == Some(&claim.worker) => {
                FailureNoted::Counted(failures(&old))
            }
            Conditional::Failed(_) => FailureNoted::NotMine,
        })
    }

    /// Frees the session's claim from whoever works on it; the range that is fixed stays. Returns whether anybody did. Only
    /// for a process that knows, by other means, that the worker is dead: what it would still write is refused as ever.
    ///
    /// # Errors
    /// [`StoreError`]; ending it again is harmless.
    pub async fn end_consolidation_claim(&self, session: &SessionKey) -> Result<bool, StoreError> {
        let (pk, sk) = keys::head(session);
        let request = self
            .update_item(pk, sk)
            .update_expression("REMOVE claim_worker")
            .condition_expression("attribute_exists(claim_worker)");
        Ok(matches!(self.update(request).await?, Conditional::Met(_)))
    }

    fn claim_update(&self, claim: &Claim) -> UpdateItemFluentBuilder {
        let (pk, sk) = keys::head(&claim.session);
        self.update_item(pk, sk)
            .expression_attribute_values(":job", s(&claim.job))
            .expression_attribute_values(":worker", s(&claim.worker))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
    }
}

/// Why the claim could not be taken, by the head as it is.
fn held(claim: &Claim, old: Item) -> Result<ClaimStart, StoreError> {
    let head: Head = from_item("session head", old)?;
    let same_range = head.generation == claim.generation && head.boundary == claim.from;
    let same_job = head.claim_job.as_ref().is_none_or(|job| *job == claim.job);
    Ok(match head.claim_until {
        Some(until) if same_range && same_job => ClaimStart::HeldBy { until: until + LEASE_MARGIN },
        _ => ClaimStart::Superseded,
    })
}

/// Whether the refused transaction had been carried out before, by the head as it is.
fn finished(claim: &Claim, to: u64, old: Option<Item>) -> Finished {
    let ours = old.is_some_and(|old| {
        text(&old, "boundary_by") == Some(&claim.worker)
            && number(&old, "boundary") == Some(to)
            && number(&old, "generation") == Some(claim.generation)
    });
    if ours { Finished::AlreadyMoved } else { Finished::Superseded }
}
