//! The inference stage: the model's stream and the tool loop, journalled step by step.
//!
//! It ends in one of a few ways ([`End`]); none of them sends anything but frames. A step is in the journal before its
//! tools start, and a result is in its slot before the model hears of it, so a successor resumes and repeats nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use turnlock_domain::envelope::Envelope;
use turnlock_domain::message::{Block, Message, Role};
use turnlock_domain::secrets;
use turnlock_domain::thinking;
use turnlock_domain::turn::{Failure, ModelCall};
use turnlock_models::{Answer, ModelError, ModelRequest, Router, StopReason};
use turnlock_store::approvals::{Approval, Ask};
use turnlock_store::journal::{MAX_STEPS, Step, StepWritten};
use turnlock_store::sessions::{Head, Lock};
use turnlock_store::steer::SteerText;
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
use crate::policy::Policy;

/// A model call is not started with less than this left of the invocation.
pub(super) const MODEL_MARGIN: Duration = Duration::from_secs(60);

/// How the stage ended.
#[derive(Debug)]
pub(super) enum End {
    /// There is something to commit.
    Ended(Said, Ending),
    /// The turn goes on in another invocation.
    HandBack {
        /// When, if the provider says.
        after: Option<Duration>,
        /// Whether a step or a result was made, or nobody is to blame: then it is no attempt.
        progress: bool,
        /// From which call of the last step on none was started.
        unstarted: Option<u32>,
    },
    /// A call waits for a person.
    Asks(Box<Approval>),
    /// The lock is somebody else's.
    LockLost,
}

/// One turn's inference stage.
pub(super) struct Inference<'a> {
    pub(super) store: &'a Store,
    pub(super) models: &'a Arc<Router>,
    pub(super) tools: &'a Registry,
    /// Which of their calls are asked for.
    pub(super) policy: &'a Policy,
    pub(super) envelope: &'a Envelope,
    pub(super) lock: &'a Lock,
    pub(super) lease: &'a Lease,
    /// When the invocation ends.
    pub(super) deadline: Instant,
    pub(super) context: &'a Context,
    /// What the turn waited for: there is a decision.
    pub(super) ask: Option<&'a Ask>,
    /// From which call of the journal's last step on none was started, if that is known.
    pub(super) unstarted: Option<u32>,
    /// The memory scope that tools write to.
    pub(super) scope: &'a str,
    /// What the tools' evidence names: the generation and the index of the turn's first message.
    pub(super) place: (u32, u64),
    /// How often the record has been received.
    pub(super) receives: u32,
    pub(super) frames: &'a Frames<'a>,
    /// What all models together may cost in a day, in millionths of the currency.
    pub(super) daily_cost: Option<u64>,
    /// What this invocation's calls have cost so far.
    pub(super) spent: u64,
    /// Whether this invocation has asked a model.
    pub(super) has_asked: bool,
}

/// What the stage knows so far.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) said: Said,
    pub(super) step: u32,
    /// Whether this invocation made a step, or a result.
    pub(super) stepped: bool,
    /// From which call of the step that is taken on none was started.
    pub(super) unstarted: Option<u32>,
    /// The texts that were used since the last step.
    steered: Vec<SteerText>,
    /// How often each call was asked for.
    pub(super) calls: HashMap<String, u32>,
    /// The calls of models since the last step.
    pub(super) unstored: Vec<ModelCall>,
    asked_again: bool,
    /// Whether this invocation called a model.
    pub(super) has_called: bool,
    /// The last question, which the next one begins with.
    pub(super) request: Option<ModelRequest>,
}

