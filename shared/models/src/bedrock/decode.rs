//! The SDK's answers as events. A text with citations is text; what a request of ours does not ask for (the citations
//! themselves, images, the results of tools that run at the provider) is skipped.

use aws_sdk_bedrockruntime::operation::converse::ConverseOutput as WholeAnswer;
use aws_sdk_bedrockruntime::types::{
    CitationGeneratedContent, ContentBlock, ContentBlockDelta, ContentBlockStart, ConverseOutput, ConverseStreamOutput,
    ReasoningContentBlock, ReasoningContentBlockDelta, TokenUsage,
};
use aws_smithy_types::{Document, Number, base64};
use serde_json::{Map, Value};
use turnlock_domain::turn::Usage;

use crate::error::ModelError;
use crate::event::{ModelEvent, StopReason};

/// Decodes the events of one stream.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The content block of each call; its place in the list is the index of the call's events.
    calls: Vec<i32>,
    /// What of the open block is only whole at its end: a signature, and encrypted reasoning.
    signature: String,
    redacted: Vec<u8>,
    stop: Option<StopReason>,
    usage: Usage,
}

impl Decoder {
    /// Whether the answer is whole; only its usage may still follow.
    pub(super) fn is_finished(&self) -> bool {
        self.stop.is_some()
    }

    /// What one event of the wire stands for.
    ///
    /// # Errors
    /// [`ModelError::Interrupted`] if it is a piece of a call that did not begin.
    pub(super) fn event(&mut self, event: ConverseStreamOutput) -> Result<Vec<ModelEvent>, ModelError> {
        let mut events = Vec::new();
        match event {
            ConverseStreamOutput::ContentBlockStart(start) => {
                if let Some(ContentBlockStart::ToolUse(call)) = start.start {
                    let index = event_index(self.calls.len());
                    self.calls.push(start.content_block_index);
                    events.push(ModelEvent::ToolStart { index, id: call.tool_use_id, name: call.name });
                }
            }
            ConverseStreamOutput::ContentBlockDelta(piece) => {
                if let Some(delta) = piece.delta {
                    self.delta(piece.content_block_index, delta, &mut events)?;
                }
            }
            ConverseStreamOutput::ContentBlockStop(_) => self.end_block(&mut events),
            ConverseStreamOutput::MessageStop(stop) => {
                self.end_block(&mut events);
                self.stop = Some(StopReason::from_name(stop.stop_reason.as_str()));
            }
            ConverseStreamOutput::Metadata(metadata) => {
                self.usage = metadata.usage.as_ref().map(usage).unwrap_or_default();
            }
            _ => {}
        }
        Ok(events)
    }

    /// The last event.
    ///
    /// # Errors
    /// [`ModelError::Interrupted`] if no stop reason came.
    pub(super) fn stop(&mut self) -> Result<ModelEvent, ModelError> {
        let Some(reason) = self.stop.take() else {
            return Err(ModelError::Interrupted("the stream ended without messageStop".into()));
        };
        Ok(ModelEvent::Stop { reason, usage: self.usage })
    }

    fn delta(&mut self, block: i32, delta: ContentBlockDelta, events: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        match delta {
            ContentBlockDelta::Text(text) => events.extend(some(text).map(ModelEvent::Text)),
            ContentBlockDelta::ToolUse(piece) => {
                let Some(at) = self.calls.iter().position(|call| *call == block) else {
                    return Err(ModelError::Interrupted("arguments came for a call that did not begin".into()));
                };
                events.extend(some(piece.input).map(|json| ModelEvent::ToolInput { index: event_index(at), json }));
            }
            ContentBlockDelta::ReasoningContent(ReasoningContentBlockDelta::Text(text)) => {
                events.extend(some(text).map(ModelEvent::Reasoning));
            }
            ContentBlockDelta::ReasoningContent(ReasoningContentBlockDelta::Signature(piece)) => {
                self.signature.push_str(&piece);
            }
            ContentBlockDelta::ReasoningContent(ReasoningContentBlockDelta::RedactedContent(piece)) => {
                self.redacted.extend_from_slice(piece.as_ref());
            }
            _ => {}
        }
        Ok(())
    }

    fn end_block(&mut self, events: &mut Vec<ModelEvent>) {
        events.extend(some(std::mem::take(&mut self.signature)).map(ModelEvent::Signature));
        let redacted = std::mem::take(&mut self.redacted);
        if !redacted.is_empty() {
            events.push(ModelEvent::Redacted(base64::encode(redacted)));
        }
    }
}

/// The events of an answer that came in one piece.
///
/// # Errors
/// [`ModelError::Interrupted`] if it holds no message.
pub(super) fn whole(answer: WholeAnswer) -> Result<Vec<ModelEvent>, ModelError> {
    let Some(ConverseOutput::Message(message)) = answer.output else {
        return Err(ModelError::Interrupted("the answer holds no message".into()));
    };
    let mut events = Vec::new();
    let mut calls = 0;
    for block in message.content {
        match block {
            ContentBlock::Text(text) => events.extend(some(text).map(ModelEvent::Text)),
            ContentBlock::ToolUse(call) => {
                let index = event_index(calls);
                calls += 1;
                events.push(ModelEvent::ToolStart { index, id: call.tool_use_id, name: call.name });
                events.push(ModelEvent::ToolInput { index, json: json(call.input).to_string() });
            }
            ContentBlock::ReasoningContent(ReasoningContentBlock::ReasoningText(reasoning)) => {
                events.extend(some(reasoning.text).map(ModelEvent::Reasoning));
                events.extend(reasoning.signature.and_then(some).map(ModelEvent::Signature));
            }
            ContentBlock::CitationsContent(cited) => {
                let texts = cited.content.into_iter().flatten().filter_map(|piece| match piece {
                    CitationGeneratedContent::Text(text) => some(text),
                    _ => None,
                });
                events.extend(texts.map(ModelEvent::Text));
            }
            ContentBlock::ReasoningContent(ReasoningContentBlock::RedactedContent(data)) => {
                events.push(ModelEvent::Redacted(base64::encode(data)));
            }
            _ => {}
        }
    }
    let reason = StopReason::from_name(answer.stop_reason.as_str());
    events.push(ModelEvent::Stop { reason, usage: answer.usage.as_ref().map(usage).unwrap_or_default() });
    Ok(events)
}

/// What is read from a cache and written to one is not among Bedrock's `inputTokens`.
fn usage(tokens: &TokenUsage) -> Usage {
    let count = |tokens: i32| u64::try_from(tokens).unwrap_or_default();
    Usage {
        input_tokens: count(tokens.input_tokens),
        output_tokens: count(tokens.output_tokens),
        cache_read_tokens: tokens.cache_read_input_tokens.map(count).unwrap_or_default(),
        cache_write_tokens: tokens.cache_write_input_tokens.map(count).unwrap_or_default(),
        ..Usage::default()
    }
}

fn json(document: Document) -> Value {
    match document {
        Document::Null => Value::Null,
        Document::Bool(value) => value.into(),
        Document::String(text) => text.into(),
        Document::Number(Number::PosInt(number)) => number.into(),
        Document::Number(Number::NegInt(number)) => number.into(),
        Document::Number(Number::Float(number)) => number.into(),
        Document::Array(items) => items.into_iter().map(json).collect(),
        Document::Object(fields) => {
            Value::Object(fields.into_iter().map(|(name, value)| (name, json(value))).collect::<Map<_, _>>())
        }
    }
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn event_index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
