//! HTTP requests as platforms and callers send them: the payloads of `say`, and every channel's signature.

use base64::Engine;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use turnlock_channels::{IngressRequest, slack, telegram, webhook};
use turnlock_config::Config;
use turnlock_domain::event::Channel;

use crate::script::{ChatType, Say, Sign};

/// A request before it is signed: kept, so that it can be sent again.
#[derive(Debug, Clone)]
pub(super) struct Unsigned {
    /// The path, with a query if there is one.
    pub(super) route: String,
    pub(super) method: Method,
    /// Headers of its own.
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// What a webhook is recognised by.
    pub(super) id: String,
}

impl Unsigned {
    /// The channel and account that its route names.
    pub(super) fn place(&self) -> (Channel, &str) {
        let path = self.route.split('?').next().unwrap_or_default();
        let mut parts = path.trim_start_matches('/').splitn(2, '/');
        let channel = match parts.next().unwrap_or_default() {
            "telegram" => Channel::Telegram,
            "slack" => Channel::Slack,
            "webhook" => Channel::Webhook,
            "v1" => Channel::Gateway,
            _ => Channel::Unknown,
        };
        (channel, parts.next().unwrap_or_default())
    }

    /// The request with its signature, made at `now`.
    pub(super) fn signed(&self, config: &Config, sign: &Sign, now: Timestamp) -> IngressRequest {
        let (path, query) = self.route.split_once('?').unwrap_or((&self.route, ""));
        let mut headers = self.signature(config, sign, now).unwrap_or_default();
        headers.extend(self.headers.clone().into_iter().filter_map(|(name, value)| Some((name?, value))));
        IngressRequest {
            method: self.method.clone(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers,
            body: self.body.clone(),
        }
    }

    fn signature(&self, config: &Config, sign: &Sign, now: Timestamp) -> Option<HeaderMap> {
        let (at, other) = match sign {
            Sign::Unsigned => return None,
            Sign::Configured => (now, None),
            Sign::With(secret) => (now, Some(SecretString::from(secret.clone()))),
            Sign::Aged(seconds) => (now.saturating_sub(SignedDuration::from_secs_f64(*seconds)).unwrap_or(now), None),
        };
        let (channel, account) = self.place();
        let chosen = |configured: Option<&SecretString>| other.clone().or_else(|| configured.cloned());
        match channel {
            Channel::Telegram => {
                let secret = config.telegram.get(account).and_then(|bot| bot.secret_token.as_ref());
                Some(telegram::sign_headers(&chosen(secret)?))
            }
            Channel::Slack => {
                let secret = config.slack.get(account).and_then(|app| app.signing_secret.as_ref());
                Some(slack::sign(&chosen(secret)?, at, &self.body))
            }
            Channel::Webhook => {
                let mut configured = config.webhook.get(account)?.clone();
                configured.secret = Some(chosen(configured.secret.as_ref())?);
                let source = turnlock_app::ingress::source(account, &configured).ok()?;
                let given = self.headers.get("webhook-id").and_then(|id| id.to_str().ok());
                webhook::sign(&source, given.unwrap_or(&self.id), at, &self.body).ok()
            }
            Channel::Gateway => {
                let caller = config.gateway.keys.get("main").or_else(|| config.gateway.keys.values().next());
                Some(bearer(&chosen(caller.and_then(|caller| caller.key.as_ref()))?))
            }
            Channel::Cron | Channel::Cli | Channel::Unknown => None,
        }
    }
}

/// What was asked, for people: the route, and what was said where that can be told.
pub(super) fn asked(request: &Unsigned) -> String {
    const SAID: [&str; 5] = ["/message/text", "/message/caption", "/channel_post/text", "/event/text", "/text"];
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let said = SAID.iter().find_map(|pointer| body.pointer(pointer)?.as_str());
    let said = said.map_or_else(String::new, |said| format!(": {said}"));
    format!("{} {}{said}", request.method, request.route)
}

fn bearer(secret: &SecretString) -> HeaderMap {
    let value = HeaderValue::from_str(&format!("Bearer {}", secret.expose_secret())).ok();
    value.map(|value| (http::header::AUTHORIZATION, value)).into_iter().collect()
}

/// What makes the ids of `say` fresh.
pub(super) struct Fresh {
    /// The how-manieth delivery of the replay it is.
    pub(super) number: u64,
    /// The next message number of the chat.
    pub(super) message: i64,
    pub(super) now: Timestamp,
}

/// The request that a plain message arrives by.
pub(super) fn say(say: &Say, config: &Config, fresh: &Fresh) -> Unsigned {
    let (route, body) = match say.channel {
        Channel::Telegram => (format!("/telegram/{}", say.account), telegram_update(say, fresh)),
        Channel::Slack => (format!("/slack/{}", say.account), slack_event(say, config, fresh)),
        Channel::Webhook => (format!("/webhook/{}", say.account), json!({"text": say.text.0})),
        Channel::Gateway | Channel::Cron | Channel::Cli | Channel::Unknown => {
            ("/v1/messages".to_owned(), json!({"text": say.text.0, "session": say.chat}))
        }
    };
    let id = format!("msg_{}", fresh.number);
    Unsigned { route, method: Method::POST, headers: HeaderMap::new(), body: body.to_string().into(), id }
}

pub(super) fn number(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number))
}

