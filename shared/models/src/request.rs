//! What a model is asked.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnlock_domain::message::Message;
use turnlock_domain::session::SessionKey;

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Answer a person.
    Turn,
    /// Take messages into long-term memory.
    Consolidate,
    /// Look through the last turns for what is worth remembering.
    ReviewMemory,
    /// Look through the last turns for what is worth writing down as a skill.
    ReviewSkills,
    /// Turn text into a vector. A script may name it; no [`crate::Model`] is asked for it.
    Embed,
}

impl Purpose {
    /// Its name in scripts, logs and the replay's output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Consolidate => "consolidate",
            Self::ReviewMemory => "review_memory",
            Self::ReviewSkills => "review_skills",
            Self::Embed => "embed",
        }
    }
}

/// A tool as the model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The registered name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
}

/// One question to a model, as its caller has it: history as loaded, names as registered.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// What it is for.
    pub purpose: Purpose,
    /// The session it belongs to.
    pub session: SessionKey,
    /// The instructions; may be empty.
    pub system: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The tools it may call.
    pub tools: Vec<ToolSpec>,
    /// The most tokens it may write.
    pub max_tokens: Option<u32>,
    /// The registered name of the one tool it must call.
    pub force_tool: Option<String>,
    /// Whether the provider found a turn's request too long although it was cut: it is cut to half of what the model
    /// takes, or, where nobody knows how much that is, to half of what it weighs. A job's request is never cut.
    pub tighter: bool,
}

impl ModelRequest {
    /// A request without instructions, tools and limits.
    #[must_use]
    pub fn new(purpose: Purpose, session: SessionKey, messages: Vec<Message>) -> Self {
        Self {
            purpose,
            session,
            system: String::new(),
            messages,
            tools: Vec::new(),
            max_tokens: None,
            force_tool: None,
            tighter: false,
        }
    }
}
