//! Stories that nobody wrote: messages, decisions, stops, deploys and deaths in any order, made from a seed. Whatever
//! happens, everything settles, nothing is lost, and nothing that cannot be undone happens twice.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::run::{Run, played};

/// How many stories are played.
const STORIES: u64 = 80;
/// How many lines of a story do something.
const LINES: u64 = 14;

/// Numbers from a seed (Sebastiano Vigna's splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let index = self.roll(of.len() as u64);
        &of[usize::try_from(index).unwrap()]
    }
}

/// The lines of a story.
fn story(seed: u64) -> Vec<Value> {
    let mut dice = Dice(seed);
    let busy = dice.one(&["steer", "queue"]);
    let concurrency = 1 + dice.roll(2);
    let mut lines = vec![
        json!({"config": {"agent": {"while_busy": {"telegram": busy}, "limits": {
            "approval_expiry": "6m", "turn_seconds": 90, "concurrency": concurrency, "rpm": 0}}}}),
        json!({"tool": {"name": "pay", "risk": "dangerous", "policy": "ask", "keyed": false, "result": "paid", "wait": 2}}),
        json!({"tool": {"name": "send", "risk": "write", "keyed": false, "result": "sent", "wait": 20}}),
        json!({"tool": {"name": "look", "risk": "read", "keyed": true, "result": "seen", "wait": 5}}),
    ];
    for n in 0..12 {
        lines.push(model(&mut dice, n));
    }
    let mut deliveries = 0;
    for n in 0..LINES {
        let line = act(&mut dice, n);
        deliveries += u64::from(line.get("say").is_some());
        lines.push(line);
    }
    // Platforms repeat what they have no answer for, and whoever is asked does not answer any more.
    for again in 0..deliveries {
        lines.extend([json!({"run": true}), json!({"deliver": {"again": again}})]);
    }
    lines.extend((0..12).map(|_| json!({"advance": 400})));
    lines
}

fn model(dice: &mut Dice, n: u64) -> Value {
    let call = |name: &str, n: u64| json!({"name": name, "input": {"n": n}});
    match dice.roll(8) {
        0 | 1 => json!({"model": {"tools": [call("pay", n)]}}),
        2 => json!({"model": {"tools": [call("send", n), call("send", n + 100)]}}),
        3 => json!({"model": {"tools": [call("look", n), call("look", n + 100), call("pay", n)]}}),
        4 => json!({"model": {"tools": [call("send", n), call("pay", n)], "chunks": ["Let me see."]}}),
        5 => json!({"model": {"error": dice.one(&["throttled", "overloaded", "eof"])}}),
        6 => json!({"model": {"chunks": ["One", {"wait": 4}, " two", {"wait": 4}, format!(" {n}.")]}}),
        _ => json!({"model": {"chunks": [format!("Answer {n}.")]}}),
    }
}

fn act(dice: &mut Dice, n: u64) -> Value {
    let say = |text: String| json!({"say": {"channel": "telegram", "chat": 1_000_001, "text": text}});
    let nth = 1 + dice.roll(12);
    let (port, operation) =
        dice.one(&[("store", "*"), ("queue", "*"), ("platform", "*"), ("store", "TransactWriteItems")]);
    match dice.roll(15) {
        0..=2 => say(format!("message {n} of the story")),
        3 | 4 => say("/approve".to_owned()),
        5 => say("/deny".to_owned()),
        6 => say("/stop".to_owned()),
        7..=9 => json!({"advance": 1 + dice.roll(40)}),
        10 => json!({"restart": true}),
        11 | 12 => json!({"kill": {*port: operation, "nth": nth, "after": dice.roll(2) == 0}}),
        13 => json!({"fault": {*port: operation, "nth": nth, "error": dice.one(&["unreachable", "lost_answer"])}}),
        _ => json!({"freeze": {*port: operation, "nth": nth, "for": 30 + dice.roll(200)}}),
    }
}

impl Run {
    /// Every event came to an end, and told its own people so once.
    fn told(&self) {
        let states: BTreeMap<String, String> = self
            .list("/ledger")
            .iter()
            .map(|row| (row["event"].as_str().unwrap().to_owned(), row["state"].as_str().unwrap().to_owned()))
            .collect();
        for (event, state) in &states {
            self.check(state == "sent" || state == "uncertain" || !event.ends_with(".final"), "a final is not sent");
        }
        for event in self.list("/events") {
            let outcome = event["outcome"].as_str().unwrap_or_default();
            let ended = outcome == "committed" || outcome == "failed";
            self.check(ended || !self.was_accepted(&event["id"]), "an event came to nothing");
        }
    }

    /// Whether the delivery of an event, or its repetition, had its answer: the first half are the deliveries, in the order
    /// of their updates' numbers, the second half are the repetitions.
    fn was_accepted(&self, event: &Value) -> bool {
        let number: usize = event.as_str().and_then(|id| id.rsplit(':').next()?.parse().ok()).unwrap();
        let deliveries = self.list("/deliveries");
        [number - 1, number - 1 + deliveries.len() / 2].iter().any(|at| deliveries[*at]["status"] == json!(200))
    }

    /// What has no keys is started once for each call, and what was asked for only if it was allowed.
    fn no_call_twice(&self) {
        let mut starts: BTreeMap<String, u32> = BTreeMap::new();
        for run in self.list("/tool_runs").iter().filter(|run| !run["input"].is_null() && run["name"] != "look") {
            *starts.entry(run["key"].to_string()).or_default() += 1;
        }
        self.check(starts.values().all(|times| *times == 1), "a call was started twice");
        let approvals = self.list("/approvals");
        let allowed = approvals.iter().filter(|asked| asked["state"] == "allowed").count();
        self.check(self.starts("pay") <= allowed, "what nobody allowed was started");
        self.check(approvals.iter().all(|asked| asked["state"] != "open"), "a question is still open");
    }

    /// Each message stands in the conversation once.
    fn no_message_lost(&self) {
        let said = self.user_texts(0).join("\n");
        for event in self.list("/events") {
            let text = event["text"].as_str().unwrap_or_default();
            if text.starts_with("message ") && self.was_accepted(&event["id"]) {
                let times = said.matches(text).count();
                self.check(times == 1, &format!("`{text}` stands {times} times in the conversation"));
            }
        }
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "how much of everything there was")]
fn whatever_happens_everything_settles_and_nothing_happens_twice() {
    let mut met: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..STORIES {
        let lines = story(seed);
        let title = format!("story {seed}:\n{}", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
        let output = played(&format!("story {seed}"), &lines, seed).output.to_json().unwrap();
        let run = Run { title, output, may_double: true };
        run.quiet();
        run.told();
        run.no_call_twice();
        if !run.list("/sessions").is_empty() {
            run.no_message_lost();
        }
        for (list, field) in
            [("approvals", "state"), ("events", "outcome"), ("events", "reason"), ("tool_runs", "outcome")]
        {
            for row in run.list(&format!("/{list}")) {
                *met.entry(format!("{list} {}", row[field].as_str().unwrap_or("-"))).or_default() += 1;
            }
        }
    }
    println!("{met:#?}");
    // The dice could be such that nothing ever happens.
    for what in [
        "approvals allowed",
        "approvals denied",
        "approvals expired",
        "approvals stopped",
        "tool_runs ok",
        "tool_runs unknown",
        "events failed",
        "events stopped",
    ] {
        assert!(met.get(what).is_some_and(|times| *times > 0), "{what}: never: {met:#?}");
    }
}
