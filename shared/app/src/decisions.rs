//! Deciding about a call that waits for a person, from wherever: a button, a command, the API. One order everywhere: the
//! decision is stored, then the turn is woken, then the card is settled. Each may be repeated, so a sender that died in
//! between does all of it again. The card of what was not decided is settled by whoever ends the turn.

use turnlock_domain::ids::EventId;
use turnlock_queue::{Queue, Receipt, SendError};
use turnlock_store::approvals::{Approval, ApprovalState, Decided, Decision, OpenApproval, Verdict};
use turnlock_store::sessions::Head;
use turnlock_store::{Store, StoreError};

use crate::approvals::{code, settled_card};
use crate::policy::Policy;
use crate::send;
use crate::words::Language;

/// What deciding needs.
#[derive(Clone, Copy)]
pub(crate) struct Decisions<'a> {
    /// Approvals and the heads they wait on.
    pub(crate) store: &'a Store,
    /// Where the turn's message sleeps.
    pub(crate) inbound: &'a dyn Queue,
    /// Where the card is settled.
    pub(crate) outbound: &'a dyn Queue,
    /// Who may decide.
    pub(crate) policy: &'a Policy,
    /// The card's language.
    pub(crate) language: Language,
}

/// What deciding came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is decided so, now or by an earlier sending.
    Done,
    /// Somebody decided before: the same by another hand, or otherwise.
    Before {
        /// What.
        verdict: Verdict,
        /// Who.
        by: String,
    },
    /// It can be decided no more: its time is over, or its turn.
    Over,
    /// It is for others to decide, and still open.
    NotTheirs,
}

/// Why a decision did not come through all of its steps. All of them may be done again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecideError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Send(#[from] SendError),
}

impl Decisions<'_> {
    /// Decides about `approval` in the name of `who`, if the policy lets them.
    pub(crate) async fn decide(
        &self,
        approval: &Approval,
        verdict: Verdict,
        who: &str,
        command: Option<&EventId>,
    ) -> Result<Outcome, DecideError> {
        if self.policy.may_decide(who, &approval.asked_by) {
            self.decide_surely(approval, verdict, who, command).await
        } else {
            Ok(Outcome::NotTheirs)
        }
    }

    /// Decides about `approval` in the name of `who`, who is known to be allowed; `command` is what they typed.
    pub(crate) async fn decide_surely(
        &self,
        approval: &Approval,
        verdict: Verdict,
        who: &str,
        command: Option<&EventId>,
    ) -> Result<Outcome, DecideError> {
        let (by, at) = (who.to_owned(), self.store.clock().now_ms());
        let decision = Decision { verdict, by, at, command: command.cloned() };
        let (outcome, state, by) = match self.store.decide(approval, &decision).await? {
            Decided::Stored(head) => {
                wake(self.inbound, &head).await;
                (Outcome::Done, state_of(verdict), who.to_owned())
            }
            Decided::Before { verdict, by } => {
                // Whoever stored it may have died before the wake.
                if let Some(head) = self.store.head(&approval.session).await? {
                    wake(self.inbound, &head).await;
                }
                (Outcome::Before { verdict, by: by.clone() }, state_of(verdict), by)
            }
            // What it ended with is the turn's to say, by its commit: it may still be decided by somebody whose clock is
            // behind ours.
            Decided::Expired | Decided::Stopped | Decided::Gone => return Ok(Outcome::Over),
        };
        let (id, session, state_word) = (&approval.id, &approval.session, state.as_str());
        tracing::info!(approval = id, event_id = %approval.event_id, %session, who, state = state_word,
            "the call of approval {id} is {state_word}");
        let settled = Approval { state, decided_by: Some(by), ..approval.clone() };
        send::outbound(self.outbound, &settled_card(self.language, &settled)).await?;
        Ok(outcome)
    }

    /// The open approval that a person calls `named`: the one with this code that `who` may decide. None where there is
    /// none, or more than one.
    pub(crate) async fn called(&self, named: &str, who: &str) -> Result<Option<Approval>, StoreError> {
        let is_theirs = |open: &OpenApproval| {
            code(&open.id).eq_ignore_ascii_case(named) && self.policy.may_decide(who, &open.asked_by)
        };
        let mut fitting = self.store.open_approvals(self.store.clock().now_ms(), 2, is_theirs).await?;
        Ok(fitting.pop().filter(|_| fitting.is_empty()))
    }
}

pub(crate) fn state_of(verdict: Verdict) -> ApprovalState {
    match verdict {
        Verdict::Allow => ApprovalState::Allowed,
        Verdict::Deny => ApprovalState::Denied,
    }
}

/// Wakes the turn that sleeps, so that it sees what was stored for it. One that cannot be woken sees it when its sleep
/// ends; one that runs looks by itself.
pub(crate) async fn wake(inbound: &dyn Queue, head: &Head) {
    let (Some(receipt), Some(_), None) = (&head.receipt, head.open_ask(), &head.owner) else { return };
    if let Err(error) = inbound.wake(&Receipt(receipt.clone())).await {
        let event_id = head.unfinished.as_ref().map(ToString::to_string).unwrap_or_default();
        tracing::warn!(event_id, %error, "the turn of event {event_id} was not woken: it wakes when its sleep ends");
    }
}
