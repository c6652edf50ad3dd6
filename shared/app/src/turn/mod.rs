//! A turn: receive, acquire, look, context stage, inference stage, response stage, commit, dispatch.
//!
//! One record is one [`Agent::handle`]. It returns [`Handled::GivenBack`] when the record has to come again: its
//! visibility is set by then, and the lock is released or ends with its lease. Nothing is thrown; whatever fails, the
//! record's redelivery takes the same path, and the marker tells a committed event from an open one.

mod acquire;
mod album;
mod ask;
mod back;
mod calls;
mod commit;
mod context;
mod dispatch;
mod flags;
mod frames;
mod inference;
mod lease;
mod park;
mod permit;
mod response;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use turnlock_channels::files::Files;
use turnlock_domain::commit::CommittedTurn;
use turnlock_domain::envelope::{Command, Envelope};
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;
use turnlock_domain::turn::Failure;
use turnlock_models::Router;
use turnlock_queue::{Queue, Record};
use turnlock_store::approvals::Ask;
use turnlock_store::history::StoredTurn;
use turnlock_store::memory::ScopeHead;
use turnlock_store::sessions::{Head, Lock, Release};
use turnlock_store::{Store, StoreError};
use turnlock_tools::Registry;

pub use context::scope;
pub(crate) use context::user_message;
pub use dispatch::{Dispatch, DispatchError};
pub(crate) use dispatch::{final_of, stored_turn};
pub(crate) use response::MAX_FAILURES;

use acquire::{Taken, age};
use back::{LONGEST_BACKOFF, backoff};
use calls::journalled;
use frames::Frames;
use inference::{End, Inference};
use lease::{Lease, VISIBILITY, renewing};
use response::{Ending, Said};

use crate::admit::chain;
use crate::dead_letter;
use crate::journal_line;
use crate::media;
use crate::settings::AgentSettings;

/// From when on a wait is worth a line.
const LONG_WAIT: Duration = Duration::from_secs(60);

/// The agent function: what it needs to take a turn.
pub struct Agent {
    /// The table.
    pub store: Store,
    /// The queue that records come from: visibility.
    pub inbound: Arc<dyn Queue>,
    /// Where a record goes that can never be a turn.
    pub dead_letters: Arc<dyn Queue>,
    /// Finals and frames.
    pub outbound: Arc<dyn Queue>,
    /// Consolidations.
    pub consolidate: Arc<dyn Queue>,
    /// Memory reviews.
    pub review: Arc<dyn Queue>,
    /// The models.
    pub models: Arc<Router>,
    /// The tools.
    pub tools: Arc<Registry>,
    /// Where the images of events are; asked for a model that sees any.
    pub files: Arc<Files>,
    /// Who the agent is and how far it may go.
    pub settings: Arc<AgentSettings>,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handled {
    /// Everything owed is on its way: the record may be deleted.
    Done,
    /// It comes again after this, as far as its queue could be told so.
    GivenBack(Duration),
}

/// One received record.
struct Receive<'a> {
    record: &'a Record,
    queue: &'a dyn Queue,
    envelope: Envelope,
    session: SessionKey,
    deadline: Instant,
    dead_letter: bool,
    /// How many receives may have gathered an album and nothing else.
    gathering: u32,
}

/// Why a turn came to no commit.
#[derive(Debug)]
enum Unsettled {
    /// The record comes again after this; `reset` = it was no attempt; `unstarted` = from which call of the last step on
    /// none was started.
    Back { after: Option<Duration>, reset: bool, unstarted: Option<u32> },
    /// The turn waits for the decision `ask`, the lock is released: the record sleeps for this long.
    Asleep { ask: String, after: Duration },
    /// The lock is somebody else's: nothing may be written any more.
    LockLost,
}

impl Unsettled {
    /// The record comes again at once: something was stored for it that has to be looked at.
    fn at_once() -> Self {
        Self::Back { after: Some(Duration::ZERO), reset: true, unstarted: None }
    }
}

impl Agent {
    /// Takes the turn of a record of the inbound queue. `deadline` is when the invocation ends.
    pub async fn handle(&self, record: &Record, deadline: Instant) -> Handled {
        if let Err(error) = self.inbound.set_visibility(&record.receipt, VISIBILITY).await {
            tracing::debug!(message_id = record.message_id, %error, "the visibility was not set");
        }
        let Some(envelope) = parse(record) else {
            // It would block its group for ever.
            tracing::error!(message_id = record.message_id, "a message of the inbound queue is no event of ours");
            return dead_letter::give_up(&*self.dead_letters, (&*self.inbound, dead_letter::INBOUND), record).await;
        };
        let session = envelope.event.session_key();
        let queue = &*self.inbound;
        self.receive(Receive { record, queue, envelope, session, deadline, dead_letter: false, gathering: 0 }).await
    }

