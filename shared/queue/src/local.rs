//! Durable queues in one process: several named queues in one SQLite file, with the semantics of SQS.
//!
//! - **Order.** A FIFO queue keeps order within a group. While a message of a group is in flight, the group gives out no
//!   other; a message that comes back, however late, is first in its group again. Other groups flow, the one whose first
//!   message is oldest first.
//! - **Receipts.** Deleting and changing visibility need the receipt of the latest receive and fail once it has ended:
//!   when the message was deleted, given back or received again, and also when its visibility ran out and nobody has
//!   taken it yet. (A standard SQS queue is more lenient; nobody may depend on that.)
//! - **Duplicates** are recognised by their explicit deduplication id within their group (the `messageGroup` scope of
//!   high-throughput FIFO), for five minutes, whether or not the first message is still there. Never by content.
//! - **Dead letters.** A message that was received `max_receive_count` times is set aside by the next receive, and its
//!   group goes on.
//!
//! What SQS has and this has not: retention (a message stays until it is deleted), long polling (the [`crate::pool`] is
//! woken instead), random ids (a message's id and receipts are numbers, so that a replay repeats them). A standard queue
//! here happens to keep the order of sending and to deliver nothing twice without reason; on AWS it promises neither.

mod file;
mod operations;
mod settings;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use turnlock_clock::Clock;
use turnlock_domain::time::Millis;

use self::file::{File, TransactionError, file_error};
use self::operations::{DeadLetters, Offered, QueueId};
pub use self::settings::{Location, OpenError, QueueSettings, UnknownQueue};
use crate::{
    FULL_RETRY_AFTER, MAX_BATCH, MAX_VISIBILITY, NewMessage, PUBLISH_TIMEOUT, Queue, QueueError, Receipt, ReceiptError,
    Record, SendError,
};

/// The queues of one file. Clones are the same queues.
#[derive(Debug, Clone)]
pub struct LocalQueues {
    shared: Arc<Shared>,
    queues: BTreeMap<String, Arc<LocalQueue>>,
}

/// What outlives a change of settings: the file, its clock and who waits for it.
#[derive(Debug)]
struct Shared {
    file: File,
    clock: Clock,
    changes: Mutex<BTreeMap<QueueId, watch::Sender<u64>>>,
}

impl LocalQueues {
    /// Opens or creates the queues. Only one process may have the file open: senders in another would wake nobody here.
    pub fn open(location: &Location, clock: Clock, settings: Vec<QueueSettings>) -> Result<Self, OpenError> {
        let shared = Shared { file: File::open(location)?, clock, changes: Mutex::default() };
        Self::over(Arc::new(shared), settings)
    }

    /// The same messages under new settings, as after a redeploy. Queues of the old settings go on working.
    pub fn reopen(&self, settings: Vec<QueueSettings>) -> Result<Self, OpenError> {
        Self::over(Arc::clone(&self.shared), settings)
    }

    fn over(shared: Arc<Shared>, settings: Vec<QueueSettings>) -> Result<Self, OpenError> {
        let settings = settings::checked(settings)?;
        let ids = shared.file.write(|transaction| {
            let named = settings.keys().map(|name| Ok((name.clone(), operations::queue_id(transaction, name)?)));
            named.collect::<rusqlite::Result<BTreeMap<String, QueueId>>>()
        });
        let ids = ids.map_err(|error| file_error(error.into_inner()))?;
        let queues = settings.into_iter().filter_map(|(name, settings)| {
            let id = *ids.get(&name)?;
            let dead_letter = settings.dead_letter.as_ref().and_then(|dead| ids.get(dead));
            let dead_letters =
                dead_letter.map(|queue| DeadLetters { queue: *queue, after: settings.max_receive_count });
            let turnstile = tokio::sync::Mutex::new(());
            Some((name, Arc::new(LocalQueue { shared: Arc::clone(&shared), id, dead_letters, settings, turnstile })))
        });
        let queues = queues.collect();
        Ok(Self { shared, queues })
    }

