//! `kill`, `fault` and `freeze`, as rules of a fault plan.

use std::time::Duration;

use serde::Deserialize;

use super::{Problem, optional_seconds, read as read_value, seconds};
use crate::faults::{Failure, Fault, Operation, Port, Rule, Span};

/// How a request fails, in a script's words.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ErrorName {
    Unreachable,
    LostAnswer,
    Conflict,
    InProgress,
    Throttled,
    Full,
    Slow,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kill {
    store: Option<String>,
    queue: Option<String>,
    platform: Option<String>,
    #[serde(default = "first")]
    nth: u64,
    #[serde(default)]
    after: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failing {
    store: Option<String>,
    queue: Option<String>,
    platform: Option<String>,
    #[serde(default = "first")]
    nth: u64,
    times: Option<u64>,
    #[serde(default, rename = "for", deserialize_with = "optional_seconds")]
    span: Option<Duration>,
    error: ErrorName,
    #[serde(default, deserialize_with = "seconds")]
    delay: Duration,
    reasons: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Freeze {
    store: Option<String>,
    queue: Option<String>,
    platform: Option<String>,
    #[serde(default = "first")]
    nth: u64,
    #[serde(rename = "for", deserialize_with = "seconds")]
    span: Duration,
}

fn first() -> u64 {
    1
}

/// The port and the operation that a line names.
fn target(
    key: &str,
    store: Option<String>,
    queue: Option<String>,
    platform: Option<String>,
) -> Result<(Port, Operation), Problem> {
    let named = [(Port::Store, store), (Port::Queue, queue), (Port::Platform, platform)];
    let mut named = named.into_iter().filter_map(|(port, operation)| Some((port, operation?)));
    match (named.next(), named.next()) {
        (Some((port, operation)), None) => Ok((port, Operation::from_text(&operation))),
        _ => Err(Problem::new(
            key,
            "allowed: exactly one of `store`, `queue` and `platform`, with an operation or \"*\"",
        )),
    }
}

fn checked(key: &str, rule: Rule) -> Result<Rule, Problem> {
    rule.checked().map_err(|error| Problem::new(key, error.to_string()))
}

/// Reads `kill`.
pub(super) fn kill(key: &str, json: &str) -> Result<Rule, Problem> {
    let line: Kill = read_value(key, json)?;
    let (port, operation) = target(key, line.store, line.queue, line.platform)?;
    let fault = Fault::Kill { after: line.after };
    checked(key, Rule { port, operation, nth: line.nth, span: Span::Times(1), fault })
}

/// Reads `fault`.
pub(super) fn fault(key: &str, json: &str) -> Result<Rule, Problem> {
    let line: Failing = read_value(key, json)?;
    let (port, operation) = target(key, line.store, line.queue, line.platform)?;
    let span = match (line.times, line.span) {
        (Some(_), Some(_)) => return Err(Problem::new(key, "allowed: one of `times` and `for`")),
        (times, None) => Span::Times(times.unwrap_or(1)),
        (None, Some(span)) => Span::For(span),
    };
    if line.reasons.is_some() && !matches!(line.error, ErrorName::Conflict) {
        return Err(Problem::new(format!("{key}.reasons"), "allowed only with the error `conflict`"));
    }
    let failure = match line.error {
        ErrorName::Unreachable => Failure::Unreachable,
        ErrorName::LostAnswer => Failure::LostAnswer,
        ErrorName::Conflict => Failure::Conflict { reasons: line.reasons.unwrap_or_default() },
        ErrorName::InProgress => Failure::InProgress,
        ErrorName::Throttled => Failure::Throttled,
        ErrorName::Full => Failure::Full,
        ErrorName::Slow => Failure::Slow,
    };
    let fault = Fault::Fail { failure, delay: line.delay };
    checked(key, Rule { port, operation, nth: line.nth, span, fault })
}

/// Reads `freeze`.
pub(super) fn freeze(key: &str, json: &str) -> Result<Rule, Problem> {
    let line: Freeze = read_value(key, json)?;
    let (port, operation) = target(key, line.store, line.queue, line.platform)?;
    let fault = Fault::Freeze(line.span);
    checked(key, Rule { port, operation, nth: line.nth, span: Span::Times(1), fault })
}
