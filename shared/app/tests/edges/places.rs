//! Chats that moved or are gone, and threads that are: what is called then, and what is not.

use std::time::Duration;

use serde_json::json;
use turnlock_domain::event::OutboundEvent;
use turnlock_store::ledger::LedgerState;

use crate::delivery::{reason, state};
use crate::kit::{Answer, Kit, event, frame, refuse, says};

/// Case tg-topic-dm-leak: the same chat without the thread, or nothing; never another audience.
#[tokio::test(start_paused = true)]
async fn tg_topic_dm_leak() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let gone = || refuse(400, "Bad Request: message thread not found", json!({}));
    let topic = |id: &str| event(json!({ "event_id": id, "chat_id": "-1001", "thread_id": "5" }));
    kit.platform.answers([gone(), Answer::Done, gone(), gone()]);
    kit.send(&[&topic("e1.final"), &topic("e2.final")]).await;
    assert_eq!(kit.deliver(&delivery).await, 0);
    let calls = kit.platform.calls();
    assert_eq!(calls.len(), 4);
    assert!(calls.iter().all(|call| call.arguments["chat_id"] == -1001));
    let threads: Vec<bool> = calls.iter().map(|call| call.arguments.get("message_thread_id").is_some()).collect();
    assert_eq!(threads, [true, false, true, false]);
    assert_eq!(state(&kit, "e1.final").await, Some(LedgerState::Sent));
    assert_eq!(state(&kit, "e2.final").await, Some(LedgerState::Failed));
}

/// Case tg-migrate-send: the alias is stored and followed, without a call to the old id.
#[tokio::test(start_paused = true)]
async fn tg_migrate_send() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let group = |id: &str| event(json!({ "event_id": id, "chat_id": "-55" }));
    let moved = json!({ "migrate_to_chat_id": -1_001_000_000_055_i64 });
    kit.platform.answers([refuse(400, "Bad Request: group chat was upgraded to a supergroup chat", moved)]);
    kit.send(&[&group("e1.final"), &group("e2.final")]).await;
    assert_eq!(kit.deliver(&delivery).await, 0);
    assert_eq!(kit.platform.chat("-1001000000055"), ["Hello.", "Hello."]);
    let chats: Vec<_> = kit.platform.calls().iter().map(|call| call.arguments["chat_id"].to_string()).collect();
    assert_eq!(chats, ["-55", "-1001000000055", "-1001000000055"]);
}

/// Case tg-403-blocked: terminal, no retry; whoever writes again is answered again. Where a webhook's replies go, nobody
/// has written, and a chat that is gone is not called.
#[tokio::test(start_paused = true)]
async fn tg_403_blocked() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    kit.platform.answers([refuse(403, "Forbidden: bot was blocked by the user", json!({}))]);
    let alert = |id: &str| event(json!({ "event_id": id, "channel": "webhook", "account": "alerts" }));
    for id in ["a1.final", "a2.final", "a3.final"] {
        kit.send(&[&alert(id)]).await;
        assert_eq!(kit.deliver(&delivery).await, 0);
        assert_eq!(reason(&kit, id).await.as_deref(), Some("chat_gone"));
    }
    assert_eq!(kit.platform.methods().len(), 1, "what answers nobody there is not even tried");
    let gone = async || kit.store.chat("telegram:77").await.unwrap().unwrap().gone;
    assert!(gone().await.is_some());
    kit.send(&[&event(json!({ "event_id": "e2.final", "chat_id": "77" }))]).await;
    assert_eq!((kit.deliver(&delivery).await, gone().await), (0, None));
    kit.send(&[&alert("a4.final")]).await;
    assert_eq!((kit.deliver(&delivery).await, kit.platform.chat("77").len()), (0, 2));
}

/// Who blocks us while a call runs that is carried out has blocked us all the same.
#[tokio::test(start_paused = true)]
async fn a_mark_that_is_newer_than_the_call_stays() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    kit.store.mark_chat_gone("telegram:5", "blocked", kit.clock.now_ms()).await.unwrap();
    kit.platform.answers([Answer::DoneAfter(Duration::from_secs(5))]);
    kit.send(&[&says("e1.final", "one")]).await;
    let blocks = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        kit.store.mark_chat_gone("telegram:5", "blocked", kit.clock.now_ms()).await.unwrap();
    };
    assert_eq!(tokio::join!(kit.deliver(&delivery), blocks).0, 0);
    assert!(kit.store.chat("telegram:5").await.unwrap().unwrap().gone.is_some());
}

/// A supergroup counts its messages anew: what an id named in the old chat is somebody else's in the new one.
#[tokio::test(start_paused = true)]
async fn no_message_of_a_chat_that_moved_is_edited_or_deleted_in_the_new_one() {
    const NEW: &str = "-1001000000055";
    let moved = || {
        refuse(
            400,
            "Bad Request: group chat was upgraded to a supergroup chat",
            json!({ "migrate_to_chat_id": NEW.parse::<i64>().unwrap() }),
        )
    };
    for known in [false, true] {
        let kit = Kit::new().await;
        let delivery = kit.delivery();
        let of = |mut event: OutboundEvent| {
            event.chat_id = "-55".to_owned();
            event
        };
        let long = format!("{}\n\n{}", "a".repeat(4000), "b".repeat(4000));
        for sequence in 1..=2 {
            kit.send(&[&of(frame(sequence, &long))]).await;
            assert_eq!(kit.deliver(&delivery).await, 0);
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        assert_eq!(kit.platform.chat("-55").len(), 2);
        kit.platform.show(NEW, 100, "theirs");
        kit.platform.show(NEW, 101, "theirs too");
        if known {
            kit.store.alias_chat("telegram:-55", &format!("telegram:{NEW}")).await.unwrap();
        } else {
            kit.platform.answers([moved()]);
        }
        for _ in 0..2 {
            kit.send(&[&of(says("e1.final", "Answer."))]).await;
            assert_eq!(kit.deliver(&delivery).await, 0);
            assert_eq!(kit.platform.chat(NEW), ["theirs", "theirs too", "Answer."]);
            tokio::time::sleep(Duration::from_secs(400)).await;
        }
        let ledger = kit.store.ledger("e1.final").await.unwrap().unwrap();
        assert_eq!(ledger.chat(), format!("telegram:{NEW}"));
        assert_eq!(ledger.state(), LedgerState::Uncertain, "half a preview stands above it");
        assert_eq!(kit.platform.methods().len(), if known { 3 } else { 4 });
    }
}
