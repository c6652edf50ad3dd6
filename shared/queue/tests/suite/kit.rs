//! What every test needs: queues in memory on virtual time, and a few short words.

use std::sync::Arc;
use std::time::Duration;

use turnlock_clock::Clock;
use turnlock_queue::local::{LocalQueue, LocalQueues, Location, QueueSettings};
use turnlock_queue::{NewMessage, Queue, Record};

/// A clock at the start of the story.
pub(crate) fn clock() -> Clock {
    Clock::starting_at("2026-01-05T09:00:00Z".parse().unwrap())
}

/// Queues in memory.
pub(crate) fn queues(settings: Vec<QueueSettings>) -> LocalQueues {
    LocalQueues::open(&Location::Memory, clock(), settings).unwrap()
}

/// One FIFO queue in memory, changed by `change`.
pub(crate) fn fifo(change: impl FnOnce(&mut QueueSettings)) -> Arc<LocalQueue> {
    let mut settings = QueueSettings::fifo("inbound");
    change(&mut settings);
    queues(vec![settings]).queue("inbound").unwrap()
}

/// Sends `bodies` to `group`, each with itself as deduplication id.
pub(crate) async fn send(queue: &LocalQueue, group: &str, bodies: &[&str]) {
    for body in bodies {
        queue.send(NewMessage::fifo(*body, group, body.replace(' ', "-"))).await.unwrap();
    }
}

/// The next message, alone.
pub(crate) fn one(queue: &LocalQueue) -> Record {
    let mut batch = queue.receive(1).unwrap();
    assert_eq!(batch.len(), 1, "there should be a message");
    batch.remove(0)
}

/// The bodies of everything that can be received now.
pub(crate) fn bodies(queue: &LocalQueue) -> Vec<String> {
    queue.receive(10).unwrap().into_iter().map(|record| record.body).collect()
}

/// Seconds, as in the design.
pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
