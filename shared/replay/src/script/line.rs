//! The kinds of lines, one variant each, and the list in which they are entered.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use turnlock_domain::event::Channel;
use turnlock_domain::session::DEFAULT_ACCOUNT;
use turnlock_models::{ScriptLine, Wire};

use super::deliver::{self, Deliver, Sign};
use super::faults;
use super::platform::PlatformLine;
use super::session::{self, SessionLine};
use super::text::Text;
use super::tool::{Policy, ToolLine};
use super::{Problem, id, optional_id, read as read_value, seconds};
use crate::faults::Rule;

/// The version of the format that this code reads.
const VERSION: u64 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// What the file is.
    Replay(Header),
    /// Settings, merged over what holds so far.
    Config(Map<String, Value>),
    /// A file that the configuration names.
    File(FileLine),
    /// A scripted tool, or its next answer.
    Tool(ToolLine),
    /// A session, put into the store as it is.
    Session(SessionLine),
    /// HTTP requests at the same moment.
    Deliver(Vec<Deliver>),
    /// A plain message.
    Say(Say),
    /// A button pressed.
    Tap(Tap),
    /// A raw Lambda event.
    Invoke(Invoke),
    /// The model's answer to the next call that fits.
    Model(ScriptLine),
    /// A platform's answer to the next call that fits, or a file behind a reference.
    Platform(PlatformLine),
    /// Exactly so much time passes.
    Advance(Duration),
    /// Until nothing is in work.
    Run,
    /// The process dies.
    Kill(Rule),
    /// A request fails and the process lives.
    Fault(Rule),
    /// A worker takes no step.
    Freeze(Rule),
    /// A graceful stop and start.
    Restart,
    /// What holds at this moment, by JSON pointer.
    Expect(BTreeMap<String, Value>),
}

/// What a line may need that not every version has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Cards with buttons.
    Approvals,
    /// Handlers that are called with a raw Lambda event.
    Functions,
    /// Scripted tools.
    Tools,
    /// Sessions put into the store.
    Sessions,
    /// Files that the configuration names.
    Files,
    /// Vectors.
    Embeddings,
    /// Files behind references.
    Media,
}

impl Feature {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Approvals, Self::Functions, Self::Tools, Self::Sessions, Self::Files, Self::Embeddings, Self::Media];

    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Approvals => "buttons and approvals",
            Self::Functions => "handlers for raw Lambda events",
            Self::Tools => "scripted tools",
            Self::Sessions => "stored sessions",
            Self::Files => "files of the configuration",
            Self::Embeddings => "embeddings",
            Self::Media => "media behind references",
        }
    }
}

impl Line {
    /// Its first key.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Replay(_) => "replay",
            Self::Config(_) => "config",
            Self::File(_) => "file",
            Self::Tool(_) => "tool",
            Self::Session(_) => "session",
            Self::Deliver(_) => "deliver",
            Self::Say(_) => "say",
            Self::Tap(_) => "tap",
            Self::Invoke(_) => "invoke",
            Self::Model(_) => "model",
            Self::Platform(_) => "platform",
            Self::Advance(_) => "advance",
            Self::Run => "run",
            Self::Kill(_) => "kill",
            Self::Fault(_) => "fault",
            Self::Freeze(_) => "freeze",
            Self::Restart => "restart",
            Self::Expect(_) => "expect",
        }
    }

    /// The feature that it needs beyond what every version has.
    #[must_use]
    pub fn feature(&self) -> Option<Feature> {
        match self {
            Self::Tap(_) => Some(Feature::Approvals),
            Self::Invoke(_) => Some(Feature::Functions),
            Self::Tool(tool) if tool.policy == Policy::Ask => Some(Feature::Approvals),
            Self::Tool(_) => Some(Feature::Tools),
            Self::Session(_) => Some(Feature::Sessions),
            Self::File(_) => Some(Feature::Files),
            Self::Model(line) if line.purpose == Some(turnlock_models::Purpose::Embed) => Some(Feature::Embeddings),
            Self::Platform(PlatformLine::File { .. }) => Some(Feature::Media),
            Self::Replay(_)
            | Self::Config(_)
            | Self::Deliver(_)
            | Self::Say(_)
            | Self::Model(_)
            | Self::Platform(PlatformLine::Answer(_))
            | Self::Advance(_)
            | Self::Run
            | Self::Kill(_)
            | Self::Fault(_)
            | Self::Freeze(_)
            | Self::Restart
            | Self::Expect(_) => None,
        }
    }
}

/// The keys that a line may start with.
pub(super) fn keys() -> String {
    const KEYS: [&str; 18] = [
        "replay", "config", "file", "tool", "session", "deliver", "say", "tap", "invoke", "model", "platform",
        "advance", "run", "kill", "fault", "freeze", "restart", "expect",
    ];
    KEYS.map(|key| format!("`{key}`")).join(", ")
}