impl Inference<'_> {
    /// Runs the stage. What fails for now is a hand-back, and no attempt if a step was made in this invocation.
    pub(super) async fn run(mut self) -> End {
        let mut progress = Progress::default();
        let went = self.go(&mut progress).await;
        self.count_cost().await;
        let error = match went {
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
                End::HandBack { after, progress: progress.stepped || throttled, unstarted: progress.unstarted }
            }
            InferenceError::Store(_) => {
                tracing::warn!(%event_id, %session, cause, "the table failed; event {event_id} is tried again");
                End::HandBack { after: None, progress: progress.stepped, unstarted: progress.unstarted }
            }
        }
    }

    async fn go(&mut self, progress: &mut Progress) -> Result<End, InferenceError> {
        for step in &self.context.journal.steps {
            progress.said.count(step);
            progress.said.hear(&step.steered);
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
                Asked::DailyLimit => {
                    let said = std::mem::take(&mut progress.said);
                    return Ok(End::Ended(said, Ending::Failed(Failure::DailyLimit)));
                }
                Asked::Later => return Ok(self.later(progress)),
                Asked::LockLost => return Ok(End::LockLost),
            };
            if let Some(end) = self.take_answer(progress, answer).await? {
                return Ok(end);
            }
        }
    }

    /// Before each model call: steps, time, and (once there were tools) stops and what somebody said meanwhile.
    async fn may_go_on(&self, progress: &mut Progress) -> Result<Option<End>, InferenceError> {
        if progress.step >= MAX_STEPS {
            let said = std::mem::take(&mut progress.said);
            return Ok(Some(End::Ended(said, Ending::Failed(Failure::TooManySteps))));
        }
        if progress.step > 0 {
            match self.flags().await? {
                Flags::GoOn(head) => self.hear(progress, head),
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

    /// Takes what was said since the last time into the conversation.
    fn hear(&self, progress: &mut Progress, head: Box<Head>) {
        let mut texts = head.texts_for(&self.envelope.position, &self.envelope.event.person());
        texts.retain(|text| text.event_id != self.lock.event && !progress.said.steered.contains(&text.event_id));
        progress.said.hear(&texts);
        progress.said.head = Some(head);
        progress.steered.extend(texts);
    }

    /// An answer is the end of the stage, or a step.
    async fn take_answer(&self, progress: &mut Progress, answer: Answer) -> Result<Option<End>, InferenceError> {
        let calls = answer.content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        match &answer.stop {
            StopReason::MaxTokens => return Ok(Some(ended(std::mem::take(progress), answer, Ending::Answered))),
            StopReason::Refused if visible(&answer.content, progress).is_empty() => {
                let said = std::mem::take(&mut progress.said);
                return Ok(Some(End::Ended(said, Ending::Failed(Failure::ModelRefused))));
            }
            // What was blocked in the middle may look whole: it asks for nothing.
            StopReason::Refused => return Ok(Some(ended(std::mem::take(progress), answer, Ending::Answered))),
            // An answer that is malformed, or none for want of room, is a failed call.
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::StopSequence
            | StopReason::Malformed
            | StopReason::ContextFull
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
        let steered = std::mem::take(&mut progress.steered);
        let mut step = Step { step: progress.step + 1, output, usage, bad, calls, steered, ..Step::default() };
        self.judge(&mut step);
        // Whether it is stored or not, if its answer is lost: nothing of it was started.
        progress.unstarted = Some(0);
        let asked_at = Instant::now();
        match self.store.write_step(self.lock, &self.envelope.position, &step, self.lease.length()).await? {
            StepWritten::Written => self.lease.renewed(asked_at),
            StepWritten::Stopped => {
                let said = partial(&Message::new(Role::Assistant, step.output).text());
                // It is stripped already.
                progress.said.starts_in_reasoning = false;
                return Ok(Some(ended(std::mem::take(progress), said, Ending::Stopped)));
            }
            StepWritten::LockLost => return Ok(Some(End::LockLost)),
        }
        progress.stepped = true;
        self.take_step(progress, step.as_stored(&self.lock.event)?, false).await
    }

    /// The turn goes on in another invocation, at once if this one got somewhere.
    pub(super) fn later(&self, progress: &Progress) -> End {
        End::HandBack {
            after: progress.stepped.then_some(Duration::ZERO),
            progress: progress.stepped,
            unstarted: progress.unstarted,
        }
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
    progress.said.ends_early =
        !matches!(answer.stop, StopReason::EndTurn | StopReason::StopSequence | StopReason::ToolUse);
    progress.said.answer = answer.content.into_iter().filter(|block| !matches!(block, Block::ToolUse { .. })).collect();
    End::Ended(progress.said, ending)
}

fn visible(content: &[Block], progress: &Progress) -> String {
    let text = Message::new(Role::Assistant, content.to_vec()).text();
    thinking::strip(&text, progress.said.starts_in_reasoning)
}

/// A step's blocks without the text of thinking tags and without secrets: neither reaches a journal or a history. What a
/// tool is called with stays as it is, or it could not be called.
fn stripped(content: Vec<Block>, starts_in_reasoning: bool) -> Vec<Block> {
    content
        .into_iter()
        .filter_map(|block| match block {
            Block::Text { text } => {
                let text = secrets::mask(&thinking::strip(&text, starts_in_reasoning)).into_owned();
                (!text.is_empty()).then_some(Block::Text { text })
            }
            other => Some(other),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_step_has_no_thoughts_and_no_secrets() {
        let token = format!("ghp_{}", "a1".repeat(18));
        let call = Block::ToolUse { id: "1".into(), name: "pay".into(), input: serde_json::json!({ "with": token }) };
        let said = Block::text(format!("<think>hm</think>I use {token} now."));
        let kept = stripped(vec![said, call.clone()], false);
        assert_eq!(kept, [Block::text("I use [secret removed] now."), call]);
    }
}
