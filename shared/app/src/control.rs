//! Control: what must not wait behind queued messages. A stop is stored on the session head, where the running turn sees
//! it before its next step and within 2 s of a stream; a decision about a call is stored there, too; a turn that sleeps
//! is woken by both, also where they are found stored already (trace V8). Status and help are answered here alone. `/new`
//! is only a stop with its time here: the reset is the queued copy's own turn, in its place (trace V10). A text for the
//! turn that runs is left on its head (trace V9); its own copy waits in the inbound queue, so nothing is said about it.

use std::sync::Arc;
use std::time::Duration;

use turnlock_channels::command;
use turnlock_domain::commit::Draft;
use turnlock_domain::envelope::{Command, Envelope, Position};
use turnlock_domain::event::{InboundEvent, MessageKind, OutboundEvent, TAP, TAP_KEEPS_BUTTONS};
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;
use turnlock_domain::turn::{Outcome, Usage};
use turnlock_queue::{Queue, Record};
use turnlock_store::approvals::Verdict;
use turnlock_store::sessions::Head;
use turnlock_store::steer::{SteerText, Steered};
use turnlock_store::{Store, StoreError};

use crate::approvals::code;
use crate::buttons::{self, Pressed};
use crate::decisions::{self, DecideError, Decisions};
use crate::journal_line::{self, EventOutcome};
use crate::settings::AgentSettings;
use crate::turn::{Handled, user_message};
use crate::words::Doing;
use crate::{dead_letter, send};

/// The longest sleep of a control record that could not be handled. It comes again until the queue gives it up, which
/// is minutes away: a table that is out for a moment costs no command.
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);

/// How long a record is kept out of sight while it is worked on.
const VISIBILITY: Duration = Duration::from_secs(30);

/// The longest id of an approval that is looked for.
const MAX_ID: usize = 64;

