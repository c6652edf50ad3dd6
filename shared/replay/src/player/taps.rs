//! `tap`: what a platform sends when somebody presses a button that a chat shows (Bot API, "CallbackQuery";
//! docs.slack.dev, "Handling user interaction": `block_actions`).

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};
use turnlock_config::Config;
use turnlock_domain::event::Channel;

use super::Player;
use super::requests::{Fresh, Unsigned, number};
use crate::fakes::ChatId;
use crate::fakes::chats::{Button, Message};
use crate::script::{Sign, Tap};

/// What is pressed.
struct Pressed<'a> {
    /// Who presses what where.
    tap: &'a Tap,
    /// The message that holds the button, as the platform shows it.
    message: &'a Message,
    button: &'a Button,
    /// The platform's word for the chat's kind, if it is known.
    chat_type: Option<String>,
}

impl Player {
    /// Presses a button, as often as the line says, at one moment.
    pub(super) async fn tap(&mut self, tap: &Tap) -> Result<(), String> {
        let chat = ChatId { channel: tap.channel, account: tap.account.clone(), chat: tap.chat.clone() };
        let found = self.world.fakes.find_button(&chat, &tap.button);
        let (message, button) = found.ok_or_else(|| format!("the chat shows no button `{}` now", tap.button))?;
        let chat_type = self.world.fakes.chat_type(&chat);
        let pressed = Pressed { tap, message: &message, button: &button, chat_type };
        let first = self.deliveries.len() as u64 + 1;
        let requests = (first..first + tap.times).map(|number| {
            let fresh = Fresh { number, message: 0, now: self.world.clock.now() };
            (request(&pressed, &self.world.config, &fresh), Sign::Configured)
        });
        self.deliver(requests.collect()).await.map_err(|error| error.to_string())
    }
}

/// The request that a pressed button arrives by.
fn request(pressed: &Pressed<'_>, config: &Config, fresh: &Fresh) -> Unsigned {
    let account = &pressed.tap.account;
    let id = format!("msg_{}", fresh.number);
    if pressed.tap.channel == Channel::Slack {
        let payload = block_actions(pressed, config, fresh).to_string();
        let body: String = form_urlencoded::Serializer::new(String::new()).append_pair("payload", &payload).finish();
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, form)]);
        return Unsigned { route: format!("/slack/{account}"), method: Method::POST, headers, body: body.into(), id };
    }
    let body = Bytes::from(callback_query(pressed, config, fresh).to_string());
    Unsigned { route: format!("/telegram/{account}"), method: Method::POST, headers: HeaderMap::new(), body, id }
}

fn callback_query(pressed: &Pressed<'_>, config: &Config, fresh: &Fresh) -> Value {
    let Pressed { tap, message, button, chat_type } = pressed;
    let (connection, chat) =
        tap.chat.split_once('/').map_or((None, tap.chat.as_str()), |(connection, chat)| (Some(connection), chat));
    let from = tap.from.as_deref().unwrap_or(chat);
    let bot = config.telegram.get(&tap.account);
    let guess = if chat.starts_with('-') { "supergroup" } else { "private" };
    let mut shown = json!({
        "message_id": message.id,
        "from": {"id": bot.map(|bot| bot.bot_id), "is_bot": true, "first_name": bot.map(|bot| bot.username.as_str())},
        "chat": {"id": number(chat), "type": chat_type.as_deref().unwrap_or(guess)},
        "date": fresh.now.as_second(),
        "text": message.text,
    });
    if let Some(thread) = &message.thread {
        shown["message_thread_id"] = number(thread);
        shown["is_topic_message"] = json!(true);
    }
    if let Some(connection) = connection {
        shown["business_connection_id"] = json!(connection);
    }
    json!({"update_id": fresh.number, "callback_query": {
        "id": format!("77{:08}", fresh.number),
        "from": {"id": number(from), "is_bot": false, "first_name": "Ann"},
        "message": shown,
        "chat_instance": format!("88{chat}"),
        "data": button.data,
    }})
}

fn block_actions(pressed: &Pressed<'_>, config: &Config, fresh: &Fresh) -> Value {
    let Pressed { tap, message, button, .. } = pressed;
    let app = config.slack.get(&tap.account);
    let own_team = app.map(|app| app.team_id.clone()).unwrap_or_default();
    let (team, channel) =
        tap.chat.split_once('/').map_or((own_team, tap.chat.as_str()), |(team, chat)| (team.to_owned(), chat));
    let user = tap.from.as_deref().unwrap_or("U0USER");
    let micros = fresh.now.as_microsecond() + i64::try_from(fresh.number).unwrap_or(0);
    let pressed_at = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let mut container =
        json!({"type": "message", "message_ts": message.id, "channel_id": channel, "is_ephemeral": false});
    let mut shown = json!({"type": "message", "ts": message.id, "text": message.text});
    if let Some(thread) = &message.thread {
        container["thread_ts"] = json!(thread);
        shown["thread_ts"] = json!(thread);
    }
    json!({
        "type": "block_actions",
        "user": {"id": user, "username": "ann", "team_id": team},
        "api_app_id": app.map(|app| app.app_id.as_str()),
        "container": container,
        "trigger_id": format!("{pressed_at}.trigger"),
        "team": {"id": team},
        "channel": {"id": channel},
        "message": shown,
        "response_url": "https://hooks.slack.com/actions/replay",
        "actions": [{
            "type": "button", "action_id": button.action, "block_id": button.block, "value": button.data,
            "text": {"type": "plain_text", "text": button.label}, "action_ts": pressed_at,
        }],
    })
}
