//! Calls that wait for a person. What is asked stands on the session head, so that whoever decides and whoever goes on
//! compare the same item; beside it an item of its own, by which the decision is found from a button and listed.
//!
//! The head is the truth: a decision is stored while it is open, not expired and not stopped (traces V7 and V8), it is
//! used once, in the transaction that says that the call was started (trace V5), and sleeping is no attempt (trace V6).

use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure, TransactWriteItem};
use serde::{Deserialize, Serialize};
use turnlock_domain::envelope::Position;
use turnlock_domain::event::Place;
use turnlock_domain::ids::{EventId, digest};
use turnlock_domain::session::SessionKey;
use turnlock_domain::text::cut;
use turnlock_domain::time::Millis;

use crate::error::StoreError;
use crate::item::{from_item, ms, n, s, text, to_item};
use crate::journal::{CallResult, StepWritten};
use crate::request::{Conditional, Item, Transaction};
use crate::sessions::{Head, Lock, put, update};
use crate::write::reason;
use crate::{MARKER_LIFETIME, Store, keys};

/// The longest time that decisions may take, all those of a turn together and counted from when its event was accepted: each
/// sleep of the waiting message is a receive, of which its queue counts a thousand, and keeps it for two weeks.
pub const LONGEST_EXPIRY: Duration = Duration::from_secs(7 * 24 * 3600);

/// The most open approvals among which those that somebody wants are looked for.
pub const MOST_OPEN: usize = 2000;

/// How many digits of an id nobody can guess: 128 bits.
const ID_DIGITS: usize = 32;

/// What a session's turn waits for, as its head has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// The approval's id: random, so that nobody can name one that they were not shown.
    pub id: String,
    /// The event whose turn asks. Heads of earlier versions do not say it: then it is the unfinished one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<EventId>,
    /// The journal's step, and which of its calls.
    pub step: u32,
    /// The call's index in its step.
    pub call: u32,
    /// The digest of the tool's name and input: what was shown is what runs.
    pub digest: String,
    /// When it was asked.
    pub asked_at: Millis,
    /// From then on nobody decides any more.
    pub expires_at: Millis,
    /// What was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

/// What somebody decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What.
    pub verdict: Verdict,
    /// Who, as `channel:sender`.
    pub by: String,
    /// When.
    pub at: Millis,
    /// The command by which it was typed: which call it means is found once, and kept for when it comes again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<EventId>,
}

/// The decision of a command, after its use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The command.
    pub command: EventId,
    /// The approval that it decided about.
    pub id: String,
}

/// Whether a call may run.
///
/// What a later version may have decided besides is read as [`Verdict::Deny`]: nothing but an allowance lets a call run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may, once.
    Allow,
    /// It may not.
    #[serde(other)]
    Deny,
}

/// An approval as it is found by its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// Its id.
    pub id: String,
    /// The session whose turn waits.
    pub session: SessionKey,
    /// The event whose turn it is.
    pub event_id: EventId,
    /// The journal's step.
    pub step: u32,
    /// The call's index in it.
    pub call: u32,
    /// The tool.
    pub tool: String,
    /// Its input, as JSON.
    pub input: String,
    /// The digest of both.
    pub digest: String,
    /// Who caused the turn, as [`turnlock_domain::event::InboundEvent::person`] says it.
    pub asked_by: String,
    /// Where the card stands.
    pub place: Place,
    /// When it was asked.
    pub asked_at: Millis,
    /// From then on nobody decides any more. The item itself stays as long as a marker.
    pub closes_at: Millis,
    /// What became of it.
    pub state: ApprovalState,
    /// Who decided, as `channel:sender`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
}

/// An open approval as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenApproval {
    /// Its id.
    pub id: String,
    /// Who caused the turn, as [`Approval::asked_by`].
    pub asked_by: String,
}

/// What became of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// It waits.
    Open,
    /// The call was allowed.
    Allowed,
    /// It was denied.
    Denied,
    /// Nobody decided in time.
    Expired,
    /// The turn ended before anybody decided.
    Stopped,
    /// A state that this version does not know.
    #[serde(other)]
    Unknown,
}

impl ApprovalState {
    /// The word in items and in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
        }
    }
}

