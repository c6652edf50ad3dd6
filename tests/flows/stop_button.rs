//! The button under a reply that is being written: it stops that turn, and nothing that was sent later.

use serde_json::{Value, json};

use crate::kit::{advance, calls, column, played, played_to, run, say, says, shown, texts};

/// Somebody presses the newest "Stop" of a chat.
fn press(channel: &str, chat: &Value, from: &Value) -> Value {
    json!({"tap": {"channel": channel, "chat": chat, "button": "Stop", "from": from}})
}

/// The same in the private chat.
fn stop() -> Value {
    press("telegram", &json!(1_000_001), &json!(1_000_001))
}

/// An answer that is being written for a minute.
fn slow() -> Value {
    json!({"model": {"chunks": ["One", {"wait": 60}, " two."]}})
}

/// The labels of the buttons that a chat shows now, a list a message.
fn buttons(output: &Value, chat: &str) -> Vec<Value> {
    let messages = output["chats"][chat]["messages"].as_array().unwrap().iter();
    messages.filter(|message| message["deleted"] != json!(true)).map(|message| message["buttons"].clone()).collect()
}

#[test]
fn a_press_ends_a_stream_within_two_seconds_and_the_next_message_is_answered() {
    let output = played(&[
        slow(),
        says("again"),
        say("count"),
        say("queued"),
        advance(5.0),
        json!({"expect": {"/chats/telegram:main:1000001/messages/0/buttons": ["Stop"]}}),
        stop(),
        advance(2.5),
        json!({"expect": {"/events/0/reason": "stopped", "/chats/telegram:main:1000001/messages/#": 2}}),
    ]);
    assert_eq!(texts(&output), ["One\n\n(stopped)", "again"], "the answer to a press is no message");
    assert_eq!(buttons(&output, "telegram:main:1000001"), [json!([]), json!([])]);
    let answers = output["platform_calls"]["telegram.answerCallbackQuery"].as_array().unwrap();
    assert_eq!((answers.len(), &answers[0]["arguments"]["text"]), (1, &json!("Stopping.")));
    assert_eq!(output["platform_calls"]["telegram.editMessageReplyMarkup"], Value::Null, "the final took it away");
}

/// Two presses, and the platform's repetition of one, are one stop.
#[test]
fn a_press_that_comes_several_times_stops_one_turn() {
    let twice = json!({"tap": {"channel": "telegram", "chat": 1_000_001, "button": "Stop", "times": 2}});
    let again = json!({"deliver": {"again": 1}});
    let lines = [slow(), says("again"), say("count"), advance(5.0), twice, again, say("later"), run()];
    assert_eq!(texts(&played(&lines)), ["One\n\n(stopped)", "again"]);
}

/// A final takes the button away. Who presses one that is still shown to them stops nothing: not what ended, nor the turn
/// that runs now.
#[test]
fn a_press_after_the_final_stops_nothing() {
    let first = [json!({"model": {"chunks": ["One ", {"wait": 3}, "two."]}}), say("count"), run()];
    let output = played(&first);
    assert_eq!(buttons(&output, "telegram:main:1000001"), [json!([])]);
    let post = &output["platform_calls"]["telegram.sendMessage"][0]["arguments"];
    let data = post["reply_markup"]["inline_keyboard"][0][0]["callback_data"].clone();
    let old = json!({"deliver": {"route": "/telegram/main", "body": {"update_id": 7001, "callback_query": {
        "id": "q1", "from": {"id": 1_000_001, "is_bot": false, "first_name": "Ann"}, "data": data,
        "message": {"message_id": output["chats"]["telegram:main:1000001"]["messages"][0]["id"], "date": 1_767_603_600,
            "chat": {"id": 1_000_001, "type": "private"}}}}}});
    let answer =
        |output: &Value| output["platform_calls"]["telegram.answerCallbackQuery"][0]["arguments"]["text"].clone();
    let over = played(&[&first[..], &[old.clone(), run(), say("again")]].concat());
    assert_eq!(
        (answer(&over), texts(&over)),
        (json!("Nothing is running."), vec!["One two.".to_owned(), "again".to_owned()])
    );
    let later = [json!({"model": {"chunks": ["Three ", {"wait": 20}, "four."]}}), say("on"), advance(5.0), old, run()];
    let other = played(&[&first[..], &later].concat());
    assert!(answer(&other).as_str().unwrap().starts_with("This button has expired."), "{other:#}");
    assert_eq!(texts(&other), ["One two.", "Three four."]);
}

