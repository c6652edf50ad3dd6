//! Delivery: what readers see, what the ledger says, and what waits.

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::time::Instant;
use turnlock_app::deliver::observers::{ItemObserver, LogObserver, Observer, ObserverError};
use turnlock_app::words::Language;
use turnlock_domain::event::{Channel, OutboundEvent};
use turnlock_domain::ids::EventId;
use turnlock_queue::{NewMessage, Queue};
use turnlock_store::ledger::LedgerState;

use crate::kit::{Answer, Kit, event, frame, refuse, says};

pub(crate) async fn state(kit: &Kit, event: &str) -> Option<LedgerState> {
    kit.store.ledger(event).await.unwrap().map(|ledger| ledger.state())
}

pub(crate) async fn reason(kit: &Kit, event: &str) -> Option<String> {
    let ledger = kit.store.ledger(event).await.unwrap()?;
    ledger.parts().iter().find_map(|part| part.reason().map(str::to_owned))
}

#[tokio::test(start_paused = true)]
async fn a_final_is_shown_once_and_recorded_with_its_message() {
    let kit = Kit::new().await;
    kit.send(&[&says("e1.final", "Hello.")]).await;
    assert_eq!(kit.deliver(&kit.delivery()).await, 0);
    assert_eq!(kit.platform.chat("5"), ["Hello."]);
    let ledger = kit.store.ledger("e1.final").await.unwrap().unwrap();
    assert_eq!((ledger.state(), ledger.parts()[0].message_ids()), (LedgerState::Sent, &["100".to_owned()][..]));
}

