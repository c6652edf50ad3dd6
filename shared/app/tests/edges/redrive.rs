//! What was given up is sent again: under another deduplication id, and only while a marker could tell whether it is
//! committed.

use serde_json::{Value, json};
use tokio::time::{Duration, sleep};
use turnlock_app::redrive::{NotSent, Redrive, Refusal};
use turnlock_domain::envelope::Envelope;
use turnlock_domain::ids::EventId;
use turnlock_queue::{NewMessage, Queue};
use turnlock_store::dead::DeadItem;

use crate::kit::{Answer, Kit, refuse, says};

fn redrive(kit: &Kit) -> Redrive {
    Redrive {
        store: kit.store.clone(),
        inbound: kit.inbound.clone(),
        outbound: kit.outbound.clone(),
        consolidate: kit.jobs.clone(),
        review: kit.jobs.clone(),
    }
}

fn envelope(kit: &Kit, id: &str, changes: &Value) -> String {
    let mut envelope = json!({
        "event": { "event_id": id, "event_type": "message", "channel": "telegram", "chat_id": "5",
            "content": [{ "type": "text", "text": "Hello" }], "timestamp": "2026-01-05T09:00:00Z" },
        "accepted_at": kit.clock.now_ms(), "position": "001767603600000#1",
    });
    envelope.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    envelope.to_string()
}

async fn dead(kit: &Kit, id: &str, queue: &str, body: String) {
    let item = DeadItem {
        event_id: EventId::from_stored(id),
        queue: queue.to_owned(),
        reason: "given up".to_owned(),
        body,
        at: kit.clock.now_ms(),
        receive_count: 11,
    };
    kit.store.put_dead(&item).await.unwrap();
}

async fn send(kit: &Kit) -> Vec<(String, Result<(), NotSent>)> {
    let redrive = redrive(kit);
    let items = redrive.list(100).await.unwrap();
    let sent = redrive.send(items).await.unwrap();
    sent.into_iter().map(|(item, sent)| (item.event_id.to_string(), sent)).collect()
}

/// Case sqs-dedup-requeue: within five minutes, with the id of the first sending, it would be dropped.
#[tokio::test(start_paused = true)]
async fn sqs_dedup_requeue() {
    let kit = Kit::new().await;
    let body = envelope(&kit, "telegram:b:1001", &json!({}));
    kit.inbound.send(NewMessage::fifo(&body, "telegram:5", "telegram:b:1001")).await.unwrap();
    let first = kit.inbound.receive(1).unwrap().remove(0);
    kit.inbound.delete(&first.receipt).unwrap();
    dead(&kit, "telegram:b:1001", "inbound", body).await;
    sleep(Duration::from_secs(60)).await;
    assert!(send(&kit).await[0].1.is_ok());
    let again = kit.inbound.receive(1).unwrap().remove(0);
    let envelope: Envelope = serde_json::from_str(&again.body).unwrap();
    assert_eq!((envelope.event.event_id.as_str(), envelope.redrive), ("telegram:b:1001", 1));
    assert_eq!(again.group, first.group);
    // It is gone from the list, so nothing is sent twice.
    assert!(send(&kit).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_no_marker_could_tell_about_is_refused() {
    let kit = Kit::new().await;
    let old = envelope(&kit, "e1", &json!({}));
    sleep(Duration::from_secs(34 * 24 * 3600)).await;
    dead(&kit, "e1", "inbound", old).await;
    sleep(Duration::from_secs(24 * 3600 - 1)).await;
    assert!(send(&kit).await[0].1.is_ok(), "a second before its marker may be gone");
    let old = envelope(&kit, "e2", &json!({}));
    sleep(Duration::from_secs(35 * 24 * 3600)).await;
    dead(&kit, "e2", "inbound", old).await;
    assert!(matches!(send(&kit).await[..], [(_, Err(NotSent::Refused(Refusal::TooOld)))]));
    assert_eq!(kit.store.dead_items(10).await.unwrap().len(), 1, "it stays");
}

#[tokio::test(start_paused = true)]
async fn each_goes_back_to_its_queue_and_what_cannot_says_why() {
    let kit = Kit::new().await;
    let job = json!({ "job": "consolidate", "session": "telegram:1", "generation": 0, "from": 0,
        "scope": "chat:telegram:1", "event_id": "telegram:1:owes" });
    dead(&kit, "out", "outbound", serde_json::to_string(&says("e1.final", "Hi.")).unwrap()).await;
    dead(&kit, "stop", "control", envelope(&kit, "stop", &json!({ "command": "stop" }))).await;
    dead(&kit, "new", "control", envelope(&kit, "new", &json!({ "command": "new" }))).await;
    dead(&kit, "reset", "inbound", envelope(&kit, "reset", &json!({ "command": "new" }))).await;
    dead(&kit, "odd", "unknown", "{}".to_owned()).await;
    dead(&kit, "large", "inbound", String::new()).await;
    dead(&kit, "job", "job", job.to_string()).await;
    let mut sent: Vec<(String, String)> = send(&kit)
        .await
        .into_iter()
        .map(|(id, sent)| (id, sent.map_or_else(|error| error.to_string(), |()| "sent".to_owned())))
        .collect();
    sent.sort();
    let command = "it is a command, and was answered when it was given up";
    let expected = [
        ("job", "sent"),
        ("large", "its body was too large to be kept"),
        ("new", command),
        ("odd", "it is no message of this version"),
        ("out", "sent"),
        ("reset", "sent"),
        ("stop", command),
    ];
    assert_eq!(sent, expected.map(|(id, outcome)| (id.to_owned(), outcome.to_owned())));
    let sent = [kit.batch().len(), kit.inbound.receive(10).unwrap().len(), kit.jobs.receive(10).unwrap().len()];
    assert_eq!(sent, [1, 1, 1]);
}

/// What a platform refused is kept for the operator; sent again, only what is not shown yet is tried.
#[tokio::test(start_paused = true)]
async fn of_a_reply_that_was_given_up_only_what_is_missing_is_sent_again() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let (a, b) = ("a".repeat(4096), "b".repeat(4096));
    let refused = || refuse(400, "Bad Request: something new", json!({}));
    kit.platform.answers([Answer::Done, refused(), Answer::Done]);
    kit.send(&[&says("e1.final", &format!("{a}{b}c"))]).await;
    kit.drain(&delivery).await;
    assert_eq!(kit.platform.chat("5"), [a.as_str(), "c"]);
    let dead = kit.store.dead_items(5).await.unwrap();
    let dead: Vec<_> = dead.iter().map(|dead| (dead.event_id.as_str(), &*dead.queue, &*dead.reason)).collect();
    assert_eq!(dead, [("e1.final", "outbound", "rejected")]);
    sleep(Duration::from_secs(1)).await;
    assert!(send(&kit).await[0].1.is_ok());
    kit.drain(&delivery).await;
    assert_eq!(kit.platform.chat("5"), [a.as_str(), "c", b.as_str()]);
    assert!(kit.store.dead_items(5).await.unwrap().is_empty());
    let ledger = kit.store.ledger("e1.final").await.unwrap().unwrap();
    assert_eq!(ledger.state(), turnlock_store::ledger::LedgerState::Sent);
}
