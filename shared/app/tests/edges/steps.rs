//! The steps of a turn: what runs at once, what is handed back in the middle, what holds over many invocations.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use turnlock_app::turn::Handled;
use turnlock_domain::turn::{Failure, Outcome};
use turnlock_models::wire::Wire;
use turnlock_models::{Capabilities, Router, Scripted};

use crate::talk::Talk;

const UNKNOWN: &str = "This call was started, then interrupted";

/// Neighbours that only read run at once, four at a time; the results stand where the calls do.
#[tokio::test(start_paused = true)]
async fn reads_run_at_once_at_most_four_and_their_results_keep_their_order() {
    let talk = Talk::new().await;
    let calls: Vec<_> = (0..10).map(|n| ("look", json!({ "n": n, "seconds": 10 - n }))).collect();
    talk.model_calls(&calls);
    talk.model_says("Seen.");
    talk.hears("e1", "look around").await;
    let started = Instant::now();
    assert_eq!(talk.take().await, Some(Handled::Done));
    assert_eq!(talk.ran.most_at_once(), 4);
    assert!(started.elapsed() < Duration::from_secs(25), "{:?}", started.elapsed());
    let expected: Vec<_> = (0..10).map(|n| format!("did look {n}")).collect();
    assert_eq!(talk.results(0).await, expected);
}

/// What writes runs alone, in its place.
#[tokio::test(start_paused = true)]
async fn what_writes_runs_alone_and_in_order() {
    let talk = Talk::new().await;
    let names = ["look", "look", "note", "look", "note", "note"];
    let calls: Vec<_> = names.iter().enumerate().map(|(n, name)| (*name, json!({ "n": n, "seconds": 5 }))).collect();
    talk.model_calls(&calls);
    talk.model_says("Done.");
    talk.hears("e1", "go").await;
    let started = Instant::now();
    talk.take().await;
    assert_eq!(started.elapsed().as_secs(), 25, "two reads at once, then one after another");
    assert_eq!(talk.ran.calls()[2..], ["note 2", "look 3", "note 4", "note 5"]);
}

/// A step whose calls take longer than an invocation goes on in the next one: nothing runs twice, nothing is unknown.
#[tokio::test(start_paused = true)]
async fn a_step_that_is_handed_back_in_the_middle_loses_nothing() {
    let talk = Talk::new().await;
    let calls: Vec<_> = (0..5).map(|n| ("note", json!({ "n": n, "seconds": 100 }))).collect();
    talk.model_calls(&calls);
    talk.model_says("Noted.");
    talk.hears("e1", "note").await;
    assert_eq!(talk.take().await, Some(Handled::GivenBack(Duration::ZERO)));
    assert_eq!(talk.ran.calls(), ["note 0", "note 1"]);
    assert_eq!(talk.settle().await, 2);
    assert_eq!(talk.ran.calls(), ["note 0", "note 1", "note 2", "note 3", "note 4"]);
    let expected: Vec<_> = (0..5).map(|n| format!("did note {n}")).collect();
    assert_eq!(talk.results(0).await, expected);
    assert_eq!(talk.model.requests().len(), 2, "the model was not asked again");
}

/// The same of reads that run at once.
#[tokio::test(start_paused = true)]
async fn reads_that_are_handed_back_in_the_middle_lose_nothing() {
    let talk = Talk::new().await;
    let calls: Vec<_> = (0..14).map(|n| ("look", json!({ "n": n, "seconds": 100 }))).collect();
    talk.model_calls(&calls);
    talk.model_says("Seen.");
    talk.hears("e1", "look").await;
    assert_eq!(talk.take().await, Some(Handled::GivenBack(Duration::ZERO)));
    assert_eq!(talk.ran.calls().len(), 8);
    talk.settle().await;
    assert_eq!(talk.ran.calls().len(), 14);
    assert_eq!(talk.results(0).await.len(), 14);
}

/// Who takes over from the next one does not believe the hand-back any more: what that one may have started is unknown.
#[tokio::test(start_paused = true)]
async fn what_a_successor_may_have_started_is_unknown() {
    let talk = Talk::new().await;
    let calls: Vec<_> = (0..4).map(|n| ("note", json!({ "n": n, "seconds": 100 }))).collect();
    talk.model_calls(&calls);
    talk.model_says("Noted.");
    talk.hears("e1", "note").await;
    talk.take().await;
    assert!(timeout(Duration::from_secs(50), talk.take()).await.is_err(), "it died in the third call");
    talk.settle().await;
    assert_eq!(talk.ran.calls(), ["note 0", "note 1"]);
    let results = talk.results(0).await;
    assert!(results[2].starts_with(UNKNOWN), "{results:?}");
}

