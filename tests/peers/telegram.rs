//! `aiogram`: updates made from its types are understood, and it takes what is sent.

use serde_json::{Value, json};

use crate::kit::{Peer, calls, play};

/// The session and the text of an event, or why there is none.
type Expected = Result<(&'static str, &'static str), &'static str>;

/// The updates by name, and what becomes of each.
const UPDATES: [(&str, Expected); 12] = [
    ("text", Ok(("telegram:1000001", "hi 👋"))),
    ("photo", Ok(("telegram:1000001", "what is this?"))),
    ("document", Ok(("telegram:1000001", ""))),
    ("voice", Ok(("telegram:1000001", ""))),
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
                assert_eq!((&event["outcome"], &event["reason"]), (&json!("ignored"), &json!(reason)), "{name}")
            }
        }
        sent.extend(calls(&played, "telegram"));
    }
    for name in ["sticker", "location", "contact", "business", "button", "inline"] {
        let played = play(&deliver(&updates[name]));
        assert_eq!(
            (&played["deliveries"][0]["status"], &played["events"].as_array().map(Vec::len)),
            (&json!(200), &Some(1)),
            "{name}: {played}"
        );
        sent.extend(calls(&played, "telegram"));
    }
    let model = json!({ "model": {
        "chunks": ["# Plan\n\n- **one** & `two`\n", { "wait": 4 }, "\n[docs](https://docs.example)\n```rust\nfn main() {}\n```\n"],
    } });
    let reply = [vec![model], deliver(&updates["mention"]).to_vec()].concat();
    sent.extend(calls(&play(&reply), "telegram"));
    let verdict = peer.ask(&json!(sent));
    assert_eq!(verdict["refused"], json!([]));
    let methods: std::collections::BTreeSet<&str> = sent.iter().filter_map(|call| call["method"].as_str()).collect();
    assert!(methods.contains("sendMessage"), "{methods:?}");
}
