//! Keeps calls from what is down: a tool that could not be reached several times in a row rests, and then gets one call at a
//! time until one is answered. A call that breaks the tool is an answer here. Counted in this process alone, since another
//! may well reach it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// So many calls in a row that could not be made or were not answered open it.
pub(super) const FAILURES: u32 = 5;
/// How long a tool rests, and how far apart the calls are that try it then.
pub(super) const REST: Duration = Duration::from_secs(30);

/// What is known of one tool.
#[derive(Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Default)]
struct State {
    /// In a row.
    failures: u32,
    /// Until when no call is let through.
    rests_until: Option<Instant>,
}

impl Breaker {
    /// Lets a call through, or says how long the tool still rests.
    pub(super) fn admit(&self, now: Instant) -> Result<(), Duration> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(until) = state.rests_until else { return Ok(()) };
        if now < until {
            return Err(until - now);
        }
        // This call tries it. The others wait for its outcome, and no longer than this if it is abandoned.
        state.rests_until = Some(now + REST);
        Ok(())
    }

    /// Notes how a call ended.
    pub(super) fn ended(&self, answered: bool, now: Instant) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answered {
            *state = State::default();
        } else {
            state.failures = state.failures.saturating_add(1);
            if state.failures >= FAILURES {
                state.rests_until = Some(now + REST);
            }
        }
    }
}
