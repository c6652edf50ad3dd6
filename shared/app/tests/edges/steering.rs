//! Texts that reach a turn that runs. V9 is a trace of the protocol check.

use std::time::Duration;

use serde_json::json;
use tokio::time::{sleep, timeout};
use turnlock_app::turn::Handled;
use turnlock_domain::commit::Draft;
use turnlock_domain::ids::EventId;
use turnlock_domain::message::Role;
use turnlock_domain::turn::{Outcome, Usage};
use turnlock_store::steer::Steered;

use crate::talk::{Talk, steer};

/// While the next call runs, somebody says this: it is queued, and control has its copy.
async fn says_meanwhile(talk: &Talk, id: &str, text: &str) {
    talk.hears(id, text).await;
    let (store, envelope) = (talk.kit.store.clone(), talk.envelope(id, text));
    talk.ran.during_the_next(async move {
        assert_eq!(steer(&store, &envelope).await, Steered::Added);
    });
}

fn merged(into: &str) -> Option<Outcome> {
    Some(Outcome::Merged { into: EventId::from_stored(into) })
}

#[tokio::test(start_paused = true)]
async fn a_text_reaches_the_model_at_the_next_step_and_its_own_turn_is_none() {
    let talk = Talk::new().await;
    talk.model_calls(&[("look", json!({ "n": 1 }))]);
    talk.model_calls(&[("look", json!({ "n": 2 }))]);
    talk.model_says("In French, then.");
    talk.hears("e1", "translate").await;
    says_meanwhile(&talk, "e2", "to French").await;
    assert_eq!(talk.settle().await, 2);
    assert!(!talk.request(0).contains("to French") && talk.request(1).contains("to French"));
    assert_eq!(talk.request(2).matches("to French").count(), 1, "it is said once");
    assert_eq!((talk.outcome("e1").await, talk.outcome("e2").await), (Some(Outcome::Replied), merged("e1")));
    assert_eq!(talk.model.requests().len(), 3);
    let history = talk.history().await;
    assert_eq!(history.len(), 1);
    let heard = &history[0].messages[2];
    assert_eq!((heard.role, heard.text().as_str()), (Role::User, "to French"), "behind the results");
    assert_eq!(talk.sent().len(), 1, "one answer for both");
    assert!(talk.head().await.steer.is_empty());
}

/// Trace V9 (a): control is late, the text's own turn runs: it is not added, and the turn does not hear itself.
#[tokio::test(start_paused = true)]
async fn v9_a_turn_never_hears_itself() {
    let talk = Talk::new().await;
    talk.model_calls(&[("look", json!({ "n": 1 }))]);
    talk.model_says("Yes.");
    talk.hears("e2", "are you there?").await;
    let (store, envelope) = (talk.kit.store.clone(), talk.envelope("e2", "are you there?"));
    talk.ran.during_the_next(async move {
        assert_eq!(steer(&store, &envelope).await, Steered::NotNow);
    });
    talk.settle().await;
    assert_eq!(talk.request(1).matches("are you there?").count(), 1);
}

/// Trace V9 (b): the text was answered meanwhile by itself; the turn that used it commits all the same.
#[tokio::test(start_paused = true)]
async fn v9_no_marker_is_overwritten() {
    let talk = Talk::new().await;
    talk.model_calls(&[("look", json!({ "n": 1 }))]);
    talk.model_calls(&[("look", json!({ "n": 2 }))]);
    talk.model_says("Both.");
    talk.hears("e1", "one").await;
    let envelopes = [talk.envelope("e2", "two"), talk.envelope("e3", "three")];
    let store = talk.kit.store.clone();
    talk.ran.during_the_next(async move {
        for envelope in &envelopes {
            assert_eq!(steer(&store, envelope).await, Steered::Added);
        }
    });
    let (store, session, at) = (talk.kit.store.clone(), talk.session(), talk.kit.clock.now_ms());
    talk.ran.during_the_next(async move {
        let draft = Draft {
            event_id: EventId::from_stored("e2"),
            session,
            generation: 0,
            fence: 9,
            first: 0,
            messages: Vec::new(),
            outcome: Outcome::Answered,
            usage: Usage::default(),
            calls: Vec::new(),
            owed: Vec::new(),
            merged: Vec::new(),
            at,
        };
        store.put_marker(&draft).await.unwrap();
    });
    assert_eq!(talk.settle().await, 1);
    assert_eq!(talk.outcome("e1").await, Some(Outcome::Replied));
    assert_eq!((talk.outcome("e2").await, talk.outcome("e3").await), (Some(Outcome::Answered), merged("e1")));
    assert!(talk.head().await.steer.is_empty());
}

