//! Replies to a webhook's source: the outbound event as JSON in a `POST`, signed by Standard Webhooks.
//!
//! The event's id is the `webhook-id`: a receiver that keeps to the rule recognises a repetition by it
//! (standardwebhooks.com, "Idempotency"), so a lost answer is sent again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use secrecy::SecretString;
use turnlock_clock::Clock;
use turnlock_domain::event::{Channel, ContentBlock, ContentType, OutboundEvent};

use super::{Source, Url, sign_standard, verify};
use crate::http::{PlatformHttp, PlatformRequest, PlatformResponse};
use crate::outbound::{CALL_TIMEOUT, Part, SendError};

/// How long to wait when a 429 does not say.
const DEFAULT_WAIT: Duration = Duration::from_secs(5);

/// The client of one webhook source.
#[derive(Clone)]
pub struct Client {
    account: String,
    secret: SecretString,
    reply_to: Url,
    clock: Clock,
    http: Arc<dyn PlatformHttp>,
}

impl Client {
    /// A client for `source`; none where the source says nowhere to reply to.
    #[must_use]
    pub fn new(http: Arc<dyn PlatformHttp>, clock: Clock, source: &Source) -> Option<Self> {
        Some(Self {
            account: source.name.clone(),
            secret: verify::reply_secret(&source.verify).clone(),
            reply_to: source.reply_to.clone()?,
            clock,
            http,
        })
    }

    /// The source's name.
    #[must_use]
    pub fn account(&self) -> &str {
        &self.account
    }

    /// Posts `event` with `part` as its text. There is no message at the other side that could be edited: `edit` posts
    /// too. Returns the event's id.
    ///
    /// # Errors
    /// [`SendError`], by what the caller must do.
    pub async fn send(&self, event: &OutboundEvent, part: &Part, _edit: Option<&str>) -> Result<String, SendError> {
        let request = self.request(event, &part.text)?;
        match self.http.send(request, CALL_TIMEOUT).await {
            Ok(response) => read(&response).map(|()| event.event_id.clone()),
            Err(error) => Err(SendError::Transient(error.to_string())),
        }
    }

    fn request(&self, event: &OutboundEvent, part: &str) -> Result<PlatformRequest, SendError> {
        let rejected = |code: &str| SendError::Rejected { code: code.to_owned() };
        let body = serde_json::to_vec(&with_text(event, part)).map_err(|_| rejected("unserialisable"))?;
        let mut headers: HeaderMap = sign_standard(&self.secret, &event.event_id, self.clock.now(), &body)
            .map_err(|_| rejected("unsignable"))?;
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(PlatformRequest {
            channel: Channel::Webhook,
            account: self.account.clone(),
            method: "post".to_owned(),
            url: self.reply_to.to_string(),
            headers,
            body: Bytes::from(body),
        })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("webhook::Client").field("account", &self.account).finish_non_exhaustive()
    }
}

/// The event with `part` in place of its text blocks.
fn with_text(event: &OutboundEvent, part: &str) -> OutboundEvent {
    let mut event = event.clone();
    event.content.retain(|block| block.kind != ContentType::Text);
    event.content.insert(0, ContentBlock::text(part));
    event
}

fn read(response: &PlatformResponse) -> Result<(), SendError> {
    match response.status {
        200..=299 => Ok(()),
        410 => Err(SendError::ChatGone { reason: "410 gone".to_owned() }),
        413 => Err(SendError::TooLong),
        429 => Err(SendError::RetryAfter(crate::http::retry_after(&response.headers).unwrap_or(DEFAULT_WAIT))),
        408 | 500..=599 => Err(SendError::Transient(format!("status {}", response.status))),
        // Redirects are not followed: the address was configured, another one was not.
        status => Err(SendError::Rejected { code: format!("status {status}") }),
    }
}
