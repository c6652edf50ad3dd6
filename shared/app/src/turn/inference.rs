//! The inference stage: the model's stream and the tool loop, journalled step by step.
//!
//! It ends in one of five ways ([`End`]); none of them sends anything but frames. A step is in the journal before its
//! tools start, and a result is in its slot before the model hears of it, so a successor resumes and repeats nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use turnlock_domain::envelope::Envelope;
use turnlock_domain::message::{Block, Message, Role};
use turnlock_domain::thinking::{self, ThinkingFilter};
use turnlock_domain::turn::Failure;
use turnlock_models::{Answer, Assembler, Model, ModelError, ModelEvent, ModelRequest, Purpose, StopReason, ToolSpec};
use turnlock_store::journal::{CallOutcome, CallResult, Journal, ResultSlot, Step, StepWritten};
use turnlock_store::sessions::Lock;
use turnlock_store::{Store, StoreError};
use turnlock_tools::{Registry, ToolContext, ToolOutcome};

use super::backoff;
use super::context::Context;
use super::frames::Frames;
use super::lease::{Lease, TOOL_MARGIN};
use super::response::{Ending, Said};
use crate::admit::chain;
use crate::journal_line;

/// The most steps of a turn, over all its invocations.
const MAX_STEPS: u32 = 40;
/// From the how-manieth time on an identical call is refused.
const REFUSED_FROM: u32 = 4;
/// How often a running stream looks for a stop.
const FLAGS: Duration = Duration::from_secs(2);
/// A model call is not started with less than this left of the invocation.
const MODEL_MARGIN: Duration = Duration::from_secs(60);
/// What is kept of the invocation for the commit and the dispatch.
const END_MARGIN: Duration = Duration::from_secs(10);
/// How long a stream may be silent.
const SILENCE: Duration = Duration::from_secs(120);

/// What the model is told of a call that a dead worker may have started.
const UNKNOWN: &str = "This call was started, then interrupted: whether it took effect is unknown. Do not assume \
                       either; check if you can, or tell the user.";

/// How the stage ended.
#[derive(Debug)]
pub(super) enum End {
    /// There is something to commit.
    Ended(Said, Ending),
    /// The turn goes on in another invocation.
    HandBack {
        /// When, if the provider says.
        after: Option<Duration>,
        /// Whether a step was made, or nobody is to blame: then it is no attempt.
        progress: bool,
    },
    /// The lock is somebody else's.
    LockLost,
}

/// What a model call came to.
enum Asked {
    Answer(Answer),
    Stopped(Answer),
    LockLost,
}

/// One turn's inference stage.
pub(super) struct Inference<'a> {
    pub(super) store: &'a Store,
    pub(super) model: &'a Arc<dyn Model>,
    pub(super) tools: &'a Registry,
    pub(super) envelope: &'a Envelope,
    pub(super) lock: &'a Lock,
    pub(super) lease: &'a Lease,
    /// When the invocation ends.
    pub(super) deadline: Instant,
    pub(super) context: &'a Context,
    /// The memory scope that tools write to.
    pub(super) scope: &'a str,
    /// What the tools' evidence names: the generation and the index of the turn's first message.
    pub(super) place: (u32, u64),
    /// How often the record has been received.
    pub(super) receives: u32,
    pub(super) frames: &'a Frames<'a>,
}

/// What the stage knows so far.
#[derive(Default)]
struct Progress {
    said: Said,
    step: u32,
    /// Whether this invocation made a step.
    stepped: bool,
    /// How often each call was asked for.
    calls: HashMap<String, u32>,
    asked_again: bool,
}