fn telegram_update(say: &Say, fresh: &Fresh) -> Value {
    let from = say.from.as_deref().unwrap_or(&say.chat);
    let mut chat = json!({"id": number(&say.chat)});
    let kind = match say.chat_type {
        ChatType::Private => "private",
        ChatType::Group => "group",
        ChatType::Supergroup => "supergroup",
        ChatType::Channel => "channel",
    };
    chat["type"] = json!(kind);
    if say.chat_type != ChatType::Private {
        chat["title"] = json!("Lab");
    }
    let mut message = json!({
        "message_id": fresh.message,
        "date": fresh.now.as_second(),
        "from": {"id": number(from), "is_bot": false, "first_name": "Ann"},
        "text": say.text.0,
    });
    if let Some(thread) = &say.thread {
        chat["is_forum"] = json!(true);
        message["message_thread_id"] = number(thread);
        message["is_topic_message"] = json!(true);
    }
    message["chat"] = chat;
    let entities = entities(&say.text.0);
    if !entities.is_empty() {
        message["entities"] = json!(entities);
    }
    json!({"update_id": fresh.number, "message": message})
}

/// Mentions and commands as the server marks them: offsets and lengths in UTF-16 units.
fn entities(text: &str) -> Vec<Value> {
    let mut entities = Vec::new();
    let mut offset = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        let name = word.trim_end();
        let kind = match name.as_bytes() {
            [b'@', _, ..] => Some("mention"),
            [b'/', _, ..] => Some("bot_command"),
            _ => None,
        };
        if let Some(kind) = kind {
            entities.push(json!({"type": kind, "offset": offset, "length": name.encode_utf16().count()}));
        }
        offset += word.encode_utf16().count();
    }
    entities
}

fn slack_event(say: &Say, config: &Config, fresh: &Fresh) -> Value {
    let app = config.slack.get(&say.account);
    let (app_id, team) = app.map(|app| (app.app_id.clone(), app.team_id.clone())).unwrap_or_default();
    let (team, channel) =
        say.chat.split_once('/').map_or((team, say.chat.as_str()), |(team, chat)| (team.to_owned(), chat));
    let micros = fresh.now.as_microsecond() + i64::try_from(fresh.number).unwrap_or(0);
    let direct = channel.starts_with('D');
    let mut event = json!({
        "type": "message",
        "channel": channel,
        "channel_type": if direct { "im" } else { "channel" },
        "user": say.from.as_deref().unwrap_or("U0USER"),
        "ts": format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000),
        "text": say.text.0,
    });
    if let Some(thread) = &say.thread {
        event["thread_ts"] = json!(thread);
    }
    json!({
        "type": "event_callback", "team_id": team, "api_app_id": app_id, "event_id": format!("Ev{:04}", fresh.number),
        "event_time": fresh.now.as_second(), "event": event,
        "authorizations": [{"team_id": team, "user_id": app.map(|app| app.bot_user_id.as_str()), "is_bot": true}],
    })
}

/// A secret that a replay makes up for an account: the same every time, of the form that its key asks for.
pub(super) fn invented(key: &str) -> SecretString {
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("replay {key} {}", "0".repeat(24)));
    if key.starts_with("webhook") {
        format!("whsec_{encoded}").into()
    } else {
        format!("replay-{}", key.replace('.', "-")).into()
    }
}
