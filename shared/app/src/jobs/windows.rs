//! A stretch of conversation as text, in windows that a model reads whole.
//!
//! Nothing that a person or the model said is left out: a text that is longer than a window goes on in the next one, as
//! another line with the same number. Only what tools were given and answered is shortened, with a mark: it can be long
//! without end, and what mattered of it is in the answer. Reasoning is not in it at all.

use std::ops::Range;

use serde_json::Value;
use turnlock_domain::message::{Block, Message};
use turnlock_domain::text::cut;
use turnlock_models::transcript::{self, Line};

/// As much of a tool's input or result as is shown.
const TOOL_TEXT_MAX: usize = 2_000;
/// What a line costs beside its text.
const LINE_COST: usize = 40;

/// As much of a transcript as one call of a model is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Window {
    lines: Vec<Line>,
    size: usize,
}

impl Window {
    /// The numbers of its messages.
    pub(super) fn range(&self) -> Range<u64> {
        let first = self.lines.first().map_or(0, |line| line.n);
        first..self.lines.last().map_or(first, |line| line.n.saturating_add(1))
    }

    /// Its text: one JSON object a line.
    pub(super) fn text(&self) -> String {
        let lines: Vec<String> = self.lines.iter().filter_map(|line| serde_json::to_string(line).ok()).collect();
        lines.join("\n")
    }

    /// Whether somebody said `text`, word for word.
    pub(super) fn holds(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.text.contains(text))
    }
}

/// The lines of `messages`, the first of which has the number `first`.
pub(super) fn lines(first: u64, messages: &[Message]) -> Vec<Line> {
    let messages: Vec<Message> = messages.iter().map(shortened).collect();
    transcript::parse(&transcript::render(first, &messages))
}

/// What `lines` take of a window.
pub(super) fn size(lines: &[Line]) -> usize {
    lines.iter().map(|line| line.text.chars().count() + LINE_COST).sum()
}

/// `lines` in windows of at most `max` characters.
pub(super) fn windows(lines: Vec<Line>, max: usize) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
    for line in lines.into_iter().flat_map(|line| pieces(line, max)) {
        let size = size(std::slice::from_ref(&line));
        match windows.last_mut() {
            Some(window) if window.size + size <= max => {
                window.size += size;
                window.lines.push(line);
            }
            _ => windows.push(Window { lines: vec![line], size }),
        }
    }
    windows
}

/// A line in pieces that fit into a window each; together they are its text.
fn pieces(line: Line, max: usize) -> Vec<Line> {
    let texts = split(&line.text, max.saturating_sub(LINE_COST));
    texts.into_iter().map(|text| Line { text: text.to_owned(), ..line.clone() }).collect()
}

/// `text` in pieces of at most `max` characters, cut at white space where there is some near the end of a piece. Joined
/// they are `text` again.
pub(super) fn split(text: &str, max: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut piece = cut(rest, max.max(1));
        if piece.len() < rest.len() {
            let near_the_end = piece.len() - piece.len() / 4;
            let space = piece.rfind(char::is_whitespace).filter(|at| *at >= near_the_end && *at > 0);
            piece = &piece[..space.unwrap_or(piece.len())];
        }
        pieces.push(piece);
        rest = &rest[piece.len()..];
    }
    pieces
}

/// `message` with what tools were given and answered cut.
fn shortened(message: &Message) -> Message {
    let content = message.content.iter().map(|block| match block {
        Block::ToolUse { id, name, input } => {
            let (id, name) = (id.clone(), name.clone());
            Block::ToolUse { id, name, input: shortened_input(input) }
        }
        Block::ToolResult { tool_use_id, content, is_error } => {
            let content = content.iter().map(shortened_result).collect();
            Block::ToolResult { tool_use_id: tool_use_id.clone(), content, is_error: *is_error }
        }
        Block::Text { .. } | Block::Image(_) | Block::File(_) | Block::Reasoning(_) | Block::Unknown => block.clone(),
    });
    Message::new(message.role, content.collect())
}

fn shortened_input(input: &Value) -> Value {
    let text = input.to_string();
    if text.len() <= TOOL_TEXT_MAX { input.clone() } else { Value::String(marked(&text)) }
}

fn shortened_result(block: &Block) -> Block {
    match block {
        Block::Text { text } => Block::text(marked(text)),
        Block::Image(_)
        | Block::File(_)
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Reasoning(_)
        | Block::Unknown => block.clone(),
    }
}

fn marked(text: &str) -> String {
    let kept = cut(text, TOOL_TEXT_MAX);
    if kept.len() == text.len() { text.to_owned() } else { format!("{kept} [… shortened]") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use turnlock_domain::message::{Reasoning, Role};

    use super::*;

    #[test]
    fn tools_are_shortened_people_are_not_and_reasoning_is_left_out() {
        let long = "x".repeat(5_000);
        let reasoning = Block::Reasoning(Reasoning { text: "secret".into(), ..Reasoning::default() });
        let call = Block::ToolUse { id: "1".into(), name: "write".into(), input: json!({ "text": long }) };
        let result = Block::ToolResult { tool_use_id: "1".into(), content: vec![Block::text(&long)], is_error: false };
        let messages = [
            Message::user(&long),
            Message::new(Role::Assistant, vec![reasoning, Block::text(&long), call]),
            Message::new(Role::User, vec![result]),
        ];
        let lines = lines(7, &messages);
        let seen: Vec<(u64, &str, usize)> =
            lines.iter().map(|line| (line.n, line.role.as_str(), line.text.chars().count())).collect();
        assert_eq!(seen, [(7, "user", 5_000), (8, "assistant", 5_000), (8, "assistant", 2_038), (9, "tool", 2_014)]);
        assert!(!windows(lines, 24_000)[0].text().contains("secret"));
    }

    #[test]
    fn a_cut_is_made_at_white_space_near_the_end() {
        assert_eq!(split("one two three", 9), ["one two", " three"]);
        assert_eq!(split("onetwothree", 4), ["onet", "woth", "ree"]);
        assert!(split("", 4).is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn nothing_is_dropped(texts in prop::collection::vec(".{0,120}", 0..8), max in 60usize..200) {
            let messages: Vec<Message> = texts.iter().map(Message::user).collect();
            let all = lines(3, &messages);
            let windows = windows(all.clone(), max);
            for (n, text) in (3..).zip(&texts) {
                let said: String = windows.iter().flat_map(|window| &window.lines)
                    .filter(|line| line.n == n).map(|line| line.text.as_str()).collect();
                prop_assert_eq!(&said, if text.trim().is_empty() { "" } else { text });
            }
            let starts: Vec<u64> = windows.iter().map(|window| window.range().start).collect();
            prop_assert!(starts.is_sorted());
        }
    }
}
