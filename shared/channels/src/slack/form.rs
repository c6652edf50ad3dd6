//! Slack's forms: slash commands and interactivity (docs.slack.dev, "Implementing slash commands", "Handling user
//! interaction"). Their signature holds for the raw bytes and is checked before anything is decoded.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use turnlock_domain::envelope::Command;
use turnlock_domain::event::{ASKED_BY, Channel, ContentBlock, EventType, InboundEvent, SCHEMA, TAP};
use turnlock_domain::ids::{EventId, digest};
use turnlock_domain::session::SessionKey;
use turnlock_domain::text::{clean, is_blank};

use super::text::readable;
use super::{App, message};
use crate::ingress::{Arrival, IngressResponse, Normalised, Refusal};
use crate::{command, json};

/// Whether a query or form is Slack's certificate check.
pub(super) fn is_ssl_check(form: &[u8]) -> bool {
    Fields::read(form).get("ssl_check") == Some("1")
}

/// Makes the event of a verified form.
pub(super) fn normalise(app: &App, body: &[u8], now: Timestamp) -> Result<Normalised, Refusal> {
    let form = Fields::read(body);
    if form.get("ssl_check") == Some("1") {
        return Ok(Normalised::Answer(IngressResponse::empty(200)));
    }
    if let Some(payload) = form.get("payload") {
        return interaction(app, payload, now);
    }
    let id = |name| form.get(name).filter(|id| json::is_id(id));
    match (form.get("command"), id("channel_id"), id("user_id")) {
        (Some(name), Some(channel), Some(user)) => Ok(slash(app, &form, body, Slash { name, channel, user }, now)),
        _ => {
            Err(Refusal::Invalid { field: "body", expected: "an event, a slash command or an interaction of Slack's" })
        }
    }
}

/// A pressed button, or something that no message of ours asks for (dialogs, shortcuts).
fn interaction(app: &App, payload: &str, now: Timestamp) -> Result<Normalised, Refusal> {
    let payload = json::object(payload.as_bytes())?;
    let team = json::id(&payload, "/team/id").unwrap_or(&app.team_id);
    let id = json::string(&payload, "/actions/0/action_ts").or_else(|| json::string(&payload, "/trigger_id"));
    let event_id = id.map(|id| EventId::derive("slack", &[&app.app_id, team, "action", id]));
    if json::string(&payload, "/type") != Some("block_actions") {
        return Ok(Normalised::Ignored { reason: "interaction", event_id });
    }
    Ok(match event_id.as_ref().and_then(|event_id| tap(app, &payload, team, event_id, now)) {
        Some(arrival) => Normalised::Event(Box::new(arrival)),
        None => Normalised::Ignored { reason: "incomplete", event_id },
    })
}

/// The command in a press of one of our buttons. What Slack gives for an answer of half an hour (`response_url`) stays
/// out: it is as good as a token.
fn tap(app: &App, payload: &Value, team: &str, event_id: &EventId, now: Timestamp) -> Option<Arrival> {
    let place = |name: &str| {
        let of_container = format!("/container/{name}");
        json::id(payload, &of_container).map(str::to_owned)
    };
    let user = json::id(payload, "/user/id")?;
    let channel = json::id(payload, "/channel/id").map(str::to_owned).or_else(|| place("channel_id"))?;
    let data = ["value", "selected_option/value", "action_id"]
        .iter()
        .find_map(|name| json::string(payload, &format!("/actions/0/{name}")));
    let thread = place("thread_ts").or_else(|| json::id(payload, "/message/thread_ts").map(str::to_owned));
    let chat_id = message::chat_id(app, team, &channel);
    let session =
        thread.as_deref().map(|thread| SessionKey::new(Channel::Slack.as_str(), &app.account, &chat_id, Some(thread)));
    let tap = json::facts([
        ("data", data.map(|data| json!(data))),
        ("action", json::string(payload, "/actions/0/action_id").map(|action| json!(action))),
        ("message_ts", place("message_ts").map(|ts| json!(ts))),
        ("user", Some(json!(user))),
    ]);
    let event = InboundEvent {
        schema: SCHEMA,
        event_id: event_id.clone(),
        event_type: EventType::Control,
        channel: Channel::Slack,
        account: app.account.clone(),
        sender_id: user.to_owned(),
        chat_id,
        content: Vec::new(),
        timestamp: now,
        reply_to_id: None,
        thread_id: thread,
        session_key_override: session,
        metadata: Map::from_iter([(TAP.to_owned(), Value::Object(tap))]),
        gateway_metadata: Map::new(),
        trace: None,
    };
    let (position, command) = (message::position(now), Some(Command::Tap));
    Some(Arrival { event, position, command, unattended: false, can_have_moved: false })
}

struct Slash<'f> {
    name: &'f str,
    channel: &'f str,
    user: &'f str,
}

/// A slash command: `/stop` itself, `/echo stop`, or `/echo what is new?`, which is a message. Slack offers none inside
/// threads, so its session is the channel's.
fn slash(app: &App, form: &Fields, body: &[u8], slash: Slash<'_>, now: Timestamp) -> Normalised {
    let team = form.get("team_id").filter(|team| json::is_id(team)).unwrap_or(&app.team_id);
    let argument = readable(form.get("text").unwrap_or_default(), &app.bot_user_id).text;
    let argument = clean(&argument);
    let command = slash_command(slash.name, &argument);
    let text = if is_blank(&argument) { clean(slash.name) } else { argument };
    // Two presses have two triggers; a body without one can only be recognised by itself.
    let id = form.get("trigger_id").map_or_else(|| digest(body), str::to_owned);
    let event = InboundEvent {
        schema: SCHEMA,
        event_id: EventId::derive("slack", &[&app.app_id, team, "command", &id]),
        event_type: if command.is_some() { EventType::Control } else { EventType::Message },
        channel: Channel::Slack,
        account: app.account.clone(),
        sender_id: slash.user.to_owned(),
        chat_id: message::chat_id(app, team, slash.channel),
        content: vec![ContentBlock::text(text)],
        timestamp: now,
        reply_to_id: None,
        thread_id: None,
        session_key_override: None,
        metadata: json::facts([
            ("command", Some(json!(slash.name))),
            (ASKED_BY, Some(json!(slash.user))),
            ("channel_type", message::is_direct(slash.channel).then(|| json!("im"))),
        ]),
        gateway_metadata: Map::new(),
        trace: None,
    };
    Normalised::Event(Box::new(Arrival {
        event,
        position: message::position(now),
        command,
        unattended: false,
        can_have_moved: false,
    }))
}

/// The slash command's own name, else what stands behind it; nothing at all asks for help.
fn slash_command(name: &str, argument: &str) -> Option<Command> {
    let named = command::named(name.trim_start_matches('/'));
    let argument = argument.trim();
    named.or_else(|| if is_blank(argument) { Some(Command::Help) } else { command::bare(argument) })
}

/// A decoded form: the first of each name that has a value.
struct Fields(Vec<(String, String)>);

impl Fields {
    fn read(form: &[u8]) -> Self {
        Self(form_urlencoded::parse(form).into_owned().collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        let field = self.0.iter().find(|(field, value)| field == name && !value.is_empty());
        field.map(|(_, value)| value.as_str())
    }
}
