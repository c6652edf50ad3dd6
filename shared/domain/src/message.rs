//! The messages of a conversation, as they are stored and as every model provider's wire is built from.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, and the results of tools.
    User,
    /// The model.
    Assistant,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Vec<Block>,
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture, by reference.
    Image(Media),
    /// A document or any other file, by reference.
    File(Media),
    /// The model asks for a tool.
    ToolUse {
        /// The call's id, as the model gave it.
        id: String,
        /// The registered name of the tool.
        name: String,
        /// The arguments.
        input: Value,
    },
    /// What the tool answered.
    ToolResult {
        /// The call it answers.
        tool_use_id: String,
        /// The answer.
        content: Vec<Block>,
        /// Whether it is an error.
        #[serde(default)]
        is_error: bool,
    },
    /// The model's reasoning, opaque: replayed byte for byte to the model that made it, shown to nobody.
    Reasoning(Reasoning),
    /// A block that this version does not know: kept out of every model request.
    #[serde(other)]
    Unknown,
}

/// A reference to media.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Media {
    /// The reference, resolved by its channel at use.
    pub url: String,
    /// The file's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The media type.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mime_type: String,
}

/// Reasoning as the provider gave it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Reasoning {
    /// The text; empty where only a signature came.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The provider's signature over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Encrypted reasoning, base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redacted: Option<String>,
    /// The model that made it; another model is not sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Reasoning {
    /// Whether it is signed or encrypted: its provider wants it back byte for byte. Any other is text that it made.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.signature.is_some() || self.redacted.is_some()
    }
}

impl Message {
    /// A message of `role` with these blocks.
    #[must_use]
    pub fn new(role: Role, content: Vec<Block>) -> Self {
        Self { role, content }
    }

    /// A user's text.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Block::text(text)])
    }

    /// The model's text.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, vec![Block::text(text)])
    }

    /// The text blocks, joined by newlines.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .content
            .iter()
            .filter_map(|block| match block {
                Block::Text { text } if !text.is_empty() => Some(text.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }
}

impl Block {
    /// A text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_have_the_documented_json() {
        let message = json!({"role": "assistant", "content": [
            {"type": "text", "text": "a"},
            {"type": "reasoning", "text": "r", "signature": "s"},
            {"type": "reasoning", "redacted": "AAAA"},
            {"type": "tool_use", "id": "1", "name": "recall", "input": {"q": 1}},
            {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "x"}], "is_error": true},
            {"type": "image", "url": "telegram-file:F", "name": "n", "mime_type": "image/png"},
        ]});
        let parsed: Message = serde_json::from_value(message.clone()).expect("parses");
        assert_eq!(serde_json::to_value(&parsed).expect("prints"), message);
    }

    #[test]
    fn an_unknown_block_does_not_fail_the_session() {
        let parsed: Message =
            serde_json::from_value(json!({"role": "user", "content": [{"type": "hologram", "x": 1}]})).expect("parses");
        assert_eq!(parsed.content, [Block::Unknown]);
    }
}
