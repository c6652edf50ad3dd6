//! `aiogram`: updates made from its types are understood, and it takes what is sent.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::kit::{Peer, calls, play};

/// The session and the text of an event, or why there is none.
type Expected = Result<(&'static str, &'static str), &'static str>;

/// The methods that a bot of ours calls, each of which the library has to take.
const METHODS: [&str; 7] = [
    "answerCallbackQuery",
    "deleteMessage",
    "editMessageReplyMarkup",
    "editMessageText",
    "getFile",
    "sendChatAction",
    "sendMessage",
];

/// The updates by name, and what becomes of each.
const UPDATES: [(&str, Expected); 16] = [
    ("text", Ok(("telegram:1000001", "hi 👋"))),
    ("photo", Ok(("telegram:1000001", "what is this?"))),
    ("document", Ok(("telegram:1000001", ""))),
    ("voice", Ok(("telegram:1000001", ""))),
    ("sticker", Ok(("telegram:1000001", "[sticker 👍]"))),
    ("location", Ok(("telegram:1000001", "[location: 52.500000, 13.400000]"))),
    ("contact", Ok(("telegram:1000001", "[contact: Bo, +491]"))),
    ("business", Ok(("telegram:bc1%2F1000001", "are you open?"))),
    ("forward", Ok(("telegram:1000001", "passed on"))),
    ("reply", Ok(("telegram:1000001", "why?"))),
    ("command", Ok(("telegram:1000001", "/status"))),
    ("mention", Ok(("telegram:-1001:5", "hello"))),
    ("chatter", Err("not_addressed")),
    ("channel", Ok(("telegram:-1002", "news?"))),
    ("edited", Err("edited_message")),
    ("blocked", Err("membership")),
];

fn deliver(update: &Value) -> [Value; 2] {
    [json!({ "deliver": { "route": "/telegram/main", "body": update } }), json!({ "run": true })]
}

#[test]
fn aiogram_writes_what_is_read_and_takes_what_is_sent() {
    let mut peer = Peer::start("telegram.py");
    let updates = peer.ask(&json!({}));
    let mut sent = Vec::new();
    for (name, expected) in UPDATES {
        let played = play(&deliver(&updates[name]));
        assert_eq!(played["deliveries"][0]["status"], 200, "{name}");
        let event = &played["events"][0];
        match expected {
            Ok((session, text)) => {
                assert_eq!(event["session"], session, "{name}: {event}");
                let read = event["text"].as_str().unwrap_or_default();
                assert!(read.contains(text), "{name}: {event}");
            }
            Err(reason) => {
                assert_eq!((&event["outcome"], &event["reason"]), (&json!("ignored"), &json!(reason)), "{name}");
                // What starts no turn leaves its line, an edit too.
                let mut lines = played["logs"].as_array().into_iter().flatten();
                assert!(lines.any(|line| line["event_id"] == event["id"]), "{name}: {played:#}");
            }
        }
        sent.extend(calls(&played, "telegram"));
    }
    for (name, query) in [("button", "q1"), ("inline", "q2")] {
        let played = play(&deliver(&updates[name]));
        let event = &played["events"][0];
        assert_eq!((&event["outcome"], &event["session"]), (&json!("committed"), &json!("telegram:1000001")), "{name}");
        let answered = &played["platform_calls"]["telegram.answerCallbackQuery"];
        assert_eq!(answered[0]["arguments"]["callback_query_id"], query, "{name}");
        let card = &played["platform_calls"]["telegram.editMessageReplyMarkup"][0]["arguments"];
        match name {
            "button" => assert_eq!((&card["chat_id"], &card["message_id"]), (&json!(1_000_001), &json!(50))),
            _ => assert_eq!(card["inline_message_id"], "in1"),
        }
        sent.extend(calls(&played, "telegram"));
    }
    let model = json!({ "model": { "chunks": [
        { "wait": 6 }, "# Plan\n\n- **one** & `two`\n", { "wait": 4 }, "\n[docs](https://docs.example)\n```rust\nfn main() {}\n```\n",
    ] } });
    let reply = [vec![model.clone()], deliver(&updates["mention"]).to_vec()].concat();
    sent.extend(calls(&play(&reply), "telegram"));
    // An edit that finds no message ends in a new one, and what is left of the old one is taken away.
    let lost = json!({ "platform": {
        "channel": "telegram", "method": "editMessageText", "status": 400, "applied": false,
        "body": { "ok": false, "error_code": 400, "description": "Bad Request: message can't be edited" },
    } });
    let replaced = [vec![model, lost], deliver(&updates["text"]).to_vec()].concat();
    sent.extend(calls(&play(&replaced), "telegram"));
    let verdict = peer.ask(&json!(sent));
    assert_eq!(verdict["refused"], json!([]));
    let methods: BTreeSet<&str> = sent.iter().filter_map(|call| call["method"].as_str()).collect();
    assert_eq!(methods, METHODS.into(), "what the library was asked about");
    assert_eq!(verdict["checked"], sent.len());
}
