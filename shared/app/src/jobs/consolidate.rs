//! Consolidation: memory takes in the oldest turns behind the boundary, then the boundary moves over them.
//!
//! 1. **Claim.** The worker takes the claim that the turn's commit made. A session that was reset, whose boundary moved or
//!    that has another job's claim makes this one void; a claim that another worker holds is waited for.
//! 2. **Range.** The oldest complete turns, the last [`KEEP_TURNS`] left out, as far as they fit into [`MAX_WINDOWS`] calls
//!    and their facts into one transaction. Its end is fixed in the claim, so that every try works on the same messages.
//! 3. **Ask.** The model reads all of the range's text, window by window, and is asked for facts of each. The session is
//!    not locked: turns go on meanwhile. The claim is renewed between the calls.
//! 4. **Keep.** One transaction moves the boundary to the end of the range, with the episode, the facts and the scope's
//!    epoch, if generation, boundary and claim are what they were.
//!
//! A try that fails anywhere before that leaves no trace but its count. Only what does not fit into the transaction (a
//! first turn so long that it has more than [`MAX_FACTS`] facts by itself) is kept before it: it replaces itself when it is
//! written again.

use turnlock_domain::boundary::{KEEP_TURNS, TurnSpan, pick};
use turnlock_domain::ids::EventId;
use turnlock_domain::text::cut;
use turnlock_domain::turn::JobTarget;
use turnlock_models::Purpose;
use turnlock_models::transcript::Line;
use turnlock_store::StoreError;
use turnlock_store::consolidation::{Claim, ClaimStart, FailureNoted, Finished, TargetFixed};
use turnlock_store::history::StoredTurn;
use turnlock_store::memory::{Episode, Evidence, Fact, MAX_FACT_CHARS, MAX_FACTS, MAX_SUMMARY_CHARS, Unmemorable};
use turnlock_store::sessions::Head;

use super::save_memory::{self, Saved};
use super::windows::{self, Window};
use super::{
    CLAIM_LEASE, JobError, JobOutcome, Jobs, MAX_FAILURES, Receive, log, log_failure, postponed, retry_after, tomorrow,
};

/// How many calls of the model a range may need, unless its first turn alone needs more.
const MAX_WINDOWS: usize = 4;
/// How many turns one read fetches.
const PAGE_TURNS: i32 = 64;
/// How far before a boundary that stands inside a turn that turn's beginning is looked for.
const LONGEST_TURN: u64 = 256;
/// How many known facts the model is shown.
const KNOWN_FACTS: usize = 100;
/// The summary of a range in which no text was said.
const NOTHING_SAID: &str = "Nothing was said.";

/// What a try came to.
enum Tried {
    /// The boundary moved to there.
    Moved(u64),
    /// There is no turn to take in.
    Nothing,
    /// The session moved on, or another worker took over.
    Superseded,
}

/// A try that failed, and the end of its range if that was fixed already.
struct Failed {
    error: JobError,
    to: Option<u64>,
}

impl Jobs {
    /// Works once on a consolidation.
    pub(super) async fn consolidate(&self, receive: &Receive<'_>, target: &JobTarget) -> JobOutcome {
        let claim = Claim {
            session: target.session.clone(),
            generation: target.generation,
            from: target.from,
            job: receive.id.clone(),
            worker: receive.worker.clone(),
        };
        let now = self.store.clock().now_ms();
        let (fixed, head) = match self.store.start_consolidation(&claim, now, CLAIM_LEASE).await {
            Ok(ClaimStart::Mine { to, head }) => (to, head),
            Ok(ClaimStart::Superseded) => return ended(receive, None, JobOutcome::Superseded, receive.count),
            Ok(ClaimStart::HeldBy { until }) => return JobOutcome::Retry { after: until.since(now) },
            Err(error) => return postponed(receive, &error.into()),
        };
        let attempts = head.claim_failures.saturating_add(1);
        if given_up(&head) {
            self.let_go(&claim).await;
            return ended(receive, fixed, JobOutcome::Superseded, head.claim_failures);
        }
        match self.take_in(receive, &claim, fixed, &head).await {
            Ok(Tried::Moved(to)) => ended(receive, Some(to), JobOutcome::Done, attempts),
            Ok(Tried::Nothing) => {
                self.let_go(&claim).await;
                ended(receive, Some(target.from), JobOutcome::Done, attempts)
            }
            Ok(Tried::Superseded) => ended(receive, fixed, JobOutcome::Superseded, attempts),
            Err(failed) => self.failed(receive, &claim, failed).await,
        }
    }

