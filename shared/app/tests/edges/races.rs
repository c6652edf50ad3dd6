//! Two delivery workers with one record: traces V11 and V12 of the protocol check.

use std::time::Duration;

use tokio::time::sleep;
use turnlock_domain::commit::Draft;
use turnlock_domain::event::{Button, OutboundEvent};
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;
use turnlock_domain::turn::{Outcome, Usage};
use turnlock_store::ledger::LedgerState;

use crate::kit::{Answer, Kit, frame, invocation, says};

/// Trace V11: a worker freezes in its call, another shows the final, the first wakes: what it posted is taken back.
#[tokio::test(start_paused = true)]
async fn v11_a_frozen_worker_that_wakes_late_takes_its_message_back() {
    let kit = Kit::new().await;
    let (first, second) = (kit.delivery(), kit.delivery());
    kit.platform.answers([Answer::DoneAfter(Duration::from_secs(300)), Answer::Done]);
    kit.send(&[&says("e1.final", "Hello.")]).await;
    let late = async {
        let batch = kit.batch();
        let unfinished = first.handle(batch.clone(), invocation()).await;
        assert_eq!(unfinished, [batch[0].message_id.clone()], "the record is another's by now");
        assert!(kit.outbound.delete(&batch[0].receipt).is_err());
    };
    let successor = async {
        sleep(Duration::from_secs(120)).await;
        assert_eq!(kit.deliver(&second).await, 0);
        assert_eq!(kit.platform.chat("5"), ["Hello."]);
    };
    tokio::join!(late, successor);
    assert_eq!(kit.platform.chat("5"), ["Hello."]);
    assert_eq!(kit.platform.methods(), ["sendMessage", "sendMessage", "deleteMessage"]);
    let ledger = kit.store.ledger("e1.final").await.unwrap().unwrap();
    assert_eq!((ledger.state(), ledger.parts()[0].message_ids().len()), (LedgerState::Sent, 1));
    assert!(ledger.parts()[0].resent(), "that it was sent twice stays on record");
}

/// Trace V11, the other way round: the late worker wakes while its successor's call runs. One message stands, and it is
/// the one the ledger names.
#[tokio::test(start_paused = true)]
async fn v11_of_two_calls_that_overlap_one_message_stands() {
    let kit = Kit::new().await;
    let (first, second) = (kit.delivery(), kit.delivery());
    kit.platform.answers([Answer::DoneAfter(Duration::from_secs(125)), Answer::DoneAfter(Duration::from_secs(9))]);
    kit.send(&[&says("e1.final", "Hello.")]).await;
    let late = async {
        let batch = kit.batch();
        assert_eq!(first.handle(batch, invocation()).await.len(), 1);
    };
    let successor = async {
        sleep(Duration::from_secs(120)).await;
        assert_eq!(kit.deliver(&second).await, 0);
    };
    tokio::join!(late, successor);
    assert_eq!(kit.platform.chat("5"), ["Hello."]);
    let ledger = kit.store.ledger("e1.final").await.unwrap().unwrap();
    assert_eq!((ledger.state(), ledger.parts()[0].message_ids()), (LedgerState::Sent, &["100".to_owned()][..]));
}

/// Trace V11: the successor died in its own call. The late worker's message is the only one there is, so it stays.
#[tokio::test(start_paused = true)]
async fn v11_a_late_message_stands_when_its_successor_died() {
    let kit = Kit::new().await;
    let (first, second) = (kit.delivery(), kit.delivery());
    kit.platform.answers([Answer::DoneAfter(Duration::from_secs(300)), Answer::DoneAfter(Duration::from_secs(10_000))]);
    kit.send(&[&says("e1.final", "Hello.")]).await;
    let late = async {
        let batch = kit.batch();
        drop(first.handle(batch, invocation()).await);
    };
    let dies = async {
        sleep(Duration::from_secs(120)).await;
        let batch = kit.batch();
        assert_eq!(batch.len(), 1);
        assert!(tokio::time::timeout(Duration::from_secs(5), second.handle(batch, invocation())).await.is_err());
    };
    tokio::join!(late, dies);
    kit.drain(&kit.delivery()).await;
    assert_eq!(kit.platform.chat("5"), ["Hello."]);
    let ledger = kit.store.ledger("e1.final").await.unwrap().unwrap();
    // What the successor posted, if it posted, is unknown.
    assert_eq!(ledger.state(), LedgerState::Uncertain);
}

/// The turn `e1` as it is committed: people are told "(stopped)".
async fn committed(kit: &Kit) {
    let draft = Draft {
        event_id: EventId::from_stored("e1"),
        session: SessionKey::new("telegram", "main", "5", None),
        generation: 0,
        fence: 1,
        first: 0,
        messages: Vec::new(),
        outcome: Outcome::Stopped,
        usage: Usage::default(),
        calls: Vec::new(),
        owed: Vec::new(),
        merged: Vec::new(),
        at: kit.clock.now_ms(),
    };
    kit.store.put_marker(&draft).await.unwrap();
}

