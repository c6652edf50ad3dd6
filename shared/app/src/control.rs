//! Control: what must not wait behind queued messages. A stop is stored on the session head, where the running turn sees
//! it before its next step and within 2 s of a stream; status and help are answered here alone. `/new` is only a stop
//! with its time here: the reset is the queued copy's own turn, in its place (trace V10).

use std::sync::Arc;
use std::time::Duration;

use turnlock_domain::commit::Draft;
use turnlock_domain::envelope::{Command, Envelope};
use turnlock_domain::event::{InboundEvent, MessageKind, OutboundEvent, TAP};
use turnlock_domain::time::Millis;
use turnlock_domain::turn::{Outcome, Usage};
use turnlock_queue::{Queue, Record};
use turnlock_store::sessions::Head;
use turnlock_store::{Store, StoreError};

use crate::dead_letter;
use crate::journal_line::{self, EventOutcome};
use crate::send;
use crate::settings::AgentSettings;
use crate::turn::Handled;

/// The longest sleep of a control record that could not be handled. It comes again until the queue gives it up, which
/// is minutes away: a table that is out for a moment costs no command.
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// How long a record is kept out of sight while it is worked on.
const VISIBILITY: Duration = Duration::from_secs(30);

/// The control function.
pub struct Control {
    /// The table.
    pub store: Store,
    /// The queue that records come from: visibility.
    pub control: Arc<dyn Queue>,
    /// Where a record goes that is no command.
    pub dead_letters: Arc<dyn Queue>,
    /// Answers.
    pub outbound: Arc<dyn Queue>,
    /// Names and language.
    pub settings: Arc<AgentSettings>,
}

impl Control {
    /// Handles one record of the control queue. Doing it twice changes nothing: a stop only ever moves later, an answer
    /// is recognised by its id.
    pub async fn handle(&self, record: &Record) -> Handled {
        // A worker that dies is replaced after this, not after the queue's own time.
        if let Err(error) = self.control.set_visibility(&record.receipt, VISIBILITY).await {
            tracing::debug!(message_id = record.message_id, %error, "the visibility was not set");
        }
        let envelope = serde_json::from_str::<Envelope>(&record.body).ok();
        let Some((envelope, command)) = envelope.and_then(|envelope| envelope.command.map(|it| (envelope, it))) else {
            tracing::error!(message_id = record.message_id, "a message of the control queue is no command of ours");
            return dead_letter::give_up(&*self.dead_letters, (&*self.control, dead_letter::CONTROL), record).await;
        };
        match self.obey(&envelope, command).await {
            Ok(()) => Handled::Done,
            Err(error) => {
                tracing::warn!(event_id = %envelope.event.event_id, %error, "a command comes again");
                dead_letter::give_back(&*self.control, record, backoff(record.receive_count)).await
            }
        }
    }

    async fn obey(&self, envelope: &Envelope, command: Command) -> Result<(), ControlError> {
        let session = envelope.event.session_key();
        let language = self.settings.language;
        let answer = match command {
            Command::New => {
                self.store.stop(&session, &envelope.position).await?;
                return Ok(());
            }
            Command::Stop => language.stopping(self.works(&self.store.stop(&session, &envelope.position).await?)),
            Command::Status => {
                let head = self.store.head(&session).await?.unwrap_or_default();
                language.status(self.works(&head), head.message_count)
            }
            Command::Help => language.help(&self.settings.name),
            // No card of ours waits for a button in this version.
            Command::Tap => language.button_expired(),
            Command::Approve | Command::Deny | Command::Steer | Command::Unknown => return Err(ControlError::Unknown),
        };
        self.answer(envelope, answer).await
    }

    /// Whether a turn of the session is unfinished.
    fn works(&self, head: &Head) -> bool {
        let now = self.store.clock().now_ms();
        head.unfinished.is_some() || head.lease_until.is_some_and(|until| until > now)
    }

    /// The marker first, then the answer: an event that is answered is settled.
    async fn answer(&self, envelope: &Envelope, text: String) -> Result<(), ControlError> {
        let event = &envelope.event;
        let draft = settled(event, Outcome::Answered, self.store.clock().now_ms());
        self.store.put_marker(&draft).await?;
        let notice = answering(event, MessageKind::Notice, text);
        send::outbound(&*self.outbound, &notice).await?;
        let outcome = EventOutcome::Committed;
        journal_line::event(&event.event_id, Some(&draft.session), event.channel, outcome, "answered", 0);
        Ok(())
    }
}

/// The answer to a command. Where a button was pressed it goes to whoever pressed it, so it says which one it was.
pub(crate) fn answering(event: &InboundEvent, kind: MessageKind, text: String) -> OutboundEvent {
    let mut answer = OutboundEvent::answering(event, "final", kind, text);
    answer.metadata.extend(event.metadata.get_key_value(TAP).map(|(name, tap)| (name.clone(), tap.clone())));
    answer
}

/// The marker of a command that ends without a turn.
pub(crate) fn settled(event: &InboundEvent, outcome: Outcome, at: Millis) -> Draft {
    Draft {
        event_id: event.event_id.clone(),
        session: event.session_key(),
        generation: 0,
        fence: 0,
        first: 0,
        messages: Vec::new(),
        outcome,
        usage: Usage::default(),
        calls: Vec::new(),
        owed: Vec::new(),
        merged: Vec::new(),
        at,
    }
}

/// How long a record sleeps after its `receives`-th receive came to nothing: 1, 2, 4 … 60 s.
fn backoff(receives: u32) -> Duration {
    Duration::from_secs(1 << receives.saturating_sub(1).min(6)).min(LONGEST_BACKOFF)
}

/// Why a command could not be obeyed yet.
#[derive(Debug, thiserror::Error)]
enum ControlError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Send(#[from] turnlock_queue::SendError),
    #[error("the command is a later version's")]
    Unknown,
}
