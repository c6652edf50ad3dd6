use std::time::Duration;

use turnlock_domain::rate::Rate;
use turnlock_domain::time::Millis;
use turnlock_store::buckets::Taken;

use crate::bench::{Bench, NOW, event, session};

const RATE: Rate = Rate { rpm: 20, burst: 5 };
const SECOND: Duration = Duration::from_secs(1);

async fn take(bench: &Bench, id: &str, now: Millis) -> Taken {
    bench.store.take(&session(), &event(id), RATE, now).await.unwrap()
}

fn limited(seconds: u32, notice: bool) -> Taken {
    Taken::Limited { retry_after: SECOND * seconds, notice }
}

async fn burst(bench: &Bench, now: Millis) {
    for id in 0..5 {
        assert_eq!(take(bench, &format!("{}.{id}", now.0), now).await, Taken::Allowed);
    }
}

#[tokio::test]
async fn one_request_when_idle_and_two_in_a_burst() {
    let bench = Bench::new().await;
    assert_eq!(take(&bench, "a", NOW).await, Taken::Allowed);
    assert_eq!(bench.forget_requests().len(), 1);
    assert_eq!(take(&bench, "b", NOW).await, Taken::Allowed);
    assert_eq!(bench.forget_requests().len(), 2);
    assert_eq!(take(&bench, "c", NOW + 60 * SECOND).await, Taken::Allowed);
    assert_eq!(bench.forget_requests().len(), 1);
    let off = bench.store.take(&session(), &event("d"), Rate { rpm: 0, burst: 1 }, NOW).await.unwrap();
    assert_eq!((off, bench.forget_requests().len()), (Taken::Allowed, 0));
}

#[tokio::test]
async fn the_sixth_is_limited_until_its_time() {
    let bench = Bench::new().await;
    burst(&bench, NOW).await;
    assert_eq!(take(&bench, "x", NOW).await, limited(3, true));
    assert_eq!(take(&bench, "x", NOW + 3 * SECOND).await, Taken::Allowed);
}

#[tokio::test]
async fn an_event_is_counted_once() {
    let bench = Bench::new().await;
    burst(&bench, NOW).await;
    for id in 0..5 {
        assert_eq!(take(&bench, &format!("{}.{id}", NOW.0), NOW).await, Taken::AllowedBefore);
    }
    let later = NOW + 600 * SECOND;
    assert_eq!(take(&bench, &format!("{}.4", NOW.0), later).await, Taken::AllowedBefore, "until the next burst");
}

#[tokio::test]
async fn a_lost_answer_counts_once() {
    let bench = Bench::new().await;
    bench.lose("UpdateItem");
    assert_eq!(take(&bench, "a", NOW).await, Taken::AllowedBefore, "its own first sending");
    for id in ["b", "c", "d", "e"] {
        bench.lose_nth("UpdateItem", 2);
        assert_eq!(take(&bench, id, NOW).await, Taken::AllowedBefore, "{id}");
    }
    assert_eq!(take(&bench, "f", NOW).await, limited(3, true));
}

#[tokio::test]
async fn a_lost_notice_is_still_given() {
    let bench = Bench::new().await;
    burst(&bench, NOW).await;
    bench.lose_nth("UpdateItem", 2);
    assert_eq!(take(&bench, "x", NOW).await, limited(3, true));
    assert_eq!(take(&bench, "y", NOW).await, limited(3, false));
}

#[tokio::test]
async fn one_notice_a_window() {
    let bench = Bench::new().await;
    burst(&bench, NOW).await;
    assert_eq!(take(&bench, "x", NOW).await, limited(3, true));
    assert_eq!(take(&bench, "y", NOW).await, limited(3, false));
    assert_eq!(take(&bench, "x", NOW).await, limited(3, true), "its redelivery is answered as it was");
    let idle = NOW + 15 * SECOND;
    burst(&bench, idle).await;
    assert_eq!(take(&bench, "z", idle).await, limited(3, true), "the bucket was idle: another window");
}

#[tokio::test]
async fn a_window_without_rest_ends_after_a_minute() {
    let bench = Bench::new().await;
    burst(&bench, NOW).await;
    assert_eq!(take(&bench, "x", NOW).await, limited(3, true));
    for step in 1..=20 {
        let now = NOW + 3 * SECOND * step;
        assert_eq!(take(&bench, &format!("on time {step}"), now).await, Taken::Allowed);
        assert_eq!(take(&bench, &format!("too early {step}"), now).await, limited(3, step == 20));
    }
}

#[tokio::test]
async fn racing_events_get_the_places_there_are() {
    let bench = Bench::new().await;
    let mut tasks = tokio::task::JoinSet::new();
    for id in 0..12 {
        let store = if id % 2 == 0 { bench.store.clone() } else { bench.other.clone() };
        tasks.spawn(async move { store.take(&session(), &event(&id.to_string()), RATE, NOW).await.unwrap() });
    }
    let taken = tasks.join_all().await;
    let count = |wanted: fn(&Taken) -> bool| taken.iter().filter(|taken| wanted(taken)).count();
    assert_eq!(count(|taken| *taken == Taken::Allowed), 5);
    assert_eq!(count(|taken| matches!(taken, Taken::Limited { notice: true, .. })), 1);
    assert!(bench.forget_requests().len() > 12 + 4 + 1, "they did race");
}
