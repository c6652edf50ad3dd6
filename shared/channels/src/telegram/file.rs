//! Files of messages: `getFile` says where a file lies (Bot API, "getFile": for an hour at least, up to 20 MB), a second
//! request reads it. Its address holds the bot's token, so it is made here, used once and shown to nobody.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use turnlock_domain::event::Channel;

use crate::files::{self, DOWNLOAD, FileError};
use crate::http::{PlatformHttp, PlatformRequest};
use crate::json;

/// What a reference begins with.
pub(crate) const FILE_SCHEME: &str = "telegram-file:";

/// Reads the files that one bot was sent.
#[derive(Clone)]
pub struct Files {
    account: String,
    token: SecretString,
    base_url: String,
    http: Arc<dyn PlatformHttp>,
}

impl Files {
    /// The files of the bot called `account`; `base_url` is [`super::DEFAULT_BASE_URL`] or a server of one's own.
    #[must_use]
    pub fn new(http: Arc<dyn PlatformHttp>, account: &str, token: SecretString, base_url: &str) -> Self {
        Self { account: account.to_owned(), token, base_url: base_url.trim_end_matches('/').to_owned(), http }
    }

    /// The bot's account.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// [`FileError`].
    pub async fn read(&self, file_id: &str) -> Result<Bytes, FileError> {
        let arguments = json!({ "file_id": file_id }).to_string();
        let answer = files::ask(&self.http, self.request("getFile", "bot", "getFile", arguments.into())).await?;
        let body = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
        if !json::flag(&body, "/ok") {
            let code = json::integer(&body, "/error_code").and_then(|code| u16::try_from(code).ok());
            let too_big = json::string(&body, "/description").is_some_and(|text| text.contains("file is too big"));
            return Err(match code.unwrap_or(answer.status) {
                400 if too_big => FileError::TooLarge,
                400 => FileError::Gone,
                status => files::refused(status),
            });
        }
        if files::is_too_large(json::integer(&body, "/result/file_size")) {
            return Err(FileError::TooLarge);
        }
        let path = json::string(&body, "/result/file_path").filter(|path| is_plain(path)).ok_or(FileError::Gone)?;
        let answer = files::ask(&self.http, self.request(DOWNLOAD, "file/bot", path, Bytes::new())).await?;
        if answer.status == 200 { Ok(answer.body) } else { Err(files::refused(answer.status)) }
    }

    fn request(&self, method: &str, before_token: &str, path: &str, body: Bytes) -> PlatformRequest {
        let mut headers = HeaderMap::new();
        if !body.is_empty() {
            headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        PlatformRequest {
            channel: Channel::Telegram,
            account: self.account.clone(),
            method: method.to_owned(),
            url: format!("{}/{before_token}{}/{path}", self.base_url, self.token.expose_secret()),
            headers,
            body,
        }
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("telegram::Files").field("account", &self.account).finish_non_exhaustive()
    }
}

/// Whether a path stays below the bot's folder: a server that keeps files to itself names them by its own disk's paths.
fn is_plain(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    path.bytes().all(plain) && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}