impl Inference<'_> {
    /// Runs the stage. What fails for now is a hand-back, and no attempt if a step was made in this invocation.
    pub(super) async fn run(mut self) -> End {
        let mut progress = Progress::default();
        progress.said.starts_in_reasoning = self.model.capabilities().starts_in_reasoning;
        let error = match self.go(&mut progress).await {
            Ok(end) => return end,
            Err(error) => error,
        };
        let (event_id, session, cause) = (&self.lock.event, &self.lock.session, chain(&error));
        match error {
            InferenceError::Model(error) if !error.is_retryable() => {
                tracing::error!(%event_id, %session, cause, "the model refuses the request of event {event_id}");
                End::Ended(progress.said, Ending::Failed(Failure::ModelRefused))
            }
            InferenceError::Model(error) => {
                tracing::warn!(%event_id, %session, cause, "the model failed; event {event_id} is tried again");
                let throttled = matches!(error, ModelError::Throttled { .. });
                let after = error.retry_after().or_else(|| throttled.then(|| backoff(self.receives)));
                End::HandBack { after, progress: progress.stepped || throttled }
            }
            InferenceError::Store(_) => {
                tracing::warn!(%event_id, %session, cause, "the table failed; event {event_id} is tried again");
                End::HandBack { after: None, progress: progress.stepped }
            }
        }
    }

    async fn go(&mut self, progress: &mut Progress) -> Result<End, InferenceError> {
        for step in &self.context.journal.steps {
            progress.said.usage.add(step.usage);
            if let Some(end) = self.take_step(progress, step.clone(), true).await? {
                return Ok(end);
            }
        }
        loop {
            if let Some(end) = self.may_go_on(progress).await? {
                return Ok(end);
            }
            let answer = match self.ask(progress).await? {
                Asked::Answer(answer) => answer,
                Asked::Stopped(partial) => return Ok(ended(std::mem::take(progress), partial, Ending::Stopped)),
                Asked::LockLost => return Ok(End::LockLost),
            };
            progress.said.usage.add(answer.usage);
            if let Some(end) = self.take_answer(progress, answer).await? {
                return Ok(end);
            }
        }
    }

    /// Before each model call: steps, time, and (once there were tools) stops.
    async fn may_go_on(&self, progress: &mut Progress) -> Result<Option<End>, InferenceError> {
        if progress.step >= MAX_STEPS {
            let said = std::mem::take(&mut progress.said);
            return Ok(Some(End::Ended(said, Ending::Failed(Failure::TooManySteps))));
        }
        if progress.step > 0 {
            match self.flags().await? {
                Flags::GoOn => {}
                Flags::Stopped => {
                    let said = std::mem::take(&mut progress.said);
                    return Ok(Some(End::Ended(said, Ending::Stopped)));
                }
                Flags::LockLost => return Ok(Some(End::LockLost)),
            }
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        Ok((left < MODEL_MARGIN).then(|| self.later(progress)))
    }

    /// An answer is the end of the stage, or a step.
    async fn take_answer(&self, progress: &mut Progress, answer: Answer) -> Result<Option<End>, InferenceError> {
        let calls = answer.content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        match &answer.stop {
            StopReason::MaxTokens => return Ok(Some(ended(std::mem::take(progress), answer, Ending::Answered))),
            StopReason::Malformed => return Err(ModelError::Interrupted("a malformed answer".into()).into()),
            StopReason::ContextFull => return Err(ModelError::ContextFull.into()),
            StopReason::Refused if !calls && visible(&answer.content, progress).is_empty() => {
                let said = std::mem::take(&mut progress.said);
                return Ok(Some(End::Ended(said, Ending::Failed(Failure::ModelRefused))));
            }
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::StopSequence
            | StopReason::Refused
            | StopReason::Other(_) => {}
        }
        if !calls {
            if !visible(&answer.content, progress).is_empty() {
                return Ok(Some(ended(std::mem::take(progress), answer, Ending::Answered)));
            }
            if progress.asked_again {
                return Ok(Some(ended(std::mem::take(progress), answer, Ending::Failed(Failure::NoAnswer))));
            }
            progress.asked_again = true;
            return Ok(None);
        }
        let output = stripped(answer.content, progress.said.starts_in_reasoning);
        let bad = answer.bad_calls.into_iter().map(|bad| (bad.id, bad.error)).collect();
        let step = Step { step: progress.step + 1, output, usage: answer.usage, bad };
        if !self.has_time_for(&step) {
            return Ok(Some(self.later(progress)));
        }
        let asked_at = Instant::now();
        match self.store.write_step(self.lock, &self.envelope.position, &step, self.lease.length()).await? {
            StepWritten::Written => self.lease.renewed(asked_at),
            StepWritten::Stopped => {
                let said = partial(&Message::new(Role::Assistant, step.output).text());
                return Ok(Some(ended(std::mem::take(progress), said, Ending::Stopped)));
            }
            StepWritten::LockLost => return Ok(Some(End::LockLost)),
        }
        progress.stepped = true;
        self.take_step(progress, step, false).await
    }

    /// Whether the invocation lasts for the step's longest call: one that is cut off in the middle is `unknown` for ever.
    fn has_time_for(&self, step: &Step) -> bool {
        let timeouts = step.output.iter().filter_map(|block| match block {
            Block::ToolUse { name, .. } => self.tools.get(name).map(|tool| tool.timeout),
            _ => None,
        });
        self.deadline.saturating_duration_since(Instant::now()) >= timeouts.max().unwrap_or_default() + END_MARGIN
    }

    /// The turn goes on in another invocation, at once if this one got somewhere.
    fn later(&self, progress: &Progress) -> End {
        End::HandBack { after: progress.stepped.then_some(Duration::ZERO), progress: progress.stepped }
    }

    /// Runs a step's calls, or takes their results from the journal, and adds both to the turn's messages.
    async fn take_step(
        &self,
        progress: &mut Progress,
        step: Step,
        resumed: bool,
    ) -> Result<Option<End>, InferenceError> {
        progress.step = step.step;
        let mut results = Vec::new();
        let calls = step.output.iter().filter_map(|block| match block {
            Block::ToolUse { id, name, input } => Some((id, name, input)),
            _ => None,
        });
        for (index, (id, name, input)) in calls.enumerate() {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            progress.said.tool_calls += 1;
            let times = progress.calls.entry(format!("{name} {input}")).or_default();
            *times += 1;
            let call = Call { step: step.step, index, name, input, times: *times, resumed };
            let result = match self.context.journal.results.get(&(step.step, index)) {
                Some(result) => result.clone(),
                None => {
                    if self.lease.left() < TOOL_MARGIN {
                        return Ok(Some(self.later(progress)));
                    }
                    let error = step.bad.iter().find(|(bad, _)| bad == id).map(|(_, error)| error.as_str());
                    self.run_call(&call, error).await?
                }
            };
            results.push(Block::ToolResult {
                tool_use_id: id.clone(),
                content: result.content,
                is_error: result.is_error,
            });
        }
        progress.said.steps.push(Message::new(Role::Assistant, step.output));
        progress.said.steps.push(Message::new(Role::User, results));
        Ok(None)
    }

    /// Runs one call and puts its result into its slot; what the slot holds already counts.
    async fn run_call(&self, call: &Call<'_>, bad: Option<&str>) -> Result<CallResult, InferenceError> {
        let known = self.tools.get(call.name);
        let keyed = known.is_some_and(|tool| tool.keyed);
        let result = match (bad, call) {
            (Some(error), _) => error_result(CallOutcome::Error, error),
            (None, call) if call.resumed && !keyed => error_result(CallOutcome::Unknown, UNKNOWN),
            (None, call) if call.times >= REFUSED_FROM => error_result(
                CallOutcome::Refused,
                "This call was made three times already with the same arguments. Use the earlier results or try \
                 something else.",
            ),
            (None, call) => self.start_tool(call).await,
        };
        let key = self.key(call);
        let outcome = format!("{:?}", result.outcome).to_lowercase();
        // A name that the model made up may be anything, somebody's text too.
        let name = known.map_or("(unknown)", |_| call.name);
        tracing::info!(target: journal_line::TOOL, event_id = %self.lock.event, session = %self.lock.session,
            name, key, outcome, "tool {name} of event {}: {outcome}", self.lock.event);
        match self.store.write_result(self.lock, call.step, call.index, &result).await? {
            ResultSlot::Mine => Ok(result),
            ResultSlot::Taken(theirs) => Ok(theirs),
        }
    }

    async fn start_tool(&self, call: &Call<'_>) -> CallResult {
        let (generation, message) = self.place;
        let context = ToolContext {
            session: self.lock.session.clone(),
            scope: self.scope.to_owned(),
            event_id: self.lock.event.clone(),
            key: self.key(call),
            generation,
            message,
            model: self.model.name().to_owned(),
            now: self.store.clock().now(),
        };
        let run = self.tools.run(call.name, call.input.clone(), context).await;
        let outcome = match run.outcome {
            ToolOutcome::Ok => CallOutcome::Ok,
            ToolOutcome::Error => CallOutcome::Error,
            ToolOutcome::Unknown => CallOutcome::Unknown,
        };
        CallResult { content: run.content, is_error: run.outcome.is_error(), outcome }
    }

    fn key(&self, call: &Call<'_>) -> String {
        format!("{}:{}:{}", self.lock.event, call.step, call.index)
    }

    /// Calls the model once and follows its stream.
    async fn ask(&mut self, progress: &Progress) -> Result<Asked, InferenceError> {
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
                        Flags::GoOn => flags.as_mut().reset(Instant::now() + FLAGS),
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
        Ok(Asked::Answer(assembler.finish()?))
    }

    /// Reads what control has stored for this turn.
    async fn flags(&self) -> Result<Flags, StoreError> {
        let Some(head) = self.store.head(&self.lock.session).await? else { return Ok(Flags::LockLost) };
        if head.owner.as_deref() != Some(&self.lock.owner) || head.fence != self.lock.fence {
            return Ok(Flags::LockLost);
        }
        Ok(if head.stops(&self.envelope.position) { Flags::Stopped } else { Flags::GoOn })
    }
}

