//! SQS behind the queue's trait.
//!
//! - **Sending.** Group and deduplication id are always explicit, contents are never compared. A message is checked, its
//!   size with its attributes, before anything is sent. All tries together take at most [`PUBLISH_TIMEOUT`]; after that
//!   nobody pretends that the message was accepted, and an error says whether it may have been
//!   ([`SendError::LostAnswer`], whatever a later try came to).
//! - **At least once.** A try after a lost answer is recognised in a FIFO queue by its deduplication id. A standard queue
//!   recognises nothing: there it may double the message, so whoever drains a standard queue claims what it works on.
//! - **Receipts.** A FIFO queue's receipt ends with its visibility, as [`Queue`] says. A standard queue is more lenient and
//!   may still delete or hide by one that has ended; nobody may depend on that. A request whose answer was lost may find
//!   in its next try that the first one ended the receipt.
//! - **Visibility** goes by whole seconds, rounded up: zero only where zero is meant.
//!
//! Receiving and deleting are for an operator's command and for tests: on AWS the event source mapping does both.

mod batch;
mod request;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::BehaviorVersion;
use aws_sdk_sqs::config::StalledStreamProtectionConfig;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::types::{Message, MessageAttributeValue, MessageSystemAttributeName, QueueAttributeName};
use aws_types::SdkConfig;
use turnlock_domain::time::Millis;

use self::request::{ATTEMPT_TIMEOUT, Failure, Fault, Refusal, Tries};
use crate::message::ATTRIBUTE_TYPE;
use crate::{
    FULL_RETRY_AFTER, InvalidMessage, MAX_BATCH, MAX_VISIBILITY, NewMessage, PUBLISH_TIMEOUT, Queue, QueueError,
    Receipt, ReceiptError, Record, SendError,
};

/// The longest that SQS holds a receive back for a message (SQS API Reference, `ReceiveMessage`).
const MAX_WAIT: Duration = Duration::from_secs(20);

/// One queue. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SqsQueue {
    client: Client,
    url: Arc<str>,
    fifo: bool,
    max_bytes: usize,
    jitter: Arc<Mutex<fastrand::Rng>>,
}

impl SqsQueue {
    /// A client for all queues of a process, with the SDK's own retries off: request n means the same everywhere.
    #[must_use]
    pub fn client(config: &SdkConfig) -> Client {
        let config = aws_sdk_sqs::config::Builder::from(config)
            .behavior_version(BehaviorVersion::latest())
            .retry_config(RetryConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .build();
        Client::from_conf(config)
    }

    /// The queue at `url`, a FIFO queue if its name ends in `.fifo` (SQS lets no other name of one pass). It takes
    /// messages of `max_bytes` at the most, which should be what the queue itself takes; `seed` spreads the retries.
    #[must_use]
    pub fn new(client: Client, url: &str, max_bytes: usize, seed: u64) -> Self {
        let jitter = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)));
        Self { client, url: url.into(), fifo: url.ends_with(".fifo"), max_bytes, jitter }
    }

    /// Takes up to `max` messages (at most [`MAX_BATCH`]) out of sight for `visibility`. Waits up to `wait`, 20 s at the
    /// most, for the first one; without a wait an answer may be empty although messages are there. Messages whose answer
    /// was lost come back when their visibility ends.
    pub async fn receive(&self, max: usize, visibility: Duration, wait: Duration) -> Result<Vec<Record>, QueueError> {
        let wait = wait.min(MAX_WAIT);
        let request = self
            .client
            .receive_message()
            .queue_url(&*self.url)
            .max_number_of_messages(i32::try_from(max.clamp(1, MAX_BATCH)).unwrap_or(1))
            .visibility_timeout(whole_seconds(visibility.min(MAX_VISIBILITY)))
            .wait_time_seconds(whole_seconds(wait))
            .message_attribute_names("All")
            .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount)
            .message_system_attribute_names(MessageSystemAttributeName::MessageGroupId)
            .message_system_attribute_names(MessageSystemAttributeName::SentTimestamp);
        let tries = Tries::new("ReceiveMessage", PUBLISH_TIMEOUT + wait, ATTEMPT_TIMEOUT + wait, self.seed());
        let received = tries.run(|| request.clone().send()).await;
        let received = received.map_err(|failure| QueueError(failure.fault.into_source()))?;
        let messages = received.messages.unwrap_or_default().into_iter();
        let records =
            messages.map(|message| record(message).ok_or_else(|| QueueError("a message without an id".into())));
        records.collect()
    }

    /// Deletes a received message. Fails with [`ReceiptError::Ended`] once the receipt of a FIFO queue no longer holds
    /// it; a second deletion by the same receipt may succeed like the first.
    pub async fn delete(&self, receipt: &Receipt) -> Result<(), ReceiptError> {
        let request = self.client.delete_message().queue_url(&*self.url).receipt_handle(&receipt.0);
        let deleted = self.tries("DeleteMessage").run(|| request.clone().send()).await;
        deleted.map(drop).map_err(|failure| receipt_error(failure.fault, None))
    }

    fn tries(&self, operation: &'static str) -> Tries {
        Tries::new(operation, PUBLISH_TIMEOUT, ATTEMPT_TIMEOUT, self.seed())
    }

    fn seed(&self) -> u64 {
        self.jitter.lock().map_or(0, |mut random| random.u64(..))
    }
}

