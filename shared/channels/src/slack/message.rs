//! One message to an event: who wrote it, whether it is for us, which session it belongs to.
//!
//! A direct message's channel is one session and every thread is its own, also in a direct message (Slack's agent view
//! is nothing but threads). A mention outside of a thread opens one: the reply goes there, and so does the session.

use jiff::Timestamp;
use serde_json::{Map, Value};
use turnlock_domain::envelope::{Command, Position};
use turnlock_domain::event::{Channel, ContentBlock, ContentType, EventType, InboundEvent, SCHEMA};
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;
use turnlock_domain::text::{clean, is_blank};
use turnlock_domain::time::Millis;

use super::text::readable;
use super::{App, FILE_SCHEME};
use crate::ingress::{Arrival, Normalised};
use crate::{Groups, command, json};

/// The subtypes in which a person speaks; all others tell of edits, deletions, members, topics.
const SPOKEN: [&str; 3] = ["file_share", "thread_broadcast", "me_message"];

/// The most blocks of one message: Slack takes ten files, and as many may stand in what is passed on.
const MAX_BLOCKS: usize = 32;

/// Slack's own bot, which has a user id and no bot id.
const SLACKBOT: &str = "USLACKBOT";

/// Makes the event of an envelope with a `message` or an `app_mention`.
pub(super) fn normalise(app: &App, envelope: &Value, request_facts: Map<String, Value>) -> Normalised {
    let Some(message) = Message::read(app, envelope) else {
        return Normalised::Ignored { reason: "incomplete", event_id: None };
    };
    if let Some(reason) = message.nobody_speaks(app) {
        return Normalised::ignored(reason, &message.event_id);
    }
    let raw = json::string(message.event, "/text").unwrap_or_default();
    let text = readable(raw, &app.bot_user_id);
    let mentioned = text.mentions_us || json::string(message.event, "/type") == Some("app_mention");
    let directly = message.is_direct() || mentioned || message.answers_us(app);
    match app.groups {
        Groups::Never if !message.is_direct() => return Normalised::ignored("groups_off", &message.event_id),
        Groups::Mention if !directly => return Normalised::ignored("not_addressed", &message.event_id),
        Groups::Mention | Groups::Always | Groups::Never => {}
    }
    let text = clean(&text.text);
    let command = command::typed(&text);
    let own = (!is_blank(&text)).then(|| ContentBlock::text(&*text));
    let (quotations, their_files) = shared::blocks(message.event, &app.bot_user_id);
    let files = files(message.event).into_iter().chain(their_files);
    let content: Vec<ContentBlock> = quotations.into_iter().chain(own).chain(files).take(MAX_BLOCKS).collect();
    match (content.is_empty(), directly) {
        (false, _) => Normalised::Event(Box::new(message.arrival(app, content, command, request_facts))),
        (true, false) => Normalised::ignored("blank", &message.event_id),
        (true, true) => {
            let arrival = Box::new(message.arrival(app, content, command, request_facts));
            Normalised::Unreadable { reason: "blank", arrival }
        }
    }
}

/// The fields without which a message is none.
struct Message<'e> {
    event: &'e Value,
    event_id: EventId,
    chat_id: String,
    channel: &'e str,
    ts: &'e str,
    at: Timestamp,
    sender: &'e str,
}

impl<'e> Message<'e> {
    fn read(app: &App, envelope: &'e Value) -> Option<Self> {
        let event = envelope.get("event")?;
        let channel = json::id(event, "/channel")?;
        let ts = json::id(event, "/ts")?;
        let team = team(app, envelope);
        Some(Self {
            event,
            event_id: EventId::derive("slack", &[&app.app_id, team, channel, ts]),
            chat_id: chat_id(app, team, channel),
            channel,
            ts,
            at: timestamp(ts)?,
            sender: json::id(event, "/user").or_else(|| json::id(event, "/bot_id")).unwrap_or_default(),
        })
    }

