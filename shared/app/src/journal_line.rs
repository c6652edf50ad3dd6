//! The one log line of an event, a tool call, a model call, a job: ids and outcomes, never bodies, tokens or signatures. The targets
//! are stable; replays read them.

use std::time::Duration;

use turnlock_domain::event::Channel;
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;
use turnlock_domain::turn::ModelCall;
use turnlock_models::Purpose;
use turnlock_queue::Record;
use turnlock_store::dead::DeadItem;

use crate::send::TRACEPARENT;

/// The target of lines about events.
pub const EVENT: &str = "turnlock::event";
/// The target of lines about events that a queue has: how they end comes later.
pub const ACCEPTED: &str = "turnlock::accepted";
/// The target of lines about tool calls.
pub const TOOL: &str = "turnlock::tool";
/// The target of lines about calls of models.
pub const MODEL: &str = "turnlock::model";
/// The target of lines about jobs.
pub const JOB: &str = "turnlock::job";
/// The target of lines about turns that begin late.
pub const WAIT: &str = "turnlock::wait";
/// The target of lines about writes that a fence refused.
pub const FENCE: &str = "turnlock::fence";

/// The target of lines about dead items.
pub const DEAD: &str = "turnlock::dead";

/// How an event ended, as its line says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventOutcome {
    /// Its turn is in the history.
    Committed,
    /// There was nothing to do.
    Ignored,
    /// It was not let in.
    Refused,
    /// Its session is over its rate, or too much waits.
    Limited,
    /// Its turn failed; the error reply is committed.
    Failed,
    /// A queue gave it up.
    Dead,
}

impl EventOutcome {
    /// The word in the line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Ignored => "ignored",
            Self::Refused => "refused",
            Self::Limited => "limited",
            Self::Failed => "failed",
            Self::Dead => "dead",
        }
    }
}

/// Writes the line of an event that ended: `reason` is a short word, `attempts` how often it was tried.
pub fn event(
    event_id: &EventId,
    session: Option<&SessionKey>,
    channel: Channel,
    outcome: EventOutcome,
    reason: &str,
    attempts: u32,
) {
    let session = session.map(SessionKey::as_str).unwrap_or_default();
    let (channel, outcome) = (channel.as_str(), outcome.as_str());
    tracing::info!(target: EVENT, %event_id, session, turn = %event_id, channel, outcome, reason, attempts,
        "event {event_id} {outcome}");
}

/// Writes the line of a call of a model, for a turn or a job: what it used, how long it took, and what it came to in a
/// short word.
pub fn model_call(
    event_id: &EventId,
    session: &SessionKey,
    purpose: Purpose,
    call: &ModelCall,
    took: Duration,
    outcome: &'static str,
) {
    let (ModelCall { model, usage }, purpose) = (call, purpose.as_str());
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    tracing::info!(target: MODEL, %event_id, %session, purpose, model, outcome, duration_ms,
        input_tokens = usage.input_tokens, output_tokens = usage.output_tokens,
        cache_read_tokens = usage.cache_read_tokens, cache_write_tokens = usage.cache_write_tokens,
        cost = usage.cost, "model {model} for event {event_id}: {outcome}");
}

/// Writes the line of an event whose turn begins late, or goes on late: somebody has waited for it for `waited`.
pub fn wait(event_id: &EventId, session: &SessionKey, waited: Duration) {
    let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
    tracing::info!(target: WAIT, %event_id, %session, waited_ms, "event {event_id} has waited for {waited_ms} ms");
}

/// Writes the line of a write that a fence refused: a late worker, or a lost race.
pub fn fence_rejection(event_id: &EventId, session: &SessionKey, fence: u64, what: &'static str) {
    tracing::info!(target: FENCE, %event_id, %session, fence, what,
        "a write of event {event_id} was refused: the session has another writer");
}

/// Writes the line of a message that was given up and is kept for the operator.
pub fn dead(item: &DeadItem) {
    let (event_id, queue, reason) = (&item.event_id, &item.queue, &item.reason);
    tracing::error!(target: DEAD, %event_id, queue, reason, attempts = item.receive_count,
        "a message of the {queue} queue was given up; it is kept as a dead item");
}

/// The span of the work on a queue's record: what its lines have in common. An error's, so that no filter drops it.
#[must_use]
pub fn record_span(record: &Record) -> tracing::Span {
    let traceparent = record.attributes.get(TRACEPARENT).map(String::as_str);
    tracing::error_span!("record", message_id = record.message_id, receives = record.receive_count, traceparent)
}
