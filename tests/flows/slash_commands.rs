//! Slash commands of Slack's: they work in every channel, also where the app is no member and nothing can be posted.

use serde_json::{Value, json};
use turnlock_replay::script::Script;
use turnlock_replay::{FEATURES, play};

/// Types `/echo hello` in a channel and plays `before` and `after` around it; what there is to see.
fn played(before: &[Value], after: &[Value]) -> Value {
    let form = "command=%2Fecho&text=hello&channel_id=C0SECRET&user_id=U0USER&team_id=T0TEAM&trigger_id=1.2.3";
    let typed = json!({ "deliver": {
        "route": "/slack/main", "headers": { "content-type": "application/x-www-form-urlencoded" }, "body_text": form,
    } });
    let lines = [&[json!({ "replay": 1 })], before, &[typed, json!({ "run": true })], after].concat();
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    let played = play(&Script::parse("slash_commands", &text.join("\n"), FEATURES).unwrap(), 0).unwrap();
    played.output.to_json().unwrap()
}

fn refused(chat: &str, error: &str) -> Value {
    json!({ "platform": {
        "channel": "slack", "method": "chat.postMessage", "chat": chat, "times": "all",
        "body": { "ok": false, "error": error }, "applied": false,
    } })
}

fn texts(output: &Value, chat: &str) -> Vec<String> {
    let messages = output["chats"][format!("slack:main:{chat}")]["messages"].as_array().cloned().unwrap_or_default();
    messages.iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

const INVITE: &str = "I am not in that channel, so here is my answer. Invite me there with /invite.";

/// Where the app is no member the asker sees the answer, and nobody else; the channel is not marked as gone, so the next
/// message there is answered there. What is streamed meanwhile is lost, the final is not.
#[test]
fn who_asks_where_the_app_is_no_member_is_answered_alone() {
    for error in ["not_in_channel", "channel_not_found"] {
        let streamed = json!({ "model": { "chunks": ["The answer", { "wait": 4 }, " is **42**"] } });
        let output = played(&[streamed, refused("C0SECRET", error)], &[]);
        assert_eq!(texts(&output, "C0SECRET"), [""; 0], "{error}");
        assert_eq!(texts(&output, "D0USER"), [format!("{INVITE}\n\nThe answer is *42*")], "{error}");
        assert!(!output.to_string().contains("chat_gone"), "{output:#}");
    }
}

/// Whoever removes the app while it answers sees the rest of the preview, and the asker the answer: what stands in the
/// channel cannot become it.
#[test]
fn an_app_that_is_removed_while_it_answers_sends_the_answer_aside() {
    let streamed = json!({ "model": { "chunks": ["The answer", { "wait": 2 }, " is **42**"] } });
    let edits = json!({ "platform": { "channel": "slack", "method": "chat.update", "times": "all",
        "body": { "ok": false, "error": "not_in_channel" }, "applied": false } });
    let output = played(&[streamed, edits], &[]);
    assert_eq!(texts(&output, "C0SECRET"), ["The answer"]);
    assert_eq!(texts(&output, "D0USER"), [format!("{INVITE}\n\nThe answer is *42*")]);
    assert_eq!(output["dead"], json!([]));
}

/// A long answer says it once.
#[test]
fn the_sentence_stands_in_front_once() {
    let long = json!({ "model": { "chunks": [{ "repeat": "word ", "times": 1500 }] } });
    let output = played(&[long, refused("C0SECRET", "not_in_channel")], &[]);
    let shown = texts(&output, "D0USER");
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(shown[0].starts_with(INVITE) && !shown[1].contains("/invite") && !shown[2].contains("/invite"));
    assert_eq!(shown.join(" ").matches("word").count(), 1500);
}

/// Who takes no direct messages either is given up, once and on record.
#[test]
fn an_asker_who_cannot_be_reached_either_is_given_up() {
    let model = json!({ "model": { "chunks": ["42"] } });
    let output =
        played(&[model, refused("C0SECRET", "not_in_channel"), refused("D0USER", "messages_tab_disabled")], &[]);
    assert_eq!((texts(&output, "C0SECRET"), texts(&output, "D0USER")), (vec![], vec![]));
    let finals = output["ledger"].as_array().unwrap();
    assert_eq!(finals.len(), 1, "{output:#}");
    assert_eq!(finals[0]["state"], "failed");
    assert_eq!(output["dead"].as_array().map(Vec::len), Some(1), "an operator can see it and send it again");
    assert!(!output.to_string().contains("chat_gone"), "{output:#}");
}
