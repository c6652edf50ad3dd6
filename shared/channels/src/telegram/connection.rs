//! A bot's way to the Bot API: its address and its token, which stands in every address and is shown to nobody.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use turnlock_domain::event::Channel;

use crate::files::DOWNLOAD;
use crate::http::{PlatformError, PlatformHttp, PlatformRequest, PlatformResponse};
use crate::outbound::CALL_TIMEOUT;

#[derive(Clone)]
pub(super) struct Connection {
    account: String,
    token: SecretString,
    base_url: String,
    http: Arc<dyn PlatformHttp>,
}

impl Connection {
    pub(super) fn new(http: Arc<dyn PlatformHttp>, account: &str, token: SecretString, base_url: &str) -> Self {
        Self { account: account.to_owned(), token, base_url: base_url.trim_end_matches('/').to_owned(), http }
    }

    pub(super) fn account(&self) -> &str {
        &self.account
    }

    /// Calls a method of the API.
    pub(super) async fn call(&self, method: &str, arguments: &Value) -> Result<PlatformResponse, PlatformError> {
        let json = (http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.send(method, "bot", method, HeaderMap::from_iter([json]), arguments.to_string().into()).await
    }

    /// Reads the file that lies at `path`.
    pub(super) async fn download(&self, path: &str) -> Result<PlatformResponse, PlatformError> {
        self.send(DOWNLOAD, "file/bot", path, HeaderMap::new(), Bytes::new()).await
    }

    async fn send(
        &self,
        method: &str,
        before_token: &str,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<PlatformResponse, PlatformError> {
        let request = PlatformRequest {
            channel: Channel::Telegram,
            account: self.account.clone(),
            method: method.to_owned(),
            url: format!("{}/{before_token}{}/{path}", self.base_url, self.token.expose_secret()),
            headers,
            body,
        };
        self.http.send(request, CALL_TIMEOUT).await
    }

    /// `text` without the token, should it repeat it.
    pub(super) fn without_token(&self, text: &str) -> String {
        text.replace(self.token.expose_secret(), "…")
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("account", &self.account).finish_non_exhaustive()
    }
}
