//! Blocks as a reader sees them, and Slack's limits on them (docs.slack.dev, Block Kit reference).

use std::collections::BTreeSet;

use serde_json::Value;

use super::text::{self, Visible};
use crate::fakes::chats::Button;

/// The most characters of all markdown blocks of a message.
pub(super) const MAX_MARKDOWN: usize = 12_000;

/// The content of a message's blocks.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Blocks {
    pub(super) visible: Visible,
    pub(super) buttons: Vec<Button>,
}

/// Reads blocks; the error is Slack's.
pub(super) fn read(blocks: &[Value]) -> Result<Blocks, &'static str> {
    if blocks.len() > 50 {
        return Err("invalid_blocks");
    }
    let markdown = blocks.iter().filter(|block| block["type"] == "markdown");
    if markdown.map(|block| characters(&block["text"])).sum::<usize>() > MAX_MARKDOWN {
        return Err("msg_blocks_too_long");
    }
    let mut read = Blocks::default();
    for block in blocks {
        let visible = block_text(block, &mut read.buttons)?;
        if !visible.text.is_empty() && !read.visible.text.is_empty() {
            read.visible.text.push('\n');
        }
        read.visible.append(visible);
    }
    Ok(read)
}

fn characters(text: &Value) -> usize {
    text.as_str().map_or(0, |text| text.chars().count())
}

