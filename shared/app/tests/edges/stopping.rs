//! The button under a reply that is being written: it stops its own turn and nothing that was sent later.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;
use turnlock_app::turn::Handled;
use turnlock_domain::envelope::Position;
use turnlock_domain::event::{Button, OutboundEvent, TAP};
use turnlock_domain::time::Millis;
use turnlock_domain::turn::Outcome;

use crate::deciding::{parked, presses, texts};
use crate::kit::{Kit, frame, says};
use crate::preview::{EDIT, POST, deliver};
use crate::talk::{Talk, place};

/// What the button of the turn of the event at `position` brings back.
fn stop(position: &Position) -> String {
    format!("stop:{}", position.right_behind().as_str())
}

/// Whether an answer to a press leaves the button where it is.
fn keeps_buttons(answer: &OutboundEvent) -> bool {
    answer.metadata[TAP]["keeps_buttons"] == json!(true)
}

#[tokio::test(start_paused = true)]
async fn a_press_stops_its_turn_and_nothing_that_was_sent_later() {
    let talk = parked().await;
    talk.hears("e2", "and now?").await;
    let sent = presses(&talk, "t1", "7", &stop(&place(1))).await;
    assert_eq!((texts(&sent), keeps_buttons(&sent[0])), (vec!["Stopping.".to_owned()], true));
    assert_eq!(talk.head().await.stop_before, Some(place(1).right_behind()));
    assert_eq!(talk.take().await, Some(Handled::Done), "it was woken");
    assert_eq!(talk.outcome("e1").await, Some(Outcome::Stopped));
    talk.sent();
    talk.model_says("Now.");
    assert_eq!(talk.take().await, Some(Handled::Done));
    assert_eq!((texts(&talk.sent()), talk.outcome("e2").await), (vec!["Now.".to_owned()], Some(Outcome::Replied)));
}

/// The place is compared and not believed: an earlier turn's, one in the far future, and what is none at all stop nothing.
#[tokio::test(start_paused = true)]
async fn a_press_that_does_not_name_the_turn_that_runs_stops_nothing() {
    let talk = parked().await;
    let earlier = stop(&Position::new(Millis(1_767_603_500_000), "1"));
    let names = [earlier.as_str(), "stop:999999999999999#~", "stop:001767603600000#", "stop:now", "stop:", "stop"];
    for (nth, data) in names.into_iter().enumerate() {
        let sent = presses(&talk, &format!("t{nth}"), "7", data).await;
        let expired = "This button has expired. Please send me a message instead.";
        assert_eq!((texts(&sent), keeps_buttons(&sent[0])), (vec![expired.to_owned()], false), "{data}");
    }
    let head = talk.head().await;
    assert!(head.stop_before.is_none() && head.ask.is_some(), "it still waits");
}

#[tokio::test(start_paused = true)]
async fn a_press_after_the_end_says_so_and_takes_the_button_away() {
    let talk = Talk::new().await;
    let nothing = vec!["Nothing is running.".to_owned()];
    assert_eq!(texts(&presses(&talk, "t1", "7", &stop(&place(1))).await), nothing);
    assert!(talk.kit.store.head(&talk.session()).await.unwrap().is_none(), "a press makes no session");
    talk.model_says("Hello.");
    talk.hears("e1", "hi").await;
    talk.take().await;
    talk.sent();
    let sent = presses(&talk, "t2", "7", &stop(&place(1))).await;
    assert_eq!((texts(&sent), keeps_buttons(&sent[0])), (nothing, false));
    assert_eq!(talk.head().await.stop_before, None);
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_was_stored_for_later_ones_stays() {
    let talk = parked().await;
    talk.kit.store.stop(&talk.session(), &place(5)).await.unwrap();
    assert_eq!(texts(&presses(&talk, "t1", "7", &stop(&place(1))).await), ["Stopping."]);
    assert_eq!(talk.head().await.stop_before, Some(place(5)));
}

/// The frame of a turn, with its button.
fn stoppable(sequence: u32, text: &str) -> OutboundEvent {
    let button = Button { label: "Stop".to_owned(), data: stop(&place(1)) };
    OutboundEvent { buttons: vec![button], ..frame(sequence, text) }
}

/// The methods that were called, each with whether its message had a keyboard.
fn calls(kit: &Kit) -> Vec<(String, bool)> {
    let calls = kit.platform.calls().into_iter();
    calls.map(|call| (call.method, call.arguments.get("reply_markup").is_some())).collect()
}

/// A final that says what its preview says is no news, but the button has to go.
#[tokio::test(start_paused = true)]
async fn the_button_goes_with_the_final_also_where_the_text_stays() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    for event in [
        stoppable(1, "Hel"),
        stoppable(2, "Hello."),
        stoppable(3, "Hello."),
        says("e1.final", "Hello."),
        says("e1.final", "Hello."),
    ] {
        deliver(&kit, &delivery, &event).await;
    }
    let [post, edit] = [POST, EDIT].map(str::to_owned);
    assert_eq!(calls(&kit), [(post, true), (edit.clone(), true), (edit, false)]);
}

/// Under a reply of several messages the button stands under the last: the final changes that one alone.
#[tokio::test(start_paused = true)]
async fn the_button_of_a_long_preview_costs_no_further_call() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let long = format!("{}\n\n{}\n\n{}", "a".repeat(4000), "b".repeat(4000), "c".repeat(100));
    for sequence in 1..=4 {
        deliver(&kit, &delivery, &stoppable(sequence, &long)).await;
    }
    deliver(&kit, &delivery, &says("e1.final", &format!("{long}!"))).await;
    let [post, edit] = [POST, EDIT].map(str::to_owned);
    assert_eq!(calls(&kit), [(post.clone(), false), (post.clone(), false), (post, true), (edit, false)]);
}

/// A press before the final is shown may have taken the keyboard away already: that nothing is left to change is no error.
#[tokio::test(start_paused = true)]
async fn a_final_that_changes_nothing_is_delivered() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    deliver(&kit, &delivery, &stoppable(1, "Hello.")).await;
    kit.platform.answers([crate::kit::refuse(400, "Bad Request: message is not modified: …", json!({}))]);
    deliver(&kit, &delivery, &says("e1.final", "Hello.")).await;
    sleep(Duration::from_secs(1)).await;
    let ledger = kit.store.ledger("e1.final").await.unwrap().unwrap();
    assert_eq!(ledger.state(), turnlock_store::ledger::LedgerState::Sent);
}
