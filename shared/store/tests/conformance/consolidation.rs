use std::time::Duration;

use serde_json::{Value, json};
use turnlock_store::StoreError;
use turnlock_store::consolidation::{Claim, ClaimStart, FailureNoted, Finished, TargetFixed};
use turnlock_store::keys;
use turnlock_store::memory::{Episode, Evidence, Fact};
use turnlock_store::sessions::LEASE_MARGIN;

use crate::bench::{Bench, NOW, event, session};
use crate::memory::{fact, texts};

const LEASE: Duration = Duration::from_secs(300);
const JOB: &str = "consolidate:telegram:1000001:0:0";

fn claim(worker: &str) -> Claim {
    Claim { session: session(), generation: 0, from: 0, job: JOB.to_owned(), worker: worker.to_owned() }
}

/// A head as the commit that owed the job left it.
async fn bench() -> Bench {
    let bench = Bench::new().await;
    bench.put(&head(json!({"claim_job": JOB, "claim_until": NOW.0 + 60_000}))).await;
    bench
}

fn head(more: Value) -> Value {
    let (pk, sk) = keys::head(&session());
    let mut head =
        json!({"pk": pk, "sk": sk, "layout": 1, "fence": 7, "generation": 0, "message_count": 60, "boundary": 0});
    head.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    head
}

async fn change(bench: &Bench, more: Value) {
    let mut head = bench.item(keys::head(&session())).await.unwrap();
    head.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    bench.put(&head).await;
}

async fn boundary(bench: &Bench) -> u64 {
    bench.store.head(&session()).await.unwrap().unwrap().boundary
}

fn episode(to: u64) -> Episode {
    let evidence = Evidence::new(session(), 0, 0..to, vec![event("telegram:1:2")], "scripted", NOW).unwrap();
    Episode::new("They talked about a cat.", evidence).unwrap()
}

async fn start(bench: &Bench, worker: &str) -> Option<Option<u64>> {
    match bench.store.start_consolidation(&claim(worker), NOW, LEASE).await.unwrap() {
        ClaimStart::Mine { to, head } => {
            assert_eq!((head.message_count, head.claim_worker.as_deref()), (60, Some(worker)));
            Some(to)
        }
        ClaimStart::Superseded | ClaimStart::HeldBy { .. } => None,
    }
}

async fn finish(bench: &Bench, worker: &str, facts: &[Fact]) -> Finished {
    bench.store.finish_consolidation(&claim(worker), "chat:1", &episode(40), facts).await.unwrap()
}

#[tokio::test]
async fn the_boundary_moves_over_what_was_kept() {
    let bench = bench().await;
    assert_eq!(start(&bench, "w1").await, Some(None));
    assert_eq!(bench.store.fix_consolidation_target(&claim("w1"), 40).await.unwrap(), TargetFixed::Fixed(40));
    assert_eq!(finish(&bench, "w1", &[fact("cat", "A cat")]).await, Finished::Moved);
    let head = bench.item(keys::head(&session())).await.unwrap();
    assert_eq!(head["boundary"], 40);
    assert_eq!((head.get("claim_job"), head.get("claim_worker"), head.get("claim_to")), (None, None, None));
    assert_eq!(bench.store.scope_head("chat:1").await.unwrap().epoch, 1);
    assert_eq!(texts(&bench, "chat:1").await, ["A cat"]);
    assert_eq!(bench.store.episodes("chat:1", 5).await.unwrap(), [episode(40)]);
    assert_eq!(start(&bench, "w2").await, None, "a second delivery of the job finds nothing to do");
}

#[tokio::test]
async fn a_second_worker_waits_for_the_claim_to_end() {
    let bench = bench().await;
    assert_eq!(start(&bench, "w1").await, Some(None));
    let second = bench.other.start_consolidation(&claim("w2"), NOW, LEASE).await.unwrap();
    assert!(matches!(second, ClaimStart::HeldBy { until } if until == NOW + LEASE + LEASE_MARGIN), "{second:?}");
    let over = NOW + LEASE + LEASE_MARGIN;
    let second = bench.other.start_consolidation(&claim("w2"), over, LEASE).await.unwrap();
    assert!(matches!(second, ClaimStart::Mine { .. }), "{second:?}");
    assert_eq!(finish(&bench, "w1", &[]).await, Finished::Superseded, "the first one wakes");
    assert_eq!(bench.store.fix_consolidation_target(&claim("w1"), 40).await.unwrap(), TargetFixed::Lost);
    assert_eq!(bench.store.fail_consolidation(&claim("w1")).await.unwrap(), FailureNoted::NotMine);
    assert_eq!(boundary(&bench).await, 0);
    assert_eq!(finish(&bench, "w2", &[]).await, Finished::Moved);
}

/// At the start of a process that knows that the worker died with the one before it.
#[tokio::test]
async fn a_dead_workers_claim_is_ended_and_its_range_stays() {
    let bench = bench().await;
    assert!(!bench.store.end_consolidation_claim(&session()).await.unwrap(), "nobody is at it");
    start(&bench, "w1").await;
    bench.store.fix_consolidation_target(&claim("w1"), 40).await.unwrap();
    assert!(bench.store.end_consolidation_claim(&session()).await.unwrap());
    assert!(!bench.store.end_consolidation_claim(&session()).await.unwrap());
    assert_eq!(start(&bench, "w2").await, Some(Some(40)));
    assert_eq!(finish(&bench, "w1", &[]).await, Finished::Superseded);
    assert_eq!(finish(&bench, "w2", &[]).await, Finished::Moved);
    assert!(!bench.store.end_consolidation_claim(&session()).await.unwrap(), "nothing is left of the claim");
}

