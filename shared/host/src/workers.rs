//! The worker pools: one for each queue, with the handler that drains it on AWS.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use turnlock_app::control::Control;
use turnlock_app::dead_letter;
use turnlock_app::deliver::Delivery;
use turnlock_app::jobs::Jobs;
use turnlock_app::turn::{Agent, Handled};
use turnlock_queue::local::{LocalQueues, UnknownQueue};
use turnlock_queue::pool::{Handler, WorkerPool, handler};
use turnlock_queue::{Queue, Record};

use crate::queues::{self, Senders};

/// How many deliveries run at once; more than one chat is served while a platform is slow.
const DELIVERIES: usize = 4;
/// How many records of chats one delivery takes at a time.
const DELIVERY_BATCH: usize = 10;
/// How many commands are obeyed at once.
const CONTROLS: usize = 2;

tokio::task_local! {
    /// The record that the running handler works on, by its message group: what a request belongs to.
    pub static CURRENT: String;
}

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
) -> Result<Vec<WorkerPool>, UnknownQueue> {
    let pool = |name: &str, workers, batch, handler: Handler| {
        Ok::<_, UnknownQueue>(WorkerPool::new(local.queue(name)?, workers, batch, handler))
    };
    let delivery = Arc::clone(&handlers.delivery);
    let deliver = handler(move |records: Vec<Record>| {
        let delivery = Arc::clone(&delivery);
        let current = records.first().map(|record| record.message_id.clone()).unwrap_or_default();
        CURRENT.scope(format!("outbound {current}"), async move { delivery.handle(records).await })
    });
    Ok(vec![
        pool(queues::INBOUND, concurrency, 1, turns(&handlers.agent))?,
        pool(queues::CONTROL, CONTROLS, 1, controls(&handlers.control))?,
        pool(queues::OUTBOUND, DELIVERIES, DELIVERY_BATCH, deliver)?,
        pool(queues::CONSOLIDATE, 1, 1, jobs(&handlers.jobs, &senders.consolidate))?,
        pool(queues::REVIEW, 1, 1, jobs(&handlers.jobs, &senders.review))?,
        pool(queues::INBOUND_DEAD, 1, 1, dead_letters(&handlers.agent, &senders.inbound_dead))?,
        pool(queues::FIFO_DEAD, 1, 1, other_dead_letters(&handlers.agent, &senders.fifo_dead, queues::FIFO_DEAD))?,
        pool(queues::JOBS_DEAD, 1, 1, other_dead_letters(&handlers.agent, &senders.jobs_dead, queues::JOBS_DEAD))?,
    ])
}

/// A handler of one record at a time.
fn each(
    name: &'static str,
    handle: impl Fn(Record) -> BoxFuture<'static, Handled> + Clone + Send + Sync + 'static,
) -> Handler {
    handler(move |records: Vec<Record>| {
        let handle = handle.clone();
        async move {
            let mut failed = Vec::new();
            for record in records {
                let id = record.message_id.clone();
                let current = format!("{name} {}", record.group.as_deref().unwrap_or(&id));
                match CURRENT.scope(current, handle(record)).await {
                    Handled::Done => {}
                    Handled::GivenBack => failed.push(id),
                }
            }
            failed
        }
    })
}

fn turns(agent: &Arc<Agent>) -> Handler {
    let agent = Arc::clone(agent);
    each(queues::INBOUND, move |record| {
        let agent = Arc::clone(&agent);
        Box::pin(async move { agent.handle(&record, Instant::now() + agent.settings.limits.turn).await })
    })
}

fn controls(control: &Arc<Control>) -> Handler {
    let control = Arc::clone(control);
    each(queues::CONTROL, move |record| {
        let control = Arc::clone(&control);
        Box::pin(async move { control.handle(&record).await })
    })
}

fn jobs(jobs: &Arc<Jobs>, queue: &Arc<dyn Queue>) -> Handler {
    let (jobs, queue) = (Arc::clone(jobs), Arc::clone(queue));
    each("job", move |record| {
        let (jobs, queue) = (Arc::clone(&jobs), Arc::clone(&queue));
        Box::pin(async move { if jobs.handle(&*queue, record).await { Handled::Done } else { Handled::GivenBack } })
    })
}

fn dead_letters(agent: &Arc<Agent>, queue: &Arc<dyn Queue>) -> Handler {
    let (agent, queue) = (Arc::clone(agent), Arc::clone(queue));
    each(queues::INBOUND_DEAD, move |record| {
        let (agent, queue) = (Arc::clone(&agent), Arc::clone(&queue));
        Box::pin(async move {
            dead_letter::inbound(&agent, &*queue, &record, Instant::now() + agent.settings.limits.turn).await
        })
    })
}

fn other_dead_letters(agent: &Arc<Agent>, queue: &Arc<dyn Queue>, source: &'static str) -> Handler {
    let (agent, queue) = (Arc::clone(agent), Arc::clone(queue));
    each(source, move |record| {
        let (agent, queue) = (Arc::clone(&agent), Arc::clone(&queue));
        Box::pin(async move { dead_letter::other(&agent, &*queue, &record, source).await })
    })
}
