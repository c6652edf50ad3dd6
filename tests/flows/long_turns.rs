//! Turns that take longer than an invocation, and calls that run beside each other.

use serde_json::{Value, json};

use crate::kit::{calls, column, played, run, say, says, texts};

/// Forty steps in windows of ninety seconds: each hand-back ends where the next invocation goes on.
#[test]
fn a_turn_of_forty_steps_spans_many_invocations_and_repeats_nothing() {
    let mut lines = vec![
        json!({"config": {"agent": {"limits": {"turn_seconds": 90}}}}),
        json!({"tool": {"name": "look", "risk": "write", "keyed": false, "result": "more", "wait": 12}}),
    ];
    lines.extend((1..40).map(|n| calls(&[("look", json!({"n": n}))])));
    lines.extend([says("All done."), say("look around")]);
    let output = played(&lines);
    assert_eq!(texts(&output), ["All done."], "one final");
    let inputs: Vec<_> = column(&output, "tool_runs", "input").iter().filter_map(|input| input["n"].as_u64()).collect();
    assert_eq!(inputs, (1..40).collect::<Vec<_>>(), "each call once, in order");
    assert!(column(&output, "tool_runs", "outcome").iter().all(|outcome| outcome == "ok"));
    let questions = column(&output, "model_requests", "for").iter().filter(|purpose| **purpose == "turn").count();
    assert_eq!(questions, 40, "no question was asked twice");
    let invocations = output["sessions"][0]["fence"].as_u64().unwrap();
    assert!(invocations >= 5, "{invocations} invocations");
    assert_eq!((&output["events"][0]["outcome"], &output["events"][0]["attempts"]), (&json!("committed"), &json!(1)));
    assert_eq!(output["sessions"][0]["messages"].as_array().unwrap().len(), 80);
    assert!(output["elapsed"].as_f64().unwrap() < 40.0 * 12.0 * 2.0, "a hand-back waits for nothing");
}

fn tool(name: &str, risk: &str, wait: u32) -> Value {
    json!({"tool": {"name": name, "risk": risk, "keyed": risk == "read", "result": name, "wait": wait}})
}

fn starts(output: &Value) -> Vec<(String, f64)> {
    let runs = output["tool_runs"].as_array().unwrap();
    let mut starts: Vec<_> =
        runs.iter().map(|run| (run["input"]["n"].as_u64().unwrap().to_string(), run["at"].as_f64().unwrap())).collect();
    starts.sort_by(|one, two| one.1.total_cmp(&two.1).then(one.0.cmp(&two.0)));
    starts
}

/// What only reads runs at most four at a time.
#[test]
fn calls_that_read_run_four_at_a_time() {
    let asked: Vec<_> = (1..=9).map(|n| ("look", json!({"n": n}))).collect();
    let output = played(&[tool("look", "read", 5), calls(&asked), says("Seen."), say("look"), run()]);
    let starts = starts(&output);
    let at: Vec<_> = starts.iter().map(|(_, at)| (at / 5.0).floor()).collect();
    assert_eq!(at, [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 2.0], "{starts:?}");
    // Whatever ended first, the model reads the results in the order of its calls.
    let results = output["sessions"][0]["messages"][2]["content"].as_array().unwrap();
    let uses = output["sessions"][0]["messages"][1]["content"].as_array().unwrap();
    let ids = |blocks: &[Value], field: &str| blocks.iter().map(|block| block[field].clone()).collect::<Vec<_>>();
    assert_eq!(ids(results, "tool_use_id"), ids(uses, "id"));
}

/// What writes runs alone, in its place: what reads before it has ended, what reads after it waits.
#[test]
fn a_call_that_writes_runs_alone() {
    let asked = [
        ("look", json!({"n": 1})),
        ("look", json!({"n": 2})),
        ("note", json!({"n": 3})),
        ("note", json!({"n": 4})),
        ("look", json!({"n": 5})),
    ];
    let lines = [tool("look", "read", 5), tool("note", "write", 5), calls(&asked), says("Seen."), say("look"), run()];
    let starts = starts(&played(&lines));
    let at: Vec<_> = starts.iter().map(|(n, at)| (n.as_str(), (at / 5.0).floor())).collect();
    assert_eq!(at, [("1", 0.0), ("2", 0.0), ("3", 1.0), ("4", 2.0), ("5", 3.0)]);
}
