//! The event contract, version 1: stable and additive only.
//!
//! New fields are optional, old fields keep their meaning, unknown fields and enum values never fail a parse. Nothing
//! here carries trust: what only our own code may claim travels in the [`crate::envelope`].

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::EventId;
use crate::session::{DEFAULT_ACCOUNT, SessionKey};

/// The version of the contract that this code writes.
pub const SCHEMA: u32 = 1;

/// The metadata that says which button was pressed, on the press itself and on its answer.
pub const TAP: &str = "tap";

/// Where in that metadata an answer says that it leaves the buttons where they are: they are still good for somebody else,
/// or taken away otherwise.
pub const TAP_KEEPS_BUTTONS: &str = "keeps_buttons";

/// The metadata that names who asked, on what is asked by a command that works where we are no member, and on its answer:
/// where the chat does not take the answer, it goes to them alone.
pub const ASKED_BY: &str = "asked_by";

/// An outside world the agent talks through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// Telegram bots.
    Telegram,
    /// Slack apps.
    Slack,
    /// HTTP webhooks of any producer.
    Webhook,
    /// The HTTP API.
    Gateway,
    /// Schedules.
    Cron,
    /// The operator's terminal.
    Cli,
    /// A channel that this version does not know.
    #[serde(other)]
    Unknown,
}

impl Channel {
    /// The name that stands in keys, logs and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Telegram => "telegram",
            Self::Slack => "slack",
            Self::Webhook => "webhook",
            Self::Gateway => "gateway",
            Self::Cron => "cron",
            Self::Cli => "cli",
            Self::Unknown => "unknown",
        }
    }
}

/// What kind of thing happened outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventType {
    /// A person or program wrote something.
    #[default]
    Message,
    /// A webhook called.
    Webhook,
    /// A schedule fell due.
    Cron,
    /// The operator typed.
    Cli,
    /// The platform says something about a chat.
    System,
    /// A stop, a reset, an approval: refused without our own envelope.
    Control,
    /// A type that this version does not know.
    #[serde(other)]
    Unknown,
}

/// What an outbound event is to the person who sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// A sign of life.
    Progress,
    /// The name of a tool that runs.
    ToolHint,
    /// A frame: the whole visible text so far.
    Streaming,
    /// The turn's committed reply.
    #[default]
    Final,
    /// The turn's committed reply when it failed.
    Error,
    /// An answer that no turn made: limited, busy, refused, a command's answer.
    Notice,
    /// A card that asks a person to allow a tool.
    ApprovalRequest,
    /// A kind that this version does not know.
    #[serde(other)]
    Unknown,
}

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentType {
    /// Text, in `text`.
    #[default]
    Text,
    /// A picture, by reference.
    Image,
    /// A document, by reference.
    File,
    /// A sound, by reference.
    Audio,
    /// A voice message, by reference.
    Voice,
    /// A film, by reference.
    Video,
    /// A type that this version does not know.
    #[serde(other)]
    Unknown,
}

/// One piece of an event's content. Media is a reference that its channel resolves at use, never a URL with a token.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ContentBlock {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: ContentType,
    /// The text of a text block; a caption or description elsewhere.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The reference of a media block, e.g. `telegram-file:<file_id>`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The media type as the platform states it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mime_type: String,
    /// The file's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The file's size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Platform facts about the block.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl ContentBlock {
    /// A text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A media block.
    #[must_use]
    pub fn media(kind: ContentType, url: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self { kind, url: url.into(), mime_type: mime_type.into(), ..Self::default() }
    }
}

/// What happened outside, in one shape for all channels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InboundEvent {
    /// The contract's version; absent = 1.
    #[serde(default = "current_schema")]
    pub schema: u32,
    /// What the event is recognised by.
    pub event_id: EventId,
    /// What kind of thing happened; absent = message.
    #[serde(default)]
    pub event_type: EventType,
    /// Where it came from.
    pub channel: Channel,
    /// Which of our identities it came to.
    #[serde(default = "default_account")]
    pub account: String,
    /// Who sent it.
    #[serde(default)]
    pub sender_id: String,
    /// The chat it stands in.
    #[serde(default)]
    pub chat_id: String,
    /// What was said.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// When, by the platform's clock.
    #[schemars(with = "String")]
    pub timestamp: Timestamp,
    /// The platform message it answers, and that our reply answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to_id: Option<String>,
    /// The thread it stands in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// The session, where it is not the chat's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key_override: Option<SessionKey>,
    /// Platform facts.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Request facts.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub gateway_metadata: Map<String, Value>,
    /// W3C `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

impl InboundEvent {
    /// The session this event belongs to.
    #[must_use]
    pub fn session_key(&self) -> SessionKey {
        self.session_key_override
            .clone()
            .unwrap_or_else(|| SessionKey::new(self.channel.as_str(), &self.account, &self.chat_id, None))
    }

    /// The texts of the text blocks, joined by newlines.
    #[must_use]
    pub fn text(&self) -> String {
        join_text(&self.content)
    }

    /// The references of the other blocks.
    #[must_use]
    pub fn media_urls(&self) -> Vec<&str> {
        self.content
            .iter()
            .filter(|block| block.kind != ContentType::Text && !block.url.is_empty())
            .map(|block| block.url.as_str())
            .collect()
    }
}

