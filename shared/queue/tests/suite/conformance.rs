//! The local queue keeps every promise of the trait.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use turnlock_queue::conformance::{self, Harness, MAX_RECEIVES};
use turnlock_queue::local::{LocalQueue, QueueSettings};
use turnlock_queue::{Queue, Receipt, ReceiptError, Record};

use crate::kit;

const VISIBILITY: Duration = Duration::from_secs(30);

struct Local {
    queue: Arc<LocalQueue>,
    dead: Arc<LocalQueue>,
}

impl Local {
    fn new() -> Self {
        let settings = QueueSettings {
            visibility: VISIBILITY,
            max_receive_count: MAX_RECEIVES,
            dead_letter: Some("dead".into()),
            ..QueueSettings::fifo("inbound")
        };
        let queues = kit::queues(vec![settings, QueueSettings::fifo("dead")]);
        Self { queue: queues.queue("inbound").unwrap(), dead: queues.queue("dead").unwrap() }
    }
}

#[async_trait]
impl Harness for Local {
    fn queue(&self) -> &dyn Queue {
        &*self.queue
    }

    async fn receive(&self, max: usize) -> Vec<Record> {
        self.queue.receive(max).unwrap()
    }

    async fn delete(&self, receipt: &Receipt) -> Result<(), ReceiptError> {
        self.queue.delete(receipt)
    }

    async fn take_dead(&self) -> Vec<Record> {
        let dead = self.dead.receive(10).unwrap();
        dead.iter().for_each(|record| self.dead.delete(&record.receipt).unwrap());
        dead
    }

    fn visibility(&self) -> Duration {
        VISIBILITY
    }

    async fn pass(&self, time: Duration) {
        tokio::time::advance(time).await;
    }
}

macro_rules! every_promise {
    ($($name:ident),* $(,)?) => {
        $(#[tokio::test(start_paused = true)]
        async fn $name() {
            conformance::$name(&Local::new()).await;
        })*
    };
}

every_promise!(
    a_group_keeps_its_order_and_is_blocked_while_in_flight,
    a_batch_of_one_group_is_in_order_and_blocks_it_as_a_whole,
    other_groups_flow,
    a_message_given_back_stays_first,
    visibility_ends,
    visibility_is_extended,
    a_receipt_ends_with_its_visibility,
    an_earlier_receipt_is_worth_nothing,
    a_sleeping_message_is_woken,
    duplicates_are_swallowed,
    a_deduplication_id_is_forgotten_after_the_window,
    sqs_dedup_scope,
    sqs_dedup_content,
    sqs_dedup_requeue,
    sqs_fifo_poison,
    attributes_travel,
    what_breaks_the_rules_is_refused,
);
