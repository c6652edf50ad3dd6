//! What a person can tell the runtime itself, as typed text. The channels decide where a command may stand; this module
//! only knows the words.

use turnlock_domain::envelope::Command;

/// The commands by name, as platforms list them.
pub const COMMANDS: [(&str, Command); 4] =
    [("new", Command::New), ("stop", Command::Stop), ("status", Command::Status), ("help", Command::Help)];

/// What Telegram sends when a chat opens; its apps show a button for it, and no list needs it.
const START: (&str, Command) = ("start", Command::Help);

/// The command called `name` (without its slash), whatever its case.
#[must_use]
pub fn named(name: &str) -> Option<Command> {
    let mut known = COMMANDS.into_iter().chain([START]);
    known.find(|(word, _)| name.eq_ignore_ascii_case(word)).map(|(_, command)| command)
}

/// The command that `text` is, if it is nothing but `/name`: a sentence that mentions one is a message.
#[must_use]
pub fn typed(text: &str) -> Option<Command> {
    named(text.trim().strip_prefix('/')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_text_is_a_command() {
        assert_eq!(typed(" /STOP\n"), Some(Command::Stop));
        assert_eq!(typed("/start"), Some(Command::Help));
        for text in ["stop", "/stop it", "please /stop", "/", "//stop", "/stopp", ""] {
            assert_eq!(typed(text), None, "{text:?}");
        }
    }
}
