//! The worker pool: concurrency, isolation, start and stop, and a death in the middle.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use turnlock_queue::local::LocalQueue;
use turnlock_queue::pool::{Handler, WorkerPool, handler};
use turnlock_queue::{NewMessage, Queue, Record};

use crate::kit::{bodies, fifo, seconds, send};

/// What handlers saw, in order.
type Seen = Arc<Mutex<Vec<String>>>;

/// A handler that notes each batch and takes as many seconds as the first body says after its colon.
fn noting(seen: &Seen) -> Handler {
    let seen = Arc::clone(seen);
    handler(move |batch: Vec<Record>| {
        let seen = Arc::clone(&seen);
        async move {
            let names: Vec<_> = batch.iter().map(|record| record.body.as_str()).collect();
            seen.lock().unwrap().push(names.join("+"));
            let time = batch[0].body.split_once(':').and_then(|(_, time)| time.parse().ok());
            sleep(seconds(time.unwrap_or(0))).await;
            seen.lock().unwrap().push(format!("-{}", names.join("+")));
            Vec::new()
        }
    })
}

fn taken(seen: &Seen) -> Vec<String> {
    std::mem::take(&mut seen.lock().unwrap())
}

async fn empty(queue: &LocalQueue) -> bool {
    queue.waiting().await.unwrap() + queue.in_flight().unwrap() == 0
}

/// Runs the pool for `time`, in the foreground.
async fn run_for(pool: &WorkerPool, time: Duration) {
    assert!(timeout(time, pool.run()).await.is_err(), "the pool runs until it is dropped");
}

#[tokio::test(start_paused = true)]
async fn concurrency_is_never_exceeded_and_is_reached() {
    let queue = fifo(|_| ());
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counting = {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        handler(move |_| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(Duration::from_millis(50)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Vec::new()
            }
        })
    };
    for group in ["a", "b", "c", "d", "e", "f"] {
        send(&queue, group, &["1", "2"]).await;
    }
    let pool = WorkerPool::new(Arc::clone(&queue), 2, 1, counting);
    let before = Instant::now();
    pool.start();
    while !empty(&queue).await {
        assert!(pool.running() <= 2);
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
    assert!(before.elapsed() <= Duration::from_millis(310), "six rounds of two");
}

#[tokio::test(start_paused = true)]
async fn a_slow_handler_does_not_block_other_groups() {
    let (queue, seen) = (fifo(|_| ()), Seen::default());
    send(&queue, "slow", &["first:20", "behind"]).await;
    send(&queue, "quick", &["second"]).await;
    let pool = WorkerPool::new(Arc::clone(&queue), 2, 1, noting(&seen));
    run_for(&pool, seconds(10)).await;
    assert_eq!(taken(&seen), ["first:20", "second", "-second"]);
    run_for(&pool, seconds(15)).await;
    assert_eq!(taken(&seen), ["-first:20", "behind", "-behind"]);
    assert!(empty(&queue).await);
}

#[tokio::test(start_paused = true)]
async fn a_batch_comes_in_order_and_what_is_reported_stays() {
    let queue = fifo(|settings| settings.visibility = seconds(30));
    let seen = Seen::default();
    let failing = {
        let (queue, seen) = (Arc::clone(&queue), Arc::clone(&seen));
        handler(move |batch: Vec<Record>| {
            let (queue, seen) = (Arc::clone(&queue), Arc::clone(&seen));
            async move {
                let names: Vec<_> = batch.iter().map(|record| record.body.clone()).collect();
                seen.lock().unwrap().push(names.join("+"));
                let (_, failed) = batch.split_at(batch.iter().take_while(|record| record.receive_count > 1).count());
                for record in failed.iter().filter(|record| record.group.as_deref() == Some("g")) {
                    queue.set_visibility(&record.receipt, seconds(5)).await.unwrap();
                }
                failed.iter().map(|record| record.message_id.clone()).collect()
            }
        })
    };
    send(&queue, "g", &["1", "2"]).await;
    send(&queue, "h", &["3"]).await;
    let pool = WorkerPool::new(Arc::clone(&queue), 1, 10, failing);
    run_for(&pool, seconds(4)).await;
    assert_eq!(taken(&seen), ["1+2+3"]);
    run_for(&pool, seconds(2)).await;
    assert_eq!(taken(&seen), ["1+2"], "after the visibility that the handler set");
    run_for(&pool, seconds(25)).await;
    assert_eq!(taken(&seen), ["3"], "after the queue's own");
    assert!(empty(&queue).await);
}

