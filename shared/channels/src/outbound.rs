//! The way out: the configured clients by channel and account, and what a platform's answer means to the caller.
//!
//! Not here: order, the ledger, waiting, whether a part is sent again. [`SendError`] is typed by what the caller must
//! do, so that the delivery needs no knowledge of any platform.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use turnlock_domain::event::{Button, Channel, MessageKind, OutboundEvent};
use turnlock_domain::text::{is_blank, utf16_len};

use crate::markdown::{self, Markup, Styled};
use crate::{slack, telegram, webhook};

/// How long one platform call may take.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a part was not shown, by what the caller must do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Not carried out. Send the same again, no call to this chat before the time is over.
    #[error("the platform asks to wait {} s", .0.as_secs())]
    RetryAfter(Duration),
    /// Not carried out, or repeating it is harmless (an edit). Send the same again with growing waits.
    #[error("the platform is unavailable: {0}")]
    Transient(String),
    /// It may have been carried out: the ledger marks the part `uncertain` and its policy decides.
    #[error("the outcome is unknown: {0}")]
    Unknown(String),
    /// The chat takes nothing from us any more (blocked, removed, archived). Permanent until somebody writes there.
    #[error("the chat cannot be reached: {reason}")]
    ChatGone {
        /// The platform's word for it.
        reason: String,
    },
    /// We are no member of the chat, and who asked there can be told elsewhere. Send once more to `instead`, to them alone.
    #[error("not a member of the chat")]
    NotMember {
        /// The chat with the person who asked.
        instead: String,
    },
    /// The chat has another id now. Store the alias, send once more to `to`.
    #[error("the chat has moved to {to}")]
    Migrated {
        /// The new chat id.
        to: String,
    },
    /// The part is longer than the platform takes, in spite of our own cut. Cut it, and it alone, shorter.
    #[error("the part is too long")]
    TooLong,
    /// The thread is gone, the chat is not. Send once more to the same chat without the thread; never anywhere else.
    #[error("the thread is gone")]
    ThreadGone,
    /// The message to edit is gone or cannot be edited. Post anew, once.
    #[error("the message cannot be edited")]
    EditGone,
    /// Refused for good. Sending it again does not help.
    #[error("the platform refused it: {code}")]
    Rejected {
        /// The platform's code or description.
        code: String,
    },
    /// Nothing is configured that could send it.
    #[error("no client is configured for this channel and account")]
    NoHandler,
}

/// Who shows the events of a channel and account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handler {
    /// A client of this crate, by a request to the platform.
    Platform,
    /// An item in the store that the caller reads (gateway, terminal): the application writes it.
    Store,
    /// Nobody: only observers see them.
    None,
}

/// The configured clients by account.
#[derive(Debug, Default)]
pub struct Outbound {
    telegram: BTreeMap<String, telegram::Client>,
    slack: BTreeMap<String, slack::Client>,
    webhook: BTreeMap<String, webhook::Client>,
}

impl Outbound {
    /// No clients yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with a Telegram bot's client; its account is its key.
    #[must_use]
    pub fn with_telegram(mut self, client: telegram::Client) -> Self {
        self.telegram.insert(client.account().to_owned(), client);
        self
    }

    /// The same with a Slack app's client; its account is its key.
    #[must_use]
    pub fn with_slack(mut self, client: slack::Client) -> Self {
        self.slack.insert(client.account().to_owned(), client);
        self
    }

    /// The same with a webhook source's client; its account is its key.
    #[must_use]
    pub fn with_webhook(mut self, client: webhook::Client) -> Self {
        self.webhook.insert(client.account().to_owned(), client);
        self
    }

    /// Who shows the events of `channel` and `account`.
    #[must_use]
    pub fn handler(&self, channel: Channel, account: &str) -> Handler {
        let configured = match channel {
            Channel::Telegram => self.telegram.contains_key(account),
            Channel::Slack => self.slack.contains_key(account),
            Channel::Webhook => self.webhook.contains_key(account),
            Channel::Gateway | Channel::Cli => return Handler::Store,
            Channel::Cron | Channel::Unknown => false,
        };
        if configured { Handler::Platform } else { Handler::None }
    }

    /// The parts in which `event` is shown, each within its channel's limit. A text that is not empty has at least one;
    /// an event without text has none. `limits` are what was learnt of single parts, in [`Part::units`], where a
    /// platform refused one as too long; it holds for the parts behind it. 0 or absent = nothing was.
    #[must_use]
    pub fn render(&self, event: &OutboundEvent, limits: &[usize]) -> Vec<Part> {
        match event.channel {
            Channel::Telegram => telegram::render(event, limits),
            Channel::Slack => slack::render(event, limits),
            Channel::Webhook => webhook::render(event),
            // Their readers fetch the whole event, or there is none.
            Channel::Gateway | Channel::Cli | Channel::Cron | Channel::Unknown => Vec::new(),
        }
    }

