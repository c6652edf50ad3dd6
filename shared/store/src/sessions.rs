//! The session head: one writer by a lock with a lease and a fence, the unfinished event, the stop, and the commit (`commit`).
//!
//! The lock is the truth (the queue's group only keeps the order). Every write under it compares the random owner id
//! **and** the fence; both stand in the item, so a repetition after a lost answer recognises itself in the old image.
//! Times are absolute milliseconds in the item: an expired lease is free for whoever comes, at once.

mod commit;

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{Put, ReturnValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update};
use serde::{Deserialize, Serialize};
use turnlock_domain::envelope::Position;
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;

use crate::approvals::{Answered, Ask};
use crate::error::StoreError;
use crate::item::{from_item, ms, n, s};
use crate::request::{Conditional, Item};
use crate::{LAYOUT, Store, keys};

pub use commit::{CommitRefused, HeadChange};

/// How long after its end a lease is still respected: clocks of two machines differ.
pub const LEASE_MARGIN: Duration = Duration::from_secs(5);

/// The session head as it is stored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Head {
    /// The layout it was written in.
    pub layout: u32,
    /// Who holds the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// How often the lock has been acquired.
    pub fence: u64,
    /// When the lock ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<Millis>,
    /// The event whose turn is not committed yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<EventId>,
    /// When that event was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished_accepted_at: Option<Millis>,
    /// That event without its content, as JSON: where to answer it if it has to be given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished_route: Option<String>,
    /// That event's place in its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished_position: Option<Position>,
    /// How many receives of that event ended without progress.
    pub attempts: u32,
    /// The last journal step of that event; 0 = no journal.
    pub step: u32,
    /// What that event's turn waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
    /// The last typed decision that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered: Option<Answered>,
    /// Until when it waited the last time it did: its age counts from there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_until: Option<Millis>,
    /// By what its sleeping message is woken, and of which receive that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
    /// The number of the receive that `receipt` is of.
    pub receipt_receives: u32,
    /// What the last one that handed the turn back knows of its step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unstarted: Option<Unstarted>,
    /// The texts for the turn that runs, as JSON: [`Head::texts_for`].
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub steer: BTreeSet<String>,
    /// The event whose receives are noted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noted_event: Option<EventId>,
    /// How many of its receives are accounted for.
    pub noted_receives: u32,
    /// How many times the session was reset.
    pub generation: u32,
    /// How many messages the generation has.
    pub message_count: u64,
    /// How many of them long-term memory has taken in.
    pub boundary: u64,
    /// Events before this place are stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_before: Option<Position>,
    /// When the last turn was committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_commit_at: Option<Millis>,
    /// Tool calls since the last review.
    pub tool_calls: u32,
    /// Whether the intro has been said.
    pub introduced: bool,
    /// The consolidation that is queued or running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_job: Option<String>,
    /// Its worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_worker: Option<String>,
    /// When the claim ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_until: Option<Millis>,
    /// How often it failed.
    pub claim_failures: u32,
    /// The message count at the last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim_failed_count: Option<u64>,
}

/// How far a step was when its turn was handed back in the middle of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unstarted {
    /// The fence under which it was handed back: only whoever comes right after it may go by this, for that one may have
    /// started what is said here to be unstarted.
    pub fence: u64,
    /// From this call of the last step on, none was started.
    pub call: u32,
}

impl Head {
    /// The call of the last step from which on none was started, as the holder of `lock` may believe it.
    #[must_use]
    pub fn unstarted_for(&self, lock: &Lock) -> Option<u32> {
        let known = self.unstarted.filter(|unstarted| unstarted.fence.checked_add(1) == Some(lock.fence))?;
        (self.unfinished.as_ref() == Some(&lock.event)).then_some(known.call)
    }

