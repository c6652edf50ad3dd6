//! What platforms say about chats, and pressed buttons: no turn, a note in the table, one answer.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use turnlock_app::turn::Handled;
use turnlock_channels::IngressRequest;
use turnlock_config::Allow;
use turnlock_domain::envelope::{Command, Envelope};
use turnlock_domain::event::{MessageKind, OutboundEvent};
use turnlock_domain::ids::EventId;
use turnlock_embedded::EmbeddedDynamoDb;
use turnlock_queue::Queue;
use turnlock_store::Store;

use crate::admission::{FREE, deliver, ingress, update, waiting};
use crate::kit::Kit;

const OLD: i64 = -4_000_001;
const NEW: i64 = -1_001_000_000_055;
const EXPIRED: &str = "This button has expired. Please send me a message instead.";

/// What Telegram says of our membership in the private chat 7.
fn membership(id: i64, date: i64, status: &str) -> Value {
    json!({ "update_id": id, "my_chat_member": {
        "chat": { "id": 7, "type": "private" }, "from": { "id": 7, "is_bot": false, "first_name": "Ann" },
        "date": date, "new_chat_member": { "status": status, "user": { "id": 1, "is_bot": true, "first_name": "Echo" } },
    } })
}

/// A message to us in the group that moved, or a topic of it.
fn said(id: i64, chat: i64, topic: Option<i64>) -> Value {
    let mut update = update(id, "@echo_bot hello");
    let message = &mut update["message"];
    message["chat"] = json!({ "id": chat, "type": if chat == OLD { "group" } else { "supergroup" }, "title": "Lab" });
    message["entities"] = json!([{ "type": "mention", "offset": 0, "length": 9 }]);
    if let Some(topic) = topic {
        message["message_thread_id"] = json!(topic);
        message["is_topic_message"] = json!(true);
    }
    update
}

/// What Telegram says when the group becomes a supergroup: in the old one, or in the new one.
fn moved(id: i64, chat: i64) -> Value {
    let mut update = said(id, chat, None);
    let message = update["message"].as_object_mut().unwrap();
    message.remove("text");
    let (field, other) = if chat == OLD { ("migrate_to_chat_id", NEW) } else { ("migrate_from_chat_id", OLD) };
    message.insert(field.to_owned(), json!(other));
    update
}

fn tapped(id: i64, query: &str) -> Value {
    json!({ "update_id": id, "callback_query": {
        "id": query, "from": { "id": 7, "is_bot": false, "first_name": "Ann" }, "data": "ap:gone:ok",
        "message": { "message_id": 90, "date": 1_767_603_000, "chat": { "id": 7, "type": "private" } },
    } })
}

async fn gone(kit: &Kit, chat: &str) -> Option<String> {
    kit.store.chat(chat).await.unwrap().and_then(|state| state.gone)
}

/// Case tg-removed-from-group: marked by the platform's time, whatever comes twice or too late; no turn, no answer.
#[tokio::test(start_paused = true)]
async fn tg_removed_from_group() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(FREE, 100), &Allow::Only(BTreeSet::new()));
    for (id, date, status, wanted) in [
        (1, 1_767_603_600, "kicked", Some("blocked")),
        (1, 1_767_603_600, "kicked", Some("blocked")),
        (3, 1_767_603_620, "member", None),
        (2, 1_767_603_610, "kicked", None),
        (4, 1_767_603_630, "kicked", Some("blocked")),
        (3, 1_767_603_620, "member", Some("blocked")),
    ] {
        assert_eq!(deliver(&ingress, &membership(id, date, status)).await.status, 200);
        assert_eq!(gone(&kit, "telegram:7").await.as_deref(), wanted, "update {id}");
    }
    assert_eq!((kit.inbound.waiting().await.unwrap(), kit.notices().len()), (0, 0));
}

/// A message that comes back to life clears the mark with its answer.
#[tokio::test(start_paused = true)]
async fn an_answer_that_arrives_clears_the_mark() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(FREE, 100), &Allow::Everybody);
    deliver(&ingress, &membership(1, 1_767_603_600, "kicked")).await;
    deliver(&ingress, &update(2, "\u{200b}")).await;
    kit.drain(&kit.delivery()).await;
    assert_eq!(gone(&kit, "telegram:7").await, None);
}

/// Without the table nothing is noted, and the platform is asked to say it again.
#[tokio::test(start_paused = true)]
async fn news_that_cannot_be_noted_comes_again() {
    let kit = Kit::new().await;
    let database = EmbeddedDynamoDb::memory().unwrap();
    let out = Store::embedded(database.http_client(), "out", kit.clock.clone(), 1);
    let mut admission = std::sync::Arc::into_inner(kit.admission(FREE, 100)).unwrap();
    admission.store = out;
    let ingress = ingress(&kit, std::sync::Arc::new(admission), &Allow::Everybody);
    assert_eq!(deliver(&ingress, &membership(1, 1_767_603_600, "kicked")).await.status, 503);
    assert_eq!(deliver(&ingress, &moved(2, OLD)).await.status, 503);
    // Nobody knows where this belongs; what cannot have moved is taken as ever.
    assert_eq!(deliver(&ingress, &said(3, NEW, None)).await.status, 503);
    assert_eq!(deliver(&ingress, &said(4, OLD, None)).await.status, 200);
    assert_eq!(waiting(&kit.inbound).len(), 1);
}

