//! The player on small stories.

use serde_json::{Value, json};

use super::{FEATURES, Played, play};
use crate::script::Script;

fn played(lines: &str) -> Played {
    let script = Script::parse("test.jsonl", lines, FEATURES).unwrap();
    play(&script, 1).unwrap()
}

fn at(played: &Played, pointer: &str) -> Value {
    let json = played.output.to_json().unwrap();
    crate::output::lookup(&json, pointer).map_or(Value::Null, std::borrow::Cow::into_owned)
}

const SAY: &str = r#"{"say": {"channel": "telegram", "chat": 1000001, "text": "hi"}}"#;

#[test]
fn a_message_is_answered_in_its_chat() {
    let played = played(SAY);
    assert!(played.failures.is_empty());
    assert_eq!(at(&played, "/chats/telegram:main:1000001/messages/0/text"), json!("hi"));
    assert_eq!(at(&played, "/deliveries/0/status"), json!(200));
    assert_eq!(at(&played, "/sessions/0/key"), json!("telegram:1000001"));
    assert_eq!(at(&played, "/sessions/0/messages/#"), json!(2));
    assert_eq!(at(&played, "/events/0/outcome"), json!("committed"));
    assert_eq!(at(&played, "/ledger/0/state"), json!("sent"));
    assert_eq!(at(&played, "/unsettled/#"), json!(0));
}

#[test]
fn the_same_script_and_seed_give_the_same_output() {
    let lines = [SAY, r#"{"kill": {"store": "*", "nth": 3, "after": true}}"#, r#"{"deliver": {"again": 0}}"#, SAY];
    let lines = lines.join("\n");
    let print = || played(&lines).output.to_json().unwrap().to_string();
    assert_eq!(print(), print());
}

#[test]
fn an_expectation_that_does_not_hold_is_told() {
    let played = played(&format!("{SAY}\n{}", r#"{"expect": {"/deliveries/0/status": 500, "/model_requests/#": 1}}"#));
    assert_eq!(played.failures.len(), 1);
    assert_eq!(played.failures[0].line, 2);
    assert_eq!(played.failures[0].differences.len(), 1);
}

/// Case dl-crash-after-answer: what is owed survives the death right after the commit, without another model call.
#[test]
fn dl_crash_after_answer() {
    let kill = r#"{"kill": {"store": "TransactWriteItems", "nth": 1, "after": true}}"#;
    let played = played(&format!("{kill}\n{SAY}"));
    assert_eq!(at(&played, "/model_requests/#"), json!(1));
    assert_eq!(at(&played, "/chats/telegram:main:1000001/messages/#"), json!(1));
    assert_eq!(at(&played, "/events/0/outcome"), json!("committed"));
}

#[test]
fn every_channel_can_be_said_something_on() {
    for channel in ["telegram", "slack", "webhook", "gateway"] {
        let chat = if channel == "slack" { "D0DM" } else { "1000001" };
        let say = json!({"say": {"channel": channel, "chat": chat, "text": "hi"}}).to_string();
        let played = played(&say);
        let status = at(&played, "/deliveries/0/status");
        assert!(status == json!(200) || status == json!(202), "{channel}: {status}");
        assert_eq!(at(&played, "/events/0/outcome"), json!("committed"), "{channel}");
    }
}

#[test]
fn a_tool_runs_once_and_its_result_reaches_the_model() {
    let lines = [
        r#"{"tool": {"name": "pay", "risk": "write", "result": "paid"}}"#,
        r#"{"model": {"tools": [{"name": "pay", "input": {"amount": 3}}]}}"#,
        r#"{"model": {"chunks": ["done"]}}"#,
        SAY,
    ];
    let played = played(&lines.join("\n"));
    assert_eq!(at(&played, "/tool_runs/#"), json!(1));
    assert_eq!(at(&played, "/tool_runs/0/outcome"), json!("ok"));
    assert_eq!(at(&played, "/chats/telegram:main:1000001/messages/0/text"), json!("done"));
    assert_eq!(at(&played, "/model_requests/1/problems/#"), json!(0));
}

#[test]
fn events_stand_in_order_of_time_and_deliveries_say_what_was_said() {
    let edit = json!({"deliver": {"route": "/telegram/main", "body": {"update_id": 99, "edited_message": {}}}});
    let unsigned = json!({"deliver": {"route": "/telegram/main", "body": {"update_id": 98}, "sign": false}});
    let lines = [edit.to_string(), SAY.to_owned(), unsigned.to_string(), unsigned.to_string()];
    let played = played(&lines.join("\n"));
    let outcomes: Vec<_> = (0..4).map(|index| at(&played, &format!("/events/{index}/outcome"))).collect();
    assert_eq!(outcomes, ["ignored", "committed", "refused", "refused"]);
    let asked: Vec<_> = played.output.deliveries.iter().map(|delivery| delivery.asked.as_str()).collect();
    let route = "POST /telegram/main";
    assert_eq!(asked, [route, &format!("{route}: hi"), route, route]);
}

#[test]
fn a_session_is_put_in_as_it_is() {
    let call =
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "lookup", "input": {}}]});
    let messages = json!([{"role": "user", "content": "look"}, call]);
    let session = json!({"session": {"key": "telegram:1000001", "messages": messages}});
    let played = played(&session.to_string());
    assert_eq!(at(&played, "/sessions/0/messages/#"), json!(2));
    assert_eq!(at(&played, "/sessions/0/messages/1/content/0/id"), json!("t1"));
}
