//! How a model call fails, and whether trying again helps. No variant holds text of a request or of an answer's body.

use std::time::Duration;

/// What a provider's client reports beneath a [`ModelError`].
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why there is no answer, or no whole one.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The provider limits our rate.
    #[error("the model provider limits the rate")]
    Throttled {
        /// How long it asks us to wait, if it says.
        retry_after: Option<Duration>,
    },
    /// The provider has no capacity now.
    #[error("the model provider is overloaded")]
    Overloaded,
    /// The provider could not be reached, or failed before it answered.
    #[error("the model provider is not available")]
    Unavailable(#[source] Cause),
    /// Nothing came in time.
    #[error("the model did not answer in time")]
    Timeout,
    /// The answer broke off: what came is not an answer.
    #[error("the model's answer broke off")]
    Interrupted(#[source] Cause),
    /// The provider refuses this request for good.
    #[error("the model provider refuses the request: {reason}")]
    Invalid {
        /// The provider's code and status, never its text.
        reason: String,
    },
    /// The provider does not accept our credentials, or not for this model.
    #[error("the model provider refuses access: {advice}")]
    Unauthorized {
        /// What the operator can do about it.
        advice: &'static str,
    },
    /// The conversation does not fit into the model's context.
    #[error("the conversation does not fit into the model's context")]
    ContextFull,
}

impl ModelError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Throttled { .. } | Self::Overloaded | Self::Unavailable(_) | Self::Timeout | Self::Interrupted(_) => {
                true
            }
            Self::Invalid { .. } | Self::Unauthorized { .. } | Self::ContextFull => false,
        }
    }

    /// How long the provider asks us to wait before the next try, if it says.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Throttled { retry_after } => *retry_after,
            _ => None,
        }
    }

    /// One word for logs and metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Throttled { .. } => "throttled",
            Self::Overloaded => "overloaded",
            Self::Unavailable(_) => "unavailable",
            Self::Timeout => "timeout",
            Self::Interrupted(_) => "interrupted",
            Self::Invalid { .. } => "invalid",
            Self::Unauthorized { .. } => "unauthorized",
            Self::ContextFull => "context_full",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_tells_whether_trying_again_helps() {
        let wait = Some(Duration::from_secs(7));
        let table: [(ModelError, bool, Option<Duration>); 8] = [
            (ModelError::Throttled { retry_after: wait }, true, wait),
            (ModelError::Overloaded, true, None),
            (ModelError::Unavailable("down".into()), true, None),
            (ModelError::Timeout, true, None),
            (ModelError::Interrupted("eof".into()), true, None),
            (ModelError::Invalid { reason: "status 400".into() }, false, None),
            (ModelError::Unauthorized { advice: "check the key" }, false, None),
            (ModelError::ContextFull, false, None),
        ];
        for (error, retryable, retry_after) in table {
            assert_eq!((error.is_retryable(), error.retry_after()), (retryable, retry_after), "{}", error.kind());
        }
    }
}
