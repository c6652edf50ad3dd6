//! One question to the models. They are asked in their order, those that rest last; each is tried again as long as that
//! helps and the turn has time, then the next one is asked. A stream is followed, shown as frames, and left when a stop
//! comes; so is a wait between two tries.
//!
//! Once a frame has shown a word of an answer no other model goes on with it, and no second try: the turn is handed back,
//! the preview says that it was interrupted, and the turn's next invocation writes over it.
//!
//! What a call cost is known from its answer. Of one that was left or broke off it is estimated, for the day's cap alone: a
//! stop must be no way around it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use turnlock_domain::message::Block;
use turnlock_domain::turn::Usage;
use turnlock_models::router::worth_waiting_for;
use turnlock_models::{Answer, Assembler, ModelError, ModelEvent, ModelRequest, Purpose, Route, StopReason, ToolSpec};
use turnlock_store::StoreError;

use super::backoff;
use super::flags::Flags;
use super::inference::{Inference, InferenceError, MODEL_MARGIN, Progress};
use crate::admit::chain;
use crate::{daily_cost, journal_line};

/// How often a running stream, or a wait, looks for a stop.
const FLAGS: Duration = Duration::from_secs(2);
/// What is kept of the invocation for the commit and the dispatch.
pub(super) const END_MARGIN: Duration = Duration::from_secs(10);
/// How long a stream may be silent.
const SILENCE: Duration = Duration::from_secs(120);
/// How often one model is tried for one answer.
const TRIES: u32 = 3;
/// The longest wait between two tries; the turn sleeps through a longer one in its queue, where it costs nothing.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How many tokens a second a model writes for sure, hosted ones at least: they write 40 to 200.
const TOKENS_PER_SECOND: u64 = 40;
/// As many tokens every model may be told to write. Where no limit is configured a higher one is not set: a model refuses
/// to be allowed more than it can.
const ALWAYS_ALLOWED: u32 = 4096;
/// How many bytes a token of an answer has, rather too few: a letter of most scripts beyond Latin, or less than a short word.
const BYTES_PER_TOKEN: u64 = 3;

/// What a question came to.
pub(super) enum Asked {
    /// A whole answer.
    Answer(Answer),
    /// What a stopped stream had said.
    Stopped(Answer),
    /// The day has cost what it may.
    DailyLimit,
    /// An answer that the time left has cut, and that nobody saw: the next invocation has more of it.
    Later,
    /// The lock is somebody else's.
    LockLost,
}

/// What asking one model came to.
enum Tried {
    Asked(Asked),
    /// It was tried as often as helps.
    Failed(ModelError),
}

/// What following one stream came to.
enum Followed {
    Answer(Answer),
    /// A stop left it; what it had said.
    Stopped(Answer),
    /// It was left: it had been silent for too long, or the invocation ends.
    Late,
    LockLost,
}

enum Next {
    Opened(Result<turnlock_models::ModelStream, ModelError>),
    Event(Option<Result<ModelEvent, ModelError>>),
}