/// A worker dies while reads run at once: what they had found stays, and the others are asked for again.
#[tokio::test(start_paused = true)]
async fn of_reads_whose_worker_died_only_those_without_a_result_run_again() {
    let talk = Talk::new().await;
    let calls: Vec<_> =
        [1, 40, 2, 40].iter().enumerate().map(|(n, s)| ("look", json!({ "n": n, "seconds": s }))).collect();
    talk.model_calls(&calls);
    talk.model_says("Seen.");
    talk.hears("e1", "look").await;
    assert!(timeout(Duration::from_secs(10), talk.take()).await.is_err(), "it died");
    assert_eq!(talk.ran.calls(), ["look 0", "look 2"]);
    talk.settle().await;
    assert_eq!(talk.ran.calls(), ["look 0", "look 2", "look 1", "look 3"]);
    assert_eq!(talk.results(0).await, ["did look 0", "did look 1", "did look 2", "did look 3"]);
}

/// A turn that is stopped between two invocations says of what it had not started that it was not executed.
#[tokio::test(start_paused = true)]
async fn a_stop_between_two_invocations_leaves_no_unknown_calls() {
    let talk = Talk::new().await;
    let calls: Vec<_> = (0..4).map(|n| ("note", json!({ "n": n, "seconds": 100 }))).collect();
    talk.model_calls(&calls);
    talk.hears("e1", "note").await;
    talk.take().await;
    talk.stop(2).await;
    talk.settle().await;
    assert_eq!(talk.outcome("e1").await, Some(Outcome::Stopped));
    let results = talk.results(0).await;
    assert_eq!(results[..2], ["did note 0", "did note 1"]);
    assert!(results[2..].iter().all(|result| result.starts_with("This call was not executed")), "{results:?}");
}

/// 39 steps and an answer over seven invocations: each call runs once, the model sees all of it each time.
#[tokio::test(start_paused = true)]
async fn a_turn_of_forty_steps_spans_many_invocations() {
    let talk = Talk::new().await;
    for n in 0..39 {
        talk.model_calls(&[("note", json!({ "n": n, "seconds": 35 }))]);
    }
    talk.model_says("All noted.");
    talk.hears("e1", "note a lot").await;
    let receives = talk.settle().await;
    assert!((5..9).contains(&receives), "{receives}");
    assert_eq!(talk.ran.calls(), (0..39).map(|n| format!("note {n}")).collect::<Vec<_>>());
    assert_eq!(talk.outcome("e1").await, Some(Outcome::Replied));
    assert_eq!(talk.model.requests().len(), 40, "no step was asked for twice");
    assert_eq!(talk.history().await[0].messages.len(), 2 + 2 * 39);
    assert!(talk.request(39).contains("did note 0") && talk.request(39).contains("did note 38"));
}

/// How often a call was made is counted over all invocations.
#[tokio::test(start_paused = true)]
async fn the_same_call_is_refused_the_fourth_time_also_in_another_invocation() {
    let talk = Talk::new().await;
    for _ in 0..5 {
        talk.model_calls(&[("note", json!({ "n": 1, "seconds": 100 }))]);
    }
    talk.model_says("Enough.");
    talk.hears("e1", "note").await;
    assert!(talk.settle().await > 1);
    assert_eq!(talk.ran.calls().len(), 3);
    let results = talk.results(0).await;
    assert!(results[3].starts_with("This call was made three times"), "{results:?}");
}

/// The journal stays small: of very many calls in one step the first ones are made.
#[tokio::test(start_paused = true)]
async fn of_very_many_calls_in_a_step_the_first_are_made() {
    let talk = Talk::new().await;
    let calls: Vec<_> = (0..30).map(|n| ("look", json!({ "n": n }))).collect();
    talk.model_calls(&calls);
    talk.model_says("Seen.");
    talk.hears("e1", "look").await;
    assert_eq!(talk.take().await, Some(Handled::Done));
    assert_eq!(talk.ran.calls().len(), 16);
    let results = talk.results(0).await;
    assert_eq!(results.len(), 30);
    assert!(results[16..].iter().all(|result| result.contains("too many were asked for at once")));
    let journal = talk.kit.store.journal(&talk.session(), &turnlock_domain::ids::EventId::from_stored("e1")).await;
    assert_eq!(journal.unwrap().results.len(), 16);
}

