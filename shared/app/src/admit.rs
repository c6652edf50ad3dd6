//! Admission: who may talk, how much, and the send to the queues. Whoever is not let in gets one clear answer and one
//! log line; nobody is ever told that an event was accepted which no queue has.
//!
//! Not here: signatures and parsing (channels), HTTP statuses ([`crate::ingress`], [`crate::api`]), the turn itself.
//!
//! The four layers, in the order in which an event meets them: the allow-list, the session's rate together with the
//! number of waiting events, the size, the queue's own room and publish timeout. Commands are exempt from rate and
//! depth: a stop must get through when everything else is full. If the table cannot be asked for the rate, or the queue
//! for its depth, the event passes: both guard against excess, and neither may lose a message. A message of a chat that
//! may have moved does not: without the table nobody knows where it belongs.
//!
//! Where a channel steers, a message goes to the control queue as well, once the inbound queue has it: the turn that runs
//! may take up a text, and a text behind what is none waits behind it. The copy is a convenience: it is sent when the event
//! is accepted already, for a moment only, and what happens to it is not the event's business.
//!
//! At least once: a platform that got no answer delivers again; the queue swallows the second copy for five minutes, the
//! event's marker for as long as it lives.

mod album;
mod depth;
mod entry;
mod moved;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use turnlock_channels::Arrival;
use turnlock_channels::gateway::ApiMessage;
use turnlock_clock::Clock;
use turnlock_config::Allow;
use turnlock_domain::envelope::{Command, Envelope};
use turnlock_domain::event::{Channel, ContentType, InboundEvent, MessageKind, OutboundEvent};
use turnlock_domain::rate::Rate;
use turnlock_domain::session::SessionKey;
use turnlock_domain::text::is_blank;
use turnlock_queue::{MAX_BYTES, Queue, SendError};
use turnlock_store::admission::Admitted as Stored;
use turnlock_store::buckets::Taken;
use turnlock_store::steer::MAX_TEXT;
use turnlock_store::{Store, StoreError};

use crate::journal_line::{self, EventOutcome};
use crate::pairing::Pairings;
use crate::send;
use crate::words::Language;

pub use depth::{DEPTH_INTERVAL, Depth};

use entry::permits;

/// When to come again where nothing better is known.
pub const BUSY_RETRY: Duration = Duration::from_secs(5);
/// How long an event waits for each thing that is asked about it: a platform gives us a few seconds in all.
const HELD_WITHIN: Duration = Duration::from_secs(1);
/// How long the copy of an event for the turn that runs may take: whoever sent the event still waits for an answer.
const COPY_WITHIN: Duration = Duration::from_millis(300);
/// The most bytes of an event: the queue's limit, less what travels beside the body.
const MAX_EVENT: usize = MAX_BYTES - 1024;

/// What admission needs. One a process.
pub struct Admission {
    /// Rate buckets, and the admission items of API events.
    pub store: Store,
    /// Events for turns.
    pub inbound: Arc<dyn Queue>,
    /// Commands that must not wait behind queued events.
    pub control: Arc<dyn Queue>,
    /// Notices.
    pub outbound: Arc<dyn Queue>,
    /// The rate of a session.
    pub rate: Rate,
    /// How many events may wait.
    pub queue_limit: u64,
    /// The channels whose messages reach the turn that runs.
    pub steered: BTreeSet<Channel>,
    /// The language of notices.
    pub language: Language,
    /// The time.
    pub clock: Clock,
    /// How many events waited when the queue was last asked.
    pub depth: Depth,
    /// Who was found paired lately.
    pub pairings: Pairings,
}

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "whoever sent the event waits for this answer"]
pub enum Admitted {
    /// A queue has it.
    Accepted,
    /// A queue has had it before (API events; elsewhere the queue itself swallows the copy).
    AlreadyAccepted,
    /// Its session is over its rate.
    Limited {
        /// When the next one passes.
        retry_after: Duration,
    },
    /// Too much waits, or a queue could not be reached. It was not accepted as far as anybody knows.
    Busy {
        /// When another attempt is worth making.
        retry_after: Duration,
    },
    /// The same idempotency key came with another body.
    Conflict,
    /// Neither its sender nor its chat is on the list, and no pairing let them in.
    NotAllowed,
    /// It is no event of its own: the code of a pairing, or a part of an album that waits for the others.
    Noted,
    /// It is larger than a queue takes.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// No queue takes it, however often it is sent.
    Unsendable,
}