impl Inference<'_> {
    /// Asks the models. What their calls used is in `progress`, whatever became of them.
    pub(super) async fn ask(&mut self, progress: &mut Progress) -> Result<Asked, InferenceError> {
        if !std::mem::replace(&mut self.has_asked, true) && daily_cost::is_reached(self.store, self.daily_cost).await {
            tracing::warn!(event_id = %self.lock.event, session = %self.lock.session,
                "no model is asked for event {}: the day has cost what it may", self.lock.event);
            return Ok(Asked::DailyLimit);
        }
        let mut request = self.request(progress);
        let asked = self.ask_models(progress, &mut request).await;
        progress.request = Some(request);
        asked
    }

    async fn ask_models(
        &mut self,
        progress: &mut Progress,
        request: &mut ModelRequest,
    ) -> Result<Asked, InferenceError> {
        let models = Arc::clone(self.models);
        let candidates = models.candidates(Instant::now());
        let mut failure = None;
        for (index, route) in candidates.iter().enumerate() {
            if failure.is_some() && self.time_left() < MODEL_MARGIN {
                break;
            }
            let error = match self.ask_route(progress, request, route).await? {
                Tried::Asked(asked) => return Ok(asked),
                Tried::Failed(error) => error,
            };
            if let Some(next) = candidates.get(index + 1) {
                let (model, next) = (route.model.name(), next.model.name());
                tracing::warn!(event_id = %self.lock.event, session = %self.lock.session, model, next,
                    error = error.kind(), "the model {model} gave no answer; {next} is the next to be asked");
            }
            failure = Some(worth_waiting_for(failure, error));
        }
        Err(failure.unwrap_or(ModelError::Timeout).into())
    }

    /// The next question: the last one with what was said since, so that history and files are copied once an invocation.
    fn request(&self, progress: &mut Progress) -> ModelRequest {
        let mut request = progress.request.take().unwrap_or_else(|| self.first_request());
        // The steps anew: what somebody says meanwhile is added to the last of them.
        request.messages.truncate(self.context.history.len() + 1);
        request.messages.extend(progress.said.steps.iter().cloned());
        request
    }

    fn first_request(&self) -> ModelRequest {
        let mut messages = self.context.history.clone();
        messages.push(self.context.user.clone());
        let mut request = ModelRequest::new(Purpose::Turn, self.lock.session.clone(), messages);
        request.system.clone_from(&self.context.system);
        // A model that calls none is sent none.
        if self.models.can(|capabilities| capabilities.tools) {
            let spec = |tool: turnlock_tools::ToolSpec| ToolSpec {
                name: tool.name,
                description: tool.description,
                schema: tool.schema,
            };
            request.tools = self.tools.specs().into_iter().map(spec).collect();
        }
        request
    }

    /// Asks one model until it has answered, refused, or failed as often as helps.
    async fn ask_route(
        &mut self,
        progress: &mut Progress,
        request: &mut ModelRequest,
        route: &Route,
    ) -> Result<Tried, InferenceError> {
        progress.said.starts_in_reasoning = route.model.capabilities().starts_in_reasoning;
        request.tighter = false;
        let mut tries = 0;
        loop {
            let had_whole_time = !progress.stepped && !std::mem::replace(&mut progress.has_called, true);
            let error = match self.call(progress, request, route).await? {
                Ok(asked) => return Ok(Tried::Asked(asked)),
                Err(error) => error,
            };
            // A model is not slow because there was little time for it. One that had all of an invocation is.
            let is_to_blame = had_whole_time || !matches!(error, ModelError::Timeout) || self.time_left() > END_MARGIN;
            if self.frames.withdraw() {
                if is_to_blame {
                    self.models.failed(route, &error, Instant::now());
                }
                if error.is_retryable() {
                    self.frames.interrupted().await;
                }
                return Err(error.into());
            }
            if matches!(error, ModelError::ContextFull) && !request.tighter {
                request.tighter = true;
                continue;
            }
            tries += 1;
            let wait = error.retry_after().unwrap_or_else(|| backoff(tries));
            if !(tries < TRIES && helps_again(&error) && self.has_time_to_wait(wait)) {
                if is_to_blame {
                    self.models.failed(route, &error, Instant::now());
                }
                if !error.is_retryable() {
                    tracing::error!(event_id = %self.lock.event, session = %self.lock.session, cause = chain(&error),
                        model = route.model.name(), "the model {} refuses the request", route.model.name());
                }
                return Ok(Tried::Failed(error));
            }
            match self.wait(wait).await? {
                Flags::GoOn(_) => {}
                Flags::Stopped => return Ok(Tried::Asked(Asked::Stopped(partial("")))),
                Flags::LockLost => return Ok(Tried::Asked(Asked::LockLost)),
            }
        }
    }

    /// Calls one model once, notes what that took, and takes an answer that is none for the failure it is.
    async fn call(
        &mut self,
        progress: &mut Progress,
        request: &mut ModelRequest,
        route: &Route,
    ) -> Result<Result<Asked, ModelError>, StoreError> {
        let began = Instant::now();
        let left = self.time_left().saturating_sub(END_MARGIN);
        request.max_tokens = token_limit(left, route.max_tokens);
        let mut heard = 0;
        let followed = self.follow(request, route, (began + left, &mut heard)).await;
        let usage = match &followed {
            Ok(Ok(Followed::Answer(answer))) => answer.usage,
            // A refusal is free.
            Ok(Err(_)) if heard == 0 => Usage::default(),
            Ok(_) | Err(_) => estimate(request, route, heard),
        };
        let call = route.call(usage);
        self.spent = self.spent.saturating_add(call.usage.cost);
        let asked = match followed? {
            Ok(Followed::Answer(answer)) => {
                progress.said.calls.push(call.clone());
                progress.unstored.push(call.clone());
                let is_cut_by_us = answer.stop == StopReason::MaxTokens && request.max_tokens.is_some();
                // Without a step the next invocation would have no more time than this one had.
                if is_cut_by_us && progress.stepped && !self.frames.withdraw() {
                    Ok(Asked::Later)
                } else {
                    self.whole(answer).map(Asked::Answer)
                }
            }
            Ok(Followed::Stopped(answer)) => Ok(Asked::Stopped(answer)),
            Ok(Followed::Late) => Err(ModelError::Timeout),
            Ok(Followed::LockLost) => Ok(Asked::LockLost),
            Err(error) => Err(error),
        };
        let outcome = match &asked {
            Ok(Asked::Answer(_)) => "answered",
            Ok(Asked::Later) => "cut",
            Ok(Asked::Stopped(_) | Asked::DailyLimit) => "stopped",
            Ok(Asked::LockLost) => "lock_lost",
            Err(error) => error.kind(),
        };
        if let Ok(Asked::Answer(_) | Asked::Later) = asked {
            self.models.answered(route);
        }
        let (event_id, session) = (&self.lock.event, &self.lock.session);
        journal_line::model_call(event_id, session, Purpose::Turn, &call, began.elapsed(), outcome);
        Ok(asked)
    }

    /// An answer that stopped where the context was full is cut like one that hit its limit, if somebody has read a part of
    /// it already; else there is a better one.
    fn whole(&self, answer: Answer) -> Result<Answer, ModelError> {
        match answer.stop {
            StopReason::Malformed => Err(ModelError::Interrupted("a malformed answer".into())),
            StopReason::ContextFull if self.frames.is_shown() => Ok(Answer { stop: StopReason::MaxTokens, ..answer }),
            StopReason::ContextFull => Err(ModelError::ContextFull),
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::MaxTokens
            | StopReason::StopSequence
            | StopReason::Refused
            | StopReason::Other(_) => Ok(answer),
        }
    }

    /// Follows one stream until its end, or until this time; counts the bytes that it has said.
    async fn follow(
        &self,
        request: &ModelRequest,
        route: &Route,
        (until, heard): (Instant, &mut u64),
    ) -> Result<Result<Followed, ModelError>, StoreError> {
        self.frames.begin(route.model.capabilities().starts_in_reasoning);
        let mut assembler = Assembler::new(route.model.name());
        let mut opening = Box::pin(route.model.stream(request));
        let mut stream = None;
        let mut flags = Box::pin(sleep(FLAGS));
        let mut silence = Box::pin(sleep(SILENCE));
        let mut end = Box::pin(sleep_until(until));
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
                        Flags::Stopped => return Ok(Ok(Followed::Stopped(partial(assembler.text())))),
                        Flags::LockLost => return Ok(Ok(Followed::LockLost)),
                    }
                }
                () = &mut silence => return Ok(Ok(Followed::Late)),
                () = &mut end => return Ok(Ok(Followed::Late)),
                next = next => match next {
                    Next::Opened(Ok(opened)) => stream = Some(opened),
                    Next::Event(None) => return Ok(assembler.finish().map(Followed::Answer)),
                    Next::Event(Some(Ok(event))) => {
                        if let ModelEvent::Text(text) = &event {
                            self.frames.show(text);
                        }
                        *heard += length(&event);
                        assembler.push(event);
                        silence.as_mut().reset(Instant::now() + SILENCE);
                    }
                    Next::Opened(Err(error)) | Next::Event(Some(Err(error))) => return Ok(Err(error)),
                },
            }
        }
    }

    /// Waits before the next try, and looks for a stop as a stream does.
    async fn wait(&self, mut left: Duration) -> Result<Flags, StoreError> {
        loop {
            let piece = left.min(FLAGS);
            sleep(piece).await;
            left -= piece;
            match self.flags().await? {
                Flags::GoOn(_) if !left.is_zero() => {}
                flags => return Ok(flags),
            }
        }
    }

    fn has_time_to_wait(&self, wait: Duration) -> bool {
        wait <= LONGEST_WAIT && self.time_left() >= wait + MODEL_MARGIN
    }

    fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Counts what this invocation's calls cost: one request, behind all of them.
    pub(super) async fn count_cost(&self) {
        daily_cost::add(self.store, self.daily_cost, self.spent).await;
    }
}