    async fn receive(&self, mut receive: Receive<'_>) -> Handled {
        if receive.envelope.album {
            match self.gather(&mut receive).await {
                Ok(None) => {}
                Ok(Some(handed_back)) => return handed_back,
                Err(error) => return self.store_failed(&receive, &error).await,
            }
        }
        let receive = &receive;
        let taken = match self.acquire(receive).await {
            Ok(taken) => taken,
            Err(error) => return self.store_failed(receive, &error).await,
        };
        let (lock, head, lease) = match taken {
            Taken::Mine(lock, head, lease) => (lock, head, lease),
            Taken::Busy(after, head) => return self.busy(receive, after, &head).await,
        };
        self.note_wait(receive, &head);
        if self.unaccounted(receive, &head) {
            return self.too_many_receives(receive, Some(&lock)).await;
        }
        // Boxed: it is many times as large as what is around it.
        match Box::pin(self.turn(receive, &lock, &head, &lease)).await {
            Ok(Ok(turn)) => self.dispatch(receive, &turn).await,
            Ok(Err(Unsettled::LockLost)) => {
                journal_line::fence_rejection(&lock.event, &lock.session, lock.fence, "turn");
                Handled::GivenBack(VISIBILITY)
            }
            Ok(Err(Unsettled::Asleep { ask, after })) => self.asleep(receive, &ask, after).await,
            Ok(Err(Unsettled::Back { after, reset, unstarted })) => {
                let after = after.unwrap_or_else(|| backoff(head.attempts)).min(LONGEST_BACKOFF);
                let how = Release { reset_attempts: reset, unstarted, ..Release::default() };
                self.hand_back(receive, &lock, after, how).await
            }
            Err(error) => {
                tracing::warn!(event_id = %lock.event, session = %lock.session, cause = chain(&error), "a turn was handed back");
                // The inference stage says by itself what it started: whatever else fails has started nothing, so what was
                // known of the step before is known still.
                let how = Release { unstarted: head.unstarted_for(&lock), ..Release::default() };
                self.hand_back(receive, &lock, backoff(head.attempts), how).await
            }
        }
    }

    async fn turn(
        &self,
        receive: &Receive<'_>,
        lock: &Lock,
        head: &Head,
        lease: &Lease,
    ) -> Result<Result<CommittedTurn, Unsettled>, StoreError> {
        let scope = context::scope(&receive.envelope);
        let scopes = [scope.clone()];
        let waits = head.ask_of(lock).filter(|ask| ask.decision.is_none());
        let (look, history) = tokio::join!(self.store.look(&lock.event, &scopes), async {
            match waits {
                Some(_) => Ok(Vec::new()),
                None => self.store.history(&lock.session, head.generation, head.boundary).await,
            }
        });
        // A history that cannot be read stands in the way of a model, and of nothing else: what is settled without one
        // still is, so that such a session is answered, and can be left by a reset.
        let look = look?;
        if let Some(marker) = look.marker {
            return self.committed_before(receive, lock, marker).await.map(Ok);
        }
        if let Some(ending) = self.settled_without_model(receive, head, waits) {
            let said = match head.step {
                0 => Said::default(),
                _ => {
                    let journal = self.store.journal(&lock.session, &lock.event).await?;
                    journalled(&journal, head.unstarted_for(lock))
                }
            };
            return self.respond(receive, (lock, head), &said, ending, &scope).await;
        }
        if let Some(ask) = waits {
            return self.sleep_on(receive, (lock, head), ask).await.map(Err);
        }
        if receive.envelope.command == Some(Command::Unknown) {
            let after = Some(backoff(receive.record.receive_count));
            return Ok(Err(Unsettled::Back { after, reset: true, unstarted: None }));
        }
        if receive.envelope.command == Some(Command::New) {
            let (draft, change) = response::reset(&receive.envelope, head, lock, self.store.clock().now_ms());
            return self.commit(receive, lock, draft, change, head, None).await;
        }
        let found = (history?, look.scopes.into_iter().find(|head| head.scope == scope));
        let work = self.infer(receive, (lock, head, lease), found, &scope);
        let end = match renewing(work, lease, (&self.store, lock), (receive.queue, receive.record)).await {
            Ok(end) => end?,
            Err(lease::LeaseLost) => return Ok(Err(Unsettled::LockLost)),
        };
        match end {
            End::Ended(said, ending) => self.respond(receive, (lock, head), &said, ending, &scope).await,
            End::HandBack { after, progress, unstarted } => {
                Ok(Err(Unsettled::Back { after, reset: progress, unstarted }))
            }
            End::Asks(approval) => self.park(receive, (lock, head), &approval).await.map(Err),
            End::LockLost => Ok(Err(Unsettled::LockLost)),
        }
    }