/// A worker freezes in the call for the last of `frames`; another one delivers the final; the first one wakes, and the
/// platform answers its next calls with `answers`.
async fn a_frame_comes_after_the_final(frames: &[OutboundEvent], answers: &[Answer]) -> Kit {
    let kit = Kit::new().await;
    let (first, second) = (kit.delivery(), kit.delivery());
    committed(&kit).await;
    let (last, before) = frames.split_last().unwrap();
    for frame in before {
        kit.send(&[frame]).await;
        assert_eq!(kit.deliver(&first).await, 0);
        sleep(Duration::from_secs(2)).await;
    }
    kit.platform.answers([Answer::DoneAfter(Duration::from_secs(300)), Answer::Done]);
    kit.platform.answers(answers.iter().cloned());
    kit.send(&[last]).await;
    let late = async {
        let batch = kit.batch();
        assert!(first.handle(batch, invocation()).await.is_empty(), "a frame does not come again");
    };
    let successor = async {
        sleep(Duration::from_secs(120)).await;
        kit.send(&[&says("e1.final", "(stopped)")]).await;
        assert_eq!(kit.deliver(&second).await, 0);
        assert_eq!(kit.platform.chat("5"), ["(stopped)"]);
    };
    tokio::join!(late, successor);
    kit
}

/// Trace V11: a frozen worker edits the final's message back to half a text; it puts the committed final back.
#[tokio::test(start_paused = true)]
async fn v11_a_late_frames_edit_is_undone_by_whoever_made_it() {
    let button = Button { label: "Stop".to_owned(), data: "stop:001767603600000#1~".to_owned() };
    let half = OutboundEvent { buttons: vec![button], ..frame(2, "half") };
    let kit = a_frame_comes_after_the_final(&[frame(1, "ha"), half], &[]).await;
    assert_eq!(kit.platform.chat("5"), ["(stopped)"]);
    let edits = ["sendMessage", "editMessageText", "editMessageText", "editMessageText"];
    assert_eq!(kit.platform.methods(), edits);
    assert!(kit.platform.calls()[3].arguments.get("reply_markup").is_none(), "nor does the frame's button stay");
    assert_eq!(kit.store.ledger("e1.final").await.unwrap().unwrap().state(), LedgerState::Sent);
}

/// The same, and the platform does not take the final back: the part is open, and the final is kept to be sent again.
#[tokio::test(start_paused = true)]
async fn v11_a_late_frame_that_cannot_be_undone_is_left_to_the_next_delivery() {
    let frames = [frame(1, "ha"), frame(2, "half")];
    let kit = a_frame_comes_after_the_final(&frames, &[Answer::Unreachable]).await;
    assert_eq!(kit.platform.chat("5"), ["half"]);
    assert_eq!(kit.store.ledger("e1.final").await.unwrap().unwrap().state(), LedgerState::Pending);
    let dead = kit.store.dead_items(5).await.unwrap();
    assert_eq!((dead.len(), dead[0].event_id.as_str(), dead[0].reason.as_str()), (1, "e1.final", "overwritten"));
    let whole = kit.store.dead_item(&dead[0].event_id).await.unwrap().unwrap();
    let last: OutboundEvent = serde_json::from_str(&whole.body).unwrap();
    assert!(last.is_final && last.text() == "(stopped)");
    sleep(Duration::from_secs(400)).await;
    kit.send(&[&last]).await;
    assert_eq!((kit.deliver(&kit.delivery()).await, kit.platform.chat("5")), (0, vec!["(stopped)".to_owned()]));
    assert_eq!(kit.store.ledger("e1.final").await.unwrap().unwrap().state(), LedgerState::Sent);
}

/// An edit is repeated until its outcome is known, however often a worker dies in it: half a text is no final.
#[tokio::test(start_paused = true)]
async fn an_edit_that_workers_died_in_is_made_in_the_end() {
    let kit = Kit::new().await;
    kit.send(&[&frame(1, "half")]).await;
    assert_eq!(kit.deliver(&kit.delivery()).await, 0);
    kit.platform.answers(vec![Answer::DoneAfter(Duration::from_secs(10_000)); 3]);
    kit.send(&[&says("e1.final", "Hello.")]).await;
    for _ in 0..3 {
        let batch = kit.batch();
        assert_eq!(batch.len(), 1);
        assert!(
            tokio::time::timeout(Duration::from_secs(5), kit.delivery().handle(batch, invocation())).await.is_err()
        );
        sleep(Duration::from_secs(91)).await;
    }
    assert_eq!((kit.deliver(&kit.delivery()).await, kit.platform.chat("5")), (0, vec!["Hello.".to_owned()]));
    let ledger = kit.store.ledger("e1.final").await.unwrap().unwrap();
    assert_eq!((ledger.state(), ledger.parts()[0].resent()), (LedgerState::Sent, true));
}

