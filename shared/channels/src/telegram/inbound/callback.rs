//! A pressed button (Bot API, "CallbackQuery"). It stands under a message of ours, which may be too old to be shown to
//! us, or under one that was sent by way of us into a chat that we do not see: then only the person is known.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use turnlock_domain::envelope::{Command, Position};
use turnlock_domain::event::{Channel, EventType, InboundEvent, SCHEMA, TAP};
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;

use crate::ingress::{Arrival, Normalised};
use crate::json;
use crate::telegram::Bot;
use crate::telegram::message::Message;

/// The command in a `callback_query`.
pub(super) fn normalise(bot: &Bot, event_id: &EventId, query: &Value, now: Timestamp) -> Normalised {
    // What has no data is a game's button: there is no game of ours.
    if json::string(query, "/data").is_none() {
        return Normalised::ignored("callback_query", event_id);
    }
    match arrival(bot, event_id, query, now) {
        Some(arrival) => Normalised::Event(Box::new(arrival)),
        None => Normalised::ignored("incomplete", event_id),
    }
}

fn arrival(bot: &Bot, event_id: &EventId, query: &Value, now: Timestamp) -> Option<Arrival> {
    let query_id = json::id(query, "/id")?;
    let sender_id = json::integer(query, "/from/id")?.to_string();
    let message = query.get("message").and_then(Message::read);
    let inline = json::id(query, "/inline_message_id");
    let chat_id = match &message {
        Some(message) => message.chat_id(),
        None => inline.map(|_| sender_id.clone())?,
    };
    let topic = message.as_ref().and_then(Message::topic);
    let session =
        topic.as_deref().map(|topic| SessionKey::new(Channel::Telegram.as_str(), &bot.account, &chat_id, Some(topic)));
    let tap = json::facts([
        ("query_id", Some(json!(query_id))),
        ("message_id", message.as_ref().map(|message| json!(message.id))),
        ("inline_message_id", inline.map(|id| json!(id))),
        ("data", query.get("data").cloned()),
    ]);
    let event = InboundEvent {
        schema: SCHEMA,
        event_id: event_id.clone(),
        event_type: EventType::Control,
        channel: Channel::Telegram,
        account: bot.account.clone(),
        sender_id,
        chat_id,
        content: Vec::new(),
        timestamp: now,
        reply_to_id: None,
        thread_id: topic,
        session_key_override: session,
        metadata: Map::from_iter([(TAP.to_owned(), Value::Object(tap))]),
        gateway_metadata: Map::new(),
        trace: None,
    };
    Some(Arrival {
        event,
        position: Position::new(Millis::from(now), query_id),
        command: Some(Command::Tap),
        unattended: false,
        can_have_moved: message.is_some_and(|message| message.can_have_moved()),
    })
}
