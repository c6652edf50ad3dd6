//! Previews: a reply while it is written, and the final in its place.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;
use turnlock_app::deliver::Delivery;
use turnlock_domain::event::OutboundEvent;
use turnlock_store::ledger::{Ledger, LedgerState};

use crate::kit::{Answer, Kit, event, frame, refuse, says};

pub(crate) const SLOT: Duration = Duration::from_millis(1500);
pub(crate) const EDIT: &str = "editMessageText";
pub(crate) const POST: &str = "sendMessage";

/// Delivers `event` alone, a slot after whatever came before it.
pub(crate) async fn deliver(kit: &Kit, delivery: &Delivery, event: &OutboundEvent) {
    sleep(SLOT).await;
    kit.send(&[event]).await;
    assert_eq!(kit.deliver(delivery).await, 0, "{} comes again", event.event_id);
}

pub(crate) async fn ledger(kit: &Kit) -> Ledger {
    kit.store.ledger("e1.final").await.unwrap().unwrap()
}

pub(crate) fn gone() -> Answer {
    refuse(400, "Bad Request: message to edit not found", json!({}))
}

pub(crate) fn flood(seconds: u64) -> Answer {
    let description = format!("Too Many Requests: retry after {seconds}");
    refuse(429, &description, json!({ "retry_after": seconds }))
}

#[tokio::test(start_paused = true)]
async fn the_preview_becomes_the_final() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    for event in [frame(1, "Hel"), frame(2, "Hello"), says("e1.final", "Hello.")] {
        deliver(&kit, &delivery, &event).await;
        assert_eq!(kit.platform.chat("5"), [event.text()]);
    }
    assert_eq!(kit.platform.methods(), [POST, EDIT, EDIT]);
    let ledger = ledger(&kit).await;
    assert_eq!((ledger.state(), ledger.parts()[0].message_ids()), (LedgerState::Sent, &["100".to_owned()][..]));
    assert!(kit.store.ledger("e1.frame.1.1").await.unwrap().is_none(), "a turn has one ledger");
}

/// Case tg-not-modified-abort: what is shown already is not sent again, and counts as delivered.
#[tokio::test(start_paused = true)]
async fn tg_not_modified_abort() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    for event in [frame(1, "Hello."), frame(2, "Hello."), says("e1.final", "Hello.")] {
        deliver(&kit, &delivery, &event).await;
    }
    assert_eq!((kit.platform.methods(), ledger(&kit).await.state()), (vec![POST.to_owned()], LedgerState::Sent));
}

#[tokio::test(start_paused = true)]
async fn of_the_frames_in_hand_the_newest_is_shown_and_none_beside_the_final() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    kit.send(&[&frame(1, "a"), &frame(2, "a b"), &frame(3, "a b c")]).await;
    assert_eq!(kit.deliver(&delivery).await, 0);
    assert_eq!((kit.platform.chat("5"), kit.platform.methods().len()), (vec!["a b c".to_owned()], 1));
    sleep(SLOT).await;
    kit.send(&[&frame(4, "a b c d"), &says("e1.final", "the end")]).await;
    assert_eq!(kit.deliver(&delivery).await, 0);
    assert_eq!((kit.platform.chat("5"), kit.platform.methods().len()), (vec!["the end".to_owned()], 2));
    // What comes late is not shown any more.
    deliver(&kit, &delivery, &frame(5, "a b c d e")).await;
    assert_eq!(kit.platform.methods().len(), 2);
}

/// Case tg-429-final-lost: frames keep their distance, in a group a longer one; the final does not wait for it.
#[tokio::test(start_paused = true)]
async fn tg_429_final_lost() {
    for (chat, shown) in [("5", 10), ("-100500", 4)] {
        let kit = Kit::new().await;
        let delivery = kit.delivery();
        for sequence in 1..=30_u32 {
            let mut frame = frame(sequence, &"so far ".repeat(sequence as usize));
            frame.chat_id = chat.to_owned();
            kit.send(&[&frame]).await;
            assert_eq!(kit.deliver(&delivery).await, 0);
            sleep(Duration::from_millis(500)).await;
        }
        assert_eq!(kit.platform.methods().len(), shown, "{chat}");
        let mut last = says("e1.final", "The answer.");
        last.chat_id = chat.to_owned();
        kit.send(&[&last]).await;
        assert_eq!((kit.deliver(&delivery).await, kit.platform.chat(chat)), (0, vec!["The answer.".to_owned()]));
    }
}

