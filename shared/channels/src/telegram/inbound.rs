//! Updates to events (Bot API, "Update").
//!
//! An update has one optional field that says what it is; kinds are added to the API every few months. All that are not
//! messages to us, pressed buttons or news about a chat end as [`Normalised::Ignored`] with a reason by name: an answer other than 2xx would make Telegram
//! send the update again for a day, and hold back the chat's later ones. Only a body that is no JSON is refused.

use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::Value;
use turnlock_domain::ids::EventId;

use super::{Bot, message, verify};
use crate::ingress::{IngressRequest, Normalised, Refusal};
use crate::json;

/// The most bytes of an update that are read: a message's text has 4,096 characters, a forwarded rich one some more.
pub const MAX_BODY: usize = 1 << 20;

/// The kinds of update that are for us, and the only ones that a webhook asks for: messages, pressed buttons, news about
/// a chat.
pub const UPDATES: [&str; 5] = ["message", "channel_post", "business_message", "callback_query", "my_chat_member"];

/// The other kinds, and why they start no turn. An edit is never answered: Telegram sends edits for changes that no person
/// sees. A webhook set by us does not ask for them; one that comes all the same leaves its line in the log, by its event id.
const OTHERS: [(&str, &str); 22] = [
    ("edited_message", "edited_message"),
    ("edited_channel_post", "edited_message"),
    ("edited_business_message", "edited_message"),
    ("business_connection", "business_connection"),
    ("deleted_business_messages", "deleted_messages"),
    ("guest_message", "guest_message"),
    ("stopped_message_generation", "stopped_generation"),
    ("message_reaction", "reaction"),
    ("message_reaction_count", "reaction"),
    ("inline_query", "inline_query"),
    ("chosen_inline_result", "inline_query"),
    ("shipping_query", "payment"),
    ("pre_checkout_query", "payment"),
    ("purchased_paid_media", "payment"),
    ("poll", "poll"),
    ("poll_answer", "poll"),
    ("chat_member", "chat_member"),
    ("chat_join_request", "join_request"),
    ("chat_boost", "boost"),
    ("removed_chat_boost", "boost"),
    ("managed_bot", "managed_bot"),
    ("subscription", "subscription"),
];

/// Checks and normalises one request of Telegram's: method, size, token, update.
///
/// # Errors
/// [`Refusal`]: the method, the size, the token, or a body that is no JSON object.
pub fn receive(
    bot: &Bot,
    secret_token: Option<&SecretString>,
    request: &IngressRequest,
    now: Timestamp,
) -> Result<Normalised, Refusal> {
    request.check(MAX_BODY)?;
    verify(secret_token, &request.headers)?;
    normalise(bot, &request.body, now)
}

/// Makes the event of a verified update. Its identity is the bot's id and the update's. `now` is the time of what has none
/// of its own: a pressed button.
///
/// # Errors
/// [`Refusal::Malformed`] or [`Refusal::Invalid`] when `body` is no JSON object even after repair.
pub fn normalise(bot: &Bot, body: &[u8], now: Timestamp) -> Result<Normalised, Refusal> {
    let update = json::object(body)?;
    let Some(update_id) = json::integer(&update, "/update_id") else {
        return Ok(Normalised::Ignored { reason: "no_update_id", event_id: None });
    };
    let event_id = EventId::derive("telegram", &[&bot.bot_id.to_string(), &update_id.to_string()]);
    for kind in UPDATES {
        if let Some(content) = update.get(kind) {
            return Ok(match kind {
                "callback_query" => callback::normalise(bot, &event_id, content, now),
                "my_chat_member" => membership::normalise(bot, &event_id, content),
                _ => message::normalise(bot, &event_id, content),
            });
        }
    }
    Ok(Normalised::ignored(reason(&update), &event_id))
}

fn reason(update: &Value) -> &'static str {
    OTHERS.iter().find(|(kind, _)| update.get(kind).is_some()).map_or("unknown_update", |(_, reason)| *reason)
}

mod callback;
mod membership;
#[cfg(test)]
mod tests;
