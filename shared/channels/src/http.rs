//! The one small trait that platform clients share: a request goes out, a response comes back. `reqwest` implements it
//! for the real platforms, the in-process fakes for everything else.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderMap;
use turnlock_domain::event::Channel;

use crate::files::{DOWNLOAD, MAX_BYTES};

/// One request to a platform.
#[derive(Clone)]
pub struct PlatformRequest {
    /// Whose platform it is.
    pub channel: Channel,
    /// Which of our identities sends it.
    pub account: String,
    /// The method's name in logs and replays: `sendMessage`, `chat.postMessage`, `post` for a webhook.
    pub method: String,
    /// The address; it may hold a token, so it is never logged.
    pub url: String,
    /// Headers; they may hold a token.
    pub headers: HeaderMap,
    /// The body, JSON unless a header says otherwise. Empty = GET.
    pub body: Bytes,
}

/// A platform's answer.
#[derive(Debug, Clone)]
pub struct PlatformResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, at most [`MAX_RESPONSE`] bytes, or [`MAX_BYTES`] of a file.
    pub body: Bytes,
}

/// The most bytes of a platform's answer that are read.
pub const MAX_RESPONSE: usize = 1 << 20;

/// Why a lost answer was lost: it has more bytes than are read.
#[derive(Debug, thiserror::Error)]
#[error("the answer is larger than the limit")]
pub struct TooLarge;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum PlatformError {
    /// The request was not sent: nothing happened there, sending it again is safe.
    #[error("the platform could not be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The request may have been carried out: only the delivery ledger's policy decides what follows.
    #[error("the platform's answer was lost")]
    AnswerLost(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Sends requests to platforms.
#[async_trait]
pub trait PlatformHttp: Send + Sync {
    /// Sends `request` and waits at most `timeout` for the whole answer.
    ///
    /// # Errors
    /// [`PlatformError`]: whether the request can have been carried out is what the variants tell apart.
    async fn send(&self, request: PlatformRequest, timeout: Duration) -> Result<PlatformResponse, PlatformError>;
}

/// The seconds of a `Retry-After` header (RFC 9110, section 10.2.3); its date form is not used by the platforms.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// [`PlatformHttp`] over the network.
#[derive(Debug, Clone)]
pub struct ReqwestHttp(reqwest::Client);

impl ReqwestHttp {
    /// A client that follows no redirect: a token is for the configured address alone.
    ///
    /// # Errors
    /// When the TLS backend cannot be set up.
    pub fn new() -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(5))
            .user_agent(concat!("turnlock/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self(client))
    }
}

#[async_trait]
impl PlatformHttp for ReqwestHttp {
    async fn send(&self, request: PlatformRequest, timeout: Duration) -> Result<PlatformResponse, PlatformError> {
        let method = if request.body.is_empty() { http::Method::GET } else { http::Method::POST };
        let most = if request.method == DOWNLOAD { MAX_BYTES } else { MAX_RESPONSE };
        let sending = self.0.request(method, &request.url).headers(request.headers).body(request.body).timeout(timeout);
        let response = sending.send().await.map_err(platform_error)?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(PlatformResponse { status, headers, body: read_body(response, most).await? })
    }
}

/// An error as what the caller has to know, without the address, which may hold a token.
fn platform_error(error: reqwest::Error) -> PlatformError {
    let nothing_written = error.is_builder() || error.is_connect();
    let source = Box::new(error.without_url());
    if nothing_written { PlatformError::Unreachable(source) } else { PlatformError::AnswerLost(source) }
}

async fn read_body(mut response: reqwest::Response, most: usize) -> Result<Bytes, PlatformError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(platform_error)? {
        if body.len() + chunk.len() > most {
            return Err(PlatformError::AnswerLost(TooLarge.into()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Bytes::from(body))
}

#[cfg(test)]
mod tests;
