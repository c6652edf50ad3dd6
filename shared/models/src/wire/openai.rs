//! OpenAI chat completions. Reasoning has no place on this wire but the field that servers write it to,
//! `reasoning_content`: what there is of the turn at hand goes back in it. Of documents the wire has PDF; one that is text
//! is sent as text, between lines that say so.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use turnlock_domain::message::{Block, Media, Message, Role};
use turnlock_domain::text::{clean, is_blank};

use super::inline_data;
use crate::prepare::{placeholder, plain_text};
use crate::request::ModelRequest;

/// The field of the model's messages that holds its reasoning (DeepSeek API, "Thinking mode").
pub(crate) const REASONING: &str = "reasoning_content";

/// `request` as the body of `POST /chat/completions`, streamed.
#[must_use]
pub fn openai(model: &str, request: &ModelRequest) -> Value {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !is_blank(&request.system) {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    for message in &request.messages {
        match message.role {
            Role::User => push_user(&mut messages, message),
            Role::Assistant => messages.extend(assistant(message)),
        }
    }
    let mut body = Map::new();
    body.insert("model".into(), json!(model));
    body.insert("messages".into(), Value::Array(messages));
    body.insert("stream".into(), json!(true));
    body.insert("stream_options".into(), json!({ "include_usage": true }));
    if let Some(max_tokens) = request.max_tokens {
        body.insert("max_tokens".into(), json!(max_tokens));
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            let function = json!({ "name": tool.name, "description": tool.description, "parameters": tool.schema });
            json!({ "type": "function", "function": function })
        });
        body.insert("tools".into(), tools.collect());
    }
    if let Some(name) = &request.force_tool {
        body.insert("tool_choice".into(), json!({ "type": "function", "function": { "name": name } }));
    }
    Value::Object(body)
}

/// Results are messages of their own here, and come before what the person said.
fn push_user(messages: &mut Vec<Value>, message: &Message) {
    for block in &message.content {
        if let Block::ToolResult { tool_use_id, content, is_error } = block {
            let text = plain_text(content);
            let text = if *is_error { format!("[error] {text}") } else { text };
            messages.push(json!({ "role": "tool", "tool_call_id": tool_use_id, "content": text }));
        }
    }
    let parts: Vec<Value> = message.content.iter().filter_map(user_part).collect();
    if parts.is_empty() {
        return;
    }
    // Many compatible servers take a list of parts only from models that see images.
    let texts: Option<Vec<&str>> = parts.iter().map(|part| part["text"].as_str()).collect();
    let content = texts.map_or(Value::Array(parts.clone()), |texts| json!(texts.join("\n")));
    messages.push(json!({ "role": "user", "content": content }));
}

fn user_part(block: &Block) -> Option<Value> {
    let text = match block {
        Block::Text { text } => text.clone(),
        Block::Image(media) if inline_data(media).is_some() => {
            return Some(json!({ "type": "image_url", "image_url": { "url": media.url } }));
        }
        Block::Image(media) => placeholder("image", media),
        Block::File(media) => return Some(file(media)),
        Block::ToolUse { .. } | Block::ToolResult { .. } | Block::Reasoning(_) | Block::Unknown => return None,
    };
    Some(json!({ "type": "text", "text": text }))
}

/// A name of our own, as on every wire: the sender's may be anything.
fn file(media: &Media) -> Value {
    let text = match inline_data(media) {
        Some(("application/pdf", _)) => {
            let file = json!({ "filename": "document.pdf", "file_data": media.url });
            return json!({ "type": "file", "file": file });
        }
        Some((mime_type, data)) if mime_type.starts_with("text/") => {
            let text = STANDARD.decode(data).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            text.map(|text| format!("[a document, {mime_type}]\n{}\n[the end of the document]", clean(&text)))
        }
        _ => None,
    };
    json!({ "type": "text", "text": text.unwrap_or_else(|| placeholder("file", media)) })
}

fn assistant(message: &Message) -> Option<Value> {
    let text = plain_text(&message.content);
    let calls: Vec<Value> = message
        .content
        .iter()
        .filter_map(|block| match block {
            Block::ToolUse { id, name, input } => {
                let function = json!({ "name": name, "arguments": input.to_string() });
                Some(json!({ "id": id, "type": "function", "function": function }))
            }
            _ => None,
        })
        .collect();
    let mut sent = match (text.is_empty(), calls.is_empty()) {
        (true, true) => return None,
        (false, true) => json!({ "role": "assistant", "content": text }),
        (true, false) => json!({ "role": "assistant", "content": null, "tool_calls": calls }),
        (false, false) => json!({ "role": "assistant", "content": text, "tool_calls": calls }),
    };
    let thoughts = message.content.iter().filter_map(|block| match block {
        Block::Reasoning(reasoning) if !reasoning.is_sealed() => Some(reasoning.text.as_str()),
        _ => None,
    });
    let thought: String = thoughts.collect();
    if !is_blank(&thought) {
        sent[REASONING] = json!(thought);
    }
    Some(sent)
}

#[cfg(test)]
mod tests {
    use turnlock_domain::session::SessionKey;

    use super::*;
    use crate::Purpose;

    #[test]
    fn a_document_is_a_file_or_text() {
        let file = |url: &str| Block::File(Media { url: url.into(), name: Some("a]b.c".into()), ..Media::default() });
        let content = vec![
            Block::text("read"),
            file("data:application/pdf;base64,AAAA"),
            file("data:text/csv;base64,w6ksMQ=="),
            file("data:text/plain;base64,/w=="),
            file("data:application/msword;base64,AAAA"),
            file("telegram-file:F"),
        ];
        let messages = vec![Message::new(Role::User, content)];
        let body = openai("m", &crate::ModelRequest::new(Purpose::Turn, SessionKey::from_text("cli:1"), messages));
        let pdf = json!({"filename": "document.pdf", "file_data": "data:application/pdf;base64,AAAA"});
        let name = json!({"type": "text", "text": "[file: a)b.c]"});
        let want = json!([
            {"type": "text", "text": "read"},
            {"type": "file", "file": pdf},
            {"type": "text", "text": "[a document, text/csv]\né,1\n[the end of the document]"},
            name, name, name,
        ]);
        assert_eq!(body["messages"][0]["content"], want);
    }
}
