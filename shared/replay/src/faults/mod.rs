//! Faults on demand: what can go wrong between a process and the store, the queues and the platforms, played by rule.
//!
//! A [`FaultPlan`] holds the rules and counts every request; it outlives the processes. A [`Life`] is one process as
//! the ports see it: whatever that process reaches the outside through is wrapped by its life ([`Life::store`],
//! [`Life::queue`], [`Life::platform`]), and a `kill` ends that life: the request that was hit, and every later one of
//! the same process, never returns and has no effect. [`Life::over`] tells the driver, which drops the process.
//!
//! The wrappers sit *under* the clients, where a network would be: a lost answer is a request that was carried out, a
//! death after a write leaves the write, and n means the same request everywhere because nothing below retries.
//!
//! What it is not: a fake of anything. A request that no rule hits passes through unchanged, counted.

mod life;
mod platform;
mod queue;
mod rule;
mod store;
mod worker;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::time::Instant;

pub use self::life::{Death, Life};
pub use self::rule::{Failure, Fault, Operation, Port, Rule, RuleError, Span};
pub use self::worker::{current_turn, in_turn};

/// The rules that are still in force, and what has been counted; clones share both.
#[derive(Debug, Clone, Default)]
pub struct FaultPlan(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    rules: Vec<Armed>,
    counts: BTreeMap<Port, Count>,
}

/// A rule in force, and how far it has come.
#[derive(Debug)]
struct Armed {
    rule: Rule,
    since: Instant,
    seen: u64,
    fired: u64,
}

/// How many requests went through a port, and how many bytes where the port has any: of requests and answers together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// All of them, those that a rule refused included.
    pub total: u64,
    /// Their bodies, in bytes.
    pub bytes: u64,
    /// By the operation's name.
    pub by_operation: BTreeMap<String, u64>,
    /// By the event that was in work; what no turn asked for is not in here.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_turn: BTreeMap<String, Count>,
}

impl Count {
    fn add(&mut self, operation: &str, bytes: u64) {
        self.total += 1;
        self.bytes += bytes;
        *self.by_operation.entry(operation.to_owned()).or_default() += 1;
    }
}

impl FaultPlan {
    /// A plan without rules.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a rule in force: it counts from the next request on. Must be called inside a tokio runtime.
    pub fn arm(&self, rule: Rule) {
        self.state().rules.push(Armed { rule, since: Instant::now(), seen: 0, fired: 0 });
    }

    /// The life of a new process.
    #[must_use]
    pub fn process(&self) -> Life {
        Life::new(self.clone())
    }

    /// What has been counted so far, by port; a port that nobody used is absent.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<Port, Count> {
        self.state().counts.clone()
    }

    /// How many rules are still in force: those that have not fired as often as they should.
    #[must_use]
    pub fn rules_left(&self) -> usize {
        let mut state = self.state();
        state.rules.retain(|armed| !armed.is_over());
        state.rules.len()
    }

    /// Counts a request and decides what happens to it: the first rule in the order of the script that fires.
    fn decide(&self, port: Port, operation: &str, bytes: u64, turn: Option<&str>) -> Option<Fault> {
        let mut state = self.state();
        let count = state.counts.entry(port).or_default();
        count.add(operation, bytes);
        if let Some(turn) = turn {
            count.by_turn.entry(turn.to_owned()).or_default().add(operation, bytes);
        }
        state.rules.retain(|armed| !armed.is_over());
        // Every rule sees the request, also those after the one that fires: n is counted in requests, not in leftovers.
        let mut fault = None;
        for armed in &mut state.rules {
            if armed.sees(port, operation) && fault.is_none() {
                armed.fired += 1;
                fault = Some(armed.rule.fault.clone());
            }
        }
        fault
    }

    /// Adds the bytes of an answer to what its request was counted under.
    fn add_answer(&self, port: Port, bytes: u64, turn: Option<&str>) {
        let mut state = self.state();
        let count = state.counts.entry(port).or_default();
        count.bytes += bytes;
        if let Some(turn) = turn {
            count.by_turn.entry(turn.to_owned()).or_default().bytes += bytes;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing between lock and unlock leaves a half state behind, so a poisoned one is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Armed {
    /// Counts a request if it is one of the rule's; true if the rule wants to fire at it.
    fn sees(&mut self, port: Port, operation: &str) -> bool {
        if !self.rule.fits(port, operation) || self.is_over() {
            return false;
        }
        self.seen += 1;
        self.seen >= self.rule.nth
    }

    fn is_over(&self) -> bool {
        match self.rule.span {
            Span::Times(times) => self.fired >= times,
            Span::For(duration) => self.since.elapsed() >= duration,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn rule(operation: Operation, nth: u64, span: Span) -> Rule {
        let fault = Fault::Fail { failure: Failure::Unreachable, delay: Duration::ZERO };
        Rule { port: Port::Store, operation, nth, span, fault }
    }

    fn fires(plan: &FaultPlan, operation: &str) -> bool {
        plan.decide(Port::Store, operation, 0, None).is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn a_rule_fires_at_the_nth_request_that_fits_and_as_often_as_it_says() {
        let plan = FaultPlan::new();
        assert!(!fires(&plan, "PutItem"), "what came before the rule is not counted");
        plan.arm(rule(Operation::Named("PutItem".into()), 2, Span::Times(2)));
        let fired: Vec<bool> =
            ["PutItem", "GetItem", "PutItem", "GetItem", "PutItem", "PutItem"].map(|name| fires(&plan, name)).into();
        assert_eq!(fired, [false, false, true, false, true, false]);
        assert_eq!(plan.rules_left(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rule_for_a_time_ends_with_it() {
        let plan = FaultPlan::new();
        plan.arm(rule(Operation::Any, 1, Span::For(Duration::from_secs(30))));
        assert!(fires(&plan, "PutItem") && fires(&plan, "Query"));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(!fires(&plan, "PutItem"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_rule_wins_and_the_others_go_on_counting() {
        let plan = FaultPlan::new();
        plan.arm(rule(Operation::Any, 1, Span::Times(1)));
        let slow = Fault::Fail { failure: Failure::Slow, delay: Duration::from_secs(4) };
        plan.arm(Rule { fault: slow.clone(), ..rule(Operation::Any, 2, Span::Times(1)) });
        assert!(matches!(
            plan.decide(Port::Store, "Query", 0, None),
            Some(Fault::Fail { failure: Failure::Unreachable, .. })
        ));
        assert_eq!(plan.decide(Port::Store, "Query", 0, None), Some(slow));
    }

    #[tokio::test(start_paused = true)]
    async fn another_port_is_another_matter() {
        let plan = FaultPlan::new();
        plan.arm(rule(Operation::Any, 1, Span::Times(1)));
        assert_eq!(plan.decide(Port::Queue, "send", 0, None), None);
        assert!(fires(&plan, "Query"));
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_counted_by_operation_and_turn() {
        let plan = FaultPlan::new();
        plan.decide(Port::Store, "Query", 10, Some("telegram:1:1"));
        plan.add_answer(Port::Store, 5, Some("telegram:1:1"));
        plan.decide(Port::Store, "Query", 1, None);
        let counted = serde_json::to_value(&plan.counts()[&Port::Store]).unwrap();
        assert_eq!(
            counted,
            serde_json::json!({
                "total": 2,
                "bytes": 16,
                "by_operation": { "Query": 2 },
                "by_turn": { "telegram:1:1": { "total": 1, "bytes": 15, "by_operation": { "Query": 1 } } },
            })
        );
    }
}