/// In a topic and in a thread the button is that conversation's: what was said in another one is answered.
#[test]
fn a_press_in_a_topic_or_a_thread_stops_what_is_written_there() {
    let thread = "1760000000.000100";
    for (channel, chat, from, (first, second), said) in [
        ("telegram", json!(-1_001_000_000_001_i64), json!(1_000_001), (json!(5), json!(6)), "@echo_bot count"),
        ("slack", json!("C0CHAN"), json!("U0ANN"), (json!(thread), json!("1760000000.000900")), "<@U0BOT> count"),
    ] {
        let asks = |thread: &Value| json!({"say": {"channel": channel, "chat": chat, "from": from, "thread": thread, "text": said}});
        let text = |id: &Value| id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        let place = |thread: &Value| format!("{channel}:main:{}:{}", text(&chat), text(thread));
        let shows =
            |buttons: Value| json!({"expect": {format!("/chats/{}/messages/0/buttons", place(&first)): buttons}});
        let output = played(&[
            slow(),
            says("again"),
            asks(&first),
            asks(&second),
            advance(5.0),
            shows(json!(["Stop"])),
            press(channel, &chat, &from),
            advance(2.5),
            shows(json!([])),
        ]);
        assert_eq!(shown(&output, &place(&first))[0], "One\n\n(stopped)", "{channel}");
        assert_eq!(shown(&output, &place(&second)), ["again"], "{channel}");
        let answered = [json!("stopped"), Value::Null, json!("answered")];
        assert_eq!(column(&output, "events", "reason"), answered, "{channel}");
    }
}

/// The preview above a card keeps its button: it stops the turn that waits, too, and goes with the preview.
#[test]
fn a_press_above_a_card_stops_the_turn_that_waits() {
    let lines = [
        json!({"tool": {"name": "pay", "risk": "dangerous", "policy": "ask", "result": "paid"}}),
        json!({"model": {"chunks": ["I will pay.", {"wait": 3}], "tools": [{"name": "pay", "input": {}}]}}),
        say("pay"),
        run(),
    ];
    let waiting = played_to(&lines);
    assert_eq!(buttons(&waiting, "telegram:main:1000001"), [json!(["Stop"]), json!(["Allow", "Deny"])]);
    let output = played(&[&lines[..], &[stop(), run()]].concat());
    assert_eq!(
        (column(&output, "approvals", "state"), output["tool_runs"].clone()),
        (vec![json!("stopped")], json!([]))
    );
    assert_eq!(buttons(&output, "telegram:main:1000001"), [json!([]), json!([])]);
    assert!(texts(&output)[1].ends_with("(stopped)"), "{output:#}");
}

/// What is not shown while it is written has no button, and neither has what no button can be pressed in.
#[test]
fn there_is_no_button_where_nothing_is_shown() {
    let look = json!({"tool": {"name": "look", "risk": "read", "result": "rain", "wait": 5}});
    let lines = [look, calls(&[("look", json!({}))]), says("It rains."), say("weather?"), run()];
    assert!(!played(&lines)["platform_calls"].to_string().contains("Stop"));
    let api = json!({"say": {"channel": "gateway", "chat": "c1", "text": "count"}});
    assert!(!played(&[slow(), api])["observed"].to_string().contains("stop:"));
}
