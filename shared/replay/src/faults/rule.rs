//! What a rule says: which requests of which port, the how manieth, how often, and what happens to them. Values only.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A way out of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Port {
    /// DynamoDB.
    Store,
    /// The queues.
    Queue,
    /// Telegram, Slack and whoever is posted to.
    Platform,
}

impl Port {
    /// Its name in scripts and in the output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Queue => "queue",
            Self::Platform => "platform",
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Which requests of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// `*`: all of them.
    Any,
    /// Those of this name: `TransactWriteItems`, `send`, `sendMessage`.
    Named(String),
}

impl Operation {
    /// `*`, or a name.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        if text == "*" { Self::Any } else { Self::Named(text.to_owned()) }
    }

    fn fits(&self, operation: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Named(name) => name == operation,
        }
    }
}

/// For how many requests a rule holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// For so many, from the nth on.
    Times(u64),
    /// For all, from the nth on, within this time from now.
    For(Duration),
}

/// How a request fails while its process lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// An I/O error; not carried out.
    Unreachable,
    /// Carried out, then an I/O error.
    LostAnswer,
    /// Refused because of another transaction: the reasons of a cancelled transaction by index, or none for the usual
    /// ones.
    Conflict {
        /// The codes by index; empty = the first item conflicts.
        reasons: Vec<String>,
    },
    /// A transaction with this token is still in work.
    InProgress,
    /// The rate is limited.
    Throttled,
    /// The queue has no room.
    Full,
    /// Carried out at once, answered late.
    Slow,
}

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The process dies: before the request was sent, or after it took effect.
    Kill {
        /// Whether it takes effect.
        after: bool,
    },
    /// The request fails, or is answered late, and the process lives.
    Fail {
        /// How.
        failure: Failure,
        /// How much later the outcome arrives.
        delay: Duration,
    },
    /// The worker whose request it is takes no step for so long, then it is sent.
    Freeze(Duration),
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Whose requests.
    pub port: Port,
    /// Which of them.
    pub operation: Operation,
    /// From the how manieth on, counted from the moment at which the rule is armed; the first is 1.
    pub nth: u64,
    /// For how many.
    pub span: Span,
    /// What happens.
    pub fault: Fault,
}

/// A rule that could never fire, or says too little.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// This port does not fail in this way.
    #[error("`{error}` cannot happen at the {port}; allowed: {allowed}")]
    Error {
        /// The port.
        port: Port,
        /// What was asked for.
        error: &'static str,
        /// What is possible there.
        allowed: String,
    },
    /// This operation does not fail in this way.
    #[error("`{operation}` is never answered with `{error}`; allowed: {allowed}")]
    Operation {
        /// The operation.
        operation: String,
        /// What was asked for.
        error: &'static str,
        /// The operations that are.
        allowed: String,
    },
    /// The requests are counted from one.
    #[error("`nth` is counted from 1")]
    Nth,
    /// A late answer without a time.
    #[error("`slow` needs a `delay` in seconds")]
    Delay,
}

/// The writes that another transaction can refuse. A read never conflicts, and a batch write answers with what it left.
const CONFLICTING: [&str; 5] = ["PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "TransactGetItems"];

/// The only operation that takes a token.
const TOKENED: [&str; 1] = ["TransactWriteItems"];

impl Failure {
    /// Its name in scripts.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::LostAnswer => "lost_answer",
            Self::Conflict { .. } => "conflict",
            Self::InProgress => "in_progress",
            Self::Throttled => "throttled",
            Self::Full => "full",
            Self::Slow => "slow",
        }
    }

    /// The operations that can fail in this way, where that is not all of them.
    fn operations(&self) -> Option<&'static [&'static str]> {
        match self {
            Self::Conflict { .. } => Some(&CONFLICTING),
            Self::InProgress => Some(&TOKENED),
            Self::Full => Some(&["send"]),
            Self::Unreachable | Self::LostAnswer | Self::Throttled | Self::Slow => None,
        }
    }
}

fn allowed_at(port: Port) -> &'static [&'static str] {
    match port {
        Port::Store => &["unreachable", "lost_answer", "conflict", "in_progress", "throttled", "slow"],
        Port::Queue => &["unreachable", "lost_answer", "throttled", "full", "slow"],
        // A platform's own refusals (429, 5xx) are its answers: a `platform` line says them in the platform's words.
        Port::Platform => &["unreachable", "lost_answer", "slow"],
    }
}

impl Rule {
    /// A rule that can fire.
    ///
    /// # Errors
    /// [`RuleError`]: what is impossible, and what is possible instead.
    pub fn checked(self) -> Result<Self, RuleError> {
        if self.nth == 0 {
            return Err(RuleError::Nth);
        }
        let Fault::Fail { failure, delay } = &self.fault else { return Ok(self) };
        let allowed = allowed_at(self.port);
        if !allowed.contains(&failure.name()) {
            return Err(RuleError::Error { port: self.port, error: failure.name(), allowed: allowed.join(", ") });
        }
        if let (Operation::Named(name), Some(operations)) = (&self.operation, failure.operations())
            && !operations.contains(&name.as_str())
        {
            let (operation, allowed) = (name.clone(), operations.join(", "));
            return Err(RuleError::Operation { operation, error: failure.name(), allowed });
        }
        if *failure == Failure::Slow && delay.is_zero() {
            return Err(RuleError::Delay);
        }
        Ok(self)
    }

    /// Whether a request is one of those that the rule counts: `*` means all that can fail in this way.
    pub(super) fn fits(&self, port: Port, operation: &str) -> bool {
        let possible = match &self.fault {
            Fault::Fail { failure, .. } => failure.operations().is_none_or(|names| names.contains(&operation)),
            Fault::Kill { .. } | Fault::Freeze(_) => true,
        };
        self.port == port && self.operation.fits(operation) && possible
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(port: Port, operation: &str, failure: Failure) -> Rule {
        let fault = Fault::Fail { failure, delay: Duration::ZERO };
        Rule { port, operation: Operation::from_text(operation), nth: 1, span: Span::Times(1), fault }
    }

    #[test]
    fn a_rule_that_could_never_fire_is_refused_with_what_is_possible() {
        let table = [
            (failing(Port::Queue, "send", Failure::InProgress), "unreachable, lost_answer, throttled, full, slow"),
            (failing(Port::Store, "Query", Failure::Conflict { reasons: vec![] }), "PutItem, UpdateItem"),
            (failing(Port::Platform, "sendMessage", Failure::Throttled), "unreachable, lost_answer, slow"),
            (failing(Port::Store, "*", Failure::Slow), "delay"),
            (Rule { nth: 0, ..failing(Port::Store, "*", Failure::Unreachable) }, "counted from 1"),
        ];
        for (rule, says) in table {
            let message = rule.clone().checked().unwrap_err().to_string();
            assert!(message.contains(says), "{rule:?}: {message}");
        }
        failing(Port::Store, "*", Failure::Conflict { reasons: vec![] }).checked().unwrap();
    }

    #[test]
    fn a_star_means_all_that_can_fail_in_this_way() {
        let rule = failing(Port::Store, "*", Failure::Conflict { reasons: vec![] });
        assert!(rule.fits(Port::Store, "UpdateItem"));
        assert!(!rule.fits(Port::Store, "Query"));
        assert!(!rule.fits(Port::Queue, "UpdateItem"));
    }
}
