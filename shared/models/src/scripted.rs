//! A model that plays scripts: for replays and tests, and as the stand-in of the first run. It needs no network, and
//! its waits are tokio's, so that a paused runtime plays them in no time.
//!
//! It keeps every request as it would have left, with what the validity checker says of it. Where no script line fits,
//! it gives its reference answer:
//!
//! - a **turn** gets the last text of the user, exactly, but for the line of ours that says in a group who wrote it; a
//!   stand-in ([`Scripted::stand_in`]) says what it is instead;
//! - a **consolidation** keeps one fact per user message of the transcript ([`crate::transcript`]; without one, per user
//!   message of the request), as a call of the forced tool (`save_memory` if none is forced) with
//!   `{"summary": "<n> messages of the user.", "facts": [{"key", "value"}]}`: the value is the message's whole text, the
//!   key its first words in lower case and a short digest of it, e.g. `my-cat-is-called-tom-c6b0e39b`. A request without
//!   tools gets the same object as text;
//! - any **other job** finds nothing: the forced tool with `{"facts": []}`, or the text `Nothing to keep.`

mod line;
mod play;
mod reference;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use turnlock_domain::session::SessionKey;

use crate::error::ModelError;
use crate::model::{Capabilities, Model, ModelStream};
use crate::request::{ModelRequest, Purpose};
use crate::wire::Wire;

pub use line::{Chunk, ScriptError, ScriptLine, ScriptedCall};

/// A model that plays scripts. Shared between the processes of a replay, it outlives each of them.
#[derive(Debug)]
pub struct Scripted {
    name: String,
    capabilities: Capabilities,
    wire: Wire,
    stand_in: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<ScriptLine>,
    requests: Vec<RecordedRequest>,
}

/// A request that the model received.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordedRequest {
    /// What it was for.
    #[serde(rename = "for")]
    pub purpose: Purpose,
    /// The session it belonged to.
    pub session: SessionKey,
    /// The JSON that the wire would have carried.
    pub request: Value,
    /// What the validity checker says of it: nothing, or the request would have been refused.
    pub problems: Vec<String>,
}

impl Scripted {
    /// A model without a script that keeps what it is asked in the words of `wire`.
    #[must_use]
    pub fn new(wire: Wire) -> Self {
        Self {
            name: "scripted".to_owned(),
            capabilities: Capabilities { tools: true, images: true, ..Capabilities::default() },
            wire,
            stand_in: false,
            state: Mutex::default(),
        }
    }

    /// The model of the first run: it answers by itself, says plainly that it is a stand-in, and keeps no requests.
    #[must_use]
    pub fn stand_in() -> Self {
        Self { stand_in: true, ..Self::new(Wire::Neutral) }
    }

    /// The same model, under another name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The same model, able to do other things.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Adds a line to the script. The first line that fits a call, and has times left, answers it.
    pub fn push(&self, line: ScriptLine) {
        self.state().lines.push_back(line);
    }

    /// What it has been asked so far, in order. A stand-in keeps none.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.state().requests.clone()
    }

    /// How many answers of the script are left.
    #[must_use]
    pub fn answers_left(&self) -> u64 {
        self.state().lines.iter().map(|line| u64::from(line.times)).sum()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing between lock and unlock leaves a half state behind, so a poisoned one is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_line(&self, request: &ModelRequest) -> Option<ScriptLine> {
        let mut state = self.state();
        let at = state.lines.iter().position(|line| line.times > 0 && line.fits(request))?;
        let mut line = state.lines.get(at)?.clone();
        if line.times == 1 {
            state.lines.remove(at);
        } else {
            state.lines[at].times -= 1;
        }
        line.times = 1;
        Some(line)
    }
}

#[async_trait]
impl Model for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        self.stream_as(&self.name, request, &self.capabilities)
    }
}

impl Scripted {
    /// Answers as a model of another name, or that can do something else: a replay's configuration names its models, one
    /// script plays them all, and it goes on when the configuration changes.
    ///
    /// # Errors
    /// Those that the script names.
    pub fn stream_as(
        &self,
        name: &str,
        request: &ModelRequest,
        capabilities: &Capabilities,
    ) -> Result<ModelStream, ModelError> {
        let prepared = request.prepared(name, capabilities, None);
        let problems = prepared.problems();
        // Whatever a test is about, no model may be asked what a provider would refuse.
        debug_assert!(problems.is_empty(), "an invalid question to a model: {problems:?}");
        if !self.stand_in {
            let recorded = RecordedRequest {
                purpose: request.purpose,
                session: request.session.clone(),
                request: self.wire.render(name, prepared.request()),
                problems,
            };
            self.state().requests.push(recorded);
        }
        let steps = match self.next_line(request) {
            Some(line) => play::steps(line)?,
            None => reference::answer(request, self.stand_in),
        };
        Ok(prepared.answering(play::stream(steps)))
    }
}

#[cfg(test)]
mod tests;