#[tokio::test(start_paused = true)]
async fn a_panicking_handler_touches_no_other_and_frees_its_worker() {
    let queue = fifo(|settings| settings.visibility = seconds(30));
    let seen = Seen::default();
    let panicking: Handler = {
        let seen = Arc::clone(&seen);
        // One panics before it returns a future, one inside it.
        Arc::new(move |batch: Vec<Record>| {
            let body = batch[0].body.clone();
            assert_ne!((body.as_str(), batch[0].receive_count), ("bad early", 1));
            let seen = Arc::clone(&seen);
            Box::pin(async move {
                assert_ne!((body.as_str(), batch[0].receive_count), ("bad late", 1));
                seen.lock().unwrap().push(body);
                Vec::new()
            })
        })
    };
    send(&queue, "a", &["bad early"]).await;
    send(&queue, "b", &["bad late"]).await;
    send(&queue, "c", &["good"]).await;
    let pool = WorkerPool::new(Arc::clone(&queue), 1, 1, panicking);
    run_for(&pool, seconds(1)).await;
    assert_eq!(taken(&seen), ["good"]);
    assert_eq!((queue.in_flight().unwrap(), pool.running()), (2, 0));
    run_for(&pool, seconds(30)).await;
    assert_eq!(taken(&seen), ["bad early", "bad late"]);
    assert!(empty(&queue).await);
}