    /// Why nobody waits for an answer, if so: our own words, another bot's, a notice of the platform's.
    fn nobody_speaks(&self, app: &App) -> Option<&'static str> {
        let field = |pointer| json::string(self.event, pointer);
        let is = |pointer, id: &str| field(pointer) == Some(id);
        let bot = field("/bot_id").or_else(|| field("/bot_profile/id"));
        let allowed = bot.is_some_and(|bot| app.allowed_bots.iter().any(|allowed| allowed == bot));
        if is("/user", &app.bot_user_id)
            || is("/bot_id", &app.bot_id)
            || is("/app_id", &app.app_id)
            || is("/bot_profile/app_id", &app.app_id)
        {
            return Some("own");
        }
        let spoken = match field("/subtype") {
            None => true,
            Some("bot_message") => allowed,
            Some(subtype) => SPOKEN.contains(&subtype),
        };
        if (bot.is_some() && !allowed) || self.sender == SLACKBOT {
            Some("other_bot")
        } else if !spoken || json::flag(self.event, "/hidden") {
            Some("subtype")
        } else if self.sender.is_empty() {
            Some("incomplete")
        } else {
            None
        }
    }

    /// Whether it stands in a thread that a message of ours opened.
    fn answers_us(&self, app: &App) -> bool {
        json::string(self.event, "/parent_user_id").is_some_and(|parent| parent == app.bot_user_id)
    }

    fn is_direct(&self) -> bool {
        is_direct(self.channel) || json::string(self.event, "/channel_type") == Some("im")
    }

    /// The thread that the reply goes to. The message that opened a thread carries its own `ts` as `thread_ts`.
    fn thread(&self) -> Option<&'e str> {
        let thread = json::id(self.event, "/thread_ts");
        if self.is_direct() { thread.filter(|thread| *thread != self.ts) } else { thread.or(Some(self.ts)) }
    }

    fn arrival(
        &self,
        app: &App,
        content: Vec<ContentBlock>,
        command: Option<Command>,
        request_facts: Map<String, Value>,
    ) -> Arrival {
        let thread = self.thread();
        let session =
            thread.map(|thread| SessionKey::new(Channel::Slack.as_str(), &app.account, &self.chat_id, Some(thread)));
        let event = InboundEvent {
            schema: SCHEMA,
            event_id: self.event_id.clone(),
            event_type: if command.is_some() { EventType::Control } else { EventType::Message },
            channel: Channel::Slack,
            account: app.account.clone(),
            sender_id: self.sender.to_owned(),
            chat_id: self.chat_id.clone(),
            content,
            timestamp: self.at,
            // The thread is the reference to the question.
            reply_to_id: None,
            thread_id: thread.map(str::to_owned),
            session_key_override: session,
            metadata: self.metadata(),
            gateway_metadata: request_facts,
            trace: None,
        };
        Arrival { event, position: position(self.at), command, unattended: false, can_have_moved: false }
    }

    fn metadata(&self) -> Map<String, Value> {
        let fact = |name| self.event.get(name).filter(|fact| fact.is_string()).cloned();
        json::facts([
            ("ts", fact("ts")),
            ("thread_ts", fact("thread_ts")),
            ("channel_type", fact("channel_type")),
            ("subtype", fact("subtype")),
            ("user_team", fact("user_team").or_else(|| fact("team"))),
            ("bot_id", fact("bot_id")),
        ])
    }
}

/// The workspace that the app was installed in, not the author's: those differ in channels that organisations share.
fn team<'e>(app: &'e App, envelope: &'e Value) -> &'e str {
    json::id(envelope, "/authorizations/0/team_id").or_else(|| json::id(envelope, "/team_id")).unwrap_or(&app.team_id)
}

/// The chat: the channel, with the workspace in front where that is not the app's own.
pub(super) fn chat_id(app: &App, team: &str, channel: &str) -> String {
    if team == app.team_id { channel.to_owned() } else { format!("{team}/{channel}") }
}

/// Whether a channel id is a direct message's.
pub(super) fn is_direct(channel: &str) -> bool {
    channel.starts_with('D')
}

/// The instant of a `ts`: seconds, a point, microseconds.
fn timestamp(ts: &str) -> Option<Timestamp> {
    let (seconds, micros) = ts.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(seconds) || !digits(micros) || micros.len() > 6 {
        return None;
    }
    let micros: i64 = format!("{micros:0<6}").parse().ok()?;
    let seconds: i64 = seconds.parse().ok()?;
    Timestamp::from_microsecond(seconds.checked_mul(1_000_000)?.checked_add(micros)?).ok()
}

/// A place by the microsecond, which is how Slack orders a channel.
pub(super) fn position(at: Timestamp) -> Position {
    Position::new(Millis::from(at), &at.as_microsecond().to_string())
}

/// The files as references: their addresses work with a token only, which is added when a file is read.
fn files(event: &Value) -> Vec<ContentBlock> {
    json::list(event, "/files").iter().filter_map(file).collect()
}

fn file(file: &Value) -> Option<ContentBlock> {
    let id = json::id(file, "/id")?;
    let mime = json::string(file, "/mimetype").unwrap_or("application/octet-stream");
    let kind = match mime.split('/').next().unwrap_or_default() {
        "image" => ContentType::Image,
        "audio" if json::string(file, "/subtype") == Some("slack_audio") => ContentType::Voice,
        "audio" => ContentType::Audio,
        "video" => ContentType::Video,
        _ => ContentType::File,
    };
    let mut block = ContentBlock::media(kind, format!("{FILE_SCHEME}{id}"), clean(mime));
    block.name = json::string(file, "/name").map(|name| clean(name).into_owned());
    block.size = json::integer(file, "/size").and_then(|size| u64::try_from(size).ok());
    Some(block)
}

mod shared;