    /// Steps 2 to 4, under a claim that is this worker's.
    async fn take_in(
        &self,
        receive: &Receive<'_>,
        claim: &Claim,
        fixed: Option<u64>,
        head: &Head,
    ) -> Result<Tried, Failed> {
        let failed = |to| move |error: JobError| Failed { error, to };
        let turns = self.load(claim, fixed).await.map_err(|error| failed(fixed)(error.into()))?;
        let Some(to) = fixed.or_else(|| self.pick_end(claim.from, &turns)) else { return Ok(Tried::Nothing) };
        let to = match self.store.fix_consolidation_target(claim, to).await {
            Ok(TargetFixed::Fixed(to)) => to,
            Ok(TargetFixed::Lost) => return Ok(Tried::Superseded),
            Err(error) => return Err(failed(fixed)(error.into())),
        };
        let turns: Vec<StoredTurn> = turns.into_iter().take_while(|turn| end(turn) <= to).collect();
        if turns.last().map(end) != Some(to) || to > head.message_count {
            let error = corrupt(claim, "its claim ends where no turn ends");
            return Err(failed(Some(to))(error.into()));
        }
        self.read_and_keep(receive, claim, &turns, to).await.map_err(failed(Some(to)))
    }

    /// The turns from the boundary on: at least as many as a range may have, or all there are. A boundary that stands
    /// inside a turn (old damage) begins with that turn.
    async fn load(&self, claim: &Claim, fixed: Option<u64>) -> Result<Vec<StoredTurn>, StoreError> {
        let page = |from| self.store.oldest_turns(&claim.session, claim.generation, from, PAGE_TURNS);
        let mut turns = page(claim.from).await?;
        if claim.from > 0 && turns.first().is_none_or(|turn| turn.first > claim.from) {
            turns = page(claim.from.saturating_sub(LONGEST_TURN)).await?;
            turns.retain(|turn| end(turn) > claim.from);
        }
        // A page also ends at 1 MB, so a short one is not the last.
        while let Some(last) = turns.last().map(end) {
            let enough = turns.len() >= PAGE_TURNS as usize && fixed.is_none_or(|to| last >= to);
            let next = if enough { Vec::new() } else { page(last).await? };
            if next.is_empty() {
                break;
            }
            turns.extend(next);
        }
        Ok(turns)
    }

    /// The end of the range: what one job can take in, and never the last turns.
    fn pick_end(&self, from: u64, turns: &[StoredTurn]) -> Option<u64> {
        let spans: Vec<TurnSpan> = turns.iter().map(span).collect();
        let room = MAX_WINDOWS * save_memory::window_size(&self.models);
        let (mut characters, mut facts, mut messages) = (0, 0, 0);
        for turn in turns {
            let lines = windows::lines(turn.first, &turn.messages);
            characters += windows::size(&lines);
            facts += facts_at_most(&lines);
            if characters > room || facts > MAX_FACTS {
                break;
            }
            messages = usize::try_from(end(turn).saturating_sub(from)).unwrap_or(usize::MAX);
        }
        pick(from, &spans, KEEP_TURNS, messages)
    }

    /// Shows the model every window of the range, then keeps what it wants to keep.
    async fn read_and_keep(
        &self,
        receive: &Receive<'_>,
        claim: &Claim,
        turns: &[StoredTurn],
        to: u64,
    ) -> Result<Tried, JobError> {
        let scope = &receive.job.target().scope;
        let lines = turns.iter().flat_map(|turn| windows::lines(turn.first, &turn.messages)).collect();
        let windows = windows::windows(lines, save_memory::window_size(&self.models));
        let known = self.store.facts(scope, KNOWN_FACTS).await?;
        let mut summaries = Vec::new();
        let mut facts = Vec::new();
        let mut asked = String::new();
        for (index, window) in windows.iter().enumerate() {
            if index > 0 && !self.renewed(claim).await? {
                return Ok(Tried::Superseded);
            }
            let (Saved { summary, facts: found }, call) =
                self.ask(receive, Purpose::Consolidate, window, &known).await?;
            summaries.push(summary);
            asked = call.model;
            let evidence = self.evidence(claim, window, turns, &asked)?;
            facts.extend(save_memory::facts(&found, &evidence));
        }
        let episode = self.episode(claim, &summaries, turns, (to, &asked))?;
        self.keep(claim, scope, &episode, last_of_each_key(facts)).await
    }

    async fn keep(&self, claim: &Claim, scope: &str, episode: &Episode, facts: Vec<Fact>) -> Result<Tried, JobError> {
        let (first, rest) = facts.split_at(facts.len().min(MAX_FACTS));
        for more in rest.chunks(MAX_FACTS) {
            self.store.remember(scope, more, &claim.job).await?;
        }
        Ok(match self.store.finish_consolidation(claim, scope, episode, first).await? {
            Finished::Moved | Finished::AlreadyMoved => Tried::Moved(episode.evidence().range().end),
            Finished::Superseded => Tried::Superseded,
        })
    }

    async fn renewed(&self, claim: &Claim) -> Result<bool, StoreError> {
        let now = self.store.clock().now_ms();
        let started = self.store.start_consolidation(claim, now, CLAIM_LEASE).await?;
        Ok(matches!(started, ClaimStart::Mine { .. }))
    }

