//! What a person can tell the runtime itself, as typed text. The channels decide where a command may stand; this module
//! only knows the words.

use turnlock_domain::envelope::Command;

/// The commands by name, as platforms list them.
pub const COMMANDS: [(&str, Command); 6] = [
    ("new", Command::New),
    ("stop", Command::Stop),
    ("status", Command::Status),
    ("help", Command::Help),
    ("approve", Command::Approve),
    ("deny", Command::Deny),
];

/// What Telegram sends when a chat opens; its apps show a button for it, and no list needs it.
const START: (&str, Command) = ("start", Command::Help);

/// The command called `name` (without its slash), whatever its case.
#[must_use]
pub fn named(name: &str) -> Option<Command> {
    let mut known = COMMANDS.into_iter().chain([START]);
    known.find(|(word, _)| name.eq_ignore_ascii_case(word)).map(|(_, command)| command)
}

/// The command that `text` is, if it is nothing but `/name`: a sentence that mentions one is a message. Behind those that
/// take it may stand the one word that [`argument`] finds.
#[must_use]
pub fn typed(text: &str) -> Option<Command> {
    bare(text.trim().strip_prefix('/')?)
}

/// As [`typed`], without the slash.
#[must_use]
pub fn bare(text: &str) -> Option<Command> {
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let command = named(name)?;
    let words = rest.split_whitespace().count();
    (words == 0 || words == 1 && takes_a_word(command)).then_some(command)
}

/// The word behind a command, in what a person typed: what the command is about.
#[must_use]
pub fn argument(text: &str) -> Option<&str> {
    let is_command = |word: &str| word.starts_with('/') || named(word).is_some();
    text.split_whitespace().find(|word| !is_command(word))
}

/// Whether a command may name what it is about.
fn takes_a_word(command: Command) -> bool {
    match command {
        Command::Approve | Command::Deny => true,
        Command::Stop
        | Command::New
        | Command::Status
        | Command::Help
        | Command::Tap
        | Command::Steer
        | Command::Unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_text_is_a_command() {
        assert_eq!(typed(" /STOP\n"), Some(Command::Stop));
        assert_eq!(typed("/start"), Some(Command::Help));
        for text in ["stop", "/stop it", "please /stop", "/", "//stop", "/stopp", "/ stop", "", "/approve this one"] {
            assert_eq!(typed(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_approval_may_be_named() {
        for (text, command, about) in [
            ("/approve", Command::Approve, None),
            ("/Approve 12AB9F", Command::Approve, Some("12AB9F")),
            ("/deny\n12ab9f ", Command::Deny, Some("12ab9f")),
        ] {
            assert_eq!((typed(text), argument(text)), (Some(command), about), "{text:?}");
        }
        assert_eq!(
            (bare("approve x"), argument("approve x"), argument("x")),
            (Some(Command::Approve), Some("x"), Some("x"))
        );
        assert_eq!(argument("/deny@echo_bot 12AB9F"), Some("12AB9F"));
        for text in ["yes", "approve", "ok"] {
            assert_eq!(typed(text), None, "{text} is never an approval");
        }
    }
}
