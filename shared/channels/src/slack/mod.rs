//! Slack apps (docs.slack.dev): Events API, slash commands and interactivity in, `chat.postMessage` and `chat.update`
//! out.
//!
//! Not here: uploads, streams, blocks. The Web API's failures come as HTTP 200 with `ok: false`; the
//! client reads the answer, never the status alone.

mod client;
mod connection;
mod file;
mod form;
mod inbound;
mod manifest;
mod message;
mod outbound;
mod text;
mod verify;

pub use client::{Client, DEFAULT_BASE_URL};
pub(crate) use file::FILE_SCHEME;
pub use inbound::{MAX_BODY, UNINSTALLED, normalise, receive};
pub use manifest::{Manifest, ManifestError};
pub use outbound::{MAX_UNITS, render};
pub use verify::{SIGNATURE_HEADER, TIMESTAMP_HEADER, sign, verify};

use crate::Groups;

/// One of our Slack apps, as `auth.test` and the app's settings name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    /// The account's name in our configuration.
    pub account: String,
    /// The app's id, `A…`.
    pub app_id: String,
    /// The workspace it belongs to, `T…` (`E…` for an organisation's).
    pub team_id: String,
    /// The user id of its bot, `U…`.
    pub bot_user_id: String,
    /// The bot id of its bot, `B…`.
    pub bot_id: String,
    /// Bot ids whose messages are taken like a person's; all other bots are ignored, so that no two answer each other.
    pub allowed_bots: Vec<String>,
    /// Which messages of channels are for it.
    pub groups: Groups,
}
