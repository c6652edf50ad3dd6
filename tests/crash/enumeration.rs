//! Every request of a story fails in every way, one at a time: for n = 1, 2, … until the story has no nth request. After
//! each run everything has settled as if nothing had happened, or as the fault allows and the ledger says.

use serde_json::{Value, json};
use turnlock_domain::message::Message;
use turnlock_replay::Played;

use crate::run::{Run, played, try_played};

/// More requests than any story makes: an enumeration that does not end is a fault of its own.
const MOST_REQUESTS: u32 = 200;
/// How many answers of the model one fault can cost.
const MOST_LOST: u32 = 3;
const SEED: u64 = 7;

/// A fault as a line of a replay, by port, operation and n.
struct Kind {
    name: &'static str,
    ports: &'static [&'static str],
    line: fn(&str, u32) -> Value,
    /// At which ports it can keep a platform's answer from being recorded: then, and only then, may a part show twice.
    loses_answers: &'static [&'static str],
}

fn with(mut fields: Value, port: &str, nth: u32) -> Value {
    fields[port] = json!("*");
    fields["nth"] = json!(nth);
    fields
}

const ALL: &[&str] = &["store", "queue", "platform"];

const KINDS: &[Kind] = &[
    Kind {
        name: "kill before",
        ports: ALL,
        line: |port, nth| json!({"kill": with(json!({"after": false}), port, nth)}),
        loses_answers: ALL,
    },
    Kind {
        name: "kill after",
        ports: ALL,
        line: |port, nth| json!({"kill": with(json!({"after": true}), port, nth)}),
        loses_answers: ALL,
    },
    Kind {
        name: "unreachable",
        ports: ALL,
        line: |port, nth| json!({"fault": with(json!({"error": "unreachable"}), port, nth)}),
        loses_answers: &[],
    },
    Kind {
        name: "lost answer",
        ports: ALL,
        line: |port, nth| json!({"fault": with(json!({"error": "lost_answer"}), port, nth)}),
        loses_answers: &["platform"],
    },
    Kind {
        name: "conflict",
        ports: &["store"],
        line: |port, nth| json!({"fault": with(json!({"error": "conflict"}), port, nth)}),
        loses_answers: &[],
    },
    Kind {
        name: "throttled",
        ports: &["store", "queue"],
        line: |port, nth| json!({"fault": with(json!({"error": "throttled"}), port, nth)}),
        loses_answers: &[],
    },
    Kind {
        name: "unreachable for 30 s",
        ports: &["store", "queue"],
        line: |port, nth| {
            let mut line = json!({"fault": with(json!({"error": "unreachable", "for": 30}), port, nth)});
            line["fault"].as_object_mut().unwrap().remove("times");
            line
        },
        loses_answers: &["store"],
    },
    Kind {
        name: "freeze",
        ports: ALL,
        line: |port, nth| json!({"freeze": with(json!({"for": 300}), port, nth)}),
        loses_answers: ALL,
    },
];

/// A process that dies at a request, and an answer that is lost: what a journal, a park and a wake have to stand.
pub(crate) const DEATHS: &[&str] = &["kill before", "kill after", "lost answer"];

/// A story: what stands before the fault, what happens, and what must hold in the end.
pub(crate) struct Story {
    pub(crate) name: &'static str,
    pub(crate) setup: Vec<Value>,
    /// What the model says once before it says what `setup` or `act` has it say. An answer whose step was lost is given
    /// again, as a model that is asked the same would.
    pub(crate) once: Vec<Value>,
    pub(crate) act: Vec<Value>,
    /// The deliveries that the platform repeats until it has its answer.
    pub(crate) repeated: &'static [usize],
    /// The kinds of faults; none = all.
    pub(crate) kinds: &'static [&'static str],
    pub(crate) check: fn(&Run),
}

impl Story {
    /// The lines with a fault; the model says what it says once `lost` times more.
    fn lines(&self, fault: Value, lost: u32) -> Vec<Value> {
        let mut lines = self.setup.clone();
        lines.extend(self.once.iter().cloned().map(|mut line| {
            line["model"]["times"] = json!(1 + lost);
            line
        }));
        lines.push(fault);
        lines.extend(self.act.iter().cloned());
        for again in self.repeated {
            lines.push(json!({"run": true}));
            lines.push(json!({"deliver": {"again": again}}));
        }
        lines
    }

    fn play(&self, title: &str, fault: &Value) -> Played {
        // A story that asks somebody can miss that: when the step that asks was lost with the model's answer.
        if self.once.is_empty() {
            return played(title, &self.lines(fault.clone(), 0), SEED);
        }
        let mut tries = (0..MOST_LOST).map(|lost| try_played(title, &self.lines(fault.clone(), lost), SEED));
        let asks = |played: &Played| played.output.approvals.as_ref().is_some_and(|asked| !asked.is_empty());
        let played = tries.find_map(|played| played.ok().filter(asks));
        played.unwrap_or_else(|| panic!("{title}: nobody is asked"))
    }
}

