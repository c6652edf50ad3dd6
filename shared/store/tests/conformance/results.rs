use turnlock_domain::session::SessionKey;
use turnlock_store::results::{KEPT_BYTES, KeptResult};
use turnlock_store::{MARKER_LIFETIME, keys};

use crate::bench::{Bench, session};
use crate::golden;

const KEY: &str = "telegram:1:2:1:0";

fn kept(text: &str) -> Option<KeptResult> {
    Some(KeptResult { text: text.to_owned(), characters: text.chars().count() })
}

#[tokio::test]
async fn what_is_kept_is_read_by_its_own_session_alone() {
    let bench = Bench::new().await;
    bench.store.keep_result(&session(), KEY, "a long result, 日本語").await.unwrap();
    assert_eq!(bench.store.kept_result(&session(), KEY).await.unwrap(), kept("a long result, 日本語"));
    let other = SessionKey::from_text("telegram:666");
    for (session, key) in [(&other, KEY), (&session(), "telegram:1:2:1"), (&session(), "telegram:1:2:1:0#000")] {
        assert_eq!(bench.store.kept_result(session, key).await.unwrap(), None, "{session} {key}");
    }
}

#[tokio::test]
async fn a_repetition_takes_the_place_of_what_was_kept() {
    let bench = Bench::new().await;
    let long = "語".repeat(KEPT_BYTES / 4);
    bench.store.keep_result(&session(), KEY, &long).await.unwrap();
    assert_eq!(bench.store.kept_result(&session(), KEY).await.unwrap(), kept(&long));
    bench.store.keep_result(&session(), KEY, "short").await.unwrap();
    assert_eq!(bench.store.kept_result(&session(), KEY).await.unwrap(), kept("short"));
}

#[tokio::test]
async fn more_than_fits_is_left_out_and_counted() {
    let bench = Bench::new().await;
    bench.store.keep_result(&session(), KEY, &"x".repeat(KEPT_BYTES + 7)).await.unwrap();
    let read = bench.store.kept_result(&session(), KEY).await.unwrap().unwrap();
    assert_eq!((read.text.len(), read.characters), (KEPT_BYTES, KEPT_BYTES + 7));
}

#[tokio::test(start_paused = true)]
async fn a_result_ends_with_its_lifetime() {
    let bench = Bench::new().await;
    bench.store.keep_result(&session(), KEY, "text").await.unwrap();
    tokio::time::advance(MARKER_LIFETIME).await;
    assert_eq!(bench.store.kept_result(&session(), KEY).await.unwrap(), None);
}

#[tokio::test]
async fn golden_result() {
    let bench = Bench::new().await;
    bench.store.keep_result(&session(), KEY, "what was found").await.unwrap();
    golden::is_written(&bench, "result", keys::result(&session(), KEY, 0)).await;
    let bench = golden::with("result").await;
    assert_eq!(bench.store.kept_result(&session(), KEY).await.unwrap(), kept("what was found"));
}
