use std::time::Duration;

use turnlock_store::reviews::{ReviewClaim, Reviewed};
use turnlock_store::sessions::LEASE_MARGIN;

use crate::bench::{Bench, NOW};
use crate::memory::{fact, texts};

const LEASE: Duration = Duration::from_secs(300);

#[tokio::test]
async fn a_job_that_comes_twice_is_done_once() {
    let bench = Bench::new().await;
    let claim = async |worker: &str| bench.store.claim_review("j", worker, NOW, LEASE).await.unwrap();
    assert_eq!(claim("w1").await, ReviewClaim::Mine);
    assert_eq!(claim("w2").await, ReviewClaim::HeldBy { until: NOW + LEASE + LEASE_MARGIN });
    let kept = bench.store.finish_review("j", "w1", "s", &[fact("cat", "A cat")]).await.unwrap();
    assert_eq!(kept, Reviewed::Kept);
    assert_eq!(claim("w2").await, ReviewClaim::Done);
    let late = bench.store.finish_review("j", "w2", "s", &[fact("tea", "Tea")]).await.unwrap();
    assert_eq!(late, Reviewed::Superseded);
    assert_eq!(texts(&bench, "s").await, ["A cat"]);
}

#[tokio::test]
async fn a_claim_ends_by_itself_or_is_given_back() {
    let bench = Bench::new().await;
    let over = NOW + LEASE + LEASE_MARGIN;
    bench.store.claim_review("j", "w1", NOW, LEASE).await.unwrap();
    assert_eq!(bench.other.claim_review("j", "w2", over, LEASE).await.unwrap(), ReviewClaim::Mine);
    assert_eq!(bench.store.finish_review("j", "w1", "s", &[]).await.unwrap(), Reviewed::Superseded);
    bench.store.release_review("j", "w1").await.unwrap();
    assert!(matches!(bench.store.claim_review("j", "w3", over, LEASE).await.unwrap(), ReviewClaim::HeldBy { .. }));
    bench.store.release_review("j", "w2").await.unwrap();
    assert_eq!(bench.store.claim_review("j", "w3", over, LEASE).await.unwrap(), ReviewClaim::Mine);
}

/// At the start of a process that knows that the worker died with the one before it.
#[tokio::test]
async fn a_dead_workers_claim_is_ended() {
    let bench = Bench::new().await;
    assert!(!bench.store.end_review_claim("j").await.unwrap(), "nobody is at it");
    bench.store.claim_review("j", "w1", NOW, LEASE).await.unwrap();
    assert!(bench.store.end_review_claim("j").await.unwrap());
    assert!(!bench.store.end_review_claim("j").await.unwrap());
    assert_eq!(bench.store.claim_review("j", "w2", NOW, LEASE).await.unwrap(), ReviewClaim::Mine);
    bench.store.finish_review("j", "w2", "s", &[]).await.unwrap();
    assert!(!bench.store.end_review_claim("j").await.unwrap(), "it is done");
    assert_eq!(bench.store.claim_review("j", "w3", NOW, LEASE).await.unwrap(), ReviewClaim::Done);
}

#[tokio::test]
async fn lost_answers_are_recognised() {
    let bench = Bench::new().await;
    bench.lose("UpdateItem");
    assert_eq!(bench.store.claim_review("j", "w1", NOW, LEASE).await.unwrap(), ReviewClaim::Mine);
    bench.lose("TransactWriteItems");
    assert_eq!(bench.store.finish_review("j", "w1", "s", &[fact("cat", "A cat")]).await.unwrap(), Reviewed::Kept);
    assert_eq!(bench.store.finish_review("j", "w1", "s", &[]).await.unwrap(), Reviewed::AlreadyKept);
    assert_eq!(bench.store.scope_head("s").await.unwrap().epoch, 1);
}
