//! An app's way to the Web API: its address and its token, which goes into a header and is shown to nobody.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use turnlock_domain::event::Channel;

use crate::http::{PlatformError, PlatformHttp, PlatformRequest, PlatformResponse};
use crate::outbound::CALL_TIMEOUT;

#[derive(Clone)]
pub(super) struct Connection {
    account: String,
    token: SecretString,
    pub(super) base_url: String,
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
        let json = (http::header::CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
        let url = format!("{}/{method}", self.base_url);
        self.send(method, url, HeaderMap::from_iter([json]), arguments.to_string().into()).await
    }

    /// Reads what lies at `url`, which gets the token: whoever calls makes sure that it is Slack's.
    pub(super) async fn get(&self, method: &str, url: String) -> Result<PlatformResponse, PlatformError> {
        self.send(method, url, HeaderMap::new(), Bytes::new()).await
    }

    async fn send(
        &self,
        method: &str,
        url: String,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<PlatformResponse, PlatformError> {
        // A token that is no header value is a broken configuration: nothing was sent, and nobody can be asked.
        let mut token = HeaderValue::from_str(&format!("Bearer {}", self.token.expose_secret()))
            .map_err(|error| PlatformError::Unreachable(Box::new(error)))?;
        token.set_sensitive(true);
        headers.insert(http::header::AUTHORIZATION, token);
        let (channel, account) = (Channel::Slack, self.account.clone());
        let request = PlatformRequest { channel, account, method: method.to_owned(), url, headers, body };
        self.http.send(request, CALL_TIMEOUT).await
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("account", &self.account).finish_non_exhaustive()
    }
}
