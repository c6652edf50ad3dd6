//! A reply as it grows on the terminal. A frame carries the whole text so far: what extends the shown text is printed
//! behind it, so nothing flickers; what changes its last line rewrites that line; anything else is said anew.

use crate::client::News;
use crate::console;

/// A reply on its way to the terminal.
pub(super) struct Reply {
    shown: String,
    /// Whether frames are shown: a pipe gets the answer alone.
    live: bool,
}

impl Reply {
    pub(super) fn new(live: bool) -> Self {
        Self { shown: String::new(), live }
    }

    /// Shows what is new, and says what follows it.
    pub(super) fn show(&mut self, news: News) -> Follows {
        match news {
            News::Frame(text) if self.live => {
                console::piece(change(&self.shown, &text));
                self.shown = text;
                Follows::More
            }
            News::Frame(_) => Follows::More,
            News::Asks(card) => {
                let line = if self.shown.is_empty() { "" } else { "\n" };
                console::line(format_args!("{line}{card}"));
                // What comes next stands below the card, and is said whole.
                self.shown.clear();
                Follows::Decision
            }
            News::Final(text) => {
                console::line(change(&self.shown, &text));
                Follows::Nothing
            }
        }
    }
}

/// What follows what was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follows {
    /// More of the answer.
    More,
    /// Nothing, before somebody has decided.
    Decision,
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
