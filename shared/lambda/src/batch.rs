//! Batches of queue messages, as an event source mapping with `ReportBatchItemFailures` hands them over (Lambda Developer
//! Guide, "Using Lambda with Amazon SQS"). The answer names the records that are to come again; all others are deleted.
//!
//! In a FIFO queue the rest of a group goes back with the first of its records that does, with the same visibility, so
//! that none overtakes it; other groups go on. No record is started that the invocation could not finish. Everything is
//! awaited before the answer: what would run on afterwards would be frozen with the process.
//!
//! How it fails: an event that is no batch of SQS is an error, which Lambda counts and repeats as a whole. Nothing else
//! is: a handler that panics gives its record back.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tracing::Instrument;
use turnlock_app::journal_line;
use turnlock_app::turn::Handled;
use turnlock_clock::Clock;
use turnlock_config::Config;
use turnlock_domain::time::Millis;
use turnlock_queue::{Queue, Receipt, Record};

use crate::logs;
use crate::reload::Reloading;
use crate::start::{Start, StartError};

/// What is left of an invocation when no further record is started: enough to set a visibility and to answer.
const RESERVE: Duration = Duration::from_secs(6);
/// How long a record rests whose handler panicked.
const AFTER_PANIC: Duration = Duration::from_secs(30);

/// A batch that was received.
pub struct Batch {
    /// The records, in the queue's order.
    pub records: Vec<Record>,
    /// Whether they come from a FIFO queue.
    pub is_fifo: bool,
    /// When the invocation ends.
    pub deadline: Instant,
}

/// Serves batches until Lambda ends the process: `build` makes the use case, `handle` works on a batch with it and
/// returns the message ids of the records that are to come again, their visibility set.
///
/// # Errors
/// [`StartError`]; nothing once it runs.
pub async fn serve<T>(
    start: Start,
    build: impl Fn(&Start, &Arc<Config>) -> Result<T, StartError> + 'static,
    handle: impl AsyncFn(&T, Batch) -> Vec<String>,
) -> Result<(), StartError> {
    let clock = start.clock();
    let use_case = Reloading::new(start, build).await?;
    let (use_case, handle, clock) = (&use_case, &handle, &clock);
    let answer = async move |event: LambdaEvent<Event>| -> Result<Answer, Error> {
        let batch = event.payload.into_batch(event.context.deadline, clock);
        let (received, oldest) = (batch.records.len(), oldest(&batch.records, clock));
        let back = handle(&*use_case.get().await, batch).await;
        logs::batch(received, back.len(), oldest);
        Ok(Answer::new(back))
    };
    let ended = lambda_runtime::run(service_fn(|event| Box::pin(answer(event)))).await;
    ended.map_err(StartError::Runtime)
}

impl Batch {
    /// Works on the records one after another, telling `handle` when the invocation ends; returns the message ids of those that come again. `queue` is where they
    /// come from.
    pub async fn each(self, queue: &dyn Queue, handle: impl AsyncFn(&Record, Instant) -> Handled) -> Vec<String> {
        let mut held: BTreeMap<String, Duration> = BTreeMap::new();
        let mut back = Vec::new();
        for record in &self.records {
            let group = record.group.as_deref().filter(|_| self.is_fifo);
            if let Some(after) = group.and_then(|group| held.get(group)) {
                give_back(queue, record, *after).await;
            } else if Instant::now() + RESERVE >= self.deadline {
                give_back(queue, record, Duration::ZERO).await;
            } else {
                match guarded(queue, record, async || handle(record, self.deadline).await).await {
                    Handled::Done => continue,
                    Handled::GivenBack(after) => {
                        if let Some(group) = group {
                            held.insert(group.to_owned(), after);
                        }
                    }
                }
            }
            back.push(record.message_id.clone());
        }
        back
    }
}

/// One record, in a span that names it; a panic is an end like any other.
async fn guarded(queue: &dyn Queue, record: &Record, handle: impl AsyncFnOnce() -> Handled) -> Handled {
    let span = journal_line::record_span(record);
    // The call stands inside the future, so that a panic before its first await is contained too.
    match AssertUnwindSafe(Box::pin(async { handle().await }).instrument(span)).catch_unwind().await {
        Ok(handled) => handled,
        Err(_) => {
            give_back(queue, record, AFTER_PANIC).await;
            Handled::GivenBack(AFTER_PANIC)
        }
    }
}

async fn give_back(queue: &dyn Queue, record: &Record, after: Duration) {
    if let Err(error) = queue.set_visibility(&record.receipt, after).await {
        // It comes again all the same, when the visibility it has is over.
        tracing::debug!(message_id = record.message_id, %error, "the visibility was not set");
    }
}

fn oldest(records: &[Record], clock: &Clock) -> Duration {
    let now = clock.now_ms();
    records.iter().map(|record| now.since(record.sent_at)).max().unwrap_or_default()
}

/// An event of SQS, as far as it is read.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "Records")]
    records: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    message_id: String,
    receipt_handle: String,
    #[serde(default)]
    body: String,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default)]
    message_attributes: BTreeMap<String, Attribute>,
    #[serde(default, rename = "eventSourceARN")]
    event_source_arn: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attribute {
    string_value: Option<String>,
}

impl Event {
    fn into_batch(self, deadline_ms: u64, clock: &Clock) -> Batch {
        let is_fifo = self.records.iter().any(|message| message.event_source_arn.ends_with(".fifo"));
        let deadline = Millis(i64::try_from(deadline_ms).unwrap_or(i64::MAX));
        let left = deadline.since(clock.now_ms());
        Batch {
            records: self.records.into_iter().map(Message::into_record).collect(),
            is_fifo,
            deadline: Instant::now() + left,
        }
    }
}

impl Message {
    fn into_record(self) -> Record {
        let number = |name: &str| self.attributes.get(name).and_then(|text| text.parse::<i64>().ok());
        let attributes = self.message_attributes.into_iter();
        Record {
            receive_count: number("ApproximateReceiveCount").and_then(|count| u32::try_from(count).ok()).unwrap_or(1),
            sent_at: Millis(number("SentTimestamp").unwrap_or_default()),
            group: self.attributes.get("MessageGroupId").cloned(),
            message_id: self.message_id,
            receipt: Receipt(self.receipt_handle),
            body: self.body,
            attributes: attributes.filter_map(|(name, value)| Some((name, value.string_value?))).collect(),
        }
    }
}

/// The answer: what comes again.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    batch_item_failures: Vec<Failure>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure {
    item_identifier: String,
}

impl Answer {
    fn new(back: Vec<String>) -> Self {
        let unique: BTreeSet<String> = back.into_iter().collect();
        let failures = unique.into_iter().map(|item_identifier| Failure { item_identifier });
        Self { batch_item_failures: failures.collect() }
    }
}

#[cfg(test)]
mod tests;
