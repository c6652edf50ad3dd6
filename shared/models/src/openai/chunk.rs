//! The JSON of chat completion chunks as events, and what compatible servers do otherwise: whole calls in one chunk, one
//! index for several calls, no ids, arguments that are not text, content in parts, `reasoning_content` or `reasoning`
//! beside the content or both, a `message` where a `delta` belongs, an error where a chunk belongs, words of their own for
//! how an answer ended.
//!
//! Reasoning is told apart and kept.

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
    choices: Option<Vec<Choice>>,
    /// Not read as numbers at once: a count that is none must not cost the answer.
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
    #[serde(default)]
    object: Value,
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
    /// A text, or a list of parts.
    content: Value,
    reasoning_content: Option<String>,
    /// The same under another name. Some servers send both.
    reasoning: Value,
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
    function: Option<FunctionDelta>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Value,
}

impl Decoder {
    /// Whether the answer is whole; only its usage may still follow.
    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The events of one chunk.
    pub(super) fn chunk(&mut self, json: &str) -> Result<Vec<ModelEvent>, ModelError> {
        // The parser's error is not kept: it may quote the answer.
        let unreadable = || ModelError::Interrupted("a chunk is not the JSON of a chat completion".into());
        let json: Value = from_json(json.as_bytes()).map_err(|_| unreadable())?;
        let chunk = Chunk::deserialize(&json).map_err(|_| unreadable())?;
        if !chunk.error.is_null() {
            return Err(Refusal::of(&chunk.error).in_stream());
        }
        if chunk.object == "error" {
            return Err(Refusal::of(&json).in_stream());
        }
        if chunk.usage.is_object() {
            self.usage = usage(&chunk.usage);
        }
        let mut events = Vec::new();
        // One choice is asked for; a second would be another answer.
        if let Some(choice) = chunk.choices.into_iter().flatten().next() {
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
        let reason = match finish.to_ascii_lowercase().as_str() {
            "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" if self.refused => StopReason::Refused,
            // Several servers say `stop` after calls; nothing else is reinterpreted.
            "stop" | "eos" | "eos_token" | "end_turn" if !self.calls.is_empty() => StopReason::ToolUse,
            "stop" | "eos" | "eos_token" | "end_turn" => StopReason::EndTurn,
            "stop_sequence" => StopReason::StopSequence,
            "tool_calls" | "tool_use" | "function_call" if self.calls.is_empty() => StopReason::Malformed,
            "tool_calls" | "tool_use" | "function_call" => StopReason::ToolUse,
            "length" | "max_tokens" => StopReason::MaxTokens,
            "model_length" => StopReason::ContextFull,
            "content_filter" | "safety" | "recitation" => StopReason::Refused,
            "malformed_function_call" => StopReason::Malformed,
            // The server gave up on its own answer: the words of DeepSeek, vLLM and SGLang, and of routers.
            "insufficient_system_resource" => return Err(ModelError::Overloaded),
            "abort" | "error" => {
                return Err(ModelError::Interrupted("the server says that it broke the answer off".into()));
            }
            _ => StopReason::Other(finish.chars().take(64).collect()),
        };
        Ok(Some(ModelEvent::Stop { reason, usage: self.usage }))
    }

    fn delta(&mut self, delta: Delta, events: &mut Vec<ModelEvent>) {
        let some = |text: Option<String>| text.filter(|text| !text.is_empty());
        let reasoning = some(delta.reasoning_content).or_else(|| delta.reasoning.as_str().and_then(said));
        events.extend(reasoning.map(ModelEvent::Reasoning));
        content(&delta.content, events);
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
        let function = delta.function.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let at = self.calls.iter().rposition(|call| call.index == index);
        let at = at.filter(|at| !self.calls[*at].is_over(&id, &name)).unwrap_or_else(|| {
            self.calls.push(Call { index, id: id.clone(), arguments: String::new() });
            let at = self.calls.len() - 1;
            events.push(ModelEvent::ToolStart { index: event_index(at), id, name });
            at
        });
        let json = match function.arguments {
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

/// A text, or parts of it: `text`, and `thinking` with parts of its own. What else a part may be is skipped.
fn content(content: &Value, events: &mut Vec<ModelEvent>) {
    if let Some(text) = content.as_str().and_then(said) {
        events.push(ModelEvent::Text(text));
    }
    for part in content.as_array().into_iter().flatten() {
        let thought = part["thinking"].as_array().into_iter().flatten().chain([&part["thinking"]]);
        let thought = thought.filter_map(|piece| piece["text"].as_str().or(piece.as_str()).and_then(said));
        events.extend(thought.map(ModelEvent::Reasoning));
        events.extend(part["text"].as_str().or(part.as_str()).and_then(said).map(ModelEvent::Text));
    }
}

fn said(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// What a cache held is among the `prompt_tokens`; DeepSeek counts it under a name of its own.
fn usage(tokens: &Value) -> Usage {
    let count = |pointer: &str| tokens.pointer(pointer).and_then(Value::as_u64);
    let cached = count("/prompt_tokens_details/cached_tokens").or_else(|| count("/prompt_cache_hit_tokens"));
    let (read, cached) = (count("/prompt_tokens").unwrap_or_default(), cached.unwrap_or_default());
    Usage {
        input_tokens: read.saturating_sub(cached),
        output_tokens: count("/completion_tokens").unwrap_or_default(),
        cache_read_tokens: cached.min(read),
        ..Usage::default()
    }
}

fn event_index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
