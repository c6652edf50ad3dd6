//! What a model streams.

use turnlock_domain::turn::Usage;

/// One step of an answer. Blocks may interleave; what belongs to one tool call carries its index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelEvent {
    /// A piece of the text, thinking tags and all: only the thinking filter decides what of it is shown.
    Text(String),
    /// A piece of the reasoning that the provider keeps apart from the text.
    Reasoning(String),
    /// The signature over the reasoning so far; it closes that piece of reasoning.
    Signature(String),
    /// A piece of encrypted reasoning, base64.
    Redacted(String),
    /// A tool call begins.
    ToolStart {
        /// Which call of this answer, from 0.
        index: u32,
        /// The call's id: valid, and unlike every other in the conversation.
        id: String,
        /// The registered name of the tool, or whatever the model made up.
        name: String,
    },
    /// A piece of a call's arguments.
    ToolInput {
        /// Which call of this answer.
        index: u32,
        /// A fragment of JSON text.
        json: String,
    },
    /// The answer is whole. Nothing follows.
    Stop {
        /// Why it ended.
        reason: StopReason,
        /// The tokens it took.
        usage: Usage,
    },
}

/// Why an answer ended, as the provider said: never guessed from its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// The model had said all.
    EndTurn,
    /// The model waits for the results of its calls.
    ToolUse,
    /// The token limit cut it off.
    MaxTokens,
    /// A stop sequence came.
    StopSequence,
    /// A guardrail or content filter stepped in.
    Refused,
    /// The model's output could not be read by the provider.
    Malformed,
    /// The context was full.
    ContextFull,
    /// A reason that this version does not know.
    Other(String),
}

impl StopReason {
    /// The reason of this name, as scripts and Bedrock write it.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            "end_turn" => Self::EndTurn,
            "tool_use" => Self::ToolUse,
            "max_tokens" => Self::MaxTokens,
            "stop_sequence" => Self::StopSequence,
            "refused" | "guardrail_intervened" | "content_filtered" => Self::Refused,
            "malformed" | "malformed_model_output" | "malformed_tool_use" => Self::Malformed,
            "context_full" | "model_context_window_exceeded" => Self::ContextFull,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Its name for logs.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::EndTurn => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::StopSequence => "stop_sequence",
            Self::Refused => "refused",
            Self::Malformed => "malformed",
            Self::ContextFull => "context_full",
            Self::Other(name) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for name in [
            "end_turn",
            "tool_use",
            "max_tokens",
            "stop_sequence",
            "refused",
            "malformed",
            "context_full",
            "something_new",
        ] {
            assert_eq!(StopReason::from_name(name).as_str(), name);
        }
    }
}
