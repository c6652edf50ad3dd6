//! What stands around a message and is not its sender's own words: whom it answers, with what was said, and from whom
//! it was passed on. For the model each is a text block before the person's own:
//!
//! ```text
//! [in reply to a message of Ann Ames]
//! > the report is late
//! ```
//!
//! Every line of a quotation begins with `>`, so nothing in it can pass for the sender's. Blocks say by their metadata
//! (`context`: `reply` or `forward`) that they are ours.

use serde_json::{Value, json};
use turnlock_domain::event::ContentBlock;

use crate::json;
use crate::quote::{self, one_line};
use crate::telegram::{Bot, media};

/// The blocks that stand before the message's own.
pub(super) fn blocks(bot: &Bot, message: &Value) -> Vec<ContentBlock> {
    let reply = reply(bot, message).map(|text| block("reply", text));
    let forward = forward(bot, message).map(|text| block("forward", text));
    reply.into_iter().chain(forward).collect()
}

fn block(kind: &str, text: String) -> ContentBlock {
    ContentBlock { metadata: json::facts([("context", Some(json!(kind)))]), ..ContentBlock::text(text) }
}

/// The message that this one answers, in its own chat or in another. In a topic every message formally answers the one
/// that opened it: that says nothing.
fn reply(bot: &Bot, message: &Value) -> Option<String> {
    let here = message.get("reply_to_message").filter(|replied| replied.get("forum_topic_created").is_none());
    let elsewhere = message.get("external_reply");
    let replied = here.or(elsewhere)?;
    let said = json::string(message, "/quote/text")
        .or_else(|| json::string(replied, "/text"))
        .or_else(|| json::string(replied, "/caption"))
        .map(str::to_owned)
        .or_else(|| media::word(replied))?;
    let who = match here {
        Some(here) => author(bot, here),
        None => elsewhere?.get("origin").map_or(Who::Unknown, |from| origin(bot, from)),
    };
    Some(quote::quoted(&format!("in reply to {}", who.message()), &said))
}

/// From whom the message was passed on.
fn forward(bot: &Bot, message: &Value) -> Option<String> {
    let who = origin(bot, message.get("forward_origin")?);
    Some(format!("[forwarded: {} follows]", who.message()))
}

/// Who said something.
enum Who {
    We,
    Named(String),
    Unknown,
}

impl Who {
    /// Their message, in words; the model is spoken to.
    fn message(&self) -> String {
        match self {
            Self::We => "your message".to_owned(),
            Self::Named(name) => format!("a message of {name}"),
            Self::Unknown => "a message".to_owned(),
        }
    }
}

/// A chat where it spoke as itself, else the person.
fn author(bot: &Bot, message: &Value) -> Who {
    message.get("sender_chat").or_else(|| message.get("from")).map_or(Who::Unknown, |who| named(bot, who))
}

/// A "MessageOrigin": a person, one who hides, a group that spoke as itself, a channel.
fn origin(bot: &Bot, origin: &Value) -> Who {
    let hidden = json::string(origin, "/sender_user_name").map(|name| Who::Named(one_line(name)));
    let known = || ["sender_user", "sender_chat", "chat"].iter().find_map(|field| origin.get(*field));
    hidden.or_else(|| known().map(|who| named(bot, who))).unwrap_or(Who::Unknown)
}

/// A user by their name, a chat by its title.
fn named(bot: &Bot, who: &Value) -> Who {
    if json::integer(who, "/id") == Some(bot.bot_id) {
        return Who::We;
    }
    let parts = ["/title", "/first_name", "/last_name"].iter().filter_map(|part| json::string(who, part));
    let name = one_line(&parts.collect::<Vec<_>>().join(" "));
    if name.is_empty() { Who::Unknown } else { Who::Named(name) }
}