/// Case tg-429-storm: one 429 stops the frames of the chat until its time is over; the final waits, and edits.
#[tokio::test(start_paused = true)]
async fn tg_429_storm() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    kit.platform.answers([Answer::Done, flood(33)]);
    for sequence in 1..=12_u32 {
        deliver(&kit, &delivery, &frame(sequence, &"so far ".repeat(sequence as usize))).await;
    }
    assert_eq!(kit.platform.methods(), [POST, EDIT]);
    kit.send(&[&says("e1.final", "The answer.")]).await;
    assert_eq!(kit.deliver(&delivery).await, 1);
    kit.drain(&delivery).await;
    assert_eq!(
        (kit.platform.methods(), kit.platform.chat("5")),
        (vec![POST.to_owned(), EDIT.to_owned(), EDIT.to_owned()], vec!["The answer.".to_owned()])
    );
    let calls = kit.platform.calls();
    assert!(calls[2].at - calls[1].at >= Duration::from_secs(33));
    assert_eq!(ledger(&kit).await.state(), LedgerState::Sent);
}

/// Case dl-preview-id-lost, trace V13: a preview whose answer was lost gets no more frames; the final is a new message,
/// and the ledger says that half a preview may stand above it.
#[tokio::test(start_paused = true)]
async fn v13_dl_preview_id_lost() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    kit.platform.answers([Answer::Lost]);
    for event in [frame(1, "half"), frame(2, "half a"), says("e1.final", "Hello.")] {
        deliver(&kit, &delivery, &event).await;
    }
    assert_eq!((kit.platform.methods(), kit.platform.chat("5").len()), (vec![POST.to_owned(), POST.to_owned()], 2));
    assert_eq!(ledger(&kit).await.state(), LedgerState::Uncertain);
}

/// An edit whose answer was lost keeps its message; that the final's text was in it is no reason not to edit once more.
#[tokio::test(start_paused = true)]
async fn a_frames_edit_with_a_lost_answer_leaves_the_text_unknown() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    kit.platform.answers([Answer::Done, Answer::Lost]);
    for event in [frame(1, "Hel"), frame(2, "Hello."), says("e1.final", "Hello.")] {
        deliver(&kit, &delivery, &event).await;
    }
    assert_eq!(
        (kit.platform.methods(), kit.platform.chat("5")),
        (vec![POST.to_owned(), EDIT.to_owned(), EDIT.to_owned()], vec!["Hello.".to_owned()])
    );
    assert_eq!(ledger(&kit).await.state(), LedgerState::Sent);
}

/// One call a frame, over several messages; a part that stands is not touched again, and what a shorter final does not
/// need is taken away.
#[tokio::test(start_paused = true)]
async fn a_long_preview_grows_by_one_call_a_frame_and_its_rest_is_taken_away() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let long = format!("{}\n\n{}\n\n{}", "a".repeat(4000), "b".repeat(4000), "c".repeat(100));
    for sequence in 1..=4 {
        deliver(&kit, &delivery, &frame(sequence, &long)).await;
    }
    assert_eq!((kit.platform.methods(), kit.platform.chat("5").len()), (vec![POST.to_owned(); 3], 3));
    deliver(&kit, &delivery, &says("e1.final", &"a".repeat(4000))).await;
    assert_eq!(kit.platform.methods()[3..], ["deleteMessage", "deleteMessage"]);
    assert_eq!(kit.platform.chat("5"), ["a".repeat(4000)]);
    let ledger = ledger(&kit).await;
    assert_eq!((ledger.state(), ledger.parts().len()), (LedgerState::Sent, 1));
}

/// Case sl-edit-ghost: a message that is gone is posted anew, once; a platform that fails is asked to edit again.
#[tokio::test(start_paused = true)]
async fn sl_edit_ghost_and_dl_flood_two_bubbles() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    deliver(&kit, &delivery, &frame(1, "Ans")).await;
    kit.platform.answers([refuse(502, "Bad Gateway", json!({})), flood(41), gone()]);
    sleep(SLOT).await;
    kit.send(&[&says("e1.final", "Answer complete")]).await;
    assert_eq!(kit.deliver(&delivery).await, 1);
    kit.drain(&delivery).await;
    assert_eq!(kit.platform.methods(), [POST, EDIT, EDIT, EDIT, POST, "deleteMessage"]);
    assert_eq!(kit.platform.chat("5"), ["Answer complete"]);
    let ledger = ledger(&kit).await;
    assert_eq!((ledger.state(), ledger.parts()[0].message_ids().len()), (LedgerState::Sent, 2));
}