/// Where whoever is not let in reads why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// In the chat.
    InChat,
    /// In the HTTP status.
    ByStatus,
}

impl Answers {
    fn of(channel: Channel) -> Self {
        match channel {
            Channel::Telegram | Channel::Slack => Self::InChat,
            Channel::Webhook | Channel::Gateway | Channel::Cron | Channel::Cli | Channel::Unknown => Self::ByStatus,
        }
    }
}

/// Why an event may not pass now.
enum Held {
    Limited { retry_after: Duration, notice: bool },
    Busy { retry_after: Duration },
}

impl Admission {
    /// Admits what a platform or a webhook delivered. Chats are told in words what happened to the event; a webhook's
    /// producer reads it from the status.
    pub async fn admit(&self, arrival: Arrival, allow: &Allow) -> Admitted {
        let event = &arrival.event;
        // The two questions to the table are asked at the same time, where the second is sure to be asked.
        let known = arrival.command.is_none() && permits(event, None, allow);
        let held = async { if known { self.held(event).await } else { None } };
        let (former, mut held) = tokio::join!(self.former(&arrival), held);
        let Ok(former) = former else { return self.busy(event, BUSY_RETRY) };
        if let Err(refused) = self.entry(event, former.as_ref(), allow).await {
            return refused;
        }
        if arrival.command.is_none() && !known {
            held = self.held(event).await;
        }
        if let Some(held) = held {
            return self.hold(event, held).await;
        }
        self.hand_over(arrival, former, false).await
    }

    /// Sends what nothing holds back any more.
    async fn hand_over(&self, arrival: Arrival, former: Option<SessionKey>, album: bool) -> Admitted {
        let envelope = Envelope { album, ..self.envelope(arrival, former) };
        if !fits(&envelope) {
            return self.too_large(&envelope.event).await;
        }
        self.accept(&envelope).await
    }

    /// Admits an API client's message. Its admission item is written before it is sent, so that the same key with
    /// another body is a conflict also while the first is on its way.
    pub async fn admit_api(&self, message: &ApiMessage, allow: &Allow) -> Admitted {
        let event = &message.arrival.event;
        if let Err(refused) = self.entry(event, None, allow).await {
            return refused;
        }
        let envelope = self.envelope((*message.arrival).clone(), None);
        if !fits(&envelope) {
            return self.too_large(event).await;
        }
        if envelope.command.is_none()
            && let Some(held) = self.held(event).await
        {
            // A client that asks again for what was accepted is not told that it is too fast.
            return match self.known(message).await {
                Some(known) => told(event, known),
                None => self.hold(event, held).await,
            };
        }
        let now = self.clock.now_ms();
        match self.store.admit(&event.event_id, &message.digest, &event.session_key(), now).await {
            Ok(Stored::New | Stored::Again { queued: false }) => self.accept_api(&envelope).await,
            Ok(Stored::Again { queued: true }) => Admitted::AlreadyAccepted,
            Ok(Stored::Conflict) => told(event, Admitted::Conflict),
            Err(error) => {
                report(event, &error, "the admission was not written");
                Admitted::Busy { retry_after: BUSY_RETRY }
            }
        }
    }

    /// Answers a message that holds nothing a turn could work on. It counts against the rate like any other.
    pub async fn unreadable(&self, arrival: &Arrival, reason: &str, allow: &Allow) {
        let event = &arrival.event;
        let former = self.former(arrival).await.unwrap_or_default();
        if self.entry(event, former.as_ref(), allow).await.is_err() {
            return;
        }
        match self.rate(event).await {
            Some(held) => drop(self.hold(event, held).await),
            None => {
                self.notice(event, "unreadable", self.language.nothing_to_read()).await;
                line(event, EventOutcome::Ignored, reason);
            }
        }
    }

    /// Tells a chat that its event was not taken, after the platform's last attempt.
    pub async fn say_busy(&self, event: &InboundEvent) {
        self.notice(event, "busy", self.language.busy()).await;
        line(event, EventOutcome::Limited, "queue_full");
    }