    /// Ends the claim at once, so that a turn's commit may make the next one.
    async fn let_go(&self, claim: &Claim) {
        let now = self.store.clock().now_ms();
        if let Err(error) = self.store.start_consolidation(claim, now, std::time::Duration::ZERO).await {
            tracing::debug!(session = %claim.session, %error, "a claim ends by its lease");
        }
    }

    /// Counts a failure that a further try may not share. What the store is to blame for is not counted: it could not be.
    async fn failed(&self, receive: &Receive<'_>, claim: &Claim, failed: Failed) -> JobOutcome {
        let Failed { error, to } = failed;
        if let JobError::DailyLimit = error {
            self.let_go(claim).await;
            return tomorrow(receive, self.store.clock().now_ms());
        }
        if let JobError::Store(StoreError::Unavailable { .. }) = &error {
            return postponed(receive, &error);
        }
        match self.store.fail_consolidation(claim).await {
            Ok(FailureNoted::Counted(failures)) => {
                log_failure(receive, &error, failures);
                if failures >= MAX_FAILURES {
                    return ended(receive, to, JobOutcome::Failed, failures);
                }
                JobOutcome::Retry { after: retry_after(failures, &error) }
            }
            Ok(FailureNoted::NotMine) => ended(receive, to, JobOutcome::Superseded, receive.count),
            Err(error) => postponed(receive, &error.into()),
        }
    }

    fn evidence(
        &self,
        claim: &Claim,
        window: &Window,
        turns: &[StoredTurn],
        model: &str,
    ) -> Result<Evidence, StoreError> {
        let range = window.range();
        let within = turns.iter().filter(|turn| turn.first < range.end && end(turn) > range.start);
        self.evidence_of(claim, range.clone(), within, model)
    }

    fn evidence_of<'a>(
        &self,
        claim: &Claim,
        range: std::ops::Range<u64>,
        turns: impl Iterator<Item = &'a StoredTurn>,
        model: &str,
    ) -> Result<Evidence, StoreError> {
        let events: Vec<EventId> = turns.map(|turn| turn.event_id.clone()).collect();
        let now = self.store.clock().now_ms();
        Evidence::new(claim.session.clone(), claim.generation, range, events, model, now)
            .map_err(|error| unmemorable(claim, error))
    }

    /// The episode of the whole range up to `to`, by the model that was asked last; the summary of each window gets an equal
    /// part of its room.
    fn episode(
        &self,
        claim: &Claim,
        summaries: &[String],
        turns: &[StoredTurn],
        (to, model): (u64, &str),
    ) -> Result<Episode, StoreError> {
        let room = MAX_SUMMARY_CHARS / summaries.len().max(1) - 1;
        let parts: Vec<&str> = summaries.iter().map(|summary| cut(summary, room)).collect();
        let summary = if parts.is_empty() { NOTHING_SAID.to_owned() } else { parts.join("\n") };
        let evidence = self.evidence_of(claim, claim.from..to, turns.iter(), model)?;
        Episode::new(&summary, evidence).map_err(|error| unmemorable(claim, error))
    }
}

fn end(turn: &StoredTurn) -> u64 {
    span(turn).end()
}

fn span(turn: &StoredTurn) -> TurnSpan {
    TurnSpan { first: turn.first, messages: turn.messages.len() as u64 }
}

/// How many facts a turn is good for if every text of the user is kept whole.
fn facts_at_most(lines: &[Line]) -> usize {
    lines.iter().filter(|line| line.role == "user").map(|line| line.text.chars().count().div_ceil(MAX_FACT_CHARS)).sum()
}

/// Of facts with one key the last: later windows know better. In order of their first appearance.
fn last_of_each_key(facts: Vec<Fact>) -> Vec<Fact> {
    let mut kept: Vec<Fact> = Vec::with_capacity(facts.len());
    for fact in facts {
        match kept.iter_mut().find(|earlier| earlier.key() == fact.key()) {
            Some(earlier) => *earlier = fact,
            None => kept.push(fact),
        }
    }
    kept
}

/// Whether the job failed for good on what there is: a copy of its message is not tried again.
fn given_up(head: &Head) -> bool {
    head.claim_failures >= MAX_FAILURES && head.claim_failed_count.is_some_and(|count| head.message_count <= count)
}

fn ended(receive: &Receive<'_>, to: Option<u64>, outcome: JobOutcome, attempts: u32) -> JobOutcome {
    log(receive, to, outcome, attempts);
    outcome
}

fn corrupt(claim: &Claim, what: &str) -> StoreError {
    StoreError::Corrupt { item: "consolidation", id: claim.job.clone(), what: what.to_owned() }
}

fn unmemorable(claim: &Claim, error: Unmemorable) -> StoreError {
    corrupt(claim, &error.to_string())
}
