//! The one small trait that platform clients share: a request goes out, a response comes back. `reqwest` implements it
//! for the real platforms, the in-process fakes for everything else.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderMap;
use turnlock_domain::event::Channel;

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
    /// The body, at most [`MAX_RESPONSE`] bytes.
    pub body: Bytes,
}

/// The most bytes of a platform's answer that are read.
pub const MAX_RESPONSE: usize = 1 << 20;

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
