//! `GET /v1/approvals` and `POST /v1/approvals/{id}`: what waits for a person, and the answer. A decision is stored before
//! it is answered, and asking again answers the same.

use serde_json::{Value, json};
use turnlock_channels::{IngressRequest, IngressResponse};
use turnlock_domain::event::Channel;
use turnlock_domain::session::{DEFAULT_ACCOUNT, SessionKey};
use turnlock_store::StoreError;
use turnlock_store::approvals::{Approval, OpenApproval, Verdict};

use super::{Api, Scope, invalid, not_found, unavailable};
use crate::admit::BUSY_RETRY;
use crate::approvals::code;
use crate::decisions::{DecideError, Decisions, Outcome, state_of};
use crate::ingress::{error, later};

/// The most open approvals of an answer: those that close first.
const MOST_SHOWN: usize = 100;

impl Scope {
    /// The caller as a person of its channel.
    pub(super) fn person(&self) -> String {
        let (channel, account) = match self {
            Self::Account { name, .. } => (Channel::Gateway, name.as_str()),
            Self::Everything { channel } => (*channel, DEFAULT_ACCOUNT),
        };
        SessionKey::new(channel.as_str(), DEFAULT_ACCOUNT, account, None).to_string()
    }
}

impl Api {
    /// The open approvals that the caller may decide.
    pub(super) async fn get_approvals(&self, scope: &Scope) -> Result<IngressResponse, StoreError> {
        let is_theirs = |open: &OpenApproval| self.may_decide(scope, &open.asked_by);
        let open = self.store.open_approvals(self.clock.now_ms(), MOST_SHOWN, is_theirs).await?;
        let shown: Vec<Value> = open.iter().map(shown).collect();
        Ok(IngressResponse::json(200, &json!({ "approvals": shown })))
    }

    /// Decides about one.
    pub(super) async fn post_approval(
        &self,
        scope: &Scope,
        id: &str,
        request: &IngressRequest,
    ) -> Result<IngressResponse, StoreError> {
        let verdict = match serde_json::from_slice::<Value>(&request.body) {
            Ok(Value::Object(body)) if body.len() == 1 => match body.get("decision").and_then(Value::as_str) {
                Some("allow") => Verdict::Allow,
                Some("deny") => Verdict::Deny,
                _ => return Ok(invalid(EXPECTED)),
            },
            _ => return Ok(invalid(EXPECTED)),
        };
        let approval = self.store.approval(id).await?;
        let Some(approval) = approval.filter(|it| self.may_decide(scope, &it.asked_by) || scope.sees(&it.session))
        else {
            return Ok(not_found());
        };
        if !self.may_decide(scope, &approval.asked_by) {
            return Ok(error(403, "not_allowed", "this key may not decide about this call"));
        }
        let decided = self.decisions().decide_surely(&approval, verdict, &scope.person(), None).await;
        let outcome = match decided {
            Ok(outcome) => outcome,
            Err(DecideError::Store(error)) => return Ok(unavailable(&error)),
            Err(DecideError::Send(_)) => return Ok(later(503, "unavailable", BUSY_RETRY)),
        };
        Ok(match outcome {
            Outcome::Done => state(200, id, verdict, &scope.person()),
            Outcome::Before { verdict: before, by } => {
                state(if before == verdict { 200 } else { 409 }, id, before, &by)
            }
            Outcome::Over => error(410, "gone", "nothing waits for this decision any more"),
            Outcome::NotTheirs => error(403, "not_allowed", "this key may not decide about this call"),
        })
    }

    /// Whether the caller may decide; the operator always may.
    fn may_decide(&self, scope: &Scope, asked_by: &str) -> bool {
        match scope {
            Scope::Account { .. } => self.policy.may_decide(&scope.person(), asked_by),
            Scope::Everything { .. } => true,
        }
    }

    fn decisions(&self) -> Decisions<'_> {
        Decisions {
            store: &self.store,
            inbound: &*self.admission.inbound,
            outbound: &*self.admission.outbound,
            policy: &self.policy,
            language: self.admission.language,
        }
    }
}

const EXPECTED: &str = "the body must be {\"decision\": \"allow\"} or {\"decision\": \"deny\"}";

fn state(status: u16, id: &str, verdict: Verdict, by: &str) -> IngressResponse {
    IngressResponse::json(status, &json!({ "id": id, "state": state_of(verdict).as_str(), "decided_by": by }))
}

/// An approval as an answer shows it.
fn shown(approval: &Approval) -> Value {
    let input = serde_json::from_str(&approval.input).unwrap_or_else(|_| Value::String(approval.input.clone()));
    json!({
        "id": approval.id,
        "code": code(&approval.id),
        "session": approval.session,
        "event_id": approval.event_id,
        "tool": approval.tool,
        "input": input,
        "asked_by": approval.asked_by,
        "asked_at": approval.asked_at.timestamp(),
        "closes_at": approval.closes_at.timestamp(),
        "state": approval.state.as_str(),
    })
}
