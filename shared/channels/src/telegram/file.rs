//! Files of messages: `getFile` says where a file lies (Bot API, "getFile": for an hour at least, up to 20 MB), a second
//! request reads it. Its address holds the bot's token, so it is made here, used once and shown to nobody.

use bytes::Bytes;
use serde_json::{Value, json};

use super::Client;
use crate::files::{self, FileError};
use crate::json;

/// What a reference begins with.
pub(crate) const FILE_SCHEME: &str = "telegram-file:";

impl Client {
    /// The bytes of a file.
    ///
    /// # Errors
    /// [`FileError`].
    pub(crate) async fn read_file(&self, file_id: &str) -> Result<Bytes, FileError> {
        let answer = self.0.call("getFile", &json!({ "file_id": file_id })).await.map_err(files::no_answer)?;
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
        let answer = self.0.download(path).await.map_err(files::no_answer)?;
        if answer.status == 200 { Ok(answer.body) } else { Err(files::refused(answer.status)) }
    }
}

/// Whether a path stays below the bot's folder: a server that keeps files to itself names them by its own disk's paths.
fn is_plain(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    path.bytes().all(plain) && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}
