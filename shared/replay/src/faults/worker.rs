//! The worker whose request it is: which event it works on, and how all of it is frozen.
//!
//! Whoever starts a piece of work wraps it in [`in_turn`]. Requests made inside are counted under that event, and a
//! `freeze` holds back the whole of it - renewals and timers included, as a frozen sandbox does - not only the one
//! request. Outside of any turn a freeze delays the request alone. Work that is spawned as a task of its own inside is
//! outside.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

tokio::task_local! {
    static WORKER: Worker;
}

#[derive(Debug, Clone)]
struct Worker {
    event: Arc<str>,
    /// Until when it takes no step; set by a request inside it, taken by the wrapper around it.
    frozen_until: Arc<Mutex<Option<Instant>>>,
}

impl Worker {
    fn frozen_until(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.frozen_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `work` as the work on the event of that id.
pub async fn in_turn<Work: Future>(event_id: &str, work: Work) -> Work::Output {
    let worker = Worker { event: event_id.into(), frozen_until: Arc::default() };
    let mut work = pin!(WORKER.scope(worker.clone(), work));
    let mut thaw: Option<Pin<Box<Sleep>>> = None;
    poll_fn(|context| poll(&worker, work.as_mut(), &mut thaw, context)).await
}

fn poll<Work: Future>(
    worker: &Worker,
    mut work: Pin<&mut Work>,
    thaw: &mut Option<Pin<Box<Sleep>>>,
    context: &mut Context<'_>,
) -> Poll<Work::Output> {
    loop {
        if let Some(sleep) = thaw {
            ready!(sleep.as_mut().poll(context));
            *thaw = None;
        }
        // Also when this poll was meant for something that woke during the freeze: it sees now how late it is.
        if let Poll::Ready(output) = work.as_mut().poll(context) {
            return Poll::Ready(output);
        }
        let Some(until) = worker.frozen_until().take() else { return Poll::Pending };
        *thaw = Some(Box::pin(sleep_until(until)));
    }
}

/// The event that the current task works on.
#[must_use]
pub fn current_turn() -> Option<Arc<str>> {
    WORKER.try_with(|worker| Arc::clone(&worker.event)).ok()
}

/// Lets the current worker take no step for `duration`.
pub(super) async fn freeze(duration: Duration) {
    let until = Instant::now() + duration;
    // Outside of a turn there is no worker to hold back, and the request waits alone.
    let _ = WORKER.try_with(|worker| *worker.frozen_until() = Some(until));
    sleep_until(until).await;
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use tokio::time::sleep;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_frozen_worker_takes_no_step_while_others_go_on() {
        let start = Instant::now();
        let log = RefCell::new(Vec::new());
        let note = |what: &str| log.borrow_mut().push((start.elapsed().as_secs(), what.to_owned()));
        let frozen = in_turn("one", async {
            let renewals = async {
                for _ in 0..3 {
                    sleep(2 * SECOND).await;
                    note("renewal");
                }
            };
            let request = async {
                freeze(300 * SECOND).await;
                note("sent");
            };
            tokio::join!(renewals, request)
        });
        let other = in_turn("two", async {
            sleep(3 * SECOND).await;
            note(&current_turn().unwrap_or_else(|| "nobody".into()));
        });
        tokio::join!(frozen, other);
        let expected = [(3, "two"), (300, "renewal"), (300, "sent"), (302, "renewal"), (304, "renewal")];
        let mut log = log.into_inner();
        // Which of two futures is polled first at one instant is the joining macro's affair.
        log.sort();
        assert_eq!(log, expected.map(|(at, what)| (at, what.to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn outside_of_a_turn_only_the_request_waits() {
        let start = Instant::now();
        tokio::join!(freeze(5 * SECOND), async {
            sleep(SECOND).await;
            assert_eq!(start.elapsed(), SECOND);
        });
        assert_eq!(start.elapsed(), 5 * SECOND);
        assert_eq!(current_turn(), None);
    }
}
