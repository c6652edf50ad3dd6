//! Telegram bots (Bot API, core.telegram.org/bots/api): webhook updates in, `sendMessage` and `editMessageText` out.
//!
//! Not here: uploads, buttons; the gathering of an album's parts, which are told apart only. Other updates
//! are told apart and ignored by name, so that Telegram never redelivers what we do not want.

mod addressing;
mod administration;
mod client;
mod connection;
mod file;
mod inbound;
mod media;
mod message;
mod outbound;
mod verify;

pub use administration::{Administration, AdministrationError, Identity, WebhookInfo, check_webhook};
pub use client::{Client, DEFAULT_BASE_URL};
pub(crate) use file::FILE_SCHEME;
pub use inbound::{MAX_BODY, UPDATES, normalise, receive};
pub use outbound::{MAX_UNITS, render};
pub use verify::{SECRET_HEADER, sign_headers, verify};

use crate::Groups;

/// One of our bots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bot {
    /// The account's name in our configuration.
    pub account: String,
    /// The bot's user id: the number before the colon of its token.
    pub bot_id: i64,
    /// The bot's username, without the `@`.
    pub username: String,
    /// Which messages of groups and channels are for it.
    pub groups: Groups,
}