#[tokio::test(start_paused = true)]
async fn workers_are_free_again_after_failures() {
    let queue = fifo(|settings| settings.visibility = seconds(600));
    let reached = Arc::new(Mutex::new(BTreeSet::new()));
    let failing = {
        let reached = Arc::clone(&reached);
        handler(move |batch: Vec<Record>| {
            reached.lock().unwrap().insert(batch[0].body.clone());
            async move { batch.into_iter().map(|record| record.message_id).collect() }
        })
    };
    for group in ["a", "b", "c", "d"] {
        send(&queue, group, &[group]).await;
    }
    let pool = WorkerPool::new(Arc::clone(&queue), 2, 1, failing);
    run_for(&pool, seconds(1)).await;
    assert_eq!(reached.lock().unwrap().len(), 4);
    assert_eq!((pool.running(), queue.in_flight().unwrap()), (0, 4));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_outlives_its_visibility_is_handled_again_and_the_late_worker_deletes_nothing() {
    let queue = fifo(|settings| settings.visibility = seconds(10));
    let seen = Seen::default();
    send(&queue, "g", &["1:25"]).await;
    let pool = WorkerPool::new(Arc::clone(&queue), 2, 1, noting(&seen));
    run_for(&pool, seconds(15)).await;
    assert_eq!(taken(&seen), ["1:25", "1:25"]);
    pool.stop(seconds(15)).await;
    assert_eq!(taken(&seen), ["-1:25"]);
    assert!(!empty(&queue).await);
}

#[tokio::test(start_paused = true)]
async fn a_woken_message_is_handled_at_once_and_a_new_one_too() {
    let (queue, seen) = (fifo(|_| ()), Seen::default());
    send(&queue, "g", &["asleep"]).await;
    let record = crate::kit::one(&queue);
    queue.set_visibility(&record.receipt, seconds(900)).await.unwrap();
    let pool = WorkerPool::new(Arc::clone(&queue), 1, 1, noting(&seen));
    pool.start();
    sleep(seconds(5)).await;
    assert_eq!(taken(&seen), [""; 0]);
    let before = Instant::now();
    queue.wake(&record.receipt).await.unwrap();
    send(&queue, "h", &["new"]).await;
    sleep(Duration::from_millis(1)).await;
    assert_eq!(taken(&seen), ["asleep", "-asleep", "new", "-new"]);
    assert!(before.elapsed() < seconds(1));
}

#[tokio::test(start_paused = true)]
async fn starting_and_stopping_may_be_repeated() {
    let (queue, seen) = (fifo(|_| ()), Seen::default());
    let pool = WorkerPool::new(Arc::clone(&queue), 1, 1, noting(&seen));
    assert_eq!(pool.stop(seconds(1)).await, 0, "without a start");
    for round in ["1", "2"] {
        pool.start();
        pool.start();
        send(&queue, "g", &[round]).await;
        sleep(seconds(1)).await;
        assert_eq!(taken(&seen), [round.to_owned(), format!("-{round}")]);
        assert_eq!(pool.stop(seconds(1)).await, 0);
        assert_eq!(pool.stop(seconds(1)).await, 0);
    }
    send(&queue, "g", &["3"]).await;
    sleep(seconds(60)).await;
    assert_eq!(taken(&seen), [""; 0], "a stopped pool takes nothing");
}

#[tokio::test(start_paused = true)]
async fn stop_drains_what_is_in_flight_within_the_time() {
    let (queue, seen) = (fifo(|settings| settings.visibility = seconds(90)), Seen::default());
    send(&queue, "a", &["short:3"]).await;
    send(&queue, "b", &["long:60"]).await;
    send(&queue, "c", &["waiting"]).await;
    let pool = WorkerPool::new(Arc::clone(&queue), 2, 1, noting(&seen));
    pool.start();
    sleep(seconds(1)).await;
    let before = Instant::now();
    assert_eq!(pool.stop(seconds(10)).await, 1);
    assert_eq!(before.elapsed(), seconds(10));
    assert_eq!(taken(&seen), ["short:3", "long:60", "-short:3"]);
    assert_eq!((queue.waiting().await.unwrap(), queue.in_flight().unwrap()), (1, 1));
    sleep(seconds(80)).await;
    assert_eq!(bodies(&queue), ["long:60", "waiting"], "it comes back, first");
}

/// (H) `test_stop_waits_for_admitted_publisher_then_drains_it`: here the file keeps what a publisher got in.
#[tokio::test(start_paused = true)]
async fn a_publisher_that_gets_in_during_a_stop_is_not_lost() {
    let (queue, seen) = (fifo(|settings| settings.capacity = 1), Seen::default());
    let pool = WorkerPool::new(Arc::clone(&queue), 1, 1, noting(&seen));
    send(&queue, "a", &["1:2"]).await;
    pool.poll_once();
    send(&queue, "b", &["2"]).await;
    let publisher = queue.send(NewMessage::fifo("3", "c", "3"));
    let (aborted, sent) = tokio::join!(pool.stop(seconds(10)), async {
        let (sent, _) = tokio::join!(publisher, async {
            sleep(seconds(1)).await;
            crate::kit::one(&queue)
        });
        sent
    });
    sent.unwrap();
    assert_eq!(aborted, 0);
    pool.start();
    sleep(seconds(31)).await;
    assert!(empty(&queue).await);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_pool_stops_every_handler_where_it_is() {
    let (queue, seen) = (fifo(|settings| settings.visibility = seconds(90)), Seen::default());
    send(&queue, "a", &["1:5", "2"]).await;
    send(&queue, "b", &["3:5"]).await;
    let pool = WorkerPool::new(Arc::clone(&queue), 5, 1, noting(&seen));
    pool.start();
    sleep(seconds(1)).await;
    drop(pool);
    sleep(seconds(88)).await;
    assert_eq!(taken(&seen), ["1:5", "3:5"]);
    assert_eq!((queue.waiting().await.unwrap(), queue.in_flight().unwrap()), (1, 2));

    let successor = WorkerPool::new(Arc::clone(&queue), 5, 1, noting(&seen));
    run_for(&successor, seconds(60)).await;
    assert!(empty(&queue).await);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_ready_to_go_on_takes_no_step_after_the_drop() {
    let (queue, steps) = (fifo(|_| ()), Arc::new(AtomicUsize::new(0)));
    let stepping = {
        let steps = Arc::clone(&steps);
        handler(move |_| {
            let steps = Arc::clone(&steps);
            async move {
                loop {
                    steps.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                }
            }
        })
    };
    send(&queue, "a", &["1"]).await;
    let pool = WorkerPool::new(Arc::clone(&queue), 1, 1, stepping);
    pool.start();
    while steps.load(Ordering::SeqCst) < 3 {
        tokio::task::yield_now().await;
    }
    let at_the_drop = steps.load(Ordering::SeqCst);
    drop(pool);
    sleep(seconds(1)).await;
    assert_eq!(steps.load(Ordering::SeqCst), at_the_drop);
}

#[tokio::test(start_paused = true)]
async fn poll_once_hands_out_exactly_what_is_there() {
    let (queue, seen) = (fifo(|_| ()), Seen::default());
    let pool = WorkerPool::new(Arc::clone(&queue), 2, 1, noting(&seen));
    assert!(!pool.poll_once());
    send(&queue, "a", &["1", "2"]).await;
    assert!(pool.poll_once());
    assert!(!pool.poll_once(), "the group is blocked");
    assert_eq!((pool.running(), taken(&seen).len()), (1, 0), "the handler has not run yet");
    pool.ready().await;
    assert_eq!(taken(&seen), ["1", "-1"], "ready means: the next message of the group can be received");
    assert!(pool.poll_once());
    sleep(seconds(1)).await;
    assert_eq!(taken(&seen), ["2", "-2"]);
    assert!(empty(&queue).await);
}

#[tokio::test(start_paused = true)]
async fn an_idle_pool_does_not_poll() {
    let (queue, seen) = (fifo(|_| ()), Seen::default());
    let pool = WorkerPool::new(Arc::clone(&queue), 1, 1, noting(&seen));
    let (mut run, mut wakes) = (Box::pin(pool.run()), 0);
    let counted = std::future::poll_fn(|context| {
        wakes += 1;
        run.as_mut().poll(context)
    });
    assert!(tokio::time::timeout(seconds(86_400), counted).await.is_err(), "it runs until it is dropped");
    assert_eq!(wakes, 2, "once at the start, and once more by the end of this test's day");
}