/// The control function.
pub struct Control {
    /// The table.
    pub store: Store,
    /// The queue that records come from: visibility.
    pub control: Arc<dyn Queue>,
    /// Where the messages of turns sleep: they are woken.
    pub inbound: Arc<dyn Queue>,
    /// Where a record goes that is no command.
    pub dead_letters: Arc<dyn Queue>,
    /// Answers.
    pub outbound: Arc<dyn Queue>,
    /// Names, language, and who may decide.
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
                self.stop(&session, &envelope.position).await?;
                return Ok(());
            }
            Command::Steer => {
                self.steer(&session, envelope).await?;
                return Ok(());
            }
            Command::Stop => language.stopping(self.works(&self.stop(&session, &envelope.position).await?)),
            Command::Status => {
                let head = self.store.head(&session).await?.unwrap_or_default();
                language.status(&self.doing(&head), head.message_count)
            }
            Command::Help => language.help(&self.settings.name),
            Command::Tap => {
                let answer = self.pressed(envelope, &session).await?;
                return self.answer(envelope, answer).await;
            }
            Command::Approve => self.typed(envelope, Verdict::Allow).await?,
            Command::Deny => self.typed(envelope, Verdict::Deny).await?,
            Command::Unknown => return Err(ControlError::Unknown),
        };
        self.answer(envelope, Answer::of(answer)).await
    }

    async fn stop(&self, session: &SessionKey, before: &Position) -> Result<Head, StoreError> {
        let head = self.store.stop(session, before).await?;
        decisions::wake(&*self.inbound, &head).await;
        Ok(head)
    }

    /// Whether a turn of the session is unfinished.
    fn works(&self, head: &Head) -> bool {
        let now = self.store.clock().now_ms();
        head.unfinished.is_some() || head.lease_until.is_some_and(|until| until > now)
    }

    fn doing(&self, head: &Head) -> Doing {
        match head.open_ask() {
            Some(ask) if ask.decision.is_none() => Doing::Asking { code: code(&ask.id) },
            Some(_) | None if self.works(head) => Doing::Working,
            Some(_) | None => Doing::Nothing,
        }
    }

    /// Leaves the text for the turn that runs, with the line that says who wrote it in a group; of what no other turn takes
    /// its place alone. Where no turn runs it is the text's own turn that answers it.
    async fn steer(&self, session: &SessionKey, envelope: &Envelope) -> Result<(), StoreError> {
        let Envelope { event, position, .. } = envelope;
        let said = if event.content.is_empty() { String::new() } else { user_message(event).text() };
        let (position, event_id) = (position.clone(), event.event_id.clone());
        let text = SteerText { position, event_id, by: event.person(), text: said };
        let steered = self.store.steer(session, &text).await?;
        let reached = steered == Steered::Added;
        tracing::debug!(event_id = %event.event_id, reached, "event {} may steer the turn that runs", event.event_id);
        Ok(())
    }

    fn decisions(&self) -> Decisions<'_> {
        Decisions {
            store: &self.store,
            inbound: &*self.inbound,
            outbound: &*self.outbound,
            policy: &self.settings.policy,
            language: self.settings.language,
        }
    }

    /// A button was pressed. What it names is looked up; what is not there, or over, is answered once and never tried
    /// again.
    async fn pressed(&self, envelope: &Envelope, session: &SessionKey) -> Result<Answer, ControlError> {
        let (event, language) = (&envelope.event, self.settings.language);
        let approval = match event.metadata.get(TAP).and_then(buttons::pressed) {
            Some(Pressed::Stop(before)) => return self.stop_named(session, &before).await,
            Some(Pressed::Decide(verdict, id)) if is_id(id) => {
                self.store.approval(id).await?.map(|approval| (verdict, approval))
            }
            Some(Pressed::Decide(..)) | None => None,
        };
        let Some((verdict, approval)) = approval else { return Ok(Answer::of(language.button_expired())) };
        let outcome = self.decisions().decide(&approval, verdict, &event.person(), None).await?;
        // They are good for somebody else, or the settled card takes them away.
        Ok(Answer { text: language.decided(verdict, &outcome), keeps_buttons: true })
    }

    /// The button of one turn was pressed: it stops that turn, if that is the unfinished one, and no other. The place that
    /// it names is compared and not believed: whoever presses could name the end of time.
    async fn stop_named(&self, session: &SessionKey, before: &Position) -> Result<Answer, ControlError> {
        let language = self.settings.language;
        let head = self.store.head(session).await?.unwrap_or_default();
        if head.unfinished_position.as_ref().map(Position::right_behind).as_ref() == Some(before) {
            self.stop(session, before).await?;
            // What the turn ends with takes it away.
            return Ok(Answer { text: language.stopping(true), keeps_buttons: true });
        }
        Ok(Answer::of(if self.works(&head) { language.button_expired() } else { language.stopping(false) }))
    }

    /// A decision was typed, about what was asked in this session before that, or about what is called by its code.
    async fn typed(&self, envelope: &Envelope, verdict: Verdict) -> Result<String, ControlError> {
        let (event, language, decisions) = (&envelope.event, self.settings.language, self.decisions());
        let who = event.person();
        let head = self.store.head(&event.session_key()).await?.unwrap_or_default();
        let text = event.text();
        let command::Argument { code: named, has_text } =
            command::argument(&text, envelope.command.unwrap_or(Command::Unknown));
        let open = head.open_ask();
        let here = open.filter(|ask| named.is_none_or(|it| code(&ask.id).eq_ignore_ascii_case(it)));
        // A condition would be lost: what was meant is not known. A reason behind a denial changes nothing.
        if has_text && verdict == Verdict::Allow {
            let code = named.map(str::to_owned).or_else(|| here.map(|ask| code(&ask.id)));
            return Ok(code.map_or_else(|| language.no_request(), |code| language.approve_alone(&code)));
        }
        // A command that comes again means what it meant the first time, never the call that is asked for by now.
        let again = head.answered.as_ref().filter(|answered| answered.command == event.event_id);
        let elsewhere = match (again, named) {
            (Some(answered), _) => self.store.approval(&answered.id).await?,
            (None, Some(named)) if here.is_none() => decisions.called(named, &who).await?,
            (None, _) => None,
        };
        // What has the form of a code may be the first word of a reason.
        let is_unnamed = named.is_none() || here.is_none() && has_text;
        let ask = if is_unnamed { open } else { here };
        let approval = match (elsewhere, again, ask) {
            (Some(approval), ..) => Some(approval),
            // Nobody decides about what they cannot have seen.
            (None, None, Some(ask)) if is_unnamed && ask.asked_at >= Millis::from(event.timestamp) => {
                return Ok(language.newer_request(&code(&ask.id)));
            }
            (None, None, Some(ask)) => self.store.approval(&ask.id).await?,
            (None, ..) => None,
        };
        let Some(approval) = approval else { return Ok(language.no_request()) };
        Ok(language.decided(verdict, &decisions.decide(&approval, verdict, &who, Some(&event.event_id)).await?))
    }

    /// The marker first, then the answer: an event that is answered is settled.
    async fn answer(&self, envelope: &Envelope, answer: Answer) -> Result<(), ControlError> {
        let event = &envelope.event;
        let draft = settled(event, Outcome::Answered, self.store.clock().now_ms());
        self.store.put_marker(&draft).await?;
        let mut notice = answering(event, MessageKind::Notice, answer.text);
        if answer.keeps_buttons
            && let Some(tap) = notice.metadata.get_mut(TAP)
        {
            tap[TAP_KEEPS_BUTTONS] = true.into();
        }
        send::outbound(&*self.outbound, &notice).await?;
        let outcome = EventOutcome::Committed;
        journal_line::event(&event.event_id, Some(&draft.session), event.channel, outcome, "answered", 0);
        Ok(())
    }
}

/// What a command is answered with.
struct Answer {
    text: String,
    /// Whether the pressed button is left where it is.
    keeps_buttons: bool,
}

impl Answer {
    fn of(text: String) -> Self {
        Self { text, keeps_buttons: false }
    }
}

/// Whether an approval can be called `id`: what comes back with a button may be anything.
fn is_id(id: &str) -> bool {
    (1..=MAX_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
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
    #[error(transparent)]
    Decide(#[from] DecideError),
    #[error("the command is a later version's")]
    Unknown,
}
