//! The commit: the head, the turn's item, the markers, in one transaction.

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure, Update};
use turnlock_domain::commit::{Draft, Marker, Written};
use turnlock_domain::envelope::Position;
use turnlock_domain::ids::EventId;
use turnlock_domain::time::Millis;

use super::{Head, Lock, UNFINISHED, put, update};
use crate::approvals::ApprovalState;
use crate::error::StoreError;
use crate::item::{from_item, ms, n, s};
use crate::request::{Reason, Transaction};
use crate::write::reason;
use crate::{Store, keys, markers};

/// What else changes on the head when a turn is committed.
#[derive(Debug, Clone, Default)]
pub struct HeadChange {
    /// The consolidation that the turn owes: its id, and when the claim ends by itself.
    pub claim: Option<(String, Millis)>,
    /// Tool calls since the last review, after this turn.
    pub tool_calls: u32,
    /// Whether the intro has been said.
    pub introduced: bool,
    /// Whether another event stays unfinished: this one was given up by a queue and overtook it.
    pub keep_unfinished: bool,
    /// The texts for a running turn that end with this commit: its own and those it used, as the head has them.
    pub steer_done: Vec<String>,
    /// What becomes of the approval that the turn waits for: nobody has decided, else the commit is refused.
    pub ask_ended: Option<(String, ApprovalState)>,
}

/// Why a commit was refused. Nothing of the draft is in the history then.
#[derive(Debug)]
pub enum CommitRefused {
    /// The event is committed already, by another worker: its marker decides.
    AlreadyCommitted(Box<Marker>),
    /// A stop reaches the event: what there is may be committed with the mark.
    Stopped,
    /// Somebody decided before the end of the approval was committed: the turn is looked at again (trace V7).
    Decided,
    /// An event whose text was used has been committed by itself meanwhile.
    MergedBefore(EventId),
    /// The lock is somebody else's.
    LockLost,
}

impl Store {
    /// Writes a draft in one transaction: the head, the turn's item, the event's marker. `position` is the event's
    /// place where a stop must refuse the commit; `None` commits in spite of a stop.
    ///
    /// # Errors
    /// [`StoreError`]; the same draft may be written again: what an earlier sending did is recognised.
    pub async fn commit(
        &self,
        draft: &Draft,
        lock: &Lock,
        position: Option<&Position>,
        change: &HeadChange,
    ) -> Result<Written<CommitRefused>, StoreError> {
        let sealed = self.seal_turn(draft, lock.fence).await?;
        let mut actions = vec![update(self.commit_head(draft, lock, position, change)?)];
        actions.push(put(markers::put_marker(self, &draft.marker())?));
        let turn = sealed.is_some().then_some(actions.len());
        if let Some(turn) = sealed {
            actions.push(put(self.put_new(turn)?));
        }
        let first_merged = actions.len();
        for marker in draft.merged_markers() {
            actions.push(put(markers::put_marker(self, &marker)?));
        }
        if let Some((id, state)) = &change.ask_ended {
            actions.extend(self.approval_ended(id, *state, None, draft.at)?);
        }
        let token = commit_token(draft, lock);
        match self.transact(actions, &token).await? {
            Transaction::Done => Ok(Written::Committed),
            Transaction::Cancelled(reasons) => refusal(draft, lock, position, (reasons, turn, first_merged)),
        }
    }

