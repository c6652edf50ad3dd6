//! The event contract as it is out in the world: golden JSON of version 1, which every later version must still read and
//! print, and the schemas for producers in other languages. A golden file is never changed; a new field gets a new file.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use turnlock_domain::envelope::{Command, Envelope, Position};
use turnlock_domain::event::{
    Button, Channel, ContentBlock, ContentType, EventType, InboundEvent, MessageKind, OutboundEvent, Revision, SCHEMA,
};
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;

#[path = "../examples/schema.rs"]
#[expect(dead_code, reason = "its `main` is the example's")]
mod schema;

fn golden(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn parse<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_str(&golden(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn print<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads the file and holds what is printed to the same text.
fn round_trip<T: Serialize + DeserializeOwned>(name: &str) -> T {
    let value: T = parse(name);
    let printed = serde_json::to_string_pretty(&value).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(printed + "\n", golden(name), "{name}");
    value
}

#[test]
fn full_events_come_back_as_they_were() {
    let inbound: InboundEvent = round_trip("inbound-event.v1.full.json");
    assert_eq!(inbound.text(), "Look at this: 👩‍👩‍👧 é\nand listen");
    assert_eq!(inbound.media_urls(), ["telegram-file:AgAD", "telegram-file:AwAC"]);
    assert_eq!(inbound.session_key().as_str(), "telegram:support:-1002000:5");

    let outbound: OutboundEvent = round_trip("outbound-event.v1.full.json");
    assert_eq!(outbound.text(), "Here it is.");
    assert_eq!(outbound.chat(), "telegram:support:-1002000");
    assert_eq!(outbound.revision, Revision { fence: 12, sequence: Revision::FINAL });

    let card: OutboundEvent = round_trip("outbound-event.v1.buttons.json");
    assert_eq!(card.edits.as_deref(), Some("telegram:4711:1003.approval.1"));
    let button = Button { label: "Allow".to_owned(), data: "approve:1".to_owned() };
    assert_eq!((card.message_kind, card.buttons), (MessageKind::ApprovalRequest, vec![button]));

    let envelope: Envelope = round_trip("envelope.v1.full.json");
    assert_eq!(envelope.position, Position::new(Millis(1_760_000_000_000), "79"));
    assert_eq!(envelope.command, Some(Command::Stop));
    assert!(envelope.trusted().is_ok());
}

#[test]
fn a_minimal_inbound_event_gets_the_documented_defaults() {
    let event: InboundEvent = parse("inbound-event.v1.minimal.json");
    assert_eq!(event.event_type, EventType::Message);
    assert_eq!((event.text(), event.media_urls()), (String::new(), vec![]));
    assert_eq!(event.session_key(), SessionKey::new("webhook", "main", "", None));
    assert_eq!(
        print(&event),
        json!({
            "schema": 1, "event_id": "webhook:github:1", "event_type": "message", "channel": "webhook", "account": "main",
            "sender_id": "", "chat_id": "", "content": [], "timestamp": "2025-10-09T08:53:20.5Z",
        })
    );
}

#[test]
fn a_minimal_outbound_event_gets_the_documented_defaults() {
    let event: OutboundEvent = parse("outbound-event.v1.minimal.json");
    assert_eq!(event.message_kind, MessageKind::Final);
    assert_eq!(
        print(&event),
        json!({
            "schema": 1, "event_id": "webhook:github:1.final", "channel": "webhook", "account": "main", "chat_id": "",
            "content": [], "is_final": true, "message_kind": "final", "part": 0, "revision": {"fence": 0, "sequence": 0},
        })
    );
}

#[test]
fn a_minimal_envelope_gets_the_documented_defaults() {
    let envelope: Envelope = parse("envelope.v1.minimal.json");
    assert_eq!((envelope.command, envelope.unattended, envelope.redrive), (None, false, 0));
    assert_eq!(envelope.accepted_at, Millis(1_760_000_001_250));
    let printed = print(&envelope);
    assert_eq!(printed["position"], "001760000000000#");
    assert_eq!(printed.get("command"), None);
}

#[test]
fn what_a_later_version_adds_does_not_fail_this_one() {
    let inbound: InboundEvent = parse("inbound-event.v1.future.json");
    assert_eq!((inbound.schema, inbound.event_type, inbound.channel), (7, EventType::Unknown, Channel::Unknown));
    assert_eq!(inbound.content[0].kind, ContentType::Unknown);
    assert_eq!((inbound.text().as_str(), inbound.media_urls()), ("hi", vec!["fax-file:1"]));

    let outbound: OutboundEvent = parse("outbound-event.v1.future.json");
    assert_eq!((outbound.channel, outbound.message_kind), (Channel::Unknown, MessageKind::Unknown));
    assert_eq!(outbound.content[0].kind, ContentType::Unknown);
}

#[test]
fn an_event_without_its_identity_is_refused() {
    for missing in ["event_id", "channel", "timestamp"] {
        let mut event: Map<String, Value> = parse("inbound-event.v1.minimal.json");
        event.remove(missing);
        assert!(serde_json::from_value::<InboundEvent>(Value::Object(event)).is_err(), "{missing}");
    }
}

/// An event of type `control` is nothing without our own envelope, whatever else its payload claims.
#[test]
fn control_is_nothing_a_payload_can_claim() {
    let mut payload: Value = parse("inbound-event.v1.minimal.json");
    payload["event_type"] = json!("control");
    payload["command"] = json!("stop");
    payload["unattended"] = json!(true);
    let event: InboundEvent = serde_json::from_value(payload).expect("parses");
    let envelope = Envelope {
        event,
        accepted_at: Millis(0),
        position: Position::new(Millis(0), ""),
        command: None,
        unattended: false,
        redrive: 0,
        former_chat: None,
        album: false,
    };
    assert!(envelope.trusted().is_err());
}

#[test]
fn session_keys_follow_the_chat_unless_overridden() {
    let mut event: InboundEvent = parse("inbound-event.v1.full.json");
    event.session_key_override = None;
    assert_eq!(event.session_key().as_str(), "telegram:support:-1002000");
    event.account = "main".to_owned();
    assert_eq!(event.session_key().as_str(), "telegram:-1002000");
    event.chat_id = "a:b/c".to_owned();
    assert_eq!(event.session_key().as_str(), "telegram:a%3Ab%2Fc");
}

#[test]
fn text_joins_text_blocks_only() {
    let mut event: InboundEvent = parse("inbound-event.v1.minimal.json");
    let captioned =
        ContentBlock { text: "a caption".to_owned(), ..ContentBlock::media(ContentType::Image, "", "image/png") };
    event.content = vec![ContentBlock::text("a"), captioned, ContentBlock::text(""), ContentBlock::text("b")];
    assert_eq!(event.text(), "a\nb");
    assert!(event.media_urls().is_empty(), "a block without a reference has no url");
}

#[test]
fn an_answer_names_what_caused_it() {
    let inbound: InboundEvent = parse("inbound-event.v1.full.json");
    let answer = OutboundEvent::answering(&inbound, "notice", MessageKind::Notice, "busy");
    assert_eq!((answer.schema, answer.event_id.as_str()), (SCHEMA, "telegram:4711:1003.notice"));
    assert_eq!(answer.caused_by, Some(EventId::from_stored("telegram:4711:1003")));
    assert_eq!((answer.chat_id, answer.thread_id, answer.trace), (inbound.chat_id, inbound.thread_id, inbound.trace));
}

#[test]
fn the_schemas_are_fresh() {
    for (path, fresh) in schema::schemas() {
        let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(checked_in == fresh, "{} is old: cargo run -p turnlock-domain --example schema", path.display());
    }
}

/// The full golden events have every field of the schema, and no other; so has each of their blocks taken together.
#[test]
fn the_schemas_and_the_full_events_have_the_same_fields() {
    let names = |object: &Value| -> Vec<String> {
        let mut names: Vec<String> = object.as_object().into_iter().flat_map(Map::keys).cloned().collect();
        names.sort();
        names
    };
    let files = [
        ["inbound-event.v1.full.json"].as_slice(),
        ["outbound-event.v1.full.json", "outbound-event.v1.buttons.json"].as_slice(),
    ];
    for ((_, text), files) in schema::schemas().iter().zip(files) {
        let schema: Value = serde_json::from_str(text).expect("the schema is JSON");
        let fields = files.iter().flat_map(|file| parse::<Map<String, Value>>(file));
        let (event, file) = (Value::Object(fields.collect()), files[0]);
        assert_eq!(names(&schema["properties"]), names(&event), "{file}");
        let block = &schema["$defs"]["ContentBlock"]["properties"];
        for name in event["content"].as_array().into_iter().flatten().flat_map(names) {
            assert!(block.get(&name).is_some(), "{name} of {file}");
        }
    }
}

#[test]
fn a_schema_of_today_accepts_the_values_of_tomorrow() {
    for (_, text) in schema::schemas() {
        let schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
        assert_eq!(schema.get("additionalProperties"), None);
        for name in ["Channel", "ContentType"] {
            let values = schema["$defs"][name]["anyOf"].as_array().expect("an open enum");
            assert!(values.iter().any(|value| value["type"] == "string" && value.get("const").is_none()), "{name}");
        }
    }
}
