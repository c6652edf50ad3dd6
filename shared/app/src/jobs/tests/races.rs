//! Consolidation when two meet: two workers, a worker and `/new`, a worker and its own death.

use serde_json::json;
use turnlock_domain::turn::{Job, Outcome};
use turnlock_queue::{NewMessage, Queue};

use super::bench::{Bench, conversation, saving, seconds};

#[tokio::test(start_paused = true)]
async fn two_workers_with_one_job_pay_once() {
    let bench = Bench::with_session(&conversation(10)).await;
    bench.script(saving("consolidate", 60, "boxes", "There are boxes."));
    bench.owe(0).await;
    bench.owe(0).await;
    bench.work(seconds(600)).await;
    assert_eq!((bench.model.requests().len(), bench.head().await.boundary), (1, 14));
    assert_eq!((bench.facts().await.len(), bench.episodes().await.len()), (1, 1));
    assert!(bench.is_drained().await);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_of_a_done_job_calls_no_model() {
    let bench = Bench::with_session(&conversation(10)).await;
    bench.owe(0).await;
    bench.work(seconds(60)).await;
    bench.owe(0).await;
    bench.work(seconds(60)).await;
    assert_eq!((bench.model.requests().len(), bench.head().await.boundary), (1, 14));
    assert!(bench.is_drained().await);
}

/// Case mem-race-new: `/new` makes a new generation while the model reads; the job of the old one writes nothing.
#[tokio::test(start_paused = true)]
async fn mem_race_new() {
    let bench = Bench::with_session(&conversation(10)).await;
    bench.script(saving("consolidate", 60, "boxes", "There are boxes."));
    bench.owe(0).await;
    tokio::join!(bench.work(seconds(300)), async {
        tokio::time::sleep(seconds(20)).await;
        bench.turn("new", Vec::new(), Outcome::Reset).await;
        bench.turn("first", conversation(1), Outcome::Replied).await;
    });
    let head = bench.head().await;
    assert_eq!((head.generation, head.boundary, head.message_count, head.claim_job), (1, 0, 2, None));
    assert!(bench.facts().await.is_empty() && bench.episodes().await.is_empty());
    assert!(bench.is_drained().await);
}

#[tokio::test(start_paused = true)]
async fn turns_go_on_while_the_model_reads() {
    let bench = Bench::with_session(&conversation(10)).await;
    bench.script(saving("consolidate", 60, "boxes", "There are boxes."));
    bench.owe(0).await;
    tokio::join!(bench.work(seconds(300)), async {
        tokio::time::sleep(seconds(20)).await;
        bench.turn("meanwhile", conversation(1), Outcome::Replied).await;
        assert_eq!(bench.head().await.message_count, 22);
    });
    assert_eq!((bench.head().await.boundary, bench.head().await.message_count), (14, 22));
}

#[tokio::test(start_paused = true)]
async fn a_dead_worker_is_replaced_on_the_same_range() {
    let bench = Bench::with_session(&conversation(10)).await;
    bench.script(saving("consolidate", 60, "boxes", "There are boxes."));
    bench.owe(0).await;
    // The pool is dropped in the middle of the call: the process is dead.
    bench.work(seconds(30)).await;
    bench.turn("meanwhile", conversation(1), Outcome::Replied).await;
    bench.work(seconds(600)).await;
    let head = bench.head().await;
    assert_eq!((bench.model.requests().len(), head.boundary, head.message_count), (2, 14, 22));
    assert_eq!((bench.facts().await.len(), bench.episodes().await.len()), (7, 1));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_job_goes_to_the_dead_letters_at_once() {
    let bench = Bench::with_session(&conversation(10)).await;
    let body = json!({ "job": "embed", "session": "telegram:1" }).to_string();
    bench.queue().send(NewMessage::standard(body)).await.expect("sent");
    bench.work(seconds(1)).await;
    assert!(bench.is_drained().await);
    assert_eq!(bench.dead_letters().waiting().await.expect("asked"), 1);
    let job = Job::Consolidate(super::bench::target(0));
    let stored = json!({ "job": "consolidate", "session": "telegram:1", "generation": 0, "from": 0,
                         "scope": "chat:telegram:1", "event_id": "telegram:1:owes" });
    assert_eq!(serde_json::to_value(&job).expect("prints"), stored, "jobs of older versions still load");
}
