//! Events and jobs as queue messages. Ids derive from the source event, so that a second sending is recognised.

use std::collections::BTreeMap;
use std::time::Duration;

use turnlock_domain::envelope::Envelope;
use turnlock_domain::event::OutboundEvent;
use turnlock_domain::ids::queue_id;
use turnlock_domain::time::Millis;
use turnlock_domain::turn::Job;
use turnlock_queue::{NewMessage, Queue, Record, SendError};

use crate::dead_letter::CONTROL;

/// The message attribute that carries the W3C trace context.
pub const TRACEPARENT: &str = "traceparent";
/// The message attribute that names the queue, where the body does not tell.
const QUEUE: &str = "queue";

/// Sends an inbound event, or a command, in its place among those of its session.
///
/// # Errors
/// Those of [`Queue::send`]; a second sending within five minutes is recognised by the queue, a later one by the marker.
pub async fn inbound(queue: &dyn Queue, envelope: &Envelope) -> Result<(), SendError> {
    queue.send(event_message(envelope)).await
}

pub(crate) fn event_message(envelope: &Envelope) -> NewMessage {
    let deduplication_id = match envelope.redrive {
        0 => queue_id(envelope.event.event_id.as_str()),
        times => queue_id(&format!("{}.redrive{times}", envelope.event.event_id)),
    };
    NewMessage {
        body: json(envelope),
        group: Some(queue_id(envelope.event.session_key().as_str())),
        deduplication_id: Some(deduplication_id),
        attributes: trace(envelope.event.trace.as_deref()),
        delay: Duration::ZERO,
    }
}

/// Sends a command past the events of its session. It says that it is one: the same event may stand in the inbound queue,
/// and a dead letter must tell the two apart.
///
/// # Errors
/// Those of [`inbound`].
pub async fn control(queue: &dyn Queue, envelope: &Envelope) -> Result<(), SendError> {
    let mut message = event_message(envelope);
    name_queue(&mut message, CONTROL);
    queue.send(message).await
}

/// Writes beside a message's body which queue it is for, or comes from.
pub(crate) fn name_queue(message: &mut NewMessage, queue: &str) {
    message.attributes.insert(QUEUE.to_owned(), queue.to_owned());
}

/// What [`name_queue`] wrote.
pub(crate) fn queue_of(record: &Record) -> Option<&str> {
    record.attributes.get(QUEUE).map(String::as_str)
}

/// Sends an outbound event, in order within its chat.
///
/// # Errors
/// Those of [`Queue::send`]; a second sending is recognised by the queue or by the delivery ledger.
pub async fn outbound(queue: &dyn Queue, event: &OutboundEvent) -> Result<(), SendError> {
    queue.send(outbound_message(event, None)).await
}

/// `redriven` = when it was given up, if it is sent again after that.
pub(crate) fn outbound_message(event: &OutboundEvent, redriven: Option<Millis>) -> NewMessage {
    let deduplication_id = match redriven {
        None => queue_id(&event.event_id),
        Some(at) => queue_id(&format!("{}.redrive{}", event.event_id, at.0)),
    };
    NewMessage {
        body: json(event),
        group: Some(queue_id(&event.chat())),
        deduplication_id: Some(deduplication_id),
        attributes: trace(event.trace.as_deref()),
        delay: Duration::ZERO,
    }
}

/// Sends a job to its own queue.
///
/// # Errors
/// Those of [`Queue::send`]; a job that comes twice is recognised by its claim.
pub async fn job(queue: &dyn Queue, job: &Job, traceparent: Option<&str>) -> Result<(), SendError> {
    queue.send(job_message(job, traceparent)).await
}

pub(crate) fn job_message(job: &Job, traceparent: Option<&str>) -> NewMessage {
    NewMessage { attributes: trace(traceparent), ..NewMessage::standard(json(job)) }
}

fn trace(traceparent: Option<&str>) -> BTreeMap<String, String> {
    traceparent.map(|trace| (TRACEPARENT.to_owned(), trace.to_owned())).into_iter().collect()
}

/// Our own types always print: a map with keys that are no text is the only way not to, and they have none. The two
/// characters that XML 1.0 has no place for, and that JSON does not escape by itself, are escaped: the queue refuses
/// them, and a model may write anything.
fn json(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_string(value).unwrap_or_default();
    if json.contains(['\u{fffe}', '\u{ffff}']) {
        return json.replace('\u{fffe}', "\\ufffe").replace('\u{ffff}', "\\uffff");
    }
    json
}