impl Approval {
    /// What of it stands on the head.
    #[must_use]
    pub fn ask(&self) -> Ask {
        Ask {
            id: self.id.clone(),
            event_id: Some(self.event_id.clone()),
            step: self.step,
            call: self.call,
            digest: self.digest.clone(),
            asked_at: self.asked_at,
            expires_at: self.closes_at,
            decision: None,
        }
    }
}

/// By what a sleeping message is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sleeper<'a> {
    /// The receipt of this receive.
    pub receipt: &'a str,
    /// Its number.
    pub receives: u32,
}

impl<'a> Sleeper<'a> {
    /// This receive, unless the head knows a later one: a worker that was late must not take its place, for the message
    /// is woken by the last receipt alone. A receipt that another event has left there wakes nobody.
    #[must_use]
    pub fn or_later(self, head: &'a Head) -> Self {
        let left_over = head.ask.is_some() && head.open_ask().is_none();
        match head.receipt.as_deref().filter(|_| !left_over) {
            Some(receipt) if head.receipt_receives > self.receives => Self { receipt, receives: head.receipt_receives },
            _ => self,
        }
    }
}

/// What going to sleep came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slept {
    /// The lock is released; a decision or a stop wakes the message.
    Asleep,
    /// There is a decision or a stop already: the lock is still held.
    Awake,
    /// The lock is somebody else's.
    LockLost,
}

/// What storing a decision came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    /// It is stored, now or by an earlier sending; the head as it is now: whoever sleeps is to be woken.
    Stored(Box<Head>),
    /// Somebody has decided otherwise, or somebody else has decided.
    Before {
        /// What.
        verdict: Verdict,
        /// Who, as `channel:sender`.
        by: String,
    },
    /// Its time is over.
    Expired,
    /// The turn is stopped.
    Stopped,
    /// The turn waits for it no longer.
    Gone,
}

/// What is done with a decision.
#[derive(Debug, Clone, Copy)]
pub enum Use<'a> {
    /// The call is started: from here on it may have taken effect.
    Start,
    /// The call does not run; this is what the model reads instead.
    Refuse(&'a CallResult),
}

impl Store {
    /// An id for an approval that is open until `closes_at`: ids sort by that time, and the rest cannot be guessed. What is
    /// random here could be worked out from what it drew before, so no id shows it: a hash of two draws does.
    #[must_use]
    pub fn approval_id(&self, closes_at: Millis) -> String {
        let draws = format!("approval {} {}", self.write_name(), self.write_name());
        format!("{:011x}{}", closes_at.0.max(0), cut(&digest(draws.as_bytes()), ID_DIGITS))
    }

