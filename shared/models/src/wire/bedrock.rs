//! Bedrock Converse, bytes as base64.

use serde_json::{Map, Value, json};
use turnlock_domain::message::{Block, Media, Message, Reasoning, Role};

use super::inline_data;
use crate::prepare::placeholder;
use crate::request::ModelRequest;

/// Document formats that Converse takes, by media type.
const DOCUMENTS: &[(&str, &str)] = &[
    ("application/pdf", "pdf"),
    ("text/csv", "csv"),
    ("text/html", "html"),
    ("text/markdown", "md"),
    ("text/plain", "txt"),
];
/// The most documents in one request.
const DOCUMENTS_MAX: usize = 5;

/// `request` as the body of `ConverseStream`.
#[must_use]
pub fn bedrock(request: &ModelRequest) -> Value {
    let mut documents = 0;
    let messages: Vec<Value> = request.messages.iter().map(|message| converse(message, &mut documents)).collect();
    let mut body = Map::new();
    body.insert("messages".into(), Value::Array(messages));
    if !request.system.trim().is_empty() {
        body.insert("system".into(), json!([{ "text": request.system }]));
    }
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(tool_spec).collect();
        body.insert("toolConfig".into(), json!({ "tools": tools }));
        if let Some(name) = &request.force_tool {
            body["toolConfig"]["toolChoice"] = json!({ "tool": { "name": name } });
        }
    }
    if let Some(max_tokens) = request.max_tokens {
        body.insert("inferenceConfig".into(), json!({ "maxTokens": max_tokens }));
    }
    Value::Object(body)
}

fn tool_spec(tool: &crate::ToolSpec) -> Value {
    let mut spec = json!({ "name": tool.name, "inputSchema": { "json": tool.schema } });
    if !tool.description.trim().is_empty() {
        spec["description"] = json!(tool.description);
    }
    json!({ "toolSpec": spec })
}

fn converse(message: &Message, documents: &mut usize) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let before = *documents;
    let mut content: Vec<Value> =
        message.content.iter().filter_map(|block| converse_block(block, message.role, documents)).collect();
    let has_text = content.iter().any(|block| block.get("text").is_some());
    if *documents > before && !has_text {
        // A document without text beside it is refused.
        content.push(json!({ "text": "[file]" }));
    }
    json!({ "role": role, "content": content })
}

fn converse_block(block: &Block, role: Role, documents: &mut usize) -> Option<Value> {
    Some(match block {
        Block::Text { text } => json!({ "text": text }),
        Block::Image(media) => image(media, role),
        Block::File(media) => document(media, role, documents),
        Block::ToolUse { id, name, input } => json!({ "toolUse": { "toolUseId": id, "name": name, "input": input } }),
        Block::ToolResult { tool_use_id, content, is_error } => {
            let content: Vec<Value> =
                content.iter().filter_map(|block| converse_block(block, role, documents)).collect();
            let status = if *is_error { "error" } else { "success" };
            json!({ "toolResult": { "toolUseId": tool_use_id, "content": content, "status": status } })
        }
        Block::Reasoning(reasoning) => json!({ "reasoningContent": reasoning_content(reasoning) }),
        Block::Unknown => return None,
    })
}

fn reasoning_content(reasoning: &Reasoning) -> Value {
    if let Some(data) = &reasoning.redacted {
        return json!({ "redactedContent": data });
    }
    let mut text = json!({ "text": reasoning.text });
    if let Some(signature) = &reasoning.signature {
        text["signature"] = json!(signature);
    }
    json!({ "reasoningText": text })
}

/// Only a user's message may hold media.
fn image(media: &Media, role: Role) -> Value {
    if role == Role::User
        && let Some((mime_type, data)) = inline_data(media)
        && let Some(format @ ("png" | "jpeg" | "gif" | "webp")) = mime_type.strip_prefix("image/")
    {
        return json!({ "image": { "format": format, "source": { "bytes": data } } });
    }
    json!({ "text": placeholder("image", media) })
}

fn document(media: &Media, role: Role, documents: &mut usize) -> Value {
    if role == Role::User
        && *documents < DOCUMENTS_MAX
        && let Some((mime_type, data)) = inline_data(media)
        && let Some((_, format)) = DOCUMENTS.iter().find(|(known, _)| *known == mime_type)
    {
        *documents += 1;
        // The name is shown to the model as ours, must be unique and of few characters: a neutral one is all of that.
        let name = format!("document {documents}");
        return json!({ "document": { "format": format, "name": name, "source": { "bytes": data } } });
    }
    json!({ "text": placeholder("file", media) })
}
