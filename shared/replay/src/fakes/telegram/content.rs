//! What a message says: text, formatting and keyboard, checked as the server checks them.

use serde_json::{Value, json};

use super::{Refused, bad_request, html, object};
use crate::fakes::chats::Button;

/// The longest text, in UTF-16 units after the formatting was applied.
const MAX_TEXT: usize = 4_096;

/// The longest `callback_data`, in bytes.
const MAX_DATA: usize = 64;

/// The content of a message.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Content {
    pub(super) text: String,
    /// The parse mode or entities as sent.
    pub(super) markup: Option<Value>,
    pub(super) buttons: Vec<Button>,
    /// What decides whether an edit changes anything.
    pub(super) compared: Value,
}

/// The content that the arguments of a call describe.
pub(super) fn read(arguments: &Value) -> Result<Content, Refused> {
    let raw = arguments["text"].as_str().unwrap_or_default();
    let parse_mode = arguments["parse_mode"].as_str().unwrap_or_default();
    let (text, entities, markup) = match parse_mode.to_ascii_lowercase().as_str() {
        "html" => {
            let parsed = html::parse(raw).map_err(|error| bad_request(format!("can't parse entities: {error}")))?;
            (parsed.text, json!(parsed.entities), Some(json!(parse_mode)))
        }
        "" => {
            let entities = arguments["entities"].clone();
            check_entities(raw, &entities)?;
            let markup = entities.as_array().is_some_and(|list| !list.is_empty()).then(|| entities.clone());
            (raw.to_owned(), entities, markup)
        }
        _ => return Err(bad_request("unsupported parse_mode")),
    };
    let text = clean(&text);
    if text.is_empty() {
        return Err(bad_request("message text is empty"));
    }
    if text.encode_utf16().count() > MAX_TEXT {
        return Err(bad_request("message is too long"));
    }
    let keyboard = object(arguments, "reply_markup").map_or(Value::Null, |markup| Value::Object(markup.into_owned()));
    let buttons = buttons(&keyboard)?;
    let compared = json!({ "text": text, "entities": entities, "reply_markup": keyboard });
    Ok(Content { text, markup, buttons, compared })
}

/// The text as the server keeps it: no carriage returns, other control characters as spaces, trimmed.
fn clean(text: &str) -> String {
    let kept = text.chars().filter(|character| *character != '\r');
    let cleaned: String =
        kept.map(|character| if character < ' ' && character != '\n' { ' ' } else { character }).collect();
    cleaned.trim().to_owned()
}

fn check_entities(text: &str, entities: &Value) -> Result<(), Refused> {
    let length = text.encode_utf16().count();
    for entity in entities.as_array().into_iter().flatten() {
        let number = |name: &str| entity[name].as_u64().and_then(|number| usize::try_from(number).ok());
        let (Some(offset), Some(entity_length)) = (number("offset"), number("length")) else {
            return Err(bad_request("can't parse MessageEntity: Field \"offset\" must be of type Number"));
        };
        let end = offset.saturating_add(entity_length);
        if end > length {
            return Err(bad_request(format!(
                "entity beginning at UTF-16 offset {offset} ends after the end of the text at UTF-16 offset {end}"
            )));
        }
        if !is_boundary(text, offset) || !is_boundary(text, end) {
            return Err(bad_request(format!(
                "entity beginning at UTF-16 offset {offset} ends in a middle of a UTF-16 symbol at UTF-16 offset {end}"
            )));
        }
    }
    Ok(())
}

/// Whether no character of `text` spans the UTF-16 unit `at`.
fn is_boundary(text: &str, at: usize) -> bool {
    let mut units = 0;
    text.chars().any(|character| {
        let here = units == at;
        units += character.len_utf16();
        here
    }) || units == at
}

/// The buttons of an inline keyboard. Other keyboards belong to the input field, not to the message.
pub(super) fn buttons(keyboard: &Value) -> Result<Vec<Button>, Refused> {
    let rows = keyboard["inline_keyboard"].as_array().into_iter().flatten();
    rows.flat_map(|row| row.as_array().into_iter().flatten()).map(button).collect()
}

fn button(button: &Value) -> Result<Button, Refused> {
    let label = button["text"].as_str().unwrap_or_default();
    let data = button["callback_data"].as_str().unwrap_or_default();
    let actions = ["callback_data", "url", "web_app", "login_url", "switch_inline_query", "copy_text", "pay"];
    if label.is_empty() || !actions.iter().any(|action| button.get(action).is_some()) {
        return Err(bad_request(
            "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
        ));
    }
    if button.get("callback_data").is_some() && (data.is_empty() || data.len() > MAX_DATA) {
        return Err(bad_request("BUTTON_DATA_INVALID"));
    }
    Ok(Button { label: label.to_owned(), data: data.to_owned(), action: String::new(), block: String::new() })
}
