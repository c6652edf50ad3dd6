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
            asked: seen.splitn(3, '.').nth(2).map(str::to_owned),
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
    /// The approval that the client was shown last.
    asked: Option<String>,
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
        if let Some(into) = self.api.merged(&self.id).await? {
            self.ended = true;
            return Ok(Some(event("merged", FINAL, &json!({ "merged_into": into }))));
        }
        if let Some(shown) = shown {
            let news = if shown.asks() { self.card(&shown).await? } else { self.frame(shown) };
            if news.is_some() {
                return Ok(news);
            }
        }
        if self.said_at.elapsed() < KEEP_ALIVE {
            return Ok(None);
        }
        // An event may be over without a final of its own: that is looked for as seldom as there is something to say.
        if let Some(EventView { progress: Progress::Done(ending), .. }) = self.api.event(&self.id).await? {
            return Ok(Some(self.end(&ending)));
        }
        Ok(Some(Bytes::from_static(b": waiting\n\n")))
    }

    fn frame(&mut self, shown: GatewayEvent) -> Option<Bytes> {
        let frame = shown.frame.filter(|frame| self.seen < Some(frame.revision))?;
        self.seen = Some(frame.revision);
        Some(event("frame", &place(frame.revision), &message(&frame.text, MessageKind::Streaming)))
    }

    /// The card of what the turn waits for, once. Cards of one turn may stand in the same place, so its id says which one it
    /// was; what is decided by now is not asked of anybody.
    async fn card(&mut self, shown: &GatewayEvent) -> Result<Option<Bytes>, StoreError> {
        let ask = self.api.asked(&shown.session, &self.id).await?.filter(|ask| self.asked.as_ref() != Some(&ask.id));
        let Progress::Asking { approval, card } = self.api.asking(ask).await? else { return Ok(None) };
        let revision = shown.frame.as_ref().map(|frame| frame.revision).unwrap_or_default();
        self.seen = self.seen.max(Some(revision));
        self.asked = Some(approval.clone());
        let mut said = message(&card, MessageKind::ApprovalRequest);
        said["approval"] = json!(approval);
        Ok(Some(event("approval", &format!("{}.{approval}", place(revision)), &said)))
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

/// The id of what stands in this place.
fn place(revision: Revision) -> String {
    format!("{}.{}", revision.fence, revision.sequence)
}

/// The place that an id begins with.
fn revision(id: &str) -> Option<Revision> {
    let mut parts = id.splitn(3, '.');
    Some(Revision { fence: parts.next()?.parse().ok()?, sequence: parts.next()?.parse().ok()? })
}
