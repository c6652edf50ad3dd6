//! `POST /v1/messages`: admits a message, and waits for its final where the caller wants to.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use turnlock_channels::gateway::ApiMessage;
use turnlock_channels::{IngressRequest, IngressResponse, Refusal, cli, gateway};
use turnlock_domain::event::Channel;
use turnlock_domain::ids::EventId;
use turnlock_domain::session::DEFAULT_ACCOUNT;
use turnlock_store::StoreError;

use super::events::{EventView, Progress, done};
use super::{Api, Scope, number};
use crate::admit::Admitted;
use crate::ingress::{error, later, refuse};

/// The longest wait for a final, in seconds: less than gateways in front of us wait.
pub const MAX_WAIT: u64 = 25;

impl Api {
    pub(super) async fn post_message(
        &self,
        scope: &Scope,
        request: &IngressRequest,
    ) -> Result<IngressResponse, StoreError> {
        let wait = match number(&request.query, "wait", (0, MAX_WAIT), 0) {
            Ok(seconds) => Duration::from_secs(seconds),
            Err(answer) => return Ok(answer),
        };
        let message = match self.receive(scope, request) {
            Ok(message) => message,
            Err((channel, refusal)) => return Ok(refuse(channel, "", &refusal)),
        };
        let event = &message.arrival.event;
        Ok(match self.admission.admit_api(&message, scope.allow()).await {
            Admitted::Accepted if wait.is_zero() => IngressResponse::json(202, &queued(&message).json()),
            Admitted::Accepted | Admitted::AlreadyAccepted => {
                let view = self.wait(&event.event_id, wait).await?.unwrap_or_else(|| queued(&message));
                IngressResponse::json(if view.is_done() { 200 } else { 202 }, &view.json())
            }
            Admitted::Limited { retry_after } => later(429, "limited", retry_after),
            Admitted::Busy { retry_after } => later(503, "busy", retry_after),
            Admitted::Conflict => error(409, "conflict", "this Idempotency-Key was used with another body"),
            Admitted::NotAllowed | Admitted::Noted => error(403, "not_allowed", "this key may not use this session"),
            Admitted::TooLarge { limit } => {
                error(413, "too_large", &format!("the message is larger than {limit} bytes"))
            }
            Admitted::Unsendable => error(422, "unsendable", "no queue takes this message"),
        })
    }

    fn receive(&self, scope: &Scope, request: &IngressRequest) -> Result<ApiMessage, (Channel, Refusal)> {
        let (now, fresh) = (self.clock.now(), self.ids.next());
        let (channel, received) = match scope {
            Scope::Account { name, .. } => (Channel::Gateway, gateway::receive(name, request, now, &fresh)),
            Scope::Everything { channel: Channel::Cli } => (Channel::Cli, cli::receive(request, now, &fresh)),
            Scope::Everything { .. } => (Channel::Gateway, gateway::receive(DEFAULT_ACCOUNT, request, now, &fresh)),
        };
        received.map_err(|refusal| (channel, refusal))
    }

    /// The event as it is when its final is there, or when the time is over.
    async fn wait(&self, id: &EventId, wait: Duration) -> Result<Option<EventView>, StoreError> {
        let until = Instant::now() + wait;
        let mut pause = self.polling.shortest;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // The whole state, once: an event may be over without a final of its own.
                return self.event(id).await;
            }
            let shown = self.store.gateway_event(id).await?;
            if let Some(view) = shown.as_ref().and_then(done) {
                return Ok(Some(view));
            }
            // A caller who would wait for a person is told so, and one whose message another turn took up.
            if (shown.is_some_and(|event| event.asks()) || self.merged(id).await?.is_some())
                && let Some(view) = self.event(id).await?
                && matches!(view.progress, Progress::Asking { .. } | Progress::Merged(_))
            {
                return Ok(Some(view));
            }
            sleep(pause.min(left)).await;
            pause = self.polling.next(pause);
        }
    }
}

/// An event that was accepted a moment ago.
fn queued(message: &ApiMessage) -> EventView {
    let event = &message.arrival.event;
    EventView { event_id: event.event_id.clone(), session: event.session_key(), progress: Progress::Queued }
}
