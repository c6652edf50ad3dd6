//! Which calls of a step wait for a person, and what becomes of one when somebody has decided.
//!
//! What is asked is settled when the step is made, and stored with it: rules that change while a turn waits let nothing
//! start that somebody was asked about. A decision is used in the transaction that says that the call was started (trace
//! V5): whoever comes after a death in between knows that it may have run.

use std::time::Duration;

use turnlock_domain::ids;
use turnlock_store::approvals::{Approval, ApprovalState, Ask, LONGEST_EXPIRY, Use, Verdict};
use turnlock_store::journal::{CallOutcome, CallResult, MAX_CALLS, Step, StepWritten};

use super::calls::{Call, error_result, uses};
use super::inference::{End, Inference, InferenceError, Progress};
use crate::approvals::{MAX_SHOWN, can_show};
use crate::policy::Action;

/// What a person has to decide at the least, however long its turn has waited for others.
const SHORTEST_EXPIRY: Duration = Duration::from_secs(60);

/// What the model is told of a call that the policy does not allow.
pub(super) const DENIED: &str = "This call is not allowed here and was not executed. Do not try it again: go on without \
                                 it, or tell the user that you may not do it.";
/// What it is told of a call that a person did not allow.
const REFUSED: &str = "A person was asked whether this call may run, and did not allow it: it was not executed. Do not \
                       try it again or get around it; ask the user how to go on.";

/// What becomes of a call that a person was asked about.
pub(super) enum Permit {
    /// It is marked as started, and is to be started now.
    Start,
    /// It does not run; this is in its slot.
    Refused(CallResult),
    /// The stage ends here.
    End(End),
}

impl Inference<'_> {
    /// Notes in a new step which of its calls are asked for and which do not run.
    pub(super) fn judge(&self, step: &mut Step) {
        let (mut asks, mut denied, mut unrun) = (Vec::new(), Vec::new(), Vec::new());
        for (index, id, name, input) in uses(step).take_while(|(index, ..)| *index < MAX_CALLS) {
            if step.bad.iter().any(|(bad, _)| bad == id) {
                continue;
            }
            // Settled now: nobody was asked about it, should a worker that has such a tool go on with the step.
            let Some(tool) = self.tools.get(name) else {
                unrun.push((id.clone(), self.tools.no_such_tool(name)));
                continue;
            };
            match self.policy.action(tool, self.envelope) {
                Action::Allow => {}
                Action::Ask if !can_show(name, &input.to_string()) => unrun.push((id.clone(), too_long())),
                Action::Ask => asks.push(index),
                Action::Deny => denied.push(index),
            }
        }
        step.bad.extend(unrun);
        (step.asks, step.denied) = (asks, denied);
    }

    /// Uses the decision about a call, or ends the stage because there is none yet.
    pub(super) async fn permit(&self, progress: &Progress, call: &Call) -> Result<Permit, InferenceError> {
        let digest = digest(call);
        let is_about = |ask: &&Ask| (ask.step, ask.call, &ask.digest) == (call.step, call.index, &digest);
        let Some(ask) = self.ask.filter(is_about) else {
            return Ok(Permit::End(End::Asks(Box::new(self.approval(call, digest)))));
        };
        let refused = error_result(CallOutcome::Refused, REFUSED);
        let allowed = ask.decision.as_ref().is_some_and(|decision| decision.verdict == Verdict::Allow);
        if allowed && !self.may_start(call) {
            return Ok(Permit::End(self.later(progress)));
        }
        let usage = if allowed { Use::Start } else { Use::Refuse(&refused) };
        match self.store.use_decision(self.lock, &self.envelope.position, ask, usage).await? {
            StepWritten::Written if allowed => Ok(Permit::Start),
            StepWritten::Written => {
                self.log(call, &refused);
                Ok(Permit::Refused(refused))
            }
            // Whoever looks at the turn next sees the stop, and that this call was never started.
            StepWritten::Stopped => {
                let unstarted = progress.unstarted;
                Ok(Permit::End(End::HandBack { after: Some(Duration::ZERO), progress: true, unstarted }))
            }
            StepWritten::LockLost => Ok(Permit::End(End::LockLost)),
        }
    }

    fn approval(&self, call: &Call, digest: String) -> Approval {
        let (event, asked_at) = (&self.envelope.event, self.store.clock().now_ms());
        // All that a turn waits for together is bounded, however often it asks.
        let left = (self.envelope.accepted_at + LONGEST_EXPIRY).since(asked_at).max(SHORTEST_EXPIRY);
        let closes_at = asked_at + self.policy.expiry().min(left);
        Approval {
            id: self.store.approval_id(closes_at),
            session: self.lock.session.clone(),
            event_id: self.lock.event.clone(),
            step: call.step,
            call: call.index,
            tool: call.name.clone(),
            input: call.input.to_string(),
            digest,
            asked_by: event.person(),
            place: event.place(),
            asked_at,
            closes_at,
            state: ApprovalState::Open,
            decided_by: None,
        }
    }
}

/// What was shown is what runs.
fn digest(call: &Call) -> String {
    ids::digest(call.text().as_bytes())
}

fn too_long() -> String {
    format!(
        "This call must be allowed by a person, who has to see all of its arguments, and they are too long for that: at \
         most {MAX_SHOWN} bytes, written as indented JSON. It was not executed. Make it shorter or split it."
    )
}
