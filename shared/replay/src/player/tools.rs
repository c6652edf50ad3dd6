//! Scripted tools: what they answer, and every start of one, so that a tool that ran twice is seen.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use turnlock_clock::Clock;
use turnlock_config::{ApprovalAction, ApprovalRule};
use turnlock_domain::time::Millis;
use turnlock_store::Store;
use turnlock_tools::{Registry, Risk, ToolContext, ToolError, ToolHandler, ToolInfo, ToolOutput, ToolSpec};

use crate::faults::Life;
use crate::script::{Policy, Risk as ScriptRisk, ToolLine};

/// One start of a tool.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub(super) at: Millis,
    pub(super) session: String,
    pub(super) name: String,
    pub(super) input: Value,
    pub(super) key: String,
    /// `ok` or `error`; none while it runs, or if its process died.
    pub(super) outcome: Option<&'static str>,
}

/// The scripted tools of a replay: they outlive processes, as what they stand for does.
#[derive(Default)]
pub(super) struct ScriptedTools {
    tools: Mutex<BTreeMap<String, Tool>>,
    starts: Mutex<Vec<Start>>,
}

struct Tool {
    risk: Risk,
    policy: Policy,
    keyed: bool,
    answers: VecDeque<ToolLine>,
}

impl ScriptedTools {
    /// Registers a tool, or queues its next answer; whether it is a new one.
    pub(super) fn add(&self, line: ToolLine) -> bool {
        let mut tools = lock(&self.tools);
        let new = !tools.contains_key(&line.name);
        let tool = tools.entry(line.name.clone()).or_insert_with(|| Tool {
            risk: risk(line.risk),
            policy: line.policy,
            keyed: line.keyed,
            answers: VecDeque::new(),
        });
        tool.answers.push_back(line);
        new
    }

    /// What the tools may do, as rules that stand behind those of the configuration.
    pub(super) fn rules(&self) -> Vec<ApprovalRule> {
        let rule = |(name, tool): (&String, &Tool)| ApprovalRule {
            tool: Some(name.clone()),
            risk: None,
            channel: None,
            sender: None,
            action: match tool.policy {
                Policy::Allow => ApprovalAction::Allow,
                Policy::Ask => ApprovalAction::Ask,
                Policy::Deny => ApprovalAction::Deny,
            },
        };
        lock(&self.tools).iter().map(rule).collect()
    }

    /// Every start so far.
    pub(super) fn starts(&self) -> Vec<Start> {
        lock(&self.starts).clone()
    }

    /// The built-in tools and the scripted ones, as one process has them.
    pub(super) fn registry(self: &Arc<Self>, store: &Store, clock: &Clock, life: &Life) -> Registry {
        let mut registry = turnlock_tools::builtin(store);
        for (name, tool) in &*lock(&self.tools) {
            let info = ToolInfo {
                spec: ToolSpec {
                    name: name.clone(),
                    description: format!("The scripted tool {name}."),
                    schema: json!({"type": "object"}),
                },
                risk: tool.risk,
                keyed: tool.keyed,
                timeout: Duration::from_secs(30),
                foreign: false,
            };
            let handler =
                Handler { name: name.clone(), tools: Arc::clone(self), clock: clock.clone(), life: life.clone() };
            registry.register_handler(info, Arc::new(handler));
        }
        registry
    }

    fn next_answer(&self, name: &str) -> Option<ToolLine> {
        let mut tools = lock(&self.tools);
        let answers = &mut tools.get_mut(name)?.answers;
        let line = answers.front_mut()?;
        let answer = line.clone();
        // The last answer stays: a tool goes on saying what it said.
        if line.times > 1 {
            line.times -= 1;
        } else if answers.len() > 1 {
            answers.pop_front();
        }
        Some(answer)
    }
}

struct Handler {
    name: String,
    tools: Arc<ScriptedTools>,
    clock: Clock,
    life: Life,
}

#[async_trait]
impl ToolHandler for Handler {
    async fn call(&self, input: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        self.life.gate().await;
        let index = {
            let mut starts = lock(&self.tools.starts);
            starts.push(Start {
                at: self.clock.now_ms(),
                session: context.session.to_string(),
                name: self.name.clone(),
                input,
                key: context.key,
                outcome: None,
            });
            starts.len() - 1
        };
        let answer = self.tools.next_answer(&self.name);
        if let Some(wait) = answer.as_ref().and_then(|answer| answer.wait) {
            tokio::time::sleep(wait).await;
            self.life.gate().await;
        }
        let error = answer.as_ref().and_then(|answer| answer.error.clone());
        if let Some(start) = lock(&self.tools.starts).get_mut(index) {
            start.outcome = Some(if error.is_some() { "error" } else { "ok" });
        }
        match (error, answer.and_then(|answer| answer.result)) {
            (Some(error), _) => Err(ToolError::for_model(error.0)),
            (None, Some(result)) => Ok(ToolOutput::blocks(result.0)),
            (None, None) => Ok(ToolOutput::text("ok")),
        }
    }
}

fn risk(risk: ScriptRisk) -> Risk {
    match risk {
        ScriptRisk::Read => Risk::Read,
        ScriptRisk::Write => Risk::Write,
        ScriptRisk::Execute => Risk::Execute,
        ScriptRisk::Dangerous => Risk::Dangerous,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
