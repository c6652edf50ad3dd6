//! A table as aligned text, for a font of equal widths.

use pulldown_cmark::Alignment;
use unicode_width::UnicodeWidthStr;

/// The widest column that others are aligned to: a longer cell sticks out, and does not push a whole table off the screen.
const WIDEST: usize = 40;

/// How many times what it says a table may be wide, and what is always allowed to be as wide: more is not aligned.
const MOST_ROOM: usize = 4;
const LEAST_SAID: usize = 500;

/// A table as it is read, row by row; the first one is its head.
#[derive(Debug, Default)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<String>>,
    /// The cells of the row that is being read.
    row: Vec<String>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, ..Self::default() }
    }

    pub(super) fn cell(&mut self, text: &str) {
        self.row.push(text.replace(['\n', '\r'], " ").trim().to_owned());
    }

    /// Ends the row. `rest` is what its line has beyond the columns of the table.
    pub(super) fn end_row(&mut self, rest: &str) {
        let surplus = rest.trim_matches(|c: char| c == '|' || c.is_whitespace());
        if !surplus.is_empty() {
            self.cell(surplus);
        }
        let filled = self.row.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
        self.row.truncate(filled);
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// The lines, with a rule under the head.
    pub(super) fn written(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let widest = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
        let mut widths: Vec<usize> =
            (0..columns).map(|column| widest(column).unwrap_or_default().clamp(1, WIDEST)).collect();
        // Nobody reads a table that is mostly room, and it would be more messages than anybody wants.
        let drawn: usize = self.rows.iter().map(|row| widths[..row.len()].iter().sum::<usize>()).sum();
        let said: usize = self.rows.iter().flatten().map(|cell| cell.width()).sum();
        if drawn > MOST_ROOM * said.max(LEAST_SAID) {
            widths.fill(1);
        }
        let mut lines = Vec::with_capacity(self.rows.len() + 1);
        for (index, row) in self.rows.iter().enumerate() {
            lines.push(self.line(row, &widths));
            if index == 0 {
                lines.push(widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>().join("-+-"));
            }
        }
        lines.join("\n")
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            let room = width.saturating_sub(cell.width());
            let before = match self.alignments.get(column) {
                Some(Alignment::Right) => room,
                Some(Alignment::Center) => room / 2,
                Some(Alignment::Left | Alignment::None) | None => 0,
            };
            format!("{}{cell}{}", " ".repeat(before), " ".repeat(room - before))
        });
        cells.collect::<Vec<_>>().join(" | ").trim_end().to_owned()
    }
}
