use std::time::Duration;

use turnlock_domain::event::ContentBlock;
use turnlock_store::albums::{Closed, Gathered, MAX_PART, MAX_PARTS, Part};
use turnlock_store::keys;

use crate::bench::{Bench, NOW, event};
use crate::golden;

const QUIET: Duration = Duration::from_millis(1500);

fn part(id: &str, number: i64) -> Part {
    Part { event: event(id), number, content: vec![ContentBlock::text(id)], addressed: true }
}

fn texts(closed: Closed) -> Vec<String> {
    let Closed::Whole(parts) = closed else { panic!("{closed:?}") };
    parts.into_iter().flatten().map(|block| block.text).collect()
}

/// Parts come in any order, and some twice; they are read in the order in which they were sent.
#[tokio::test]
async fn parts_are_gathered_once_and_in_order() {
    let bench = Bench::new().await;
    let album = event("a");
    let gather = async |part: &Part| bench.store.gather(&album, part, NOW).await.unwrap();
    for (id, number) in [("p10", 10), ("p9", 9), ("p10", 10), ("p11", 11)] {
        assert_eq!(gather(&part(id, number)).await, Gathered::Kept, "{id}");
    }
    assert_eq!(texts(bench.store.close_album(&album, QUIET, NOW + QUIET).await.unwrap()), ["p9", "p10", "p11"]);
    assert_eq!(gather(&part("p10", 10)).await, Gathered::Taken);
    assert_eq!(gather(&part("p12", 12)).await, Gathered::Late);
    let again = bench.other.close_album(&album, QUIET, NOW + QUIET).await.unwrap();
    assert_eq!(texts(again), ["p9", "p10", "p11"], "what is closed stays as it is");
}

#[tokio::test]
async fn an_album_is_closed_once_it_was_quiet() {
    let bench = Bench::new().await;
    let album = event("a");
    let close =
        async |after: u64| bench.store.close_album(&album, QUIET, NOW + Duration::from_millis(after)).await.unwrap();
    assert_eq!(close(0).await, Closed::Unknown);
    bench.store.gather(&album, &part("p1", 1), NOW).await.unwrap();
    assert_eq!(close(600).await, Closed::NotQuiet(Duration::from_millis(900)));
    bench.store.gather(&album, &part("p2", 2), NOW + Duration::from_secs(1)).await.unwrap();
    // A copy of what is there already is no news.
    bench.store.gather(&album, &part("p1", 1), NOW + Duration::from_secs(2)).await.unwrap();
    assert_eq!(close(1500).await, Closed::NotQuiet(Duration::from_secs(1)));
    assert_eq!(texts(close(2500).await), ["p1", "p2"]);
}

#[tokio::test]
async fn a_lost_answer_neither_doubles_a_part_nor_loses_the_album() {
    let bench = Bench::new().await;
    let album = event("a");
    bench.lose("UpdateItem");
    assert_eq!(bench.store.gather(&album, &part("p1", 1), NOW).await.unwrap(), Gathered::Kept);
    bench.lose("UpdateItem");
    assert_eq!(texts(bench.store.close_album(&album, QUIET, NOW + QUIET).await.unwrap()), ["p1"]);
}

#[tokio::test]
async fn an_album_has_so_many_parts_of_so_many_bytes() {
    let bench = Bench::new().await;
    let album = event("a");
    let large = Part { content: vec![ContentBlock::text("x".repeat(MAX_PART))], ..part("large", 0) };
    assert_eq!(bench.store.gather(&album, &large, NOW).await.unwrap(), Gathered::NoRoom);
    let text = "x".repeat(MAX_PART - 100);
    for number in 0..MAX_PARTS {
        let (id, number) = (format!("p{number}"), i64::try_from(number).unwrap());
        let part = Part { content: vec![ContentBlock::text(&text)], ..part(&id, number) };
        assert_eq!(bench.store.gather(&album, &part, NOW).await.unwrap(), Gathered::Kept, "{id}");
    }
    assert_eq!(bench.store.gather(&album, &part("more", 99), NOW).await.unwrap(), Gathered::NoRoom);
    assert_eq!(bench.store.gather(&album, &part("p3", 3), NOW).await.unwrap(), Gathered::Kept, "it is there already");
}

/// What was said to others goes soon, what a turn may need stays as long as its marker.
#[tokio::test]
async fn the_addressed_part_decides_how_long_it_is_kept() {
    let bench = Bench::new().await;
    let album = event("a");
    let expires = async || bench.item(keys::album(&album)).await.unwrap()["expires_at"].as_i64().unwrap();
    let others = |id, number| Part { addressed: false, ..part(id, number) };
    bench.store.gather(&album, &others("p1", 1), NOW).await.unwrap();
    let day = NOW.0 / 1000 + 24 * 3600;
    assert_eq!(expires().await, day);
    bench.store.gather(&album, &part("p2", 2), NOW).await.unwrap();
    assert_eq!(expires().await, day + 34 * 24 * 3600);
    bench.store.gather(&album, &others("p3", 3), NOW).await.unwrap();
    assert_eq!(expires().await, day + 34 * 24 * 3600);
}

#[tokio::test]
async fn golden() {
    let bench = Bench::new().await;
    let album = event("telegram:1:album:5:9001");
    bench.store.gather(&album, &part("telegram:1:2", 102), NOW).await.unwrap();
    bench.store.close_album(&album, QUIET, NOW + QUIET).await.unwrap();
    golden::is_written(&bench, "album", keys::album(&album)).await;
    let bench = golden::with("album").await;
    assert_eq!(texts(bench.store.close_album(&album, QUIET, NOW).await.unwrap()), ["telegram:1:2"]);
}
