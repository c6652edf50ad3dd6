use std::time::Duration;

use turnlock_store::chats::Slot;
use turnlock_store::keys;

use crate::bench::{Bench, NOW};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_slot_is_taken_once() {
    let bench = Bench::new().await;
    assert_eq!(bench.store.reserve_slot("c", NOW, SECOND).await.unwrap(), Slot::Free);
    assert_eq!(bench.other.reserve_slot("c", NOW, SECOND).await.unwrap(), Slot::Wait(NOW + SECOND));
    assert_eq!(bench.other.reserve_slot("c", NOW + SECOND, SECOND).await.unwrap(), Slot::Free);
    assert_eq!(bench.other.reserve_slot("d", NOW, SECOND).await.unwrap(), Slot::Free, "chats are apart");
}

/// A chat that only ever got frames ends some days after the last; a mark, and where a chat went, stay.
#[tokio::test(start_paused = true)]
async fn what_only_frames_left_ends() {
    let bench = Bench::new().await;
    let ends = async |chat: &str| bench.item(keys::chat(chat)).await.unwrap().get(keys::TTL).is_some();
    for chat in ["frames", "gone", "moved"] {
        assert_eq!(bench.store.reserve_slot(chat, NOW, SECOND).await.unwrap(), Slot::Free);
        assert!(ends(chat).await);
    }
    bench.store.mark_chat_gone("gone", "blocked", NOW).await.unwrap();
    bench.store.alias_chat("moved", "there").await.unwrap();
    for chat in ["moved", "there"] {
        assert_eq!(bench.store.reserve_slot(chat, NOW + 2 * SECOND, SECOND).await.unwrap(), Slot::Free);
        assert!(!ends(chat).await);
    }
    assert!(!ends("gone").await);
    tokio::time::advance(8 * 24 * 3600 * SECOND).await;
    assert_eq!(bench.store.chat("frames").await.unwrap(), None);
    assert!(bench.store.chat("gone").await.unwrap().unwrap().gone.is_some());
}

#[tokio::test]
async fn a_lost_answer_does_not_cost_the_slot() {
    let bench = Bench::new().await;
    bench.lose("UpdateItem");
    assert_eq!(bench.store.reserve_slot("c", NOW, SECOND).await.unwrap(), Slot::Free);
}

#[tokio::test]
async fn a_block_only_grows() {
    let bench = Bench::new().await;
    bench.store.block_chat_until("c", NOW + 41 * SECOND).await.unwrap();
    bench.store.block_chat_until("c", NOW + SECOND).await.unwrap();
    assert_eq!(bench.store.reserve_slot("c", NOW, SECOND).await.unwrap(), Slot::Wait(NOW + 41 * SECOND));
}

#[tokio::test]
async fn a_late_refusal_does_not_undo_a_return() {
    let bench = Bench::new().await;
    bench.store.mark_chat_gone("c", "blocked", NOW).await.unwrap();
    assert_eq!(bench.store.reserve_slot("c", NOW, SECOND).await.unwrap(), Slot::Gone("blocked".to_owned()));
    bench.store.clear_chat_gone("c", NOW + 2 * SECOND).await.unwrap();
    bench.store.mark_chat_gone("c", "blocked", NOW + SECOND).await.unwrap();
    assert_eq!(bench.store.chat("c").await.unwrap().unwrap().gone, None);
    bench.store.mark_chat_gone("c", "blocked", NOW + 3 * SECOND).await.unwrap();
    assert_eq!(bench.store.chat("c").await.unwrap().unwrap().gone.as_deref(), Some("blocked"));
}

#[tokio::test]
async fn a_chat_that_moved_says_where_and_whence() {
    let bench = Bench::new().await;
    assert_eq!(bench.store.chat("telegram:-5").await.unwrap(), None);
    bench.store.alias_chat("telegram:-5", "telegram:-1005").await.unwrap();
    bench.store.alias_chat("telegram:-1005", "telegram:-1005").await.unwrap();
    let alias = bench.store.chat("telegram:-5").await.unwrap().unwrap().alias;
    assert_eq!(alias.as_deref(), Some("telegram:-1005"));
    let there = bench.store.chat("telegram:-1005").await.unwrap().unwrap();
    assert_eq!((there.former.as_deref(), there.alias), (Some("telegram:-5"), None), "no alias of itself");
}

/// Both changes carry the platform's time: in whatever order they arrive, the later one counts, and a tie is a return.
#[tokio::test]
async fn leaving_and_returning_may_arrive_in_any_order() {
    let bench = Bench::new().await;
    let gone = async |chat: &str| bench.store.chat(chat).await.unwrap().and_then(|state| state.gone);
    bench.store.mark_chat_gone("c", "kicked", NOW + 2 * SECOND).await.unwrap();
    bench.store.clear_chat_gone("c", NOW + SECOND).await.unwrap();
    assert_eq!(gone("c").await.as_deref(), Some("kicked"));
    bench.store.mark_chat_gone("c", "left", NOW).await.unwrap();
    bench.store.clear_chat_gone("c", NOW + SECOND).await.unwrap();
    assert_eq!(gone("c").await.as_deref(), Some("kicked"), "an older mark does not make the newer one younger");
    for _ in 0..2 {
        bench.store.clear_chat_gone("c", NOW + 2 * SECOND).await.unwrap();
        bench.store.mark_chat_gone("c", "kicked", NOW + 2 * SECOND).await.unwrap();
        assert_eq!(gone("c").await, None);
    }
}
