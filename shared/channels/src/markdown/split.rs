//! A styled text in parts that fit.

use std::ops::Range;

use turnlock_domain::text::{Pause, is_blank, pause, utf16_len};
use unicode_segmentation::UnicodeSegmentation;

use super::{Markup, Style, Styled};

/// The longest code span or link that is moved to the next part as a whole, in UTF-16 units.
const KEPT_WHOLE: usize = 200;

/// How far a pause is looked for behind a possible cut, in bytes: more than a line break and its indentation.
const PAUSE: usize = 64;

/// Cuts `text` into parts whose length in `markup` is at most `max`, or what `limits` says from that part on, where
/// it says something smaller that is not 0. Only white space at cuts is lost, and no part is blank.
///
/// A cut is made behind the last paragraph, else line, line of code, sentence, semicolon, comma or space in the last
/// quarter of what fits (a line of code: the last half), else between two graphemes. No cut is made in a short code span
/// or link. What stands before a cut and within the reach of one part behind it decides where it is: while a text grows,
/// its cuts stay - unless what comes makes a link of something before it (the definition of a reference).
pub(crate) fn split<M: Markup>(text: &Styled, markup: &M, limits: &[usize], max: usize) -> Vec<Styled> {
    let whole = kept_whole(text);
    let mut parts = Vec::new();
    let (mut start, mut limit) = (0, max);
    while start < text.text.len() {
        // What was learnt of one part holds for those behind it.
        limit = limits.get(parts.len()).copied().filter(|limit| *limit > 0).unwrap_or(limit).min(max);
        let simplest = |style: &Style| simple(markup, style, limit);
        let end = Scan { text, markup, whole: &whole, limit, simplest: &simplest }.end(start);
        let shown = trimmed(text, start..end);
        if !is_blank(&text.text[shown.clone()]) {
            parts.push(text.slice(shown, simplest));
        }
        start = end;
    }
    parts
}

/// `style`, or none where its marks alone would take most of a part.
fn simple(markup: &impl Markup, style: &Style, limit: usize) -> Style {
    let none = Style::default();
    let marks = markup.length_between(&none, style) + markup.length_between(style, &none);
    if marks > limit / 2 { none } else { style.clone() }
}

/// The code spans and links that are short.
fn kept_whole(text: &Styled) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut link_before = None;
    for (stretch, style) in text.runs(0..text.text.len()) {
        if style.link.is_some() && style.link == link_before {
            if let Some(last) = spans.last_mut() {
                last.end = stretch.end;
            }
        } else if style.link.is_some() || style.has(super::Mark::Code) {
            spans.push(stretch);
        }
        link_before = style.link.clone();
    }
    spans.retain(|span| utf16_len(&text.text[span.clone()]) <= KEPT_WHOLE);
    spans
}

/// The range of a part without the white space at its cuts: all of it before a cut, whole lines of it behind one.
fn trimmed(text: &Styled, range: Range<usize>) -> Range<usize> {
    let part = &text.text[range.clone()];
    let end = if range.end < text.text.len() { range.start + part.trim_end().len() } else { range.end };
    let blank = part.len() - part.trim_start().len();
    let lines = part[..blank].rfind('\n').map_or(0, |line| line + 1);
    let start = if range.start > 0 { range.start + lines } else { range.start };
    start..end.max(start)
}

/// Where a text may be parted, the better the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Word(Pause),
    LineOfCode,
    Line(Pause),
}

/// Looks for the end of one part.
struct Scan<'a, M: Markup> {
    text: &'a Styled,
    markup: &'a M,
    whole: &'a [Range<usize>],
    limit: usize,
    simplest: &'a dyn Fn(&Style) -> Style,
}

impl<M: Markup> Scan<'_, M> {
    /// The end of the part that begins at `start`: behind it.
    fn end(&self, start: usize) -> usize {
        let text = &self.text.text;
        let none = Style::default();
        let mut runs = self.text.runs(start..text.len());
        let (mut run, mut style) = (start..start, none.clone());
        let mut whole = self.whole.partition_point(|span| span.end <= start);
        // The length so far, and what closes it; the last end that fits; the last one outside of what is kept whole; the best one.
        let (mut used, mut closing, mut fits, mut free) = (0, 0, start, start);
        let mut best: Option<(Place, usize)> = None;
        for (at, grapheme) in text[start..].grapheme_indices(true) {
            let at = start + at;
            for (offset, c) in grapheme.char_indices() {
                while run.end <= at + offset {
                    let Some((next, next_style)) = runs.next() else { break };
                    let next_style = (self.simplest)(next_style);
                    used += self.markup.length_between(&style, &next_style);
                    (run, style) = (next, next_style);
                    closing = self.markup.length_between(&style, &none);
                }
                used += self.markup.length_of(c, &style);
            }
            let end = at + grapheme.len();
            if used + closing > self.limit {
                return match best {
                    Some((_, end)) => end,
                    None if free > start => free,
                    None if fits > start => fits,
                    None => start + self.first_characters(start),
                };
            }
            fits = end;
            while self.whole.get(whole).is_some_and(|span| span.end <= end) {
                whole += 1;
            }
            if self.whole.get(whole).is_some_and(|span| span.start < end) {
                continue;
            }
            free = end;
            if let Some(place) = self.place(start, end, &style).filter(|place| self.is_late(*place, used)) {
                best = best.max(Some((place, end)));
            }
        }
        text.len()
    }

    fn is_late(&self, place: Place, used: usize) -> bool {
        match place {
            Place::LineOfCode => used.saturating_mul(2) >= self.limit,
            Place::Word(_) | Place::Line(_) => used.saturating_mul(4) >= self.limit.saturating_mul(3),
        }
    }

    /// What kind of place `end` is; `style` is that of the character before it.
    fn place(&self, start: usize, end: usize, style: &Style) -> Option<Place> {
        let text = &self.text.text;
        let near = start.max(text.floor_char_boundary(end.saturating_sub(PAUSE)));
        let pause = pause(&text[near..end], &text[end..])?;
        Some(match pause {
            Pause::Line | Pause::Paragraph if style.fence.is_some() => Place::LineOfCode,
            _ if style.fence.is_some() => Place::Word(Pause::Space),
            Pause::Line | Pause::Paragraph => Place::Line(pause),
            Pause::Space | Pause::Comma | Pause::Semicolon | Pause::Sentence => Place::Word(pause),
        })
    }

    /// The bytes of the first characters that fit, where the first grapheme does not; at least one character.
    fn first_characters(&self, start: usize) -> usize {
        let none = Style::default();
        let (mut used, mut length) = (0, 0);
        let first = self.text.runs(start..self.text.text.len()).next();
        let Some((stretch, style)) = first.map(|(stretch, style)| (stretch, (self.simplest)(style))) else { return 1 };
        for c in self.text.text[stretch].chars() {
            used += self.markup.length_of(c, &style);
            let all = used + self.markup.length_between(&none, &style) + self.markup.length_between(&style, &none);
            if length > 0 && all > self.limit {
                break;
            }
            length += c.len_utf8();
        }
        length
    }
}
