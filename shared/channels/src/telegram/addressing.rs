//! Whether a message is for us, and whether it is a command (Bot API, "MessageEntity"; core.telegram.org/bots/features,
//! "Commands" and "Privacy mode").
//!
//! Entities are the server's own reading of the text: offsets in UTF-16 units, names compared without case.

use serde_json::Value;
use turnlock_domain::envelope::Command;

use super::Bot;
use super::message::{ChatKind, Message};
use crate::{Groups, command as words, json};

/// The reason of a message that people in a group say to each other.
pub(super) const NOT_ADDRESSED: &str = "not_addressed";

/// Why a message is for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Addressed {
    /// It names us, answers us, is a command for us, or nobody else is there.
    Directly,
    /// Everything said in this group is.
    ByPolicy,
}

/// Why the message is for us, or else the reason for which it is ignored.
pub(super) fn addressed(bot: &Bot, message: &Message<'_>) -> Result<Addressed, &'static str> {
    if message.kind == ChatKind::Private {
        return Ok(Addressed::Directly);
    }
    if bot.groups == Groups::Never {
        return Err("groups_off");
    }
    let leading = Leading::of(message);
    let named = mentions(bot, message) || answers(bot, message.value);
    if named || leading.as_ref().is_some_and(|leading| leading.names(bot)) {
        return Ok(Addressed::Directly);
    }
    if leading.is_some_and(|leading| leading.suffix.is_some()) {
        return Err("for_another_bot");
    }
    // A channel has one voice, and posts made by programs carry no entities: there our name at the start is enough.
    if message.kind == ChatKind::Channel && starts_with_name(bot, message.text()) {
        return Ok(Addressed::Directly);
    }
    // Our card dictates it like this, and its code is a request's of ours.
    if command(bot, message).is_some_and(|command| matches!(command, Command::Approve | Command::Deny))
        && words::argument(message.text(), Command::Approve).code.is_some()
    {
        return Ok(Addressed::Directly);
    }
    if bot.groups == Groups::Always { Ok(Addressed::ByPolicy) } else { Err(NOT_ADDRESSED) }
}

/// The command for us that the message begins with. What stands behind it is ignored, as everywhere in Telegram. What
/// somebody else wrote and this person passed on commands nothing.
pub(super) fn command(bot: &Bot, message: &Message<'_>) -> Option<Command> {
    let leading = Leading::of(message).filter(|_| message.value.get("forward_origin").is_none())?;
    if leading.suffix.is_some() && !leading.names(bot) {
        return None;
    }
    words::named(leading.name)
}

/// `/name` or `/name@bot` at the start of a message.
struct Leading<'u> {
    name: &'u str,
    suffix: Option<&'u str>,
}

impl<'u> Leading<'u> {
    /// The command at the start, as far as the server marked it. Where nobody else can be meant it may be only written: in
    /// a private chat, and with a bot's name behind it in a channel, whose posts by programs carry no entities.
    fn of(message: &Message<'u>) -> Option<Self> {
        let starts = |entity: &&Value| is(entity, "bot_command") && json::integer(entity, "/offset") == Some(0);
        let marked = message.entities().iter().find(starts).and_then(|entity| slice(message.text(), entity));
        let written = || message.text().split_whitespace().next().filter(|first| message.text().starts_with(first));
        let whole = marked.or_else(written)?.strip_prefix('/')?;
        let (name, suffix) = match whole.split_once('@') {
            Some((name, suffix)) => (name, Some(suffix)),
            None => (whole, None),
        };
        let counts = match message.kind {
            ChatKind::Private => true,
            ChatKind::Channel => marked.is_some() || suffix.is_some(),
            ChatKind::Group => marked.is_some(),
        };
        counts.then_some(Self { name, suffix })
    }

    fn names(&self, bot: &Bot) -> bool {
        self.suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case(&bot.username))
    }
}

fn is(entity: &Value, kind: &str) -> bool {
    json::string(entity, "/type") == Some(kind)
}

fn mentions(bot: &Bot, message: &Message<'_>) -> bool {
    message.entities().iter().any(|entity| {
        if is(entity, "text_mention") {
            json::integer(entity, "/user/id") == Some(bot.bot_id)
        } else if is(entity, "mention") {
            let name = slice(message.text(), entity).and_then(|name| name.strip_prefix('@'));
            name.is_some_and(|name| same_name(bot, name))
        } else if is(entity, "bot_command") {
            let command = slice(message.text(), entity).and_then(|command| command.split_once('@'));
            command.is_some_and(|(_, name)| same_name(bot, name))
        } else {
            false
        }
    })
}

fn same_name(bot: &Bot, name: &str) -> bool {
    !bot.username.is_empty() && name.eq_ignore_ascii_case(&bot.username)
}

/// Whether the message answers one of ours. In a topic every message formally answers the one that opened it: opening a
/// topic is saying nothing.
fn answers(bot: &Bot, message: &Value) -> bool {
    json::integer(message, "/reply_to_message/from/id") == Some(bot.bot_id)
        && message.pointer("/reply_to_message/forum_topic_created").is_none()
}

fn starts_with_name(bot: &Bot, text: &str) -> bool {
    let word = text.trim_start().strip_prefix('@').unwrap_or_default();
    same_name(bot, word.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default())
}

/// The text under an entity; none where the numbers do not fit the text.
fn slice<'t>(text: &'t str, entity: &Value) -> Option<&'t str> {
    let offset = usize::try_from(json::integer(entity, "/offset")?).ok()?;
    let length = usize::try_from(json::integer(entity, "/length")?).ok()?;
    text.get(byte_of(text, offset)?..byte_of(text, offset.checked_add(length)?)?)
}

/// The byte at which the UTF-16 unit begins; none in the middle of a character, and behind the text.
fn byte_of(text: &str, unit: usize) -> Option<usize> {
    let mut units = 0;
    for (byte, c) in text.char_indices() {
        if units >= unit {
            return (units == unit).then_some(byte);
        }
        units += c.len_utf16();
    }
    (units == unit).then_some(text.len())
}
