//! What the flows share: lines, and what they come to.

use serde_json::{Value, json};
use turnlock_replay::script::Script;
use turnlock_replay::{FEATURES, play};

/// Plays the lines to a quiet end: every expectation held, every fault was met, and nothing is left in work.
pub(crate) fn played(lines: &[Value]) -> Value {
    let output = played_to(lines);
    assert_eq!(output["unsettled"], json!([]), "{output:#}");
    output
}

/// The same, where something may wait at the end.
pub(crate) fn played_to(lines: &[Value]) -> Value {
    let source: Vec<String> = lines.iter().map(Value::to_string).collect();
    let script = Script::parse("flow", &source.join("\n"), FEATURES).unwrap();
    let played = play(&script, 3).unwrap();
    let output = played.output.to_json().unwrap();
    assert!(played.failures.is_empty(), "{:#?}\n{output:#}", played.failures);
    assert_eq!(played.faults_left, 0, "a fault was never met: {output:#}");
    output
}

/// A message of the private chat.
pub(crate) fn say(text: &str) -> Value {
    json!({"say": {"channel": "telegram", "chat": 1_000_001, "text": text}})
}

/// The model says this, once.
pub(crate) fn says(text: &str) -> Value {
    json!({"model": {"chunks": [text]}})
}

/// The model calls these tools in one step, each with its input.
pub(crate) fn calls(calls: &[(&str, Value)]) -> Value {
    let calls: Vec<Value> = calls.iter().map(|(name, input)| json!({"name": name, "input": input})).collect();
    json!({"model": {"tools": calls}})
}

pub(crate) fn run() -> Value {
    json!({"run": true})
}

pub(crate) fn advance(seconds: f64) -> Value {
    json!({"advance": seconds})
}

/// The texts that the private chat shows, deleted ones excepted.
pub(crate) fn texts(output: &Value) -> Vec<String> {
    shown(output, "telegram:main:1000001")
}

/// The texts that a chat shows, deleted ones excepted.
pub(crate) fn shown(output: &Value, chat: &str) -> Vec<String> {
    let messages = output["chats"][chat]["messages"].as_array().cloned().unwrap_or_default();
    let there = messages.iter().filter(|message| message["deleted"] != json!(true));
    there.map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

/// A field of every row of a list.
pub(crate) fn column(output: &Value, list: &str, field: &str) -> Vec<Value> {
    output[list].as_array().cloned().unwrap_or_default().iter().map(|row| row[field].clone()).collect()
}
