//! Steps of a turn that is handed back in their middle.

use serde_json::{Value, json};
use turnlock_domain::message::Block;

use super::{advance, play, say};

/// A step is handed back because the result of its first call could not be stored, and at the next receive the table cannot
/// be read: that the other calls were not started is known all the same, and they run.
#[test]
fn what_was_not_started_is_known_after_a_receive_that_could_not_read() {
    let calls: Vec<Value> = (0..3).map(|n| json!({"name": "note", "input": {"n": n}})).collect();
    let unreachable = |operation: &str| json!({"fault": {"store": operation, "times": 6, "error": "unreachable"}});
    let lines = [
        json!({"tool": {"name": "note", "risk": "write", "keyed": false, "result": "noted", "wait": 10, "times": 3}}),
        json!({"model": {"tools": calls}}),
        json!({"model": {"chunks": ["Noted."]}}),
        say("note"),
        advance(5),
        // The result, and the next look: every sending of them.
        unreachable("PutItem"),
        unreachable("BatchGetItem"),
        json!({"run": true}),
    ];
    let run = play("unstarted", &lines);
    run.settled();
    let told: Vec<String> = run
        .messages(0)
        .iter()
        .flat_map(|message| &message.content)
        .filter_map(|block| match block {
            Block::ToolResult { content, .. } => Some(json!(content).to_string()),
            _ => None,
        })
        .collect();
    run.check(told.len() == 3 && told[0].contains("whether it took effect is unknown"), &format!("{told:?}"));
    run.check(told[1..].iter().all(|told| told.contains("noted")), &format!("{told:?}"));
}