/// Trace V9 (c): the worker that used the text dies after its step. The successor knows, and no later turn takes it.
#[tokio::test(start_paused = true)]
async fn v9_a_text_that_a_dead_worker_used_is_not_used_again() {
    let talk = Talk::new().await;
    talk.model_calls(&[("look", json!({ "n": 1 }))]);
    talk.model_calls(&[("look", json!({ "n": 2 }))]);
    talk.hears("e1", "translate").await;
    says_meanwhile(&talk, "e2", "to French").await;
    talk.ran.during_the_next(sleep(Duration::from_secs(1000)));
    assert!(timeout(Duration::from_secs(60), talk.take()).await.is_err(), "it died in its second step");
    talk.model_calls(&[("look", json!({ "n": 3 }))]);
    talk.model_says("In French, then.");
    talk.model_says("Anything else?");
    talk.hears("e3", "thanks").await;
    talk.settle().await;
    assert_eq!((talk.outcome("e1").await, talk.outcome("e2").await), (Some(Outcome::Replied), merged("e1")));
    assert_eq!(talk.outcome("e3").await, Some(Outcome::Replied));
    let said: Vec<_> = (0..5).map(|nth| talk.request(nth).matches("to French").count()).collect();
    assert_eq!(said, [0, 1, 1, 1, 1], "once, in the same place, also in the history");
}

/// Trace V9: a turn that is stopped takes no text along: the queued copy is a turn of its own.
#[tokio::test(start_paused = true)]
async fn v9_what_a_stopped_turn_heard_runs_by_itself() {
    let talk = Talk::new().await;
    talk.model_calls(&[("look", json!({ "n": 1 }))]);
    talk.model_calls(&[("look", json!({ "n": 2 }))]);
    talk.hears("e1", "translate").await;
    says_meanwhile(&talk, "e3", "to French").await;
    let (store, session) = (talk.kit.store.clone(), talk.session());
    talk.ran.during_the_next(async move {
        store.stop(&session, &crate::talk::place(2)).await.unwrap();
    });
    assert_eq!(talk.take().await, Some(Handled::Done));
    assert_eq!((talk.outcome("e1").await, talk.outcome("e3").await), (Some(Outcome::Stopped), None));
    talk.model_says("What in French?");
    assert_eq!(talk.take().await, Some(Handled::Done));
    assert_eq!(talk.outcome("e3").await, Some(Outcome::Replied));
    assert!(talk.head().await.steer.is_empty());
    assert_eq!(talk.request(2).matches("to French").count(), 1, "it is said once, in its own turn");
}

/// Trace V9 (d): a text that came too late for the turn is its own turn's, and does not stay on the head.
#[tokio::test(start_paused = true)]
async fn v9_a_text_that_came_too_late_is_its_own_turns() {
    let talk = Talk::new().await;
    talk.model_calls(&[("look", json!({ "n": 1 }))]);
    talk.model.push(serde_json::from_value(json!({ "chunks": [{ "wait": 10 }, "Translated."], "times": 1 })).unwrap());
    talk.hears("e1", "translate").await;
    talk.hears("e2", "to French").await;
    let late = async {
        sleep(Duration::from_secs(5)).await;
        assert_eq!(steer(&talk.kit.store, &talk.envelope("e2", "to French")).await, Steered::Added);
    };
    let (handled, ()) = tokio::join!(talk.take(), late);
    assert_eq!((handled, talk.outcome("e2").await), (Some(Handled::Done), None));
    assert_eq!(talk.head().await.steer.len(), 1);
    talk.model_says("Translated to French.");
    talk.settle().await;
    assert_eq!(talk.outcome("e2").await, Some(Outcome::Replied));
    assert!(talk.head().await.steer.is_empty());
}

/// A turn that waits for a person hears what was said when it goes on.
#[tokio::test(start_paused = true)]
async fn a_parked_turn_hears_what_was_said_when_it_goes_on() {
    let talk = Talk::new().await;
    talk.model_calls(&[("pay", json!({ "n": 1 }))]);
    talk.hears("e1", "pay").await;
    talk.take().await;
    talk.hears("e2", "and thank them").await;
    assert_eq!(steer(&talk.kit.store, &talk.envelope("e2", "and thank them")).await, Steered::Added);
    talk.decide(turnlock_store::approvals::Verdict::Allow).await;
    talk.model_says("Paid, with thanks.");
    assert_eq!(talk.settle().await, 2);
    assert!(talk.request(1).contains("and thank them"));
    assert_eq!(talk.outcome("e2").await, merged("e1"));
}