/// What a turn had done before it was ended without its model: the journal's steps, each call with what became of it.
pub(super) fn journalled(journal: &Journal, starts_in_reasoning: bool) -> Said {
    let mut said = Said { starts_in_reasoning, ..Said::default() };
    for step in &journal.steps {
        said.usage.add(step.usage);
        let mut results = Vec::new();
        for (index, block) in (0..).zip(step.output.iter().filter(|block| matches!(block, Block::ToolUse { .. }))) {
            let Block::ToolUse { id, .. } = block else { continue };
            let result = journal.results.get(&(step.step, index)).cloned();
            let result = result.unwrap_or_else(|| error_result(CallOutcome::Unknown, UNKNOWN));
            said.tool_calls += 1;
            let CallResult { content, is_error, .. } = result;
            results.push(Block::ToolResult { tool_use_id: id.clone(), content, is_error });
        }
        said.steps.push(Message::new(Role::Assistant, step.output.clone()));
        said.steps.push(Message::new(Role::User, results));
    }
    said
}

enum Flags {
    GoOn,
    Stopped,
    LockLost,
}

enum Next {
    Opened(Result<turnlock_models::ModelStream, ModelError>),
    Event(Option<Result<ModelEvent, ModelError>>),
}

/// One call of a step.
struct Call<'a> {
    step: u32,
    index: u32,
    name: &'a str,
    input: &'a serde_json::Value,
    /// The how-manieth time the model asks for just this.
    times: u32,
    /// Whether the step was journalled by an earlier worker: then the call may have been started.
    resumed: bool,
}