    /// Says that somebody waits, once it is long. What waits for a person does not, nor what stands behind it: a queue's own
    /// age of its oldest message knows neither.
    fn note_wait(&self, receive: &Receive<'_>, head: &Head) {
        let waited = age(receive.envelope.accepted_at, head, self.store.clock().now_ms());
        if waited >= LONG_WAIT && !receive.dead_letter {
            journal_line::wait(&receive.envelope.event.event_id, &receive.session, waited);
        }
    }

    /// What needs no model: given up, stopped, waited for in vain, too old, tried too often.
    fn settled_without_model(&self, receive: &Receive<'_>, head: &Head, waits: Option<&Ask>) -> Option<Ending> {
        let (limits, now) = (&self.settings.limits, self.store.clock().now_ms());
        let age = age(receive.envelope.accepted_at, head, now);
        if receive.dead_letter {
            Some(Ending::Failed(Failure::Dead))
        } else if head.stops(&receive.envelope.position) {
            Some(Ending::Stopped)
        } else if waits.is_some_and(|ask| ask.expires_at <= now) {
            Some(Ending::Failed(Failure::ApprovalExpired))
        } else if age > limits.max_wait {
            Some(Ending::Failed(Failure::TooOld))
        } else if head.attempts > limits.attempts {
            Some(Ending::Failed(Failure::TooManyAttempts))
        } else {
            None
        }
    }

    async fn infer(
        &self,
        receive: &Receive<'_>,
        (lock, head, lease): (&Lock, &Head, &Lease),
        found: (Vec<StoredTurn>, Option<ScopeHead>),
        scope: &str,
    ) -> Result<End, StoreError> {
        let frames = Frames::new(&self.outbound, &self.settings, &receive.envelope, lock.fence);
        // Boxed: what holds it would be as large as everything below, several times over.
        frames.beside(Box::pin(self.think(receive, (lock, head, lease), found, (scope, &frames)))).await
    }

    async fn think(
        &self,
        receive: &Receive<'_>,
        (lock, head, lease): (&Lock, &Head, &Lease),
        found: (Vec<StoredTurn>, Option<ScopeHead>),
        (scope, frames): (&str, &Frames<'_>),
    ) -> Result<End, StoreError> {
        let shown = media::Shown {
            images: self.models.can(|capabilities| capabilities.images),
            documents: self.models.can(|capabilities| capabilities.documents),
        };
        let files = (&*self.files, shown);
        let context = context::gather(&self.store, &self.settings, &receive.envelope, head, found, files).await?;
        let inference = Inference {
            store: &self.store,
            models: &self.models,
            tools: &self.tools,
            policy: &self.settings.policy,
            envelope: &receive.envelope,
            lock,
            lease,
            deadline: receive.deadline,
            context: &context,
            ask: head.ask_of(lock),
            unstarted: head.unstarted_for(lock),
            scope,
            place: (head.generation, head.message_count),
            receives: receive.record.receive_count,
            frames,
            daily_cost: self.settings.limits.daily_cost,
            spent: 0,
            has_asked: false,
        };
        Ok(inference.run().await)
    }

    async fn dispatch(&self, receive: &Receive<'_>, turn: &CommittedTurn) -> Handled {
        match self.dispatcher().dispatch(turn, &receive.envelope.event).await {
            Ok(()) => Handled::Done,
            Err(error) => {
                let event_id = &receive.envelope.event.event_id;
                tracing::warn!(%event_id, cause = chain(&error), "what a turn owes was not sent; its message comes again");
                self.back(receive, backoff(receive.record.receive_count)).await
            }
        }
    }

    fn dispatcher(&self) -> Dispatch<'_> {
        Dispatch {
            store: &self.store,
            outbound: &*self.outbound,
            consolidate: &*self.consolidate,
            review: &*self.review,
            language: self.settings.language,
        }
    }

    /// Settles a message that a queue gave up: as its event, whatever else is unfinished. Sends what was committed, or
    /// commits the error outcome and sends that. `queue` is the dead-letter queue the record came from.
    pub async fn settle_dead_letter(&self, queue: &dyn Queue, record: &Record, deadline: Instant) -> Settled {
        let Some(envelope) = parse(record) else { return Settled::NoEvent };
        let session = envelope.event.session_key();
        let event_id = envelope.event.event_id.clone();
        let receive = Receive { record, queue, envelope, session, deadline, dead_letter: true, gathering: 0 };
        match self.receive(receive).await {
            Handled::Done => Settled::Done(event_id),
            Handled::GivenBack(after) => Settled::GivenBack(after),
        }
    }
}

/// What became of a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// The event is committed and answered.
    Done(EventId),
    /// It comes again after this.
    GivenBack(Duration),
    /// It is no event of ours: there is nobody to answer.
    NoEvent,
}

/// The event of a record, unless it is none of ours or claims what only our own code may claim.
fn parse(record: &Record) -> Option<Envelope> {
    serde_json::from_str::<Envelope>(&record.body).ok()?.trusted().ok()
}