/// Case dl-identity-changes: one id through all paths; equal texts of different turns are two messages.
#[tokio::test(start_paused = true)]
async fn dl_identity_changes() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    kit.send(&[&says("e1.final", "Yes."), &says("e2.final", "Yes.")]).await;
    kit.deliver(&delivery).await;
    assert_eq!(kit.platform.chat("5"), ["Yes.", "Yes."]);
    // The relay sends the same final again, after the queue has forgotten the first.
    tokio::time::sleep(Duration::from_secs(400)).await;
    kit.send(&[&says("e1.final", "Yes.")]).await;
    assert_eq!(kit.deliver(&delivery).await, 0);
    assert_eq!(kit.platform.methods().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn no_handler_for_a_channel() {
    let kit = Kit::new().await;
    let (matrix, other) =
        (event(json!({ "channel": "matrix" })), event(json!({ "event_id": "e2.final", "account": "other" })));
    kit.send(&[&matrix, &other]).await;
    let delivery = kit.delivery();
    assert_eq!(kit.deliver(&delivery).await, 0);
    for id in ["e1.final", "e2.final"] {
        assert_eq!(state(&kit, id).await, Some(LedgerState::Failed));
        assert_eq!(reason(&kit, id).await.as_deref(), Some("no_handler"));
    }
}

/// An observer that keeps what it gets, and then does what it is told.
struct Watcher {
    seen: Mutex<Vec<String>>,
    then: fn() -> Result<bool, ObserverError>,
    finished: AtomicUsize,
}

impl Watcher {
    fn new(then: fn() -> Result<bool, ObserverError>) -> Arc<Self> {
        Arc::new(Self { seen: Mutex::default(), then, finished: AtomicUsize::new(0) })
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

#[async_trait]
impl Observer for Watcher {
    fn name(&self) -> &'static str {
        "watcher"
    }

    async fn observe(&self, event: &OutboundEvent) -> Result<(), ObserverError> {
        self.seen.lock().unwrap().push(event.event_id.clone());
        if (self.then)()? {
            pending::<()>().await;
        }
        self.finished.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_frame_is_dropped_where_nobody_sees_it_and_observed_all_the_same() {
    let kit = Kit::new().await;
    let watcher = Watcher::new(|| Ok(false));
    let frame = event(json!({
        "event_id": "e1.frame.1.1", "message_kind": "streaming", "is_final": false,
        "revision": { "fence": 1, "sequence": 1 },
    }));
    kit.send(&[&frame, &says("e1.final", "Hello.")]).await;
    let delivery = kit.delivery_with(vec![watcher.clone()]);
    kit.deliver(&delivery).await;
    assert_eq!(kit.platform.chat("5"), ["Hello."]);
    assert_eq!(watcher.seen(), ["e1.frame.1.1", "e1.final"]);
}

#[tokio::test(start_paused = true)]
async fn observers_neither_delay_nor_stop_a_delivery_or_one_another() {
    let kit = Kit::new().await;
    let slow = Watcher::new(|| Ok(true));
    let failing = Watcher::new(|| Err("no".into()));
    let panicking = Watcher::new(|| panic!("planted"));
    let fine = Watcher::new(|| Ok(false));
    let delivery =
        kit.delivery_with(vec![slow.clone(), failing.clone(), panicking, fine.clone(), Arc::new(LogObserver)]);
    kit.send(&[&says("e1.final", "one"), &says("e2.final", "two"), &says("e3.final", "three")]).await;
    let started = Instant::now();
    assert_eq!(kit.deliver(&delivery).await, 0);
    assert!(started.elapsed() <= Duration::from_millis(301), "{:?}", started.elapsed());
    assert_eq!(kit.platform.chat("5"), ["one", "two", "three"]);
    let calls: Vec<Duration> = kit.platform.calls().iter().map(|call| call.at - started).collect();
    assert_eq!(calls, [Duration::ZERO; 3], "no call waits for a copy");
    let all = ["e1.final", "e2.final", "e3.final"].map(str::to_owned);
    assert_eq!((fine.seen(), fine.finished.load(Ordering::Relaxed)), (all.to_vec(), 3));
    assert_eq!(slow.seen(), all);
}

/// A client that is gone fails what is not shown, and leaves what is.
#[tokio::test(start_paused = true)]
async fn what_is_shown_stays_sent_when_the_rest_is_undeliverable() {
    let kit = Kit::new().await;
    let text = format!("{}\n\n{}\n\n{}", "a".repeat(4000), "b".repeat(4000), "c".repeat(4000));
    kit.platform.answers([Answer::Done, Answer::Unreachable]);
    kit.send(&[&says("e1.final", &text)]).await;
    assert_eq!(kit.deliver(&kit.delivery()).await, 1);
    let mut delivery = kit.delivery();
    delivery.channels = Arc::default();
    kit.drain(&delivery).await;
    let ledger = kit.store.ledger("e1.final").await.unwrap().unwrap();
    let states: Vec<LedgerState> = ledger.parts().iter().map(|part| part.state()).collect();
    assert_eq!(states, [LedgerState::Sent, LedgerState::Failed, LedgerState::Failed]);
}

/// Cases tg-429-storm, tg-429-final-lost: one 429 stops the chat, the text comes after the wait, in order.
#[tokio::test(start_paused = true)]
async fn a_429_holds_back_the_whole_chat_and_no_other() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let elsewhere = event(json!({ "event_id": "x.final", "chat_id": "6" }));
    kit.platform.answers([refuse(429, "Too Many Requests: retry after 33", json!({ "retry_after": 33 }))]);
    kit.send(&[&says("e1.final", "one"), &says("e2.final", "two"), &elsewhere]).await;
    let started = Instant::now();
    assert_eq!(kit.deliver(&delivery).await, 2);
    assert_eq!(kit.platform.chat("6"), ["Hello."]);
    assert_eq!(kit.platform.methods().len(), 2, "the chat's second event makes no call");
    kit.drain(&delivery).await;
    assert_eq!(kit.platform.chat("5"), ["one", "two"]);
    assert!(started.elapsed() >= Duration::from_secs(33));
    assert_eq!(kit.platform.methods().len(), 4, "nothing is tried before the time");
}

/// Case dl-sent-flag-lies: "sent" is a confirmed message id and nothing else.
#[tokio::test(start_paused = true)]
async fn dl_sent_flag_lies() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let limited = || refuse(429, "Too Many Requests: retry after 1", json!({ "retry_after": 1 }));
    kit.platform.answers([limited(), limited(), limited()]);
    kit.send(&[&says("e1.final", "Hello.")]).await;
    for _ in 0..3 {
        assert_eq!(kit.deliver(&delivery).await, 1);
        assert_eq!(state(&kit, "e1.final").await, Some(LedgerState::Pending));
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(kit.deliver(&delivery).await, 0);
    assert_eq!(state(&kit, "e1.final").await, Some(LedgerState::Sent));
    assert_eq!(kit.platform.chat("5"), ["Hello."]);
}

/// Case dl-flood-two-bubbles: a final that edits waits and edits, it is not posted beside the preview.
#[tokio::test(start_paused = true)]
async fn dl_flood_two_bubbles() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    kit.platform
        .answers([Answer::Done, refuse(429, "Too Many Requests: retry after 41", json!({ "retry_after": 41 }))]);
    kit.send(&[&frame(1, "Ans")]).await;
    assert_eq!(kit.deliver(&delivery).await, 0);
    kit.send(&[&says("e1.final", "Answer complete")]).await;
    kit.drain(&delivery).await;
    assert_eq!(kit.platform.chat("5"), ["Answer complete"]);
    assert_eq!(kit.platform.methods(), ["sendMessage", "editMessageText", "editMessageText"]);
    let ledger = kit.store.ledger("e1.final").await.unwrap().unwrap();
    assert_eq!(ledger.parts()[0].message_ids(), ["100"]);
}

/// An event may name the message that it replaces.
#[tokio::test(start_paused = true)]
async fn a_named_message_is_edited_and_one_that_cannot_be_is_posted_anew() {
    for (answers, methods) in [
        (vec![], vec!["editMessageText"]),
        (
            vec![refuse(400, "Bad Request: message to edit not found", json!({}))],
            vec!["editMessageText", "sendMessage"],
        ),
    ] {
        let kit = Kit::new().await;
        kit.platform.show("5", 10, "Which one?");
        kit.platform.answers(answers);
        let mut last = says("e1.final", "Answer");
        last.edit_message_id = Some("10".to_owned());
        kit.send(&[&last]).await;
        assert_eq!(kit.deliver(&kit.delivery()).await, 0);
        assert_eq!(kit.platform.methods(), methods);
        assert_eq!(state(&kit, "e1.final").await, Some(LedgerState::Sent));
    }
}

/// Case dl-preview-id-lost, invariant 11: sent once more, and marked.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_sent_once_more_and_stays_marked() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    kit.platform.answers([Answer::Lost]);
    kit.send(&[&says("e1.final", "Hello.")]).await;
    assert_eq!(kit.deliver(&delivery).await, 1);
    assert_eq!(state(&kit, "e1.final").await, Some(LedgerState::Uncertain));
    kit.drain(&delivery).await;
    assert_eq!(kit.platform.methods().len(), 2);
    let ledger = kit.store.ledger("e1.final").await.unwrap().unwrap();
    assert_eq!((ledger.state(), ledger.parts()[0].resent()), (LedgerState::Uncertain, true));
}

#[tokio::test(start_paused = true)]
async fn a_second_lost_answer_leaves_the_part_uncertain() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    kit.platform.answers([Answer::Lost, Answer::Lost]);
    kit.send(&[&says("e1.final", "one"), &says("e2.final", "two")]).await;
    kit.drain(&delivery).await;
    assert_eq!(kit.platform.methods().len(), 3, "no third try, and the next event goes on");
    assert_eq!(state(&kit, "e1.final").await, Some(LedgerState::Uncertain));
    assert_eq!(state(&kit, "e2.final").await, Some(LedgerState::Sent));
}