/// Plays the story with a fault at every nth request of every port, until there is no nth.
#[expect(clippy::print_stdout, reason = "how much was tried")]
pub(crate) fn enumerate(story: &Story) {
    let mut runs = 0;
    for kind in KINDS.iter().filter(|kind| story.kinds.is_empty() || story.kinds.contains(&kind.name)) {
        for port in kind.ports {
            for nth in 1.. {
                assert!(nth <= MOST_REQUESTS, "{}: the enumeration does not end", story.name);
                let title = format!("{}: {} at {port} request {nth} (seed {SEED})", story.name, kind.name);
                let played = story.play(&title, &(kind.line)(port, nth));
                if played.faults_left > 0 {
                    break;
                }
                runs += 1;
                let may_double = kind.loses_answers.contains(port);
                let run = Run { title, output: played.output.to_json().unwrap(), may_double };
                run.quiet();
                (story.check)(&run);
            }
        }
    }
    println!("{}: {runs} runs", story.name);
    assert!(runs > 50, "{}: only {runs} runs met their fault", story.name);
}

pub(crate) const CHAT: &str = "telegram:main:1000001";

pub(crate) fn say(text: &str) -> Value {
    json!({"say": {"channel": "telegram", "chat": 1_000_001, "text": text}})
}

#[test]
fn a_plain_turn() {
    enumerate(&Story {
        name: "a plain turn",
        setup: vec![json!({"model": {"chunks": ["Hello."], "times": 99}})],
        once: vec![],
        act: vec![say("hi")],
        repeated: &[0],
        kinds: &[],
        check: |run| {
            run.settled();
            run.check(run.messages(0) == [Message::user("hi"), Message::assistant("Hello.")], "the history is wrong");
            run.shows_once(CHAT, "Hello.");
        },
    });
}

#[test]
fn a_turn_with_two_tools() {
    enumerate(&Story {
        name: "a turn with two tools",
        setup: vec![
            json!({"tool": {"name": "pay", "risk": "write", "keyed": false, "result": "paid"}}),
            json!({"tool": {"name": "note", "risk": "write", "keyed": true, "result": "noted"}}),
        ],
        once: vec![],
        // One answer for each step, however often it is asked for: which one fits is told by what was said last.
        act: vec![
            json!({"model": {"tools": [{"name": "pay", "input": {"amount": 3}}, {"name": "note", "input": {"x": 1}}]}}),
            json!({"model": {"chunks": ["Done."], "times": 99}}),
            say("pay"),
        ],
        repeated: &[0],
        kinds: &[],
        check: |run| {
            run.settled();
            // Without key support it is never started twice.
            run.check(run.starts("pay") <= 1, "pay was started twice");
            run.check(
                run.user_texts(0).iter().filter(|text| *text == "pay").count() == 1,
                "the message is not there once",
            );
            run.shows_once(CHAT, "Done.");
            let last = run.messages(0).last().map(Message::text);
            run.check(last.as_deref() == Some("Done."), "the reply is not the last message");
        },
    });
}

#[test]
fn a_stop() {
    enumerate(&Story {
        name: "a stop",
        setup: vec![json!({"model": {"chunks": ["One", {"wait": 20}, " two."], "times": 99}})],
        once: vec![],
        act: vec![say("count"), json!({"advance": 3}), say("/stop")],
        repeated: &[0, 1],
        kinds: &[],
        check: |run| {
            run.settled();
            run.check(run.user_texts(0) == ["count"], "the message is not there once");
            let shown = run.shown(CHAT);
            let finals = shown.iter().filter(|text| text.starts_with("One") || *text == "(stopped)").count();
            run.check(finals == 1 || (finals == 2 && run.may_double), "the turn's final does not show once");
            let answers = shown.iter().filter(|text| *text == "Stopping." || *text == "Nothing is running.").count();
            run.check((1..=2).contains(&answers), "the stop is not answered");
        },
    });
}

