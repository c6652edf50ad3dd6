//! Queues: the one way in which work passes from one function to another.
//!
//! [`Queue`] is what a sender and a lease holder need, in front of SQS or of the in-process queue; both promise the same:
//! at least once, in order within a group, one batch of a group in flight at a time, duplicates of a deduplication id
//! swallowed for five minutes, and a message that is received too often set aside. [`conformance`] holds them to it.
//!
//! | module | holds |
//! |---|---|
//! | [`sqs`] | SQS |
//! | `local` | the durable queue of the one-process host: named queues in one SQLite file (feature `local`) |
//! | `pool` | workers that drain a local queue, as event source mappings drain an SQS queue (feature `local`) |
//! | [`conformance`] | the promises as checks, for every implementation |
//!
//! What runs in one process asks for the feature `local`; without it, as in a Lambda function, SQLite is not linked.
//!
//! Receiving and deleting are not part of the trait: on AWS the event source mapping does both, in one process the
//! pool. Nothing here knows what a message means, opens an envelope or retries; an error tells whether trying again
//! helps and whether the message may have been accepted all the same.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;

mod error;
mod message;

pub mod conformance;
#[cfg(feature = "local")]
pub mod local;
#[cfg(feature = "local")]
pub mod pool;
pub mod sqs;

pub use error::{BoxError, InvalidMessage, QueueError, ReceiptError, SendError};
pub use message::{MAX_BYTES, MAX_DELAY, MAX_VISIBILITY, NewMessage, Receipt, Record};

/// How long a [`Queue::send`] may take in all; then it fails, and nobody pretends that the message was accepted.
pub const PUBLISH_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a deduplication id is remembered within its group, counted from the message that was accepted with it. A
/// deletion does not shorten it.
pub const DEDUPLICATION_WINDOW: Duration = Duration::from_secs(5 * 60);

/// The most messages of one receive, and of one SQS request.
pub const MAX_BATCH: usize = 10;

/// What a sender is told to wait when a queue stayed full, or throttled us, for as long as it was tried.
const FULL_RETRY_AFTER: Duration = Duration::from_secs(5);

/// Why a message was not sent that stands behind one that was not.
const BEHIND: &str = "an earlier message of its group was not sent";

/// A queue as its senders and the holders of its receipts see it.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Puts a message at the end of its group. A message whose deduplication id its group has seen within
    /// [`DEDUPLICATION_WINDOW`] is accepted and dropped. Takes at most [`PUBLISH_TIMEOUT`].
    async fn send(&self, message: NewMessage) -> Result<(), SendError>;

    /// Sends all of `messages` and says of each, in their order, what became of it. The order within a group is kept:
    /// after one that was not sent for a passing reason, no later one of its group is.
    async fn send_all(&self, messages: Vec<NewMessage>) -> Vec<Result<(), SendError>> {
        let (mut held, mut outcomes) = (BTreeSet::new(), Vec::with_capacity(messages.len()));
        for message in messages {
            let group = message.group.clone();
            let outcome = match &group {
                Some(group) if held.contains(group) => Err(SendError::Unreachable(BEHIND.into())),
                _ => self.send(message).await,
            };
            if outcome.as_ref().is_err_and(SendError::is_retryable) {
                held.extend(group);
            }
            outcomes.push(outcome);
        }
        outcomes
    }

    /// Keeps a received message out of sight for `visibility` from now; zero gives it back at once. Either way it stays
    /// first in its group. Fails with [`ReceiptError::Ended`] once the receipt no longer holds the message.
    async fn set_visibility(&self, receipt: &Receipt, visibility: Duration) -> Result<(), ReceiptError>;

    /// Gives a sleeping message back at once, by the receipt that was stored when it fell asleep.
    async fn wake(&self, receipt: &Receipt) -> Result<(), ReceiptError> {
        self.set_visibility(receipt, Duration::ZERO).await
    }

    /// How many messages wait; those in flight (a sleeping one too) are not counted. On AWS this is approximate.
    async fn waiting(&self) -> Result<u64, QueueError>;
}
