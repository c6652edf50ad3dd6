//! The enumeration of what the inference stage does between two requests: a journal of several steps, hand-backs at the
//! deadline, a call that waits for a person, texts for a turn that runs, models that fail.

use serde_json::{Value, json};

use crate::enumeration::{CHAT, DEATHS, Story, enumerate, say};
use crate::run::Run;

/// A tool that cannot be asked twice, and waits for a person.
fn pay() -> Value {
    json!({"tool": {"name": "pay", "risk": "dangerous", "policy": "ask", "keyed": false, "result": "paid"}})
}

/// The model asks for the tool.
fn wants_to_pay() -> Value {
    json!({"model": {"tools": [{"name": "pay", "input": {"amount": 3}}]}})
}

/// What it says from then on.
fn done() -> Value {
    json!({"model": {"chunks": ["Done."], "times": 99}})
}

fn tap(button: &str) -> Value {
    json!({"tap": {"channel": "telegram", "chat": 1_000_001, "button": button}})
}

/// A message that leads to a question, delivered until it is accepted; then `after`.
fn asked(after: Vec<Value>) -> Vec<Value> {
    let run = json!({"run": true});
    let mut lines = vec![say("pay"), run.clone(), json!({"deliver": {"again": 0}}), run];
    lines.extend(after);
    lines
}

impl Run {
    /// One call was asked for, and this became of it.
    fn approval(&self, state: &str) {
        let states: Vec<Value> = self.list("/approvals").iter().map(|asked| asked["state"].clone()).collect();
        self.check(states == [json!(state)], "what was asked did not come to that");
        let cards = self.shown(CHAT).iter().filter(|text| text.starts_with("May I run this?")).count();
        self.check(cards == 1 || (cards == 2 && self.may_double), "the question does not show once");
        self.check(!self.buttons(), "a button is left");
    }

    /// Whether the chat shows something to press.
    fn buttons(&self) -> bool {
        let messages = self.list(&format!("/chats/{CHAT}/messages"));
        let there = messages.iter().filter(|message| message["deleted"] != json!(true));
        // A card that nobody knows cannot be changed.
        let pressable = there.filter(|message| message["buttons"] != json!([])).count();
        pressable > usize::from(self.may_double)
    }

    /// A tool without keys: never twice, and where it may have run, nobody claims to know.
    fn never_twice(&self, tool: &str, allowed: bool) {
        let starts = self.starts(tool);
        self.check(starts <= 1, &format!("{tool} was started {starts} times"));
        let outcomes: Vec<Value> = self
            .list("/tool_runs")
            .iter()
            .filter(|run| run["name"] == json!(tool))
            .map(|run| run["outcome"].clone())
            .collect();
        if allowed && starts == 0 {
            self.check(outcomes == [json!("unknown")], "a call that did not run is not said to be unknown");
        }
        if !allowed {
            self.check(starts == 0, &format!("{tool} was started"));
        }
    }
}

#[test]
fn a_call_that_is_allowed() {
    enumerate(&Story {
        name: "a call that is allowed",
        setup: vec![pay()],
        once: vec![wants_to_pay()],
        act: asked(vec![done(), tap("Allow")]),
        repeated: &[2],
        kinds: &["kill before", "kill after", "lost answer", "freeze"],
        check: |run| {
            run.settled();
            run.never_twice("pay", true);
            run.approval("allowed");
            run.check(run.user_texts(0) == ["pay"], "the message is not there once");
            run.shows_once(CHAT, "Done.");
        },
    });
}

#[test]
fn a_call_that_is_denied() {
    enumerate(&Story {
        name: "a call that is denied",
        setup: vec![pay()],
        once: vec![wants_to_pay()],
        act: asked(vec![done(), tap("Deny")]),
        repeated: &[2],
        kinds: DEATHS,
        check: |run| {
            run.settled();
            run.never_twice("pay", false);
            run.approval("denied");
            run.shows_once(CHAT, "Done.");
        },
    });
}

/// Whoever is pressed after the time is over finds nothing: nobody presses here.
#[test]
fn a_call_that_nobody_decides() {
    enumerate(&Story {
        name: "a call that nobody decides",
        setup: vec![json!({"config": {"agent": {"limits": {"approval_expiry": "5m"}}}}), pay()],
        once: vec![wants_to_pay()],
        act: asked(vec![json!({"advance": 900}), done(), say("and now?")]),
        repeated: &[2],
        kinds: DEATHS,
        check: |run| {
            run.never_twice("pay", false);
            run.check(run.list("/dead").is_empty(), "something was given up");
            let outcomes = run.outcomes();
            run.check(outcomes[0] == "failed approval_expired", "the turn did not end with the question");
        },
    });
}