/// Case sl-ok-false-200: only `ok: true` is a delivery; ratelimited waits, other errors are final.
#[tokio::test(start_paused = true)]
async fn sl_ok_false_200() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let slack = |id: &str| event(json!({ "event_id": id, "channel": "slack", "chat_id": "C0" }));
    let no = |error: &str| Answer::Refuse(200, json!({ "ok": false, "error": error }));
    kit.platform.answers([no("ratelimited"), Answer::Done, no("invalid_blocks")]);
    kit.send(&[&slack("e1.final"), &slack("e2.final")]).await;
    assert_eq!(kit.deliver(&delivery).await, 2);
    assert_eq!(state(&kit, "e1.final").await, Some(LedgerState::Pending));
    kit.drain(&delivery).await;
    assert_eq!(state(&kit, "e1.final").await, Some(LedgerState::Sent));
    assert_eq!(state(&kit, "e2.final").await, Some(LedgerState::Failed));
    assert_eq!(kit.platform.chat("C0"), ["Hello."]);
}

#[tokio::test(start_paused = true)]
async fn a_long_text_is_several_messages_and_a_resumed_delivery_repeats_none() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let text = format!("{}\n\n{}", "a".repeat(4000), "b".repeat(4000));
    kit.platform.answers([Answer::Done, Answer::Unreachable]);
    let mut long = says("e1.final", &text);
    long.reply_to_id = Some("9".to_owned());
    kit.send(&[&long]).await;
    assert_eq!(kit.deliver(&delivery).await, 1);
    kit.drain(&delivery).await;
    let calls = kit.platform.calls();
    assert_eq!(calls.len(), 3);
    let quotes: Vec<bool> = calls.iter().map(|call| call.arguments.get("reply_parameters").is_some()).collect();
    assert_eq!(quotes, [true, false, false], "only the first message quotes");
    assert_eq!(kit.platform.chat("5").concat().replace('\n', "").len(), 8000, "each part once");
}

