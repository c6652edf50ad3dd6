//! Traces V5 to V8: a call that waits for a person.

use serde_json::{Value, json};

use super::{CHAT, advance, event, expect, freeze, limits, play, say};
use crate::run::Run;

/// A tool that waits for a person.
fn tool(keyed: bool) -> Value {
    json!({"tool": {"name": "pay", "risk": "dangerous", "policy": "ask", "keyed": keyed, "result": "paid", "wait": 10}})
}

fn tap(button: &str) -> Value {
    json!({"tap": {"channel": "telegram", "chat": 1_000_001, "button": button}})
}

/// The process dies at the nth such request from here.
fn kill(port: &str, operation: &str, nth: u32, after: bool) -> Value {
    json!({"kill": {port: operation, "nth": nth, "after": after}})
}

/// It is allowed, runs, and the process dies before the result is stored.
fn result_lost() -> [Value; 4] {
    [
        tap("Allow"),
        // All that is said about the decision is said; the tool runs.
        advance(5),
        kill("store", "PutItem", 1, false),
        json!({"run": true}),
    ]
}

/// A message whose turn asks, and waits. What the model says then is "Done."
fn parked(keyed: bool) -> Vec<Value> {
    vec![
        tool(keyed),
        json!({"model": {"tools": [{"name": "pay", "input": {"amount": 3}}]}}),
        json!({"model": {"chunks": ["Done."], "for": "turn"}}),
        say("pay"),
        advance(2),
        expect(json!({"/sessions/0/unfinished": event(1), "/sessions/0/locked": false, "/approvals/0/state": "open",
            "/tool_runs/#": 0, "/chats/telegram:main:1000001/messages/#": 1,
            "/chats/telegram:main:1000001/messages/0/buttons": ["Allow", "Deny"]})),
    ]
}

fn with(mut lines: Vec<Value>, more: impl IntoIterator<Item = Value>) -> Vec<Value> {
    lines.extend(more);
    lines
}

