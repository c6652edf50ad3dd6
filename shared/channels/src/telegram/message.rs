//! One message to an event (Bot API, "Message"): who wrote it, whether it is for us, which session it belongs to.
//!
//! What Telegram itself marked counts (entities, `is_topic_message`, `reply_to_message`), never what the text looks
//! like: `@helper` stands in `@helperbot2` and in addresses.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use turnlock_domain::envelope::{Command, Position};
use turnlock_domain::event::{Channel, ContentBlock, EventType, InboundEvent, SCHEMA};
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;
use turnlock_domain::text::{clean, is_blank};
use turnlock_domain::time::Millis;

use super::addressing::{self, Addressed};
use super::{Bot, media};
use crate::ingress::{AlbumPart, Arrival, ChatNews, Normalised};
use crate::json;

/// The id of a forum's General topic: the chat itself, in both directions.
pub(super) const GENERAL_TOPIC: &str = "1";

/// The reason of a message that only tells what happened in the chat (members, titles, pins).
const SERVICE_MESSAGE: &str = "service_message";

/// Where a message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChatKind {
    /// One person.
    Private,
    /// Several people.
    Group,
    /// A channel, which speaks with one voice.
    Channel,
}

/// The fields without which a message is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'u> {
    pub(super) value: &'u Value,
    pub(super) id: i64,
    pub(super) at: Timestamp,
    pub(super) chat: i64,
    pub(super) kind: ChatKind,
}

/// Makes the event of one message.
pub(super) fn normalise(bot: &Bot, event_id: &EventId, value: &Value) -> Normalised {
    let Some(message) = Message::read(value) else { return Normalised::ignored("incomplete", event_id) };
    if let Some(news) = message.migration(bot) {
        return Normalised::Chat { event_id: event_id.clone(), news };
    }
    if let Some(reason) = message.nobody_speaks(bot) {
        return Normalised::ignored(reason, event_id);
    }
    let addressed = addressing::addressed(bot, &message);
    let content = message.content();
    if let (Some(album), Ok(_) | Err(addressing::NOT_ADDRESSED)) = (message.album(bot), &addressed)
        && !content.is_empty()
        && addressing::command(bot, &message).is_none()
    {
        let arrival = message.arrival(bot, event_id, content);
        let part = AlbumPart { arrival, album, number: message.id, addressed: addressed.is_ok() };
        return Normalised::AlbumPart(Box::new(part));
    }
    let addressed = match addressed {
        Ok(addressed) => addressed,
        Err(reason) => return Normalised::ignored(reason, event_id),
    };
    if !content.is_empty() {
        return Normalised::Event(Box::new(message.arrival(bot, event_id, content)));
    }
    let reason = message.why_empty();
    if reason == SERVICE_MESSAGE || addressed == Addressed::ByPolicy {
        return Normalised::ignored(reason, event_id);
    }
    Normalised::Unreadable { reason, arrival: Box::new(message.arrival(bot, event_id, content)) }
}

impl<'u> Message<'u> {
    pub(super) fn read(value: &'u Value) -> Option<Self> {
        // Without its connection the answer would go to another chat.
        if value.get("business_connection_id").is_some() && json::id(value, "/business_connection_id").is_none() {
            return None;
        }
        let chat = json::integer(value, "/chat/id")?;
        let kind = match json::string(value, "/chat/type") {
            Some("private") => ChatKind::Private,
            Some("group" | "supergroup") => ChatKind::Group,
            Some("channel") => ChatKind::Channel,
            // Only people have positive ids.
            _ if chat > 0 => ChatKind::Private,
            _ => ChatKind::Group,
        };
        let at = Timestamp::from_second(json::integer(value, "/date")?).ok()?;
        Some(Self { value, id: json::integer(value, "/message_id")?, at, chat, kind })
    }