    /// The arrival with what we vouch for. In a chat that moved the conversation goes on where it was; threads have
    /// sessions of their own, and there are none that moved.
    fn envelope(&self, arrival: Arrival, former_chat: Option<SessionKey>) -> Envelope {
        let Arrival { mut event, position, command, unattended, .. } = arrival;
        if event.session_key_override.is_none() {
            event.session_key_override.clone_from(&former_chat);
        }
        Envelope {
            event,
            accepted_at: self.clock.now_ms(),
            position,
            command,
            unattended,
            redrive: 0,
            former_chat,
            album: false,
        }
    }

    /// Asks for the rate and the depth at the same time.
    async fn held(&self, event: &InboundEvent) -> Option<Held> {
        let asked =
            async { tokio::join!(self.rate(event), self.depth.full(&*self.inbound, self.queue_limit, &self.clock)) };
        let Ok((limited, full)) = timeout(HELD_WITHIN, asked).await else {
            tracing::warn!(event_id = %event.event_id, "rate and depth are not known in time: event {} passes", event.event_id);
            return None;
        };
        limited.or(full.then_some(Held::Busy { retry_after: DEPTH_INTERVAL }))
    }

    async fn rate(&self, event: &InboundEvent) -> Option<Held> {
        let now = self.clock.now_ms();
        match self.store.take(&event.session_key(), &event.event_id, self.rate, now).await {
            Ok(Taken::Allowed | Taken::AllowedBefore) => None,
            Ok(Taken::Limited { retry_after, notice }) => Some(Held::Limited { retry_after, notice }),
            Err(error) => {
                report(event, &error, "the rate could not be asked for: the event passes");
                None
            }
        }
    }

    async fn hold(&self, event: &InboundEvent, held: Held) -> Admitted {
        match held {
            Held::Busy { retry_after } => self.busy(event, retry_after),
            Held::Limited { retry_after, notice } => {
                if notice && Answers::of(event.channel) == Answers::InChat {
                    self.notice(event, "limited", self.language.limited(whole_seconds(retry_after))).await;
                }
                line(event, EventOutcome::Limited, "rate");
                Admitted::Limited { retry_after }
            }
        }
    }

    /// A chat platform tries again, so this is not the event's end there; whoever reads the status has read it.
    fn busy(&self, event: &InboundEvent, retry_after: Duration) -> Admitted {
        match Answers::of(event.channel) {
            Answers::InChat => {
                tracing::warn!(event_id = %event.event_id, "event {} was not taken: too much waits", event.event_id);
            }
            Answers::ByStatus => line(event, EventOutcome::Limited, "queue_full"),
        }
        Admitted::Busy { retry_after }
    }

    async fn too_large(&self, event: &InboundEvent) -> Admitted {
        if Answers::of(event.channel) == Answers::InChat {
            self.notice(event, "too_large", self.language.too_large()).await;
        }
        line(event, EventOutcome::Refused, "too_large");
        Admitted::TooLarge { limit: MAX_EVENT }
    }

    /// What an API client that is held back has asked for before, if a queue has it.
    async fn known(&self, message: &ApiMessage) -> Option<Admitted> {
        if !message.keyed {
            return None;
        }
        let admission = self.store.admission(&message.arrival.event.event_id).await.ok().flatten()?;
        match (admission.digest == message.digest, admission.state) {
            (false, _) => Some(Admitted::Conflict),
            (true, turnlock_store::admission::AdmissionState::Queued) => Some(Admitted::AlreadyAccepted),
            (true, turnlock_store::admission::AdmissionState::Admitted) => None,
        }
    }

    async fn accept_api(&self, envelope: &Envelope) -> Admitted {
        let accepted = self.accept(envelope).await;
        if accepted == Admitted::Accepted
            && let Err(error) = self.store.mark_queued(&envelope.event.event_id).await
        {
            // It is queued all the same; a repetition sends it again, and the queue or the marker recognises it.
            report(&envelope.event, &error, "the event was not noted as queued");
        }
        accepted
    }

    async fn accept(&self, envelope: &Envelope) -> Admitted {
        match self.send(envelope).await {
            Ok(()) => {
                accepted(&envelope.event);
                if envelope.command.is_none() && self.steered.contains(&envelope.event.channel) {
                    self.send_copy(envelope).await;
                }
                Admitted::Accepted
            }
            Err(SendError::TooLarge { .. }) => self.too_large(&envelope.event).await,
            Err(error) => self.not_sent(&envelope.event, &error),
        }
    }

