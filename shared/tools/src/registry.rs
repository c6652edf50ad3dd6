//! The tools by name, and how a call is run: it always ends, within its tool's time limit, in something the model can
//! read. What only the operator should know (causes, panics) is logged here, with the call's key, and nowhere else.

mod breaker;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::time::Instant;
use tokio::time::timeout;
use turnlock_domain::message::Block;
use turnlock_domain::session::SessionKey;
use turnlock_domain::text::{clean, cut};
use turnlock_store::Store;

use self::breaker::{Breaker, FAILURES};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::output::{self, Bounded, Cut, ToolOutput, bounded};
use crate::tool::{Erased, Tool, ToolHandler, ToolInfo, ToolSpec, info};

/// As much of a name that the model made up as is repeated to it.
const NAME_MAX: usize = 80;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOutcome {
    /// It has a result.
    Ok,
    /// It did not happen, or happened and failed; the model reads why.
    Error,
    /// It may have taken effect: it was cut off, and it does not honour idempotency keys.
    Unknown,
}

impl ToolOutcome {
    /// The word in logs and the replay's output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the result is marked as an error for the model.
    #[must_use]
    pub fn is_error(self) -> bool {
        self != Self::Ok
    }
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRun {
    /// What the model is given: never empty, never blank, bounded.
    pub content: Vec<Block>,
    /// How it ended.
    pub outcome: ToolOutcome,
}

impl ToolRun {
    fn sentence(outcome: ToolOutcome, sentence: impl Into<String>) -> Self {
        Self { content: output::sentence(&sentence.into()), outcome }
    }
}

/// The tools of one agent. Clones share their tools.
#[derive(Clone, Default)]
pub struct Registry {
    tools: BTreeMap<String, Registered>,
    /// Where what is too long to be shown is kept; without it the rest is lost.
    store: Option<Store>,
}

#[derive(Clone)]
struct Registered {
    info: ToolInfo,
    handler: Arc<dyn ToolHandler>,
    breaker: Arc<Breaker>,
}

/// How a call that had started ended without a result.
enum Ended {
    Failed(ToolError),
    Panicked,
    TimedOut,
}

impl Registry {
    /// A registry without tools that keeps in `store` what is too long to be shown.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { tools: BTreeMap::new(), store: Some(store) }
    }

    /// Adds a tool of ours. A tool that had its name is replaced.
    pub fn register<T: Tool>(&mut self, tool: T) {
        self.register_handler(info::<T>(), Arc::new(Erased(tool)));
    }

    /// Adds a tool that is known only at run time. Returns the tool that had its name and is replaced by it, if there
    /// was one: whoever takes names from outside asks [`Registry::get`] first.
    pub fn register_handler(&mut self, info: ToolInfo, handler: Arc<dyn ToolHandler>) -> Option<ToolInfo> {
        let name = info.spec.name.clone();
        self.tools.insert(name, Registered { info, handler, breaker: Arc::default() }).map(|replaced| replaced.info)
    }

    /// What models are told, in the order of the names.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.values().map(|tool| tool.info.told_to_models()).collect()
    }

    /// The tool called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ToolInfo> {
        self.tools.get(name).map(|tool| &tool.info)
    }

    /// Runs one call to its end. It never fails and never panics; what went wrong is in the run's content.
    ///
    /// Dropping the future abandons the call where it stands.
    pub async fn run(&self, name: &str, input: Value, context: ToolContext) -> ToolRun {
        let Some(tool) = self.tools.get(name) else {
            return ToolRun::sentence(ToolOutcome::Error, self.no_such_tool(name));
        };
        if let Err(left) = tool.breaker.admit(Instant::now()) {
            return tool.resting(left);
        }
        let (session, key) = (context.session.clone(), context.key.clone());
        let called = tool.call(input, context).await;
        tool.breaker.ended(called.as_ref().err().is_none_or(Ended::is_answer), Instant::now());
        let output = match called {
            Ok(output) => output,
            Err(ended) => return tool.told(ended, &key),
        };
        let source = tool.info.foreign.then_some(name);
        let Bounded { mut content, cut } = bounded(output.content, source);
        if let Some(cut) = cut {
            let kept = self.keep(&session, &key, &cut).await;
            content.push(Block::text(cut.notice(kept)));
        }
        content.extend(output.note.as_deref().map(output::sentence).unwrap_or_default());
        ToolRun { content, outcome: ToolOutcome::Ok }
    }

    /// Keeps the whole of a result that was cut; the name under which it can be read.
    async fn keep<'k>(&self, session: &SessionKey, key: &'k str, cut: &Cut) -> Option<&'k str> {
        match self.store.as_ref()?.keep_result(session, key, &cut.whole).await {
            Ok(()) => Some(key),
            Err(error) => {
                tracing::warn!(key, error = chain(&error), "the rest of a result could not be kept");
                None
            }
        }
    }

    /// What the model is told of a call of a tool that there is not.
    #[must_use]
    pub fn no_such_tool(&self, name: &str) -> String {
        let name = clean(cut(name, NAME_MAX)).into_owned();
        let names: Vec<&str> = self.tools.keys().map(String::as_str).collect();
        if names.is_empty() {
            return format!("There is no tool `{name}`: there are no tools here. Answer without one.");
        }
        format!("There is no tool `{name}`. The tools are: {}.", names.join(", "))
    }
}

