//! `tool`: a scripted tool and its answers.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use turnlock_domain::message::Block;

use super::text::{self, Text};
use super::{Problem, optional_seconds, session};

/// How dangerous a tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// It looks.
    #[default]
    Read,
    /// It changes something.
    Write,
    /// It runs code.
    Execute,
    /// It can do harm that nobody undoes.
    Dangerous,
}

/// Whether a tool may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// It may.
    #[default]
    Allow,
    /// A person is asked.
    Ask,
    /// It may not.
    Deny,
}

/// A scripted tool: the first line of a name registers it, every line queues an answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolLine {
    /// Its registered name.
    pub name: String,
    /// How dangerous it is; read if absent.
    #[serde(default)]
    pub risk: Risk,
    /// Whether it may run; allowed if absent.
    #[serde(default)]
    pub policy: Policy,
    /// Whether it honours idempotency keys.
    #[serde(default)]
    pub keyed: bool,
    /// What it answers.
    #[serde(default)]
    pub result: Option<ToolAnswer>,
    /// How it fails instead.
    #[serde(default)]
    pub error: Option<Text>,
    /// How long it takes.
    #[serde(default, deserialize_with = "optional_seconds")]
    pub wait: Option<Duration>,
    /// For how many calls this answer stands.
    #[serde(default = "once")]
    pub times: u64,
}

impl ToolLine {
    pub(super) fn checked(self) -> Result<Self, Problem> {
        if self.result.is_some() && self.error.is_some() {
            return Err(Problem::new("tool.error", "not beside `result`: a call answers or fails"));
        }
        Ok(self)
    }
}

fn once() -> u64 {
    1
}

/// What a tool answers: a text or blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAnswer(pub Vec<Block>);

impl<'de> Deserialize<'de> for ToolAnswer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if let Some(text) = text::generate(&value) {
            return Ok(Self(vec![Block::Text { text }]));
        }
        session::blocks(&value).map(Self).map_err(D::Error::custom)
    }
}
