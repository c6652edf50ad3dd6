//! Files behind references, read when they are used: `telegram-file:<file_id>`, `slack-file:<id>`.
//!
//! A token goes to the platform's own hosts and into no address that anybody sees; an answer that is larger than
//! [`MAX_BYTES`] is not read to its end. What a file is, its first bytes say ([`image_type`]): names and declared types
//! are the sender's words. Nothing is tried again: whoever wants the file asks again.

use std::collections::BTreeMap;

use bytes::Bytes;
use turnlock_domain::event::Channel;

use crate::http::{PlatformError, TooLarge};
use crate::{slack, telegram};

/// The largest file that is read: base64 makes 5 MB of it, the most that models take of one image.
pub const MAX_BYTES: usize = 3_750_000;

/// The method of a download, in logs and replays.
pub(crate) const DOWNLOAD: &str = "file";

/// Why there is no file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// It is larger than what is read, or than what the platform gives to bots.
    #[error("it is too large")]
    TooLarge,
    /// The platform does not know it, or not any more.
    #[error("the platform does not have it")]
    Gone,
    /// It is none of the types that are taken.
    #[error("it is no image of a known type")]
    WrongType,
    /// The platform showed its sign-in page or said so: the app may not read files.
    #[error("the app lacks the scope {0}")]
    MissingScope(&'static str),
    /// It lies where our token may not be sent.
    #[error("it lies on a host that is not the platform's")]
    ForeignHost,
    /// It is no reference of that channel, or nothing is configured that could read it.
    #[error("no client is configured that could read it")]
    NoClient,
    /// Anything else: the platform's code, never its words.
    #[error("the platform did not give it: {0}")]
    Unavailable(String),
}

/// The clients that read files, by account.
#[derive(Debug, Default)]
pub struct Files {
    telegram: BTreeMap<String, telegram::Client>,
    slack: BTreeMap<String, slack::Client>,
}

impl Files {
    /// No clients: every file is one that cannot be read.
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

    /// Whether `url` is a reference to a file that lies on a platform.
    #[must_use]
    pub fn is_reference(url: &str) -> bool {
        [telegram::FILE_SCHEME, slack::FILE_SCHEME].iter().any(|scheme| url.starts_with(scheme))
    }

    /// The bytes behind a reference of an event of `channel` and `account`.
    ///
    /// # Errors
    /// [`FileError`].
    pub async fn read(&self, channel: Channel, account: &str, reference: &str) -> Result<Bytes, FileError> {
        let bytes = match channel {
            Channel::Telegram => match (self.telegram.get(account), reference.strip_prefix(telegram::FILE_SCHEME)) {
                (Some(client), Some(id)) => client.read_file(id).await?,
                _ => return Err(FileError::NoClient),
            },
            Channel::Slack => match (self.slack.get(account), reference.strip_prefix(slack::FILE_SCHEME)) {
                (Some(client), Some(id)) => client.read_file(id).await?,
                _ => return Err(FileError::NoClient),
            },
            // Their files come with the event or not at all.
            Channel::Webhook | Channel::Gateway | Channel::Cron | Channel::Cli | Channel::Unknown => {
                return Err(FileError::NoClient);
            }
        };
        if bytes.len() > MAX_BYTES { Err(FileError::TooLarge) } else { Ok(bytes) }
    }
}

/// The media type of an image that every model with eyes takes, by its first bytes.
#[must_use]
pub fn image_type(bytes: &[u8]) -> Option<&'static str> {
    let webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    let begins = |magic: &[&[u8]]| magic.iter().any(|magic| bytes.starts_with(magic));
    if begins(&[b"\xFF\xD8\xFF"]) {
        Some("image/jpeg")
    } else if begins(&[b"\x89PNG\r\n\x1A\n"]) {
        Some("image/png")
    } else if begins(&[b"GIF87a", b"GIF89a"]) {
        Some("image/gif")
    } else {
        webp.then_some("image/webp")
    }
}

/// What it means that a request on the way to a file has no answer.
pub(crate) fn no_answer(error: PlatformError) -> FileError {
    match error {
        PlatformError::AnswerLost(source) if source.is::<TooLarge>() => FileError::TooLarge,
        PlatformError::AnswerLost(_) => FileError::Unavailable("no answer".to_owned()),
        PlatformError::Unreachable(_) => FileError::Unavailable("unreachable".to_owned()),
    }
}

/// What a status other than 200 means.
pub(crate) fn refused(status: u16) -> FileError {
    match status {
        404 | 410 => FileError::Gone,
        413 => FileError::TooLarge,
        status => FileError::Unavailable(format!("status {status}")),
    }
}

/// Whether a size that the platform names is too large; a size that is none is not.
pub(crate) fn is_too_large(size: Option<i64>) -> bool {
    size.and_then(|size| usize::try_from(size).ok()).is_some_and(|size| size > MAX_BYTES)
}

#[cfg(test)]
mod tests;