/// Whether the same model may do better at once. One that did not answer in time has had its time: another is the better
/// choice, and where there is none, another invocation.
fn helps_again(error: &ModelError) -> bool {
    error.is_retryable() && !matches!(error, ModelError::Timeout)
}

/// The most tokens that a call may write in the time left, where that is less than it may anyway: an answer that is cut is
/// one, and one that the deadline takes is none.
fn token_limit(left: Duration, configured: Option<u32>) -> Option<u32> {
    let fitting = u32::try_from(left.as_secs().saturating_mul(TOKENS_PER_SECOND)).unwrap_or(u32::MAX);
    (fitting < configured.unwrap_or(ALWAYS_ALLOWED)).then_some(fitting.max(1))
}

/// What a call used that said nothing of it: the whole question, as much of it as the model takes, and what was heard.
fn estimate(request: &ModelRequest, route: &Route, heard: u64) -> Usage {
    let most = route.model.capabilities().context_tokens.map_or(u64::MAX, u64::from);
    Usage {
        input_tokens: request.tokens().min(most),
        output_tokens: heard.div_ceil(BYTES_PER_TOKEN),
        ..Usage::default()
    }
}

/// The bytes that an event adds to an answer.
fn length(event: &ModelEvent) -> u64 {
    let text = match event {
        ModelEvent::Text(text) | ModelEvent::Reasoning(text) => text,
        ModelEvent::Signature(data) | ModelEvent::Redacted(data) => data,
        ModelEvent::ToolStart { name, .. } => name,
        ModelEvent::ToolInput { json, .. } => json,
        ModelEvent::Stop { .. } => return 0,
    };
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

/// What a stopped stream had said: calls that were not complete are no calls.
pub(super) fn partial(text: &str) -> Answer {
    let content = if text.trim().is_empty() { Vec::new() } else { vec![Block::text(text)] };
    Answer { content, bad_calls: Vec::new(), stop: StopReason::EndTurn, usage: Usage::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_limited_to_what_fits_the_time_left() {
        let seconds = Duration::from_secs;
        let table = [
            (seconds(290), None, None),
            (seconds(103), None, None),
            (seconds(102), None, Some(4080)),
            (seconds(50), None, Some(2000)),
            (seconds(290), Some(8000), None),
            (seconds(100), Some(8000), Some(4000)),
            (seconds(50), Some(500), None),
            (seconds(0), None, Some(1)),
        ];
        for (left, configured, want) in table {
            assert_eq!(token_limit(left, configured), want, "{left:?} {configured:?}");
        }
    }
}
