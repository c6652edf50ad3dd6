//! One process as the ports see it, and the door that every request of it passes.

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::SharedHttpClient;
use tokio::sync::watch;
use tokio::time::sleep;
use turnlock_channels::http::PlatformHttp;
use turnlock_queue::Queue;

use super::platform::FaultPlatform;
use super::queue::FaultQueue;
use super::rule::{Failure, Fault, Port};
use super::{FaultPlan, store, worker};

/// One process: it lives until a rule kills it or [`Life::end`] does. Clones are the same process.
#[derive(Debug, Clone)]
pub struct Life {
    plan: FaultPlan,
    death: Arc<watch::Sender<Option<Death>>>,
}

/// Where a process died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// The port of the request that was hit.
    pub port: Port,
    /// The request's operation.
    pub operation: String,
    /// Whether it took effect.
    pub after: bool,
}

/// A request on its way out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outgoing<'a> {
    pub(super) port: Port,
    pub(super) operation: &'a str,
    /// The size of its body; zero where a port has none.
    pub(super) bytes: usize,
}

impl Life {
    pub(super) fn new(plan: FaultPlan) -> Self {
        Self { plan, death: Arc::new(watch::Sender::new(None)) }
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.death.borrow().is_some()
    }

    /// Waits for its end.
    pub async fn over(&self) -> Death {
        let mut death = self.death.subscribe();
        loop {
            if let Some(death) = death.borrow_and_update().clone() {
                return death;
            }
            if death.changed().await.is_err() {
                // The sender lives in `self`.
                pending::<()>().await;
            }
        }
    }

    /// Ends it: from now on nothing that passes [`Life::gate`] goes on. A driver that replaces a process calls this
    /// before it drops the process, so that what is still polled in between has no effect.
    pub fn end(&self, death: Death) {
        self.death.send_if_modified(|known| {
            let first = known.is_none();
            known.get_or_insert(death);
            first
        });
    }

    /// Returns at once while the process lives, and never again after its death: for what reaches the outside without
    /// a port of its own (a scripted model or tool).
    pub async fn gate(&self) {
        if self.is_over() {
            pending::<()>().await;
        }
    }

    /// The store behind `client`, as this process reaches it.
    #[must_use]
    pub fn store(&self, client: SharedHttpClient) -> SharedHttpClient {
        store::client(self.clone(), client)
    }

    /// `queue`, as this process reaches it.
    #[must_use]
    pub fn queue(&self, queue: Arc<dyn Queue>) -> Arc<dyn Queue> {
        Arc::new(FaultQueue::new(self.clone(), queue))
    }

    /// The platforms behind `http`, as this process reaches them.
    #[must_use]
    pub fn platform(&self, http: Arc<dyn PlatformHttp>) -> Arc<dyn PlatformHttp> {
        Arc::new(FaultPlatform::new(self.clone(), http))
    }

    /// Sends a request, or plays what a rule says: `send` carries it out, `refuse` makes the port's own error. Never
    /// returns after the death of the process, whoever caused it meanwhile.
    pub(super) async fn pass<Answer>(
        &self,
        request: Outgoing<'_>,
        send: impl Future<Output = Answer>,
        refuse: impl FnOnce(Failure) -> Answer,
    ) -> Answer {
        self.gate().await;
        let turn = worker::current_turn();
        let fault = self.plan.decide(request.port, request.operation, request.bytes as u64, turn.as_deref());
        let answer = match fault {
            None => send.await,
            Some(Fault::Freeze(duration)) => {
                worker::freeze(duration).await;
                self.gate().await;
                send.await
            }
            Some(Fault::Kill { after }) => {
                if after {
                    drop(send.await);
                }
                self.die(request, after).await
            }
            Some(Fault::Fail { failure, delay }) => fail(failure, delay, send, refuse).await,
        };
        self.gate().await;
        answer
    }

    /// Counts the bytes of an answer.
    pub(super) fn count_answer(&self, port: Port, bytes: usize) {
        self.plan.add_answer(port, bytes as u64, worker::current_turn().as_deref());
    }

    async fn die<Answer>(&self, request: Outgoing<'_>, after: bool) -> Answer {
        self.end(Death { port: request.port, operation: request.operation.to_owned(), after });
        pending().await
    }
}

async fn fail<Answer>(
    failure: Failure,
    delay: Duration,
    send: impl Future<Output = Answer>,
    refuse: impl FnOnce(Failure) -> Answer,
) -> Answer {
    let answer = match failure {
        Failure::Slow => send.await,
        Failure::LostAnswer => {
            drop(send.await);
            refuse(Failure::LostAnswer)
        }
        refused => refuse(refused),
    };
    // Last, so that whoever gives up waiting cannot know whether it happened: the worst case of a slow network.
    sleep(delay).await;
    answer
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_util::FutureExt;

    use super::super::rule::{Operation, Rule, Span};
    use super::*;

    fn request(operation: &str) -> Outgoing<'_> {
        Outgoing { port: Port::Queue, operation, bytes: 0 }
    }

    fn plan(fault: Fault) -> FaultPlan {
        let plan = FaultPlan::new();
        plan.arm(Rule { port: Port::Queue, operation: Operation::Any, nth: 2, span: Span::Times(1), fault });
        plan
    }

    async fn send(life: &Life, applied: &Cell<u32>) -> Result<(), Failure> {
        let carry_out = async {
            applied.set(applied.get() + 1);
            Ok(())
        };
        life.pass(request("send"), carry_out, Err).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_kill_never_returns_and_takes_effect_or_not() {
        for (after, expected) in [(false, 1), (true, 2)] {
            let (plan, applied) = (plan(Fault::Kill { after }), Cell::new(0));
            let life = plan.process();
            send(&life, &applied).await.unwrap();
            assert_eq!(send(&life, &applied).now_or_never(), None);
            let death = Death { port: Port::Queue, operation: "send".into(), after };
            assert_eq!(life.over().now_or_never(), Some(death));
            assert_eq!(send(&life, &applied).now_or_never(), None, "the dead send nothing");
            assert_eq!(applied.get(), expected);

            send(&plan.process(), &applied).await.unwrap();
            assert_eq!(applied.get(), expected + 1, "a new process lives");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_carried_out_or_not_and_arrive_when_they_should() {
        let table = [
            (Failure::Unreachable, 0, Err(Failure::Unreachable), 1),
            (Failure::LostAnswer, 3, Err(Failure::LostAnswer), 2),
            (Failure::Slow, 4, Ok(()), 2),
        ];
        for (failure, delay, expected, expected_applied) in table {
            let delay = Duration::from_secs(delay);
            let (plan, applied) = (plan(Fault::Fail { failure, delay }), Cell::new(0));
            let life = plan.process();
            send(&life, &applied).await.unwrap();
            let start = tokio::time::Instant::now();
            assert_eq!(send(&life, &applied).await, expected);
            assert_eq!((start.elapsed(), applied.get()), (delay, expected_applied));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_on_its_way_when_the_process_dies_has_no_answer() {
        let (plan, applied) = (plan(Fault::Kill { after: false }), Cell::new(0));
        let life = plan.process();
        let slow = async {
            sleep(Duration::from_secs(5)).await;
            Ok(())
        };
        let first = life.pass(request("wake"), slow, Err);
        let second = async {
            sleep(Duration::from_secs(1)).await;
            send(&life, &applied).await
        };
        let both = async { tokio::join!(first, second) };
        assert!(tokio::time::timeout(Duration::from_secs(60), both).await.is_err());
        assert!(life.is_over());
    }
}
