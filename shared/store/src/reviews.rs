//! Memory reviews: jobs that only add facts. The claim is an item of its own, so that a job that comes twice is done
//! once: claimed, then done in the transaction that keeps its facts. A claim whose worker died ends by itself.

use std::time::Duration;

use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};
use serde::{Deserialize, Serialize};
use turnlock_domain::time::Millis;

use crate::error::StoreError;
use crate::item::{from_item, ms, n, s};
use crate::memory::{Fact, fingerprint};
use crate::request::{Conditional, Transaction};
use crate::sessions::{LEASE_MARGIN, update};
use crate::write::{self, SECOND, reason};
use crate::{LEDGER_LIFETIME, Store, keys};

/// What claiming a review came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewClaim {
    /// It is this worker's.
    Mine,
    /// It was done before.
    Done,
    /// Another worker is at it.
    HeldBy {
        /// When that worker's claim ends by itself.
        until: Millis,
    },
}

/// What finishing a review came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reviewed {
    /// Its facts are kept.
    Kept,
    /// This worker's own earlier sending kept them.
    AlreadyKept,
    /// Another worker has the claim by now, or is done; nothing was written.
    Superseded,
}

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    worker: String,
    until_ms: Millis,
    done: bool,
    #[serde(default)]
    failures: u32,
}

impl Store {
    /// Takes the claim of the review `job` for this worker until `now + lease`.
    ///
    /// # Errors
    /// [`StoreError`]; a claim that was taken by a lost request is this worker's when it asks again.
    pub async fn claim_review(
        &self,
        job: &str,
        worker: &str,
        now: Millis,
        lease: Duration,
    ) -> Result<ReviewClaim, StoreError> {
        let (pk, sk) = keys::job_claim(job);
        let request = self
            .update_item(pk, sk)
            .update_expression("SET worker = :worker, until_ms = :until, done = :no, expires_at = :ttl")
            .condition_expression(
                "attribute_not_exists(pk) OR expires_at <= :second OR (done = :no AND (worker = :worker OR until_ms <= :over))",
            )
            .expression_attribute_values(":worker", s(worker))
            .expression_attribute_values(":until", ms(now + lease))
            .expression_attribute_values(":no", aws_sdk_dynamodb::types::AttributeValue::Bool(false))
            .expression_attribute_values(":ttl", n(now.ttl(LEDGER_LIFETIME).0))
            .expression_attribute_values(":over", ms(now - LEASE_MARGIN))
            .expression_attribute_values(SECOND, write::second(now))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let Conditional::Failed(old) = self.update(request).await? else { return Ok(ReviewClaim::Mine) };
        let old: Stored = from_item("job claim", old.unwrap_or_default())?;
        let until = old.until_ms + LEASE_MARGIN;
        Ok(if old.done { ReviewClaim::Done } else { ReviewClaim::HeldBy { until } })
    }

    /// Keeps the review's facts (none is fine) and marks it done, in one transaction with the scope's epoch.
    ///
    /// # Errors
    /// [`StoreError`]; finishing again with the same worker is harmless.
    pub async fn finish_review(
        &self,
        job: &str,
        worker: &str,
        scope: &str,
        facts: &[Fact],
    ) -> Result<Reviewed, StoreError> {
        let claim = self
            .update_over(keys::job_claim(job), "SET done = :yes")
            .condition_expression("worker = :worker AND done = :no")
            .expression_attribute_values(":worker", s(worker))
            .expression_attribute_values(":yes", aws_sdk_dynamodb::types::AttributeValue::Bool(true))
            .expression_attribute_values(":no", aws_sdk_dynamodb::types::AttributeValue::Bool(false))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let mut actions = vec![update(Self::built(claim)?)];
        if !facts.is_empty() {
            actions.push(self.raise_epoch(scope)?);
            actions.extend(self.put_facts(scope, facts)?);
        }
        let token = format!("{job} {worker} {scope} {}", fingerprint(facts));
        match self.transact(actions, &token).await? {
            Transaction::Done => Ok(Reviewed::Kept),
            Transaction::Cancelled(mut reasons) => match reason(&mut reasons, 0).item {
                Some(old) => {
                    let old: Stored = from_item("job claim", old)?;
                    Ok(if old.done && old.worker == worker { Reviewed::AlreadyKept } else { Reviewed::Superseded })
                }
                None => Ok(Reviewed::Superseded),
            },
        }
    }

    /// Gives the claim back unfinished, so that the job's next receive need not wait for its end.
    ///
    /// # Errors
    /// [`StoreError`]; the claim then ends by itself.
    pub async fn release_review(&self, job: &str, worker: &str) -> Result<(), StoreError> {
        let (pk, sk) = keys::job_claim(job);
        let request = self
            .update_item(pk, sk)
            .update_expression("SET until_ms = :never")
            .condition_expression("worker = :worker")
            .expression_attribute_values(":never", ms(Millis(0)))
            .expression_attribute_values(":worker", s(worker));
        self.update(request).await.map(|_| ())
    }

    /// Counts a failure of this worker's and gives the claim back; returns how many there are by now, `None` if the claim
    /// is another's.
    ///
    /// # Errors
    /// [`StoreError`]; a failure whose answer was lost may be counted twice.
    pub async fn fail_review(&self, job: &str, worker: &str) -> Result<Option<u32>, StoreError> {
        let (pk, sk) = keys::job_claim(job);
        let request = self
            .update_item(pk, sk)
            .update_expression("SET until_ms = :never ADD failures :one")
            .condition_expression("worker = :worker AND done = :no")
            .expression_attribute_values(":never", ms(Millis(0)))
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":worker", s(worker))
            .expression_attribute_values(":no", aws_sdk_dynamodb::types::AttributeValue::Bool(false))
            .return_values(ReturnValue::AllNew);
        let Conditional::Met(item) = self.update(request).await? else { return Ok(None) };
        let claim: Stored = from_item("job claim", item.unwrap_or_default())?;
        Ok(Some(claim.failures))
    }

    /// Ends the claim of whoever works on the review `job`; returns whether anybody did. Only for a process that knows, by
    /// other means, that the worker is dead.
    ///
    /// # Errors
    /// [`StoreError`]; ending it again is harmless.
    pub async fn end_review_claim(&self, job: &str) -> Result<bool, StoreError> {
        let (pk, sk) = keys::job_claim(job);
        let request = self
            .update_item(pk, sk)
            .update_expression("SET until_ms = :never")
            .condition_expression("done = :no AND until_ms > :never")
            .expression_attribute_values(":never", ms(Millis(0)))
            .expression_attribute_values(":no", aws_sdk_dynamodb::types::AttributeValue::Bool(false));
        Ok(matches!(self.update(request).await?, Conditional::Met(_)))
    }
}
