//! Dead letters: what a queue gave up. An event is settled as its own turn (what was committed is sent, what was not is
//! answered with an error), everything else is kept as a `dead` item, for the alarm and for the operator.

use std::time::Duration;

use tokio::time::Instant;
use turnlock_domain::ids::EventId;
use turnlock_queue::{Queue, Record};
use turnlock_store::dead::DeadItem;

use crate::turn::{Agent, Handled, Settled};

const BACKOFF: Duration = Duration::from_secs(30);

/// Handles one record of the inbound queue's dead letters.
pub async fn inbound(agent: &Agent, queue: &dyn Queue, record: &Record, deadline: Instant) -> Handled {
    let event_id = match agent.settle_dead_letter(queue, record, deadline).await {
        Settled::GivenBack => return Handled::GivenBack,
        Settled::Done(event_id) => event_id,
        Settled::NoEvent => EventId::from_stored(format!("message.{}", record.message_id)),
    };
    keep(agent, queue, record, ("inbound", event_id)).await
}

/// Keeps one record of another queue's dead letters: nothing can be answered any more.
pub async fn other(agent: &Agent, queue: &dyn Queue, record: &Record, source: &'static str) -> Handled {
    keep(agent, queue, record, (source, EventId::from_stored(format!("{source}.{}", record.message_id)))).await
}

async fn keep(
    agent: &Agent,
    queue: &dyn Queue,
    record: &Record,
    (source, event_id): (&'static str, EventId),
) -> Handled {
    let item = DeadItem {
        event_id: event_id.clone(),
        queue: source.to_owned(),
        reason: "given up".to_owned(),
        body: record.body.clone(),
        at: agent.store.clock().now_ms(),
        receive_count: record.receive_count,
    };
    tracing::error!(%event_id, queue = source, "a message was given up; it is kept as a dead item");
    match agent.store.put_dead(&item).await {
        Ok(_) => Handled::Done,
        Err(error) => {
            tracing::error!(%event_id, %error, "a dead item was not kept; its message comes again");
            if let Err(error) = queue.set_visibility(&record.receipt, BACKOFF).await {
                tracing::debug!(%event_id, %error, "the visibility was not set");
            }
            Handled::GivenBack
        }
    }
}
