//! Who gets a copy of every outbound event, whatever its channel does with it.
//!
//! Observers run after the deliveries of a batch and share one short wait: a slow one is cut off, a failing or panicking
//! one is counted and logged, and none of them delays, alters or stops a delivery. At least once: a record that comes
//! again is observed again, under the same event id.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::time::{Instant, timeout_at};
use turnlock_domain::event::{Channel, OutboundEvent};
use turnlock_store::Store;

use super::stored;
use crate::words::Language;

/// How long all observers together may take for all events of a batch.
pub const OBSERVERS_WITHIN: Duration = Duration::from_millis(300);
/// The target of the log observer's lines.
pub const OUTBOUND: &str = "turnlock::outbound";
/// The target of the line of a copy that an observer did not take.
pub const UNOBSERVED: &str = "turnlock::unobserved";

/// Why an observer did not take an event.
pub type ObserverError = Box<dyn std::error::Error + Send + Sync>;

/// Gets a copy of every outbound event.
#[async_trait]
pub trait Observer: Send + Sync {
    /// Its name in logs.
    fn name(&self) -> &'static str;

    /// Takes a copy. What it does after [`OBSERVERS_WITHIN`] is cut off.
    async fn observe(&self, event: &OutboundEvent) -> Result<(), ObserverError>;
}

/// Shows `events` to all of them. A copy that is not taken, or cut off, has a line in the log.
pub(super) async fn show(observers: &[Arc<dyn Observer>], events: &[OutboundEvent]) {
    let until = Instant::now() + OBSERVERS_WITHIN;
    let copies = events.iter().flat_map(|event| observers.iter().map(move |observer| (observer, event)));
    join_all(copies.map(|(observer, event)| observe(&**observer, event, until))).await;
}

async fn observe(observer: &dyn Observer, event: &OutboundEvent, until: Instant) {
    // The call stands inside the future, so that a panic before its first await is contained too.
    let copy = AssertUnwindSafe(async { observer.observe(event).await }).catch_unwind();
    let problem = match timeout_at(until, copy).await {
        Ok(Ok(Ok(()))) => return,
        Ok(Ok(Err(error))) => crate::admit::chain(&*error),
        Ok(Err(_)) => "it panicked".to_owned(),
        Err(_) => "it took too long".to_owned(),
    };
    tracing::warn!(
        target: UNOBSERVED,
        event_id = event.event_id,
        observer = observer.name(),
        error = problem,
        "observer {} did not take event {}",
        observer.name(),
        event.event_id
    );
}

/// Writes a line for every event: ids and kinds, never what is said.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogObserver;

#[async_trait]
impl Observer for LogObserver {
    fn name(&self) -> &'static str {
        "log"
    }

    async fn observe(&self, event: &OutboundEvent) -> Result<(), ObserverError> {
        let caused_by = event.caused_by.as_ref().map(|id| id.as_str()).unwrap_or_default();
        tracing::info!(target: OUTBOUND, event_id = event.event_id, caused_by, channel = event.channel.as_str(),
            account = event.account, kind = ?event.message_kind, is_final = event.is_final, part = event.part,
            "outbound event {}", event.event_id);
        Ok(())
    }
}

/// Keeps what turns of other channels say where API clients can read it by the event's id.
#[derive(Debug, Clone)]
pub struct ItemObserver {
    store: Store,
    language: Language,
}

impl ItemObserver {
    /// An observer that writes to `store`, and says in `language` where a text is cut.
    #[must_use]
    pub fn new(store: Store, language: Language) -> Self {
        Self { store, language }
    }
}

#[async_trait]
impl Observer for ItemObserver {
    fn name(&self) -> &'static str {
        "items"
    }

    async fn observe(&self, event: &OutboundEvent) -> Result<(), ObserverError> {
        match event.channel {
            // Here the item is the delivery.
            Channel::Gateway | Channel::Cli => Ok(()),
            // A notice that no turn made answers a person in a chat, and nobody asks for it by an id.
            _ if event.turn.is_none() => Ok(()),
            Channel::Telegram | Channel::Slack | Channel::Webhook | Channel::Cron | Channel::Unknown => {
                stored::put(&self.store, event, self.language).await.map(|_| ()).map_err(Into::into)
            }
        }
    }
}
