//! One call of the model: its stream is followed, shown as frames, and left when a stop comes.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use turnlock_domain::message::Block;
use turnlock_domain::thinking::ThinkingFilter;
use turnlock_domain::turn::ModelCall;
use turnlock_models::{Answer, Assembler, ModelError, ModelEvent, ModelRequest, Purpose, StopReason, ToolSpec};

use super::flags::Flags;
use super::inference::{Inference, InferenceError, Progress};

/// How often a running stream looks for a stop.
const FLAGS: Duration = Duration::from_secs(2);
/// What is kept of the invocation for the commit and the dispatch.
pub(super) const END_MARGIN: Duration = Duration::from_secs(10);
/// How long a stream may be silent.
const SILENCE: Duration = Duration::from_secs(120);

/// What a model call came to.
pub(super) enum Asked {
    /// An answer, and what it took.
    Answer(Answer, ModelCall),
    /// What a stopped stream had said.
    Stopped(Answer),
    /// The lock is somebody else's.
    LockLost,
}

enum Next {
    Opened(Result<turnlock_models::ModelStream, ModelError>),
    Event(Option<Result<ModelEvent, ModelError>>),
}

impl Inference<'_> {
    /// Calls the model once and follows its stream.
    pub(super) async fn ask(&mut self, progress: &Progress) -> Result<Asked, InferenceError> {
        let request = self.request(progress);
        let budget = self.deadline.saturating_duration_since(Instant::now()).saturating_sub(END_MARGIN);
        match timeout(budget, self.follow(&request)).await {
            Ok(asked) => asked,
            Err(_) => Err(ModelError::Timeout.into()),
        }
    }

    fn request(&self, progress: &Progress) -> ModelRequest {
        let mut messages = self.context.history.clone();
        messages.push(self.context.user.clone());
        messages.extend(progress.said.steps.iter().cloned());
        let mut request = ModelRequest::new(Purpose::Turn, self.lock.session.clone(), messages);
        request.system.clone_from(&self.context.system);
        if self.model.capabilities().tools {
            let spec = |tool: turnlock_tools::ToolSpec| ToolSpec {
                name: tool.name,
                description: tool.description,
                schema: tool.schema,
            };
            request.tools = self.tools.specs().into_iter().map(spec).collect();
        }
        request
    }

    async fn follow(&mut self, request: &ModelRequest) -> Result<Asked, InferenceError> {
        let mut filter = ThinkingFilter::new(self.model.capabilities().starts_in_reasoning);
        let mut assembler = Assembler::new(self.model.name());
        let model = Arc::clone(self.model);
        let mut opening = Box::pin(model.stream(request));
        let mut stream = None;
        let mut flags = Box::pin(sleep(FLAGS));
        let mut silence = Box::pin(sleep(SILENCE));
        loop {
            let next = async {
                match &mut stream {
                    None => Next::Opened(opening.as_mut().await),
                    Some(stream) => Next::Event(futures_util::StreamExt::next(stream).await),
                }
            };
            // The clocks first: a stream that always has something must not keep a stop from being seen.
            tokio::select! { biased;
                () = &mut flags => {
                    match self.flags().await? {
                        Flags::GoOn(_) => flags.as_mut().reset(Instant::now() + FLAGS),
                        Flags::Stopped => return Ok(Asked::Stopped(partial(assembler.text()))),
                        Flags::LockLost => return Ok(Asked::LockLost),
                    }
                }
                () = &mut silence => return Err(ModelError::Timeout.into()),
                next = next => match next {
                    Next::Opened(opened) => stream = Some(opened?),
                    Next::Event(None) => break,
                    Next::Event(Some(event)) => {
                        let event = event?;
                        if let ModelEvent::Text(text) = &event {
                            filter.push(text);
                            self.frames.show(filter.visible());
                        }
                        assembler.push(event);
                        silence.as_mut().reset(Instant::now() + SILENCE);
                    }
                },
            }
        }
        let answer = assembler.finish()?;
        let call = ModelCall { model: model.name().to_owned(), usage: answer.usage };
        Ok(Asked::Answer(answer, call))
    }
}

/// What a stopped stream had said: calls that were not complete are no calls.
pub(super) fn partial(text: &str) -> Answer {
    let content = if text.trim().is_empty() { Vec::new() } else { vec![Block::text(text)] };
    Answer { content, bad_calls: Vec::new(), stop: StopReason::EndTurn, usage: turnlock_domain::turn::Usage::default() }
}
