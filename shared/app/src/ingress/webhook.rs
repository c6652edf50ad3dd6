//! The route of webhook sources: any producer that can sign. Producers read statuses, so every decision is one.

use serde_json::json;
use turnlock_channels::{Arrival, IngressRequest, IngressResponse, Normalised, webhook};
use turnlock_config::Allow;
use turnlock_domain::event::Channel;

use super::{Ingress, done, error, ignore, later, refuse, unknown_account};
use crate::admit::Admitted;

impl Ingress {
    /// Answers one request to the webhook source `account`.
    pub async fn webhook(&self, account: &str, request: IngressRequest) -> IngressResponse {
        let Some(route) = self.webhook.get(account) else { return unknown_account(Channel::Webhook) };
        match webhook::receive(&route.source, &request, self.clock.now(), &self.ids.next()) {
            Ok(Normalised::Event(arrival)) => self.webhook_event(*arrival).await,
            Ok(Normalised::AlbumPart(part)) => self.webhook_event(part.arrival).await,
            Ok(Normalised::Unreadable { reason, arrival }) => {
                ignore(Channel::Webhook, account, Some(&arrival.event.event_id), reason);
                done()
            }
            Ok(Normalised::Ignored { reason, event_id }) => {
                ignore(Channel::Webhook, account, event_id.as_ref(), reason);
                done()
            }
            Ok(Normalised::Chat { event_id, news }) => {
                self.chat_news((Channel::Webhook, account), &event_id, &news).await
            }
            Ok(Normalised::Answer(answer)) => answer,
            Err(refusal) => refuse(Channel::Webhook, account, &refusal),
        }
    }

    async fn webhook_event(&self, arrival: Arrival) -> IngressResponse {
        let event_id = arrival.event.event_id.clone();
        match self.admission.admit(arrival, &Allow::Everybody).await {
            Admitted::Accepted | Admitted::AlreadyAccepted => {
                IngressResponse::json(200, &json!({ "event_id": event_id }))
            }
            Admitted::Limited { retry_after } => later(429, "limited", retry_after),
            Admitted::Busy { retry_after } => later(503, "busy", retry_after),
            Admitted::Conflict => error(409, "conflict", "this delivery came before with another body"),
            Admitted::NotAllowed | Admitted::Noted => {
                error(403, "not_allowed", "this source may not talk to the agent")
            }
            Admitted::TooLarge { limit } => error(413, "too_large", &format!("the event is larger than {limit} bytes")),
            Admitted::Unsendable => error(422, "unsendable", "no queue takes this event"),
        }
    }
}
