//! The worker pools: one for each queue, with the handler that drains it on AWS.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use turnlock_app::control::Control;
use turnlock_app::dead_letter;
use turnlock_app::deliver::{BATCH_TIME, Delivery};
use turnlock_app::jobs::Jobs;
use turnlock_app::turn::{Agent, Handled};
use turnlock_queue::local::{LocalQueues, UnknownQueue};
use turnlock_queue::pool::{Handler, WorkerPool, handler};
use turnlock_queue::{Queue, Record};

use crate::queues::{self, Senders};

/// How many deliveries run at once. Each takes one record, so that a chat waits for no other while a worker is free; the
/// queue keeps the order within a chat. On SQS a batch holds records of several chats and is deleted as a whole: there a
/// chat's next record waits until the slowest chat of its batch is done, at most the time of a batch.
const DELIVERIES: usize = 8;
/// How many commands are obeyed at once.
const CONTROLS: usize = 2;

/// What stands around a handler's work on one event: nothing, or a replay that counts and freezes it.
pub type Around = dyn Fn(&str, BoxFuture<'static, Vec<String>>) -> BoxFuture<'static, Vec<String>> + Send + Sync;

/// The use cases that drain queues.
pub(crate) struct Handlers {
    pub(crate) agent: Arc<Agent>,
    pub(crate) control: Arc<Control>,
    pub(crate) delivery: Arc<Delivery>,
    pub(crate) jobs: Arc<Jobs>,
}

/// The pools of every queue; nothing runs yet.
pub(crate) fn pools(
    local: &LocalQueues,
    senders: &Senders,
    handlers: &Handlers,
    concurrency: usize,
    around: Option<&Arc<Around>>,
) -> Result<Vec<WorkerPool>, UnknownQueue> {
    let pool = |name: &str, workers, batch, handler: Handler| {
        let handler = match around {
            Some(around) => surrounded(Arc::clone(around), handler),
            None => handler,
        };
        Ok::<_, UnknownQueue>(WorkerPool::new(local.queue(name)?, workers, batch, handler))
    };
    let delivery = Arc::clone(&handlers.delivery);
    let deliver = handler(move |records: Vec<Record>| {
        let delivery = Arc::clone(&delivery);
        async move { delivery.handle(records, Instant::now() + BATCH_TIME).await }
    });
    Ok(vec![
        pool(queues::INBOUND, concurrency, 1, turns(&handlers.agent))?,
        pool(queues::CONTROL, CONTROLS, 1, controls(&handlers.control))?,
        pool(queues::OUTBOUND, DELIVERIES, 1, deliver)?,
        pool(queues::CONSOLIDATE, 1, 1, jobs(&handlers.jobs, &senders.consolidate))?,
        pool(queues::REVIEW, 1, 1, jobs(&handlers.jobs, &senders.review))?,
        pool(queues::DEAD_LETTER, 1, 1, dead_letters(&handlers.agent, &senders.dead_letters))?,
        pool(queues::JOB_DEAD_LETTER, 1, 1, dead_letters(&handlers.agent, &senders.job_dead_letters))?,
    ])
}

/// `handler` with `around` about its work, which is told the event that the batch's first record belongs to.
fn surrounded(around: Arc<Around>, handler: Handler) -> Handler {
    Arc::new(move |records: Vec<Record>| {
        let event = records.first().map(event_of).unwrap_or_default();
        around(&event, handler(records))
    })
}

/// The event that a record belongs to; its message id if its body names none.
fn event_of(record: &Record) -> String {
    #[derive(serde::Deserialize)]
    struct Body {
        event: Option<Event>,
        caused_by: Option<String>,
        event_id: Option<String>,
    }
    #[derive(serde::Deserialize)]
    struct Event {
        event_id: String,
    }
    let body = serde_json::from_str::<Body>(&record.body).ok();
    body.and_then(|body| body.event.map(|event| event.event_id).or(body.caused_by).or(body.event_id))
        .unwrap_or_else(|| record.message_id.clone())
}

/// A handler of one record at a time.
fn each(handle: impl Fn(Record) -> BoxFuture<'static, Handled> + Clone + Send + Sync + 'static) -> Handler {
    handler(move |records: Vec<Record>| {
        let handle = handle.clone();
        async move {
            let mut failed = Vec::new();
            for record in records {
                let id = record.message_id.clone();
                match handle(record).await {
                    Handled::Done => {}
                    Handled::GivenBack(_) => failed.push(id),
                }
            }
            failed
        }
    })
}

fn turns(agent: &Arc<Agent>) -> Handler {
    let agent = Arc::clone(agent);
    each(move |record| {
        let agent = Arc::clone(&agent);
        Box::pin(async move { agent.handle(&record, Instant::now() + agent.settings.limits.turn).await })
    })
}

fn controls(control: &Arc<Control>) -> Handler {
    let control = Arc::clone(control);
    each(move |record| {
        let control = Arc::clone(&control);
        Box::pin(async move { control.handle(&record).await })
    })
}

fn jobs(jobs: &Arc<Jobs>, queue: &Arc<dyn Queue>) -> Handler {
    let (jobs, queue) = (Arc::clone(jobs), Arc::clone(queue));
    each(move |record| {
        let (jobs, queue) = (Arc::clone(&jobs), Arc::clone(&queue));
        Box::pin(async move { jobs.handle(&*queue, &record).await })
    })
}

fn dead_letters(agent: &Arc<Agent>, queue: &Arc<dyn Queue>) -> Handler {
    let (agent, queue) = (Arc::clone(agent), Arc::clone(queue));
    each(move |record| {
        let (agent, queue) = (Arc::clone(&agent), Arc::clone(&queue));
        Box::pin(async move {
            dead_letter::handle(&agent, &*queue, &record, Instant::now() + agent.settings.limits.turn).await
        })
    })
}
