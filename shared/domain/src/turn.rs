//! What a turn ends as, and what must follow.

use serde::{Deserialize, Serialize};

use crate::ids::EventId;
use crate::session::SessionKey;

/// How an event ended. Once stored in its marker it never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Outcome {
    /// The model answered.
    Replied,
    /// A stop ended it; what there was is committed with the mark.
    Stopped,
    /// It began a new conversation.
    Reset,
    /// It failed; the error reply is its committed answer.
    Failed {
        /// Why.
        reason: Failure,
    },
    /// A command that control answered without a turn.
    Answered,
    /// Its text was used by another event's turn.
    Merged {
        /// That event.
        into: EventId,
    },
    /// An outcome that this version does not know: a later version wrote it.
    #[serde(other)]
    Unknown,
}

/// Why a turn failed for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// It was tried too often.
    TooManyAttempts,
    /// It waited too long.
    TooOld,
    /// The model refused the request for good.
    ModelRefused,
    /// The model gave no visible answer, also when asked again.
    NoAnswer,
    /// It needed more steps than a turn may take.
    TooManySteps,
    /// Nobody decided in time whether a call may run.
    ApprovalExpired,
    /// The deployment has spent what it may spend in a day.
    DailyLimit,
    /// It was given up by the queue.
    Dead,
    /// A reason that this version does not know.
    #[serde(other)]
    Unknown,
}

impl Failure {
    /// The word for logs and the replay's output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooManyAttempts => "too_many_attempts",
            Self::TooOld => "too_old",
            Self::ModelRefused => "model_refused",
            Self::NoAnswer => "no_answer",
            Self::TooManySteps => "too_many_steps",
            Self::ApprovalExpired => "approval_expired",
            Self::DailyLimit => "daily_limit",
            Self::Dead => "dead",
            Self::Unknown => "unknown",
        }
    }
}

/// What a committed turn must still send: references, not text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Owed {
    /// The final reply.
    Final,
    /// A job.
    Job {
        /// Which.
        job: Job,
    },
    /// A new face for the card of a call about which nobody decided: nothing can be pressed any more.
    Card {
        /// The approval's id.
        approval: String,
    },
    /// Something that this version does not know: a later version owes it, and sends it.
    #[serde(other)]
    Unknown,
}

/// Derived work for later. Each kind has a queue of its own. A new one is owed under a new kind of [`Owed`], so that
/// versions that do not know it still read the marker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "job")]
pub enum Job {
    /// Take messages into long-term memory and move the boundary over them.
    Consolidate(JobTarget),
    /// Look through the last turns for what is worth remembering.
    ReviewMemory(JobTarget),
}

/// What a job works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobTarget {
    /// The session.
    pub session: SessionKey,
    /// The session's generation when the job was owed; a later one makes the job void.
    pub generation: u32,
    /// The first message it looks at.
    pub from: u64,
    /// The memory scope it writes to.
    pub scope: String,
    /// The event whose turn owes it.
    pub event_id: EventId,
}

impl Job {
    /// Its name in queues, logs and the replay's output.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Consolidate(_) => "consolidate",
            Self::ReviewMemory(_) => "review_memory",
        }
    }

    /// What it works on.
    #[must_use]
    pub fn target(&self) -> &JobTarget {
        match self {
            Self::Consolidate(target) | Self::ReviewMemory(target) => target,
        }
    }

    /// The id of this piece of work: two messages with the same id are one job.
    #[must_use]
    pub fn id(&self) -> String {
        let target = self.target();
        format!("{}:{}:{}:{}", self.kind(), target.session, target.generation, target.from)
    }
}

/// Tokens that were used, and what they cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens the model read, those of a cache apart.
    pub input_tokens: u64,
    /// Tokens the model wrote.
    pub output_tokens: u64,
    /// Tokens that were read from the provider's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_read_tokens: u64,
    /// Tokens that were written to the provider's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// What it cost, in millionths of the currency of the configured prices.
    #[serde(skip_serializing_if = "is_zero")]
    pub cost: u64,
}

/// One call of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelCall {
    /// The model's name.
    pub model: String,
    /// What it used.
    #[serde(flatten)]
    pub usage: Usage,
}

impl Usage {
    /// Adds another call's.
    pub fn add(&mut self, other: Self) {
        let fields = [
            (&mut self.input_tokens, other.input_tokens),
            (&mut self.output_tokens, other.output_tokens),
            (&mut self.cache_read_tokens, other.cache_read_tokens),
            (&mut self.cache_write_tokens, other.cache_write_tokens),
            (&mut self.cost, other.cost),
        ];
        for (sum, more) in fields {
            *sum = sum.saturating_add(more);
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
