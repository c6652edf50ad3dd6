//! `GET /v1/events/{id}/stream`: server-sent events (WHATWG HTML, "Server-sent events"). A `frame` carries the whole text
//! so far, `approval` a card that a person has to answer, `final` the answer, `merged` the event whose turn took this one
//! up; then the stream ends. The id of each is its place in the turn's output, so a client that
//! comes back with `Last-Event-ID` is shown only what is newer; one that has seen the final is told to stop (204).
//!
//! How it fails: when the table cannot be asked the stream ends, and the client comes back by itself.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use turnlock_channels::{IngressRequest, IngressResponse};
use turnlock_domain::event::{MessageKind, Revision};
use turnlock_domain::ids::EventId;
use turnlock_store::StoreError;
use turnlock_store::gateway::GatewayEvent;

use super::events::{Ending, EventView, Progress, done, message};
use super::{Api, Scope, not_found};
use crate::admit::chain;

/// How long a stream says nothing at the most: proxies close silent connections.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// When a client comes back, in milliseconds.
const RECONNECT_MS: u32 = 1000;
/// The id of a final.
const FINAL: &str = "final";

impl Api {
    /// The stream of an event, or the answer that there is none.
    pub(super) async fn stream(
        &self,
        scope: &Scope,
        id: &EventId,
        request: &IngressRequest,
    ) -> Result<Result<BoxStream<'static, Bytes>, IngressResponse>, StoreError> {
        if !self.event(id).await?.is_some_and(|event| scope.sees(&event.session)) {
            return Ok(Err(not_found()));
        }
        let seen = request.header("last-event-id").unwrap_or_default();
        if seen == FINAL {
            return Ok(Err(IngressResponse::empty(204)));
        }
        let now = Instant::now();
        let feed = Feed {
            api: self.reader(),
            id: id.clone(),
            seen: revision(seen),
            until: self.stream_limit.map(|limit| now + limit),
            said_at: now,
            pause: self.polling.shortest,
            ended: false,
        };
        let hello = Bytes::from(format!("retry: {RECONNECT_MS}\n\n"));
        Ok(Ok(stream::once(async move { hello }).chain(stream::unfold(feed, Feed::next)).boxed()))
    }

    /// What outlives the request.
    fn reader(&self) -> Self {
        Self {
            store: self.store.clone(),
            admission: std::sync::Arc::clone(&self.admission),
            clock: self.clock.clone(),
            ids: std::sync::Arc::clone(&self.ids),
            access: self.access.clone(),
            policy: self.policy.clone(),
            polling: self.polling,
            stream_limit: self.stream_limit,
        }
    }
}

/// A stream in progress.
struct Feed {
    api: Api,
    id: EventId,
    /// The newest frame that the client has.
    seen: Option<Revision>,
    until: Option<Instant>,
    said_at: Instant,
    pause: Duration,
    ended: bool,
}

impl Feed {
    /// What is said next; `None` ends the stream.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        while !self.ended && self.until.is_none_or(|until| Instant::now() < until) {
            match self.news().await {
                Ok(Some(news)) => {
                    self.said_at = Instant::now();
                    self.pause = self.api.polling.shortest;
                    return Some((news, self));
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(event_id = %self.id, error = %chain(&error), "the stream of event {} ends", self.id);
                    return None;
                }
            }
            sleep(self.pause).await;
            self.pause = self.api.polling.next(self.pause);
        }
        None
    }

    async fn news(&mut self) -> Result<Option<Bytes>, StoreError> {
        let shown = self.api.store.gateway_event(&self.id).await?;
        if let Some(EventView { progress: Progress::Done(ending), .. }) = shown.as_ref().and_then(done) {
            return Ok(Some(self.end(&ending)));
        }
        let asks = shown.as_ref().is_some_and(GatewayEvent::asks);
        if let Some(frame) = shown.and_then(|event| event.frame).filter(|frame| self.seen < Some(frame.revision)) {
            self.seen = Some(frame.revision);
            let id = format!("{}.{}", frame.revision.fence, frame.revision.sequence);
            if !asks {
                return Ok(Some(event("frame", &id, &message(&frame.text, MessageKind::Streaming))));
            }
            // What is decided by now is not asked of anybody.
            if let Some(EventView { progress: Progress::Asking { approval, .. }, .. }) =
                self.api.event(&self.id).await?
            {
                let mut card = message(&frame.text, MessageKind::ApprovalRequest);
                card["approval"] = json!(approval);
                return Ok(Some(event("approval", &id, &card)));
            }
        }
        if self.said_at.elapsed() < KEEP_ALIVE {
            return Ok(None);
        }
        // An event may be over without a final of its own: that is looked for as seldom as there is something to say.
        match self.api.event(&self.id).await? {
            Some(EventView { progress: Progress::Done(ending), .. }) => return Ok(Some(self.end(&ending))),
            Some(EventView { progress: Progress::Merged(into), .. }) => {
                self.ended = true;
                return Ok(Some(event("merged", FINAL, &json!({ "merged_into": into }))));
            }
            Some(_) | None => {}
        }
        Ok(Some(Bytes::from_static(b": waiting\n\n")))
    }

    fn end(&mut self, ending: &Ending) -> Bytes {
        self.ended = true;
        event("final", FINAL, &message(&ending.text, ending.kind))
    }
}

/// One event as it is sent; JSON has no line breaks of its own.
fn event(name: &str, id: &str, data: &Value) -> Bytes {
    Bytes::from(format!("id: {id}\nevent: {name}\ndata: {data}\n\n"))
}

fn revision(id: &str) -> Option<Revision> {
    let (fence, sequence) = id.split_once('.')?;
    Some(Revision { fence: fence.parse().ok()?, sequence: sequence.parse().ok()? })
}
