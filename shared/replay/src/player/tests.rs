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

const PAY: &str = r#"{"tool": {"name": "pay", "risk": "dangerous", "policy": "ask", "result": "paid"}}
{"model": {"tools": [{"name": "pay", "input": {"amount": 3}}]}}
{"model": {"chunks": ["Done."]}}"#;

fn tap(more: &str) -> String {
    format!(r#"{{"tap": {{"channel": "telegram", "chat": 1000001, "button": "Allow"{more}}}}}"#)
}

#[test]
fn a_turn_that_waits_for_a_person_is_left_alone_with_what_is_behind_it() {
    let lines = [PAY, SAY, r#"{"run": true}"#, SAY].join("\n");
    let waiting = played(&lines);
    assert_eq!(
        at(&waiting, "/approvals"),
        json!([{"session": "telegram:1000001", "tool": "pay", "state": "open",
        "decided_by": null}])
    );
    assert!(waiting.output.elapsed.0 < 30.0, "no time passes for it: {:?}", waiting.output.elapsed);
    let left: Vec<_> =
        waiting.output.unsettled.iter().map(|left| left.split(' ').skip(5).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(left, ["sleeps until a person decides", "waits behind it"], "{:?}", waiting.output.unsettled);
    let transcript = crate::output::transcript(&waiting.output);
    assert!(
        transcript.contains("[Allow] [Deny]") && transcript.contains("asked: pay in telegram:1000001: open"),
        "{transcript}"
    );
    // Time goes on for everybody else, and for the question when a line says so.
    let over = played(&format!("{lines}\n{}", r#"{"advance": 3700}"#));
    assert_eq!((at(&over, "/approvals/0/state"), at(&over, "/unsettled/#")), (json!("expired"), json!(0)));
}

#[test]
fn a_button_is_pressed_as_often_as_the_line_says_and_only_where_it_shows() {
    let lines = [PAY, SAY, r#"{"run": true}"#, &tap(r#", "times": 2"#)].join("\n");
    let allowed = played(&lines);
    assert_eq!((at(&allowed, "/tool_runs/#"), at(&allowed, "/approvals/0/state")), (json!(1), json!("allowed")));
    let numbers: Vec<_> = (1..3).map(|index| at(&allowed, &format!("/deliveries/{index}/status"))).collect();
    assert_eq!(numbers, [200, 200]);
    let script = Script::parse("test.jsonl", &format!("{SAY}\n{}", tap("")), FEATURES).unwrap();
    let error = play(&script, 1).unwrap_err().to_string();
    assert_eq!(error, "test.jsonl:2: the chat shows no button `Allow` now");
}

/// A rule of the configuration comes before what a tool's own line says.
#[test]
fn a_tool_has_its_policy_unless_a_rule_says_otherwise() {
    let rule = r#"{"config": {"approvals": {"rules": [{"tool": "pay", "action": "deny"}]}}}"#;
    let refused = played(&[rule, PAY, SAY].join("\n"));
    assert_eq!((at(&refused, "/approvals/#"), at(&refused, "/tool_runs/0/outcome")), (json!(0), json!("refused")));
    let plain = r#"{"tool": {"name": "pay", "risk": "dangerous", "result": "paid"}}"#;
    let allowed = played(&[plain, r#"{"model": {"tools": [{"name": "pay", "input": {}}]}}"#, SAY].join("\n"));
    assert_eq!((at(&allowed, "/approvals/#"), at(&allowed, "/tool_runs/0/outcome")), (json!(0), json!("ok")));
}

/// One script plays them all: each is asked in its turn, under its own name and with what it can do.
#[test]
fn every_model_of_the_configuration_is_played() {
    let models = r#"{"config": {"models": [{"provider": "openai", "model": "first", "capabilities": ["tools"]}, {"provider": "bedrock", "model": "second", "capabilities": []}]}}"#;
    let wire = r#"{"replay": 1, "wire": "openai"}"#;
    let lines = [wire, models, r#"{"model": {"error": "overloaded", "times": 3}}"#, SAY].join("\n");
    let played = played(&lines);
    let names: Vec<_> = (0..4).map(|index| at(&played, &format!("/model_requests/{index}/request/model"))).collect();
    assert_eq!(names, ["first", "first", "first", "second"]);
    assert_eq!(at(&played, "/model_requests/3/request/tools"), Value::Null);
    assert_eq!(at(&played, "/events/0/outcome"), json!("committed"));
}
