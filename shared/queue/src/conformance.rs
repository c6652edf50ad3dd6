//! The promises of [`Queue`] as checks, one function each, that panic when one is broken. Every implementation runs all
//! of them: the local queue on virtual time in this crate's tests, SQS against an emulator and in real time through
//! [`sqs::hold`], which says what an emulator cannot show.
//!
//! A check gets a fresh pair of queues, a FIFO queue and its dead-letter queue, from [`Harness`], which sets aside after
//! [`MAX_RECEIVES`]. Bounds, waiting for room and durability belong to the local queue alone and are tested with it. No
//! check asks how many messages wait: SQS says so only approximately.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;

use crate::{DEDUPLICATION_WINDOW, NewMessage, Queue, Receipt, ReceiptError, Record, SendError};

pub mod sqs;

/// After so many receives the queue under test sets a message aside.
pub const MAX_RECEIVES: u32 = 3;

/// A fresh FIFO queue with a dead-letter queue, and the consumer's side that [`Queue`] leaves out.
#[async_trait]
pub trait Harness: Send + Sync {
    /// The queue under test.
    fn queue(&self) -> &dyn Queue;

    /// Receives up to `max` messages from it.
    async fn receive(&self, max: usize) -> Vec<Record>;

    /// Deletes a message of it.
    async fn delete(&self, receipt: &Receipt) -> Result<(), ReceiptError>;

    /// Receives and deletes what has been set aside.
    async fn take_dead(&self) -> Vec<Record>;

    /// The visibility of the queue under test: whole seconds, long enough for a few requests.
    fn visibility(&self) -> Duration;

    /// Lets time pass.
    async fn pass(&self, time: Duration);
}

/// Messages of a group come in order, and never two of a group in separate receives at a time.
pub async fn a_group_keeps_its_order_and_is_blocked_while_in_flight(harness: &dyn Harness) {
    send(harness, "g", &["1", "2", "3"]).await;
    for expected in ["1", "2", "3"] {
        let record = one(harness).await;
        assert_eq!(record.body, expected);
        nothing(harness).await;
        done(harness, &record).await;
    }
    nothing(harness).await;
}

/// A batch may hold more than one message of a group; then they are in order, and the group is blocked until all of them
/// are dealt with.
pub async fn a_batch_of_one_group_is_in_order_and_blocks_it_as_a_whole(harness: &dyn Harness) {
    send(harness, "g", &["1", "2"]).await;
    let batch = harness.receive(10).await;
    assert_eq!(bodies(&batch), ["1", "2"]);
    send(harness, "g", &["3"]).await;
    back(harness, &batch[0]).await;
    nothing(harness).await;
    done(harness, &batch[1]).await;
    assert_eq!(bodies(&harness.receive(10).await), ["1", "3"]);
}

/// While one group is blocked the others flow.
pub async fn other_groups_flow(harness: &dyn Harness) {
    send(harness, "a", &["a1", "a2"]).await;
    send(harness, "b", &["b1"]).await;
    let blocked = one(harness).await;
    let other = one(harness).await;
    let mut both = [blocked.body.as_str(), other.body.as_str()];
    both.sort_unstable();
    assert_eq!(both, ["a1", "b1"]);
}

/// What is given back at once, or after a while, stays first in its group.
pub async fn a_message_given_back_stays_first(harness: &dyn Harness) {
    send(harness, "g", &["1", "2"]).await;
    let record = one(harness).await;
    back(harness, &record).await;
    let record = one(harness).await;
    assert_eq!((record.body.as_str(), record.receive_count), ("1", 2));

    set_visibility(harness, &record, Duration::from_secs(5)).await;
    nothing(harness).await;
    harness.pass(Duration::from_secs(6)).await;
    assert_eq!(one(harness).await.body, "1");
}

/// A message whose receiver says nothing comes back when its visibility ends, with its count and its sending time.
pub async fn visibility_ends(harness: &dyn Harness) {
    send(harness, "g", &["1"]).await;
    let first = one(harness).await;
    harness.pass(harness.visibility() / 2).await;
    nothing(harness).await;
    harness.pass(harness.visibility() / 2 + Duration::from_secs(1)).await;
    let second = one(harness).await;
    assert_eq!((first.receive_count, second.receive_count), (1, 2));
    assert_eq!((&first.message_id, first.sent_at), (&second.message_id, second.sent_at));
    assert_ne!(first.receipt, second.receipt);
}

