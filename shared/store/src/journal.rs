//! The steps of a turn in progress, stored as they happen, so that a successor resumes and repeats nothing.
//!
//! A step is written in one transaction with the head (owner, fence, no stop); a result is put once into its call's own
//! slot, by the worker that ran the call or by a successor's verdict `unknown`, whichever comes first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;
use serde::{Deserialize, Serialize};
use turnlock_domain::envelope::Position;
use turnlock_domain::ids::EventId;
use turnlock_domain::message::Block;
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;
use turnlock_domain::turn::{ModelCall, Usage};

use crate::error::StoreError;
use crate::item::{from_item, json_fault, ms, n, s, text, to_item};
use crate::request::{Conditional, Item, Reason, Transaction};
use crate::sessions::{Head, Lock, put, update};
use crate::steer::SteerText;
use crate::write::reason;
use crate::{MARKER_LIFETIME, Store, keys};

/// The most steps of a turn.
pub const MAX_STEPS: u32 = 40;
/// The most calls of a step that are made: what a step asks for beyond them is refused and has no slot.
pub const MAX_CALLS: u32 = 16;
/// The most journal items of a turn: each step, of each call its result and that it was started, and as much again that a
/// later version may keep beside them.
const MAX_ITEMS: usize = 2 * (MAX_STEPS * (1 + 2 * MAX_CALLS)) as usize;

/// What the model said in one step: its blocks, tool uses among them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Step {
    /// The step's number, from 1.
    pub step: u32,
    /// The model's output, reasoning and all.
    pub output: Vec<Block>,
    /// Tokens it took.
    #[serde(default)]
    pub usage: Usage,
    /// Calls whose arguments could not be read, and what the model is told: they never run, whoever resumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bad: Vec<(String, String)>,
    /// The calls that may only run when a person allows it, by their index. Decided when the step was made: after a
    /// deploy with other rules none is started a second time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<u32>,
    /// The calls that may not run at all, by their index: decided when the step was made, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<u32>,
    /// The texts that were used before this step, in order: what came after the results of the step before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steered: Vec<SteerText>,
    /// The calls of models that it took, `usage` in all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ModelCall>,
}

impl Step {
    /// The step as the journal gives it back: whoever makes it and whoever resumes it run the same calls. A number with
    /// many digits may be another one when it was written and read.
    ///
    /// # Errors
    /// [`StoreError`] for a step that cannot be written.
    pub fn as_stored(&self, event: &EventId) -> Result<Self, StoreError> {
        parse(event, &json(event, self)?)
    }
}

/// What became of one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// What the model reads.
    pub content: Vec<Block>,
    /// Whether it is an error.
    #[serde(default)]
    pub is_error: bool,
    /// How the call ended, for logs and replays.
    pub outcome: CallOutcome,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// It ran.
    Ok,
    /// It ran and failed, or could not run.
    Error,
    /// It was not allowed to run.
    Refused,
    /// It was started by a worker that died, or a later version has another word for it: nobody knows.
    #[serde(other)]
    Unknown,
}

/// A turn's journal.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Journal {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The results, by step and call.
    pub results: BTreeMap<(u32, u32), CallResult>,
    /// The calls that a person allowed and that were started.
    pub started: BTreeSet<(u32, u32)>,
}

/// What writing a step came to.
#[derive(Debug, PartialEq, Eq)]
pub enum StepWritten {
    /// It is in the journal.
    Written,
    /// A stop reaches the event.
    Stopped,
    /// The lock is somebody else's.
    LockLost,
}

/// What putting a result came to.
#[derive(Debug, PartialEq)]
pub enum ResultSlot {
    /// The slot holds this result.
    Mine,
    /// It held another one already, which counts.
    Taken(CallResult),
}

#[derive(Serialize, Deserialize)]
struct StepItem {
    owner: String,
    fence: u64,
    body: String,
    at: Millis,
}

impl Store {
    /// Stores a step and renews the lease, if the lock is mine and no stop reaches the event.
    ///
    /// # Errors
    /// [`StoreError`]; the same step may be written again.
    pub async fn write_step(
        &self,
        lock: &Lock,
        position: &Position,
        step: &Step,
        lease: Duration,
    ) -> Result<StepWritten, StoreError> {
        let now = self.clock().now_ms();
        let head = self
            .update_over(keys::head(&lock.session), "SET step = :step, lease_until = :lease")
            .condition_expression(
                "#owner = :owner AND fence = :fence AND (attribute_not_exists(stop_before) OR stop_before <= :position)",
            )
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_values(":owner", s(&lock.owner))
            .expression_attribute_values(":fence", n(lock.fence))
            .expression_attribute_values(":position", s(position.as_str()))
            .expression_attribute_values(":step", n(step.step))
            .expression_attribute_values(":lease", ms(now + lease))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let item = StepItem { owner: lock.owner.clone(), fence: lock.fence, body: json(&lock.event, step)?, at: now };
        let key = keys::journal_step(&lock.session, &lock.event, step.step);
        let item = to_item("journal step", key, &item, Some(now.ttl(MARKER_LIFETIME)))?;
        let token = format!("step {} {} {} {}", lock.event, lock.owner, lock.fence, step.step);
        match self.transact(vec![update(Self::built(head)?), put(self.put_new(item)?)], &token).await? {
            Transaction::Done => Ok(StepWritten::Written),
            Transaction::Cancelled(reasons) => step_refusal(lock, position, step, reasons),
        }
    }

