//! What is sent, and what an answer means. That the bus gets it is shown on the local AWS.

use aws_sdk_eventbridge::types::PutEventsResultEntry;
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use serde_json::{Value, json};

use super::*;

fn observer() -> BusObserver {
    BusObserver::new(&SdkConfig::builder().behavior_version(BehaviorVersion::latest()).build(), "replies")
}

fn event(text: &str) -> OutboundEvent {
    let event = json!({
        "event_id": "e1:final", "channel": "telegram", "chat_id": "5", "is_final": true, "message_kind": "final",
        "content": [{ "type": "text", "text": text }],
    });
    serde_json::from_value(event).unwrap()
}

#[test]
fn the_detail_is_the_event() {
    let event = event("hi 👋");
    let entry = observer().entry(&event).unwrap();
    let named = [entry.event_bus_name(), entry.source(), entry.detail_type()];
    assert_eq!(named, [Some("replies"), Some("turnlock"), Some("Outbound event")]);
    let detail: Value = serde_json::from_str(entry.detail().unwrap()).unwrap();
    assert_eq!(detail, serde_json::to_value(&event).unwrap());
}

/// A byte more than the bus takes is not sent: the whole request would be refused.
#[test]
fn what_is_too_large_is_refused_here() {
    let with_one = SOURCE.len() + DETAIL_TYPE.len() + serde_json::to_string(&event("x")).unwrap().len();
    let fits = "x".repeat(MAX_ENTRY - with_one + 1);
    assert!(observer().entry(&event(&fits)).is_ok());
    let error = observer().entry(&event(&format!("{fits}x"))).unwrap_err();
    assert_eq!(error.to_string(), "it has 262145 bytes, more than an event bus takes");
}

#[test]
fn an_entry_that_was_refused_is_an_error() {
    let answer = |failed: i32, entry: PutEventsResultEntry| {
        PutEventsOutput::builder().failed_entry_count(failed).entries(entry).build()
    };
    assert!(accepted(&answer(0, PutEventsResultEntry::builder().event_id("1").build())).is_ok());
    let refused = PutEventsResultEntry::builder().error_code("ThrottlingException").error_message("planted").build();
    let error = accepted(&answer(1, refused)).unwrap_err();
    assert_eq!(error.to_string(), "the event bus refused it: ThrottlingException");
}