/// Trace V11: a frozen worker posts a preview above the final; it takes it back, and with it the doubt.
#[tokio::test(start_paused = true)]
async fn v11_a_late_preview_is_taken_back() {
    let kit = a_frame_comes_after_the_final(&[frame(1, "half")], &[]).await;
    assert_eq!(kit.platform.chat("5"), ["(stopped)"]);
    assert_eq!(kit.platform.methods(), ["sendMessage", "sendMessage", "deleteMessage"]);
    assert_eq!(kit.store.ledger("e1.final").await.unwrap().unwrap().state(), LedgerState::Sent);
}

/// Trace V11 among frames: a late one makes what the message shows unknown, so that the final is not taken for shown.
#[tokio::test(start_paused = true)]
async fn v11_after_a_late_frame_the_final_is_written_again() {
    let kit = Kit::new().await;
    let (first, second) = (kit.delivery(), kit.delivery());
    kit.send(&[&frame(1, "ha")]).await;
    kit.deliver(&first).await;
    sleep(Duration::from_secs(2)).await;
    kit.platform.answers([Answer::DoneAfter(Duration::from_secs(200)), Answer::Done]);
    kit.send(&[&frame(2, "half")]).await;
    let late = async {
        let batch = kit.batch();
        first.handle(batch, invocation()).await;
    };
    let successor = async {
        sleep(Duration::from_secs(120)).await;
        kit.send(&[&frame(3, "(stopped)")]).await;
        assert_eq!(kit.deliver(&second).await, 0);
    };
    tokio::join!(late, successor);
    assert_eq!(kit.platform.chat("5"), ["half"], "the late frame stands");
    kit.send(&[&says("e1.final", "(stopped)")]).await;
    assert_eq!((kit.deliver(&second).await, kit.platform.chat("5")), (0, vec!["(stopped)".to_owned()]));
}

/// A worker that died between `sending` and the result: the final is sent once more, and marked.
#[tokio::test(start_paused = true)]
async fn a_dead_workers_call_is_repeated_once() {
    let kit = Kit::new().await;
    kit.platform.answers([Answer::DoneAfter(Duration::from_secs(10_000))]);
    kit.send(&[&says("e1.final", "Hello.")]).await;
    for answered in [false, true] {
        let batch = kit.batch();
        assert_eq!(batch.len(), 1);
        let done = tokio::time::timeout(Duration::from_secs(5), kit.delivery().handle(batch, invocation())).await;
        assert_eq!(done.is_ok(), answered);
        sleep(Duration::from_secs(91)).await;
    }
    let ledger = kit.store.ledger("e1.final").await.unwrap().unwrap();
    assert_eq!((ledger.state(), ledger.parts()[0].resent()), (LedgerState::Uncertain, true));
}

/// Trace V12: a plain failure, not a 429, takes the chat's later events back as well; another chat's are not touched.
#[tokio::test(start_paused = true)]
async fn v12_a_failure_takes_later_events_of_its_chat_with_it() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let mut elsewhere = says("x.final", "elsewhere");
    elsewhere.chat_id = "6".to_owned();
    kit.platform.answers([Answer::Unreachable]);
    kit.send(&[&says("e1.final", "one"), &says("e2.final", "two"), &elsewhere]).await;
    assert_eq!(kit.deliver(&delivery).await, 2);
    assert_eq!((kit.platform.chat("5"), kit.platform.chat("6")), (Vec::<String>::new(), vec!["elsewhere".to_owned()]));
    // Both rest for the same two seconds.
    sleep(Duration::from_millis(1900)).await;
    assert!(kit.batch().is_empty());
    sleep(Duration::from_millis(200)).await;
    assert_eq!(kit.deliver(&delivery).await, 0);
    assert_eq!(kit.platform.chat("5"), ["one", "two"]);
}

/// A record whose visibility ended before its turn in the batch makes no call.
#[tokio::test(start_paused = true)]
async fn no_call_starts_for_a_record_that_is_not_ours() {
    let kit = Kit::new().await;
    kit.send(&[&says("e1.final", "one")]).await;
    let batch = kit.batch();
    kit.outbound.delete(&batch[0].receipt).unwrap();
    assert_eq!(kit.delivery().handle(batch.clone(), invocation()).await, [batch[0].message_id.clone()]);
    assert!(kit.platform.methods().is_empty());
}

/// Worker pools and servers move these futures between threads.
#[tokio::test(start_paused = true)]
async fn what_hosts_run_may_change_threads() {
    fn may_change_threads<T: Send>(future: T) -> T {
        future
    }
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    assert!(may_change_threads(delivery.handle(Vec::new(), invocation())).await.is_empty());
}
