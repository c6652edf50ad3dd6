//! A reply as it grows on the terminal. A frame carries the whole text so far: what extends the shown text is printed
//! behind it, so nothing flickers; what changes its last line rewrites that line; anything else is said anew.

use crate::client::News;
use crate::console;

/// A reply on its way to the terminal.
pub(super) struct Reply {
    shown: String,
    /// The cards that were shown, by the ids of their approvals: each stands there once.
    cards: Vec<String>,
    /// Whether frames are shown, and a prompt: a pipe gets the answer alone.
    live: bool,
    /// Whether the cursor stands behind a prompt.
    prompted: bool,
}

impl Reply {
    pub(super) fn new(live: bool) -> Self {
        Self { shown: String::new(), cards: Vec::new(), live, prompted: false }
    }

    /// Shows what is new, and says what follows it.
    pub(super) fn show(&mut self, news: News) -> Follows {
        match news {
            News::Frame(text) if self.live => {
                console::piece(format_args!("{}{}", self.take_prompt(), change(&self.shown, &text)));
                self.shown = text;
                Follows::More
            }
            News::Frame(_) => Follows::More,
            News::Asks { approval, card } => {
                if !self.cards.contains(&approval) {
                    self.beside(&card);
                    self.cards.push(approval.clone());
                    self.prompt();
                }
                Follows::Decision(approval)
            }
            News::Final(text) => {
                console::line(format_args!("{}{}", self.take_prompt(), change(&self.shown, &text)));
                Follows::Nothing
            }
        }
    }

    /// Shows what is no part of the reply. What comes next of it stands below, and is said whole.
    pub(super) fn beside(&mut self, text: &str) {
        let begin = self.take_prompt();
        let end = if self.shown.is_empty() { "" } else { "\n" };
        console::line(format_args!("{begin}{end}{text}"));
        self.shown.clear();
    }

    /// Says that a decision is the person's.
    pub(super) fn prompt(&mut self) {
        if self.live && !self.prompted {
            console::piece("\n> ");
            self.prompted = true;
        }
    }

    /// A line was typed: the cursor stands on the next one.
    pub(super) fn typed(&mut self) {
        self.prompted = false;
    }

    /// What takes the open prompt away.
    fn take_prompt(&mut self) -> &'static str {
        if std::mem::take(&mut self.prompted) { "\r\x1b[K" } else { "" }
    }
}

/// What follows what was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Follows {
    /// More of the answer.
    More,
    /// Nothing, before somebody has decided about the approval of this id.
    Decision(String),
    /// Nothing: that was all.
    Nothing,
}

/// What to write so that `shown` becomes `text`.
fn change(shown: &str, text: &str) -> String {
    // A final is trimmed: that it lost a blank at the end changes nothing that can be seen.
    if let Some(more) = text.strip_prefix(shown).or_else(|| text.strip_prefix(shown.trim_end_matches(' '))) {
        return more.to_owned();
    }
    let begin = shown.rfind('\n').map_or(0, |end| end + 1);
    match text.get(begin..) {
        Some(line) if text.starts_with(&shown[..begin]) => format!("\r\x1b[K{line}"),
        _ => format!("\n{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_written() {
        for (shown, text, written) in [
            ("", "Hel", "Hel"),
            ("Hel", "Hello", "lo"),
            ("Hello", "Hello", ""),
            ("Hello ", "Hello\n(stopped)", "\n(stopped)"),
            ("Hello", "Help", "\r\x1b[KHelp"),
            ("a\nbc", "a\nbd\ne", "\r\x1b[Kbd\ne"),
            ("a\nb", "x\nb", "\nx\nb"),
            ("é", "e", "\r\x1b[Ke"),
        ] {
            assert_eq!(change(shown, text), written, "{shown:?} -> {text:?}");
        }
    }
}