    /// The queue of this name.
    pub fn queue(&self, name: &str) -> Result<Arc<LocalQueue>, UnknownQueue> {
        self.queues.get(name).cloned().ok_or_else(|| UnknownQueue(name.to_owned()))
    }

    /// All queues, in the order of their names.
    pub fn all(&self) -> impl Iterator<Item = &Arc<LocalQueue>> {
        self.queues.values()
    }

    /// Gives back every message in flight, of every queue of the file, and ends its receipt; returns how many there were.
    /// Only for a process that has just started and knows, by the lock it holds, that those who held them are dead.
    pub fn make_visible(&self) -> Result<usize, QueueError> {
        let now = self.shared.clock.now_ms();
        let ended = self.shared.file.write(|transaction| operations::end_receipts(transaction, now));
        let ended = ended.map_err(unavailable)?;
        self.shared.announce_all();
        Ok(ended)
    }
}

impl Shared {
    fn announce(&self, queue: QueueId) {
        self.with_changes(queue, |sender| sender.send_modify(|version| *version = version.wrapping_add(1)));
    }

    fn announce_all(&self) {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.values().for_each(|sender| sender.send_modify(|version| *version = version.wrapping_add(1)));
    }

    fn with_changes<T>(&self, queue: QueueId, work: impl FnOnce(&watch::Sender<u64>) -> T) -> T {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        work(changes.entry(queue).or_default())
    }
}

/// One queue of the file: [`Queue`] for those who send, and the consumer's side for a [`crate::pool::WorkerPool`].
///
/// Every method but [`Queue::send`] returns at once: SQLite is called inline (the operations are short, and a replay
/// must not leave its thread).
#[derive(Debug)]
pub struct LocalQueue {
    shared: Arc<Shared>,
    id: QueueId,
    settings: QueueSettings,
    dead_letters: Option<DeadLetters>,
    /// Publishers that wait for room stand in line here, so that the one who came first goes in first.
    turnstile: tokio::sync::Mutex<()>,
}

/// A message of a queue, for inspection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldMessage {
    /// The message as it was last received; its receipt is no better than it was then.
    pub record: Record,
    /// Whether it waits or somebody has it.
    pub state: MessageState,
}

/// Where a message is between sending and deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    /// It can be received, or would be if its group were free.
    Waiting,
    /// It was sent with a delay that is not over.
    Delayed {
        /// When it is.
        until: Millis,
    },
    /// It was received, and its receipt holds.
    InFlight {
        /// When the receipt ends.
        until: Millis,
    },
}

impl LocalQueue {
    /// How the queue behaves.
    #[must_use]
    pub fn settings(&self) -> &QueueSettings {
        &self.settings
    }

    /// Takes up to `max` messages (at most [`MAX_BATCH`]) out of sight for the queue's visibility. More than one message
    /// of a group may be among them, in order.
    pub fn receive(&self, max: usize) -> Result<Vec<Record>, QueueError> {
        let now = self.now();
        let received = self.shared.file.write(|transaction| {
            let max = max.min(MAX_BATCH);
            operations::receive(transaction, self.id, max, self.settings.visibility, self.dead_letters, now)
        });
        let received = received.map_err(unavailable)?;
        if received.dead > 0 {
            self.dead_letters.iter().for_each(|dead| self.shared.announce(dead.queue));
            tracing::warn!(
                queue = self.settings.name,
                count = received.dead,
                "messages were set aside as dead letters"
            );
        }
        if received.dead > 0 || !received.records.is_empty() {
            // There is room again, and a new time at which something falls due.
            self.shared.announce(self.id);
        }
        Ok(received.records)
    }

    /// Deletes a received message. Fails with [`ReceiptError::Ended`] once the receipt no longer holds it.
    pub fn delete(&self, receipt: &Receipt) -> Result<(), ReceiptError> {
        let now = self.now();
        self.change(|transaction| operations::delete(transaction, self.id, receipt, now))
    }

    /// When something can be received: now or earlier if something can be already, `None` if nothing ever will unless
    /// something changes.
    pub fn next_due(&self) -> Result<Option<Millis>, QueueError> {
        let now = self.now();
        self.look(|transaction| operations::next_due(transaction, self.id, now))
    }

