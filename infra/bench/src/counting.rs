//! The store and the queues with every request counted, where a network would be: under the SDK's client, and at the
//! queue's trait. Nothing is delayed, changed or refused.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use turnlock_queue::{NewMessage, Queue, QueueError, Receipt, ReceiptError, SendError};

/// The operations whose request bodies are what is written.
const WRITES: [&str; 5] = ["BatchWriteItem", "DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem"];

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests to the store, by operation.
    pub store: BTreeMap<String, u64>,
    /// Requests to the queues, by operation.
    pub queue: BTreeMap<String, u64>,
    /// The bytes of the bodies of the store's writes.
    pub bytes_written: u64,
}

/// Counts requests; clones share the figures.
#[derive(Debug, Clone, Default)]
pub struct Counter(Arc<Mutex<Counts>>);

impl Counter {
    /// What was counted since it was last taken.
    #[must_use]
    pub fn take(&self) -> Counts {
        std::mem::take(&mut *self.counts())
    }

    /// `inner`, counted.
    #[must_use]
    pub fn store(&self, inner: SharedHttpClient) -> SharedHttpClient {
        let counter = self.clone();
        http_client_fn(move |settings, components| {
            let inner = inner.http_connector(settings, components);
            SharedHttpConnector::new(CountingConnector { counter: counter.clone(), inner })
        })
    }

    /// `inner`, counted.
    #[must_use]
    pub fn queue(&self, inner: Arc<dyn Queue>) -> Arc<dyn Queue> {
        Arc::new(CountingQueue { counter: self.clone(), inner })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        // Nothing between lock and unlock leaves a half state behind, so a poisoned one is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_queue(&self, operation: &str) {
        add(&mut self.counts().queue, operation);
    }
}

fn add(counts: &mut BTreeMap<String, u64>, operation: &str) {
    match counts.get_mut(operation) {
        Some(count) => *count += 1,
        None => drop(counts.insert(operation.to_owned(), 1)),
    }
}

#[derive(Debug)]
struct CountingConnector {
    counter: Counter,
    inner: SharedHttpConnector,
}

impl HttpConnector for CountingConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default();
        let mut counts = self.counter.counts();
        add(&mut counts.store, operation);
        if WRITES.contains(&operation) {
            counts.bytes_written += request.body().bytes().map_or(0, |body| body.len() as u64);
        }
        drop(counts);
        self.inner.call(request)
    }
}

struct CountingQueue {
    counter: Counter,
    inner: Arc<dyn Queue>,
}

#[async_trait]
impl Queue for CountingQueue {
    async fn send(&self, message: NewMessage) -> Result<(), SendError> {
        self.counter.count_queue("send");
        self.inner.send(message).await
    }

    async fn set_visibility(&self, receipt: &Receipt, visibility: Duration) -> Result<(), ReceiptError> {
        self.counter.count_queue("set_visibility");
        self.inner.set_visibility(receipt, visibility).await
    }

    async fn wake(&self, receipt: &Receipt) -> Result<(), ReceiptError> {
        self.counter.count_queue("wake");
        self.inner.wake(receipt).await
    }

    async fn waiting(&self) -> Result<u64, QueueError> {
        self.counter.count_queue("waiting");
        self.inner.waiting().await
    }
}
