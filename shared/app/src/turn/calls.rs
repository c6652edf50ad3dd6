//! The calls of a step: run in order, each result in its slot before the model hears of it. Neighbours that only read run
//! together; their results stand in the order of the calls all the same.
//!
//! A call without a result may have been started by a dead worker. It was not if it waits for a person, nor if it stands
//! behind one that does; and a worker that hands a step back in the middle says from where on nothing was started.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt;
use futures_util::stream;
use tokio::time::Instant;
use turnlock_domain::message::{Block, Message, Role};
use turnlock_store::journal::{CallOutcome, CallResult, Journal, MAX_CALLS, ResultSlot, Step};
use turnlock_tools::{Risk, ToolContext, ToolOutcome};

use super::ask::END_MARGIN;
use super::inference::{End, Inference, InferenceError, Progress};
use super::lease::TOOL_MARGIN;
use super::permit::{DENIED, Permit};
use super::response::Said;
use crate::journal_line;

/// From the how-manieth time on an identical call is refused.
const REFUSED_FROM: u32 = 4;
/// How many calls that only read run at the same time.
const PARALLEL: usize = 4;

/// What the model is told of a call that a dead worker may have started.
const UNKNOWN: &str = "This call was started, then interrupted: whether it took effect is unknown. Do not assume \
                       either; check if you can, or tell the user.";
/// What it is told of a call that nobody started before the turn ended.
const NOT_EXECUTED: &str = "This call was not executed: the turn ended before it was started.";
const REPEATED: &str = "This call was made three times already with the same arguments. Use the earlier results or try \
                        something else.";
const TOO_MANY: &str = "This call was not executed: too many were asked for at once. Ask for it again, in a step of its \
                        own, if you still need it.";

/// One call of a step.
pub(super) struct Call {
    pub(super) step: u32,
    pub(super) index: u32,
    id: String,
    pub(super) name: String,
    pub(super) input: serde_json::Value,
    /// The model that asks for it.
    model: String,
    /// The how-manieth time it is asked for.
    times: u32,
}

/// What is to be done about a call.
enum Due {
    /// Nothing: this is its result.
    Known(CallResult),
    /// It does not run; this is to be its result.
    Told(CallResult),
    /// A person decides.
    Asked,
    /// It runs.
    Run,
}

/// From which call of a step on nobody has started any.
#[derive(Clone, Copy)]
struct Fresh(Option<u32>);

impl Fresh {
    fn covers(self, index: u32) -> bool {
        self.0.is_some_and(|from| index >= from)
    }

    /// Nothing behind `index` was started either: calls start in order.
    fn and_from(self, index: u32) -> Self {
        Self(Some(self.0.map_or(index, |from| from.min(index))))
    }
}

impl Call {
    /// What is the same for calls of the same tool with the same input.
    pub(super) fn text(&self) -> String {
        format!("{} {}", self.name, self.input)
    }
}

/// The calls of a step, by their index.
pub(super) fn uses(step: &Step) -> impl Iterator<Item = (u32, &String, &String, &serde_json::Value)> {
    let uses = step.output.iter().filter_map(|block| match block {
        Block::ToolUse { id, name, input } => Some((id, name, input)),
        _ => None,
    });
    (0..).zip(uses).map(|(index, (id, name, input))| (index, id, name, input))
}

