//! Derived work: what a committed turn owes beside its reply. Each kind of job has a queue of its own; all of them are
//! handled here.
//!
//! A job changes neither the reply nor the outcome of the turn that owed it, and no user waits for one: it holds no
//! session lock. It comes at least once; a claim in the store makes it one piece of work, so a second delivery waits for
//! the first or finds that there is nothing left to do.
//!
//! How it fails: a failed try gives the message back with growing visibility. What the model or its answer is to blame
//! for is counted (`MAX_FAILURES` tries, then the job is given up and logged); what the store is to blame for is tried
//! until the queue gives the message up. A worker that dies is replaced when its visibility and its claim have ended. A day
//! whose cap is reached is nobody's failure: the job sleeps until the next one.
//!
//! | module | holds |
//! |---|---|
//! | `consolidate` | takes messages into memory and moves the boundary |
//! | `review_memory` | looks for what is worth remembering in the last turns |
//! | `save_memory` | the tool that both force the model to call: request, answer, facts |
//! | `windows` | a conversation as text, in pieces that a model reads whole |

mod consolidate;
mod review_memory;
mod save_memory;
mod windows;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use turnlock_domain::ids::digest;
use turnlock_domain::time::Millis;
use turnlock_domain::turn::{Job, ModelCall};
use turnlock_models::{ModelError, Purpose, Router};
use turnlock_queue::{Queue, Receipt, Record};
use turnlock_store::memory::Fact;
use turnlock_store::{Store, StoreError};

use crate::daily_cost;
use crate::dead_letter;
use crate::journal_line;
// How often a job may fail before it is given up; the turn's commit asks the same number before it owes the next one.
use crate::turn::{Handled, MAX_FAILURES};
use save_memory::{InvalidAnswer, Saved};
use windows::Window;

/// How long a received job stays out of sight unless its worker renews it: a worker that dies is replaced after this.
const VISIBILITY: Duration = Duration::from_secs(90);
/// How often that is renewed.
const RENEW_EVERY: Duration = Duration::from_secs(30);
/// How long a claim holds unless renewed; longer than one call of the model, which nothing renews it during.
const CLAIM_LEASE: Duration = Duration::from_secs(180);
/// How long the models may take to answer one question, all of them together.
const MODEL_TIMEOUT: Duration = Duration::from_secs(120);
/// The wait after a first failure; it grows fourfold.
const FIRST_RETRY: Duration = Duration::from_secs(30);
/// The longest sleep: a queue hides a message for 12 hours at the most (SQS, "Visibility timeout").
const LONGEST_SLEEP: Duration = Duration::from_secs(11 * 3600);
/// The longest wait.
const LONGEST_RETRY: Duration = Duration::from_secs(15 * 60);

/// What the jobs need.
#[derive(Clone)]
pub struct Jobs {
    /// The table.
    pub store: Store,
    /// The models that read conversations for the memory.
    pub models: Arc<Router>,
    /// Where a record goes that is no job.
    pub dead_letters: Arc<dyn Queue>,
    /// What all models together may cost in a day, in millionths of the currency.
    pub daily_cost: Option<u64>,
}

/// What one receive of a job came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobOutcome {
    /// It is done, or there was nothing to do.
    Done,
    /// It should come back: after a failure, or because another worker is at it.
    Retry {
        /// When.
        after: Duration,
    },
    /// The session moved on, or the job was done before.
    Superseded,
    /// It failed too often and is given up.
    Failed,
}

/// One receive of a job.
struct Receive<'a> {
    job: &'a Job,
    id: String,
    /// A name that no other receive has.
    worker: String,
    /// How often the message has been received, this time included.
    count: u32,
}