#[tokio::test(start_paused = true)]
async fn a_record_stays_ours_while_many_slow_calls_run() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let text = vec!["a".repeat(4000); 14].join("\n\n");
    kit.platform.answers(vec![Answer::DoneAfter(Duration::from_secs(9)); 14]);
    kit.send(&[&says("e1.final", &text)]).await;
    // 126 s of calls: the deletion at the end fails if the record was not kept.
    assert_eq!(kit.deliver_within(&delivery, Duration::from_secs(200)).await, 0);
    assert_eq!(kit.platform.methods().len(), 14);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_no_event_is_kept_for_the_operator() {
    let kit = Kit::new().await;
    kit.outbound.send(NewMessage::fifo("{\"half\":", "telegram:5", "broken")).await.unwrap();
    kit.send(&[&says("e1.final", "Hello.")]).await;
    assert_eq!(kit.deliver(&kit.delivery()).await, 0);
    let dead = kit.store.dead_items(10).await.unwrap();
    assert_eq!((dead.len(), dead[0].reason.as_str()), (1, "unreadable"));
    assert_eq!(kit.platform.chat("5"), ["Hello."]);
}

#[tokio::test(start_paused = true)]
async fn what_a_batch_has_no_time_for_goes_back() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    kit.platform.answers([Answer::DoneAfter(Duration::from_secs(9))]);
    kit.send(&[&says("e1.final", "one"), &says("e2.final", "two")]).await;
    // A call starts only if it ends, and its result is written, within half a minute.
    assert_eq!(kit.deliver_within(&delivery, Duration::from_secs(29)).await, 2);
    assert!(kit.platform.methods().is_empty());
    assert_eq!(kit.deliver_within(&delivery, Duration::from_secs(35)).await, 1);
    assert_eq!(kit.deliver(&delivery).await, 0);
    assert_eq!(kit.platform.chat("5"), ["one", "two"]);
}

/// A long reply to a slow platform takes more than one invocation: no call is cut off, no part shows twice.
#[tokio::test(start_paused = true)]
async fn a_reply_of_many_parts_goes_on_in_the_next_invocation() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let text = vec!["a".repeat(4000); 14].join("\n\n");
    kit.platform.answers(vec![Answer::DoneAfter(Duration::from_secs(9)); 14]);
    kit.send(&[&says("e1.final", &text)]).await;
    let mut invocations = 0;
    while invocations == 0 || kit.deliver(&delivery).await > 0 {
        invocations += 1;
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert!(invocations < 5, "{} parts", kit.platform.methods().len());
    }
    assert_eq!((invocations, kit.platform.chat("5").len()), (2, 14));
}

#[tokio::test(start_paused = true)]
async fn an_event_with_nothing_to_show_ends_in_the_ledger() {
    let kit = Kit::new().await;
    kit.send(&[&event(json!({ "content": [] }))]).await;
    assert_eq!(kit.deliver(&kit.delivery()).await, 0);
    assert_eq!(reason(&kit, "e1.final").await.as_deref(), Some("nothing_to_show"));
}

#[tokio::test(start_paused = true)]
async fn a_webhooks_reply_goes_to_its_chat_or_to_its_item() {
    let kit = Kit::new().await;
    let routed = event(json!({ "channel": "webhook", "account": "alerts", "chat_id": "alerts", "reply_to_id": "9" }));
    let read = event(json!({ "event_id": "e2.final", "caused_by": "e2", "channel": "webhook", "chat_id": "main" }));
    kit.send(&[&routed, &read]).await;
    assert_eq!(kit.deliver(&kit.delivery()).await, 0);
    assert_eq!(kit.platform.chat("77"), ["Hello."]);
    let item = kit.store.gateway_event(&EventId::from_stored("e2")).await.unwrap().unwrap();
    assert_eq!(item.final_.unwrap().text, "Hello.");
    assert_eq!(state(&kit, "e2.final").await, Some(LedgerState::Sent));
}

#[tokio::test(start_paused = true)]
async fn what_turns_of_other_channels_say_can_be_read_by_id() {
    let kit = Kit::new().await;
    let delivery = kit.delivery_with(vec![Arc::new(ItemObserver::new(kit.store.clone(), Language::English))]);
    kit.send(&[&says("e1.final", "Hello.")]).await;
    kit.deliver(&delivery).await;
    let item = kit.store.gateway_event(&EventId::from_stored("e1")).await.unwrap().unwrap();
    assert_eq!(item.final_.unwrap().text, "Hello.");
    assert_eq!(event(json!({})).channel, Channel::Telegram);
}

/// An item of 400 KB is all that DynamoDB holds: a longer final is cut, says so, and does not come again for ever.
#[tokio::test(start_paused = true)]
async fn a_final_that_no_item_holds_is_cut_and_says_so() {
    let kit = Kit::new().await;
    let mut last = says("e1.final", &"é".repeat(300 * 1024));
    last.channel = Channel::Gateway;
    kit.send(&[&last]).await;
    assert_eq!(kit.deliver(&kit.delivery()).await, 0);
    let seen = kit.store.gateway_event(&EventId::from_stored("e1")).await.unwrap().unwrap().final_.unwrap();
    assert!(seen.text.len() > 340 * 1024 && seen.text.ends_with(&Language::English.rest_in_history()));
}
