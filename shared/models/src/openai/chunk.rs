//! The JSON of chat completion chunks as events, and what compatible servers do otherwise: whole calls in one chunk, one
//! index for several calls, no ids, arguments that are not text, `reasoning_content` or `reasoning` beside the content,
//! a `message` where a `delta` belongs.

use serde::Deserialize;
use serde_json::Value;
use turnlock_domain::text::from_json;
use turnlock_domain::turn::Usage;

use super::status::Refusal;
use crate::error::ModelError;
use crate::event::{ModelEvent, StopReason};

/// Decodes the chunks of one answer.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    calls: Vec<Call>,
    finish: Option<String>,
    refused: bool,
    usage: Usage,
}

/// A call that has begun; its place in the list is the index of its events.
#[derive(Debug)]
struct Call {
    /// The index the server gave it.
    index: u64,
    id: String,
    /// All of its arguments so far: a server that gives no ids is understood by them.
    arguments: String,
}

#[derive(Debug, Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Tokens>,
    #[serde(default)]
    error: Value,
}

#[derive(Debug, Deserialize)]
struct Choice {
    #[serde(default, alias = "message")]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta {
    content: Option<String>,
    #[serde(alias = "reasoning")]
    reasoning_content: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Debug, Deserialize)]
struct CallDelta {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: FunctionDelta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tokens {
    prompt_tokens: u64,
    completion_tokens: u64,
}

impl Decoder {
    /// Whether the answer is whole; only its usage may still follow.
    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The events of one chunk.
    pub(super) fn chunk(&mut self, json: &str) -> Result<Vec<ModelEvent>, ModelError> {
        // The parser's error is not kept: it may quote the answer.
        let chunk: Chunk = from_json(json.as_bytes())
            .map_err(|_| ModelError::Interrupted("a chunk is not the JSON of a chat completion".into()))?;
        if !chunk.error.is_null() {
            return Err(Refusal::of(&chunk.error).in_stream());
        }
        if let Some(tokens) = chunk.usage {
            self.usage = Usage {
                input_tokens: tokens.prompt_tokens,
                output_tokens: tokens.completion_tokens,
                ..Usage::default()
            };
        }
        let mut events = Vec::new();
        // One choice is asked for; a second would be another answer.
        if let Some(choice) = chunk.choices.into_iter().next() {
            self.delta(choice.delta.unwrap_or_default(), &mut events);
            self.finish = choice.finish_reason.filter(|reason| !reason.is_empty()).or(self.finish.take());
        }
        Ok(events)
    }

    /// The last event.
    ///
    /// # Errors
    /// [`ModelError::Interrupted`] if no finish reason came.
    pub(super) fn stop(&mut self) -> Result<Option<ModelEvent>, ModelError> {
        let Some(finish) = &self.finish else {
            return Err(ModelError::Interrupted("the stream ended without a finish reason".into()));
        };
        let reason = match finish.as_str() {
            "stop" if self.refused => StopReason::Refused,
            // Several servers say `stop` after calls; nothing else is reinterpreted.
            "stop" if !self.calls.is_empty() => StopReason::ToolUse,
            "stop" => StopReason::EndTurn,
            "tool_calls" | "function_call" if self.calls.is_empty() => StopReason::Malformed,
            "tool_calls" | "function_call" => StopReason::ToolUse,
            "length" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refused,
            other => StopReason::Other(other.chars().take(64).collect()),
        };
        Ok(Some(ModelEvent::Stop { reason, usage: self.usage }))
    }

    fn delta(&mut self, delta: Delta, events: &mut Vec<ModelEvent>) {
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        events.extend(some(delta.reasoning_content).map(ModelEvent::Reasoning));
        events.extend(some(delta.content).map(ModelEvent::Text));
        if let Some(refusal) = some(delta.refusal) {
            self.refused = true;
            events.push(ModelEvent::Text(refusal));
        }
        for (place, call) in (0..).zip(delta.tool_calls.unwrap_or_default()) {
            self.call(place, call, events);
        }
    }

    fn call(&mut self, place: u64, delta: CallDelta, events: &mut Vec<ModelEvent>) {
        let index = delta.index.unwrap_or(place);
        let id = delta.id.unwrap_or_default();
        let name = delta.function.name.unwrap_or_default();
        let at = self.calls.iter().rposition(|call| call.index == index);
        let at = at.filter(|at| !self.calls[*at].is_over(&id, &name)).unwrap_or_else(|| {
            self.calls.push(Call { index, id: id.clone(), arguments: String::new() });
            let at = self.calls.len() - 1;
            events.push(ModelEvent::ToolStart { index: event_index(at), id, name });
            at
        });
        let json = match delta.function.arguments {
            Value::Null => return,
            Value::String(fragment) => fragment,
            whole => whole.to_string(),
        };
        if !json.is_empty() {
            self.calls[at].arguments.push_str(&json);
            events.push(ModelEvent::ToolInput { index: event_index(at), json });
        }
    }
}

impl Call {
    /// Whether a piece with this id and name belongs to another call that reuses the index: a new id with a name says
    /// so, and without ids a name after arguments that are complete. (Some servers make up an id for every piece.)
    fn is_over(&self, id: &str, name: &str) -> bool {
        if name.is_empty() {
            return false;
        }
        if id.is_empty() || self.id.is_empty() {
            return serde_json::from_str::<Value>(&self.arguments).is_ok();
        }
        id != self.id
    }
}

fn event_index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
