//! The ways in: one function a route over [`IngressRequest`] and [`IngressResponse`], called by the Lambda functions and
//! by the one-process host alike.
//!
//! Each does the same four things: find the account, let the channel verify and normalise, let [`crate::admit`] decide,
//! and say the decision as an HTTP status. Not here: signatures and formats (channels), rates and queues (admission),
//! routing of paths (the caller).
//!
//! | status | when |
//! |---|---|
//! | 200 | accepted; or nothing to do; or the person was told in the chat |
//! | 400, 401, 405, 413 | the request is refused: a short word why, no secret, nothing of the body |
//! | 404 | no such account |
//! | 429, 503 | not accepted, with `Retry-After` |
//!
//! How it fails: a request is accepted only when a queue has its event; every other path ends in a status that makes the
//! sender try again, or in an answer.

mod config;
mod cron;
mod fresh;
mod news;
mod slack;
mod telegram;
mod webhook;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::json;
use turnlock_channels::{Arrival, IngressRequest, IngressResponse, Refusal};
use turnlock_clock::Clock;
use turnlock_config::{Allow, Config};
use turnlock_domain::event::Channel;
use turnlock_domain::ids::EventId;

pub use config::{ConfigMismatch, slack_routes, source, telegram_routes, webhook_routes};
pub use cron::{CronError, cron};
pub use fresh::FreshIds;

use crate::admit::{Admission, whole_seconds};
use crate::journal_line::{self, EventOutcome};

/// All routes of a process: a function that serves one channel has accounts of that channel only.
pub struct Ingress {
    /// Decides about events.
    pub admission: Arc<Admission>,
    /// The time that signatures are compared with.
    pub clock: Clock,
    /// Identities for webhooks that bring none.
    pub ids: Arc<FreshIds>,
    /// Telegram bots by account.
    pub telegram: BTreeMap<String, TelegramRoute>,
    /// Slack apps by account.
    pub slack: BTreeMap<String, SlackRoute>,
    /// Webhook sources by name.
    pub webhook: BTreeMap<String, WebhookRoute>,
}

impl Ingress {
    /// The routes of every account that `config` names.
    ///
    /// # Errors
    /// [`ConfigMismatch`] for a value that the configuration let pass and the channel cannot use.
    pub fn from_config(
        config: &Config,
        admission: Arc<Admission>,
        clock: Clock,
        ids: Arc<FreshIds>,
    ) -> Result<Self, ConfigMismatch> {
        Ok(Self {
            admission,
            clock,
            ids,
            telegram: telegram_routes(config),
            slack: slack_routes(config),
            webhook: webhook_routes(config)?,
        })
    }

    /// Answers one request: `/telegram/{bot}`, `/slack/{app}` or `/webhook/{source}`.
    pub async fn route(&self, request: IngressRequest) -> IngressResponse {
        let path = request.path.clone();
        match path.trim_start_matches('/').split_once('/') {
            Some(("telegram", account)) => self.telegram(account, request).await,
            Some(("slack", account)) => self.slack(account, request).await,
            Some(("webhook", account)) => self.webhook(account, request).await,
            _ => error(404, "not_found", "there is nothing here"),
        }
    }
}

/// What a Telegram bot's route needs.
#[derive(Debug, Clone)]
pub struct TelegramRoute {
    /// The bot.
    pub bot: turnlock_channels::telegram::Bot,
    /// What Telegram sends with every update; without it the route is closed.
    pub secret_token: Option<SecretString>,
    /// Who may talk to it.
    pub allow: Allow,
}

/// What a Slack app's route needs.
#[derive(Debug, Clone)]
pub struct SlackRoute {
    /// The app.
    pub app: turnlock_channels::slack::App,
    /// What Slack signs with; without it the route is closed.
    pub signing_secret: Option<SecretString>,
    /// Who may talk to it.
    pub allow: Allow,
}

/// What a webhook source's route needs.
#[derive(Debug, Clone)]
pub struct WebhookRoute {
    /// The source; its signature is its permission.
    pub source: turnlock_channels::webhook::Source,
}

/// The arrival with the request's trace context. Platforms send none, but what stands in front of us may.
fn traced(mut arrival: Arrival, request: &IngressRequest) -> Arrival {
    arrival.event.trace = request.trace();
    arrival
}

/// The line and the answer of a request that does not come in.
pub(crate) fn refuse(channel: Channel, account: &str, refusal: &Refusal) -> IngressResponse {
    unnamed(channel, account, EventOutcome::Refused, refusal.reason());
    refusal.response()
}

/// The line of a request that is no event for us.
fn ignore(channel: Channel, account: &str, event_id: Option<&EventId>, reason: &str) {
    match event_id {
        Some(event_id) => journal_line::event(event_id, None, channel, EventOutcome::Ignored, reason, 1),
        None => unnamed(channel, account, EventOutcome::Ignored, reason),
    }
}

/// The line of something that has no identity. Whoever sends without a valid signature chooses nothing that we log.
fn unnamed(channel: Channel, account: &str, outcome: EventOutcome, reason: &str) {
    let (channel, outcome) = (channel.as_str(), outcome.as_str());
    tracing::info!(target: journal_line::EVENT, event_id = "", session = "", turn = "", channel, account, outcome, reason,
        attempts = 1_u32, "a request to {channel}/{account} was {outcome}: {reason}");
}

/// There is no such account. Its name comes from outside, so it is not logged.
fn unknown_account(channel: Channel) -> IngressResponse {
    unnamed(channel, "", EventOutcome::Refused, "unknown_account");
    error(404, "not_found", "there is no such account here")
}

/// A status with a word for programs and a sentence for people.
pub(crate) fn error(status: u16, word: &str, sentence: &str) -> IngressResponse {
    IngressResponse::json(status, &json!({ "error": word, "message": sentence }))
}

/// A status that asks to come again.
pub(crate) fn later(status: u16, word: &str, retry_after: Duration) -> IngressResponse {
    let seconds = whole_seconds(retry_after).max(1);
    error(status, word, &format!("try again in {seconds} s")).with_header("retry-after", seconds.to_string())
}

/// Accepted, or nothing to do: platforms want no more than this.
fn done() -> IngressResponse {
    IngressResponse::empty(200)
}
