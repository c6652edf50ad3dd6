//! Platforms that are slow, fail or refuse while a reply is written: what waits for them, and what is taken away in the end.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;
use turnlock_store::ledger::LedgerState;

use crate::kit::{Answer, Kit, frame, refuse, says};
use crate::preview::{EDIT, POST, SLOT, deliver, flood, gone, ledger};

/// What takes the place of another message is not done before that one is gone: not when the platform wants to wait, and
/// not when the worker dies in between. What the platform does not take away for good is marked.
#[tokio::test(start_paused = true)]
async fn a_message_that_was_replaced_is_taken_away_in_the_end() {
    let refused = || refuse(400, "Bad Request: something new", json!({}));
    for (at_first, deletions, state) in [
        (flood(5), 2, LedgerState::Sent),
        (refuse(502, "Bad Gateway", json!({})), 2, LedgerState::Sent),
        (Answer::DoneAfter(Duration::from_secs(10_000)), 2, LedgerState::Sent),
        (refused(), 1, LedgerState::Uncertain),
    ] {
        let kit = Kit::new().await;
        let delivery = kit.delivery();
        kit.platform.answers([Answer::Done, gone(), Answer::Done, at_first]);
        deliver(&kit, &delivery, &frame(1, "Ans")).await;
        kit.send(&[&says("e1.final", "Answer complete")]).await;
        drop(tokio::time::timeout(Duration::from_secs(5), kit.deliver(&delivery)).await);
        kit.drain(&delivery).await;
        let mut expected = vec![POST, EDIT, POST];
        expected.resize(3 + deletions, "deleteMessage");
        assert_eq!(
            (kit.platform.methods(), ledger(&kit).await.state()),
            (expected.into_iter().map(str::to_owned).collect(), state)
        );
        assert_eq!(kit.platform.chat("5").last().map(String::as_str), Some("Answer complete"));
        assert_eq!(kit.platform.chat("5").len(), if deletions == 2 { 1 } else { 2 });
    }
}

/// The same for the rest of a preview that was longer than its final.
#[tokio::test(start_paused = true)]
async fn a_rest_of_a_preview_is_taken_away_in_the_end() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let long = format!("{}\n\n{}\n\n{}", "a".repeat(4000), "b".repeat(4000), "c".repeat(100));
    for sequence in 1..=3 {
        deliver(&kit, &delivery, &frame(sequence, &long)).await;
    }
    sleep(SLOT).await;
    kit.platform.answers([Answer::Done, Answer::Done, flood(5), refuse(502, "Bad Gateway", json!({}))]);
    kit.send(&[&says("e1.final", "short")]).await;
    assert_eq!((kit.deliver(&delivery).await, kit.platform.chat("5").len()), (1, 2));
    kit.drain(&delivery).await;
    assert_eq!(kit.platform.chat("5"), ["short"]);
    assert_eq!(kit.platform.methods()[3..], [EDIT, "deleteMessage", "deleteMessage", "deleteMessage", "deleteMessage"]);
    assert_eq!((ledger(&kit).await.state(), ledger(&kit).await.parts().len()), (LedgerState::Sent, 1));
}

/// A platform that never takes it away keeps nobody waiting for it: the answer stands, the rest is marked.
#[tokio::test(start_paused = true)]
async fn a_rest_that_no_failing_platform_takes_away_is_marked_and_the_chat_goes_on() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let long = format!("{}\n\n{}", "a".repeat(4000), "b".repeat(100));
    for sequence in 1..=2 {
        deliver(&kit, &delivery, &frame(sequence, &long)).await;
    }
    let refused = vec![refuse(502, "Bad Gateway", json!({})); 6];
    kit.platform.answers([Answer::Done].into_iter().chain(refused));
    kit.send(&[&says("e1.final", "short"), &says("e2.final", "next")]).await;
    kit.drain(&delivery).await;
    assert_eq!(kit.platform.chat("5"), ["short", &"b".repeat(100), "next"]);
    assert_eq!(kit.platform.methods().iter().filter(|method| **method == "deleteMessage").count(), 6);
    assert_eq!(ledger(&kit).await.state(), LedgerState::Uncertain);
}

/// Records come one by one, and every call takes five seconds: frames that waited are dropped, so that the final waits for
/// two calls at most.
#[tokio::test(start_paused = true)]
async fn a_slow_platform_holds_no_final_back() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    kit.platform.answers(vec![Answer::DoneAfter(Duration::from_secs(5)); 100]);
    let turn = async {
        for sequence in 1..=20_u32 {
            kit.send(&[&frame(sequence, &"so far ".repeat(sequence as usize))]).await;
            sleep(SLOT).await;
        }
        kit.send(&[&says("e1.final", "The answer.")]).await;
        let committed = tokio::time::Instant::now();
        while kit.platform.chat("5") != ["The answer."] {
            sleep(Duration::from_millis(100)).await;
        }
        committed.elapsed()
    };
    let (waited, ()) = tokio::join!(turn, kit.deliver_one_by_one(&delivery, Duration::from_secs(120)));
    assert!(waited <= Duration::from_secs(13), "{waited:?}");
    assert!((4..=8).contains(&kit.platform.methods().len()), "{}", kit.platform.methods().len());
}

/// A platform that fails is not asked for the next frame: each would cost the final behind it the time of a call.
#[tokio::test(start_paused = true)]
async fn after_a_frame_that_failed_the_chat_rests() {
    for failure in [Answer::Unreachable, Answer::Lost, refuse(502, "Bad Gateway", json!({}))] {
        let kit = Kit::new().await;
        let delivery = kit.delivery();
        kit.platform.answers([Answer::Done, failure]);
        for sequence in 1..=10_u32 {
            deliver(&kit, &delivery, &frame(sequence, &"so far ".repeat(sequence as usize))).await;
        }
        assert_eq!(kit.platform.methods(), [POST, EDIT]);
        sleep(Duration::from_secs(30)).await;
        deliver(&kit, &delivery, &frame(11, "so far so good")).await;
        deliver(&kit, &delivery, &says("e1.final", "The answer.")).await;
        assert_eq!(kit.platform.methods(), [POST, EDIT, EDIT, EDIT]);
    }
}