#[async_trait]
impl Queue for SqsQueue {
    async fn send(&self, message: NewMessage) -> Result<(), SendError> {
        message.check(self.fifo, self.max_bytes)?;
        let bytes = message.bytes();
        let delay = delay(&message);
        let request = self
            .client
            .send_message()
            .queue_url(&*self.url)
            .set_message_attributes(attributes(&message.attributes)?)
            .message_body(message.body)
            .set_message_group_id(message.group)
            .set_message_deduplication_id(message.deduplication_id)
            .set_delay_seconds(delay);
        let sent = self.tries("SendMessage").run(|| request.clone().send()).await;
        sent.map(drop).map_err(|failure| send_error(failure, bytes))
    }

    async fn send_all(&self, messages: Vec<NewMessage>) -> Vec<Result<(), SendError>> {
        self.send_in_batches(messages).await
    }

    async fn set_visibility(&self, receipt: &Receipt, visibility: Duration) -> Result<(), ReceiptError> {
        if visibility > MAX_VISIBILITY {
            return Err(ReceiptError::VisibilityTooLong(visibility));
        }
        let request = self
            .client
            .change_message_visibility()
            .queue_url(&*self.url)
            .receipt_handle(&receipt.0)
            .visibility_timeout(whole_seconds(visibility));
        let changed = self.tries("ChangeMessageVisibility").run(|| request.clone().send()).await;
        changed.map(drop).map_err(|failure| receipt_error(failure.fault, Some(visibility)))
    }

    async fn waiting(&self) -> Result<u64, QueueError> {
        let name = QueueAttributeName::ApproximateNumberOfMessages;
        let request = self.client.get_queue_attributes().queue_url(&*self.url).attribute_names(name.clone());
        let answer = self.tries("GetQueueAttributes").run(|| request.clone().send()).await;
        let answer = answer.map_err(|failure| QueueError(failure.fault.into_source()))?;
        let count = answer.attributes.as_ref().and_then(|attributes| attributes.get(&name)?.parse().ok());
        count.ok_or_else(|| QueueError("the queue does not say how many messages wait".into()))
    }
}