impl Ended {
    /// Whether the tool was reached: one input that breaks it is no reason to keep it from everybody's other calls.
    fn is_answer(&self) -> bool {
        !matches!(self, Self::TimedOut | Self::Failed(ToolError::Transient(_) | ToolError::CutOff(_)))
    }
}

impl Registered {
    async fn call(&self, input: Value, context: ToolContext) -> Result<ToolOutput, Ended> {
        // The call stands inside the future, so that a handler which panics before it returns one is contained too. What
        // it shares with others is its own affair: it gets no reference from us.
        let call = AssertUnwindSafe(async { self.handler.call(input, context).await }).catch_unwind();
        match timeout(self.info.timeout, call).await {
            Ok(Ok(called)) => called.map_err(Ended::Failed),
            Ok(Err(_)) => Err(Ended::Panicked),
            Err(_) => Err(Ended::TimedOut),
        }
    }

    /// What the model is told of it; what it must not read is logged.
    fn told(&self, ended: Ended, key: &str) -> ToolRun {
        let name = self.info.spec.name.as_str();
        match ended {
            Ended::Failed(ToolError::ForModel(sentence)) => ToolRun::sentence(ToolOutcome::Error, sentence),
            Ended::Failed(error @ ToolError::Transient(_)) => {
                tracing::warn!(tool = name, key, error = chain(&error), "the tool `{name}` could not be reached");
                let sentence =
                    format!("The tool `{name}` cannot be reached now. Try again later, or go on without it.");
                ToolRun::sentence(ToolOutcome::Error, sentence)
            }
            Ended::Failed(error @ (ToolError::CutOff(_) | ToolError::BrokeDown(_))) => {
                tracing::warn!(tool = name, key, error = chain(&error), "the tool `{name}` was cut off");
                self.cut_off(&format!("The tool `{name}` broke off in the middle of the call."))
            }
            Ended::Failed(error @ ToolError::Failed(_)) => {
                tracing::error!(tool = name, key, error = chain(&error), "the tool `{name}` failed");
                ToolRun::sentence(ToolOutcome::Error, format!("The tool `{name}` failed. Go on without it."))
            }
            Ended::Panicked => {
                tracing::error!(tool = name, key, "the tool `{name}` panicked");
                self.cut_off(&format!("The tool `{name}` failed in the middle of the call."))
            }
            Ended::TimedOut => {
                let seconds = self.info.timeout.as_secs_f64();
                tracing::warn!(tool = name, key, seconds, "the tool `{name}` took too long");
                self.cut_off(&format!("The tool `{name}` gave no answer within {seconds} seconds."))
            }
        }
    }

    /// What the model is told of a call that was not made.
    fn resting(&self, left: Duration) -> ToolRun {
        let (name, seconds) = (&self.info.spec.name, left.as_millis().div_ceil(1000));
        let sentence = format!(
            "The tool `{name}` gave no answer {FAILURES} times in a row and was not called. Try again in {seconds} seconds, \
             or go on without it."
        );
        ToolRun::sentence(ToolOutcome::Error, sentence)
    }

    /// A call that was cut off may have taken effect, unless repeating it is harmless anyway.
    fn cut_off(&self, what: &str) -> ToolRun {
        if self.info.keyed {
            return ToolRun::sentence(ToolOutcome::Error, what);
        }
        let sentence = format!("{what} It may have taken effect all the same: do not assume that it did not.");
        ToolRun::sentence(ToolOutcome::Unknown, sentence)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.tools.keys()).finish()
    }
}

/// An error and everything below it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let below = std::iter::successors(error.source(), |error| error.source());
    below.fold(error.to_string(), |line, error| format!("{line}: {error}"))
}

#[cfg(test)]
mod tests;
