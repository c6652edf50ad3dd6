//! What the protocol promises beyond the traces: who lost the lock does nothing, who holds it keeps it, what fails for
//! now comes again, what is owed leaves in order.

use serde_json::{Value, json};

use crate::traces::{CHAT, SORRY, advance, event, expect, freeze, limits, play, say};

/// What control answers alone is settled by its marker before its answer is there: an API client is told that it runs,
/// then that it is done, never an empty answer.
#[test]
fn what_control_answers_is_done_when_its_answer_is_there() {
    let look = || json!({"deliver": {"route": "/v1/events/gateway:main:k1", "method": "GET", "body_text": ""}});
    let lines = [
        json!({"deliver": {"route": "/v1/messages", "headers": {"Idempotency-Key": "k1"},
            "body": {"text": "/status", "session": "room"}}}),
        // The only one is the answer's.
        freeze("store", "UpdateItem", 1, 30),
        advance(1),
        look(),
        advance(40),
        look(),
    ];
    let run = play("an answer of control's", &lines);
    run.settled();
    run.check(run.at("/deliveries/1/body/status") == json!("running"), "it is not known that it was obeyed");
    run.check(run.at("/deliveries/1/body/message").is_null(), "there is an answer before there is one");
    run.check(run.at("/deliveries/2/body/status") == json!("done"), "it is not done");
    run.check(run.at("/deliveries/2/body/message/text").as_str().is_some_and(|text| !text.is_empty()), "it is empty");
}

/// Invariant 4: a worker freezes before its commit and wakes while its successor is at work. Its commit is refused by the
/// fence, not only by a marker that is not there yet; the successor's answer is the one.
#[test]
fn a_worker_that_lost_its_lock_commits_nothing_while_its_successor_works() {
    let lines = [
        limits(json!({"concurrency": 2})),
        json!({"model": {"chunks": ["From the first."]}}),
        json!({"model": {"chunks": ["From", {"wait": 30}, " the second."]}}),
        say("who?"),
        freeze("store", "TransactWriteItems", 1, 100),
        advance(99),
        expect(json!({"/sessions/0/fence": 2, "/model_requests/#": 2, "/fence_rejections": 0})),
        advance(2),
        expect(json!({"/fence_rejections": 1, "/sessions/0/locked": true, "/events/0/outcome": null})),
    ];
    let run = play("a lost lock", &lines);
    run.settled();
    run.check(run.shown(CHAT) == ["From the second."], "the successor's answer is the one");
    run.check(run.messages(0).len() == 2, "there is one turn");
}

/// Invariant 4 one step earlier: the worker freezes before it journals a step. The step is refused, so its tool never
/// starts, and the successor's is the first step.
#[test]
fn a_worker_that_lost_its_lock_starts_no_tool() {
    let lines = [
        limits(json!({"concurrency": 2})),
        json!({"tool": {"name": "pay", "risk": "write", "keyed": false, "result": "paid"}}),
        json!({"model": {"tools": [{"name": "pay", "input": {"amount": 1}}]}}),
        json!({"model": {"chunks": [{"wait": 30}], "tools": [{"name": "pay", "input": {"amount": 2}}]}}),
        json!({"model": {"chunks": ["Paid."]}}),
        say("pay"),
        freeze("store", "TransactWriteItems", 1, 100),
        advance(99),
        expect(json!({"/sessions/0/fence": 2, "/model_requests/#": 2, "/fence_rejections": 0})),
        advance(2),
        expect(json!({"/fence_rejections": 1, "/tool_runs/#": 0, "/sessions/0/locked": true})),
    ];
    let run = play("a lost lock before a tool", &lines);
    run.settled();
    run.check(run.starts("pay") == 1, "the tool was started by a worker that had lost its lock");
    run.check(run.at("/tool_runs/0/input/amount") == json!(2), "it is the successor's call");
    run.check(run.shown(CHAT) == ["Paid."], "the successor's answer is the one");
}

