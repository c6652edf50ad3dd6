//! A second message while a turn runs: it waits for its own turn, or reaches the one that runs; by channel.

use serde_json::{Value, json};

use crate::kit::{advance, calls, column, played, run, say, says, shown, texts};

fn look() -> Value {
    json!({"tool": {"name": "look", "risk": "read", "keyed": true, "result": "rain", "wait": 5}})
}

fn steer(channel: &str) -> Value {
    json!({"config": {"agent": {"while_busy": {channel: "steer"}}}})
}

/// A turn that looks for five seconds, and a second message after one.
fn busy(second: &str) -> Vec<Value> {
    vec![
        look(),
        calls(&[("look", json!({}))]),
        says("First answer."),
        says("Second answer."),
        say("weather?"),
        advance(1.0),
        say(second),
        run(),
    ]
}

#[test]
fn a_second_message_waits_for_its_own_turn_unless_its_channel_steers() {
    for config in
        [json!({"config": {}}), steer("slack"), json!({"config": {"agent": {"while_busy": {"telegram": "queue"}}}})]
    {
        let output = played(&[&[config.clone()][..], &busy("in Bonn")].concat());
        assert_eq!(texts(&output), ["First answer.", "Second answer."], "{config}");
        assert_eq!(output["model_requests"].as_array().unwrap().len(), 3);
    }
    let output = played(&[&[steer("telegram")][..], &busy("in Bonn")].concat());
    assert_eq!(texts(&output), ["First answer."]);
    assert_eq!(output["model_requests"].as_array().unwrap().len(), 2);
    assert_eq!(column(&output, "events", "outcome"), ["committed", "committed"]);
    let second = output["model_requests"][1]["request"]["messages"].to_string();
    assert!(second.contains("in Bonn"), "{second}");
}

/// Several texts arrive in their order, at one step.
#[test]
fn several_texts_reach_the_turn_in_their_order() {
    let mut lines = vec![steer("telegram")];
    lines.extend(busy("in Bonn"));
    let run = lines.pop().unwrap();
    lines.extend([say("not Berlin"), advance(1.0), say("tomorrow"), run]);
    let output = played(&lines);
    assert_eq!(texts(&output), ["First answer."]);
    let asked = output["model_requests"][1]["request"]["messages"].to_string();
    let at = |text: &str| asked.find(text).unwrap_or_else(|| panic!("{text}: {asked}"));
    assert!(at("in Bonn") < at("not Berlin") && at("not Berlin") < at("tomorrow"), "{asked}");
}

/// A command is no text for anybody: it is obeyed.
#[test]
fn a_command_while_busy_is_a_command() {
    let mut lines = vec![steer("telegram")];
    lines.extend(busy("/stop"));
    let output = played(&lines);
    assert_eq!(output["events"][0]["reason"], json!("stopped"));
    assert!(!output["model_requests"].to_string().contains("/stop"));
}

/// Nothing runs: the message is the turn.
#[test]
fn a_first_message_is_a_turn_where_the_channel_steers() {
    let output = played(&[steer("telegram"), say("one"), run(), say("two")]);
    assert_eq!(texts(&output), ["one", "two"]);
}

/// A turn that waits for a person reads what is said meanwhile when it goes on.
#[test]
fn a_text_reaches_a_turn_that_waits_for_a_person_when_it_goes_on() {
    let lines = [
        steer("telegram"),
        json!({"tool": {"name": "pay", "risk": "dangerous", "policy": "ask", "result": "paid"}}),
        calls(&[("pay", json!({"amount": 3}))]),
        says("Done."),
        says("A turn of its own."),
        say("pay"),
        run(),
        say("and send a receipt"),
        run(),
        json!({"tap": {"channel": "telegram", "chat": 1_000_001, "button": "Allow"}}),
        run(),
    ];
    let output = played(&lines);
    let asked = output["model_requests"][1]["request"]["messages"].to_string();
    assert!(asked.contains("receipt"), "{asked}");
    assert_eq!(texts(&output)[1..], ["Done."]);
}

/// Each channel has its own way: here Slack steers, and Telegram has a turn for each message.
#[test]
fn each_channel_has_its_own_way() {
    let slack = |text: &str| json!({"say": {"channel": "slack", "chat": "D0CHAN", "from": "U0ANN", "text": text}});
    let mut lines = vec![steer("slack"), look()];
    for (session, first, second) in
        [("slack:D0CHAN", slack("weather?"), slack("in Bonn")), ("telegram:1000001", say("weather?"), say("in Bonn"))]
    {
        let look = json!({"model": {"session": session, "tools": [{"name": "look", "input": {}}]}});
        let says = |text: &str| json!({"model": {"session": session, "chunks": [text]}});
        lines.extend([look, says("First answer."), says("Second answer."), first, advance(1.0), second, run()]);
    }
    let output = played(&lines);
    assert_eq!(shown(&output, "slack:main:D0CHAN"), ["First answer."]);
    assert_eq!(texts(&output), ["First answer.", "Second answer."]);
}

/// In a group others than whose turn it is are not heard in it: what they say has a turn of its own.
#[test]
fn in_a_group_only_the_turns_own_person_steers() {
    let from = |user: &str, text: &str| {
        let text = format!("<@U0BOT> {text}");
        let thread = "1760000000.000100";
        json!({"say": {"channel": "slack", "chat": "C0CHAN", "thread": thread, "from": user, "text": text}})
    };
    let mut lines = vec![steer("slack"), look(), calls(&[("look", json!({}))])];
    lines.extend(["First answer.", "Second answer.", "Third answer."].map(says));
    lines.extend([from("U0ANN", "weather?"), advance(1.0), from("U0ANN", "in Bonn"), advance(1.0)]);
    lines.extend([from("U0BOB", "and pay"), advance(1.0), from("U0ANN", "thanks"), run()]);
    let output = played(&lines);
    let asked: Vec<String> = output["model_requests"].as_array().unwrap().iter().map(Value::to_string).collect();
    assert!(
        asked[1].contains("in Bonn") && !asked[1].contains("and pay") && !asked[1].contains("thanks"),
        "{}",
        asked[1]
    );
    assert!(asked[2].contains("and pay") && !asked[2].contains("thanks"), "{}", asked[2]);
    assert_eq!(asked.len(), 4);
}

/// A text does not overtake one before it that is too long to steer.
#[test]
fn a_text_does_not_overtake_what_cannot_steer() {
    let long = "x".repeat(5000);
    let mut lines = vec![steer("telegram")];
    lines.extend(busy(&long));
    let run = lines.pop().unwrap();
    lines.extend([says("Third answer."), advance(1.0), say("never mind"), run]);
    let output = played(&lines);
    let asked: Vec<String> = output["model_requests"].as_array().unwrap().iter().map(Value::to_string).collect();
    assert!(!asked[1].contains("never mind"), "{}", asked[1]);
    assert_eq!((asked.len(), texts(&output).len()), (4, 3));
}