    /// A new conversation is two things: its place in the queue, and a stop for what stands before it. The place comes
    /// first: a stop without it would end a turn for nothing.
    async fn send(&self, envelope: &Envelope) -> Result<(), SendError> {
        match envelope.command {
            None => send::inbound(&*self.inbound, envelope).await,
            // Ingress makes no unknown command; control hands it back until somebody knows it.
            Some(
                Command::Stop
                | Command::Status
                | Command::Help
                | Command::Tap
                | Command::Approve
                | Command::Deny
                | Command::Steer
                | Command::Unknown,
            ) => send::control(&*self.control, envelope).await,
            Some(Command::New) => {
                send::inbound(&*self.inbound, envelope).await?;
                send::control(&*self.control, envelope).await
            }
        }
    }

    /// Sends the copy for the turn that runs: without content where that turn cannot take it up, for its place counts then.
    async fn send_copy(&self, envelope: &Envelope) {
        let mut copy = Envelope { command: Some(Command::Steer), ..envelope.clone() };
        if !may_steer(envelope) {
            copy.event.content.clear();
        }
        let event_id = &copy.event.event_id;
        match timeout(COPY_WITHIN, send::control(&*self.control, &copy)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%event_id, %error, "event {event_id} waits for its own turn: its copy was not sent");
            }
            Err(_) => {
                tracing::warn!(%event_id, "event {event_id} waits for its own turn: its copy was not sent in time")
            }
        }
    }

    fn not_sent(&self, event: &InboundEvent, error: &SendError) -> Admitted {
        tracing::warn!(event_id = %event.event_id, %error, "event {} was not sent to its queue", event.event_id);
        if error.is_retryable() {
            return self.busy(event, error.retry_after().unwrap_or(BUSY_RETRY));
        }
        line(event, EventOutcome::Refused, "unsendable");
        Admitted::Unsendable
    }

    async fn notice(&self, event: &InboundEvent, suffix: &str, text: String) {
        self.send_notice(&self.answer(event, suffix, text)).await;
    }

    fn answer(&self, event: &InboundEvent, suffix: &str, text: String) -> OutboundEvent {
        OutboundEvent::answering(event, suffix, MessageKind::Notice, text)
    }

    /// A notice that cannot be sent is not worth holding anything up for: the log line says what happened.
    async fn send_notice(&self, notice: &OutboundEvent) {
        if let Err(error) = send::outbound(&*self.outbound, notice).await {
            tracing::warn!(event_id = notice.event_id, %error, "notice {} was not sent", notice.event_id);
        }
    }
}

/// Whether the turn that runs may take the event up: a text of a person, and nothing but a text.
fn may_steer(envelope: &Envelope) -> bool {
    let event = &envelope.event;
    let text = event.text();
    !envelope.unattended
        && !envelope.album
        && event.content.iter().all(|block| block.kind == ContentType::Text)
        && text.len() <= MAX_TEXT
        && !is_blank(&text)
}

/// Whether a queue takes the event.
fn fits(envelope: &Envelope) -> bool {
    serde_json::to_vec(envelope).is_ok_and(|body| body.len() <= MAX_EVENT)
}

/// Seconds to wait, never rounded down to a moment that is too early.
pub(crate) fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// The line of a conflict. The event that has the key goes its own way, so this is no line of its.
fn told(event: &InboundEvent, admitted: Admitted) -> Admitted {
    if admitted == Admitted::Conflict {
        tracing::info!(event_id = %event.event_id, reason = "conflict",
            "the key of event {} came again with another body", event.event_id);
    }
    admitted
}

/// The line by which a message that waits can be found.
fn accepted(event: &InboundEvent) {
    let (session, channel) = (event.session_key(), event.channel.as_str());
    tracing::info!(target: journal_line::ACCEPTED, event_id = %event.event_id, %session, channel,
        "event {} was accepted", event.event_id);
}

fn line(event: &InboundEvent, outcome: EventOutcome, reason: &str) {
    journal_line::event(&event.event_id, Some(&event.session_key()), event.channel, outcome, reason, 1);
}

fn report(event: &InboundEvent, error: &StoreError, what: &'static str) {
    tracing::error!(event_id = %event.event_id, error = %chain(error), "event {}: {what}", event.event_id);
}

/// An error and everything below it, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let below = std::iter::successors(error.source(), |error| error.source());
    below.fold(error.to_string(), |line, error| format!("{line}: {error}"))
}