/// At least `duration`, in SQS's unit.
fn whole_seconds(duration: Duration) -> i32 {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

/// A FIFO queue takes no delay, not even its absence in words.
fn delay(message: &NewMessage) -> Option<i32> {
    Some(whole_seconds(message.delay)).filter(|seconds| *seconds > 0)
}

type Attributes = Option<HashMap<String, MessageAttributeValue>>;

fn attributes(attributes: &BTreeMap<String, String>) -> Result<Attributes, SendError> {
    let values = attributes.iter().map(|(name, value)| {
        let value = MessageAttributeValue::builder().data_type(ATTRIBUTE_TYPE).string_value(value).build()?;
        Ok((name.clone(), value))
    });
    let values: Result<HashMap<_, _>, BuildError> = values.collect();
    // Every attribute has its type, the one thing that the SDK asks for.
    let values = values.map_err(|error| SendError::Unreachable(error.into()))?;
    Ok(Some(values).filter(|values| !values.is_empty()))
}

/// A message as SQS gives it; `None` without what every message of SQS has.
fn record(message: Message) -> Option<Record> {
    let system = message.attributes.unwrap_or_default();
    let number = |name| system.get(&name)?.parse::<i64>().ok();
    let attributes = message.message_attributes.unwrap_or_default().into_iter();
    Some(Record {
        message_id: message.message_id?,
        receipt: Receipt(message.receipt_handle?),
        body: message.body.unwrap_or_default(),
        group: system.get(&MessageSystemAttributeName::MessageGroupId).cloned(),
        attributes: attributes.filter_map(|(name, value)| Some((name, value.string_value?))).collect(),
        receive_count: u32::try_from(number(MessageSystemAttributeName::ApproximateReceiveCount)?).ok()?,
        sent_at: Millis(number(MessageSystemAttributeName::SentTimestamp)?),
    })
}

/// What a sender is told about a message of `bytes`.
fn send_error(failure: Failure, bytes: usize) -> SendError {
    match (failure.fault, failure.lost) {
        (_, Some(source)) | (Fault::Lost(source), None) => SendError::LostAnswer(Box::new(source)),
        (Fault::Throttled(_), None) => SendError::Full { retry_after: FULL_RETRY_AFTER },
        (Fault::Unsent(source), None) => SendError::Unreachable(Box::new(source)),
        (Fault::Refused(refusal), None) => refused(refusal, bytes),
    }
}

/// The rules that [`NewMessage::check`] holds are SQS's; a refusal of the message itself means that the queue is set
/// otherwise than we were told. All else (no such queue, no permission) the operator cures, and the message with it.
fn refused(refusal: Refusal, bytes: usize) -> SendError {
    match (refusal.code.as_str(), shorter_than(&refusal.message)) {
        ("InvalidMessageContents", _) => SendError::Invalid(InvalidMessage::ControlCharacter),
        ("InvalidParameterValue", Some(limit)) => SendError::TooLarge { bytes, limit },
        _ => SendError::Unreachable(Box::new(refusal.source)),
    }
}

/// The limit in "Message must be shorter than 262144 bytes." (the queue's `MaximumMessageSize`).
fn shorter_than(message: &str) -> Option<usize> {
    let (_, rest) = message.split_once("must be shorter than ")?;
    rest.split_once(' ')?.0.parse().ok()
}

/// An ended receipt has three names: `ReceiptHandleIsInvalid`; `MessageNotInflight`; and from a FIFO queue
/// `InvalidParameterValue`, "Value … for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
/// (AWS re:Post, "ReceiptHandleIsInvalid and InvalidParameterValue"). With the same name SQS refuses a visibility that
/// would end more than twelve hours after the receive.
fn receipt_error(fault: Fault, visibility: Option<Duration>) -> ReceiptError {
    if let Fault::Refused(Refusal { code, message, .. }) = &fault {
        match (code.as_str(), visibility) {
            ("ReceiptHandleIsInvalid" | "MessageNotInflight" | "AWS.SimpleQueueService.MessageNotInflight", _) => {
                return ReceiptError::Ended;
            }
            ("InvalidParameterValue", Some(visibility)) if message.contains("parameter VisibilityTimeout") => {
                return ReceiptError::VisibilityTooLong(visibility);
            }
            ("InvalidParameterValue", _) if message.contains("ReceiptHandle") => return ReceiptError::Ended,
            _ => {}
        }
    }
    ReceiptError::Unavailable(fault.into_source())
}
