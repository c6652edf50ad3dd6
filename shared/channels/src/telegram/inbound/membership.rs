//! What Telegram says about our own membership in a chat (Bot API, "ChatMemberUpdated"): blocked and unblocked by a
//! person, taken into a group or channel and thrown out. Where several changes cross on the way, their times decide.

use jiff::Timestamp;
use serde_json::Value;
use turnlock_domain::ids::EventId;
use turnlock_domain::time::Millis;

use crate::ingress::{ChatNews, Normalised};
use crate::json;
use crate::telegram::Bot;
use crate::telegram::message::chat_name;

/// The news in a `my_chat_member`.
pub(super) fn normalise(bot: &Bot, event_id: &EventId, change: &Value) -> Normalised {
    match news(bot, change) {
        Ok(news) => Normalised::Chat { event_id: event_id.clone(), news },
        Err(reason) => Normalised::ignored(reason, event_id),
    }
}

fn news(bot: &Bot, change: &Value) -> Result<ChatNews, &'static str> {
    let chat = json::integer(change, "/chat/id").ok_or("incomplete")?;
    let at = json::integer(change, "/date").and_then(|date| Timestamp::from_second(date).ok()).ok_or("incomplete")?;
    let (chat, at) = (chat_name(bot, &chat.to_string()), Millis::from(at));
    let private = json::string(change, "/chat/type") == Some("private");
    let gone = match json::string(change, "/new_chat_member/status") {
        Some("kicked") if private => Some("blocked"),
        Some("kicked") => Some("kicked"),
        Some("left") => Some("left"),
        Some("restricted") if !json::flag(change, "/new_chat_member/is_member") => Some("left"),
        Some("member" | "administrator" | "creator" | "restricted") => None,
        Some(_) | None => return Err("membership"),
    };
    Ok(match gone {
        Some(reason) => ChatNews::Gone { chat, reason, at },
        None => ChatNews::Back { chat, at },
    })
}
