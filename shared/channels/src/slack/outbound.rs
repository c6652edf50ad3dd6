//! An outbound event as Slack messages, in mrkdwn (docs.slack.dev, "Formatting message text"): `&`, `<` and `>` are
//! escaped, so no mention, link or broadcast that a model wrote is live. `@channel` without brackets calls nobody
//! either, where `parse` is `none` and `link_names` is not set: the defaults of a post, and what the client says in an
//! update, whose default is another one.

use turnlock_domain::event::{MessageKind, OutboundEvent};
use turnlock_domain::text::utf16_len;

use crate::markdown::{Mark, Markup, Style, Styled};
use crate::outbound::{self, Part};

mod line;

/// The longest text of a message that we send. Slack documents 40,000 and recommends 4,000; workspaces refuse edits
/// from about 4,000, and the escaped text counts.
pub const MAX_UNITS: usize = 3500;

/// The longest text of a section (docs.slack.dev, "Section block"): what has buttons under it is made of sections.
pub(super) const MAX_SECTION: usize = 3000;

/// The longest text of a card: it is one section, with room for a sentence before it.
const MAX_CARD: usize = 2800;

/// The texts of the messages that show `event`.
#[must_use]
pub fn render(event: &OutboundEvent, limits: &[usize]) -> Vec<Part> {
    // A reply is cut where it is cut while it is written, or its final would change every message.
    let max = if event.message_kind == MessageKind::ApprovalRequest { MAX_CARD } else { MAX_UNITS };
    outbound::parts(event, &Mrkdwn, limits, max)
}

/// What a client does not show and no mark can touch through: it keeps characters from being taken for marks.
const BREAK: char = '\u{200b}';

/// What mrkdwn formats inside of a line, and the character that does it.
const MARKS: [(Mark, char); 4] = [(Mark::Bold, '*'), (Mark::Italic, '_'), (Mark::Strike, '~'), (Mark::Code, '`')];

/// Slack's mrkdwn.
struct Mrkdwn;

impl Markup for Mrkdwn {
    fn length_of(&self, c: char, style: &Style) -> usize {
        match c {
            '&' => "&amp;".len(),
            '<' => "&lt;".len(),
            // It may need a break before it, and a mark one on each side.
            '>' => "&gt;".len() + 1,
            '*' | '_' | '~' | '`' => 3,
            // No mark reaches over the end of a line.
            '\n' => 1 + if style.quote { QUOTE.len() } else { 0 } + 2 * marks(style),
            _ => c.len_utf16(),
        }
    }

    fn length_between(&self, from: &Style, to: &Style) -> usize {
        let fences = if from.fence == to.fence {
            0
        } else {
            let fence = |style: &&Style| FENCE.len() + 1 + if style.quote { 2 * QUOTE.len() } else { 0 };
            [from, to].iter().filter(|style| style.fence.is_some()).map(fence).sum()
        };
        let links = if from.link == to.link {
            0
        } else {
            from.link.as_ref().map_or(0, |_| ">".len())
                + to.link.as_deref().map_or(0, |to| "<|".len() + utf16_len(&address(to)))
        };
        let changed = MARKS.iter().filter(|(mark, _)| from.has(*mark) != to.has(*mark)).count();
        fences + links + changed + if to.quote && !from.quote { QUOTE.len() } else { 0 }
    }

    fn takes(&self, _: &str) -> bool {
        true
    }

    fn write(&self, styled: &Styled) -> String {
        let mut mrkdwn = String::with_capacity(styled.text.len());
        let mut start = 0;
        let mut block = &Style::default();
        for (stretch, style) in styled.runs(0..styled.text.len()) {
            if style.fence != block.fence {
                write_block(&mut mrkdwn, styled, start..stretch.start, block);
                (start, block) = (stretch.start, style);
            }
        }
        write_block(&mut mrkdwn, styled, start..styled.text.len(), block);
        mrkdwn
    }
}

const QUOTE: &str = "> ";
pub(super) const FENCE: &str = "```";

fn marks(style: &Style) -> usize {
    MARKS.iter().filter(|(mark, _)| style.has(*mark)).count()
}

/// Whether a line of `styled` begins at `at`.
fn begins_line(styled: &Styled, at: usize) -> bool {
    styled.text[..at].chars().next_back().is_none_or(|before| before == '\n')
}

/// Writes a code block, or the lines between two; `style` is that of its beginning.
fn write_block(mrkdwn: &mut String, styled: &Styled, range: std::ops::Range<usize>, style: &Style) {
    let text = &styled.text[range.clone()];
    if text.is_empty() {
        return;
    }
    if style.fence.is_some() {
        // No language: mrkdwn would show it as the first line.
        let code = without_fences(&escape(text));
        let quote = if style.quote { QUOTE } else { "" };
        if begins_line(styled, range.start) {
            mrkdwn.push_str(quote);
        }
        let line = format!("\n{quote}");
        mrkdwn.push_str(&format!("{FENCE}{line}{}{line}{FENCE}", code.replace('\n', &line)));
        return;
    }
    let mut start = range.start;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        line::write(mrkdwn, styled, start..end - usize::from(line.ends_with('\n')));
        if line.ends_with('\n') {
            mrkdwn.push('\n');
        }
        start = end;
    }
}

/// `text` without a row of backticks that would begin or end a code block.
fn without_fences(text: &str) -> String {
    text.replace("``", &format!("`{BREAK}`"))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// An address between `<` and `>`, where `|` begins the label.
fn address(url: &str) -> String {
    url.replace('&', "&amp;").replace('<', "%3C").replace('>', "%3E").replace('|', "%7C")
}

#[cfg(test)]
mod tests;