/// A renewal counts from its own moment and may be longer than the queue's visibility.
pub async fn visibility_is_extended(harness: &dyn Harness) {
    send(harness, "g", &["1"]).await;
    let record = one(harness).await;
    set_visibility(harness, &record, harness.visibility() * 3).await;
    harness.pass(harness.visibility() * 2).await;
    nothing(harness).await;
    done(harness, &record).await;
}

/// A receipt ends with its visibility, given back or run out, even before anybody else has the message: neither delete
/// nor change works.
pub async fn a_receipt_ends_with_its_visibility(harness: &dyn Harness) {
    send(harness, "g", &["1"]).await;
    let record = one(harness).await;
    back(harness, &record).await;
    ended(harness, &record.receipt).await;
    let record = one(harness).await;
    harness.pass(harness.visibility() + Duration::from_secs(1)).await;
    ended(harness, &record.receipt).await;
    assert_eq!(one(harness).await.body, "1");
}

/// The receipt of an earlier receive is worth nothing while a later one holds the message. After the deletion none keeps
/// anything out of sight; a second deletion may find that it is done, as SQS does.
pub async fn an_earlier_receipt_is_worth_nothing(harness: &dyn Harness) {
    send(harness, "g", &["1"]).await;
    let first = one(harness).await;
    back(harness, &first).await;
    let second = one(harness).await;
    ended(harness, &first.receipt).await;
    nothing(harness).await;
    done(harness, &second).await;
    let set = harness.queue().set_visibility(&second.receipt, harness.visibility()).await;
    assert!(matches!(set, Err(ReceiptError::Ended)), "the receipt outlives its message");
}

/// A sleeping message comes at once when it is woken by its stored receipt, and is still first.
pub async fn a_sleeping_message_is_woken(harness: &dyn Harness) {
    send(harness, "g", &["asleep", "behind"]).await;
    let record = one(harness).await;
    set_visibility(harness, &record, Duration::from_secs(15 * 60)).await;
    nothing(harness).await;
    let stored = Receipt(record.receipt.0.clone());
    harness.queue().wake(&stored).await.unwrap_or_else(|error| panic!("waking failed: {error}"));
    assert_eq!(one(harness).await.body, "asleep");
    assert!(matches!(harness.queue().wake(&stored).await, Err(ReceiptError::Ended)), "a second wake finds it awake");
}

/// A deduplication id is remembered, also after its message was deleted.
pub async fn duplicates_are_swallowed(harness: &dyn Harness) {
    let message = NewMessage::fifo("1", "g", "id");
    accept(harness, message.clone()).await;
    accept(harness, message.clone()).await;
    let record = one(harness).await;
    done(harness, &record).await;
    accept(harness, message).await;
    nothing(harness).await;
}

/// A deduplication id is forgotten after five minutes, counted from the message that was accepted with it.
pub async fn a_deduplication_id_is_forgotten_after_the_window(harness: &dyn Harness) {
    let message = NewMessage::fifo("1", "g", "id");
    accept(harness, message.clone()).await;
    let record = one(harness).await;
    done(harness, &record).await;
    harness.pass(DEDUPLICATION_WINDOW - Duration::from_secs(10)).await;
    accept(harness, message.clone()).await;
    nothing(harness).await;
    harness.pass(Duration::from_secs(11)).await;
    accept(harness, message).await;
    assert_eq!(one(harness).await.body, "1");
}

/// Case sqs-dedup-scope: equal deduplication ids in two groups are two messages.
pub async fn sqs_dedup_scope(harness: &dyn Harness) {
    accept(harness, NewMessage::fifo("1", "s1", "1001")).await;
    accept(harness, NewMessage::fifo("2", "s2", "1001")).await;
    let mut received = vec![one(harness).await.body, one(harness).await.body];
    received.sort_unstable();
    assert_eq!(received, ["1", "2"]);
}

/// Case sqs-dedup-content: two equal bodies are two messages.
pub async fn sqs_dedup_content(harness: &dyn Harness) {
    let body = r#"{"text":"yes"}"#;
    accept(harness, NewMessage::fifo(body, "s1", "1")).await;
    accept(harness, NewMessage::fifo(body, "s1", "2")).await;
    for _ in 0..2 {
        let record = one(harness).await;
        assert_eq!(record.body, body);
        done(harness, &record).await;
    }
}

