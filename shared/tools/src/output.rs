//! Results as the model may be given them: cleaned of what nobody sees, never blank, and bounded.

use turnlock_domain::message::{Block, Media};
use turnlock_domain::text::{clean, cut, is_blank};

/// The most characters of a result; the sentence that says it was cut comes on top.
pub const RESULT_MAX: usize = 16_000;

/// What stands where a tool had nothing to say: providers refuse blank results.
const NOTHING: &str = "(The tool gave no output.)";

/// What a tool answers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// Text and media. Other blocks are left out: a tool cannot call, answer for another or reason.
    pub content: Vec<Block>,
}

impl ToolOutput {
    /// An answer in text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Block::text(text)] }
    }

    /// An answer in blocks.
    #[must_use]
    pub fn blocks(content: Vec<Block>) -> Self {
        Self { content }
    }
}

/// `content` as it may stand in a conversation.
pub(crate) fn bounded(content: Vec<Block>) -> Vec<Block> {
    let mut room = Room { left: RESULT_MAX, total: 0 };
    let mut kept: Vec<Block> = content.into_iter().filter_map(|block| room.take(block)).collect();
    if room.total > RESULT_MAX {
        let total = room.total;
        kept.push(Block::text(format!(
            "[The result was cut: its first {RESULT_MAX} of {total} characters are shown.]"
        )));
    }
    if kept.is_empty() {
        kept.push(Block::text(NOTHING));
    }
    kept
}

/// How much more text fits, and how much there was.
struct Room {
    left: usize,
    total: usize,
}

impl Room {
    fn take(&mut self, block: Block) -> Option<Block> {
        match block {
            Block::Text { text } => {
                let text = clean(&text);
                self.total += text.chars().count();
                let kept = cut(&text, self.left);
                self.left -= kept.chars().count();
                (!is_blank(kept)).then(|| Block::text(kept))
            }
            Block::Image(media) => Some(Block::Image(cleaned(media))),
            Block::File(media) => Some(Block::File(cleaned(media))),
            Block::ToolUse { .. } | Block::ToolResult { .. } | Block::Reasoning(_) | Block::Unknown => None,
        }
    }
}

fn cleaned(media: Media) -> Media {
    Media { name: media.name.map(|name| clean(&name).into_owned()), ..media }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(content: &[Block]) -> Vec<&str> {
        content.iter().map(|block| if let Block::Text { text } = block { text.as_str() } else { "media" }).collect()
    }

    #[test]
    fn a_long_result_is_cut_between_graphemes_and_says_so() {
        let family = "👨‍👩‍👧";
        let long = format!("{}{family}tail", "x".repeat(RESULT_MAX - 2));
        let kept = bounded(vec![Block::text(long)]);
        assert_eq!(texts(&kept)[0], "x".repeat(RESULT_MAX - 2));
        assert_eq!(texts(&kept)[1], "[The result was cut: its first 16000 of 16007 characters are shown.]");
        let fits = bounded(vec![Block::text("x".repeat(RESULT_MAX))]);
        assert_eq!(fits.len(), 1);
    }

    #[test]
    fn the_bound_is_one_for_all_blocks() {
        let kept = bounded(vec![Block::text("a".repeat(RESULT_MAX)), Block::text("b"), Block::text("c")]);
        assert_eq!(kept.len(), 2);
        assert!(texts(&kept)[1].contains("of 16002 characters"));
    }

    #[test]
    fn nothing_blank_and_no_foreign_block_comes_back() {
        let call = Block::ToolUse { id: "1".into(), name: "pay".into(), input: json!({}) };
        assert_eq!(texts(&bounded(vec![call, Block::text(" \u{200b}\n"), Block::Unknown])), [NOTHING]);
        assert_eq!(texts(&bounded(vec![Block::text("a\u{0}\u{e0041}b")])), ["ab"]);
        assert_eq!(texts(&bounded(vec![Block::Image(Media::default())])), ["media"]);
    }
}