    /// What the turn of the lock's event waits for, or has a decision on. A dead letter's turn has none of the turn that
    /// it overtakes.
    #[must_use]
    pub fn ask_of(&self, lock: &Lock) -> Option<&Ask> {
        self.open_ask().filter(|_| self.unfinished.as_ref() == Some(&lock.event))
    }

    /// What the unfinished event's turn waits for, or has a decision on. A version that knows of no asking may have
    /// committed the turn that asked: what it left here is nobody's.
    #[must_use]
    pub fn open_ask(&self) -> Option<&Ask> {
        let unfinished = self.unfinished.as_ref()?;
        self.ask.as_ref().filter(|ask| ask.event_id.as_ref().is_none_or(|event| event == unfinished))
    }

    /// Receives of `event` that are accounted for.
    #[must_use]
    pub fn noted(&self, event: &EventId) -> u32 {
        if self.noted_event.as_ref() == Some(event) { self.noted_receives } else { 0 }
    }

    /// Whether a stop reaches an event at `position`.
    #[must_use]
    pub fn stops(&self, position: &Position) -> bool {
        self.stop_before.as_ref().is_some_and(|stop| position < stop)
    }

    /// Whether `lock` still holds the session.
    #[must_use]
    pub fn is_held(&self, lock: &Lock) -> bool {
        self.owner.as_deref() == Some(&lock.owner) && self.fence == lock.fence
    }

    /// Whether the unfinished turn waits for the decision `id`.
    #[must_use]
    pub fn waits_for(&self, id: &str) -> bool {
        self.open_ask().is_some_and(|ask| ask.id == id && ask.decision.is_none())
    }

    /// Since when an event that was accepted at `accepted_at` makes somebody wait: the session's last commit is where the
    /// line moved on, and what its own turn waited for a person does not count (trace V6). A turn that still waits has
    /// waited for as long as it may when its approval expires.
    #[must_use]
    pub fn waits_since(&self, accepted_at: Millis) -> Millis {
        let asked = self.open_ask().map(|ask| ask.decision.as_ref().map_or(ask.expires_at, |decision| decision.at));
        [Some(accepted_at), self.last_commit_at, self.waited_until, asked]
            .into_iter()
            .flatten()
            .max()
            .unwrap_or_default()
    }
}

/// The lock on a session, as its holder knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// The session.
    pub session: SessionKey,
    /// The event it was taken for.
    pub event: EventId,
    /// The holder's random id.
    pub owner: String,
    /// The fence it was acquired under.
    pub fence: u64,
}

/// What is needed to acquire a session.
#[derive(Debug)]
pub struct Acquire<'a> {
    /// The session.
    pub session: &'a SessionKey,
    /// The event whose turn it is for.
    pub event: &'a EventId,
    /// When that event was accepted.
    pub accepted_at: Millis,
    /// Its place in its session.
    pub position: &'a Position,
    /// That event without its content, as JSON.
    pub route: &'a str,
    /// A random id, new for every try.
    pub owner: &'a str,
    /// How long the lock holds unless renewed.
    pub lease: Duration,
    /// Whether a queue has given the event up: then another unfinished event is no obstacle and stays unfinished.
    pub dead_letter: bool,
}

/// What acquiring came to.
#[derive(Debug)]
pub enum Acquired {
    /// The lock is mine; the head as it is now.
    Mine(Lock, Box<Head>),
    /// It is not; the head as it is.
    Busy(Box<Head>),
}

/// What renewing a lease came to.
#[derive(Debug)]
pub enum Renewed {
    /// The lease goes on; the head as it is now.
    Kept(Box<Head>),
    /// The lock is somebody else's.
    Lost,
}

/// How a lock is given up without a commit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Release {
    /// Whether the event is finished, because its marker was found.
    pub finished: bool,
    /// Whether this receive made progress, or did not count.
    pub reset_attempts: bool,
    /// How many receives of the event are accounted for now; `None` leaves what is noted.
    pub receives: Option<u32>,
    /// The call of the journal's last step from which on none was started: the next one may start them.
    pub unstarted: Option<u32>,
}