/// Case sqs-dedup-requeue: within the window a redrive needs a deduplication id of its own.
pub async fn sqs_dedup_requeue(harness: &dyn Harness) {
    accept(harness, NewMessage::fifo("1", "g", "telegram:b:1001")).await;
    let record = one(harness).await;
    done(harness, &record).await;
    harness.pass(harness.visibility() * 2).await;
    accept(harness, NewMessage::fifo("1", "g", "telegram:b:1001")).await;
    nothing(harness).await;
    accept(harness, NewMessage::fifo("1", "g", "telegram:b:1001.redrive1")).await;
    assert_eq!(one(harness).await.body, "1");
}

/// Case sqs-fifo-poison: what is received too often is set aside, and its group goes on.
pub async fn sqs_fifo_poison(harness: &dyn Harness) {
    send(harness, "s1", &["poison", "next question"]).await;
    for _ in 0..MAX_RECEIVES {
        let record = one(harness).await;
        assert_eq!(record.body, "poison");
        back(harness, &record).await;
    }
    assert!(harness.take_dead().await.is_empty(), "set aside too early");
    assert_eq!(one(harness).await.body, "next question");
    let dead = harness.take_dead().await;
    assert_eq!(bodies(&dead), ["poison"]);
    assert_eq!(dead[0].group.as_deref(), Some("s1"));
}

/// Attributes and group travel with the message; a message without attributes has none.
pub async fn attributes_travel(harness: &dyn Harness) {
    let attributes = BTreeMap::from([("traceparent".to_owned(), "00-0af7-b7ad-01".to_owned())]);
    accept(harness, NewMessage { attributes: attributes.clone(), ..NewMessage::fifo("1", "g", "1") }).await;
    let record = one(harness).await;
    assert_eq!((record.group.as_deref(), &record.attributes), (Some("g"), &attributes));
}

/// What the rules refuse is refused before anything is sent.
pub async fn what_breaks_the_rules_is_refused(harness: &dyn Harness) {
    let no_group = NewMessage::standard("1");
    let empty = NewMessage::fifo("", "g", "1");
    let huge = NewMessage::fifo("x".repeat(crate::MAX_BYTES + 1), "g", "1");
    for message in [no_group, empty] {
        assert!(matches!(harness.queue().send(message).await, Err(SendError::Invalid(_))));
    }
    assert!(matches!(harness.queue().send(huge).await, Err(SendError::TooLarge { .. })));
    nothing(harness).await;
}

/// Sends `bodies` to a group, each under a deduplication id of its own.
async fn send(harness: &dyn Harness, group: &str, bodies: &[&str]) {
    for body in bodies {
        accept(harness, NewMessage::fifo(*body, group, body.replace(' ', "-"))).await;
    }
}

async fn accept(harness: &dyn Harness, message: NewMessage) {
    harness.queue().send(message).await.unwrap_or_else(|error| panic!("sending failed: {error}"));
}

async fn one(harness: &dyn Harness) -> Record {
    let mut batch = harness.receive(1).await;
    assert_eq!(batch.len(), 1, "there should be a message");
    batch.remove(0)
}

async fn nothing(harness: &dyn Harness) {
    assert_eq!(bodies(&harness.receive(10).await), Vec::<&str>::new(), "nothing should be receivable");
}

async fn done(harness: &dyn Harness, record: &Record) {
    harness.delete(&record.receipt).await.unwrap_or_else(|error| panic!("deleting failed: {error}"));
}

async fn back(harness: &dyn Harness, record: &Record) {
    set_visibility(harness, record, Duration::ZERO).await;
}

async fn set_visibility(harness: &dyn Harness, record: &Record, visibility: Duration) {
    let set = harness.queue().set_visibility(&record.receipt, visibility).await;
    set.unwrap_or_else(|error| panic!("changing the visibility failed: {error}"));
}

async fn ended(harness: &dyn Harness, receipt: &Receipt) {
    assert!(matches!(harness.delete(receipt).await, Err(ReceiptError::Ended)), "the receipt still deletes");
    let set = harness.queue().set_visibility(receipt, harness.visibility()).await;
    assert!(matches!(set, Err(ReceiptError::Ended)), "the receipt still changes the visibility");
}

fn bodies(records: &[Record]) -> Vec<&str> {
    records.iter().map(|record| record.body.as_str()).collect()
}
