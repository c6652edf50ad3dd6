//! Files of messages: `files.info` says where a file lies (docs.slack.dev, "Working with files"), a second request reads
//! it with the app's token. That token goes to Slack's hosts and to the configured server's, and no redirect is
//! followed. Without the scope Slack answers with its sign-in page, as a redirect or with a 200.

use bytes::Bytes;
use http::Uri;
use serde_json::Value;

use super::client::{Client, is_name};
use crate::files::{self, DOWNLOAD, FileError};
use crate::http::PlatformResponse;
use crate::json;

/// What a reference begins with.
pub(crate) const FILE_SCHEME: &str = "slack-file:";

/// What an app needs to read files.
const SCOPE: &str = "files:read";

impl Client {
    /// The bytes of a file.
    ///
    /// # Errors
    /// [`FileError`].
    pub(crate) async fn read_file(&self, id: &str) -> Result<Bytes, FileError> {
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(FileError::Gone);
        }
        let answer = self.ask("files.info", format!("{}/files.info?file={id}", self.0.base_url)).await?;
        let body = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
        if !json::flag(&body, "/ok") {
            return Err(failure(&body, answer.status));
        }
        if files::is_too_large(json::integer(&body, "/file/size")) {
            return Err(FileError::TooLarge);
        }
        let address = json::string(&body, "/file/url_private_download");
        let address = address.or_else(|| json::string(&body, "/file/url_private"));
        let address = self.own(address.ok_or(FileError::Gone)?).ok_or(FileError::ForeignHost)?;
        let answer = self.ask(DOWNLOAD, address.to_string()).await?;
        match answer.status {
            200 if says(&answer, "application/json") => {
                Err(failure(&serde_json::from_slice(&answer.body).unwrap_or_default(), answer.status))
            }
            200 => Ok(answer.body),
            status => Err(files::refused(status)),
        }
    }

    async fn ask(&self, method: &str, url: String) -> Result<PlatformResponse, FileError> {
        let answer = self.0.get(method, url).await.map_err(files::no_answer)?;
        // Nothing that is asked for here is a page for people.
        if (300..400).contains(&answer.status) || says(&answer, "text/html") || begins_a_page(&answer.body) {
            return Err(FileError::MissingScope(SCOPE));
        }
        Ok(answer)
    }

    /// The address, if the token may be sent there.
    fn own(&self, address: &str) -> Option<Uri> {
        let address: Uri = address.parse().ok()?;
        let authority = address.authority()?.as_str();
        let host = authority.strip_suffix(":443").unwrap_or(authority).to_ascii_lowercase();
        let slack = address.scheme_str() == Some("https") && (host == "slack.com" || host.ends_with(".slack.com"));
        let base: Uri = self.0.base_url.parse().ok()?;
        let configured = address.scheme() == base.scheme() && address.authority() == base.authority();
        ((slack && !host.contains('@')) || configured).then_some(address)
    }
}

fn says(answer: &PlatformResponse, content_type: &str) -> bool {
    let header = answer.headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    header.is_some_and(|header| header.trim_start().to_ascii_lowercase().starts_with(content_type))
}

fn begins_a_page(body: &[u8]) -> bool {
    let begins = body.trim_ascii_start();
    [&b"<!doctype html"[..], b"<html"]
        .iter()
        .any(|tag| begins.get(..tag.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(tag)))
}

fn failure(body: &Value, status: u16) -> FileError {
    match json::string(body, "/error") {
        Some("missing_scope" | "no_permission") => FileError::MissingScope(SCOPE),
        Some("file_not_found" | "file_deleted") => FileError::Gone,
        Some(error) if is_name(error) => FileError::Unavailable(error.to_owned()),
        Some(_) => FileError::Unavailable("an error without a name".to_owned()),
        None => files::refused(status),
    }
}
