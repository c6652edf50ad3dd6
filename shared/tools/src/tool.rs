//! The trait that a tool of ours implements, and the erased form under which the registry keeps every tool.

use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;

/// How long a call may take unless its tool says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// What the worst use of a tool can do; what must be asked of a person is decided by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Risk {
    /// It reads.
    Read,
    /// It writes what can be written again.
    Write,
    /// It makes something happen outside.
    Execute,
    /// It does what cannot be undone: money, deletion, publication.
    Dangerous,
}

impl Risk {
    /// The word in scripts, configuration and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
            Self::Dangerous => "dangerous",
        }
    }

    /// The risk behind its word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Read, Self::Write, Self::Execute, Self::Dangerous].into_iter().find(|risk| risk.as_str() == word)
    }
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The registered name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its input: always an object.
    pub schema: Value,
}

/// A tool as the runtime knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolInfo {
    /// What the model is told.
    pub spec: ToolSpec,
    /// What its worst use can do.
    pub risk: Risk,
    /// Whether it may be asked again with the same key after a crash: it honours idempotency keys, or repeating it is
    /// harmless. A tool without it is never started twice.
    pub keyed: bool,
    /// How long a call may take.
    pub timeout: Duration,
    /// Whether its text is somebody else's: a page, another service's answer. Such text is marked as data.
    pub foreign: bool,
}

impl ToolInfo {
    /// What the model is told, and of a tool whose text is somebody else's, how to take it.
    pub(crate) fn told_to_models(&self) -> ToolSpec {
        let mut spec = self.spec.clone();
        if self.foreign {
            spec.description = format!("{} {}", spec.description, crate::output::DATA).trim_start().to_owned();
        }
        spec
    }
}

/// A tool of ours.
pub trait Tool: Send + Sync + 'static {
    /// What it is called with. Its schema is what the model is shown, its doc comments are the fields' descriptions.
    type Input: DeserializeOwned + JsonSchema + Send;

    /// The name it is called by.
    const NAME: &'static str;
    /// What it does and when to use it, for the model.
    const DESCRIPTION: &'static str;
    /// What its worst use can do.
    const RISK: Risk;
    /// Whether it honours idempotency keys, or is harmless to repeat.
    const KEYED: bool;
    /// How long a call may take.
    const TIMEOUT: Duration = TIMEOUT;
    /// Whether its text is somebody else's, and marked as data.
    const FOREIGN: bool = false;

    /// Does it.
    fn run(
        &self,
        input: Self::Input,
        context: ToolContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

/// A tool whose name and schema are known only at run time. Time limit, panics and the size of the result are the
/// registry's business.
#[async_trait]
pub trait ToolHandler: Send + Sync {
    /// Does it; `input` is a JSON object that nobody has checked against the schema.
    async fn call(&self, input: Value, context: ToolContext) -> Result<ToolOutput, ToolError>;
}

/// What the registry needs to know of `T`.
pub(crate) fn info<T: Tool>() -> ToolInfo {
    ToolInfo {
        spec: ToolSpec {
            name: T::NAME.to_owned(),
            description: T::DESCRIPTION.to_owned(),
            schema: input::schema::<T::Input>(),
        },
        risk: T::RISK,
        keyed: T::KEYED,
        timeout: T::TIMEOUT,
        foreign: T::FOREIGN,
    }
}

/// The one place where a tool's type is erased.
pub(crate) struct Erased<T>(pub(crate) T);

#[async_trait]
impl<T: Tool> ToolHandler for Erased<T> {
    async fn call(&self, input: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let input = input::read(T::NAME, input)?;
        self.0.run(input, context).await
    }
}
