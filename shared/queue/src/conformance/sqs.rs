//! The checks on [`SqsQueue`], against whatever answers at the endpoint of a configuration.

use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
use aws_types::SdkConfig;

use super::{Harness, MAX_RECEIVES};
use crate::sqs::SqsQueue;
use crate::{MAX_BATCH, MAX_BYTES, Queue, Receipt, ReceiptError, Record};

/// Long enough for a few requests on a busy machine; what lets a visibility end waits for it in real time.
const VISIBILITY: Duration = Duration::from_secs(5);

/// Runs the checks, all at once and each on queues of its own whose names begin with `run`, and panics when one fails.
/// The queues are left behind, so a second run needs another name.
///
/// Two checks are not among them. [`super::a_receipt_ends_with_its_visibility`]: SQS keeps that promise for FIFO queues,
/// the emulator (ministack 1.5) takes a receipt until its message is received again.
/// [`super::a_deduplication_id_is_forgotten_after_the_window`]: it takes five minutes.
pub async fn hold(config: &SdkConfig, run: &str) {
    let client = &SqsQueue::client(config);
    macro_rules! all {
        ($($check:ident),* $(,)?) => {
            tokio::join!($(async {
                let queues = Queues::create(client, &format!("{run}-{}", stringify!($check))).await;
                super::$check(&queues).await;
            }),*)
        };
    }
    all!(
        a_group_keeps_its_order_and_is_blocked_while_in_flight,
        a_batch_of_one_group_is_in_order_and_blocks_it_as_a_whole,
        other_groups_flow,
        a_message_given_back_stays_first,
        visibility_ends,
        visibility_is_extended,
        an_earlier_receipt_is_worth_nothing,
        a_sleeping_message_is_woken,
        duplicates_are_swallowed,
        sqs_dedup_scope,
        sqs_dedup_content,
        sqs_dedup_requeue,
        sqs_fifo_poison,
        attributes_travel,
        what_breaks_the_rules_is_refused,
    );
}

/// Two FIFO queues as the template makes them: in high-throughput mode, the second one for dead letters.
struct Queues {
    queue: SqsQueue,
    dead: SqsQueue,
}

impl Queues {
    async fn create(client: &Client, name: &str) -> Self {
        let dead = create(client, &format!("{name}-dead.fifo"), None).await;
        let arn = QueueAttributeName::QueueArn;
        let answer = client.get_queue_attributes().queue_url(&dead).attribute_names(arn.clone()).send().await;
        let answer = answer.unwrap_or_else(|error| panic!("the queue was not described: {error:?}"));
        let arn = answer.attributes.and_then(|mut attributes| attributes.remove(&arn)).unwrap_or_default();
        let policy = format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":{MAX_RECEIVES}}}"#);
        let queue = create(client, &format!("{name}.fifo"), Some(policy)).await;
        let [queue, dead] = [queue, dead].map(|url| SqsQueue::new(client.clone(), &url, MAX_BYTES, 1));
        Self { queue, dead }
    }
}

async fn create(client: &Client, name: &str, redrive_policy: Option<String>) -> String {
    let mut request = client
        .create_queue()
        .queue_name(name)
        .attributes(QueueAttributeName::FifoQueue, "true")
        .attributes(QueueAttributeName::DeduplicationScope, "messageGroup")
        .attributes(QueueAttributeName::FifoThroughputLimit, "perMessageGroupId");
    if let Some(policy) = redrive_policy {
        request = request.attributes(QueueAttributeName::RedrivePolicy, policy);
    }
    let created = request.send().await.unwrap_or_else(|error| panic!("queue {name} was not created: {error:?}"));
    created.queue_url.unwrap_or_else(|| panic!("queue {name} has no URL"))
}

async fn receive(queue: &SqsQueue, max: usize) -> Vec<Record> {
    let received = queue.receive(max, VISIBILITY, Duration::ZERO).await;
    received.unwrap_or_else(|error| panic!("receiving failed: {error:?}"))
}

#[async_trait]
impl Harness for Queues {
    fn queue(&self) -> &dyn Queue {
        &self.queue
    }

    async fn receive(&self, max: usize) -> Vec<Record> {
        receive(&self.queue, max).await
    }

    async fn delete(&self, receipt: &Receipt) -> Result<(), ReceiptError> {
        self.queue.delete(receipt).await
    }

    async fn take_dead(&self) -> Vec<Record> {
        let dead = receive(&self.dead, MAX_BATCH).await;
        for record in &dead {
            let deleted = self.dead.delete(&record.receipt).await;
            deleted.unwrap_or_else(|error| panic!("deleting failed: {error:?}"));
        }
        dead
    }

    fn visibility(&self) -> Duration {
        VISIBILITY
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}