impl Inference<'_> {
    /// Runs a step's calls, or takes their results from the journal, and adds both to the turn's messages.
    pub(super) async fn take_step(
        &self,
        progress: &mut Progress,
        step: Step,
        resumed: bool,
    ) -> Result<Option<End>, InferenceError> {
        progress.step = step.step;
        let is_last = self.context.journal.steps.last().is_some_and(|last| last.step == step.step);
        let mut fresh = Fresh(if resumed { self.unstarted.filter(|_| is_last) } else { Some(0) });
        let calls = counted(&step, progress);
        let mut results = Vec::with_capacity(calls.len());
        while let Some(call) = calls.get(results.len()) {
            progress.unstarted = fresh.0.map(|from| from.max(call.index));
            match self.due(&step, call, fresh) {
                Due::Known(result) => results.push(result),
                Due::Told(result) => results.push(self.keep(call, result).await?),
                Due::Asked => {
                    fresh = fresh.and_from(call.index);
                    progress.unstarted = Some(call.index);
                    match self.permit(progress, call).await? {
                        Permit::Start => {
                            progress.unstarted = Some(call.index + 1);
                            results.push(self.run_call(call).await?);
                            progress.stepped = true;
                        }
                        Permit::Refused(result) => results.push(result),
                        Permit::End(end) => return Ok(Some(end)),
                    }
                }
                Due::Run => {
                    let together = self.together(&step, &calls[results.len()..], fresh);
                    for (call, started) in together.iter().zip(self.run_together(progress, together, fresh).await) {
                        let Some(result) = started? else {
                            progress.unstarted = fresh.0.map(|from| from.max(call.index));
                            return Ok(Some(self.later(progress)));
                        };
                        progress.stepped = true;
                        results.push(result);
                    }
                }
            }
        }
        progress.unstarted = None;
        let results = calls.into_iter().zip(results).map(|(call, result)| result_block(call.id, result)).collect();
        progress.said.steps.push(Message::new(Role::Assistant, step.output));
        progress.said.steps.push(Message::new(Role::User, results));
        Ok(None)
    }

    fn due(&self, step: &Step, call: &Call, fresh: Fresh) -> Due {
        let known = known(&self.context.journal, step, (call.index, &call.id));
        let started = self.context.journal.started.contains(&(call.step, call.index));
        let keyed = self.tools.get(&call.name).is_some_and(|tool| tool.keyed);
        match known {
            Some((result, true)) => Due::Known(result),
            Some((result, false)) => Due::Told(result),
            None if call.times >= REFUSED_FROM => Due::Told(error_result(CallOutcome::Refused, REPEATED)),
            None if step.asks.contains(&call.index) && !started => Due::Asked,
            None if !keyed && !fresh.covers(call.index) => Due::Told(error_result(CallOutcome::Unknown, UNKNOWN)),
            None => Due::Run,
        }
    }

    /// The first of `calls`, and those right behind it that run beside it: all of them only read.
    fn together<'c>(&self, step: &Step, calls: &'c [Call], fresh: Fresh) -> &'c [Call] {
        let reads = |call: &&Call| {
            self.tools.get(&call.name).is_some_and(|tool| tool.risk == Risk::Read)
                && matches!(self.due(step, call, fresh), Due::Run)
        };
        let reading = calls.iter().take_while(reads).count();
        &calls[..reading.max(1)]
    }

    /// Runs calls at the same time, as many as may. All that were started are awaited; `None` is one that was not, as are
    /// all behind it.
    async fn run_together(
        &self,
        progress: &mut Progress,
        calls: &[Call],
        fresh: Fresh,
    ) -> Vec<Result<Option<CallResult>, InferenceError>> {
        // Should a result not be stored: who comes next knows what was not started behind these.
        let behind = calls.last().map_or(0, |call| call.index + 1);
        progress.unstarted = fresh.0.map(|from| from.max(behind));
        let late = AtomicBool::new(false);
        let starting: Vec<_> = calls.iter().map(|call| Box::pin(self.start_unless(call, &late))).collect();
        stream::iter(starting).buffered(PARALLEL).collect().await
    }

    async fn start_unless(&self, call: &Call, late: &AtomicBool) -> Result<Option<CallResult>, InferenceError> {
        if late.load(Ordering::Relaxed) || !self.may_start(call) {
            late.store(true, Ordering::Relaxed);
            return Ok(None);
        }
        self.run_call(call).await.map(Some)
    }

    /// Whether a call may start now: the lease holds, and the invocation lasts for as long as the call may take. One that
    /// is cut off in the middle is `unknown` for ever.
    pub(super) fn may_start(&self, call: &Call) -> bool {
        let timeout = self.tools.get(&call.name).map(|tool| tool.timeout).unwrap_or_default();
        let left = self.deadline.saturating_duration_since(Instant::now());
        self.lease.left() >= TOOL_MARGIN && left >= timeout + END_MARGIN
    }

    /// Runs one call and puts its result into its slot.
    async fn run_call(&self, call: &Call) -> Result<CallResult, InferenceError> {
        let result = self.start_tool(call).await;
        self.keep(call, result).await
    }

    /// Puts a result into its call's slot; what the slot holds already counts.
    async fn keep(&self, call: &Call, result: CallResult) -> Result<CallResult, InferenceError> {
        self.log(call, &result);
        match self.store.write_result(self.lock, call.step, call.index, &result).await? {
            ResultSlot::Mine => Ok(result),
            ResultSlot::Taken(theirs) => Ok(theirs),
        }
    }

    pub(super) fn log(&self, call: &Call, result: &CallResult) {
        let key = self.key(call);
        let outcome = format!("{:?}", result.outcome).to_lowercase();
        // A name that the model made up may be anything, somebody's text too.
        let name = self.tools.get(&call.name).map_or("(unknown)", |_| call.name.as_str());
        tracing::info!(target: journal_line::TOOL, event_id = %self.lock.event, session = %self.lock.session,
            name, key, outcome, "tool {name} of event {}: {outcome}", self.lock.event);
    }

    async fn start_tool(&self, call: &Call) -> CallResult {
        let (generation, message) = self.place;
        let context = ToolContext {
            session: self.lock.session.clone(),
            scope: self.scope.to_owned(),
            event_id: self.lock.event.clone(),
            key: self.key(call),
            generation,
            message,
            model: call.model.clone(),
            now: self.store.clock().now(),
        };
        let run = self.tools.run(&call.name, call.input.clone(), context).await;
        let outcome = match run.outcome {
            ToolOutcome::Ok => CallOutcome::Ok,
            ToolOutcome::Error => CallOutcome::Error,
            ToolOutcome::Unknown => CallOutcome::Unknown,
        };
        CallResult { content: run.content, is_error: run.outcome.is_error(), outcome }
    }

    fn key(&self, call: &Call) -> String {
        format!("{}:{}:{}", self.lock.event, call.step, call.index)
    }
}