    fn commit_head(
        &self,
        draft: &Draft,
        lock: &Lock,
        position: Option<&Position>,
        change: &HeadChange,
    ) -> Result<Update, StoreError> {
        let reset = matches!(draft.outcome, turnlock_domain::turn::Outcome::Reset);
        let mut sets =
            "SET message_count = :count, last_commit_at = :now, tool_calls = :calls, introduced = :introduced"
                .to_owned();
        let mut removes = "REMOVE #owner, lease_until".to_owned();
        if !change.keep_unfinished {
            removes.push_str(", ");
            removes.push_str(UNFINISHED);
        }
        let mut condition = "#owner = :owner AND fence = :fence".to_owned();
        let (pk, sk) = keys::head(&lock.session);
        let mut head = Update::builder()
            .table_name(&*self.table)
            .key(keys::PK, s(pk))
            .key(keys::SK, s(sk))
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_values(":owner", s(&lock.owner))
            .expression_attribute_values(":fence", n(lock.fence))
            .expression_attribute_values(":count", n(draft.first + draft.messages.len() as u64))
            .expression_attribute_values(":now", ms(draft.at))
            .expression_attribute_values(":calls", n(change.tool_calls))
            .expression_attribute_values(":introduced", AttributeValue::Bool(change.introduced));
        if let Some(position) = position {
            condition.push_str(" AND (attribute_not_exists(stop_before) OR stop_before <= :position)");
            head = head.expression_attribute_values(":position", s(position.as_str()));
        }
        if change.ask_ended.is_some() {
            condition.push_str(" AND attribute_not_exists(ask.decision)");
        }
        if reset {
            sets.push_str(", generation = :generation, boundary = :zero");
            removes.push_str(", claim_job, claim_worker, claim_until, claim_to, claim_failures, claim_failed_count");
            head = head
                .expression_attribute_values(":generation", n(draft.generation))
                .expression_attribute_values(":zero", n(0));
        } else if let Some((job, until)) = &change.claim {
            sets.push_str(", claim_job = :job, claim_until = :until");
            removes.push_str(", claim_worker, claim_to");
            head = head.expression_attribute_values(":job", s(job)).expression_attribute_values(":until", ms(*until));
        }
        let mut expression = format!("{sets} {removes}");
        if !change.steer_done.is_empty() {
            expression.push_str(" DELETE steer :used");
            head = head.expression_attribute_values(":used", AttributeValue::Ss(change.steer_done.clone()));
        }
        head.update_expression(expression)
            .condition_expression(condition)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .map_err(|error| StoreError::Refused { operation: "TransactWriteItems", source: error.into() })
    }
}

/// A turn that is committed with the mark after a stop refused it is another transaction than the refused one, and
/// DynamoDB refuses another body under one token. So it is for one that used fewer texts.
fn commit_token(draft: &Draft, lock: &Lock) -> String {
    let merged = draft.merged.len();
    format!("commit {} {} {} {:?} {merged}", draft.event_id, lock.owner, lock.fence, draft.outcome)
}

/// Reads why a commit was refused: the marker's old image first (it may be ours), then the head's. `turn` and
/// `first_merged` are the places of their reasons.
fn refusal(
    draft: &Draft,
    lock: &Lock,
    position: Option<&Position>,
    (mut reasons, turn, first_merged): (Vec<Reason>, Option<usize>, usize),
) -> Result<Written<CommitRefused>, StoreError> {
    let (head, marker) = (reason(&mut reasons, 0), reason(&mut reasons, 1));
    if marker.condition_failed
        && let Some(item) = marker.item
    {
        let marker = markers::from_stored(item)?;
        if marker.event_id() == &draft.event_id && marker.fence() == lock.fence {
            return Ok(Written::Committed);
        }
        return Ok(Written::Refused(CommitRefused::AlreadyCommitted(Box::new(marker))));
    }
    if head.condition_failed {
        let head: Head = from_item("session head", head.item.unwrap_or_default())?;
        let stopped = position.is_some_and(|position| head.stops(position));
        let decided = head.open_ask().is_some_and(|ask| ask.decision.is_some());
        return match (head.is_held(lock), stopped) {
            (true, true) => Ok(Written::Refused(CommitRefused::Stopped)),
            (false, _) => Ok(Written::Refused(CommitRefused::LockLost)),
            (true, false) if decided => Ok(Written::Refused(CommitRefused::Decided)),
            (true, false) => Err(StoreError::corrupt("session head", &lock.session, "refused a commit it allows")),
        };
    }
    let merged = reasons.iter().skip(first_merged).zip(&draft.merged);
    if let Some((_, event)) = merged.into_iter().find(|(reason, _)| reason.condition_failed) {
        return Ok(Written::Refused(CommitRefused::MergedBefore(event.clone())));
    }
    let what = if turn.is_some_and(|turn| reason(&mut reasons, turn).condition_failed) {
        "a turn stands where the next one belongs"
    } else {
        "no reason was given"
    };
    Err(StoreError::corrupt("turn", &lock.session, what))
}
