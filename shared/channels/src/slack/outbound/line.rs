//! One line of mrkdwn. A mark formats only where it stands at the edge of a word: outside of it a space, punctuation or
//! the line's end, inside of it anything but a space. A style that begins or ends elsewhere is left out, so that nobody
//! sees its marks; a character of the text that stands as a mark would is kept from it by a [`BREAK`].

use std::ops::Range;

use super::{BREAK, MARKS, QUOTE, address, begins_line, escape, without_fences};
use crate::markdown::{Mark, Style, Styled};

/// Writes the line in `range`, which has no line break.
pub(super) fn write(mrkdwn: &mut String, styled: &Styled, range: Range<usize>) {
    let mut range = range;
    if begins_line(styled, range.start) {
        // An empty line has the style of the line break behind it.
        let end = range.end + usize::from(range.is_empty() && range.end < styled.text.len());
        if let Some((quoted, _)) = styled.runs(range.start..end).find(|(_, style)| style.quote) {
            mrkdwn.push_str(QUOTE);
            // What is quoted within a list is indented.
            if styled.text[range.start..quoted.start].trim().is_empty() {
                range.start = quoted.start;
            }
        }
    }
    let pieces: Vec<(Range<usize>, &Style)> = styled.runs(range.clone()).collect();
    let line = Line { styled, range, pieces: &pieces };
    let spans = nested(line.spans());
    let used: Vec<char> = MARKS.map(|(_, mark)| mark).into_iter().filter(|mark| line.pairs(*mark, &spans)).collect();
    let mut text = Literal { line: &line, used: &used, word: 0..0, is_address: false };
    let mut coming = spans.iter().peekable();
    let mut open: Vec<&Span> = Vec::new();
    for (index, (piece, style)) in pieces.iter().enumerate() {
        while let Some(span) = coming.next_if(|span| span.pieces.start == index) {
            mrkdwn.push(span.mark);
            open.push(span);
        }
        if let Some(url) = &style.link {
            let before = index.checked_sub(1).and_then(|before| pieces.get(before));
            if before.is_none_or(|(_, before)| before.link.as_ref() != Some(url)) {
                let (address, label) = (address(url), without_fences(&escape(&line.label(index))));
                mrkdwn.push_str(&if label == address {
                    format!("<{address}>")
                } else {
                    format!("<{address}|{label}>")
                });
            }
        } else if open.iter().any(|span| span.mark == '`') {
            mrkdwn.push_str(&escape(&styled.text[piece.clone()]));
        } else {
            text.write(mrkdwn, piece.clone());
        }
        while let Some(span) = open.pop_if(|span| span.pieces.end == index + 1) {
            mrkdwn.push(span.mark);
        }
    }
}

/// A row of pieces between two marks.
struct Span {
    mark: char,
    pieces: Range<usize>,
}

struct Line<'a> {
    styled: &'a Styled,
    range: Range<usize>,
    pieces: &'a [(Range<usize>, &'a Style)],
}

