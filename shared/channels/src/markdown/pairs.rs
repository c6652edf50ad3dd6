//! Bold, as people mean it. By the parser's rule a mark between punctuation and a letter opens or closes nothing, which
//! takes scripts without spaces for code (`**注意：**请`), and what it leaves spoils the pairs behind it: on a line where it
//! left something, marks are paired in their order if that leaves nothing.

use super::{Mark, Styled};

/// Asterisks that stand in a row.
#[derive(Debug, Clone, Copy)]
struct Row {
    start: usize,
    end: usize,
    /// The row that the parser paired it with.
    pair: Option<usize>,
}

impl Row {
    fn length(self) -> usize {
        self.end - self.start
    }
}

/// The rows of asterisks in a text that still has them, in order.
#[derive(Debug, Default)]
pub(super) struct Stars(Vec<Row>);

impl Stars {
    /// Takes in asterisks that the parser left.
    pub(super) fn left(&mut self, stars: impl Iterator<Item = usize>) {
        for star in stars {
            match self.0.last_mut() {
                Some(row) if row.end == star && row.pair.is_none() => row.end += 1,
                _ => self.0.push(Row { start: star, end: star + 1, pair: None }),
            }
        }
    }

    /// Takes in two that the parser says open something; returns what [`Self::closed`] needs.
    pub(super) fn opened(&mut self, start: usize) -> usize {
        // Until it is closed, its own pair.
        self.0.push(Row { start, end: start + 2, pair: Some(self.0.len()) });
        self.0.len() - 1
    }

    /// Takes in the two that close what the row `opened` opens.
    pub(super) fn closed(&mut self, start: usize, opened: usize) {
        let index = self.0.len();
        if let Some(row) = self.0.get_mut(opened) {
            row.pair = Some(index);
            self.0.push(Row { start, end: start + 2, pair: Some(opened) });
        }
    }

    /// `styled` with what they enclose as bold, and as italic where there are three.
    pub(super) fn applied(mut self, styled: Styled) -> Styled {
        if self.0.is_empty() {
            return styled;
        }
        self.pair(&styled.text);
        let mut applied = Styled::default();
        let (mut at, mut bold, mut italic) = (0, 0_usize, 0_usize);
        for (index, row) in self.0.iter().enumerate() {
            let Some(pair) = row.pair else { continue };
            applied.append(&styled, at..row.start, marks(bold, italic));
            at = row.end;
            for (depth, length) in [(&mut bold, 2), (&mut italic, 3)] {
                if row.length() >= length {
                    *depth = if pair > index { *depth + 1 } else { depth.saturating_sub(1) };
                }
            }
        }
        applied.append(&styled, at..styled.text.len(), marks(bold, italic));
        applied
    }

    /// Pairs what the parser left.
    fn pair(&mut self, text: &str) {
        let mut start = 0;
        while start < self.0.len() {
            let mut end = start + 1;
            while end < self.0.len() && !text[self.0[end - 1].end..self.0[end].start].contains('\n') {
                end += 1;
            }
            if self.0[start..end].iter().any(|row| row.pair.is_none()) {
                self.pair_line(text, start, end);
            }
            start = end;
        }
    }

    /// Pairs the rows of one line: all of them, else those that the parser left.
    fn pair_line(&mut self, text: &str, start: usize, end: usize) {
        let all: Vec<usize> = (start..end).filter(|row| (2..=3).contains(&self.0[*row].length())).collect();
        let mut pairs = self.in_order(text, &all);
        if pairs.len() * 2 < all.len() {
            let left: Vec<usize> = all.into_iter().filter(|row| self.0[*row].pair.is_none()).collect();
            pairs = self.in_order(text, &left);
        }
        for (first, second) in pairs {
            for (row, pair) in [(first, second), (second, first)] {
                if let Some(before) = self.0[row].pair.replace(pair) {
                    // The one that it had may be of another line.
                    self.0[before].pair.take_if(|pair| *pair == row);
                }
            }
        }
    }

    /// Pairs `rows` one after the other, where two of them may enclose what is between them.
    fn in_order(&self, text: &str, rows: &[usize]) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        let mut open: Option<usize> = None;
        for &index in rows {
            let row = self.0[index];
            let enclosed = open.filter(|first| {
                let first = self.0[*first];
                first.length() == row.length() && encloses(&text[first.end..row.start])
            });
            if let Some(first) = enclosed {
                pairs.push((first, index));
                open = None;
            } else if opens(&text[..row.start], &text[row.end..]) {
                open = Some(index);
            }
        }
        pairs
    }
}

fn marks(bold: usize, italic: usize) -> &'static [Mark] {
    match (bold, italic) {
        (0, 0) => &[],
        (_, 0) => &[Mark::Bold],
        (0, _) => &[Mark::Italic],
        (_, _) => &[Mark::Bold, Mark::Italic],
    }
}

/// Whether a row between `before` and `after` may be a mark that opens. One behind a bracket is most likely code.
fn opens(before: &str, after: &str) -> bool {
    !before.ends_with(['(', '[', '{', '*'])
        && after.starts_with(|c: char| !c.is_whitespace() && !")]}*）】」』》”’".contains(c))
}

/// Whether two rows may enclose `text`.
fn encloses(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(char::is_whitespace)
        && !text.ends_with(|c: char| c.is_whitespace() || "([{*（【「『《“‘".contains(c))
}
