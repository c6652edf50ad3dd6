//! Dead letters: what a queue gave up. An event is settled as its own turn (what was committed is sent, what was not is
//! answered with an error), a command is answered with an error, and everything is kept as a `dead` item, for the alarm and
//! for the operator.

use std::time::Duration;

use tokio::time::Instant;
use turnlock_domain::envelope::{Command, Envelope};
use turnlock_domain::event::{MessageKind, OutboundEvent};
use turnlock_domain::ids::EventId;
use turnlock_domain::turn::{Failure, Job, Outcome};
use turnlock_queue::{NewMessage, Queue, Record, SendError};
use turnlock_store::StoreError;
use turnlock_store::dead::DeadItem;

use crate::admit::chain;
use crate::control;
use crate::deliver::OUTBOUND_QUEUE;
use crate::journal_line::{self, EventOutcome};
use crate::send;
use crate::turn::{Agent, Handled, Settled};

/// The names of the queues in dead items.
pub(crate) const INBOUND: &str = "inbound";
pub(crate) const CONTROL: &str = "control";
pub(crate) const JOB: &str = "job";
const VISIBILITY: Duration = Duration::from_secs(90);
const BACKOFF: Duration = Duration::from_secs(30);

/// Handles one record of a dead-letter queue, whichever queue gave it up: an event is settled, a command is answered, and
/// everything is kept.
pub async fn handle(agent: &Agent, queue: &dyn Queue, record: &Record, deadline: Instant) -> Handled {
    // A worker that dies is replaced after this, not after the queue's own time.
    if let Err(error) = queue.set_visibility(&record.receipt, VISIBILITY).await {
        tracing::debug!(message_id = record.message_id, %error, "the visibility was not set");
    }
    if is_steer_copy(record) {
        tracing::info!(message_id = record.message_id, "a text did not reach the turn that ran; its own turn has it");
        return Handled::Done;
    }
    let source = Source::of(record);
    let event_id = match source {
        Source::Inbound => match agent.settle_dead_letter(queue, record, deadline).await {
            Settled::GivenBack(after) => return Handled::GivenBack(after),
            Settled::Done(event_id) => Some(event_id),
            Settled::NoEvent => None,
        },
        // Who sent a command was told that it had been taken.
        Source::Control => match answer_command(agent, record).await {
            Ok(()) => None,
            Err(error) => {
                let message_id = &record.message_id;
                tracing::warn!(message_id, %error, "a given-up command is not answered yet; it comes again");
                return give_back(queue, record, BACKOFF).await;
            }
        },
        Source::Outbound | Source::Job | Source::Unknown => None,
    };
    // What nobody can read at least came from somewhere.
    let name = if source == Source::Unknown { send::queue_of(record).unwrap_or("unknown") } else { source.name() };
    let own_id = || EventId::from_stored(format!("{name}.{}", record.message_id));
    keep(agent, queue, record, (name, event_id.unwrap_or_else(own_id))).await
}

/// Whether it is the copy of a message for a turn that ran: nothing is lost with it, and there is nobody to alarm.
fn is_steer_copy(record: &Record) -> bool {
    serde_json::from_str::<Envelope>(&record.body).is_ok_and(|envelope| envelope.command == Some(Command::Steer))
}

/// Which queue gave a record up. Its body tells, but for the two copies of a `/new`, one of which is a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Inbound,
    Control,
    Outbound,
    Job,
    Unknown,
}

impl Source {
    fn of(record: &Record) -> Self {
        let body = record.body.as_str();
        if serde_json::from_str::<Envelope>(body).is_ok() {
            if send::queue_of(record) == Some(CONTROL) { Self::Control } else { Self::Inbound }
        } else if serde_json::from_str::<OutboundEvent>(body).is_ok() {
            Self::Outbound
        } else if serde_json::from_str::<Job>(body).is_ok() {
            Self::Job
        } else {
            Self::Unknown
        }
    }

    /// The name in the dead item.
    fn name(self) -> &'static str {
        match self {
            Self::Inbound => INBOUND,
            Self::Control => CONTROL,
            Self::Outbound => OUTBOUND_QUEUE,
            Self::Job => JOB,
            Self::Unknown => "unknown",
        }
    }
}

/// Sends a record that can never be worked on to the dead letters, at once; else it would hold its group for as long as
/// `queue` keeps it.
pub(crate) async fn give_up(dead_letters: &dyn Queue, (queue, name): (&dyn Queue, &str), record: &Record) -> Handled {
    let own_id = || turnlock_domain::ids::queue_id(&format!("dead.{}", record.message_id));
    let mut message = NewMessage {
        body: record.body.clone(),
        group: record.group.clone(),
        // What has no group comes from a standard queue, and goes to one.
        deduplication_id: record.group.is_some().then(own_id),
        attributes: record.attributes.clone(),
        delay: Duration::ZERO,
    };
    let plain = message.clone();
    send::name_queue(&mut message, name);
    let sent = match dead_letters.send(message).await {
        // What is nobody's may be as large as a queue takes, and then has no room for a word more.
        Err(error) if !error.is_retryable() => dead_letters.send(plain).await,
        sent => sent,
    };
    match sent {
        Ok(()) => Handled::Done,
        Err(error) => {
            let message_id = &record.message_id;
            tracing::error!(message_id, cause = chain(&error), "a message could not be given up; it comes again");
            give_back(queue, record, BACKOFF).await
        }
    }
}

/// The error that a given-up command gets as its answer, recognised by its id like the answer that it takes the place
/// of.
async fn answer_command(agent: &Agent, record: &Record) -> Result<(), AnswerError> {
    let Ok(Envelope { event, command: Some(command), .. }) = serde_json::from_str::<Envelope>(&record.body) else {
        return Ok(());
    };
    match command {
        // The copy in the inbound queue answers for itself.
        Command::New | Command::Steer => return Ok(()),
        Command::Stop
        | Command::Status
        | Command::Help
        | Command::Tap
        | Command::Approve
        | Command::Deny
        | Command::Unknown => {}
    }
    let outcome = Outcome::Failed { reason: Failure::Dead };
    let draft = control::settled(&event, outcome, agent.store.clock().now_ms());
    agent.store.put_marker(&draft).await?;
    let text = agent.settings.language.failed(Failure::Dead);
    let answer = control::answering(&event, MessageKind::Error, text);
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

async fn keep(agent: &Agent, queue: &dyn Queue, record: &Record, (source, event_id): (&str, EventId)) -> Handled {
    let item = DeadItem {
        event_id: event_id.clone(),
        queue: source.to_owned(),
        reason: "given up".to_owned(),
        body: record.body.clone(),
        at: agent.store.clock().now_ms(),
        receive_count: record.receive_count,
    };
    match agent.store.put_dead(&item).await {
        Ok(_) => {
            journal_line::dead(&item);
            Handled::Done
        }
        Err(error) => {
            tracing::error!(%event_id, %error, "a dead item was not kept; its message comes again");
            give_back(queue, record, BACKOFF).await
        }
    }
}

/// Keeps a record out of sight for `after`, and says that it comes again.
pub(crate) async fn give_back(queue: &dyn Queue, record: &Record, after: Duration) -> Handled {
    if let Err(error) = queue.set_visibility(&record.receipt, after).await {
        // It comes again all the same, when the visibility it has is over.
        tracing::debug!(message_id = record.message_id, %error, "the visibility was not set");
    }
    Handled::GivenBack(after)
}
