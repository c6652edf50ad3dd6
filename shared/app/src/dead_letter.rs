//! Dead letters: what a queue gave up. An event is settled as its own turn (what was committed is sent, what was not is
//! answered with an error), a command is answered with an error, and everything is kept as a `dead` item, for the alarm and
//! for the operator.

use std::time::Duration;

use tokio::time::Instant;
use turnlock_domain::envelope::{Command, Envelope};
use turnlock_domain::event::{MessageKind, OutboundEvent};
use turnlock_domain::ids::EventId;
use turnlock_domain::turn::{Failure, Outcome};
use turnlock_queue::{Queue, Record, SendError};
use turnlock_store::StoreError;
use turnlock_store::dead::DeadItem;

use crate::control;
use crate::journal_line::{self, EventOutcome};
use crate::send;
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

/// Keeps one record of another queue's dead letters. A command among them is answered first: who sent it was told that
/// it had been taken.
pub async fn other(agent: &Agent, queue: &dyn Queue, record: &Record, source: &'static str) -> Handled {
    if let Err(error) = answer_command(agent, record).await {
        tracing::warn!(message_id = record.message_id, %error, "a given-up command is not answered yet; it comes again");
        return give_back(queue, record).await;
    }
    keep(agent, queue, record, (source, EventId::from_stored(format!("{source}.{}", record.message_id)))).await
}

/// The error that a given-up command gets as its answer, recognised by its id like the answer that it takes the place
/// of. Not so for `/new`: its copy in the inbound queue answers for itself.
async fn answer_command(agent: &Agent, record: &Record) -> Result<(), AnswerError> {
    let Ok(Envelope { event, command: Some(command), .. }) = serde_json::from_str::<Envelope>(&record.body) else {
        return Ok(());
    };
    match command {
        Command::New => return Ok(()),
        Command::Stop | Command::Status | Command::Help | Command::Unknown => {}
    }
    let outcome = Outcome::Failed { reason: Failure::Dead };
    let draft = control::settled(&event, outcome, agent.store.clock().now_ms());
    agent.store.put_marker(&draft).await?;
    let text = agent.settings.language.failed(Failure::Dead);
    let answer = OutboundEvent::answering(&event, "final", MessageKind::Error, text);
    send::outbound(&*agent.outbound, &answer).await?;
    let (session, reason) = (Some(&draft.session), Failure::Dead.as_str());
    journal_line::event(&event.event_id, session, event.channel, EventOutcome::Dead, reason, record.receive_count);
    Ok(())
}

/// Why a given-up command could not be answered yet.
#[derive(Debug, thiserror::Error)]
enum AnswerError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Send(#[from] SendError),
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
            give_back(queue, record).await
        }
    }
}

async fn give_back(queue: &dyn Queue, record: &Record) -> Handled {
    if let Err(error) = queue.set_visibility(&record.receipt, BACKOFF).await {
        tracing::debug!(message_id = record.message_id, %error, "the visibility was not set");
    }
    Handled::GivenBack
}
