//! What brackets make: links and pictures, and formulas, which no link may take for its own.

use std::ops::Range;

use pulldown_cmark::LinkType;
use turnlock_domain::text::{is_blank, utf16_len};

use super::{End, Reader};

/// The longest address of a link: a longer one would leave a part no room for text.
const LONGEST_LINK: usize = 1000;

/// How far the other bracket is looked for, in bytes.
const LABEL: usize = 300;

impl Reader<'_> {
    pub(super) fn link(&mut self, range: &Range<usize>, mark: usize, kind: LinkType, to: &str) -> End {
        let to = if kind == LinkType::Email { format!("mailto:{to}") } else { to.to_string() };
        // What people know from Slack; no address has that character.
        if let (LinkType::Autolink, Some((to, label))) = (kind, to.split_once('|')) {
            return self.labelled(range, to, label);
        }
        if !may_be_link(&to) {
            return End::Literal;
        }
        self.gap(range.start);
        self.at = range.start + mark;
        // A picture in a link leads where the link leads.
        let to = self.style.link.clone().unwrap_or_else(|| to.into());
        self.style.link = Some(to.clone()).filter(|to| (self.taken)(to));
        End::Link(to, self.out.text.len())
    }

    /// `<address|label>`, whose text is one for the parser.
    fn labelled(&mut self, range: &Range<usize>, to: &str, label: &str) -> End {
        if may_be_link(to) && !is_blank(label) {
            self.gap(range.start);
            let mut style = self.style.clone();
            if style.link.is_none() && (self.taken)(to) {
                style.link = Some(to.into());
            }
            self.out.push(label, &style);
            if style.link.is_none() {
                self.out.push(&format!(" ({to})"), &style);
            }
            self.at = range.end;
        }
        End::Literal
    }

    pub(super) fn end_link(&mut self, to: &str, label: usize, range: &Range<usize>) {
        let shown = self.out.text[label..].trim_matches('*');
        let bare = to.strip_prefix("mailto:").or(to.strip_prefix("tel:")).unwrap_or(to);
        // A code block has no links, and a platform not all of them.
        let is_link = self.table.is_none() && self.style.link.is_some();
        if is_blank(shown) {
            self.out.push(to, &self.style);
        } else if !is_link && shown != to && shown != bare {
            self.out.push(&format!(" ({to})"), &self.style);
        }
        self.at = range.end;
    }

    /// Whether the backslash before the character at `at` is none of an escape to whoever wrote it: one in a path, or one
    /// that makes a formula with its bracket.
    pub(super) fn keeps_backslash(&self, at: usize) -> bool {
        let source = self.source;
        let (before, rest) = (&source[..at - 1], &source[at + 1..]);
        let near = &rest[..rest.floor_char_boundary(LABEL)];
        let address = |rest: &str| rest.trim_start_matches('\\').starts_with('(');
        let label = |before: &str| before.trim_end_matches('\\').ends_with(']');
        match source.as_bytes()[at] {
            // The two before the name of a share.
            b'\\' => self.words.in_path(at) && before.chars().next_back().is_none_or(char::is_whitespace),
            b'[' => !near.find(']').is_some_and(|end| address(&near[end + 1..])),
            b']' => !address(near),
            b'(' => !label(before),
            b')' => {
                let near = &before[before.ceil_char_boundary(before.len().saturating_sub(LABEL))..];
                !near.rfind('(').is_some_and(|start| label(&near[..start]))
            }
            _ => self.words.in_path(at),
        }
    }
}

/// Whether `url` may be a link: one of the web, of mail or of a telephone, in one word, of bearable length.
fn may_be_link(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once(':') else { return false };
    let rest = match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => rest.strip_prefix("//").unwrap_or_default(),
        "mailto" | "tel" => rest,
        _ => return false,
    };
    !rest.is_empty() && !url.contains(|c: char| c.is_whitespace() || c.is_control()) && utf16_len(url) <= LONGEST_LINK
}
