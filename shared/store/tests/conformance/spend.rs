use std::time::Duration;

use turnlock_store::keys;
use turnlock_store::spend::SHARDS;

use crate::bench::{Bench, NOW};

const SECOND: Duration = Duration::from_secs(1);
/// The date of [`NOW`], UTC.
const TODAY: &str = "2025-10-09";

/// What the items of a day say together.
async fn counted(bench: &Bench, date: &str) -> u64 {
    let mut sum = 0;
    for shard in 0..SHARDS {
        let item = bench.item(keys::spent(date, shard)).await;
        sum += item.map_or(0, |item| item["cost"].as_u64().unwrap());
    }
    sum
}

#[tokio::test(start_paused = true)]
async fn what_a_day_costs_is_the_sum_of_what_every_worker_added() {
    let bench = Bench::new().await;
    for cost in 1..=20 {
        bench.store.add_spent(cost).await.unwrap();
        bench.other.add_spent(1000).await.unwrap();
    }
    assert_eq!(bench.store.spent_today().await.unwrap(), 20_210);
    assert_eq!(counted(&bench, TODAY).await, 20_210);
}

/// One request to add, one to read, and none for ten seconds.
#[tokio::test(start_paused = true)]
async fn a_process_reads_every_ten_seconds_and_knows_its_own_at_once() {
    let bench = Bench::new().await;
    assert_eq!(bench.store.spent_today().await.unwrap(), 0);
    assert_eq!(bench.forget_requests(), ["BatchGetItem"]);
    bench.store.add_spent(5).await.unwrap();
    assert_eq!(bench.forget_requests(), ["UpdateItem"]);
    bench.other.add_spent(70).await.unwrap();
    bench.forget_requests();
    tokio::time::advance(9 * SECOND).await;
    assert_eq!(bench.store.spent_today().await.unwrap(), 5);
    assert!(bench.forget_requests().is_empty());
    tokio::time::advance(SECOND).await;
    assert_eq!(bench.store.spent_today().await.unwrap(), 75);
    assert_eq!(bench.forget_requests(), ["BatchGetItem"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_day_begins_with_nothing() {
    let bench = Bench::new().await;
    bench.store.add_spent(5).await.unwrap();
    assert_eq!(bench.store.spent_today().await.unwrap(), 5);
    // NOW is 08:53:20.
    tokio::time::advance(54_400 * SECOND).await;
    assert_eq!(bench.store.spent_today().await.unwrap(), 0);
    bench.store.add_spent(7).await.unwrap();
    assert_eq!(bench.store.spent_today().await.unwrap(), 7);
    assert_eq!((counted(&bench, TODAY).await, counted(&bench, "2025-10-10").await), (5, 7));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_counts_once() {
    let bench = Bench::new().await;
    bench.lose("UpdateItem");
    bench.store.add_spent(5).await.unwrap();
    assert_eq!(bench.forget_requests(), ["UpdateItem", "UpdateItem"]);
    assert_eq!((bench.store.spent_today().await.unwrap(), counted(&bench, TODAY).await), (5, 5));
}

#[tokio::test(start_paused = true)]
async fn a_day_is_kept_for_forty_days() {
    let bench = Bench::new().await;
    bench.store.add_spent(5).await.unwrap();
    let mut kept = Vec::new();
    for shard in 0..SHARDS {
        kept.extend(bench.item(keys::spent(TODAY, shard)).await);
    }
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0]["expires_at"], NOW.0 / 1000 + 40 * 86_400);
}

/// Version 1's items add up, and one of a later version does no harm.
#[tokio::test(start_paused = true)]
async fn golden_spent() {
    let bench = crate::golden::with("spent").await;
    bench.put(&serde_json::json!({"pk": format!("D#{TODAY}#7"), "sk": "SPENT", "cost": 30, "more": "later"})).await;
    assert_eq!(bench.store.spent_today().await.unwrap(), 1_234_597);
    bench.store.add_spent(3).await.unwrap();
    assert_eq!(counted(&bench, TODAY).await, 1_234_600);
}
