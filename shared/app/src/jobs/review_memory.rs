//! Memory review: after many tool calls, one look at the last turns for facts that are worth remembering before the
//! conversation is long enough to be consolidated. It only adds facts; the boundary does not move, and what it misses a
//! consolidation still sees.
//!
//! The claim of the job's id makes it one piece of work: claimed, then done in the transaction that keeps its facts.

use turnlock_domain::turn::JobTarget;
use turnlock_models::Purpose;
use turnlock_models::transcript::Line;
use turnlock_store::StoreError;
use turnlock_store::history::StoredTurn;
use turnlock_store::memory::{Evidence, Fact, MAX_FACTS};
use turnlock_store::reviews::{ReviewClaim, Reviewed};

use super::save_memory;
use super::windows::{self, Window};
use super::{
    CLAIM_LEASE, JobError, JobOutcome, Jobs, MAX_FAILURES, Receive, log, log_failure, postponed, retry_after, tomorrow,
};

/// How many messages before the turn that owed the review are looked at too.
const LOOK_BACK: u64 = 20;
/// The most turns that are read.
const MAX_TURNS: i32 = 64;
/// How many known facts the model is shown.
const KNOWN_FACTS: usize = 100;

/// What is looked at, and the turns that it is of.
struct Seen {
    window: Window,
    turns: Vec<StoredTurn>,
}

impl Jobs {
    /// Works once on a review.
    pub(super) async fn review_memory(&self, receive: &Receive<'_>, target: &JobTarget) -> JobOutcome {
        let outcome = match self.review(receive, target).await {
            Ok(outcome) => outcome,
            Err(error) => self.review_failed(receive, &error).await,
        };
        log(receive, None, outcome, receive.count);
        outcome
    }

    async fn review(&self, receive: &Receive<'_>, target: &JobTarget) -> Result<JobOutcome, JobError> {
        let now = self.store.clock().now_ms();
        match self.store.claim_review(&receive.id, &receive.worker, now, CLAIM_LEASE).await? {
            ReviewClaim::Mine => {}
            ReviewClaim::Done => return Ok(JobOutcome::Superseded),
            ReviewClaim::HeldBy { until } => return Ok(JobOutcome::Retry { after: until.since(now) }),
        }
        let generation = self.store.head(&target.session).await?.map(|head| head.generation);
        if generation != Some(target.generation) {
            return Ok(JobOutcome::Superseded);
        }
        let facts = match self.look(target).await? {
            Some(seen) => self.find(receive, target, &seen).await?,
            None => Vec::new(),
        };
        Ok(match self.store.finish_review(&receive.id, &receive.worker, &target.scope, &facts).await? {
            Reviewed::Kept | Reviewed::AlreadyKept => JobOutcome::Done,
            Reviewed::Superseded => JobOutcome::Superseded,
        })
    }

    /// The turn that owed the review and those before it, as much as one call shows: the newest of them.
    async fn look(&self, target: &JobTarget) -> Result<Option<Seen>, StoreError> {
        let from = target.from.saturating_sub(LOOK_BACK);
        let turns = self.store.oldest_turns(&target.session, target.generation, from, MAX_TURNS).await?;
        let turns: Vec<StoredTurn> = turns.into_iter().take_while(|turn| turn.first <= target.from).collect();
        let size = save_memory::window_size(&self.models);
        let window = windows::windows(newest(&turns, size), size).into_iter().next();
        Ok(window.map(|window| Seen { window, turns }))
    }

    async fn find(&self, receive: &Receive<'_>, target: &JobTarget, seen: &Seen) -> Result<Vec<Fact>, JobError> {
        let known = self.store.facts(&target.scope, KNOWN_FACTS).await?;
        let (saved, call) = self.ask(receive, Purpose::ReviewMemory, &seen.window, &known).await?;
        let range = seen.window.range();
        let events =
            seen.turns.iter().filter(|turn| range.contains(&turn.first)).map(|turn| turn.event_id.clone()).collect();
        let (session, now) = (target.session.clone(), self.store.clock().now_ms());
        // A window has a line, so there is evidence.
        let Ok(evidence) = Evidence::new(session, target.generation, range, events, call.model, now) else {
            return Ok(Vec::new());
        };
        let mut facts = save_memory::facts(&saved.facts, &evidence);
        facts.truncate(MAX_FACTS);
        Ok(facts)
    }

    /// Counts a failure in the claim, which it ends. What the store is to blame for is not counted, nor is a receive that
    /// found another worker at it.
    async fn review_failed(&self, receive: &Receive<'_>, error: &JobError) -> JobOutcome {
        if let JobError::Store(StoreError::Unavailable { .. }) | JobError::DailyLimit = error {
            if let Err(error) = self.store.release_review(&receive.id, &receive.worker).await {
                tracing::debug!(job = receive.id, %error, "a review's claim ends by its lease");
            }
            return match error {
                JobError::DailyLimit => tomorrow(receive, self.store.clock().now_ms()),
                error => postponed(receive, error),
            };
        }
        match self.store.fail_review(&receive.id, &receive.worker).await {
            Ok(Some(failures)) => {
                log_failure(receive, error, failures);
                if failures >= MAX_FAILURES {
                    return JobOutcome::Failed;
                }
                JobOutcome::Retry { after: retry_after(failures, error) }
            }
            Ok(None) => JobOutcome::Superseded,
            Err(error) => postponed(receive, &error.into()),
        }
    }
}

/// The lines of the newest turns that fit together, oldest first; of a last turn that is too long by itself, its lines.
fn newest(turns: &[StoredTurn], size: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for turn in turns.iter().rev() {
        let mut earlier = windows::lines(turn.first, &turn.messages);
        if !lines.is_empty() && windows::size(&earlier) + windows::size(&lines) > size {
            break;
        }
        earlier.append(&mut lines);
        lines = earlier;
    }
    lines
}