/// Why the stage came to nothing.
#[derive(Debug, thiserror::Error)]
enum InferenceError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
}

fn error_result(outcome: CallOutcome, sentence: &str) -> CallResult {
    CallResult { content: vec![Block::text(sentence)], is_error: true, outcome }
}

/// What a stopped stream had said: calls that were not complete are no calls.
fn partial(text: &str) -> Answer {
    let content = if text.trim().is_empty() { Vec::new() } else { vec![Block::text(text)] };
    Answer { content, bad_calls: Vec::new(), stop: StopReason::EndTurn, usage: turnlock_domain::turn::Usage::default() }
}

/// Partial calls of an answer that was cut are never run or stored.
fn ended(mut progress: Progress, answer: Answer, ending: Ending) -> End {
    progress.said.cut = answer.stop == StopReason::MaxTokens;
    progress.said.answer = answer.content.into_iter().filter(|block| !matches!(block, Block::ToolUse { .. })).collect();
    End::Ended(progress.said, ending)
}

fn visible(content: &[Block], progress: &Progress) -> String {
    let text = Message::new(Role::Assistant, content.to_vec()).text();
    thinking::strip(&text, progress.said.starts_in_reasoning)
}

/// A step's blocks without the text of thinking tags: it reaches no journal and no history.
fn stripped(content: Vec<Block>, starts_in_reasoning: bool) -> Vec<Block> {
    content
        .into_iter()
        .filter_map(|block| match block {
            Block::Text { text } => {
                let text = thinking::strip(&text, starts_in_reasoning);
                (!text.is_empty()).then_some(Block::Text { text })
            }
            other => Some(other),
        })
        .collect()
}