impl Run {
    /// How the calls of the tool ended.
    fn pay(&self) -> Vec<String> {
        let runs = self.list("/tool_runs");
        let pays = runs.iter().filter(|run| run["name"] == json!("pay"));
        pays.map(|run| run["outcome"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// Trace V5: the approval is used, its call is started, and the worker dies before the result is stored. The successor
/// does not start it again: nobody knows what came of it, and the model is told so.
#[test]
fn v5_an_approved_call_runs_once_or_is_unknown() {
    let run = play("V5, the result is lost", &with(parked(false), result_lost()));
    run.settled();
    run.check(run.starts("pay") == 1, "it was started twice");
    run.check(run.at("/approvals/0/state") == json!("allowed"), "the decision is gone");
    run.check(run.shown(CHAT).last().is_some_and(|text| text == "Done."), "the turn did not go on");
    run.check(run.at("/sessions/0/messages/2/content/0/is_error") == json!(true), "the model is told that it is done");
}

/// Trace V5 one step earlier: the worker dies between the note that the call was started and the call. That is told as
/// unknown, although it never ran.
#[test]
fn v5_an_approved_call_whose_worker_died_before_it_is_unknown() {
    // The first is control's decision.
    let lines = with(parked(false), [kill("store", "TransactWriteItems", 2, true), tap("Allow"), json!({"run": true})]);
    let run = play("V5, started", &lines);
    run.settled();
    run.check(run.starts("pay") == 0, "it was started by the successor");
    run.check(run.pay() == ["unknown"], "it is not said to be unknown");
}

/// Trace V5, the other reading: a worker that dies before the decision is used has started nothing. The decision is still
/// there, and the successor uses it.
#[test]
fn v5_a_decision_that_was_not_used_is_used_by_the_successor() {
    let lines =
        with(parked(false), [kill("store", "TransactWriteItems", 2, false), tap("Allow"), json!({"run": true})]);
    let run = play("V5, not used", &lines);
    run.settled();
    run.check(run.pay() == ["ok"], "it did not run once");
    run.check(run.list("/approvals").len() == 1, "it was asked for again");
}

/// Trace V5 with a tool that honours keys: it is asked again under its key, without another decision.
#[test]
fn v5_an_approved_call_with_a_key_is_asked_again() {
    let run = play("V5, keyed", &with(parked(true), result_lost()));
    run.settled();
    let keys: Vec<Value> = run.list("/tool_runs").iter().map(|run| run["key"].clone()).collect();
    run.check(keys.len() == 2 && keys[0] == keys[1], "it was not asked again under its key");
    run.check(run.list("/approvals").len() == 1, "it was asked for again");
}

/// Trace V6: twenty sleeps of a quarter of an hour are no attempts, and neither the turn that waits nor the one behind it
/// is too old when somebody decides at last; also when the process was replaced in between.
#[test]
fn v6_waiting_kills_neither_the_turn_that_waits_nor_those_behind_it() {
    let mut lines = vec![limits(json!({"approval_expiry": "7h", "max_wait": "1h"}))];
    lines.extend(parked(false));
    lines.push(say("and then?"));
    // Five hours and a half.
    for n in 0..22 {
        lines.push(advance(900));
        if n % 7 == 3 {
            lines.push(json!({"restart": true}));
        }
    }
    lines.extend([
        expect(json!({"/events/0/outcome": null, "/events/1/outcome": null, "/sessions/0/unfinished": event(1),
            "/approvals/0/state": "open", "/approvals/#": 1, "/dead/#": 0, "/model_requests/#": 1,
            "/chats/telegram:main:1000001/messages/#": 1})),
        tap("Allow"),
        json!({"run": true}),
    ]);
    let run = play("V6", &lines);
    run.settled();
    run.check(run.outcomes()[..2] == ["committed ", "committed "], "somebody was too old");
    run.check(run.at("/events/0/attempts") == json!(1), "waiting was taken for failing");
    run.check(run.pay() == ["ok"], "it did not run once");
    let shown = run.shown(CHAT);
    run.check(shown[1..] == ["Done.", "and then?"], "the answers are wrong");
}

/// Trace V6 with a decision after half an hour and a deploy: the woken turn goes on at once, not when its sleep is over.
#[test]
fn v6_a_decision_after_half_an_hour_and_a_deploy_wakes_the_turn() {
    let lines = with(
        parked(false),
        [
            advance(1_800),
            json!({"config": {"agent": {"name": "Robin"}}}),
            tap("Allow"),
            advance(12),
            expect(json!({"/events/0/outcome": "committed", "/tool_runs/0/outcome": "ok"})),
        ],
    );
    let run = play("V6, a deploy", &lines);
    run.settled();
    run.check(run.starts("pay") == 1, "it did not run once");
}

/// Trace V6 when the wake is lost: a decision costs one sleep, not the turn.
#[test]
fn v6_a_lost_wake_costs_one_sleep() {
    let lines = with(
        parked(false),
        [
            json!({"fault": {"queue": "wake", "error": "unreachable"}}),
            tap("Allow"),
            advance(2),
            expect(json!({"/approvals/0/state": "allowed", "/tool_runs/#": 0})),
            advance(910),
            expect(json!({"/events/0/outcome": "committed", "/tool_runs/0/outcome": "ok"})),
        ],
    );
    let run = play("V6, a lost wake", &lines);
    run.settled();
    run.check(run.starts("pay") == 1, "it did not run once");
}

/// A question that is open for ten minutes more, but for a tenth of a second; then somebody allows it, and control's store
/// of that takes a second.
fn on_the_last_moment() -> Vec<Value> {
    let mut lines = vec![limits(json!({"approval_expiry": "10m", "concurrency": 2}))];
    lines.extend(parked(false));
    lines.extend([json!({"advance": 597.9}), tap("Allow"), freeze("store", "TransactWriteItems", 1, 1)]);
    lines
}

/// Trace V7: the worker has seen no decision and is about to say that the time is over, when control accepts one. The
/// worker's commit is refused; it looks again, and the call runs.
#[test]
fn v7_a_decision_that_was_accepted_is_never_answered_with_expired() {
    // The worker's commit of the expiry.
    let lines = with(
        on_the_last_moment(),
        [
            freeze("store", "TransactWriteItems", 2, 5),
            advance(2),
            expect(json!({"/approvals/0/state": "allowed", "/events/0/outcome": null, "/sessions/0/locked": true})),
            json!({"run": true}),
        ],
    );
    let run = play("V7", &lines);
    run.settled();
    run.check(run.at("/approvals/0/state") == json!("allowed"), "the decision is gone");
    run.check(run.pay() == ["ok"], "what was allowed did not run");
    run.check(!run.shown(CHAT).iter().any(|text| text.contains("in time")), "it is said that nobody decided");
    // The step, the park, the decision, the commit that was refused, the use, the commit.
    run.check(run.asked("store", &event(1), "TransactWriteItems") == 5, "the expiry was not tried");
}

/// Trace V7 the other way round: the turn has said that the time is over when control's store of the decision arrives. It is
/// refused, and whoever pressed is told so.
#[test]
fn v7_a_decision_after_the_expiry_is_not_accepted() {
    let run = play("V7, too late", &with(on_the_last_moment(), [json!({"run": true})]));
    run.quiet();
    run.check(run.at("/approvals/0/state") == json!("expired"), "the decision was accepted");
    run.check(run.at("/events/0/reason") == json!("approval_expired"), "the turn did not end with the question");
    run.check(run.pay().is_empty(), "it ran");
    let told = run.at("/platform_calls/telegram.answerCallbackQuery/0/arguments/text").to_string();
    run.check(told.contains("expired"), "whoever pressed is not told");
}

/// Trace V8: a stop wakes the turn that sleeps. It does not wait for its sleep to end.
#[test]
fn v8_a_stop_wakes_a_turn_that_waits() {
    let lines = with(
        parked(false),
        [
            say("behind"),
            advance(1),
            say("/stop"),
            advance(2),
            expect(
                json!({"/events/0/reason": "stopped", "/events/1/reason": "stopped", "/approvals/0/state": "stopped"}),
            ),
            say("and now?"),
        ],
    );
    let run = play("V8", &lines);
    run.settled();
    run.check(run.pay().is_empty(), "it ran after the stop");
    run.check(run.shown(CHAT).last().is_some_and(|text| text == "Done."), "the next message is not answered");
}

/// Trace V8: somebody allows what is stopped. Whoever comes later is refused, and nothing runs.
#[test]
fn v8_a_decision_after_a_stop_is_refused() {
    let lines = with(
        parked(false),
        [
            // Both at one moment: the button is still there.
            say("/stop"),
            tap("Allow"),
            advance(5),
            expect(json!({"/events/0/reason": "stopped", "/approvals/0/state": "stopped"})),
        ],
    );
    let run = play("V8, allow after stop", &lines);
    run.settled();
    run.check(run.pay().is_empty(), "it ran after the stop");
    let told = run.list("/platform_calls/telegram.answerCallbackQuery");
    run.check(told.len() == 1, "whoever pressed is not answered once");
}