/// The calls of a step, counted among those of the whole turn.
fn counted(step: &Step, progress: &mut Progress) -> Vec<Call> {
    let model = step.calls.last().map(|call| call.model.clone()).unwrap_or_default();
    let calls = uses(step).map(|(index, id, name, input)| {
        let mut call = Call {
            step: step.step,
            index,
            id: id.clone(),
            name: name.clone(),
            input: input.clone(),
            model: model.clone(),
            times: 0,
        };
        let times = progress.calls.entry(call.text()).or_default();
        *times += 1;
        call.times = *times;
        progress.said.tool_calls += 1;
        call
    });
    calls.collect()
}

/// The result that a call has, or must have whoever takes the step; and whether it needs no slot of its own.
fn known(journal: &Journal, step: &Step, (index, id): (u32, &str)) -> Option<(CallResult, bool)> {
    if let Some(result) = journal.results.get(&(step.step, index)) {
        return Some((result.clone(), true));
    }
    if index >= MAX_CALLS {
        return Some((error_result(CallOutcome::Refused, TOO_MANY), true));
    }
    if let Some((_, error)) = step.bad.iter().find(|(bad, _)| bad == id) {
        return Some((error_result(CallOutcome::Error, error), false));
    }
    step.denied.contains(&index).then(|| (error_result(CallOutcome::Refused, DENIED), false))
}

/// What a turn had done before it was ended without its model: the journal's steps, each call with what became of it.
/// `unstarted` is from where on no call of the last step was started, if that is known.
pub(super) fn journalled(journal: &Journal, unstarted: Option<u32>) -> Said {
    let mut said = Said::default();
    for (left, step) in (0..journal.steps.len()).rev().zip(&journal.steps) {
        said.count(step);
        said.hear(&step.steered);
        let mut fresh = Fresh(unstarted.filter(|_| left == 0));
        let results = uses(step).map(|(index, id, ..)| {
            let place = (step.step, index);
            if step.asks.contains(&index) && !journal.started.contains(&place) && !journal.results.contains_key(&place)
            {
                fresh = fresh.and_from(index);
            }
            let result = known(journal, step, (index, id)).map(|(result, _)| result);
            let result = result.unwrap_or_else(|| match fresh.covers(index) {
                true => error_result(CallOutcome::Refused, NOT_EXECUTED),
                false => error_result(CallOutcome::Unknown, UNKNOWN),
            });
            result_block(id.clone(), result)
        });
        let results: Vec<Block> = results.collect();
        said.tool_calls += u32::try_from(results.len()).unwrap_or(u32::MAX);
        said.steps.push(Message::new(Role::Assistant, step.output.clone()));
        said.steps.push(Message::new(Role::User, results));
    }
    said
}

pub(super) fn error_result(outcome: CallOutcome, sentence: &str) -> CallResult {
    CallResult { content: vec![Block::text(sentence)], is_error: true, outcome }
}

fn result_block(tool_use_id: String, CallResult { content, is_error, .. }: CallResult) -> Block {
    Block::ToolResult { tool_use_id, content, is_error }
}