    /// Parks a turn: what it asks for is stored, and the lock released. That is no attempt.
    ///
    /// # Errors
    /// [`StoreError`]; the same approval may be parked again.
    pub async fn park(
        &self,
        lock: &Lock,
        position: &Position,
        approval: &Approval,
        sleeper: Sleeper<'_>,
    ) -> Result<StepWritten, StoreError> {
        let ask = serde_dynamo::to_attribute_value(approval.ask())
            .map_err(|_| StoreError::corrupt("approval", &approval.id, "it cannot be written"))?;
        let head = self
            .asleep(lock, sleeper, ", ask = :ask", " AND (attribute_not_exists(ask) OR ask.event_id <> :event)")
            .expression_attribute_values(":ask", ask)
            .expression_attribute_values(":position", s(position.as_str()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let ttl = approval.asked_at.ttl(MARKER_LIFETIME);
        let item = to_item("approval", keys::approval(&approval.id), approval, Some(ttl))?;
        let listed = OpenApproval { id: approval.id.clone(), asked_by: approval.asked_by.clone() };
        let listed = to_item("approval", keys::open_approval(&approval.id), &listed, Some(ttl))?;
        let actions = vec![update(Self::built(head)?), put(self.put_new(item)?), put(self.put_over(listed)?)];
        match self.transact(actions, &format!("park {}", approval.id)).await? {
            Transaction::Done => Ok(StepWritten::Written),
            Transaction::Cancelled(mut reasons) => {
                let head: Head = from_item("session head", reason(&mut reasons, 0).item.unwrap_or_default())?;
                Ok(match head.ask.as_ref() {
                    // An earlier sending whose answer was lost; by now the lock may be the next one's.
                    Some(ask) if ask.id == approval.id => StepWritten::Written,
                    _ if !head.is_held(lock) => StepWritten::LockLost,
                    _ if head.stops(position) => StepWritten::Stopped,
                    ask => {
                        let asks = ask.map(|ask| ask.id.as_str()).unwrap_or_default();
                        let what = format!("at fence {} it refused to wait for {}: {asks}", head.fence, approval.id);
                        return Err(StoreError::corrupt("session head", &lock.session, what));
                    }
                })
            }
        }
    }

    /// Releases the lock of a turn that still waits for the decision `id`. That is no attempt. As with [`Store::park`],
    /// `sleeper` is the latest receive that the caller knows: [`Sleeper::or_later`].
    ///
    /// # Errors
    /// [`StoreError`]; the lock then ends with its lease.
    pub async fn sleep(
        &self,
        lock: &Lock,
        position: &Position,
        id: &str,
        sleeper: Sleeper<'_>,
    ) -> Result<Slept, StoreError> {
        let (pk, sk) = keys::head(&lock.session);
        let update = Self::built(
            self.asleep(lock, sleeper, "", " AND ask.id = :id AND attribute_not_exists(ask.decision)")
                .expression_attribute_values(":id", s(id))
                .expression_attribute_values(":position", s(position.as_str())),
        )?;
        let request = self
            .update_item(pk, sk)
            .update_expression(update.update_expression())
            .set_condition_expression(update.condition_expression().map(str::to_owned))
            .set_expression_attribute_names(update.expression_attribute_names().cloned())
            .set_expression_attribute_values(update.expression_attribute_values().cloned())
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match self.update(request).await? {
            Conditional::Met(_) => Ok(Slept::Asleep),
            Conditional::Failed(item) => {
                let head: Head = from_item("session head", item.unwrap_or_default())?;
                let released = head.owner.is_none() && head.fence == lock.fence;
                Ok(match head.is_held(lock) {
                    true => Slept::Awake,
                    // Our own sending whose answer was lost; somebody may have decided since.
                    false if released => Slept::Asleep,
                    false => Slept::LockLost,
                })
            }
        }
    }

    fn asleep(
        &self,
        lock: &Lock,
        sleeper: Sleeper<'_>,
        and_set: &str,
        and_if: &str,
    ) -> aws_sdk_dynamodb::types::builders::UpdateBuilder {
        let expression = format!(
            "SET receipt = :receipt, receipt_receives = :receives, noted_event = :event, noted_receives = :receives, \
             attempts = :zero{and_set} REMOVE #owner, lease_until"
        );
        self.update_over(keys::head(&lock.session), &expression)
            .condition_expression(format!(
                "#owner = :owner AND fence = :fence AND \
                 (attribute_not_exists(stop_before) OR stop_before <= :position){and_if}"
            ))
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_values(":owner", s(&lock.owner))
            .expression_attribute_values(":fence", n(lock.fence))
            .expression_attribute_values(":receipt", s(sleeper.receipt))
            .expression_attribute_values(":receives", n(sleeper.receives))
            .expression_attribute_values(":event", s(lock.event.as_str()))
            .expression_attribute_values(":zero", n(0))
    }

    /// Stores a decision, if the turn still waits for just this, nobody has decided, nothing stops it and its time is not
    /// over. Attempts begin anew with it.
    ///
    /// # Errors
    /// [`StoreError`]; storing it again is harmless.
    pub async fn decide(&self, approval: &Approval, decision: &Decision) -> Result<Decided, StoreError> {
        let corrupt = || StoreError::corrupt("approval", &approval.id, "its decision cannot be written");
        let value = serde_dynamo::to_attribute_value(decision).map_err(|_| corrupt())?;
        let head = self
            .update_over(keys::head(&approval.session), "SET ask.decision = :decision, attempts = :zero")
            .condition_expression(
                "ask.id = :id AND ask.digest = :digest AND attribute_not_exists(ask.decision) AND \
                 (attribute_not_exists(ask.event_id) OR ask.event_id = unfinished) AND ask.expires_at > :at AND (attribute_not_exists(stop_before) OR stop_before <= unfinished_position)",
            )
            .expression_attribute_values(":decision", value)
            .expression_attribute_values(":zero", n(0))
            .expression_attribute_values(":id", s(&approval.id))
            .expression_attribute_values(":digest", s(&approval.digest))
            .expression_attribute_values(":at", ms(decision.at))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let state = match decision.verdict {
            Verdict::Allow => ApprovalState::Allowed,
            Verdict::Deny => ApprovalState::Denied,
        };
        let ended = self.approval_ended(&approval.id, state, Some(&decision.by), decision.at)?;
        let actions = std::iter::once(update(Self::built(head)?)).chain(ended).collect();
        let token = format!("decide {} {:?} {} {}", approval.id, decision.verdict, decision.by, decision.at.0);
        let transaction = self.transact(actions, &token).await?;
        let Transaction::Cancelled(mut reasons) = transaction else {
            return Ok(match self.head(&approval.session).await? {
                Some(head) => Decided::Stored(Box::new(head)),
                None => Decided::Gone,
            });
        };
        let head: Head = from_item("session head", reason(&mut reasons, 0).item.unwrap_or_default())?;
        let Some(ask) = head.ask.clone().filter(|ask| ask.id == approval.id) else {
            return self.decided_before(approval, decision, head).await;
        };
        Ok(match ask.decision {
            Some(stored) if stored.verdict == decision.verdict && stored.by == decision.by => {
                Decided::Stored(Box::new(head))
            }
            Some(Decision { verdict, by, .. }) => Decided::Before { verdict, by },
            None if head.unfinished_position.as_ref().is_some_and(|position| head.stops(position)) => Decided::Stopped,
            None if ask.expires_at <= decision.at => Decided::Expired,
            None => Decided::Gone,
        })
    }

    /// What became of an approval that its turn has gone on from: whoever decides again is told what they were told.
    async fn decided_before(
        &self,
        approval: &Approval,
        decision: &Decision,
        head: Head,
    ) -> Result<Decided, StoreError> {
        let Some(Approval { state, decided_by: Some(by), .. }) = self.approval(&approval.id).await? else {
            return Ok(Decided::Gone);
        };
        let verdict = match state {
            ApprovalState::Allowed => Verdict::Allow,
            ApprovalState::Denied => Verdict::Deny,
            ApprovalState::Open | ApprovalState::Expired | ApprovalState::Stopped | ApprovalState::Unknown => {
                return Ok(Decided::Gone);
            }
        };
        let same = verdict == decision.verdict && by == decision.by;
        Ok(if same { Decided::Stored(Box::new(head)) } else { Decided::Before { verdict, by } })
    }

    /// Uses the decision that `ask` has, once: the journal says that the call was started, or what it is refused with.
    ///
    /// # Errors
    /// [`StoreError`]; whether it was used is then known from the journal.
    pub async fn use_decision(
        &self,
        lock: &Lock,
        position: &Position,
        ask: &Ask,
        usage: Use<'_>,
    ) -> Result<StepWritten, StoreError> {
        let used = &ask.id;
        let since = ask.decision.as_ref().map_or(ask.expires_at, |decision| decision.at);
        let mut condition = "#owner = :owner AND fence = :fence AND ask.id = :id".to_owned();
        let command = ask.decision.as_ref().and_then(|decision| decision.command.clone());
        let and_set = if command.is_some() { ", answered = :answered" } else { "" };
        let mut head = self
            .update_over(keys::head(&lock.session), &format!("SET waited_until = :since{and_set} REMOVE ask"))
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_values(":owner", s(&lock.owner))
            .expression_attribute_values(":fence", n(lock.fence))
            .expression_attribute_values(":id", s(&ask.id))
            .expression_attribute_values(":since", ms(since));
        if let Some(command) = command {
            let answered = serde_dynamo::to_attribute_value(Answered { command, id: ask.id.clone() })
                .map_err(|_| StoreError::corrupt("approval", &ask.id, "its use cannot be written"))?;
            head = head.expression_attribute_values(":answered", answered);
        }
        let slot = match usage {
            Use::Start => {
                condition.push_str(
                    " AND ask.decision.verdict = :allow AND \
                     (attribute_not_exists(stop_before) OR stop_before <= :position)",
                );
                head = head
                    .expression_attribute_values(":allow", s("allow"))
                    .expression_attribute_values(":position", s(position.as_str()));
                self.started_item(lock, ask.step, ask.call)?
            }
            Use::Refuse(result) => self.result_item(lock, ask.step, ask.call, result)?,
        };
        let head = head
            .condition_expression(condition)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let token = format!("use {} {} {}", ask.id, lock.owner, lock.fence);
        match self.transact(vec![update(Self::built(head)?), put(self.put_new(slot)?)], &token).await? {
            Transaction::Done => Ok(StepWritten::Written),
            Transaction::Cancelled(mut reasons) => {
                let (head, slot) = (reason(&mut reasons, 0), reason(&mut reasons, 1));
                let ours = slot.item.is_some_and(|item| text(&item, "owner") == Some(&lock.owner));
                let head: Head = from_item("session head", head.item.unwrap_or_default())?;
                Ok(match (head.is_held(lock), ours) {
                    (false, _) => StepWritten::LockLost,
                    (true, true) => StepWritten::Written,
                    (true, false) if head.stops(position) => StepWritten::Stopped,
                    (true, false) => {
                        let ask = head.ask.as_ref().map(|ask| (&ask.id, ask.decision.as_ref().map(|it| it.verdict)));
                        let what = format!("at fence {} it has {ask:?}, and not the use of {}", head.fence, used);
                        return Err(StoreError::corrupt("session head", &lock.session, what));
                    }
                })
            }
        }
    }

    /// The approval of this id.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn approval(&self, id: &str) -> Result<Option<Approval>, StoreError> {
        let (pk, sk) = keys::approval(id);
        self.get(self.get_item(pk, sk)).await?.filter(is_asked).map(from_stored).transpose()
    }

    /// The approvals that are open at `now` and `wanted`, those that close first in front: at most `limit`, which is at most
    /// 100, of the first [`MOST_OPEN`].
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn open_approvals(
        &self,
        now: Millis,
        limit: usize,
        wanted: impl Fn(&OpenApproval) -> bool,
    ) -> Result<Vec<Approval>, StoreError> {
        let request = self
            .query()
            .key_condition_expression("pk = :pk AND sk > :now")
            .expression_attribute_values(":pk", s(keys::OPEN))
            .expression_attribute_values(":now", s(format!("{:011x}~", now.0.max(0))));
        let mut places = Vec::new();
        for item in self.query_pages(request, MOST_OPEN).await? {
            let listed: OpenApproval = from_item("approval", item)?;
            if wanted(&listed) && places.len() < limit {
                places.push(keys::approval(&listed.id));
            }
        }
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let items = self.batch_get(places).await?.into_iter().filter(is_asked);
        let mut open = items.map(from_stored).collect::<Result<Vec<_>, _>>()?;
        // A turn that a version ended which knows of no asking has left its place in the list.
        open.retain(|approval| approval.state == ApprovalState::Open);
        open.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(open)
    }

    /// At most `limit` approvals, whatever became of them: for the replay's output.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn approvals(&self, limit: usize) -> Result<Vec<Approval>, StoreError> {
        let request =
            self.query().key_condition_expression("pk = :pk").expression_attribute_values(":pk", s(keys::APPROVALS));
        let items = self.query_pages(request, limit).await?;
        items.into_iter().filter(is_asked).map(from_stored).collect()
    }