    /// Puts a call's result into its slot unless there is one.
    ///
    /// # Errors
    /// [`StoreError`]; the same result may be put again.
    pub async fn write_result(
        &self,
        lock: &Lock,
        step: u32,
        call: u32,
        result: &CallResult,
    ) -> Result<ResultSlot, StoreError> {
        let request = self
            .put_item(self.result_item(lock, step, call, result)?)
            .condition_expression("attribute_not_exists(pk)")
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match self.put(request).await? {
            Conditional::Met(_) => Ok(ResultSlot::Mine),
            Conditional::Failed(old) => {
                let old: StepItem = from_item("journal result", old.unwrap_or_default())?;
                if old.owner == lock.owner {
                    return Ok(ResultSlot::Mine);
                }
                Ok(ResultSlot::Taken(parse(&lock.event, &old.body)?))
            }
        }
    }

    pub(crate) fn result_item(
        &self,
        lock: &Lock,
        step: u32,
        call: u32,
        result: &CallResult,
    ) -> Result<Item, StoreError> {
        let key = keys::journal_result(&lock.session, &lock.event, step, call);
        self.slot(lock, key, json(&lock.event, result)?)
    }

    /// The sign that an approved call was started.
    pub(crate) fn started_item(&self, lock: &Lock, step: u32, call: u32) -> Result<Item, StoreError> {
        self.slot(lock, keys::journal_started(&lock.session, &lock.event, step, call), String::new())
    }

    fn slot(&self, lock: &Lock, key: keys::Key, body: String) -> Result<Item, StoreError> {
        let now = self.clock().now_ms();
        let item = StepItem { owner: lock.owner.clone(), fence: lock.fence, body, at: now };
        to_item("journal item", key, &item, Some(now.ttl(MARKER_LIFETIME)))
    }

    /// The journal of an event.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn journal(&self, session: &SessionKey, event: &EventId) -> Result<Journal, StoreError> {
        let prefix = keys::journal_prefix(event);
        let request = self
            .query()
            .key_condition_expression("pk = :pk AND begins_with(sk, :prefix)")
            .expression_attribute_values(":pk", s(keys::session_partition(session)))
            .expression_attribute_values(":prefix", s(&prefix));
        let mut journal = Journal::default();
        for item in self.query_pages(request, MAX_ITEMS).await? {
            let place = text(&item, keys::SK).and_then(|sk| sk.strip_prefix(&prefix)).and_then(place);
            // What a later version keeps there besides is no reason to give up the session.
            let Some(place) = place else { continue };
            let item: StepItem = from_item("journal item", item)?;
            match place {
                Place::Step => journal.steps.push(parse(event, &item.body)?),
                Place::Result(step, call) => {
                    journal.results.insert((step, call), parse(event, &item.body)?);
                }
                Place::Started(step, call) => {
                    journal.started.insert((step, call));
                }
            }
        }
        Ok(journal)
    }
}

/// What a journal item is.
enum Place {
    Step,
    Result(u32, u32),
    Started(u32, u32),
}

/// `0003` is step 3, `0003#R#001` the result of its call 1, `0003#S#001` that it was started.
fn place(rest: &str) -> Option<Place> {
    let call = |step: &str, call: &str| Some((step.parse().ok()?, call.parse().ok()?));
    if let Some((step, rest)) = rest.split_once("#R#") {
        return call(step, rest).map(|(step, call)| Place::Result(step, call));
    }
    if let Some((step, rest)) = rest.split_once("#S#") {
        return call(step, rest).map(|(step, call)| Place::Started(step, call));
    }
    rest.parse::<u32>().ok().map(|_| Place::Step)
}

fn step_refusal(
    lock: &Lock,
    position: &Position,
    step: &Step,
    mut reasons: Vec<Reason>,
) -> Result<StepWritten, StoreError> {
    let (head, item) = (reason(&mut reasons, 0), reason(&mut reasons, 1));
    if head.condition_failed {
        let head: Head = from_item("session head", head.item.unwrap_or_default())?;
        return Ok(if head.is_held(lock) && head.stops(position) {
            StepWritten::Stopped
        } else {
            StepWritten::LockLost
        });
    }
    let old: StepItem = from_item("journal step", item.item.unwrap_or_default())?;
    if old.owner == lock.owner && old.fence == lock.fence {
        return Ok(StepWritten::Written);
    }
    Err(StoreError::corrupt("journal step", &lock.event, format!("step {} is another worker's", step.step)))
}

fn json(event: &EventId, value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::corrupt("journal item", event, json_fault(&error)))
}

fn parse<T: serde::de::DeserializeOwned>(event: &EventId, body: &str) -> Result<T, StoreError> {
    serde_json::from_str(body).map_err(|error| StoreError::corrupt("journal item", event, json_fault(&error)))
}
