//! A table as aligned text, for a font of equal widths.

use pulldown_cmark::Alignment;
use unicode_width::UnicodeWidthStr;

/// The widest column that others are aligned to: a longer cell sticks out, and does not push a whole table off the screen.
const WIDEST: usize = 40;

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
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// The lines, with a rule under the head.
    pub(super) fn written(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let widest = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
        let widths: Vec<usize> =
            (0..columns).map(|column| widest(column).unwrap_or_default().clamp(1, WIDEST)).collect();
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
        let cells = widths.iter().enumerate().map(|(column, width)| {
            let cell = row.get(column).map_or("", String::as_str);
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