impl Store {
    /// Takes the session's lock for an event, if the lock is free or its lease over, and no other event is unfinished.
    ///
    /// # Errors
    /// [`StoreError`]; a lock that was taken by a request whose answer was lost ends with its lease.
    pub async fn acquire(&self, want: &Acquire<'_>) -> Result<Acquired, StoreError> {
        let outcome = self.update(self.acquire_request(want)).await?;
        let (item, mine) = match outcome {
            Conditional::Met(item) => (item, true),
            Conditional::Failed(item) => (item, false),
        };
        let head: Head = from_item("session head", item.unwrap_or_default())?;
        if mine || head.owner.as_deref() == Some(want.owner) {
            let lock = Lock {
                session: want.session.clone(),
                event: want.event.clone(),
                owner: want.owner.to_owned(),
                fence: head.fence,
            };
            return Ok(Acquired::Mine(lock, Box::new(head)));
        }
        Ok(Acquired::Busy(Box::new(head)))
    }

    fn acquire_request(&self, want: &Acquire<'_>) -> UpdateItemFluentBuilder {
        let now = self.clock().now_ms();
        let (pk, sk) = keys::head(want.session);
        let mut sets = "SET #owner = :owner, lease_until = :lease, fence = if_not_exists(fence, :zero) + :one, \
                        layout = if_not_exists(layout, :layout), generation = if_not_exists(generation, :zero), \
                        message_count = if_not_exists(message_count, :zero), boundary = if_not_exists(boundary, :zero)"
            .to_owned();
        let mut condition = "(attribute_not_exists(#owner) OR lease_until < :over)".to_owned();
        let mut request = self
            .update_item(pk, sk)
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_values(":owner", s(want.owner))
            .expression_attribute_values(":lease", ms(now + want.lease))
            .expression_attribute_values(":over", ms(now - LEASE_MARGIN))
            .expression_attribute_values(":zero", n(0))
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":layout", n(LAYOUT));
        if !want.dead_letter {
            sets.push_str(
                ", unfinished = :event, unfinished_accepted_at = :accepted, unfinished_route = :route, \
                 unfinished_position = :position, attempts = if_not_exists(attempts, :zero) + :one",
            );
            condition.push_str(" AND (attribute_not_exists(unfinished) OR unfinished = :event)");
            request = request
                .expression_attribute_values(":event", s(want.event.as_str()))
                .expression_attribute_values(":accepted", ms(want.accepted_at))
                .expression_attribute_values(":position", s(want.position.as_str()))
                .expression_attribute_values(":route", s(want.route));
        }
        request
            .update_expression(sets)
            .condition_expression(condition)
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
    }

    /// Renews the lease and reads the head on the way.
    ///
    /// # Errors
    /// [`StoreError`]; the lease may or may not have been renewed then.
    pub async fn renew(&self, lock: &Lock, lease: Duration) -> Result<Renewed, StoreError> {
        let request = self
            .under(lock, "SET lease_until = :lease")
            .expression_attribute_values(":lease", ms(self.clock().now_ms() + lease))
            .return_values(ReturnValue::AllNew);
        match self.update(request).await? {
            Conditional::Met(item) => Ok(Renewed::Kept(Box::new(from_item("session head", item.unwrap_or_default())?))),
            Conditional::Failed(_) => Ok(Renewed::Lost),
        }
    }

    /// Gives the lock up without a commit. A lock that is somebody else's by now is left alone.
    ///
    /// # Errors
    /// [`StoreError`]; the lock then ends with its lease.
    pub async fn release(&self, lock: &Lock, how: Release) -> Result<(), StoreError> {
        let unstarted = match how.unstarted.filter(|_| !how.finished) {
            Some(call) => Some(
                serde_dynamo::to_attribute_value(Unstarted { fence: lock.fence, call })
                    .map_err(|_| StoreError::corrupt("session head", &lock.session, "it cannot be written"))?,
            ),
            None => None,
        };
        let mut sets = Vec::new();
        let mut removes = "#owner, lease_until".to_owned();
        if how.finished {
            removes.push_str(", ");
            removes.push_str(UNFINISHED);
        } else {
            sets.extend(how.receives.map(|_| "noted_event = :event, noted_receives = :receives"));
            sets.extend(how.reset_attempts.then_some("attempts = :zero"));
            sets.extend(unstarted.as_ref().map(|_| "unstarted = :unstarted"));
        }
        let set = if sets.is_empty() { String::new() } else { format!("SET {} ", sets.join(", ")) };
        let mut request = self.under(lock, &format!("{set}REMOVE {removes}"));
        if let (false, Some(receives)) = (how.finished, how.receives) {
            request = request
                .expression_attribute_values(":event", s(lock.event.as_str()))
                .expression_attribute_values(":receives", n(receives));
        }
        if !how.finished && how.reset_attempts {
            request = request.expression_attribute_values(":zero", n(0));
        }
        if let Some(unstarted) = unstarted {
            request = request.expression_attribute_values(":unstarted", unstarted);
        }
        self.update(request).await.map(|_| ())
    }

    /// Gives up a lock that was taken for a dead letter: `unfinished` goes only if it names the lock's own event.
    ///
    /// # Errors
    /// [`StoreError`]; the lock then ends with its lease.
    pub async fn release_dead_letter(&self, lock: &Lock) -> Result<(), StoreError> {
        self.update(self.under(lock, "REMOVE #owner, lease_until")).await?;
        self.clear_unfinished(&lock.session, &lock.event).await
    }

    /// An update that only the lock's holder makes.
    fn under(&self, lock: &Lock, expression: &str) -> UpdateItemFluentBuilder {
        let (pk, sk) = keys::head(&lock.session);
        self.update_item(pk, sk)
            .update_expression(expression)
            .condition_expression("#owner = :owner AND fence = :fence")
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_values(":owner", s(&lock.owner))
            .expression_attribute_values(":fence", n(lock.fence))
    }

    /// Ends the lease of whoever holds the session's lock; returns whether anybody did. Only for a process that knows, by
    /// other means, that the holder is dead: what the holder would still write, the fence refuses as ever. A turn that a
    /// process took with it when it was stopped is no attempt; one that kills its process is bounded by its receives.
    ///
    /// # Errors
    /// [`StoreError`]; ending it again is harmless.
    pub async fn end_lease(&self, session: &SessionKey) -> Result<bool, StoreError> {
        let end = |expression: &str, condition: &str| {
            let (pk, sk) = keys::head(session);
            self.update_item(pk, sk)
                .update_expression(expression)
                .condition_expression(condition)
                .expression_attribute_names("#owner", "owner")
        };
        let counted = end(
            "SET attempts = attempts - :one REMOVE #owner, lease_until",
            "attribute_exists(#owner) AND attempts >= :one",
        );
        if let Conditional::Met(_) = self.update(counted.expression_attribute_values(":one", n(1))).await? {
            return Ok(true);
        }
        let uncounted = end("REMOVE #owner, lease_until", "attribute_exists(#owner)");
        Ok(matches!(self.update(uncounted).await?, Conditional::Met(_)))
    }

    /// Clears `unfinished` if it still names `event` and nobody holds the lock: its marker is there (trace V1).
    ///
    /// # Errors
    /// [`StoreError`]; the next one that finds it busy clears it.
    pub async fn clear_unfinished(&self, session: &SessionKey, event: &EventId) -> Result<(), StoreError> {
        let (pk, sk) = keys::head(session);
        let request = self
            .update_item(pk, sk)
            .update_expression(format!("REMOVE {UNFINISHED}"))
            .condition_expression("unfinished = :event AND (attribute_not_exists(#owner) OR lease_until < :over)")
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_values(":event", s(event.as_str()))
            .expression_attribute_values(":over", ms(self.clock().now_ms() - LEASE_MARGIN));
        self.update(request).await.map(|_| ())
    }

    /// Notes that `receives` receives of `event` are accounted for, without the lock (trace V3).
    ///
    /// # Errors
    /// [`StoreError`]; the next receive notes more.
    pub async fn note_receives(&self, session: &SessionKey, event: &EventId, receives: u32) -> Result<(), StoreError> {
        let (pk, sk) = keys::head(session);
        let request = self
            .update_item(pk, sk)
            .update_expression("SET noted_event = :event, noted_receives = :receives")
            .condition_expression("attribute_exists(pk)")
            .expression_attribute_values(":event", s(event.as_str()))
            .expression_attribute_values(":receives", n(receives));
        self.update(request).await.map(|_| ())
    }

    /// Stores a stop: everything before `position` ends. Only ever later. Returns the head as it is now.
    ///
    /// # Errors
    /// [`StoreError`]; storing it again is harmless.
    pub async fn stop(&self, session: &SessionKey, position: &Position) -> Result<Head, StoreError> {
        let (pk, sk) = keys::head(session);
        let request = self
            .update_item(pk, sk)
            .update_expression(
                "SET stop_before = :stop, layout = if_not_exists(layout, :layout), \
                 fence = if_not_exists(fence, :zero), generation = if_not_exists(generation, :zero), \
                 message_count = if_not_exists(message_count, :zero), boundary = if_not_exists(boundary, :zero)",
            )
            .condition_expression("attribute_not_exists(stop_before) OR stop_before < :stop")
            .expression_attribute_values(":stop", s(position.as_str()))
            .expression_attribute_values(":layout", n(LAYOUT))
            .expression_attribute_values(":zero", n(0))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match self.update(request).await? {
            Conditional::Met(item) | Conditional::Failed(item) => from_item("session head", item.unwrap_or_default()),
        }
    }

    /// The head as it is; `None` for a session that never was.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn head(&self, session: &SessionKey) -> Result<Option<Head>, StoreError> {
        let (pk, sk) = keys::head(session);
        self.get(self.get_item(pk, sk)).await?.map(|item| from_item("session head", item)).transpose()
    }

    /// Puts a new item into a transaction: refused if there is one, whose image decides then.
    pub(crate) fn put_new(&self, item: Item) -> Result<Put, StoreError> {
        Put::builder()
            .table_name(&*self.table)
            .set_item(Some(item))
            .condition_expression("attribute_not_exists(pk)")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .map_err(|error| StoreError::Refused { operation: "TransactWriteItems", source: error.into() })
    }

    /// The heads of at most `limit` sessions, by key: for the operator's commands and the replay's output.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn sessions(&self, limit: usize) -> Result<Vec<(SessionKey, Head)>, StoreError> {
        let mut sessions = Vec::new();
        for item in self.scan("sk = :sk", "HEAD", limit).await? {
            let pk = crate::item::text(&item, keys::PK).unwrap_or_default().to_owned();
            if let Some(session) = pk.strip_prefix("S#") {
                sessions.push((SessionKey::from_text(session), from_item("session head", item)?));
            }
        }
        sessions.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(sessions)
    }
}

/// What goes from the head when the unfinished event is finished. The noted receives stay: they may be those of an event
/// that waits behind it, which would be given up without them (trace V3), and they count for the event they name alone.
const UNFINISHED: &str = "unfinished, unfinished_accepted_at, unfinished_route, unfinished_position, attempts, step, \
                          ask, waited_until, receipt, receipt_receives, unstarted";

pub(crate) fn update(update: Update) -> TransactWriteItem {
    TransactWriteItem::builder().update(update).build()
}

pub(crate) fn put(put: Put) -> TransactWriteItem {
    TransactWriteItem::builder().put(put).build()
}
