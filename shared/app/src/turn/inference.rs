//! The inference stage: the model's stream and the tool loop, journalled step by step.
//!
//! It ends in one of five ways ([`End`]); none of them sends anything but frames. A step is in the journal before its
//! tools start, and a result is in its slot before the model hears of it, so a successor resumes and repeats nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use turnlock_domain::envelope::Envelope;
use turnlock_domain::message::{Block, Message, Role};
use turnlock_domain::thinking;
use turnlock_domain::turn::{Failure, ModelCall};
use turnlock_models::{Answer, Model, ModelError, StopReason};
use turnlock_store::journal::{Step, StepWritten};
use turnlock_store::sessions::Lock;
use turnlock_store::{Store, StoreError};
use turnlock_tools::Registry;

use super::ask::{Asked, partial};
use super::backoff;
use super::context::Context;
use super::flags::Flags;
use super::frames::Frames;
use super::lease::Lease;
use super::response::{Ending, Said, usage_of};
use crate::admit::chain;

/// The most steps of a turn, over all its invocations.
const MAX_STEPS: u32 = 40;
/// A model call is not started with less than this left of the invocation.
const MODEL_MARGIN: Duration = Duration::from_secs(60);

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
pub(super) struct Progress {
    pub(super) said: Said,
    pub(super) step: u32,
    /// Whether this invocation made a step.
    stepped: bool,
    /// How often each call was asked for.
    pub(super) calls: HashMap<String, u32>,
    /// The calls of models since the last step.
    unstored: Vec<ModelCall>,
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
            progress.said.count(step);
            if let Some(end) = self.take_step(progress, step.clone(), true).await? {
                return Ok(end);
            }
        }
        loop {
            if let Some(end) = self.may_go_on(progress).await? {
                return Ok(end);
            }
            let answer = match self.ask(progress).await? {
                Asked::Answer(answer, call) => {
                    progress.said.calls.push(call.clone());
                    progress.unstored.push(call);
                    answer
                }
                Asked::Stopped(partial) => return Ok(ended(std::mem::take(progress), partial, Ending::Stopped)),
                Asked::LockLost => return Ok(End::LockLost),
            };
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
                Flags::GoOn(_) => {}
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
        let calls = std::mem::take(&mut progress.unstored);
        let usage = usage_of(&calls);
        let step = Step { step: progress.step + 1, output, usage, bad, calls, ..Step::default() };
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

    /// The turn goes on in another invocation, at once if this one got somewhere.
    pub(super) fn later(&self, progress: &Progress) -> End {
        End::HandBack { after: progress.stepped.then_some(Duration::ZERO), progress: progress.stepped }
    }
}

/// Why the stage came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum InferenceError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
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