/// Case tg-migrate-send (inbound half): whichever half of the news arrives, what is said in the new chat goes on in the old
/// session and memory, and is answered in the new chat; a topic of the new one is its own session.
#[tokio::test(start_paused = true)]
async fn tg_migrate_send() {
    for half in [OLD, NEW] {
        let kit = Kit::new().await;
        let ingress = ingress(&kit, kit.admission(FREE, 100), &Allow::Everybody);
        deliver(&ingress, &said(1, OLD, None)).await;
        for _ in 0..2 {
            assert_eq!(deliver(&ingress, &moved(2, half)).await.status, 200);
        }
        deliver(&ingress, &said(3, NEW, None)).await;
        deliver(&ingress, &said(4, NEW, Some(5))).await;
        let mut stop = said(5, NEW, None);
        stop["message"]["text"] = json!("/stop@echo_bot");
        stop["message"]["entities"] = json!([{ "type": "bot_command", "offset": 0, "length": 14 }]);
        deliver(&ingress, &stop).await;
        let first = waiting(&kit.inbound).remove(0);
        let again = kit.inbound.receive(10).unwrap();
        assert!(again.is_empty(), "the second waits behind the first: one session, one group");
        let place = |envelope: &Envelope| {
            let former = envelope.former_chat.as_ref().map(|chat| chat.as_str().to_owned());
            (envelope.event.session_key().to_string(), envelope.event.chat_id.clone(), former)
        };
        let old = || "telegram:-4000001".to_owned();
        assert_eq!(place(&first), (old(), OLD.to_string(), None));
        assert_eq!(place(&waiting(&kit.control)[0]), (old(), NEW.to_string(), Some(old())));
    }
}

/// The list may have the chat by the id that it had.
#[tokio::test(start_paused = true)]
async fn a_chat_that_moved_stays_allowed() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(FREE, 100), &Allow::Only(BTreeSet::from([OLD.to_string()])));
    deliver(&ingress, &said(1, NEW, None)).await;
    assert_eq!((kit.inbound.waiting().await.unwrap(), kit.notices().len()), (0, 1));
    deliver(&ingress, &moved(2, OLD)).await;
    deliver(&ingress, &said(3, NEW, None)).await;
    deliver(&ingress, &said(4, NEW, Some(5))).await;
    let mut places: Vec<_> = waiting(&kit.inbound).iter().map(|it| it.event.session_key().to_string()).collect();
    places.sort();
    assert_eq!(places, ["telegram:-1001000000055:5", "telegram:-4000001"]);
}

/// Cases tg-cbq-expired-loop and tg-cbq-double-answer, up to the answer: one, however often the press is delivered or
/// handled, and it names the press.
#[tokio::test(start_paused = true)]
async fn tg_cbq_expired_loop_and_tg_cbq_double_answer() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(FREE, 0), &Allow::Everybody);
    for _ in 0..3 {
        assert_eq!(deliver(&ingress, &tapped(1, "q2")).await.status, 200);
    }
    let control = kit.control(&kit.store);
    let records = kit.control.receive(10).unwrap();
    assert_eq!(records.len(), 1, "a repetition is recognised");
    for _ in 0..2 {
        assert_eq!(control.handle(&records[0]).await, Handled::Done);
    }
    let batch = kit.batch();
    assert_eq!(batch.len(), 1);
    let answer: OutboundEvent = serde_json::from_str(&batch[0].body).unwrap();
    assert_eq!((answer.event_id.as_str(), answer.message_kind), ("telegram:1:1.final", MessageKind::Notice));
    assert_eq!((answer.text().as_str(), answer.chat_id.as_str()), (EXPIRED, "7"));
    assert_eq!(answer.metadata["tap"], json!({ "query_id": "q2", "message_id": 90, "data": "ap:gone:ok" }));
    assert!(kit.store.marker(&EventId::from_stored("telegram:1:1")).await.unwrap().is_some());
    assert_eq!(kit.inbound.waiting().await.unwrap(), 0);
}

/// Who may not talk to us presses nothing either.
#[tokio::test(start_paused = true)]
async fn the_list_holds_for_buttons() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(FREE, 100), &Allow::Only(BTreeSet::from(["8".to_owned()])));
    deliver(&ingress, &tapped(1, "q2")).await;
    assert!(waiting(&kit.control).is_empty());
    assert!(kit.notices()[0].ends_with("this id: 7"));
}

#[tokio::test(start_paused = true)]
async fn a_button_of_slacks_is_answered_to_whoever_pressed_it() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(FREE, 100), &Allow::Everybody);
    let payload = json!({
        "type": "block_actions", "user": { "id": "U0USER" }, "team": { "id": "T0TEAM" }, "channel": { "id": "C0CHAN" },
        "container": { "message_ts": "1760000000.000200", "channel_id": "C0CHAN" }, "trigger_id": "1.2.3",
        "actions": [{ "action_id": "approve", "value": "ap_1", "action_ts": "1760000120.123456" }],
    });
    let body = format!("payload={}", percent_encoded(&payload.to_string()));
    let mut headers = turnlock_channels::slack::sign(&crate::admission::secret(), kit.clock.now(), body.as_bytes());
    headers.insert("content-type", "application/x-www-form-urlencoded".parse().unwrap());
    let request = IngressRequest::post("/slack/main", headers, body);
    for _ in 0..2 {
        assert_eq!(ingress.slack("main", request.clone()).await.status, 200);
    }
    let records = kit.control.receive(10).unwrap();
    let envelope: Envelope = serde_json::from_str(&records[0].body).unwrap();
    assert_eq!((records.len(), envelope.command), (1, Some(Command::Tap)));
    assert_eq!(kit.control(&kit.store).handle(&records[0]).await, Handled::Done);
    let answer: OutboundEvent = serde_json::from_str(&kit.batch()[0].body).unwrap();
    assert_eq!(answer.metadata["tap"]["user"], "U0USER");
    assert_eq!(answer.text(), EXPIRED);
}

fn percent_encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}
