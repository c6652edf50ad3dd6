use std::time::Duration;

use turnlock_store::MARKER_LIFETIME;
use turnlock_store::dead::{DeadItem, DeadPut, MAX_BODY_BYTES};

use crate::bench::{Bench, NOW, event};

fn dead(id: &str, after: u64) -> DeadItem {
    DeadItem {
        event_id: event(id),
        queue: "inbound".to_owned(),
        reason: "too_many_receives".to_owned(),
        body: "{}".to_owned(),
        at: NOW + Duration::from_secs(after),
        receive_count: 1000,
    }
}

#[tokio::test]
async fn an_event_is_kept_once_and_listed_by_time() {
    let bench = Bench::new().await;
    assert_eq!(bench.store.put_dead(&dead("a", 1)).await.unwrap(), DeadPut::Kept);
    assert_eq!(bench.store.put_dead(&dead("b", 2)).await.unwrap(), DeadPut::Kept);
    assert_eq!(bench.store.put_dead(&dead("a", 3)).await.unwrap(), DeadPut::AlreadyThere);
    assert_eq!(bench.store.dead_item(&event("a")).await.unwrap(), Some(dead("a", 1)));
    let listed: Vec<_> = bench.store.dead_items(10).await.unwrap();
    assert_eq!(listed.iter().map(|item| item.event_id.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    assert!(listed.iter().all(|item| item.body.is_empty()));
    assert_eq!(bench.store.dead_items(1).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_was_sent_again_may_die_again() {
    let bench = Bench::new().await;
    bench.store.put_dead(&dead("a", 1)).await.unwrap();
    bench.store.remove_dead(&dead("a", 1)).await.unwrap();
    bench.store.remove_dead(&dead("a", 1)).await.unwrap();
    assert_eq!(bench.store.dead_item(&event("a")).await.unwrap(), None);
    assert!(bench.store.dead_items(10).await.unwrap().is_empty());
    assert_eq!(bench.store.put_dead(&dead("a", 9)).await.unwrap(), DeadPut::Kept);
}

#[tokio::test]
async fn a_lost_answer_keeps_one() {
    let bench = Bench::new().await;
    bench.lose("TransactWriteItems");
    assert_eq!(bench.store.put_dead(&dead("a", 1)).await.unwrap(), DeadPut::Kept);
    assert_eq!(bench.store.dead_items(10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_body_that_fits_no_item_is_left_out() {
    let bench = Bench::new().await;
    let large = DeadItem { body: "x".repeat(MAX_BODY_BYTES + 1), ..dead("a", 1) };
    assert_eq!(bench.store.put_dead(&large).await.unwrap(), DeadPut::Kept);
    assert_eq!(bench.store.dead_item(&event("a")).await.unwrap().unwrap().body, "");
    let fits = DeadItem { body: "x".repeat(MAX_BODY_BYTES), ..dead("b", 1) };
    assert_eq!(bench.store.put_dead(&fits).await.unwrap(), DeadPut::Kept);
}

#[tokio::test]
async fn what_is_over_is_not_there() {
    let bench = Bench::new().await;
    let old = DeadItem { at: NOW - MARKER_LIFETIME, ..dead("a", 0) };
    bench.store.put_dead(&old).await.unwrap();
    assert_eq!(bench.store.dead_item(&event("a")).await.unwrap(), None);
    assert!(bench.store.dead_items(10).await.unwrap().is_empty());
    assert_eq!(bench.store.put_dead(&dead("a", 0)).await.unwrap(), DeadPut::Kept);
}
