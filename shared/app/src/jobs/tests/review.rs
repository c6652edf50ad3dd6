//! Memory review: facts of the last turns, once, and no boundary that moves.

use serde_json::json;
use turnlock_domain::turn::Job;
use turnlock_models::{Scripted, Wire};
use turnlock_store::reviews::ReviewClaim;

use super::bench::{Bench, conversation, saving, seconds, target};

async fn owe(bench: &Bench, from: u64) {
    bench.send(&Job::ReviewMemory(target(from))).await;
}

#[tokio::test(start_paused = true)]
async fn a_review_adds_facts_once_and_moves_no_boundary() {
    let bench = Bench::with_session(&conversation(20)).await;
    bench.script(saving("review_memory", 30, "boxes", "There are boxes."));
    owe(&bench, 36).await;
    owe(&bench, 36).await;
    bench.work(seconds(600)).await;
    owe(&bench, 36).await;
    bench.work(seconds(60)).await;
    let (facts, head) = (bench.facts().await, bench.head().await);
    assert_eq!((bench.model.requests().len(), facts.len(), head.boundary), (1, 1, 0));
    assert_eq!((facts[0].text(), facts[0].evidence().range()), ("There are boxes.", 16..38));
    let request = &bench.requests()[0];
    assert!(request.contains("b18") && !request.contains("b19") && !request.contains("b7"), "{request}");
    assert!(bench.episodes().await.is_empty());
    assert!(bench.is_drained().await);
}

#[tokio::test(start_paused = true)]
async fn a_failing_review_is_bounded_and_one_failure_is_not_the_end() {
    let bench = Bench::with_session(&conversation(4)).await;
    bench.script(json!({ "for": "review_memory", "error": "throttled" }));
    bench.script(saving("review_memory", 0, "boxes", "There are boxes."));
    owe(&bench, 6).await;
    bench.work(seconds(600)).await;
    assert_eq!((bench.model.requests().len(), bench.facts().await.len()), (2, 1));

    bench.script(json!({ "for": "review_memory", "error": "overloaded", "times": 100 }));
    owe(&bench, 4).await;
    bench.work(seconds(3_600)).await;
    assert_eq!(bench.model.requests().len(), 5);
    assert!(bench.is_drained().await);
}

#[tokio::test(start_paused = true)]
async fn a_review_of_another_generation_is_void() {
    let bench = Bench::with_session(&conversation(4)).await;
    let target = turnlock_domain::turn::JobTarget { generation: 3, ..target(6) };
    bench.send(&Job::ReviewMemory(target)).await;
    bench.work(seconds(60)).await;
    assert!(bench.model.requests().is_empty() && bench.is_drained().await);
}

#[tokio::test(start_paused = true)]
async fn another_workers_claim_is_no_failure() {
    let bench = Bench::with_session(&conversation(4)).await;
    let (job, now) = (Job::ReviewMemory(target(6)), bench.store.clock().now_ms());
    assert_eq!(bench.store.claim_review(&job.id(), "other", now, seconds(60)).await.unwrap(), ReviewClaim::Mine);
    bench.script(json!({ "for": "review_memory", "error": "throttled", "times": 2 }));
    bench.script(saving("review_memory", 0, "boxes", "There are boxes."));
    owe(&bench, 6).await;
    bench.work(seconds(3_600)).await;
    assert_eq!(
        (bench.model.requests().len(), bench.facts().await.len()),
        (3, 1),
        "the third failure would be the last"
    );
    assert!(bench.is_drained().await);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_reached_is_no_failure() {
    let bench = Bench::without_table(Scripted::new(Wire::Neutral));
    bench.script(saving("review_memory", 0, "boxes", "There are boxes."));
    owe(&bench, 6).await;
    // Three receives: after 0, 30 and 150 s.
    bench.work(seconds(300)).await;
    bench.store.create_table().await.unwrap();
    bench.seed(0, &conversation(4)).await;
    bench.work(seconds(1_800)).await;
    assert_eq!(bench.facts().await.len(), 1);
    assert!(bench.is_drained().await);
}