/// Why a try came to nothing.
#[derive(Debug, thiserror::Error)]
enum JobError {
    #[error("the model gave no answer")]
    Model(#[from] ModelError),
    #[error("the model's answer cannot be used")]
    Answer(#[from] InvalidAnswer),
    #[error("the store failed")]
    Store(#[from] StoreError),
    #[error("the deployment has spent what it may spend today")]
    DailyLimit,
}

impl Jobs {
    /// Handles one record of `queue`, a job queue: done with, whatever it came to, or given back. A body that is no job
    /// of this version goes to the dead letters: a newer version may know it, and `redrive` brings it back.
    pub async fn handle(&self, queue: &dyn Queue, record: &Record) -> Handled {
        let outcome = match serde_json::from_str::<Job>(&record.body) {
            Ok(job) => tokio::select! {
                biased;
                outcome = self.run(&job, record) => outcome,
                never = keep_out_of_sight(queue, &record.receipt) => match never {},
            },
            Err(error) => {
                let (line, column) = (error.line(), error.column());
                tracing::error!(message_id = record.message_id, line, column, "a message in a job queue is no job");
                return dead_letter::give_up(&*self.dead_letters, (queue, dead_letter::JOB), record).await;
            }
        };
        match outcome {
            JobOutcome::Done | JobOutcome::Superseded | JobOutcome::Failed => Handled::Done,
            JobOutcome::Retry { after } => dead_letter::give_back(queue, record, after).await,
        }
    }

    /// Works on a job once. `record` is the receive it came with.
    pub async fn run(&self, job: &Job, record: &Record) -> JobOutcome {
        let worker = digest(record.receipt.0.as_bytes()).chars().take(32).collect();
        let receive = Receive { job, id: job.id(), worker, count: record.receive_count };
        match job {
            Job::Consolidate(target) => self.consolidate(&receive, target).await,
            Job::ReviewMemory(target) => self.review_memory(&receive, target).await,
        }
    }
}

impl Jobs {
    /// Shows a model a window, unless the day has cost what it may, and takes what it wants to keep.
    async fn ask(
        &self,
        receive: &Receive<'_>,
        purpose: Purpose,
        window: &Window,
        known: &[Fact],
    ) -> Result<(Saved, ModelCall), JobError> {
        if daily_cost::is_reached(&self.store, self.daily_cost).await {
            return Err(JobError::DailyLimit);
        }
        let target = receive.job.target();
        let began = Instant::now();
        let (saved, call) = save_memory::ask(&self.models, purpose, &target.session, window, known).await?;
        journal_line::model_call(&target.event_id, &target.session, purpose, &call, began.elapsed(), "answered");
        daily_cost::add(&self.store, self.daily_cost, call.usage.cost).await;
        Ok((saved?, call))
    }
}

/// Renews the visibility of a received message for as long as it is polled.
async fn keep_out_of_sight(queue: &dyn Queue, receipt: &Receipt) -> Infallible {
    loop {
        match queue.set_visibility(receipt, VISIBILITY).await {
            Ok(()) => {}
            Err(error) if error.is_retryable() => tracing::debug!(%error, "a job's visibility was not renewed"),
            // Somebody else has the message by now; the claim decides who works.
            Err(_) => std::future::pending().await,
        }
        tokio::time::sleep(RENEW_EVERY).await;
    }
}

/// The wait after the `failures`th failure.
fn backoff(failures: u32) -> Duration {
    let factor = 4u32.saturating_pow(failures.saturating_sub(1));
    FIRST_RETRY.saturating_mul(factor).min(LONGEST_RETRY)
}

/// The wait after a failure that was counted as the `failures`th: what the provider asks for, if that is longer.
fn retry_after(failures: u32, error: &JobError) -> Duration {
    let asked = match error {
        JobError::Model(error) => error.retry_after().unwrap_or_default(),
        JobError::Answer(_) | JobError::Store(_) | JobError::DailyLimit => Duration::ZERO,
    };
    backoff(failures).max(asked.min(LONGEST_RETRY))
}

/// A failure that is not counted: the queue bounds how often.
fn postponed(receive: &Receive<'_>, error: &JobError) -> JobOutcome {
    log_failure(receive, error, receive.count);
    JobOutcome::Retry { after: backoff(receive.count) }
}

/// The job sleeps until the day is over; over noon it is looked at once more.
fn tomorrow(receive: &Receive<'_>, now: Millis) -> JobOutcome {
    log_failure(receive, &JobError::DailyLimit, receive.count);
    JobOutcome::Retry { after: daily_cost::left_of_day(now).min(LONGEST_SLEEP) }
}

/// The one line of a job that has come to its end.
fn log(receive: &Receive<'_>, to: Option<u64>, outcome: JobOutcome, attempts: u32) {
    let outcome = match outcome {
        JobOutcome::Done => "done",
        JobOutcome::Failed => "failed",
        JobOutcome::Superseded => "superseded",
        JobOutcome::Retry { .. } => return,
    };
    let (kind, target) = (receive.job.kind(), receive.job.target());
    tracing::info!(target: journal_line::JOB, kind, session = %target.session, generation = target.generation,
        from = target.from, to, outcome, attempts, event_id = %target.event_id,
        "job {kind} of session {}: {outcome}", target.session);
}

/// A try that failed, in the log of the operator.
fn log_failure(receive: &Receive<'_>, error: &JobError, failures: u32) {
    let below = std::iter::successors(std::error::Error::source(error), |error| error.source());
    let error = below.fold(error.to_string(), |line, error| format!("{line}: {error}"));
    let (kind, session) = (receive.job.kind(), &receive.job.target().session);
    tracing::warn!(kind, %session, failures, error, "job {kind} of session {session} failed");
}

#[cfg(test)]
mod tests;