/// A preview in two messages that grows into the final. What is left of a preview whose message nobody knows stands above
/// it, and is marked (trace V13).
#[test]
fn a_streamed_turn() {
    enumerate(&Story {
        name: "a streamed turn",
        setup: vec![json!({"model": {"chunks": [
            {"repeat": "a", "times": 4096}, {"wait": 3}, "bbb", {"wait": 3}, "ccc"], "times": 99}})],
        once: vec![],
        act: vec![say("long")],
        repeated: &[0],
        kinds: &[],
        check: |run| {
            run.settled();
            let first = "a".repeat(4096);
            run.shows_once(CHAT, &first);
            run.shows_once(CHAT, "bbbccc");
            let shown = run.shown(CHAT);
            let rest = shown.iter().filter(|text| **text != first && *text != "bbbccc").count();
            let uncertain = run.list("/ledger").iter().any(|ledger| ledger["state"] == json!("uncertain"));
            run.check(rest == 0 || (rest == 1 && run.may_double && uncertain), "half a text stands");
            let at = |text: &str| shown.iter().rposition(|shown| shown == text);
            run.check(at(&first) < at("bbbccc"), "the parts are out of order");
        },
    });
}

/// The model breaks off behind a preview in two messages and says less when it is asked again: what is left of the preview
/// is taken away.
#[test]
fn a_final_that_is_shorter_than_its_preview() {
    enumerate(&Story {
        name: "a final that is shorter than its preview",
        setup: vec![
            json!({"model": {"error": "mid_stream", "chunks": [
                {"repeat": "a", "times": 4096}, {"wait": 3}, "bbb", {"wait": 3}, "ccc"]}}),
            json!({"model": {"chunks": ["Short."], "times": 99}}),
        ],
        once: vec![],
        act: vec![say("long")],
        repeated: &[0],
        kinds: &[],
        check: |run| {
            run.settled();
            run.shows_once(CHAT, "Short.");
            let rests = run.shown(CHAT).iter().filter(|text| *text != "Short.").count();
            let uncertain = run.list("/ledger").iter().any(|ledger| ledger["state"] == json!("uncertain"));
            run.check(rests == 0 || (rests <= 2 && run.may_double && uncertain), "a rest of the preview stands");
        },
    });
}

#[test]
fn a_streamed_turn_in_slack() {
    enumerate(&Story {
        name: "a streamed turn in Slack",
        setup: vec![json!({"model": {"chunks": ["One", {"wait": 3}, " two", {"wait": 3}, " three."], "times": 99}})],
        once: vec![],
        act: vec![json!({"say": {"channel": "slack", "chat": "D0CHAN", "from": "U0ANN", "text": "count"}})],
        repeated: &[0],
        kinds: &[],
        check: |run| {
            run.settled();
            let chat = "slack:main:D0CHAN";
            run.shows_once(chat, "One two three.");
            let rests = run.shown(chat).iter().filter(|text| *text != "One two three.").count();
            let uncertain = run.list("/ledger").iter().any(|ledger| ledger["state"] == json!("uncertain"));
            run.check(rests == 0 || (rests == 1 && run.may_double && uncertain), "half a text stands");
        },
    });
}

#[test]
fn a_delivery_in_three_parts() {
    enumerate(&Story {
        name: "a delivery in three parts",
        setup: vec![json!({"model": {"chunks": [
            {"repeat": "a", "times": 4096}, {"repeat": "b", "times": 4096}, "c"], "times": 99}})],
        once: vec![],
        act: vec![say("long")],
        repeated: &[0],
        kinds: &[],
        check: |run| {
            run.settled();
            for part in ["a".repeat(4096), "b".repeat(4096), "c".to_owned()] {
                run.shows_once(CHAT, &part);
            }
            let mut order: Vec<char> = run.shown(CHAT).iter().filter_map(|text| text.chars().next()).collect();
            order.dedup();
            run.check(order == ['a', 'b', 'c'], "the parts are out of order");
        },
    });
}

#[test]
fn a_consolidation() {
    let turn = |n: u32| {
        [
            json!({"role": "user", "content": [{"type": "text", "text": format!("fact number {n}")}]}),
            json!({"role": "assistant", "content": [{"type": "text", "text": "noted"}]}),
        ]
    };
    let messages: Vec<Value> = (0..6).flat_map(turn).collect();
    enumerate(&Story {
        name: "a consolidation",
        setup: vec![
            json!({"config": {"agent": {"limits": {"consolidate_after": 10}}}}),
            json!({"session": {"key": "telegram:1000001", "messages": messages}}),
            json!({"model": {"for": "turn", "chunks": ["Hello."], "times": 99}}),
        ],
        once: vec![],
        act: vec![say("hi")],
        repeated: &[0],
        kinds: &[],
        check: |run| {
            run.settled();
            run.shows_once(CHAT, "Hello.");
            run.check(run.messages(0).len() == 14, "the history is wrong");
            // Seven turns, the last three stay out: the boundary stands behind the fourth.
            run.check(
                run.output["sessions"][0]["boundary"] == json!(8),
                "the boundary did not move over what was kept",
            );
            let moved = run.list("/jobs").iter().filter(|job| job["outcome"] == json!("done")).count();
            run.check(moved <= 1, "the same stretch was taken in twice");
        },
    });
}