fn block_text(block: &Value, buttons: &mut Vec<Button>) -> Result<Visible, &'static str> {
    let id = block["block_id"].as_str().unwrap_or_default();
    let limit = |text: &Value, max: usize| if characters(text) > max { Err("invalid_blocks") } else { Ok(()) };
    match block["type"].as_str().unwrap_or_default() {
        "section" => {
            limit(&block["text"]["text"], 3_000)?;
            let accessory = &block["accessory"];
            if accessory.is_object() {
                buttons.extend(button(accessory, id)?);
            }
            let fields = block["fields"].as_array().into_iter().flatten();
            Ok(joined(std::iter::once(&block["text"]).chain(fields).map(text_object), "\n"))
        }
        "header" => {
            limit(&block["text"]["text"], 150)?;
            Ok(text_object(&block["text"]))
        }
        "context" => Ok(joined(list(&block["elements"]).iter().map(text_object), " ")),
        "markdown" => Ok(text::read(block["text"].as_str().unwrap_or_default(), false)),
        "rich_text" => Ok(joined(list(&block["elements"]).iter().map(rich), "\n")),
        "actions" if list(&block["elements"]).len() > 25 => Err("invalid_blocks"),
        "actions" => {
            let first = buttons.len();
            for element in list(&block["elements"]) {
                buttons.extend(button(element, id)?);
            }
            let named = buttons.iter().skip(first).filter(|button| !button.action.is_empty());
            // "Should be unique among all other action_ids in the containing block" (docs.slack.dev, "Button element").
            let mut names = BTreeSet::new();
            if !named.map(|button| &button.action).all(|name| names.insert(name)) {
                return Err("invalid_blocks");
            }
            Ok(Visible::default())
        }
        "divider" | "image" | "video" | "file" | "input" | "table" => Ok(Visible::default()),
        _ => Err("invalid_blocks"),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn joined(parts: impl Iterator<Item = Visible>, separator: &str) -> Visible {
    let mut whole = Visible::default();
    for part in parts.filter(|part| !part.text.is_empty()) {
        if !whole.text.is_empty() {
            whole.text.push_str(separator);
        }
        whole.append(part);
    }
    whole
}

fn text_object(object: &Value) -> Visible {
    let content = object["text"].as_str().unwrap_or_default();
    match object["type"].as_str() {
        Some("mrkdwn") => text::read(content, false),
        _ => Visible { text: text::unescape(content), pings: Vec::new() },
    }
}

/// An element of rich text: its own text, or those of its elements.
fn rich(element: &Value) -> Visible {
    let field = |name: &str| element[name].as_str().unwrap_or_default();
    match field("type") {
        "text" => Visible { text: field("text").to_owned(), pings: Vec::new() },
        "link" => {
            let label = if field("text").is_empty() { field("url") } else { field("text") };
            Visible { text: label.to_owned(), pings: Vec::new() }
        }
        "user" => Visible { text: format!("@{}", field("user_id")), pings: Vec::new() },
        "channel" => Visible { text: format!("#{}", field("channel_id")), pings: Vec::new() },
        "emoji" => Visible { text: format!(":{}:", field("name")), pings: Vec::new() },
        "broadcast" => rung(format!("@{}", field("range"))),
        "usergroup" => rung(format!("@{}", field("usergroup_id"))),
        "rich_text_list" => joined(list(&element["elements"]).iter().map(rich), "\n"),
        _ => joined(list(&element["elements"]).iter().map(rich), ""),
    }
}

fn rung(name: String) -> Visible {
    Visible { text: name.clone(), pings: vec![name] }
}

fn button(element: &Value, block: &str) -> Result<Option<Button>, &'static str> {
    if element["type"] != "button" {
        return Ok(None);
    }
    let field = |name: &str| element[name].as_str().unwrap_or_default();
    let label = &element["text"]["text"];
    let is_valid = element["text"]["type"] == "plain_text"
        && (1..=75).contains(&characters(label))
        && field("value").chars().count() <= 2_000
        && field("url").chars().count() <= 3_000
        && field("action_id").chars().count() <= 255;
    if !is_valid {
        return Err("invalid_blocks");
    }
    Ok(Some(Button {
        label: label.as_str().unwrap_or_default().to_owned(),
        data: field("value").to_owned(),
        action: field("action_id").to_owned(),
        block: block.to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_and_buttons_are_what_a_reader_sees() {
        let blocks = json!([
            { "type": "header", "text": { "type": "plain_text", "text": "Run pay?" } },
            { "type": "section", "text": { "type": "mrkdwn", "text": "for <@U1> &amp; co" },
              "accessory": { "type": "button", "text": { "type": "plain_text", "text": "More" }, "action_id": "more" } },
            { "type": "divider" },
            { "type": "rich_text", "elements": [{ "type": "rich_text_section", "elements": [
                { "type": "text", "text": "Hi ", "style": { "bold": true } }, { "type": "broadcast", "range": "here" } ] }] },
            { "type": "actions", "block_id": "b1", "elements": [
                { "type": "button", "text": { "type": "plain_text", "text": "Allow" }, "action_id": "approve", "value": "ap_1" } ] },
        ]);
        let read = read(blocks.as_array().unwrap()).unwrap();
        assert_eq!(read.visible.text, "Run pay?\nfor @U1 & co\nHi @here");
        assert_eq!(read.visible.pings, ["@here"]);
        let buttons: Vec<_> = read
            .buttons
            .iter()
            .map(|it| (it.label.as_str(), it.action.as_str(), it.data.as_str(), it.block.as_str()))
            .collect();
        assert_eq!(buttons, [("More", "more", "", ""), ("Allow", "approve", "ap_1", "b1")]);
    }

    #[test]
    fn limits_are_slacks() {
        let section =
            |length: usize| json!({ "type": "section", "text": { "type": "mrkdwn", "text": "x".repeat(length) } });
        let markdown = |length: usize| json!({ "type": "markdown", "text": "x".repeat(length) });
        let actions = |buttons: &[(&str, &str)]| {
            let button = |(label, action): &(&str, &str)| json!({ "type": "button", "text": { "type": "plain_text", "text": label }, "action_id": action });
            json!({ "type": "actions", "elements": buttons.iter().map(button).collect::<Vec<_>>() })
        };
        let table = [
            (vec![section(3_000)], None),
            (vec![section(3_001)], Some("invalid_blocks")),
            (vec![markdown(6_000), markdown(6_001)], Some("msg_blocks_too_long")),
            (vec![json!({ "type": "divider" }); 51], Some("invalid_blocks")),
            (vec![json!({ "type": "hologram" })], Some("invalid_blocks")),
            (vec![actions(&[("Allow", "a"), ("Deny", "d")])], None),
            (vec![actions(&[("Allow", "a")]), actions(&[("Allow", "a")])], None),
            (vec![actions(&[("Allow", "a"), ("Deny", "a")])], Some("invalid_blocks")),
            (vec![actions(&[("", "a")])], Some("invalid_blocks")),
        ];
        for (blocks, error) in table {
            assert_eq!(read(&blocks).err(), error);
        }
    }
}
