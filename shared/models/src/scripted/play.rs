//! Plays a script line as a stream.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::{Stream, future, stream};

use super::line::{Chunk, ScriptError, ScriptLine, ScriptedCall};
use crate::error::ModelError;
use crate::event::{ModelEvent, StopReason};

/// One step of a played answer.
#[derive(Debug)]
pub(super) enum Step {
    Event(ModelEvent),
    Wait(Duration),
    Fail(ModelError),
    Hang,
}

/// The steps of `line`.
///
/// # Errors
/// The line's error, where a provider would refuse the call before anything streams.
pub(super) fn steps(line: ScriptLine) -> Result<VecDeque<Step>, ModelError> {
    let nothing_streams = line.chunks.is_empty() && line.tools.is_empty();
    let stop = match &line.stop {
        Some(name) => StopReason::from_name(name),
        None if line.tools.is_empty() => StopReason::EndTurn,
        None => StopReason::ToolUse,
    };
    let mut steps: VecDeque<Step> = line.chunks.into_iter().flat_map(chunk).collect();
    for (index, call) in (0..).zip(line.tools) {
        steps.extend(tool_call(index, call).map(Step::Event));
    }
    match line.error {
        None => steps.push_back(Step::Event(ModelEvent::Stop { reason: stop, usage: line.usage })),
        Some(ScriptError::Eof) => {}
        Some(ScriptError::Hang) => steps.push_back(Step::Hang),
        Some(ScriptError::MidStream) => steps.push_back(Step::Fail(failure(ScriptError::MidStream))),
        Some(error) if nothing_streams => return Err(failure(error)),
        Some(error) => steps.push_back(Step::Fail(failure(error))),
    }
    Ok(steps)
}

/// The stream of `steps`.
pub(super) fn stream(steps: VecDeque<Step>) -> impl Stream<Item = Result<ModelEvent, ModelError>> + Send {
    stream::unfold(steps, |mut steps| async move {
        loop {
            match steps.pop_front()? {
                Step::Event(event) => return Some((Ok(event), steps)),
                Step::Wait(time) => tokio::time::sleep(time).await,
                Step::Fail(error) => return Some((Err(error), VecDeque::new())),
                Step::Hang => future::pending().await,
            }
        }
    })
}

fn chunk(chunk: Chunk) -> Vec<Step> {
    match chunk {
        Chunk::Text(text) => vec![Step::Event(ModelEvent::Text(text))],
        Chunk::Reasoning { text, signature } => [ModelEvent::Reasoning(text)]
            .into_iter()
            .chain(signature.map(ModelEvent::Signature))
            .map(Step::Event)
            .collect(),
        Chunk::Redacted(data) => vec![Step::Event(ModelEvent::Redacted(data))],
        Chunk::Wait(seconds) => vec![Step::Wait(Duration::try_from_secs_f64(seconds).unwrap_or_default())],
    }
}

/// The events of one call; `index` is its place in the answer.
pub(super) fn tool_call(index: u32, call: ScriptedCall) -> impl Iterator<Item = ModelEvent> {
    let pieces = match (call.input_chunks, call.input) {
        (Some(pieces), _) => pieces,
        (None, Some(input)) => vec![input.to_string()],
        (None, None) => Vec::new(),
    };
    let start = ModelEvent::ToolStart { index, id: call.id, name: call.name };
    [start].into_iter().chain(pieces.into_iter().map(move |json| ModelEvent::ToolInput { index, json }))
}

fn failure(error: ScriptError) -> ModelError {
    match error {
        ScriptError::Throttled => ModelError::Throttled { retry_after: None },
        ScriptError::Overloaded => ModelError::Overloaded,
        ScriptError::Invalid => ModelError::Invalid { reason: "the script says so".to_owned() },
        ScriptError::MidStream | ScriptError::Eof | ScriptError::Hang => {
            ModelError::Interrupted("the script broke it off".into())
        }
    }
}