/// A stop wakes the turn that waits; what is behind it goes on.
#[test]
fn a_stop_while_a_call_waits() {
    enumerate(&Story {
        name: "a stop while a call waits",
        setup: vec![pay()],
        once: vec![wants_to_pay()],
        act: asked(vec![
            done(),
            say("/stop"),
            json!({"run": true}),
            json!({"deliver": {"again": 2}}),
            json!({"run": true}),
            say("and now?"),
        ]),
        repeated: &[4],
        kinds: DEATHS,
        check: |run| {
            run.settled();
            run.never_twice("pay", false);
            run.shows_once(CHAT, "Done.");
        },
    });
}

/// Two tools of twenty seconds in ninety: the turn hands its message back and goes on in another invocation.
#[test]
fn a_hand_back_at_the_deadline() {
    enumerate(&Story {
        name: "a hand-back at the deadline",
        setup: vec![
            json!({"config": {"agent": {"limits": {"turn_seconds": 90}}}}),
            json!({"tool": {"name": "pay", "risk": "write", "keyed": false, "result": "paid", "wait": 20}}),
            json!({"tool": {"name": "note", "risk": "write", "keyed": true, "result": "noted", "wait": 20}}),
            json!({"model": {"tools": [{"name": "pay", "input": {"amount": 3}}, {"name": "note", "input": {"x": 1}}]}}),
            json!({"model": {"tools": [{"name": "note", "input": {"x": 2}}]}}),
            done(),
        ],
        once: vec![],
        act: vec![say("pay")],
        repeated: &[0],
        kinds: DEATHS,
        check: |run| {
            run.settled();
            run.check(run.starts("pay") <= 1, "pay was started twice");
            let acquired = run.at("/sessions/0/fence").as_u64().unwrap_or(0);
            run.check(acquired > 1, "nothing was handed back");
            run.check(run.user_texts(0) == ["pay"], "the message is not there once");
            run.shows_once(CHAT, "Done.");
        },
    });
}

/// A text for the turn that runs is read at its next step, or has a turn of its own: once, whatever happens.
#[test]
fn a_text_for_a_turn_that_runs() {
    enumerate(&Story {
        name: "a text for a turn that runs",
        setup: vec![
            json!({"config": {"agent": {"while_busy": {"telegram": "steer"}}}}),
            json!({"tool": {"name": "look", "risk": "read", "keyed": true, "result": "rain", "wait": 3}}),
            json!({"model": {"tools": [{"name": "look", "input": {}}]}}),
            done(),
        ],
        once: vec![],
        act: vec![say("weather?"), json!({"advance": 1}), say("in Bonn")],
        repeated: &[0, 1],
        kinds: DEATHS,
        check: |run| {
            run.settled();
            let said = run.user_texts(0).join("\n");
            for text in ["weather?", "in Bonn"] {
                run.check(said.matches(text).count() == 1, "a message is not there once");
            }
            let answers = run.shown(CHAT).iter().filter(|text| *text == "Done.").count();
            run.check((1..=2 + usize::from(run.may_double)).contains(&answers), "the answers are not one a turn");
        },
    });
}

/// The first model fails before anything shows: the second one answers, in the same turn.
#[test]
fn a_model_that_fails() {
    enumerate(&Story {
        name: "a model that fails",
        setup: vec![
            json!({"config": {"models": [
                {"provider": "scripted", "model": "first", "capabilities": ["tools"]},
                {"provider": "scripted", "model": "second", "capabilities": ["tools"]}]}}),
            json!({"tool": {"name": "pay", "risk": "write", "keyed": false, "result": "paid"}}),
            json!({"model": {"error": "overloaded"}}),
            json!({"model": {"tools": [{"name": "pay", "input": {"amount": 3}}]}}),
            json!({"model": {"error": "overloaded"}}),
            done(),
        ],
        once: vec![],
        act: vec![say("pay")],
        repeated: &[0],
        kinds: DEATHS,
        check: |run| {
            run.settled();
            run.check(run.starts("pay") <= 1, "pay was started twice");
            run.shows_once(CHAT, "Done.");
        },
    });
}
