//! One question to the models. They are asked in their order, those that rest last; each is tried again as long as that
//! helps and the turn has time, then the next one is asked. A stream is followed, shown as frames, and left when a stop
//! comes; so is a wait between two tries.
//!
//! Once a frame has shown a word of an answer no other model goes on with it, and no second try: the turn is handed back,
//! the preview says that it was interrupted, and the turn's next invocation writes over it.
//!
//! What a call cost is known from its answer; one that was stopped or broke off says nothing, and is counted as nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use turnlock_domain::message::Block;
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

/// What a question came to.
pub(super) enum Asked {
    /// A whole answer.
    Answer(Answer),
    /// What a stopped stream had said.
    Stopped(Answer),
    /// The day has cost what it may.
    DailyLimit,
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
        let models = Arc::clone(self.models);
        let candidates = models.candidates(Instant::now());
        let mut failure = None;
        for (index, route) in candidates.iter().enumerate() {
            if failure.is_some() && self.time_left() < MODEL_MARGIN {
                break;
            }
            let error = match self.ask_route(progress, &mut request, route).await? {
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

    fn request(&self, progress: &Progress) -> ModelRequest {
        let mut messages = self.context.history.clone();
        messages.push(self.context.user.clone());
        messages.extend(progress.said.steps.iter().cloned());
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
            let error = match self.call(progress, request, route).await? {
                Ok(asked) => return Ok(Tried::Asked(asked)),
                Err(error) => error,
            };
            if self.frames.withdraw() {
                self.models.failed(route, &error, Instant::now());
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
                self.models.failed(route, &error, Instant::now());
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
        let followed = match timeout(left, self.follow(request, route)).await {
            Ok(followed) => followed?,
            Err(_) => Err(ModelError::Timeout),
        };
        let usage = match &followed {
            Ok(Followed::Answer(answer)) => answer.usage,
            Ok(Followed::Stopped(_) | Followed::LockLost) | Err(_) => turnlock_domain::turn::Usage::default(),
        };
        let call = route.call(usage);
        let asked = match followed {
            Ok(Followed::Answer(answer)) => {
                self.spent = self.spent.saturating_add(call.usage.cost);
                progress.said.calls.push(call.clone());
                progress.unstored.push(call.clone());
                self.whole(answer).map(Asked::Answer)
            }
            Ok(Followed::Stopped(answer)) => Ok(Asked::Stopped(answer)),
            Ok(Followed::LockLost) => Ok(Asked::LockLost),
            Err(error) => Err(error),
        };
        let outcome = match &asked {
            Ok(Asked::Answer(_)) => "answered",
            Ok(Asked::Stopped(_) | Asked::DailyLimit) => "stopped",
            Ok(Asked::LockLost) => "lock_lost",
            Err(error) => error.kind(),
        };
        if let Ok(Asked::Answer(_)) = asked {
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

    async fn follow(&self, request: &ModelRequest, route: &Route) -> Result<Result<Followed, ModelError>, StoreError> {
        self.frames.begin(route.model.capabilities().starts_in_reasoning);
        let mut assembler = Assembler::new(route.model.name());
        let mut opening = Box::pin(route.model.stream(request));
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
                        Flags::Stopped => return Ok(Ok(Followed::Stopped(partial(assembler.text())))),
                        Flags::LockLost => return Ok(Ok(Followed::LockLost)),
                    }
                }
                () = &mut silence => return Ok(Err(ModelError::Timeout)),
                next = next => match next {
                    Next::Opened(Ok(opened)) => stream = Some(opened),
                    Next::Event(None) => return Ok(assembler.finish().map(Followed::Answer)),
                    Next::Event(Some(Ok(event))) => {
                        if let ModelEvent::Text(text) = &event {
                            self.frames.show(text);
                        }
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

/// What a stopped stream had said: calls that were not complete are no calls.
pub(super) fn partial(text: &str) -> Answer {
    let content = if text.trim().is_empty() { Vec::new() } else { vec![Block::text(text)] };
    Answer { content, bad_calls: Vec::new(), stop: StopReason::EndTurn, usage: turnlock_domain::turn::Usage::default() }
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
