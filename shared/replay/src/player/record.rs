//! What the process writes into its log, and what it sends to its inbound queues: the replay reads its outcomes there.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use turnlock_clock::Clock;
use turnlock_domain::envelope::Envelope;
use turnlock_domain::time::Millis;
use turnlock_queue::{NewMessage, Queue, QueueError, Receipt, ReceiptError, SendError};

/// A line of the log.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) at: Millis,
    pub(super) level: Level,
    pub(super) target: String,
    pub(super) fields: Map<String, Value>,
}

impl Line {
    /// A field's text; empty if it has none.
    pub(super) fn text(&self, name: &str) -> String {
        match self.fields.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        }
    }

    /// A field's number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.fields.get(name).and_then(Value::as_u64)
    }
}

/// The log and the accepted events of a replay; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Record {
    clock: Clock,
    lines: Arc<Mutex<Vec<Line>>>,
    accepted: Arc<Mutex<Vec<Accepted>>>,
}

/// An event that was sent to the inbound or control queue.
#[derive(Debug, Clone)]
pub(super) struct Accepted {
    pub(super) envelope: Envelope,
    /// How many lines the log had by then.
    pub(super) lines: usize,
}

impl Record {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, lines: Arc::default(), accepted: Arc::default() }
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        lock(&self.lines).clone()
    }

    /// Every event that was sent to the inbound or control queue, in order.
    pub(super) fn accepted(&self) -> Vec<Accepted> {
        lock(&self.accepted).clone()
    }

    /// `queue`, whose sent events are noted.
    pub(super) fn noting(&self, queue: Arc<dyn Queue>) -> Arc<dyn Queue> {
        Arc::new(Noting { inner: queue, record: self.clone() })
    }
}

impl<S: Subscriber> Layer<S> for Record {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if *metadata.level() > Level::INFO || !metadata.target().starts_with("turnlock") {
            return;
        }
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        lock(&self.lines).push(Line {
            at: self.clock.now_ms(),
            level: *metadata.level(),
            target: metadata.target().to_owned(),
            fields: fields.0,
        });
    }
}

struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), json!(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), json!(value));
    }
}

/// Notes what is sent, whether or not it arrives.
struct Noting {
    inner: Arc<dyn Queue>,
    record: Record,
}

#[async_trait]
impl Queue for Noting {
    async fn send(&self, message: NewMessage) -> Result<(), SendError> {
        if let Ok(envelope) = serde_json::from_str::<Envelope>(&message.body) {
            let lines = lock(&self.record.lines).len();
            let mut accepted = lock(&self.record.accepted);
            if !accepted.iter().any(|known| known.envelope.event.event_id == envelope.event.event_id) {
                accepted.push(Accepted { envelope, lines });
            }
        }
        self.inner.send(message).await
    }

    async fn set_visibility(&self, receipt: &Receipt, visibility: std::time::Duration) -> Result<(), ReceiptError> {
        self.inner.set_visibility(receipt, visibility).await
    }

    async fn wake(&self, receipt: &Receipt) -> Result<(), ReceiptError> {
        self.inner.wake(receipt).await
    }

    async fn waiting(&self) -> Result<u64, QueueError> {
        self.inner.waiting().await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
