//! Messages of API callers and what becomes of them.

use http::HeaderValue;
use serde_json::json;
use turnlock_domain::envelope::Command;

use super::*;

const FRESH: &str = "0199c6f2-7c00-7000-8000-000000000001";

/// A body with every field, for the mutations.
const FULL: &str = r#"{
    "content": [
        { "type": "text", "text": "what is this?" },
        { "type": "image", "url": "https://a.example/x.png", "mime_type": "image/png", "name": "x.png", "size": 7,
          "metadata": { "_a": 1, "b": 2 } }
    ],
    "session": "ops", "sender": "ann", "metadata": { "ticket": 7, "_drop": true }
}"#;

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_000).unwrap()
}

fn keyed(key: &str) -> HeaderMap {
    HeaderMap::from_iter([(IDEMPOTENCY_HEADER, HeaderValue::from_str(key).unwrap())])
}

fn of(headers: &HeaderMap, body: &str) -> Result<ApiMessage, Refusal> {
    normalise(Channel::Gateway, "ops", headers, body.as_bytes(), now(), FRESH)
}

#[test]
fn a_message_is_the_whole_event() {
    let message = of(&keyed("k-1"), FULL).unwrap();
    assert!(message.keyed);
    assert_eq!(message.digest, digest(FULL.as_bytes()));
    assert_eq!(
        serde_json::to_value(&message.arrival.event).unwrap(),
        json!({
            "schema": 1, "event_id": "gateway:ops:k-1", "event_type": "message", "channel": "gateway", "account": "ops",
            "sender_id": "ann", "chat_id": "ops", "timestamp": "2025-10-09T08:53:20Z",
            "content": [
                { "type": "text", "text": "what is this?" },
                { "type": "image", "url": "https://a.example/x.png", "mime_type": "image/png", "name": "x.png",
                  "size": 7, "metadata": { "b": 2 } },
            ],
            "metadata": { "ticket": 7 },
        })
    );
}

#[test]
fn without_a_key_each_message_is_new() {
    let message = of(&HeaderMap::new(), r#"{"text":"hi"}"#).unwrap();
    assert_eq!(message.arrival.event.event_id.as_str(), format!("gateway:ops:{FRESH}"));
    assert_eq!((message.keyed, message.arrival.event.chat_id.as_str()), (false, "default"));
    assert_eq!(message.arrival.event.sender_id, "ops");
}

#[test]
fn two_callers_may_use_one_key() {
    let other = normalise(Channel::Gateway, "ci", &keyed("k"), br#"{"text":"hi"}"#, now(), FRESH).unwrap();
    assert_ne!(of(&keyed("k"), r#"{"text":"hi"}"#).unwrap().arrival.event.event_id, other.arrival.event.event_id);
}

#[test]
fn typed_commands_are_commands() {
    let message = of(&HeaderMap::new(), r#"{"text":"/stop"}"#).unwrap();
    assert_eq!((message.arrival.command, message.arrival.event.event_type), (Some(Command::Stop), EventType::Control));
    let terminal = normalise(Channel::Cli, "main", &HeaderMap::new(), br#"{"text":"hi"}"#, now(), FRESH).unwrap();
    assert_eq!(terminal.arrival.event.event_type, EventType::Cli);
    assert_eq!(terminal.arrival.event.session_key().as_str(), "cli:default");
}

#[test]
fn what_is_not_allowed_is_named_with_what_is() {
    let table = [
        ("{}", "text"),
        (r#"{"text":"a","content":[]}"#, "text"),
        (r#"{"text":""}"#, "text"),
        (r#"{"text":"\u200b"}"#, "text"),
        (r#"{"text":7}"#, "text"),
        (r#"{"content":[]}"#, "content"),
        (r#"{"content":[{"type":"hologram"}]}"#, "content.type"),
        (r#"{"content":[{"type":"text","text":" "}]}"#, "content.text"),
        (r#"{"content":[{"type":"image","url":"telegram-file:F1"}]}"#, "content.url"),
        (r#"{"content":[{"type":"image"}]}"#, "content.url"),
        (r#"{"text":"a","session":""}"#, "session"),
        (r#"{"text":"a","session":null}"#, "session"),
        (r#"{"text":"a","sender":"a\nb"}"#, "sender"),
        (r#"{"text":"a","metadata":[]}"#, "metadata"),
        (r#"{"text":"a","sesion":"x"}"#, "body"),
        ("[]", "body"),
    ];
    for (body, wanted) in table {
        match of(&HeaderMap::new(), body) {
            Err(Refusal::Invalid { field, .. }) => assert_eq!(field, wanted, "{body}"),
            other => panic!("{body}: {other:?}"),
        }
    }
    assert!(matches!(of(&HeaderMap::new(), "{"), Err(Refusal::Malformed(_))));
    let long = "k".repeat(256);
    for key in ["", "with space", long.as_str()] {
        assert_eq!(of(&keyed(key), r#"{"text":"a"}"#).unwrap_err().status(), 400, "{key:?}");
    }
}

#[test]
fn large_bodies_are_refused_before_they_are_read() {
    let request = IngressRequest::post("/v1/messages", HeaderMap::new(), vec![b' '; MAX_BODY + 1]);
    assert_eq!(receive("ops", &request, now(), FRESH), Err(Refusal::TooLarge { limit: MAX_BODY }));
    assert_eq!(crate::cli::receive(&request, now(), FRESH), Err(Refusal::TooLarge { limit: MAX_BODY }));
}

proptest::proptest! {
    #[test]
    fn no_mutation_panics_or_is_quoted(mutation in crate::mutation::strategy()) {
        let body = mutation.apply(FULL.as_bytes());
        let result = normalise(Channel::Gateway, "ops", &HeaderMap::new(), &body, now(), FRESH);
        crate::mutation::check(&body, result.map(|message| crate::ingress::Normalised::Event(message.arrival)));
    }
}
