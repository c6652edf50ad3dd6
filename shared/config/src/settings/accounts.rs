//! Which of our identities stand on which channel, and who may talk to them.
//!
//! A secret that is `None` is not configured: only a replay can say so, and whoever verifies or sends with it must
//! refuse.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use secrecy::SecretString;

/// What every chat account has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Who may talk to it.
    pub allow: Allow,
    /// Whether replies show while they are written.
    pub stream: bool,
    /// When it answers in a group.
    pub groups: Groups,
}

/// A Telegram bot.
#[derive(Debug, Clone, Default)]
pub struct Telegram {
    /// What every chat account has.
    pub account: Account,
    /// The token of the Bot API.
    pub bot_token: Option<SecretString>,
    /// What Telegram sends with every update.
    pub secret_token: Option<SecretString>,
    /// The bot's id; the token begins with it.
    pub bot_id: i64,
    /// The bot's name, without the `@`.
    pub username: String,
    /// Another server of the Bot API; `None` = Telegram's.
    pub base_url: Option<String>,
}

/// A Slack app.
#[derive(Debug, Clone, Default)]
pub struct Slack {
    /// What every chat account has.
    pub account: Account,
    /// The token of its bot user.
    pub bot_token: Option<SecretString>,
    /// What Slack signs requests with.
    pub signing_secret: Option<SecretString>,
    /// The app's id, `A…`.
    pub app_id: String,
    /// The workspace it is installed in, `T…`.
    pub team_id: String,
    /// The id of its bot user, `U…`.
    pub bot_user_id: String,
    /// The id of its bot, `B…`.
    pub bot_id: Option<String>,
    /// Bots that it answers, by user, bot or app id; all others are ignored.
    pub allowed_bots: Vec<String>,
    /// Another server of the Web API; `None` = Slack's.
    pub base_url: Option<String>,
}

/// A webhook source.
#[derive(Debug, Clone, Default)]
pub struct Webhook {
    /// How its requests prove where they come from.
    pub verify: Verify,
    /// What they prove it with.
    pub secret: Option<SecretString>,
    /// How its body becomes text; `None` = as it is.
    pub template: Option<String>,
    /// The session its events belong to, a template too; `None` = one of the source's own.
    pub session: Option<String>,
    /// Where the reply goes; `None` = nowhere but into the session.
    pub reply_to: Option<ReplyTo>,
}

/// What the agent is told to do at a time; on AWS a schedule names it, and says when.
#[derive(Debug, Clone, Default)]
pub struct Cron {
    /// What it is told.
    pub text: String,
    /// The chat that reads the answer; `None` = nobody but whoever asks for the event.
    pub reply_to: Option<ReplyTo>,
}

/// The HTTP API.
#[derive(Debug, Clone, Default)]
pub struct Gateway {
    /// Callers by name.
    pub keys: BTreeMap<String, GatewayKey>,
}

/// A caller of the HTTP API.
#[derive(Debug, Clone)]
pub struct GatewayKey {
    /// Its bearer key.
    pub key: Option<SecretString>,
    /// The chats it may use; all of them by default, since whoever holds the key is known.
    pub allow: Allow,
}

/// The one-process host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Where it keeps its data.
    pub directory: PathBuf,
    /// The address it listens at.
    pub listen: String,
    /// Names under which it is reached besides that address: other `Host` headers are refused.
    pub hosts: Vec<String>,
}

/// Who may talk to an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allow {
    /// Everybody.
    Everybody,
    /// These senders and chats. An empty list allows nobody but a pairing.
    Only(BTreeSet<String>),
}

/// When an account answers in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Groups {
    /// When it is mentioned or answered.
    #[default]
    Mention,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How a webhook's requests prove where they come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Verify {
    /// By the three headers of Standard Webhooks.
    #[default]
    Standard,
    /// By an HMAC-SHA256 of the body in this header, as GitHub does.
    Hmac {
        /// The header.
        header: String,
    },
    /// By Slack's signature.
    Slack,
    /// By the secret itself, in the `Authorization` header.
    Bearer,
}

/// Where a webhook's reply goes. An address is often a secret itself, so `Debug` shows only that there is one.
#[derive(Clone, PartialEq, Eq)]
pub enum ReplyTo {
    /// To a chat.
    Chat {
        /// Its channel: `telegram` or `slack`.
        channel: String,
        /// Our account there.
        account: String,
        /// The chat.
        chat: String,
        /// A thread in it.
        thread: Option<String>,
    },
    /// To an address, as a POST.
    Url(String),
}

impl fmt::Debug for ReplyTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chat { channel, account, chat, thread } => f
                .debug_struct("Chat")
                .field("channel", channel)
                .field("account", account)
                .field("chat", chat)
                .field("thread", thread)
                .finish(),
            Self::Url(_) => f.debug_tuple("Url").field(&"[REDACTED]").finish(),
        }
    }
}

impl Default for Account {
    fn default() -> Self {
        Self { allow: Allow::default(), stream: true, groups: Groups::default() }
    }
}

impl Default for Allow {
    /// Nobody.
    fn default() -> Self {
        Self::Only(BTreeSet::new())
    }
}

impl Default for GatewayKey {
    fn default() -> Self {
        Self { key: None, allow: Allow::Everybody }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self { directory: PathBuf::from(".turnlock"), listen: "127.0.0.1:8787".to_owned(), hosts: Vec::new() }
    }
}

impl Allow {
    /// Whether one of these ids, a sender's or a chat's, is allowed.
    #[must_use]
    pub fn permits(&self, ids: &[&str]) -> bool {
        match self {
            Self::Everybody => true,
            Self::Only(allowed) => ids.iter().any(|id| allowed.contains(*id)),
        }
    }
}