impl InboundEvent {
    /// Who sent it, as one text: `channel:sender`, with the account between them where it is not the default one, as in
    /// session keys. A program's key vouches for whomever it names, so there the account always stands, and alone where
    /// nobody else is named. Empty where nobody is known.
    #[must_use]
    pub fn person(&self) -> String {
        let Self { channel, account, sender_id, .. } = self;
        let (account, sender) = match channel {
            Channel::Telegram | Channel::Slack => (account.as_str(), sender_id.as_str()),
            Channel::Webhook | Channel::Gateway | Channel::Cron | Channel::Cli | Channel::Unknown => {
                let named = (sender_id != account).then_some(sender_id.as_str()).filter(|sender| !sender.is_empty());
                return SessionKey::new(channel.as_str(), DEFAULT_ACCOUNT, account, named).to_string();
            }
        };
        if sender.is_empty() {
            return String::new();
        }
        SessionKey::new(channel.as_str(), account, sender, None).to_string()
    }

    /// Where its answers go.
    #[must_use]
    pub fn place(&self) -> Place {
        Place {
            channel: self.channel,
            account: self.account.clone(),
            chat_id: self.chat_id.clone(),
            thread_id: self.thread_id.clone(),
        }
    }
}

/// A place in an outside world, by which something is said there later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The channel.
    pub channel: Channel,
    /// Our account there.
    pub account: String,
    /// The chat.
    pub chat_id: String,
    /// A thread in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
}

/// A button under a message: what it says, and what comes back when it is pressed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Button {
    /// What it says.
    pub label: String,
    /// What a press brings back: at most 64 bytes, a reference that is looked up, never an authority by itself.
    pub data: String,
}

impl Button {
    /// The most bytes that a press brings back: Telegram's limit (Bot API, "InlineKeyboardButton").
    pub const MAX_DATA: usize = 64;
}

/// Where in a turn's output an outbound event stands; compared, the later one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
pub struct Revision {
    /// The fence of the lock under which it was made.
    pub fence: u64,
    /// Its number under that fence; a final's is [`Revision::FINAL`].
    pub sequence: u32,
}

impl Revision {
    /// The sequence of a final: later than every frame of its turn.
    pub const FINAL: u32 = u32::MAX;
}

/// What the agent expresses, in one shape for all channels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutboundEvent {
    /// The contract's version; absent = 1.
    #[serde(default = "current_schema")]
    pub schema: u32,
    /// Derives from the inbound event's id, so that a second sending is recognised.
    pub event_id: String,
    /// Where it goes.
    pub channel: Channel,
    /// Which of our identities says it.
    #[serde(default = "default_account")]
    pub account: String,
    /// The chat it goes to.
    #[serde(default)]
    pub chat_id: String,
    /// What is said.
    #[serde(default)]
    pub content: Vec<ContentBlock>,
    /// The platform message it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to_id: Option<String>,
    /// The thread it goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// The platform message it replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit_message_id: Option<String>,
    /// The outbound event whose messages it replaces, by that event's id: a later revision of the same thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<String>,
    /// The buttons under its last message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<Button>,
    /// Whether its turn says nothing after it.
    #[serde(default = "yes")]
    pub is_final: bool,
    /// What it is to the person who sees it.
    #[serde(default)]
    pub message_kind: MessageKind,
    /// The inbound event that led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caused_by: Option<EventId>,
    /// The turn that made it (a turn is named by its event); absent where no turn ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<EventId>,
    /// Which of several outbound events of its turn it is.
    #[serde(default)]
    pub part: u32,
    /// Where in the turn's output it stands.
    #[serde(default)]
    pub revision: Revision,
    /// The task it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The workflow it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// Facts for the channel.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// W3C `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

impl OutboundEvent {
    /// An event that answers `inbound` in its chat and thread: `suffix` completes its id.
    #[must_use]
    pub fn answering(inbound: &InboundEvent, suffix: &str, kind: MessageKind, text: impl Into<String>) -> Self {
        Self {
            schema: SCHEMA,
            event_id: inbound.event_id.caused(suffix),
            channel: inbound.channel,
            account: inbound.account.clone(),
            chat_id: inbound.chat_id.clone(),
            content: vec![ContentBlock::text(text)],
            reply_to_id: inbound.reply_to_id.clone(),
            thread_id: inbound.thread_id.clone(),
            edit_message_id: None,
            edits: None,
            buttons: Vec::new(),
            is_final: true,
            message_kind: kind,
            caused_by: Some(inbound.event_id.clone()),
            turn: None,
            part: 0,
            revision: Revision::default(),
            task_id: None,
            workflow_id: None,
            metadata: inbound
                .metadata
                .get_key_value(ASKED_BY)
                .map(|(name, user)| (name.clone(), user.clone()))
                .into_iter()
                .collect(),
            trace: inbound.trace.clone(),
        }
    }

    /// The texts of the text blocks, joined by newlines.
    #[must_use]
    pub fn text(&self) -> String {
        join_text(&self.content)
    }

    /// The chat as one text: the group of the outbound queue, and the key of what is known about the chat.
    #[must_use]
    pub fn chat(&self) -> String {
        SessionKey::new(self.channel.as_str(), &self.account, &self.chat_id, None).to_string()
    }
}

fn join_text(content: &[ContentBlock]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter(|block| block.kind == ContentType::Text && !block.text.is_empty())
        .map(|block| block.text.as_str())
        .collect();
    texts.join("\n")
}

fn current_schema() -> u32 {
    SCHEMA
}

fn default_account() -> String {
    DEFAULT_ACCOUNT.to_owned()
}

fn yes() -> bool {
    true
}
