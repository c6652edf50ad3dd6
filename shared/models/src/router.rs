//! The configured models in their order of preference, what each of them costs, and which of them rests.
//!
//! A model whose tries are used up rests for [`FIRST_REST`], then for twice as long each time, up to [`LONGEST_REST`]; an
//! answer ends it. One that rests is asked last, not never: where nothing else is left, it may have recovered. The rests
//! are of this process and by its monotonic clock: nobody writes them down, and a new process finds out by itself.
//!
//! Not here: how often a model is tried before the next one is, and what a person has seen meanwhile. A turn decides that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};
use turnlock_domain::turn::{ModelCall, Usage};

use crate::assemble::Answer;
use crate::error::ModelError;
use crate::model::{Capabilities, Model, answer};
use crate::request::ModelRequest;
use crate::scripted::Scripted;

/// How long a model rests at first.
pub const FIRST_REST: Duration = Duration::from_secs(30);
/// How long at most.
pub const LONGEST_REST: Duration = Duration::from_secs(300);
/// In what prices and costs are counted: a millionth of the currency. Prices are for as many tokens.
const MILLION: u128 = 1_000_000;

/// What a million tokens cost, in millionths of the currency: integers, so that sums are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Price {
    /// Read, those of a cache apart.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Written to a cache.
    pub cache_write: u64,
}

impl Price {
    /// What `usage` costs, in millionths of the currency: rounded up, so that a call that costs anything counts.
    #[must_use]
    pub fn of(&self, usage: &Usage) -> u64 {
        let parts = [
            (usage.input_tokens, self.input),
            (usage.output_tokens, self.output),
            (usage.cache_read_tokens, self.cache_read),
            (usage.cache_write_tokens, self.cache_write),
        ];
        let sum = parts.into_iter().fold(0u128, |sum, (tokens, price)| {
            // A product of two `u64` fits; four of them may not.
            sum.saturating_add(u128::from(tokens) * u128::from(price))
        });
        u64::try_from(sum.div_ceil(MILLION)).unwrap_or(u64::MAX)
    }
}

/// One model of the list.
pub struct Route {
    /// The model.
    pub model: Arc<dyn Model>,
    /// What it costs.
    pub price: Price,
    /// The most tokens of one answer, as configured; `None` = the provider's own limit.
    pub max_tokens: Option<u32>,
}

impl Route {
    /// A model free of charge.
    #[must_use]
    pub fn free(model: Arc<dyn Model>) -> Self {
        Self { model, price: Price::default(), max_tokens: None }
    }

    /// A call of this model that used `usage`, with what it cost.
    #[must_use]
    pub fn call(&self, usage: Usage) -> ModelCall {
        let cost = self.price.of(&usage);
        ModelCall { model: self.model.name().to_owned(), usage: Usage { cost, ..usage } }
    }
}

/// The ordered list: at least one model.
pub struct Router {
    routes: Vec<Route>,
    /// By index of the route.
    rests: Mutex<Vec<Rest>>,
}

/// A model's rest; the default is none.
#[derive(Debug, Clone, Copy, Default)]
struct Rest {
    length: Duration,
    until: Option<Instant>,
}

impl Rest {
    fn is_over(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until <= now)
    }
}

impl Router {
    /// These models, the preferred one first; none is the scripted stand-in.
    #[must_use]
    pub fn new(routes: Vec<Route>) -> Self {
        let routes = if routes.is_empty() { vec![Route::free(Arc::new(Scripted::stand_in()))] } else { routes };
        let rests = Mutex::new(vec![Rest::default(); routes.len()]);
        Self { routes, rests }
    }

    /// One model, free of charge: for tests and replays.
    #[must_use]
    pub fn single(model: Arc<dyn Model>) -> Self {
        Self::new(vec![Route::free(model)])
    }

    /// Every model, in the order in which they are asked now: those that rest come last.
    #[must_use]
    pub fn candidates(&self, now: Instant) -> Vec<&Route> {
        let rests = self.rests();
        let (awake, resting): (Vec<_>, Vec<_>) =
            self.routes.iter().zip(rests.iter()).partition(|(_, rest)| rest.is_over(now));
        awake.into_iter().chain(resting).map(|(route, _)| route).collect()
    }

