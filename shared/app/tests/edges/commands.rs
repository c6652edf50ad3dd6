//! Commands that were taken: a table that is out for a moment loses none, and what a queue gives up is answered.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};
use turnlock_app::dead_letter;
use turnlock_app::send;
use turnlock_app::turn::Handled;
use turnlock_domain::envelope::Envelope;
use turnlock_domain::event::{MessageKind, OutboundEvent};
use turnlock_domain::ids::EventId;
use turnlock_domain::turn::{Failure, Outcome};
use turnlock_embedded::EmbeddedDynamoDb;

use turnlock_store::Store;

use crate::kit::Kit;

const SORRY: &str = "Sorry, something went wrong and I could not answer this message. Please send it again.";

/// A command of the chat 5, in the control queue.
async fn command(kit: &Kit, id: &str, command: &str) -> Envelope {
    let envelope: Envelope = serde_json::from_value(json!({
        "event": { "event_id": id, "event_type": "control", "channel": "telegram", "chat_id": "5",
            "timestamp": "2026-01-05T09:00:00Z" },
        "accepted_at": 1_767_603_600_000_i64, "position": "001767603600000#1", "command": command,
    }))
    .unwrap();
    send::control(&*kit.control, &envelope).await.unwrap();
    envelope
}

#[tokio::test(start_paused = true)]
async fn a_command_outlives_a_table_that_is_out_for_minutes() {
    let kit = Kit::new().await;
    let database = EmbeddedDynamoDb::memory().unwrap();
    let store = Store::embedded(database.http_client(), "later", kit.clock.clone(), 1);
    let control = kit.control(&store);
    command(&kit, "e1", "help").await;
    let (started, mut waits) = (Instant::now(), Vec::new());
    loop {
        let Some(record) = kit.control.receive(1).unwrap().pop() else {
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        waits.push(started.elapsed().as_secs());
        if waits.len() == 9 {
            store.create_table().await.unwrap();
        }
        match control.handle(&record).await {
            Handled::Done => break,
            Handled::GivenBack(_) => {}
        }
    }
    assert_eq!(waits, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
    assert_eq!(kit.notices().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_a_queue_gave_up_is_answered_and_kept() {
    let kit = Kit::new().await;
    let agent = kit.agent();
    command(&kit, "e1", "status").await;
    let record = kit.control.receive(1).unwrap().remove(0);
    for _ in 0..2 {
        // Twice is once: the queue knows the answer's id, the table the marker and the item.
        let handled = dead_letter::handle(&agent, &*kit.control, &record, Instant::now()).await;
        assert_eq!(handled, Handled::Done);
    }
    let batch = kit.batch();
    assert_eq!(batch.len(), 1);
    let answer: OutboundEvent = serde_json::from_str(&batch[0].body).unwrap();
    assert_eq!((answer.event_id.as_str(), answer.message_kind), ("e1.final", MessageKind::Error));
    assert_eq!((answer.text().as_str(), answer.chat_id.as_str()), (SORRY, "5"));
    let marker = kit.store.marker(&EventId::from_stored("e1")).await.unwrap().unwrap();
    assert_eq!(*marker.outcome(), Outcome::Failed { reason: Failure::Dead });
    let dead = kit.store.dead_items(10).await.unwrap();
    assert_eq!((dead.len(), dead[0].queue.as_str()), (1, "control"));
}

/// Its copy in the inbound queue answers for itself, under the same id.
#[tokio::test(start_paused = true)]
async fn a_given_up_reset_is_kept_and_not_answered() {
    let kit = Kit::new().await;
    let agent = kit.agent();
    command(&kit, "e1", "new").await;
    let record = kit.control.receive(1).unwrap().remove(0);
    assert_eq!(dead_letter::handle(&agent, &*kit.control, &record, Instant::now()).await, Handled::Done);
    assert!(kit.batch().is_empty());
    assert!(kit.store.marker(&EventId::from_stored("e1")).await.unwrap().is_none());
    assert_eq!(kit.store.dead_items(10).await.unwrap().len(), 1);
}

/// The copy of a text for a turn that ran: its own turn has it, so nothing is lost and nobody is alarmed.
#[tokio::test(start_paused = true)]
async fn a_given_up_copy_of_a_text_is_neither_kept_nor_answered() {
    let kit = Kit::new().await;
    command(&kit, "e1", "steer").await;
    let record = kit.control.receive(1).unwrap().remove(0);
    assert_eq!(dead_letter::handle(&kit.agent(), &*kit.control, &record, Instant::now()).await, Handled::Done);
    assert!(kit.batch().is_empty() && kit.store.dead_items(10).await.unwrap().is_empty());
    assert!(kit.store.marker(&EventId::from_stored("e1")).await.unwrap().is_none());
}
