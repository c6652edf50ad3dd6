//! Lines from stdin, read on a thread of their own: a read from a terminal cannot be interrupted, and must not hold
//! anything when the conversation ends.

use std::collections::VecDeque;
use std::io::{BufRead, IsTerminal};

use tokio::sync::mpsc;

use crate::console;

/// How many lines are kept for their turn; the rest waits where it comes from.
const MOST_KEPT: usize = 100;

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    /// A line that is not blank.
    Text(String),
    /// There is no more.
    End,
}

/// The lines.
pub(super) struct Input {
    lines: mpsc::Receiver<String>,
    /// Typed while an answer was on its way.
    kept: VecDeque<Line>,
    is_terminal: bool,
    ended: bool,
}

impl Input {
    /// Begins to read.
    pub(super) fn start() -> Self {
        let (sender, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            // Bytes that are no text become U+FFFD; a terminal that cannot be read is the end.
            for line in std::io::stdin().lock().split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line);
                if sender.blocking_send(line.strip_suffix('\r').unwrap_or(&line).to_owned()).is_err() {
                    break;
                }
            }
        });
        Self { lines, kept: VecDeque::new(), is_terminal: std::io::stdin().is_terminal(), ended: false }
    }

    /// Whether a person types.
    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Says that it is the person's turn.
    pub(super) fn prompt(&self) {
        if self.is_terminal && self.kept.is_empty() {
            console::piece("\n> ");
        }
    }

    /// The next line.
    pub(super) async fn next(&mut self) -> Line {
        match self.kept.pop_front() {
            Some(line) => line,
            None => self.read().await,
        }
    }

    /// A line typed while an answer is on its way; nothing from a pipe, whose lines wait for their turn, unless the answer
    /// waits for a line (`asked`).
    pub(super) async fn overtaking(&mut self, asked: bool) -> Line {
        if !(self.is_terminal || asked) || self.ended || self.kept.len() >= MOST_KEPT {
            return std::future::pending().await;
        }
        self.read().await
    }

    /// Keeps a line for its turn.
    pub(super) fn keep(&mut self, line: Line) {
        self.kept.push_back(line);
    }

    async fn read(&mut self) -> Line {
        while let Some(line) = self.lines.recv().await {
            let text = line.trim();
            if !text.is_empty() {
                return Line::Text(text.to_owned());
            }
        }
        self.ended = true;
        Line::End
    }
}
