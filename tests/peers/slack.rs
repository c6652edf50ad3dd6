//! `slack_sdk`: its signatures are ours, and it takes what is sent.

use std::collections::BTreeSet;

use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::{Value, json};
use turnlock_channels::Refusal;
use turnlock_channels::slack::{SIGNATURE_HEADER, TIMESTAMP_HEADER, sign, verify};

use crate::kit::{Peer, calls, play};

const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
const NOW: i64 = 1_767_603_600;

/// What Slack sends: an event, a form, text outside of ASCII, and nothing at all.
const BODIES: [&str; 4] = [
    r#"{"type":"event_callback","event":{"type":"message","text":"grüße 👋"}}"#,
    "command=%2Fecho&text=stop&channel_id=C1&user_id=U1",
    r#"{"text":"\ud83d\ude00 \u0000"}"#,
    "",
];

/// The methods that an app of ours calls for messages; files and deletions have tests of their own.
const METHODS: [&str; 3] = ["chat.postEphemeral", "chat.postMessage", "chat.update"];

/// A press of a button under a message of ours.
const PRESS: &str = include_str!("../../shared/channels/src/slack/fixtures/block_actions.form");

fn press() -> Value {
    json!({ "deliver": {
        "route": "/slack/main",
        "headers": { "content-type": "application/x-www-form-urlencoded" },
        "body_text": PRESS.trim_end(),
    } })
}

fn event(ts: &str, text: &str) -> Value {
    let event = json!({ "type": "app_mention", "channel": "C0CHAN", "user": "U0USER", "ts": ts, "text": text });
    json!({ "deliver": { "route": "/slack/main", "body": {
        "type": "event_callback", "team_id": "T0TEAM", "api_app_id": "A0APP", "event_id": format!("Ev{ts}"), "event": event,
    } } })
}

#[test]
fn slack_sdk_signs_and_takes_what_is_sent() {
    let (secret, now) = (SecretString::from(SECRET), Timestamp::from_second(NOW).unwrap());
    let headers: Vec<Value> = BODIES
        .iter()
        .map(|body| {
            let signed = sign(&secret, now, body.as_bytes());
            let text = |name: http::HeaderName| signed[name].to_str().unwrap();
            json!({ "X-Slack-Signature": text(SIGNATURE_HEADER), "X-Slack-Request-Timestamp": text(TIMESTAMP_HEADER) })
        })
        .collect();
    let mut peer = Peer::start("slack.py");
    let answer = peer.ask(&json!({ "secret": SECRET, "now": NOW, "bodies": BODIES, "headers": headers }));
    assert_eq!(answer["accepted"], json!([true, true, true, true]), "our signatures");
    for (body, signature) in BODIES.iter().zip(answer["signatures"].as_array().unwrap()) {
        let mut headers = http::HeaderMap::new();
        headers.insert(SIGNATURE_HEADER, signature.as_str().unwrap().parse().unwrap());
        headers.insert(TIMESTAMP_HEADER, NOW.into());
        let check = |body: &str, at: i64| {
            verify(Some(&secret), &headers, body.as_bytes(), Timestamp::from_second(NOW + at).unwrap())
        };
        assert_eq!(check(body, 0), Ok(()), "{body}");
        assert_eq!(check(&format!("{body} "), 0), Err(Refusal::BadSignature), "{body}");
        assert_eq!(check(body, 301), Err(Refusal::Stale), "{body}");
    }

    let played = play(&[
        json!({ "model": { "chunks": ["# Plan\n\n- **one** & `two`\n", { "wait": 4 }, "\n[docs](https://docs.example) <!channel>\n"] } }),
        event("1767603600.000100", "<@U0BOT> plan?"),
        json!({ "run": true }),
        json!({ "model": { "chunks": [{ "repeat": "word ", "times": 2000 }] } }),
        event("1767603600.000200", "<@U0BOT> long?"),
        json!({ "run": true }),
        event("1767603600.000300", "<@U0BOT> /status"),
        json!({ "run": true }),
        press(),
        json!({ "run": true }),
    ]);
    let calls = calls(&played, "slack");
    let verdict = peer.ask(&json!(calls));
    assert_eq!(verdict["refused"], json!([]));
    assert_eq!(verdict["checked"], calls.len());
    let methods: BTreeSet<&str> = calls.iter().filter_map(|call| call["method"].as_str()).collect();
    assert_eq!(methods, METHODS.into(), "what the library was asked about");
}
