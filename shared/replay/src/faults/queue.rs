//! A queue as a process reaches it. Receiving and deleting are the event source mapping's on AWS and the worker pool's
//! here, not the process's: they have no faults, and a process that dies in a handler has deleted nothing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use turnlock_queue::{BoxError, NewMessage, PUBLISH_TIMEOUT, Queue, QueueError, Receipt, ReceiptError, SendError};

use super::life::{Life, Outgoing};
use super::rule::{Failure, Port};

/// When a queue that limits the rate takes the next message.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// [`Queue`] under the rules of a plan.
pub(super) struct FaultQueue {
    life: Life,
    inner: Arc<dyn Queue>,
}

impl FaultQueue {
    pub(super) fn new(life: Life, inner: Arc<dyn Queue>) -> Self {
        Self { life, inner }
    }
}

fn outgoing(operation: &str, bytes: usize) -> Outgoing<'_> {
    Outgoing { port: Port::Queue, operation, bytes }
}

#[async_trait]
impl Queue for FaultQueue {
    async fn send(&self, message: NewMessage) -> Result<(), SendError> {
        let request = outgoing("send", message.bytes());
        let sending = self.life.pass(request, self.inner.send(message), |failure| Err(send_error(&failure)));
        // The trait's own limit holds for a slow send, too.
        match tokio::time::timeout(PUBLISH_TIMEOUT, sending).await {
            Ok(outcome) => outcome,
            Err(_) => Err(SendError::LostAnswer("no answer in time".into())),
        }
    }

    async fn set_visibility(&self, receipt: &Receipt, visibility: Duration) -> Result<(), ReceiptError> {
        let change = self.inner.set_visibility(receipt, visibility);
        let refuse = |failure: Failure| Err(ReceiptError::Unavailable(played(&failure)));
        self.life.pass(outgoing("set_visibility", 0), change, refuse).await
    }

    async fn wake(&self, receipt: &Receipt) -> Result<(), ReceiptError> {
        let refuse = |failure: Failure| Err(ReceiptError::Unavailable(played(&failure)));
        self.life.pass(outgoing("wake", 0), self.inner.wake(receipt), refuse).await
    }

    async fn waiting(&self) -> Result<u64, QueueError> {
        let refuse = |failure: Failure| Err(QueueError(played(&failure)));
        self.life.pass(outgoing("waiting", 0), self.inner.waiting(), refuse).await
    }
}

fn played(failure: &Failure) -> BoxError {
    format!("played: {}", failure.name()).into()
}

fn send_error(failure: &Failure) -> SendError {
    match failure {
        Failure::LostAnswer | Failure::Slow => SendError::LostAnswer(played(failure)),
        Failure::Throttled | Failure::Full => SendError::Full { retry_after: RETRY_AFTER },
        // The last two are refused for this port when a rule is made.
        Failure::Unreachable | Failure::Conflict { .. } | Failure::InProgress => {
            SendError::Unreachable(played(failure))
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use turnlock_clock::Clock;
    use turnlock_queue::local::{LocalQueues, Location, QueueSettings};

    use super::super::FaultPlan;
    use super::super::rule::{Fault, Operation, Rule, Span};
    use super::*;

    fn plan(operation: &str, failure: Failure, delay: u64) -> FaultPlan {
        let plan = FaultPlan::new();
        let fault = Fault::Fail { failure, delay: Duration::from_secs(delay) };
        let operation = Operation::from_text(operation);
        plan.arm(Rule { port: Port::Queue, operation, nth: 1, span: Span::Times(1), fault });
        plan
    }

    async fn sent(plan: &FaultPlan) -> (Result<(), SendError>, u64) {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH);
        let queues = LocalQueues::open(&Location::Memory, clock, vec![QueueSettings::fifo("inbound")]).unwrap();
        let queue = plan.process().queue(queues.queue("inbound").unwrap());
        let outcome = queue.send(NewMessage::fifo("hi", "session", "event")).await;
        (outcome, queue.waiting().await.unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_send_fails_with_the_queues_own_errors() {
        assert!(matches!(sent(&FaultPlan::new()).await, (Ok(()), 1)));
        assert!(matches!(sent(&plan("send", Failure::Unreachable, 0)).await, (Err(SendError::Unreachable(_)), 0)));
        assert!(matches!(sent(&plan("send", Failure::LostAnswer, 0)).await, (Err(SendError::LostAnswer(_)), 1)));
        assert!(matches!(sent(&plan("send", Failure::Throttled, 0)).await, (Err(SendError::Full { .. }), 0)));
        assert!(matches!(sent(&plan("*", Failure::Full, 0)).await, (Err(SendError::Full { .. }), 0)));
        assert!(matches!(sent(&plan("send", Failure::Slow, 4)).await, (Ok(()), 1)));
        assert!(matches!(sent(&plan("send", Failure::Slow, 6)).await, (Err(SendError::LostAnswer(_)), 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_counted_by_name() {
        let plan = FaultPlan::new();
        sent(&plan).await.0.unwrap();
        let counts = plan.counts();
        let names: Vec<_> = counts[&Port::Queue].by_operation.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(names, [("send", 1), ("waiting", 1)]);
    }
}
