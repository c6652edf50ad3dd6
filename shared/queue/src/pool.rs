//! Workers that drain a local queue, as an event source mapping with a maximum concurrency drains an SQS queue.
//!
//! A batch is received when a worker is free, handled in a task of its own, and what the handler does not report as
//! unfinished is deleted. A handler that fails, panics or is aborted touches no other: its messages stay in flight until
//! their visibility ends, and its worker is free at once. The pool never changes a visibility: whoever gives a message
//! back sets it first.
//!
//! There is no polling: [`WorkerPool::run`] sleeps until the queue changes or something falls due, so under a paused
//! clock virtual time moves straight from one event to the next. Dropping the pool is the death of its process: every
//! handler stops where it is, nothing is deleted, given back or logged.

use std::future::Future;
use std::mem;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::local::LocalQueue;
use crate::{QueueError, Receipt, ReceiptError, Record};

/// Handles a batch and returns the message ids that are not done. The handler has set their visibility, or leaves the
/// queue's own.
pub type Handler = Arc<dyn Fn(Vec<Record>) -> BoxFuture<'static, Vec<String>> + Send + Sync>;

/// How long to leave a queue file alone that could not be read.
const FILE_ERROR_PAUSE: Duration = Duration::from_secs(1);

/// An async function as a [`Handler`].
pub fn handler<Function, Answer>(function: Function) -> Handler
where
    Function: Fn(Vec<Record>) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Vec<String>> + Send + 'static,
{
    Arc::new(move |batch| function(batch).boxed())
}

/// The workers of one queue.
pub struct WorkerPool {
    inner: Arc<Inner>,
    /// Holds the task of [`WorkerPool::start`], if it was called.
    dispatcher: Mutex<JoinSet<()>>,
}

struct Inner {
    queue: Arc<LocalQueue>,
    handler: Handler,
    concurrency: usize,
    batch: usize,
    /// How many handlers run; changed only through [`Busy`].
    running: Arc<watch::Sender<usize>>,
    workers: Mutex<JoinSet<()>>,
}

impl WorkerPool {
    /// A pool of `concurrency` workers, each taking up to `batch` messages at a time; both are at least one. Nothing
    /// happens before [`start`](Self::start), [`run`](Self::run) or [`poll_once`](Self::poll_once).
    #[must_use]
    pub fn new(queue: Arc<LocalQueue>, concurrency: usize, batch: usize, handler: Handler) -> Self {
        let (concurrency, batch) = (concurrency.max(1), batch.max(1));
        let inner = Inner { queue, handler, concurrency, batch, running: Arc::default(), workers: Mutex::default() };
        Self { inner: Arc::new(inner), dispatcher: Mutex::default() }
    }

    /// The queue it drains.
    #[must_use]
    pub fn queue(&self) -> &Arc<LocalQueue> {
        &self.inner.queue
    }

    /// How many handlers run now.
    #[must_use]
    pub fn running(&self) -> usize {
        *self.inner.running.borrow()
    }

    /// Waits until no handler runs.
    pub async fn idle(&self) {
        // The sender lives in `self`: waiting cannot fail.
        let _ = self.inner.running.subscribe().wait_for(|running| *running == 0).await;
    }

    /// Hands out what can be received now to the workers that are free, and returns at once: true if there was anything.
    /// The handlers run as tasks of the pool whenever its runtime does.
    pub fn poll_once(&self) -> bool {
        self.inner.poll_once().unwrap_or(false)
    }

    /// Waits until [`poll_once`](Self::poll_once) has something to do.
    pub async fn ready(&self) {
        self.inner.ready().await;
    }

    /// Drains the queue for as long as it is polled. Dropping the future pauses the pool: handlers that run go on, no new
    /// one is started.
    pub async fn run(&self) {
        self.inner.run().await;
    }

    /// Runs the pool in the background, until [`stop`](Self::stop) or drop. Once started, starting again does nothing.
    pub fn start(&self) {
        let mut dispatcher = lock(&self.dispatcher);
        if dispatcher.is_empty() {
            let inner = Arc::clone(&self.inner);
            dispatcher.spawn(async move { inner.run().await });
        }
    }

    /// Stops receiving, gives the running handlers `drain` to finish and aborts those that do not; returns how many those
    /// were. Their messages come back when their visibility ends. Without a start, or a second time, there is nothing to
    /// stop; the pool can be started again. Dropping the future aborts the handlers at once.
    pub async fn stop(&self, drain: Duration) -> usize {
        let mut dispatcher = mem::take(&mut *lock(&self.dispatcher));
        dispatcher.shutdown().await;
        let mut workers = mem::take(&mut *lock(&self.inner.workers));
        let all_done = async { while workers.join_next().await.is_some() {} };
        if timeout(drain, all_done).await.is_ok() {
            return 0;
        }
        let aborted = workers.len();
        workers.shutdown().await;
        tracing::warn!(
            queue = self.inner.name(),
            count = aborted,
            "handlers were aborted at the end of the drain time"
        );
        aborted
    }
}