    /// Shows one rendered part of `event`, or puts it in place of the platform message `edit`; returns the platform
    /// message's id. A part after the first is sent with the event's `reply_to_id` cleared, else each part quotes.
    ///
    /// # Errors
    /// [`SendError`], by what the caller must do.
    pub async fn send_part(&self, event: &OutboundEvent, part: &Part, edit: Option<&str>) -> Result<String, SendError> {
        let account = event.account.as_str();
        match event.channel {
            Channel::Telegram => match self.telegram.get(account) {
                Some(client) => client.send(event, part, edit).await,
                None => Err(SendError::NoHandler),
            },
            Channel::Slack => match self.slack.get(account) {
                Some(client) => client.send(event, part, edit).await,
                None => Err(SendError::NoHandler),
            },
            Channel::Webhook => match self.webhook.get(account) {
                Some(client) => client.send(event, part, edit).await,
                None => Err(SendError::NoHandler),
            },
            Channel::Gateway | Channel::Cli | Channel::Cron | Channel::Unknown => Err(SendError::NoHandler),
        }
    }

    /// Shows for some seconds that the agent works on the answer that `event` announces, where the channel can.
    ///
    /// # Errors
    /// [`SendError`]; nobody misses it.
    pub async fn typing(&self, event: &OutboundEvent) -> Result<(), SendError> {
        match event.channel {
            Channel::Telegram => match self.telegram.get(&event.account) {
                Some(client) => client.typing(event).await,
                None => Err(SendError::NoHandler),
            },
            Channel::Slack | Channel::Webhook | Channel::Gateway | Channel::Cli | Channel::Cron | Channel::Unknown => {
                Ok(())
            }
        }
    }

    /// Takes back the platform message `message`, which showed `event`: what a worker does with a message that it posted
    /// too late. One that is gone already is taken back.
    ///
    /// # Errors
    /// [`SendError`]; taking it back again is harmless.
    pub async fn delete(&self, event: &OutboundEvent, message: &str) -> Result<(), SendError> {
        let account = event.account.as_str();
        match event.channel {
            Channel::Telegram => match self.telegram.get(account) {
                Some(client) => client.delete(event, message).await,
                None => Err(SendError::NoHandler),
            },
            Channel::Slack => match self.slack.get(account) {
                Some(client) => client.delete(event, message).await,
                None => Err(SendError::NoHandler),
            },
            // A receiver knows a repetition by its id; there is nothing to take back.
            Channel::Webhook => Ok(()),
            Channel::Gateway | Channel::Cli | Channel::Cron | Channel::Unknown => Err(SendError::NoHandler),
        }
    }
}

/// One message of an event, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The text as the platform gets it, in its own markup.
    pub text: String,
    /// What a reader sees of it, without any markup: sent instead where a platform cannot parse `text`.
    pub plain: String,
    /// The length of `text` as the platform counts it.
    pub units: usize,
    /// The buttons under it, in place of those that were there.
    pub buttons: Vec<Button>,
}

impl Part {
    /// All that its message shows, to be compared with what it showed before.
    #[must_use]
    pub fn shown(&self) -> Cow<'_, str> {
        self.buttons.iter().fold(Cow::Borrowed(self.text.trim()), |shown, Button { label, data }| {
            Cow::Owned(format!("{shown}\u{0}{label}\u{0}{data}"))
        })
    }
}

/// What stands for a text of nothing but invisible characters: platforms refuse an empty message, and somebody waits.
pub(crate) const INVISIBLE: &str = "…";

/// The text of `event` in parts of a platform's markup, each at most `max` units long or as long as `limits` says. A text that
/// is not empty always has a part.
pub(crate) fn parts(event: &OutboundEvent, markup: &impl Markup, limits: &[usize], max: usize) -> Vec<Part> {
    let text = event.text();
    if text.is_empty() {
        return Vec::new();
    }
    let is_whole = event.is_final || event.message_kind == MessageKind::ApprovalRequest;
    let shown = if is_whole { Cow::Borrowed(text.as_str()) } else { markdown::finished(&text) };
    let shown = if is_blank(&shown) { text.as_str() } else { &shown };
    let styled = if is_blank(&text) { Styled::plain(INVISIBLE) } else { markdown::read(shown, &|to| markup.takes(to)) };
    let write = |part: Styled| {
        let text = markup.write(&part);
        Part { units: utf16_len(&text), text, plain: part.text, buttons: Vec::new() }
    };
    let mut parts: Vec<Part> = markdown::split(&styled, markup, limits, max).into_iter().map(write).collect();
    if let Some(last) = parts.last_mut() {
        last.buttons.clone_from(&event.buttons);
    }
    parts
}

#[cfg(test)]
mod tests;