    /// How many messages are in flight, sleeping ones included.
    pub fn in_flight(&self) -> Result<u64, QueueError> {
        let now = self.now();
        self.look(|transaction| operations::in_flight(transaction, self.id, now))
    }

    /// All messages, in the order in which they were sent.
    pub fn contents(&self) -> Result<Vec<HeldMessage>, QueueError> {
        let now = self.now();
        let messages = self.look(|transaction| operations::contents(transaction, self.id))?;
        let held = messages.into_iter().map(|(record, hidden_until)| {
            let state = match hidden_until.filter(|until| *until > now) {
                None => MessageState::Waiting,
                Some(until) if record.receive_count == 0 => MessageState::Delayed { until },
                Some(until) => MessageState::InFlight { until },
            };
            HeldMessage { record, state }
        });
        Ok(held.collect())
    }

    /// A number that changes with everything that may make a message receivable or make room for one.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.with_changes(self.id, watch::Sender::subscribe)
    }

    /// The time by the queue's clock.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.shared.clock.now_ms()
    }

    /// Puts the message in as soon as there is room.
    async fn admit(&self, message: &NewMessage) -> Result<(), SendError> {
        let _first = self.turnstile.lock().await;
        let mut changes = self.changes();
        loop {
            match self.offer(message)? {
                Offered::Accepted => {
                    self.shared.announce(self.id);
                    return Ok(());
                }
                Offered::Duplicate => return Ok(()),
                // The sender lives in `shared`, so this cannot fail; if it did, the next look would be no worse.
                Offered::Full => drop(changes.changed().await),
            }
        }
    }

    fn offer(&self, message: &NewMessage) -> Result<Offered, SendError> {
        let now = self.now();
        let QueueSettings { fifo, capacity, .. } = self.settings;
        let offered =
            self.shared.file.write(|transaction| operations::offer(transaction, self.id, message, fifo, capacity, now));
        offered.map_err(|error| match error {
            TransactionError::Before(error) => SendError::Unreachable(Box::new(error)),
            TransactionError::AtCommit(error) => SendError::LostAnswer(Box::new(error)),
        })
    }

    fn change(
        &self,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> rusqlite::Result<bool>,
    ) -> Result<(), ReceiptError> {
        let changed = self.shared.file.write(work);
        let changed = changed.map_err(|error| ReceiptError::Unavailable(Box::new(error.into_inner())))?;
        if !changed {
            return Err(ReceiptError::Ended);
        }
        self.shared.announce(self.id);
        Ok(())
    }

    fn look<T>(&self, work: impl FnOnce(&rusqlite::Transaction<'_>) -> rusqlite::Result<T>) -> Result<T, QueueError> {
        self.shared.file.read(work).map_err(|error| QueueError(Box::new(error)))
    }
}

#[async_trait]
impl Queue for LocalQueue {
    /// Waits for room while the queue is full, then fails with [`SendError::Full`]. Dropped while it waits, it has sent
    /// nothing.
    async fn send(&self, message: NewMessage) -> Result<(), SendError> {
        message.check(self.settings.fifo, self.settings.max_bytes)?;
        let admitted = timeout_at(Instant::now() + PUBLISH_TIMEOUT, self.admit(&message)).await;
        admitted.unwrap_or(Err(SendError::Full { retry_after: FULL_RETRY_AFTER }))
    }

    async fn set_visibility(&self, receipt: &Receipt, visibility: Duration) -> Result<(), ReceiptError> {
        if visibility > MAX_VISIBILITY {
            return Err(ReceiptError::VisibilityTooLong(visibility));
        }
        let now = self.now();
        self.change(|transaction| operations::set_visibility(transaction, self.id, receipt, visibility, now))
    }

    async fn waiting(&self) -> Result<u64, QueueError> {
        let now = self.now();
        self.look(|transaction| operations::waiting(transaction, self.id, now))
    }
}

fn unavailable(error: TransactionError) -> QueueError {
    QueueError(Box::new(error.into_inner()))
}
