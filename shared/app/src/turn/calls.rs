//! The calls of a step: run in order, each result in its slot before the model hears of it.

use tokio::time::Instant;
use turnlock_domain::message::{Block, Message, Role};
use turnlock_store::journal::{CallOutcome, CallResult, Journal, ResultSlot, Step};
use turnlock_tools::{ToolContext, ToolOutcome};

use super::ask::END_MARGIN;
use super::inference::{End, Inference, InferenceError, Progress};
use super::lease::TOOL_MARGIN;
use super::response::Said;
use crate::journal_line;

/// From the how-manieth time on an identical call is refused.
const REFUSED_FROM: u32 = 4;
/// What the model is told of a call that a dead worker may have started.
const UNKNOWN: &str = "This call was started, then interrupted: whether it took effect is unknown. Do not assume \
                       either; check if you can, or tell the user.";

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

impl Inference<'_> {
    /// Whether the invocation lasts for the step's longest call: one that is cut off in the middle is `unknown` for ever.
    pub(super) fn has_time_for(&self, step: &Step) -> bool {
        let timeouts = step.output.iter().filter_map(|block| match block {
            Block::ToolUse { name, .. } => self.tools.get(name).map(|tool| tool.timeout),
            _ => None,
        });
        self.deadline.saturating_duration_since(Instant::now()) >= timeouts.max().unwrap_or_default() + END_MARGIN
    }

    /// Runs a step's calls, or takes their results from the journal, and adds both to the turn's messages.
    pub(super) async fn take_step(
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
}

/// What a turn had done before it was ended without its model: the journal's steps, each call with what became of it.
pub(super) fn journalled(journal: &Journal, starts_in_reasoning: bool) -> Said {
    let mut said = Said { starts_in_reasoning, ..Said::default() };
    for step in &journal.steps {
        said.count(step);
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

pub(super) fn error_result(outcome: CallOutcome, sentence: &str) -> CallResult {
    CallResult { content: vec![Block::text(sentence)], is_error: true, outcome }
}