    /// Why nobody waits for an answer, if so: our own message, another bot's, a copy, a notice of the platform's.
    fn nobody_speaks(&self, bot: &Bot) -> Option<&'static str> {
        let value = self.value;
        let from = json::integer(value, "/from/id");
        let customer = value.get("business_connection_id").is_none() || from.is_none_or(|from| from == self.chat);
        if from == Some(bot.bot_id) || value.get("sender_business_bot").is_some() || !customer {
            // In a business chat the owner's own words arrive too; only the customer is answered.
            Some("own")
        } else if json::flag(value, "/is_automatic_forward") {
            // The copy of a channel post in its discussion group: the post itself arrives as well.
            Some("automatic_forward")
        } else if json::flag(value, "/from/is_bot") && value.get("sender_chat").is_none() {
            Some("other_bot")
        } else {
            None
        }
    }

    /// The text or the caption; a message has one of them at most.
    pub(super) fn text(&self) -> &'u str {
        json::string(self.value, "/text").or_else(|| json::string(self.value, "/caption")).unwrap_or_default()
    }

    /// The entities of what [`Message::text`] returns.
    pub(super) fn entities(&self) -> &'u [Value] {
        let of_text = json::string(self.value, "/text").is_some();
        json::list(self.value, if of_text { "/entities" } else { "/caption_entities" })
    }

    /// The identity of the album that the message is a part of. A chat's name is in it, since nothing says that the
    /// platform's number of an album is one of a kind.
    fn album(&self, bot: &Bot) -> Option<EventId> {
        let group = json::id(self.value, "/media_group_id")?;
        Some(EventId::derive("telegram", &[&bot.bot_id.to_string(), "album", &self.chat_id(), group]))
    }

    /// The chat's id; with the connection in front where we answer on a business account's behalf.
    pub(super) fn chat_id(&self) -> String {
        match json::id(self.value, "/business_connection_id") {
            Some(connection) => format!("{connection}/{}", self.chat),
            None => self.chat.to_string(),
        }
    }

    /// Who speaks: a chat where it speaks as itself (channel posts, anonymous admins), else the person.
    fn sender_id(&self) -> String {
        json::integer(self.value, "/sender_chat/id")
            .or_else(|| json::integer(self.value, "/from/id"))
            .unwrap_or(self.chat)
            .to_string()
    }

    /// The topic, where the message stands in one that is not General.
    ///
    /// A thread id alone says nothing: groups whose topics are switched off keep theirs, and in General the replies to a
    /// message carry the id of that message. Where a forum's message lacks `is_topic_message`, it is a topic's unless it
    /// is such a reply.
    pub(super) fn topic(&self) -> Option<String> {
        let thread = json::integer(self.value, "/message_thread_id")?.to_string();
        let in_forum = json::flag(self.value, "/chat/is_forum") && self.value.get("reply_to_message").is_none();
        let in_topic = json::flag(self.value, "/is_topic_message") || in_forum;
        (in_topic && thread != GENERAL_TOPIC).then_some(thread)
    }

    /// What a group's change into a supergroup says, in the chat that was left and in the one that took its place.
    fn migration(&self, bot: &Bot) -> Option<ChatNews> {
        let named = |chat: i64| chat_name(bot, &chat.to_string());
        let other = |pointer| json::integer(self.value, pointer).map(named);
        let this = named(self.chat);
        if let Some(to) = other("/migrate_to_chat_id") {
            return Some(ChatNews::Moved { from: this, to });
        }
        other("/migrate_from_chat_id").map(|from| ChatNews::Moved { from, to: this })
    }

    /// Whether the chat may have been another one before: every supergroup was a group once, or may have been.
    pub(super) fn can_have_moved(&self) -> bool {
        json::string(self.value, "/chat/type") == Some("supergroup")
    }

    /// What the person says. It is theirs as it stands; what is written for them stands in blocks of its own.
    fn content(&self) -> Vec<ContentBlock> {
        let text = clean(self.text());
        let text = (!is_blank(&text)).then(|| ContentBlock::text(text));
        let described = media::described(self.value).map(ContentBlock::text);
        text.into_iter().chain(described).chain(media::blocks(self.value)).collect()
    }

    fn why_empty(&self) -> &'static str {
        if media::is_unsupported(self.value) {
            "unsupported_content"
        } else if self.text().is_empty() {
            SERVICE_MESSAGE
        } else {
            "blank"
        }
    }

    fn arrival(&self, bot: &Bot, event_id: &EventId, mut content: Vec<ContentBlock>) -> Arrival {
        let command = addressing::command(bot, self);
        if command.is_none() && !content.is_empty() {
            content.splice(0..0, context::blocks(bot, self.value));
        }
        let chat_id = self.chat_id();
        let topic = self.topic();
        let session = topic
            .as_deref()
            .map(|topic| SessionKey::new(Channel::Telegram.as_str(), &bot.account, &chat_id, Some(topic)));
        let event = InboundEvent {
            schema: SCHEMA,
            event_id: event_id.clone(),
            event_type: event_type(command),
            channel: Channel::Telegram,
            account: bot.account.clone(),
            sender_id: self.sender_id(),
            chat_id,
            content,
            timestamp: self.at,
            // Among several people the answer quotes its question; with one person that is noise.
            reply_to_id: (self.kind != ChatKind::Private).then(|| self.id.to_string()),
            thread_id: topic,
            session_key_override: session,
            metadata: self.metadata(),
            gateway_metadata: Map::new(),
            trace: None,
        };
        Arrival {
            event,
            position: Position::new(Millis::from(self.at), &self.id.to_string()),
            command,
            unattended: false,
            can_have_moved: self.can_have_moved(),
        }
    }

    fn metadata(&self) -> Map<String, Value> {
        let fact = |pointer: &str| self.value.pointer(pointer).cloned();
        json::facts([
            ("message_id", Some(json!(self.id))),
            ("chat_type", fact("/chat/type")),
            ("chat_title", fact("/chat/title")),
            ("username", fact("/from/username")),
            ("first_name", fact("/from/first_name")),
            ("last_name", fact("/from/last_name")),
            ("language_code", fact("/from/language_code")),
            ("media_group_id", fact("/media_group_id")),
            ("reply_to_message_id", fact("/reply_to_message/message_id")),
        ])
    }
}

/// Our name for a chat of the bot's.
pub(super) fn chat_name(bot: &Bot, chat: &str) -> SessionKey {
    SessionKey::new(Channel::Telegram.as_str(), &bot.account, chat, None)
}

fn event_type(command: Option<Command>) -> EventType {
    if command.is_some() { EventType::Control } else { EventType::Message }
}

mod context;
