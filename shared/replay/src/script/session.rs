//! `session`: a conversation as it is put into the store, and the blocks of its messages.

use serde::Deserialize;
use serde_json::{Map, Value};
use turnlock_domain::message::{Block, Message, Role};

use super::{Problem, read as read_value, text};

/// A session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionLine {
    /// Its key.
    pub key: String,
    /// Its messages, however broken.
    pub messages: Vec<Message>,
    /// How many of them long-term memory has taken in.
    pub boundary: u64,
    /// How often it was reset.
    pub generation: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    key: String,
    #[serde(default)]
    messages: Vec<MessageFields>,
    #[serde(default)]
    boundary: u64,
    #[serde(default)]
    generation: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageFields {
    role: Role,
    content: Value,
}

/// The fields of each kind of block, the required ones first.
const KINDS: [(&str, &[&str]); 6] = [
    ("text", &["text"]),
    ("tool_use", &["id", "name", "input"]),
    ("tool_result", &["tool_use_id", "content", "is_error"]),
    ("reasoning", &["text", "signature", "redacted", "model"]),
    ("image", &["url", "name", "mime_type"]),
    ("file", &["url", "name", "mime_type"]),
];

/// Reads the line.
pub(super) fn read(key: &str, json: &str) -> Result<SessionLine, Problem> {
    let fields: Fields = read_value(key, json)?;
    let mut messages = Vec::new();
    for (index, message) in fields.messages.into_iter().enumerate() {
        let content = content(&message.content)
            .map_err(|reason| Problem::new(format!("{key}.messages[{index}].content"), reason))?;
        messages.push(Message::new(message.role, content));
    }
    Ok(SessionLine { key: fields.key, messages, boundary: fields.boundary, generation: fields.generation })
}

/// A message's or a result's content: blocks, or a text that stands for one text block.
fn content(value: &Value) -> Result<Vec<Block>, String> {
    match text::generate(value) {
        // An empty list is a message without content, not an empty text.
        Some(text) if value != &Value::Array(Vec::new()) => Ok(vec![Block::Text { text }]),
        _ => blocks(value),
    }
}

/// Blocks as a script writes them.
pub(super) fn blocks(value: &Value) -> Result<Vec<Block>, String> {
    let list = value.as_array().ok_or_else(|| format!("{value} is no list of blocks"))?;
    list.iter().map(block).collect()
}

fn block(value: &Value) -> Result<Block, String> {
    let fields = value.as_object().ok_or_else(|| format!("{value} is no block"))?;
    let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
    let Some((_, allowed)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        let names = KINDS.map(|(name, _)| format!("`{name}`")).join(", ");
        return Err(format!("`{kind}` is no type of a block; allowed: {names}"));
    };
    if let Some(unknown) = fields.keys().find(|key| *key != "type" && !allowed.contains(&key.as_str())) {
        return Err(format!("`{unknown}` is no field of a {kind} block; allowed: {}", allowed.join(", ")));
    }
    if kind == "tool_result" {
        return tool_result(fields);
    }
    let mut plain = fields.clone();
    if let Some(written) = plain.get_mut("text") {
        *written = Value::String(text::generate(written).ok_or_else(|| format!("{written} is no text"))?);
    }
    serde_json::from_value(Value::Object(plain)).map_err(|error| format!("not a {kind} block: {error}"))
}

fn tool_result(fields: &Map<String, Value>) -> Result<Block, String> {
    let tool_use_id = fields.get("tool_use_id").and_then(Value::as_str);
    Ok(Block::ToolResult {
        tool_use_id: tool_use_id.ok_or("a tool_result needs `tool_use_id`")?.to_owned(),
        content: fields.get("content").map_or_else(|| Ok(Vec::new()), content)?,
        is_error: fields.get("is_error").is_some_and(|is_error| is_error == true),
    })
}
