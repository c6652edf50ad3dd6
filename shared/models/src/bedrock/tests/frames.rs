//! Bedrock's event-stream frames.

use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
use serde_json::{Value, json};

/// An event.
pub(super) fn frame(kind: &str, payload: &Value) -> Vec<u8> {
    encoded("event", ":event-type", kind, payload)
}

/// An error in the stream.
pub(super) fn exception(kind: &str, payload: &Value) -> Vec<u8> {
    encoded("exception", ":exception-type", kind, payload)
}

/// A piece of the first block's text.
pub(super) fn text_delta(text: &str) -> Vec<u8> {
    frame("contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": {"text": text}}))
}

/// The end of a message.
pub(super) fn stopped(reason: &str) -> Vec<u8> {
    frame("messageStop", &json!({ "stopReason": reason }))
}

fn encoded(message_type: &str, kind_header: &'static str, kind: &str, payload: &Value) -> Vec<u8> {
    let text = |text: &str| HeaderValue::String(text.to_owned().into());
    let message = Message::new(payload.to_string())
        .add_header(Header::new(kind_header, text(kind)))
        .add_header(Header::new(":content-type", text("application/json")))
        .add_header(Header::new(":message-type", text(message_type)));
    let mut bytes = Vec::new();
    write_message_to(&message, &mut bytes).expect("a frame");
    bytes
}