impl Drop for WorkerPool {
    /// The tasks are cancelled here and now, not when the dispatcher's task happens to be collected: no handler may take
    /// one more step after the death of its process.
    fn drop(&mut self) {
        lock(&self.dispatcher).abort_all();
        lock(&self.inner.workers).abort_all();
    }
}

/// One of the pool's workers at work; free again when this is dropped.
struct Busy(Arc<watch::Sender<usize>>);

impl Busy {
    fn new(running: &Arc<watch::Sender<usize>>) -> Self {
        running.send_modify(|count| *count += 1);
        Self(Arc::clone(running))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Inner {
    async fn run(&self) {
        loop {
            if self.poll_once().is_err() {
                // Nothing was received although something may be due: without a pause this would spin.
                sleep(FILE_ERROR_PAUSE).await;
            }
            self.ready().await;
        }
    }

    /// Logs the error it returns.
    fn poll_once(&self) -> Result<bool, QueueError> {
        let mut workers = lock(&self.workers);
        // Results are empty and panics are dealt with where they happen: this only frees the finished tasks.
        while workers.try_join_next().is_some() {}
        let mut started = false;
        // Only here, under the lock, does the number of running handlers grow.
        while *self.running.borrow() < self.concurrency {
            let batch = self.queue.receive(self.batch).inspect_err(|error| self.log(error, "receiving failed"))?;
            if batch.is_empty() {
                break;
            }
            started = true;
            let busy = Busy::new(&self.running);
            workers.spawn(work(Arc::clone(&self.queue), Arc::clone(&self.handler), batch, busy));
        }
        Ok(started)
    }

    async fn ready(&self) {
        // Fails only if the sender is gone, and `self` holds it.
        drop(self.running.subscribe().wait_for(|count| *count < self.concurrency).await);
        loop {
            let mut changes = self.queue.changes();
            match self.queue.next_due().map(|due| due.map(|due| due.since(self.queue.now()))) {
                Ok(Some(Duration::ZERO)) => return,
                Ok(Some(wait)) => drop(timeout(wait, changes.changed()).await),
                Ok(None) => drop(changes.changed().await),
                Err(error) => {
                    self.log(&error, "looking for due messages failed");
                    sleep(FILE_ERROR_PAUSE).await;
                }
            }
        }
    }

    fn log(&self, error: &QueueError, what: &str) {
        tracing::error!(queue = self.name(), error = chain(error), "{what}");
    }

    fn name(&self) -> &str {
        &self.queue.settings().name
    }
}

/// One worker's task. Its worker is free again however it ends: done, panicked or aborted.
async fn work(queue: Arc<LocalQueue>, handler: Handler, batch: Vec<Record>, busy: Busy) {
    let mut receipts: Vec<_> = batch.iter().map(|record| (record.message_id.clone(), record.receipt.clone())).collect();
    // The call stands inside the future so that a handler which panics before it returns one is contained too. What it
    // shares with others is its own affair: it gets no reference from us.
    let answer = AssertUnwindSafe(async move { handler(batch).await }).catch_unwind().await;
    match answer {
        Ok(unfinished) => {
            receipts.retain(|(message_id, _)| !unfinished.contains(message_id));
            receipts.iter().for_each(|(message_id, receipt)| delete(&queue, message_id, receipt));
        }
        Err(_) => {
            let message_ids: Vec<_> = receipts.iter().map(|(message_id, _)| message_id.as_str()).collect();
            tracing::error!(queue = queue.settings().name, message_ids = message_ids.join(","), "a handler panicked");
        }
    }
    drop(busy);
}

fn delete(queue: &LocalQueue, message_id: &str, receipt: &Receipt) {
    let name = queue.settings().name.as_str();
    match queue.delete(receipt) {
        Ok(()) => {}
        // The handler took longer than its visibility, or gave the message back and did not report it.
        Err(ReceiptError::Ended) => {
            tracing::debug!(queue = name, message_id, "a handled message was no longer ours to delete");
        }
        Err(error) => tracing::error!(queue = name, message_id, error = chain(&error), "deleting failed"),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An error and everything below it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let below = std::iter::successors(error.source(), |error| error.source());
    below.fold(error.to_string(), |line, error| format!("{line}: {error}"))
}