/// A preview that its reader has deleted does not come back before the final.
#[tokio::test(start_paused = true)]
async fn a_preview_that_is_gone_gets_no_more_frames() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    kit.platform.answers([Answer::Done, gone()]);
    for sequence in 1..=4_u32 {
        deliver(&kit, &delivery, &frame(sequence, &"so far ".repeat(sequence as usize))).await;
    }
    assert_eq!(kit.platform.methods(), [POST, EDIT]);
    deliver(&kit, &delivery, &says("e1.final", "Hello.")).await;
    assert_eq!(kit.platform.methods(), [POST, EDIT, POST, "deleteMessage"]);
    assert_eq!((kit.platform.chat("5"), ledger(&kit).await.state()), (vec!["Hello.".to_owned()], LedgerState::Sent));
}

/// Cases tg-utf16-disputed and sl-too-long-limit: a part that the platform finds too long is halved, and it alone.
#[tokio::test(start_paused = true)]
async fn tg_utf16_disputed_and_sl_too_long_limit() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let text = "word ".repeat(2000);
    let too_long = || refuse(400, "Bad Request: message is too long", json!({}));
    kit.platform.answers([Answer::Done, too_long(), too_long()]);
    kit.send(&[&says("e1.final", text.trim())]).await;
    assert_eq!(kit.deliver(&delivery).await, 0);
    let shown = kit.platform.chat("5");
    assert_eq!(shown.join(" ").split_whitespace().count(), 2000, "nothing is lost");
    assert!(
        shown[0].len() > 4000 && (900..=1024).contains(&shown[1].len()),
        "{:?}",
        shown.iter().map(String::len).collect::<Vec<_>>()
    );
    assert_eq!(ledger(&kit).await.state(), LedgerState::Sent);
    // The platform that takes nothing ends it.
    let kit = Kit::new().await;
    kit.platform.answers((0..20).map(|_| too_long()));
    kit.send(&[&says("e1.final", text.trim())]).await;
    assert_eq!(kit.deliver(&kit.delivery()).await, 0);
    assert_eq!(ledger(&kit).await.parts()[0].reason(), Some("too_long"));
    assert_eq!(kit.store.dead_items(5).await.unwrap()[0].reason, "too_long");
}

/// All edits of a workspace have one budget: it slows the frames of every chat, and a 429 holds finals back as well.
#[tokio::test(start_paused = true)]
async fn slacks_edits_share_a_budget_across_chats() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let of = |chat: &str, turn: &str, mut event: OutboundEvent| {
        event.channel = turnlock_domain::event::Channel::Slack;
        event.chat_id = chat.to_owned();
        event.event_id = event.event_id.replace("e1", turn);
        event.turn = Some(turnlock_domain::ids::EventId::from_stored(turn));
        event
    };
    for (chat, turn) in [("C1", "a"), ("C2", "b"), ("T2/C3", "c")] {
        kit.send(&[&of(chat, turn, frame(1, "so"))]).await;
    }
    kit.deliver(&delivery).await;
    assert_eq!(kit.platform.methods(), vec!["chat.postMessage"; 3], "posts are counted by channel");
    sleep(SLOT).await;
    for (chat, turn) in [("C1", "a"), ("C2", "b"), ("T2/C3", "c")] {
        kit.send(&[&of(chat, turn, frame(2, "so far"))]).await;
    }
    kit.deliver(&delivery).await;
    assert_eq!(kit.platform.methods()[3..], ["chat.update", "chat.update"], "one for each workspace");
    sleep(SLOT).await;
    kit.platform.answers([Answer::Refuse(429, json!({ "ok": false, "error": "ratelimited" }))]);
    kit.send(&[&of("C1", "a", frame(3, "so far so"))]).await;
    kit.deliver(&delivery).await;
    kit.send(&[&of("C2", "b", says("e1.final", "so far so good")), &of("C4", "d", says("e1.final", "a post"))]).await;
    assert_eq!(kit.deliver(&delivery).await, 1, "a final that edits waits, one that posts does not");
    assert_eq!(kit.platform.chat("C4"), ["a post"]);
    kit.drain(&delivery).await;
    assert_eq!(kit.platform.chat("C2"), ["so far so good"]);
}

