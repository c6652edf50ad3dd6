//! Slack's route: Events API, slash commands and interactivity of one app. Slack waits three seconds for the answer and
//! delivers at most three times more, so verifying, the rate and the send share 2.5 seconds, and the last delivery that
//! comes to nothing is answered in the chat.
//!
//! Before the answer come the rate's update (two, where messages of a session follow one another faster than the rate
//! refills), the queue's depth every ten seconds, and the send; for whoever is on no list one read of the pairings before
//! them, once a minute. Nothing follows the answer.

use std::time::Duration;

use tokio::time::timeout;
use turnlock_channels::{Arrival, IngressRequest, IngressResponse, Normalised, slack};
use turnlock_domain::event::Channel;

use super::{Ingress, SlackRoute, done, error, ignore, later, refuse, traced, unknown_account};
use crate::admit::{Admitted, BUSY_RETRY};

/// How long after its arrival a request is answered at the latest.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_millis(2500);
/// What is left for a notice when that time is over.
const NOTICE_WITHIN: Duration = Duration::from_millis(400);
/// The header that counts Slack's own repetitions.
const RETRY_NUMBER: &str = "x-slack-retry-num";
/// Slack's last repetition.
const LAST_RETRY: u32 = 3;

impl Ingress {
    /// Answers one request of Slack's to the app `account`.
    pub async fn slack(&self, account: &str, request: IngressRequest) -> IngressResponse {
        let Some(route) = self.slack.get(account) else { return unknown_account(Channel::Slack) };
        match slack::receive(&route.app, route.signing_secret.as_ref(), &request, self.clock.now()) {
            Ok(Normalised::Event(arrival)) => self.slack_event(route, *arrival, &request).await,
            // Several files of a Slack message come in one event: a part would be one, too.
            Ok(Normalised::AlbumPart(part)) => self.slack_event(route, part.arrival, &request).await,
            Ok(Normalised::Unreadable { reason, arrival }) => {
                // Answering is not worth a second delivery: a sentence that comes too late is dropped.
                let answering = self.admission.unreadable(&arrival, reason, &route.allow);
                if timeout(ANSWER_WITHIN, answering).await.is_err() {
                    tracing::warn!(event_id = %arrival.event.event_id, "an answer to an unreadable message was dropped");
                }
                done()
            }
            Ok(Normalised::Ignored { reason, event_id }) => {
                if reason == slack::UNINSTALLED {
                    tracing::warn!(account, "Slack says that the app {account} was removed or lost a token");
                }
                ignore(Channel::Slack, account, event_id.as_ref(), reason);
                done()
            }
            Ok(Normalised::Chat { event_id, news }) => {
                self.chat_news((Channel::Slack, account), &event_id, &news).await
            }
            Ok(Normalised::Answer(answer)) => answer,
            Err(refusal) => refuse(Channel::Slack, account, &refusal),
        }
    }

    async fn slack_event(&self, route: &SlackRoute, arrival: Arrival, request: &IngressRequest) -> IngressResponse {
        let retries = request.header(RETRY_NUMBER).and_then(|number| number.parse().ok()).unwrap_or(0);
        let arrival = traced(arrival, request);
        let event = arrival.event.clone();
        // Cut off, the send may still have happened: the next delivery is then swallowed by the queue.
        let admitted = timeout(ANSWER_WITHIN, self.admission.admit(arrival, &route.allow)).await;
        match admitted.unwrap_or(Admitted::Busy { retry_after: BUSY_RETRY }) {
            Admitted::Busy { retry_after } if retries < LAST_RETRY => later(503, "busy", retry_after),
            Admitted::Busy { .. } => {
                if timeout(NOTICE_WITHIN, self.admission.say_busy(&event)).await.is_err() {
                    tracing::error!(event_id = %event.event_id, "event {} was lost without a word", event.event_id);
                }
                done()
            }
            Admitted::Conflict => error(409, "conflict", "this event came before with another body"),
            Admitted::Accepted
            | Admitted::AlreadyAccepted
            | Admitted::Limited { .. }
            | Admitted::NotAllowed
            | Admitted::Noted
            | Admitted::TooLarge { .. }
            | Admitted::Unsendable => done(),
        }
    }
}
