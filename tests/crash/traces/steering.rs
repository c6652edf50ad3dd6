//! Trace V9: texts for a turn that runs.

use serde_json::{Value, json};

use super::{CHAT, advance, event, expect, freeze, play, say};
use crate::run::Run;

/// Messages that come while a turn runs are for that turn.
fn steers() -> Vec<Value> {
    vec![
        json!({"config": {"agent": {"while_busy": {"telegram": "steer"}, "limits": {"concurrency": 2}}}}),
        json!({"tool": {"name": "look", "risk": "read", "keyed": true, "result": "rain", "wait": 10}}),
    ]
}

fn looks() -> Value {
    json!({"model": {"tools": [{"name": "look", "input": {}}]}})
}

fn says(text: &str) -> Value {
    json!({"model": {"chunks": [text]}})
}

fn with(more: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut lines = steers();
    lines.extend(more);
    lines
}

impl Run {
    /// How often a text stands in the conversation.
    fn said(&self, text: &str) -> usize {
        self.user_texts(0).join("\n").matches(text).count()
    }
}

/// What steering is for: the text reaches the model at the next step, and its queued copy does nothing.
#[test]
fn v9_a_text_reaches_the_turn_that_runs_and_has_no_turn_of_its_own() {
    let lines = with([
        looks(),
        says("In Bonn it rains."),
        say("weather?"),
        advance(2),
        say("in Bonn"),
        advance(1),
        expect(json!({"/sessions/0/steer": 1, "/model_requests/#": 1})),
        advance(10),
        expect(json!({"/sessions/0/steer": 0, "/model_requests/#": 2, "/events/1/outcome": "committed"})),
    ]);
    let run = play("V9", &lines);
    run.settled();
    run.check(run.shown(CHAT) == ["In Bonn it rains."], "there is not one answer");
    run.check(run.model_requests() == 2, "the queued copy asked the model");
    run.check(run.said("in Bonn") == 1, "the text does not stand there once");
    run.check(run.model_request(1).contains("in Bonn"), "the text did not reach the model");
}

/// Trace V9 (a): control is slow, and the older turn ends before it stores the text. The text's own turn runs; it does not
/// steer itself.
#[test]
fn v9a_a_turn_does_not_steer_itself() {
    let lines = with([
        says("One."),
        looks(),
        says("Two."),
        say("m1"),
        // The commit of m1 waits until m2 is on its way.
        freeze("store", "TransactWriteItems", 1, 3),
        advance(2),
        say("m2"),
        // Control's store of the text.
        freeze("store", "TransactWriteItems", 1, 6),
        advance(4),
        expect(json!({"/events/0/outcome": "committed", "/sessions/0/unfinished": event(2), "/sessions/0/steer": 0})),
        advance(5),
        // Control has stored nothing: the unfinished event is the text's own.
        expect(json!({"/sessions/0/unfinished": event(2), "/sessions/0/steer": 0})),
    ]);
    let run = play("V9 (a)", &lines);
    run.settled();
    run.check(run.shown(CHAT) == ["One.", "Two."], "there is not one answer for each");
    run.check(run.said("m2") == 1, "the turn steered itself");
}

/// Trace V9 (b): control is slower still, and the text's own turn has committed. No later turn gets the text, and no
/// marker is written again.
#[test]
fn v9b_a_text_that_is_answered_reaches_no_later_turn() {
    let lines = with([
        says("One."),
        says("Two."),
        looks(),
        says("Three."),
        say("m1"),
        freeze("store", "TransactWriteItems", 1, 3),
        advance(2),
        say("m2"),
        freeze("store", "TransactWriteItems", 1, 20),
        advance(5),
        expect(json!({"/events/0/outcome": "committed", "/events/1/outcome": "committed", "/sessions/0/steer": 0})),
        say("m3"),
        advance(5),
        expect(json!({"/sessions/0/unfinished": event(3)})),
        // Control wakes at 22 s, while m3 runs.
        advance(60),
    ]);
    let run = play("V9 (b)", &lines);
    run.settled();
    run.check(run.shown(CHAT) == ["One.", "Two.", "Three."], "there is not one answer for each");
    run.check(run.said("m2") == 1, "a later turn got the text");
}

/// Trace V9 (c): the turn has used the text in a step, and its worker dies. The successor knows that it was used: it is
/// merged by that commit, and not answered again.
#[test]
fn v9c_a_successor_knows_which_texts_were_used() {
    let lines = with([
        looks(),
        looks(),
        says("In Bonn it rains."),
        // Asked again by the successor.
        says("In Bonn it rains."),
        say("weather?"),
        advance(2),
        say("in Bonn"),
        advance(9),
        // The text was used by the second step, whose tool runs. The next is the commit.
        expect(json!({"/model_requests/#": 2, "/events/1/outcome": null})),
        json!({"kill": {"store": "TransactWriteItems", "nth": 1, "after": false}}),
        json!({"run": true}),
    ]);
    let run = play("V9 (c)", &lines);
    run.settled();
    run.check(run.at("/sessions/0/fence").as_u64() > Some(1), "there was no successor");
    run.check(run.outcomes() == ["committed ", "committed merged"], "the text was not merged by that commit");
    run.check(run.shown(CHAT) == ["In Bonn it rains."], "the text was answered again");
    run.check(run.said("in Bonn") == 1, "the text does not stand there once");
    run.check(run.at("/sessions/0/steer") == json!(0), "the text is left");
}

/// Trace V9 (d): a text that comes too late for the last step is not left behind: it has its own turn.
#[test]
fn v9d_a_text_that_no_step_used_has_its_own_turn() {
    let lines = with([
        json!({"model": {"chunks": ["One", {"wait": 10}, "."]}}),
        says("Two."),
        say("m1"),
        advance(2),
        say("m2"),
        advance(1),
        expect(json!({"/sessions/0/steer": 1, "/sessions/0/unfinished": event(1)})),
        advance(60),
        expect(json!({"/sessions/0/steer": 0, "/events/1/outcome": "committed"})),
        say("m3"),
    ]);
    let run = play("V9 (d)", &lines);
    run.settled();
    run.check(run.shown(CHAT) == ["One.", "Two.", "m3"], "there is not one answer for each");
    run.check(run.said("m2") == 1, "the text does not stand there once");
}

/// Trace V9, the end of it: a turn has used a text and is stopped before it answers. The stop names that turn alone, so the
/// text's queued copy runs.
#[test]
fn v9_a_stopped_turn_gives_back_the_texts_that_it_did_not_answer() {
    let lines = with([
        looks(),
        json!({"model": {"chunks": ["It", {"wait": 60}, " rains."]}}),
        says("Afterwards."),
        say("weather?"),
        advance(2),
        say("in Bonn"),
        advance(13),
        // The model has the text, and is in the middle of its answer.
        expect(json!({"/model_requests/#": 2, "/sessions/0/steer": 1, "/sessions/0/unfinished": event(1)})),
        json!({"tap": {"channel": "telegram", "chat": 1_000_001, "button": "Stop"}}),
        advance(30),
    ]);
    let run = play("V9, a stop", &lines);
    run.settled();
    run.check(run.model_request(1).contains("in Bonn"), "the turn had not heard the text");
    run.check(run.outcomes()[..2] == ["committed stopped", "committed "], "the stop did not reach the first one alone");
    run.check(run.shown(CHAT) == ["It\n\n(stopped)", "Afterwards."], "the text was not answered");
    run.check(run.at("/sessions/0/steer") == json!(0), "the text is left");
    run.check(run.said("in Bonn") == 1, "the text does not stand there once");
}