/// A final whose preview takes no more edits only posts: the edits' budget does not hold it back.
#[tokio::test(start_paused = true)]
async fn a_final_that_only_posts_does_not_wait_for_the_edits() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let of = |mut event: OutboundEvent| {
        event.channel = turnlock_domain::event::Channel::Slack;
        event.chat_id = "C1".to_owned();
        event
    };
    let no = |error: &str| Answer::Refuse(200, json!({ "ok": false, "error": error }));
    kit.platform.answers([Answer::Done, no("message_not_found"), Answer::Done]);
    for sequence in 1..=2_u32 {
        deliver(&kit, &delivery, &of(frame(sequence, &"so far ".repeat(sequence as usize)))).await;
    }
    kit.store.block_chat_until("slack:chat.update", kit.clock.now_ms() + Duration::from_secs(60)).await.unwrap();
    deliver(&kit, &delivery, &of(says("e1.final", "The answer."))).await;
    assert_eq!(kit.platform.methods()[..3], ["chat.postMessage", "chat.update", "chat.postMessage"]);
}

#[tokio::test(start_paused = true)]
async fn a_chat_that_is_gone_or_is_to_be_left_alone_gets_no_frames() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    kit.store.mark_chat_gone("telegram:5", "blocked", kit.clock.now_ms()).await.unwrap();
    deliver(&kit, &delivery, &frame(1, "so")).await;
    assert!(kit.platform.methods().is_empty());
    kit.store.clear_chat_gone("telegram:5", kit.clock.now_ms()).await.unwrap();
    deliver(&kit, &delivery, &frame(2, "so far")).await;
    assert_eq!(kit.platform.methods(), [POST]);
}

/// That a turn works is shown where nothing stands against it, and leaves nothing behind.
#[tokio::test(start_paused = true)]
async fn that_a_turn_works_is_shown_without_a_trace() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let typing = |sequence: u32| {
        let mut typing = frame(sequence, "");
        typing.message_kind = turnlock_domain::event::MessageKind::Progress;
        typing
    };
    kit.platform.answers([Answer::Done, Answer::Lost, flood(30)]);
    for sequence in 1..=3 {
        deliver(&kit, &delivery, &typing(sequence)).await;
    }
    assert_eq!(kit.platform.methods(), vec!["sendChatAction"; 2], "a platform that fails is left alone");
    sleep(Duration::from_secs(30)).await;
    for sequence in 4..=5 {
        deliver(&kit, &delivery, &typing(sequence)).await;
    }
    assert_eq!(kit.platform.methods(), vec!["sendChatAction"; 3], "a 429 is obeyed");
    assert!(kit.store.ledger("e1.final").await.unwrap().is_none() && kit.platform.chat("5").is_empty());
    sleep(Duration::from_secs(30)).await;
    deliver(&kit, &delivery, &says("e1.final", "Hello.")).await;
    deliver(&kit, &delivery, &typing(6)).await;
    assert_eq!(kit.platform.methods().len(), 4, "nobody types after the final");
}

/// A frame that fails is done, and what is given back takes no frame along.
#[tokio::test(start_paused = true)]
async fn no_frame_is_given_back() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    kit.platform.answers([Answer::Unreachable, Answer::Unreachable]);
    deliver(&kit, &delivery, &frame(1, "so")).await;
    let mut other = frame(1, "so");
    other.event_id = "e2.frame.1.1".to_owned();
    other.turn = Some(turnlock_domain::ids::EventId::from_stored("e2"));
    kit.send(&[&says("e1.final", "Hello."), &other]).await;
    assert_eq!(kit.deliver(&delivery).await, 1, "the final alone comes again");
    kit.drain(&delivery).await;
    assert_eq!(kit.platform.chat("5"), ["Hello."]);
}

#[tokio::test(start_paused = true)]
async fn the_final_quotes_what_it_answers_in_its_first_message_only() {
    let kit = Kit::new().await;
    let mut last = event(json!({ "reply_to_id": "7" }));
    last.content = vec![turnlock_domain::event::ContentBlock::text(format!("{}\n\nb", "a".repeat(4096)))];
    kit.send(&[&last]).await;
    kit.deliver(&kit.delivery()).await;
    let quotes: Vec<bool> =
        kit.platform.calls().iter().map(|call| call.arguments.get("reply_parameters").is_some()).collect();
    assert_eq!(quotes, [true, false]);
}