    /// Notes on the approval's own item what became of it, and takes it from the list of the open ones. One that is not there
    /// any more must not refuse a commit: what is noted then names no call, is read as none, and goes like the rest. `at` is
    /// the time of the transaction's own making, so that a repetition is the same one.
    pub(crate) fn approval_ended(
        &self,
        id: &str,
        state: ApprovalState,
        by: Option<&str>,
        at: Millis,
    ) -> Result<[TransactWriteItem; 2], StoreError> {
        let mut set = "SET #state = :state, #ttl = if_not_exists(#ttl, :ttl)".to_owned();
        if by.is_some() {
            set.push_str(", decided_by = :by");
        }
        let item = self
            .update_over(keys::approval(id), &set)
            .expression_attribute_names("#state", "state")
            .expression_attribute_names("#ttl", keys::TTL)
            .expression_attribute_values(":ttl", n(at.ttl(MARKER_LIFETIME).0))
            .expression_attribute_values(":state", s(state.as_str()));
        let item = match by {
            Some(by) => item.expression_attribute_values(":by", AttributeValue::S(by.to_owned())),
            None => item,
        };
        Ok([update(Self::built(item)?), self.delete_over(keys::open_approval(id), None)?])
    }
}

/// Whether an item is what somebody was asked, and not only what was noted of an end.
fn is_asked(item: &Item) -> bool {
    item.contains_key("id")
}

fn from_stored(item: Item) -> Result<Approval, StoreError> {
    from_item("approval", item)
}