/// Reads the line that starts with `key`.
pub(super) fn read(key: &str, value: &RawValue) -> Result<Line, Problem> {
    let json = value.get();
    match key {
        "config" => read_value(key, json).map(Line::Config),
        "file" => read_value(key, json).map(Line::File),
        "tool" => read_value::<ToolLine>(key, json)?.checked().map(Line::Tool),
        "session" => session::read(key, json).map(Line::Session),
        "deliver" => deliver::read(key, json).map(Line::Deliver),
        "say" => read_value::<Say>(key, json)?.checked().map(Line::Say),
        "tap" => read_value::<Tap>(key, json)?.checked().map(Line::Tap),
        "invoke" => read_value(key, json).map(Line::Invoke),
        "model" => read_value(key, json).map(Line::Model),
        "platform" => super::platform::read(key, json).map(Line::Platform),
        "advance" => {
            let Seconds(duration) = read_value(key, json)?;
            Ok(Line::Advance(duration))
        }
        "run" => only_true(key, json).map(|()| Line::Run),
        "restart" => only_true(key, json).map(|()| Line::Restart),
        "kill" => faults::kill(key, json).map(Line::Kill),
        "fault" => faults::fault(key, json).map(Line::Fault),
        "freeze" => faults::freeze(key, json).map(Line::Freeze),
        "expect" => expectations(key, json).map(Line::Expect),
        _ => Err(Problem::new(key, format!("no line starts with this key; allowed: {}", keys()))),
    }
}

#[derive(Deserialize)]
struct Seconds(#[serde(deserialize_with = "seconds")] Duration);

fn only_true(key: &str, json: &str) -> Result<(), Problem> {
    if read_value::<Value>(key, json)? == Value::Bool(true) { Ok(()) } else { Err(Problem::new(key, "allowed: true")) }
}

fn expectations(key: &str, json: &str) -> Result<BTreeMap<String, Value>, Problem> {
    let wanted: BTreeMap<String, Value> = read_value(key, json)?;
    match wanted.keys().find(|pointer| !pointer.is_empty() && !pointer.starts_with('/')) {
        Some(pointer) => Err(Problem::new(
            format!("{key}.{pointer}"),
            "not a JSON pointer; allowed: `` (everything) or a path that starts with `/`",
        )),
        None => Ok(wanted),
    }
}

/// The first line: what the file is.
#[derive(Debug, Clone, PartialEq, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Header {
    #[serde(rename = "replay")]
    version: u64,
    /// The story's name.
    #[serde(default)]
    pub case: Option<String>,
    /// When it starts; the default is the player's.
    #[serde(default)]
    pub now: Option<Timestamp>,
    /// How `model_requests` are shown.
    #[serde(default)]
    pub wire: Wire,
}

impl Header {
    pub(super) fn checked(self) -> Result<Self, Problem> {
        if self.version == VERSION {
            Ok(self)
        } else {
            Err(Problem::new("replay", format!("version {} is not known; allowed: {VERSION}", self.version)))
        }
    }
}

/// A file that the configuration names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileLine {
    /// Its path, as the configuration writes it.
    pub path: String,
    /// Its content.
    pub text: Text,
}

/// What kind of chat a message comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum ChatType {
    /// One person and us.
    #[default]
    Private,
    /// Several people.
    Group,
    /// Several people; Telegram's large kind, with or without topics.
    Supergroup,
    /// A channel.
    Channel,
}

/// A plain message with fresh ids.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Say {
    /// Where it is said.
    pub channel: Channel,
    /// To which of our accounts.
    #[serde(default = "default_account")]
    pub account: String,
    /// In which chat.
    #[serde(deserialize_with = "id")]
    pub chat: String,
    /// What kind of chat that is.
    #[serde(default)]
    pub chat_type: ChatType,
    /// By whom; the chat's own id if absent, as in a private chat.
    #[serde(default, deserialize_with = "optional_id")]
    pub from: Option<String>,
    /// In which thread.
    #[serde(default, deserialize_with = "optional_id")]
    pub thread: Option<String>,
    /// What.
    pub text: Text,
}

impl Say {
    fn checked(self) -> Result<Self, Problem> {
        match self.channel {
            Channel::Telegram | Channel::Slack | Channel::Webhook | Channel::Gateway => Ok(self),
            Channel::Cron | Channel::Cli | Channel::Unknown => {
                Err(Problem::new("say.channel", "nobody talks there; allowed: telegram, slack, webhook, gateway"))
            }
        }
    }
}

/// A button of a chat, pressed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tap {
    /// On which platform.
    pub channel: Channel,
    /// In a chat of which of our accounts.
    #[serde(default = "default_account")]
    pub account: String,
    /// In which chat.
    #[serde(deserialize_with = "id")]
    pub chat: String,
    /// What the button says; the newest one that says it is pressed.
    pub button: String,
    /// By whom; the chat's own id if absent.
    #[serde(default, deserialize_with = "optional_id")]
    pub from: Option<String>,
    /// How often.
    #[serde(default = "once")]
    pub times: u64,
}

impl Tap {
    /// How often a person presses a button at one moment.
    const MOST_TIMES: u64 = 1_000;

    fn checked(self) -> Result<Self, Problem> {
        if !matches!(self.channel, Channel::Telegram | Channel::Slack) {
            return Err(Problem::new("tap.channel", "there are no buttons there; allowed: telegram, slack"));
        }
        if !(1..=Self::MOST_TIMES).contains(&self.times) {
            let allowed = format!("{} is no number of presses; allowed: 1 to {}", self.times, Self::MOST_TIMES);
            return Err(Problem::new("tap.times", allowed));
        }
        Ok(self)
    }
}

fn once() -> u64 {
    1
}

fn default_account() -> String {
    DEFAULT_ACCOUNT.to_owned()
}

/// A raw Lambda event for one function.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invoke {
    /// The function's name.
    pub function: String,
    /// The event.
    pub event: Value,
    /// How its request is signed.
    #[serde(default)]
    pub sign: Sign,
}
