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

/// How many digits a person calls a request by that waits for a decision: the last ones of its id, in hexadecimal.
const CODE_DIGITS: usize = 6;

/// The command that `text` is, if it is nothing but `/name`: a sentence that mentions one is a message. A decision is one
/// whatever stands behind it, since as a message it would wait for what it is about; see [`argument`].
#[must_use]
pub fn typed(text: &str) -> Option<Command> {
    let rest = text.trim().strip_prefix('/')?;
    let first = rest.split(char::is_whitespace).next().and_then(named);
    first.filter(|command| decides(*command)).or_else(|| bare(rest))
}

/// As [`typed`], without the slash; behind a decision may stand one word, as more are a sentence.
#[must_use]
pub fn bare(text: &str) -> Option<Command> {
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let command = named(name)?;
    let words = rest.split_whitespace().count();
    (words == 0 || words == 1 && decides(command)).then_some(command)
}

/// What stands behind a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Argument<'t> {
    /// What the request is called that is decided about, if it is named.
    pub code: Option<&'t str>,
    /// Whether there are other words: a reason, a condition.
    pub has_text: bool,
}

/// What stands behind the decision `command` that `text` is, or behind its name, where a platform has taken that away.
#[must_use]
pub fn argument(text: &str, command: Command) -> Argument<'_> {
    let mut words = text.split_whitespace().peekable();
    words.next_if(|word| word.starts_with('/') || named(word) == Some(command));
    let code = words.next_if(|word| is_code(word));
    Argument { code, has_text: words.next().is_some() }
}

/// Whether `word` has the form of a request's code.
fn is_code(word: &str) -> bool {
    word.len() == CODE_DIGITS && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a command is about what waits for a decision, and may name it.
fn decides(command: Command) -> bool {
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
        for text in ["stop", "/stop it", "please /stop", "/", "//stop", "/stopp", "/ stop", ""] {
            assert_eq!(typed(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_approval_may_be_named() {
        for (text, command, code, has_text) in [
            ("/approve", Command::Approve, None, false),
            ("/Approve 12AB9F", Command::Approve, Some("12AB9F"), false),
            ("/deny\n12ab9f ", Command::Deny, Some("12ab9f"), false),
            ("/deny please not now", Command::Deny, None, true),
            ("/deny 12AB9F not now", Command::Deny, Some("12AB9F"), true),
            ("/approve 12AB9F but only a part", Command::Approve, Some("12AB9F"), true),
            ("/approve 12AB9", Command::Approve, None, true),
            ("/approve please", Command::Approve, None, true),
            ("/approve deny", Command::Approve, None, true),
        ] {
            assert_eq!(
                (typed(text), argument(text, command)),
                (Some(command), Argument { code, has_text }),
                "{text:?}"
            );
        }
        for text in ["12AB9F", "approve 12AB9F", "/deny@echo_bot 12AB9F"] {
            let named = Argument { code: Some("12AB9F"), has_text: false };
            assert_eq!(
                argument(text, if text.contains("deny") { Command::Deny } else { Command::Approve }),
                named,
                "{text:?}"
            );
        }
        // Slack takes the command's own name away.
        let other = Argument { code: None, has_text: true };
        assert_eq!(argument("deny", Command::Approve), other, "another command's name is no code");
        assert_eq!((bare("approve x"), bare("deny what he says")), (Some(Command::Approve), None));
        for text in ["yes", "approve", "ok", "/approved it"] {
            assert_eq!(typed(text), None, "{text} is never an approval");
        }
    }
}