/// A call that no invocation is long enough for is not started; the turn is given up after its attempts.
#[tokio::test(start_paused = true)]
async fn a_call_that_never_has_the_time_ends_the_turn() {
    let talk = Talk::new().await;
    talk.model_calls(&[("note", json!({ "n": 1 }))]);
    talk.hears("e1", "note").await;
    for _ in 0..20 {
        sleep(Duration::from_secs(65)).await;
        if talk.take_within(Duration::from_secs(100)).await == Some(Handled::Done) {
            break;
        }
    }
    assert_eq!(talk.outcome("e1").await, Some(Outcome::Failed { reason: Failure::TooManyAttempts }));
    assert!(talk.ran.calls().is_empty());
}

/// A secret in the model's words reaches neither the history nor the chat.
#[tokio::test(start_paused = true)]
async fn a_secret_in_a_reply_is_masked() {
    let talk = Talk::new().await;
    talk.model_says("The key is AKIAIOSFODNN7EXAMPLE.");
    talk.hears("e1", "what is the key?").await;
    talk.take().await;
    assert_eq!(talk.sent()[0].text(), "The key is [secret removed].");
    assert_eq!(talk.history().await[0].messages[1].text(), "The key is [secret removed].");
}

/// An answer that was blocked in the middle asks for nothing, however whole its calls look; of one that ended for a reason
/// nobody knows the last call may be cut off.
#[tokio::test(start_paused = true)]
async fn no_call_of_a_blocked_answer_runs() {
    let refused = Outcome::Failed { reason: Failure::ModelRefused };
    let table = [
        ("refused", json!(["I cannot say that."]), &[][..], Outcome::Replied),
        ("refused", json!([]), &[], refused),
        ("bored", json!(["Well."]), &["note 1"], Outcome::Replied),
    ];
    for (stop, chunks, ran, outcome) in table {
        let talk = Talk::new().await;
        let calls = [1, 2].map(|n| json!({ "name": "note", "input": { "n": n } }));
        script(&talk, json!({ "chunks": chunks, "tools": calls, "stop": stop }));
        talk.model_says("Done.");
        talk.hears("e1", "go").await;
        assert_eq!(talk.take().await, Some(Handled::Done));
        assert_eq!(talk.ran.calls(), ran, "{stop}");
        assert_eq!(talk.outcome("e1").await, Some(outcome), "{stop}");
        if ran.is_empty() && chunks[0].is_string() {
            assert_eq!(talk.sent()[0].text(), "I cannot say that.");
        }
    }
}

/// Reasoning that nobody signed goes back to its model while the turn lasts, and is in no history.
#[tokio::test(start_paused = true)]
async fn only_sealed_reasoning_is_kept() {
    let talk = Talk::new().await;
    let chunks = json!([{ "reasoning": "plan" }, "Well.", { "reasoning": "signed", "signature": "c2ln" }]);
    script(&talk, json!({ "chunks": chunks, "tools": [{ "name": "look", "input": { "n": 1 } }] }));
    script(&talk, json!({ "chunks": chunks }));
    talk.hears("e1", "go").await;
    talk.take().await;
    assert!(talk.request(1).contains("plan"), "{}", talk.request(1));
    let kept = serde_json::to_string(&talk.history().await[0].messages).unwrap();
    assert!(!kept.contains("plan"), "{kept}");
    assert_eq!(kept.matches("c2ln").count(), 2, "{kept}");
}

/// What a stopped step says is in the reply, also where the model's text begins inside its reasoning.
#[tokio::test(start_paused = true)]
async fn what_was_said_before_a_stop_is_stripped_once() {
    let mut talk = Talk::new().await;
    let capabilities = Capabilities { tools: true, starts_in_reasoning: true, ..Capabilities::default() };
    talk.model = Arc::new(Scripted::new(Wire::Neutral).with_capabilities(capabilities));
    talk.agent.models = Arc::new(Router::single(talk.model.clone()));
    let calls = json!([{ "name": "look", "input": { "n": 1 } }]);
    script(&talk, json!({ "chunks": ["hm</think>I will look.", { "wait": 1 }], "tools": calls }));
    talk.hears("e1", "go").await;
    let stop = async {
        sleep(Duration::from_millis(500)).await;
        talk.stop(2).await;
    };
    let (handled, ()) = tokio::join!(talk.take(), stop);
    assert_eq!((handled, talk.outcome("e1").await), (Some(Handled::Done), Some(Outcome::Stopped)));
    let text = talk.sent()[0].text();
    assert!(text.starts_with("I will look.") && !text.contains("hm"), "{text}");
    assert_eq!(talk.ran.calls(), Vec::<String>::new());
}

fn script(talk: &Talk, line: Value) {
    talk.model.push(serde_json::from_value(line).unwrap());
}
