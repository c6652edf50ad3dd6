//! A turn on the wire: a JSON object, or the frames of an event stream.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};

use super::turn::{End, Gate, Turn};

enum Step {
    Send(Vec<u8>),
    Wait(Duration),
    Hold(Gate),
    Cut,
}

/// The answer in one piece.
pub(super) fn whole(turn: &Turn) -> Response {
    let body = json!({
        "output": { "message": { "role": "assistant", "content": turn.blocks } },
        "stopReason": turn.stop_reason(),
        "usage": turn.usage,
        "metrics": { "latencyMs": 1 },
    });
    let mut bytes = body.to_string().into_bytes();
    let steps = match &turn.end {
        End::Whole | End::Refused { .. } => vec![Step::Send(bytes)],
        End::Cut => {
            bytes.truncate(bytes.len() / 2);
            vec![Step::Send(bytes), Step::Cut]
        }
        End::Exception(_) => {
            return refusal(StatusCode::FAILED_DEPENDENCY, "ModelErrorException", "the script says so", None);
        }
    };
    respond("application/json", steps)
}

/// The answer as a stream.
pub(super) fn streamed(turn: Turn) -> Response {
    let mut steps = vec![event("messageStart", json!({ "role": "assistant" }))];
    let mut pieces = 0;
    for (index, block) in turn.blocks.iter().enumerate() {
        if let Some(call) = block.get("toolUse") {
            let start = json!({ "toolUse": { "toolUseId": call["toolUseId"], "name": call["name"] } });
            steps.push(event("contentBlockStart", json!({ "contentBlockIndex": index, "start": start })));
        }
        for delta in deltas(block, turn.piece) {
            // The padding hides the length of what is said, as in the real thing.
            let payload = json!({ "contentBlockIndex": index, "delta": delta, "p": "abcdefgh" });
            steps.push(event("contentBlockDelta", payload));
            pieces += 1;
            steps.extend(turn.gate_after(pieces).cloned().map(Step::Hold));
            if !turn.pause.is_zero() {
                steps.push(Step::Wait(turn.pause));
            }
        }
        let is_last = index + 1 == turn.blocks.len();
        if !is_last || turn.end == End::Whole {
            steps.push(event("contentBlockStop", json!({ "contentBlockIndex": index })));
        }
    }
    match &turn.end {
        End::Exception(kind) => {
            let message = json!({ "message": "the script says so" });
            steps.push(Step::Send(frame("exception", ":exception-type", kind, &message)));
        }
        End::Cut => steps.push(Step::Cut),
        End::Whole | End::Refused { .. } => {
            steps.push(event("messageStop", json!({ "stopReason": turn.stop_reason() })));
            steps.push(event("metadata", json!({ "usage": turn.usage, "metrics": { "latencyMs": 1 } })));
        }
    }
    respond("application/vnd.amazon.eventstream", steps)
}

/// An error before the answer.
pub(super) fn refusal(status: StatusCode, kind: &str, message: &str, retry_after: Option<u64>) -> Response {
    let body = json!({ "message": message }).to_string();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let kind = format!("{kind}:http://internal.amazon.com/coral/com.amazon.bedrock/");
    headers.insert(CONTENT_TYPE, "application/json".parse().unwrap());
    headers.insert("x-amzn-errortype", kind.parse().unwrap());
    if let Some(seconds) = retry_after {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// The turn's error before the answer, if it has one.
pub(super) fn refused(turn: &Turn) -> Option<Response> {
    let End::Refused { status, kind, message, retry_after } = &turn.end else { return None };
    Some(refusal(StatusCode::from_u16(*status).unwrap(), kind, message, *retry_after))
}

/// What a block's deltas hold, in pieces of at most so many characters. A block of no text has none.
fn deltas(block: &Value, piece: usize) -> Vec<Value> {
    if let Some(text) = block["text"].as_str() {
        return cut(text, piece).map(|text| json!({ "text": text })).collect();
    }
    if let Some(reasoning) = block.pointer("/reasoningContent/reasoningText") {
        let text = reasoning["text"].as_str().unwrap_or_default();
        let signature = json!({ "reasoningContent": { "signature": reasoning["signature"] } });
        let texts = cut(text, piece).map(|text| json!({ "reasoningContent": { "text": text } }));
        return texts.chain([signature]).collect();
    }
    let input = block["toolUse"]["input"].to_string();
    cut(&input, piece).map(|json| json!({ "toolUse": { "input": json } })).collect()
}

fn cut(text: &str, piece: usize) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters.chunks(piece.max(1)).map(String::from_iter).collect();
    pieces.into_iter()
}

fn event(kind: &str, payload: Value) -> Step {
    Step::Send(frame("event", ":event-type", kind, &payload))
}

fn frame(message_type: &str, kind_header: &'static str, kind: &str, payload: &Value) -> Vec<u8> {
    let text = |text: &str| HeaderValue::String(text.to_owned().into());
    let message = Message::new(payload.to_string())
        .add_header(Header::new(kind_header, text(kind)))
        .add_header(Header::new(":content-type", text("application/json")))
        .add_header(Header::new(":message-type", text(message_type)));
    let mut bytes = Vec::new();
    write_message_to(&message, &mut bytes).unwrap();
    bytes
}

fn respond(content_type: &str, steps: Vec<Step>) -> Response {
    let body = stream::unfold(VecDeque::from(steps), |mut steps| async move {
        loop {
            match steps.pop_front()? {
                Step::Send(bytes) => return Some((Ok(Bytes::from(bytes)), steps)),
                Step::Wait(pause) => tokio::time::sleep(pause).await,
                Step::Hold(gate) => gate.pass().await,
                Step::Cut => {
                    // What came before is written when the body is not ready for a moment.
                    tokio::task::yield_now().await;
                    return Some((Err(io::Error::other("cut")), VecDeque::new()));
                }
            }
        }
    });
    let mut response = Response::new(Body::from_stream(body));
    response.headers_mut().insert(CONTENT_TYPE, content_type.parse().unwrap());
    response
}