/// A turn of several minutes keeps its lock and its message: nobody else begins it.
#[test]
fn a_long_turn_keeps_its_lock_and_its_message() {
    let lines = [
        limits(json!({"concurrency": 2})),
        json!({"model": {"chunks": ["Slow", {"wait": 100}, " and", {"wait": 100}, " steady."]}}),
        say("long"),
        advance(195),
        expect(json!({"/sessions/0/fence": 1, "/sessions/0/locked": true, "/model_requests/#": 1})),
    ];
    let run = play("a long turn", &lines);
    run.settled();
    run.check(run.shown(CHAT) == ["Slow and steady."], "it is answered once");
    run.check(run.at("/sessions/0/fence") == json!(1), "somebody else began it");
    // Nine renewals of lock and message beside the acquire, the first visibility, and the delivery's one of each; and of
    // each of two frames its slot, its copy and its visibility.
    run.check(run.asked("store", &event(1), "UpdateItem") == 11 + 4, "the lock was not renewed every 20 s");
    run.check(run.asked("queue", &event(1), "set_visibility") == 11 + 2, "the message was not renewed every 20 s");
}

/// No tool starts in the last 15 s of a lease: a worker that slept so long before its step gives the turn back, and its
/// successor starts it.
#[test]
fn no_tool_starts_at_the_end_of_a_lease() {
    let lines = [
        json!({"tool": {"name": "look", "risk": "read", "keyed": true, "result": "rain"}}),
        json!({"model": {"tools": [{"name": "look", "input": {}}]}}),
        json!({"model": {"chunks": ["It rains."]}}),
        say("weather"),
        freeze("store", "TransactWriteItems", 1, 50),
        advance(49),
        expect(json!({"/sessions/0/fence": 1, "/tool_runs/#": 0})),
    ];
    let run = play("the end of a lease", &lines);
    run.settled();
    run.check(run.at("/sessions/0/fence") == json!(2), "the turn was not given back");
    run.check(run.starts("look") == 1, "the tool was started twice");
    run.check(run.model_requests() == 2, "the step was not resumed");
    run.check(run.shown(CHAT) == ["It rains."], "it is answered once");
}

/// A model that fails for now is asked again within seconds by the same worker, three times by each, and not for ever.
#[test]
fn what_fails_for_now_comes_again_soon_and_five_times() {
    let lines = [
        json!({"model": {"error": "overloaded", "times": 1}}),
        say("once"),
        advance(5),
        expect(json!({"/events/0/outcome": "committed", "/model_requests/#": 2, "/sessions/0/fence": 1})),
        json!({"model": {"error": "overloaded", "times": 99}}),
        say("always"),
        advance(180),
        expect(json!({"/events/1/reason": "too_many_attempts", "/model_requests/#": 17})),
    ];
    let run = play("a failing model", &lines);
    run.quiet();
    run.check(run.shown(CHAT) == ["once", SORRY], "each message is answered once");
}

/// A provider that limits the rate is nobody's failure: the turn waits for it, however often it is asked.
#[test]
fn a_throttled_call_is_no_attempt() {
    let lines = [json!({"model": {"error": "throttled", "times": 8}}), say("patience")];
    let run = play("a throttled model", &lines);
    run.settled();
    run.check(run.model_requests() == 9, "it was not asked nine times");
    run.check(run.shown(CHAT) == ["patience"], "it is answered once");
}

/// The final leaves before the jobs: the worker sleeps between the two sends.
#[test]
fn the_final_leaves_before_the_job() {
    let turn = |n: u32| {
        [
            json!({"role": "user", "content": [{"type": "text", "text": format!("fact number {n}")}]}),
            json!({"role": "assistant", "content": [{"type": "text", "text": "noted"}]}),
        ]
    };
    let messages: Vec<Value> = (0..6).flat_map(turn).collect();
    let lines = [
        limits(json!({"consolidate_after": 10})),
        json!({"session": {"key": "telegram:1000001", "messages": messages}}),
        say("hi"),
        freeze("queue", "send", 2, 30),
        advance(29),
        expect(json!({"/chats/telegram:main:1000001/messages/0/text": "hi", "/jobs/#": 0, "/sessions/0/boundary": 0})),
    ];
    let run = play("a final and a job", &lines);
    run.settled();
    run.check(run.list("/jobs").len() == 1, "the job came");
}
