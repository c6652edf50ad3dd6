//! What a message says: text, markdown or blocks, checked as Slack checks them.

use serde_json::{Value, json};

use super::blocks;
use super::text::{self, Visible};
use crate::fakes::chats::Button;

/// The longest `text` of a post (docs.slack.dev, `chat.postMessage`).
pub(super) const MAX_POST: usize = 40_000;

/// The longest `text` that an edit may have: users report `msg_too_long` from about 4,000 on.
pub(super) const MAX_EDIT: usize = 4_000;

/// What a message says.
pub(super) struct Content {
    pub(super) visible: Visible,
    pub(super) markup: Option<Value>,
    pub(super) buttons: Vec<Button>,
}

impl Content {
    /// The content that the arguments of a call describe, with a `text` of at most `longest`, in which names without
    /// brackets call people or not; the error is Slack's.
    pub(super) fn read(arguments: &Value, longest: usize, links_names: bool) -> Result<Self, &'static str> {
        let text = arguments["text"].as_str().unwrap_or_default();
        let markdown = arguments["markdown_text"].as_str().filter(|text| !text.is_empty());
        let list = list_argument(&arguments["blocks"])?;
        if let Some(markdown) = markdown {
            if !text.is_empty() || !list.is_empty() {
                return Err("markdown_text_conflict");
            }
            if markdown.chars().count() > blocks::MAX_MARKDOWN {
                return Err("msg_too_long");
            }
            let visible = text::read(markdown, false);
            return Ok(Self { visible, markup: Some(json!("markdown")), buttons: Vec::new() });
        }
        if text.chars().count() > longest {
            return Err("msg_too_long");
        }
        let read = blocks::read(&list)?;
        let fallback = text::read(text, links_names);
        // With blocks the text is only what a notification says.
        let visible = if read.visible.text.is_empty() { fallback } else { read.visible };
        if visible.text.is_empty() && list.is_empty() {
            return Err("no_text");
        }
        let markup = (!list.is_empty()).then_some(Value::Array(list));
        Ok(Self { visible, markup, buttons: read.buttons })
    }

    /// What decides whether an edit changes anything.
    pub(super) fn compared(&self, arguments: &Value) -> Value {
        let text = arguments["markdown_text"].as_str().or(arguments["text"].as_str()).unwrap_or_default();
        let blocks = if self.markup.as_ref().is_some_and(Value::is_array) { self.markup.clone() } else { None };
        json!({ "text": text, "blocks": blocks, "metadata": arguments["metadata"] })
    }
}

/// Whether names without brackets call people; `unsaid` = the `parse` of a call that has none.
pub(super) fn links_names(arguments: &Value, unsaid: &str) -> bool {
    arguments["parse"].as_str().unwrap_or(unsaid) != "none" || arguments["link_names"] == true
}

/// A list argument, which a form sends as JSON text.
fn list_argument(value: &Value) -> Result<Vec<Value>, &'static str> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(list) => Ok(list.clone()),
        Value::String(text) => serde_json::from_str(text).map_err(|_| "invalid_blocks_format"),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => Err("invalid_blocks_format"),
    }
}
