//! What can go wrong with a queue, told by what the caller can do about it: try again, wait, or give up.

use std::time::Duration;

use thiserror::Error;

/// The error below ours, whatever it was.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a message was not sent.
#[derive(Debug, Error)]
pub enum SendError {
    /// There was no room within the publish timeout, or the service throttled us.
    #[error("the queue is full")]
    Full {
        /// When another attempt is worth making.
        retry_after: Duration,
    },
    /// Body and attributes together are above the queue's limit.
    #[error("the message has {bytes} bytes with its attributes, the queue takes {limit}")]
    TooLarge {
        /// What was counted.
        bytes: usize,
        /// What is allowed.
        limit: usize,
    },
    /// The queue takes no such message: the sender's mistake.
    #[error("the queue takes no such message")]
    Invalid(#[source] InvalidMessage),
    /// The request did not reach the queue, or the queue refused it for a passing reason.
    #[error("the queue could not be reached")]
    Unreachable(#[source] BoxError),
    /// The request may have been carried out, but its answer did not arrive.
    #[error("the queue's answer was lost")]
    LostAnswer(#[source] BoxError),
}

impl SendError {
    /// Whether the same message may be sent with success later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Full { .. } | Self::Unreachable(_) | Self::LostAnswer(_) => true,
            Self::TooLarge { .. } | Self::Invalid(_) => false,
        }
    }

    /// When another attempt is worth making, if the queue says so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Full { retry_after } => Some(*retry_after),
            Self::TooLarge { .. } | Self::Invalid(_) | Self::Unreachable(_) | Self::LostAnswer(_) => None,
        }
    }
}

/// The rule of SQS that a message breaks. The local queue holds every message to them too, so that what works on a
/// laptop works on AWS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidMessage {
    /// An empty body.
    #[error("its body is empty")]
    EmptyBody,
    /// A body or attribute with a character that XML 1.0 does not know.
    #[error("it holds a control character")]
    ControlCharacter,
    /// A message for a FIFO queue that names no group.
    #[error("a FIFO queue needs a group")]
    NoGroup,
    /// A message for a FIFO queue without a deduplication id. Contents are never compared: two equal messages are two.
    #[error("a FIFO queue needs a deduplication id")]
    NoDeduplicationId,
    /// A deduplication id for a standard queue, which would not look at it.
    #[error("a standard queue takes no deduplication id")]
    DeduplicationOnStandard,
    /// A group or deduplication id that is empty, longer than 128 characters or outside the alphabet.
    #[error("its group or deduplication id is empty, too long or outside the alphabet")]
    BadIdentifier,
    /// A delay on a FIFO queue, where it would break the order.
    #[error("a FIFO queue takes no delay")]
    DelayOnFifo,
    /// A delay above 15 minutes.
    #[error("its delay is above 15 minutes")]
    DelayTooLong,
    /// More than ten attributes, one without a value, or a name that is empty, too long or outside the alphabet.
    #[error("it has more than ten attributes, an empty one or one with a bad name")]
    BadAttribute,
}

/// Why a receipt did not do what it was asked for.
#[derive(Debug, Error)]
pub enum ReceiptError {
    /// The receipt no longer holds its message: deleted, given back, its visibility over or received again.
    #[error("the receipt has ended")]
    Ended,
    /// A visibility above twelve hours: the caller's mistake.
    #[error("a visibility of {0:?} is above 12 hours")]
    VisibilityTooLong(Duration),
    /// The queue could not be asked, or its answer was lost. Asking again is safe.
    #[error("the queue could not be asked")]
    Unavailable(#[source] BoxError),
}

impl ReceiptError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable(_) => true,
            Self::Ended | Self::VisibilityTooLong(_) => false,
        }
    }
}

/// The queue could not be asked; asking again is safe.
#[derive(Debug, Error)]
#[error("the queue could not be asked")]
pub struct QueueError(#[source] pub BoxError);
