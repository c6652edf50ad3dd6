//! What a model writes, Markdown, as text with styles, and that text in parts.
//!
//! A text is read once ([`read()`]), by a real parser, into the characters that a reader sees and a flat list of styles
//! over them: no style contains another one, so no nesting of the source is too deep for anybody behind it. Each
//! platform writes such a text in its own markup ([`Markup`]); [`split()`] cuts it so that every part is valid alone.
//!
//! Nothing but the marks of formatting vanishes: what Markdown itself would swallow (raw HTML, definitions of
//! references, a link that may not be one, surplus cells) stays as it was written, and so do blank lines and
//! indentation.

mod pairs;
mod read;
#[cfg(test)]
pub(crate) mod samples;
mod split;
mod table;
#[cfg(test)]
mod tests;
mod unfinished;
mod words;

use std::ops::Range;
use std::rc::Rc;

pub(crate) use read::read;
pub(crate) use split::split;
pub(crate) use unfinished::finished;

/// How one stretch of text looks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Style {
    /// The [`Mark`]s, a bit each.
    marks: u8,
    /// Whether it is quoted.
    pub(crate) quote: bool,
    /// The code block that it stands in.
    pub(crate) fence: Option<Rc<Fence>>,
    /// The address that it leads to.
    pub(crate) link: Option<Rc<str>>,
}

/// A mark of inline formatting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Bold = 1,
    Italic = 2,
    Strike = 4,
    Code = 8,
}

/// One code block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fence {
    /// Tells it from the next one.
    pub(crate) number: usize,
    /// The language, if it is a plain word.
    pub(crate) language: Option<String>,
}

impl Style {
    pub(crate) fn has(&self, mark: Mark) -> bool {
        self.marks & mark as u8 != 0
    }

    fn with(mut self, mark: Mark) -> Self {
        self.marks |= mark as u8;
        self
    }

    /// What of it is shown where it overlaps: no platform formats inside of a code block, and an address is worth more than
    /// the look of its label.
    fn shown(&self) -> Self {
        let mut shown = self.clone();
        if shown.fence.is_some() {
            (shown.marks, shown.link) = (0, None);
        } else if shown.link.is_some() {
            shown.marks &= !(Mark::Code as u8);
        }
        shown
    }
}

/// Text with styles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Styled {
    /// What a reader sees.
    pub(crate) text: String,
    /// The styles, in order, without gaps; neighbours differ.
    runs: Vec<Run>,
}

/// A stretch of one style, from the end of the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    end: usize,
    style: Style,
}

impl Styled {
    /// `text` without any style.
    pub(crate) fn plain(text: &str) -> Self {
        let mut styled = Self::default();
        styled.push(text, &Style::default());
        styled
    }

    fn push(&mut self, text: &str, style: &Style) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        let (end, style) = (self.text.len(), style.shown());
        match self.runs.last_mut() {
            Some(last) if last.style == style => last.end = end,
            _ => self.runs.push(Run { end, style }),
        }
    }

    /// The stretches of one style within `range`.
    pub(crate) fn runs(&self, range: Range<usize>) -> impl Iterator<Item = (Range<usize>, &Style)> {
        let first = self.runs.partition_point(|run| run.end <= range.start);
        let mut start = range.start;
        self.runs[first..].iter().map_while(move |run| {
            let stretch = start..run.end.min(range.end);
            start = stretch.end;
            (!stretch.is_empty()).then_some((stretch, &run.style))
        })
    }

    /// Adds the part of `other` in `range`, with `marks` on it.
    fn append(&mut self, other: &Self, range: Range<usize>, marks: &[Mark]) {
        for (stretch, style) in other.runs(range) {
            let style = marks.iter().fold(style.clone(), |style, mark| style.with(*mark));
            self.push(&other.text[stretch], &style);
        }
    }

    /// The part of it in `range`, each style replaced by `style` of it.
    fn slice(&self, range: Range<usize>, style: impl Fn(&Style) -> Style) -> Self {
        let mut slice = Self::default();
        for (stretch, run) in self.runs(range) {
            slice.push(&self.text[stretch], &style(run));
        }
        slice
    }
}

/// A platform's markup. Lengths are in UTF-16 units.
pub(crate) trait Markup {
    /// The most that `c` takes.
    fn length_of(&self, c: char, style: &Style) -> usize;

    /// The most that it takes to end the style `from` and begin `to`.
    fn length_between(&self, from: &Style, to: &Style) -> usize;

    /// Whether the platform makes a link of the address `to`.
    fn takes(&self, to: &str) -> bool;

    /// `styled`, written out.
    fn write(&self, styled: &Styled) -> String;
}