impl Line<'_> {
    fn text(&self) -> &str {
        &self.styled.text[self.range.clone()]
    }

    /// What may be formatted.
    fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        for (mark, character) in MARKS {
            let mut index = 0;
            while index < self.pieces.len() {
                let length = self.pieces[index..].iter().take_while(|(_, style)| style.has(mark)).count();
                let span = Span { mark: character, pieces: index..index + length };
                if length > 0 && self.may_format(mark, &span) {
                    spans.push(span);
                }
                index += length.max(1);
            }
        }
        spans
    }

    fn may_format(&self, mark: Mark, span: &Span) -> bool {
        let (first, last) = (&self.pieces[span.pieces.start], &self.pieces[span.pieces.end - 1]);
        let inside = &self.styled.text[first.0.start..last.0.end];
        let before = self.styled.text[self.range.start..first.0.start].chars().next_back();
        let after = self.styled.text[last.0.end..self.range.end].chars().next();
        let edges = !inside.starts_with(char::is_whitespace) && !inside.ends_with(char::is_whitespace);
        let link_of = |index: usize| self.pieces.get(index).and_then(|(_, style)| style.link.as_ref());
        let cuts_link = |inner: usize, outer: Option<usize>| {
            link_of(inner).is_some() && outer.is_some_and(|outer| link_of(inner) == link_of(outer))
        };
        edges
            && before.is_none_or(is_edge)
            && after.is_none_or(is_edge)
            && !(mark == Mark::Code && inside.contains('`'))
            && !cuts_link(span.pieces.start, span.pieces.start.checked_sub(1))
            && !cuts_link(span.pieces.end - 1, Some(span.pieces.end))
    }

    /// Whether a character of the text may be paired with another one, or with a mark of ours.
    fn pairs(&self, mark: char, spans: &[Span]) -> bool {
        self.text().chars().filter(|c| *c == mark).take(2).count()
            + usize::from(spans.iter().any(|span| span.mark == mark))
            > 1
    }

    /// The label of the link that begins at the piece `first`.
    fn label(&self, first: usize) -> String {
        let link = &self.pieces[first].1.link;
        self.pieces[first..]
            .iter()
            .take_while(|(_, style)| style.link == *link)
            .map(|(piece, _)| &self.styled.text[piece.clone()])
            .collect()
    }
}

/// The spans, the outer before the inner ones, without those that lie across another one.
fn nested(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.pieces.start, std::cmp::Reverse(span.pieces.end)));
    let mut open: Vec<usize> = Vec::new();
    spans.retain(|span| {
        while open.last().is_some_and(|end| *end <= span.pieces.start) {
            open.pop();
        }
        let fits = open.last().is_none_or(|end| span.pieces.end <= *end);
        if fits {
            open.push(span.pieces.end);
        }
        fits
    });
    spans
}

/// Whether a word ends at `c`, so that a mark may stand beside it.
fn is_edge(c: char) -> bool {
    !c.is_alphanumeric() && MARKS.iter().all(|(_, mark)| *mark != c)
}

/// Writes text that is no markup.
struct Literal<'a> {
    line: &'a Line<'a>,
    /// The marks that would be paired.
    used: &'a [char],
    /// The word that is being written, and whether it is an address, which nothing may be put into.
    word: Range<usize>,
    is_address: bool,
}

impl Literal<'_> {
    fn write(&mut self, mrkdwn: &mut String, piece: Range<usize>) {
        let all = &self.line.styled.text;
        let line = self.line.range.clone();
        for (at, c) in all[piece.clone()].char_indices() {
            let at = piece.start + at;
            let end = at + c.len_utf8();
            match c {
                '&' => mrkdwn.push_str("&amp;"),
                '<' => mrkdwn.push_str("&lt;"),
                '>' => {
                    // At the start of a line it would quote, escaped too.
                    if all[line.start..at].trim_start().is_empty() {
                        mrkdwn.push(BREAK);
                    }
                    mrkdwn.push_str("&gt;");
                }
                '*' | '_' | '~' | '`' if self.used.contains(&c) && (c == '`' || !self.in_address(at)) => {
                    let before = all[line.start..at].chars().next_back();
                    let after = all[end..line.end].chars().next();
                    let touches = |beside: Option<char>| beside.is_some_and(|beside| !beside.is_whitespace());
                    let outside = |beside: Option<char>| beside.is_none_or(|beside| !beside.is_alphanumeric());
                    if touches(before) && outside(after) {
                        mrkdwn.push(BREAK);
                    }
                    mrkdwn.push(c);
                    if touches(after) && outside(before) {
                        mrkdwn.push(BREAK);
                    }
                }
                _ => mrkdwn.push(c),
            }
        }
    }

    fn in_address(&mut self, at: usize) -> bool {
        if !self.word.contains(&at) {
            let text = &self.line.styled.text;
            let before = &text[self.line.range.start..at];
            let start = at - before.chars().rev().take_while(|c| !c.is_whitespace()).map(char::len_utf8).sum::<usize>();
            let rest = &text[at..self.line.range.end];
            self.word = start..at + rest.find(char::is_whitespace).unwrap_or(rest.len());
            self.is_address = text[self.word.clone()].contains("://");
        }
        self.is_address
    }
}