/// Case mem-interrupted: tries that die leave no trace but the range they fixed, and the last one works on the same.
#[tokio::test]
async fn mem_interrupted() {
    let bench = bench().await;
    start(&bench, "w1").await;
    bench.store.fix_consolidation_target(&claim("w1"), 40).await.unwrap();
    assert_eq!(bench.store.fail_consolidation(&claim("w1")).await.unwrap(), FailureNoted::Counted(1));
    assert_eq!(start(&bench, "w2").await, Some(Some(40)));
    assert_eq!(bench.store.fix_consolidation_target(&claim("w2"), 50).await.unwrap(), TargetFixed::Fixed(40));
    assert_eq!(bench.store.fail_consolidation(&claim("w2")).await.unwrap(), FailureNoted::Counted(2));
    let head = bench.store.head(&session()).await.unwrap().unwrap();
    assert_eq!((head.boundary, head.claim_failures, head.claim_failed_count), (0, 2, Some(60)));
    assert!(bench.store.episodes("chat:1", 5).await.unwrap().is_empty());
    assert_eq!(bench.store.scope_head("chat:1").await.unwrap().epoch, 0);
    assert_eq!(start(&bench, "w3").await, Some(Some(40)));
    assert_eq!(finish(&bench, "w3", &[fact("cat", "A cat")]).await, Finished::Moved);
    assert_eq!(bench.store.head(&session()).await.unwrap().unwrap().claim_failures, 0);
    assert_eq!(bench.store.episodes("chat:1", 5).await.unwrap().len(), 1);
}

/// Case mem-race-new: a reset while a consolidation runs; the old job is refused, whatever the new boundary is.
#[tokio::test]
async fn mem_race_new() {
    let bench = bench().await;
    start(&bench, "w1").await;
    change(&bench, json!({"generation": 1, "boundary": 0, "message_count": 2})).await;
    assert_eq!(finish(&bench, "w1", &[fact("cat", "A cat")]).await, Finished::Superseded);
    assert_eq!(boundary(&bench).await, 0);
    assert!(texts(&bench, "chat:1").await.is_empty());
    assert_eq!(start(&bench, "w2").await, None);
}

#[tokio::test]
async fn another_job_and_another_boundary_supersede() {
    let superseded = async |more: Value| {
        let bench = Bench::new().await;
        bench.put(&head(more)).await;
        let started = bench.store.start_consolidation(&claim("w1"), NOW, LEASE).await.unwrap();
        matches!(started, ClaimStart::Superseded)
    };
    assert!(superseded(json!({"boundary": 40})).await);
    assert!(superseded(json!({"claim_job": "another", "claim_until": NOW.0 + 1})).await);
    assert!(superseded(json!({"generation": 1})).await);
    assert!(!superseded(json!({})).await, "a claim that ended needs no other");
    let empty = Bench::new().await;
    let started = empty.store.start_consolidation(&claim("w1"), NOW, LEASE).await.unwrap();
    assert!(matches!(started, ClaimStart::Superseded), "no session");
}

#[tokio::test]
async fn the_boundary_goes_no_further_than_the_messages_and_the_fixed_range() {
    let bench = bench().await;
    start(&bench, "w1").await;
    let far = bench.store.finish_consolidation(&claim("w1"), "chat:1", &episode(61), &[]).await.unwrap();
    assert_eq!(far, Finished::Superseded);
    bench.store.fix_consolidation_target(&claim("w1"), 30).await.unwrap();
    assert_eq!(finish(&bench, "w1", &[]).await, Finished::Superseded, "30 is fixed, 40 was not asked for");
    let other = Claim { from: 10, ..claim("w1") };
    let refused = bench.store.finish_consolidation(&other, "chat:1", &episode(40), &[]).await.unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused:?}");
    assert_eq!(boundary(&bench).await, 0);
}

#[tokio::test]
async fn lost_answers_are_recognised() {
    let bench = bench().await;
    bench.lose("UpdateItem");
    assert_eq!(start(&bench, "w1").await, Some(None));
    bench.lose("UpdateItem");
    assert_eq!(bench.store.fail_consolidation(&claim("w1")).await.unwrap(), FailureNoted::Counted(1));
    start(&bench, "w2").await;
    bench.lose("UpdateItem");
    assert_eq!(bench.store.fix_consolidation_target(&claim("w2"), 40).await.unwrap(), TargetFixed::Fixed(40));
    bench.lose("TransactWriteItems");
    assert_eq!(finish(&bench, "w2", &[fact("cat", "A cat")]).await, Finished::Moved);
    assert_eq!(bench.store.scope_head("chat:1").await.unwrap().epoch, 1);
    // Later than DynamoDB remembers the token, or with other facts: the old image decides.
    assert_eq!(finish(&bench, "w2", &[fact("tea", "Tea")]).await, Finished::AlreadyMoved);
    assert_eq!(finish(&bench, "w3", &[fact("tea", "Tea")]).await, Finished::Superseded);
    assert_eq!(texts(&bench, "chat:1").await, ["A cat"]);
}

/// A turn's commit and a consolidation write the same head; neither undoes the other.
#[tokio::test]
async fn a_commit_meanwhile_changes_nothing_of_the_claim() {
    let bench = bench().await;
    start(&bench, "w1").await;
    change(&bench, json!({"message_count": 62, "fence": 8})).await;
    assert_eq!(finish(&bench, "w1", &[]).await, Finished::Moved);
    let head = bench.store.head(&session()).await.unwrap().unwrap();
    assert_eq!((head.message_count, head.fence, head.boundary), (62, 8, 40));
}