    /// Notes that `route` used up its tries. What is wrong with the request alone puts no model to rest, and a failure
    /// while it rests does not prolong the rest: it is the same trouble, met by another turn.
    pub fn failed(&self, route: &Route, error: &ModelError, now: Instant) {
        match error {
            ModelError::Invalid { .. } | ModelError::ContextFull => return,
            ModelError::Throttled { .. }
            | ModelError::Overloaded
            | ModelError::Unavailable(_)
            | ModelError::Timeout
            | ModelError::Interrupted(_)
            | ModelError::Unauthorized { .. } => {}
        }
        let mut rests = self.rests();
        let Some(rest) = self.index(route).and_then(|index| rests.get_mut(index)) else { return };
        if rest.is_over(now) {
            rest.length = (rest.length * 2).clamp(FIRST_REST, LONGEST_REST);
            let asked = error.retry_after().unwrap_or_default().min(LONGEST_REST);
            rest.until = Some(now + rest.length.max(asked));
        }
    }

    /// Notes that `route` answered: whatever it had, it is over.
    pub fn answered(&self, route: &Route) {
        let rest = self.index(route).and_then(|index| self.rests().get_mut(index).map(std::mem::take));
        if rest.is_some_and(|rest| rest.until.is_some()) {
            tracing::info!(model = route.model.name(), "the model {} answers again", route.model.name());
        }
    }

    /// Whether any of the models can do this.
    #[must_use]
    pub fn can(&self, what: impl Fn(&Capabilities) -> bool) -> bool {
        self.routes.iter().any(|route| what(route.model.capabilities()))
    }

    /// The tokens that every model takes, question and answer together, as far as is known: what is shown to any of them
    /// must fit the smallest.
    #[must_use]
    pub fn smallest_context(&self) -> Option<u32> {
        self.routes.iter().filter_map(|route| route.model.capabilities().context_tokens).min()
    }

    /// The name of the preferred model.
    #[must_use]
    pub fn name(&self) -> &str {
        self.routes.first().map_or("", |route| route.model.name())
    }

    /// Asks each model once until one has answered whole, and says which: for jobs, which show nothing while it arrives,
    /// and are tried again by their queue. All of them together may take `within`; one behind which others stand gets
    /// half of what is left.
    ///
    /// # Errors
    /// The failure that trying again may help against, if there is one; else the last.
    pub async fn answer(&self, request: &ModelRequest, within: Duration) -> Result<(Answer, &Route), ModelError> {
        let ends_at = Instant::now() + within;
        let candidates = self.candidates(Instant::now());
        let mut failure = None;
        for (index, route) in candidates.iter().enumerate() {
            let left = ends_at.saturating_duration_since(Instant::now());
            let share = if index + 1 == candidates.len() { left } else { left / 2 };
            let answered = timeout(share, answer(&*route.model, request)).await;
            let error = match answered.unwrap_or(Err(ModelError::Timeout)) {
                Ok(answer) => {
                    self.answered(route);
                    return Ok((answer, route));
                }
                Err(error) => error,
            };
            self.failed(route, &error, Instant::now());
            tracing::warn!(session = %request.session, model = route.model.name(), error = error.kind(),
                "the model {} gave a job no answer", route.model.name());
            failure = Some(worth_waiting_for(failure, error));
        }
        Err(failure.unwrap_or(ModelError::Timeout))
    }

    fn index(&self, route: &Route) -> Option<usize> {
        self.routes.iter().position(|own| std::ptr::eq(own, route))
    }

    fn rests(&self) -> MutexGuard<'_, Vec<Rest>> {
        self.rests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of two models' failures the one that decides what becomes of the request: while any model may still answer it is not
/// refused, and where one asks only for patience, patience it is, as little as any of them asks for.
#[must_use]
pub fn worth_waiting_for(earlier: Option<ModelError>, later: ModelError) -> ModelError {
    let Some(earlier) = earlier else { return later };
    let rank = |error: &ModelError| match error {
        ModelError::Throttled { .. } => 2,
        error => u8::from(error.is_retryable()),
    };
    match (&earlier, &later) {
        (ModelError::Throttled { retry_after: earlier_asks }, ModelError::Throttled { retry_after: later_asks }) => {
            ModelError::Throttled {
                retry_after: match (earlier_asks, later_asks) {
                    (Some(one), Some(other)) => Some(*one.min(other)),
                    (one, other) => one.or(*other),
                },
            }
        }
        _ if rank(&earlier) > rank(&later) => earlier,
        _ => later,
    }
}

#[cfg(test)]
mod tests;
