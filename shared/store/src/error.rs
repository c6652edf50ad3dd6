//! What can go wrong between us and the table.

/// A request to the table that came to nothing. Lost races are no errors.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Throttled, in conflict, or not reached, also after our own retries. Trying again later helps; whether the write
    /// took effect is not known, and every write of ours may be repeated.
    #[error("the table could not be reached for {operation}")]
    Unavailable {
        /// The operation.
        operation: &'static str,
        /// The last failure.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// DynamoDB refused the request itself. Trying again does not help.
    #[error("the table refused {operation}")]
    Refused {
        /// The operation.
        operation: &'static str,
        /// DynamoDB's answer.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An item does not parse, or its state is one that no path of ours leads to.
    #[error("the {item} of {id} is not as it was written: {what}")]
    Corrupt {
        /// The kind of item.
        item: &'static str,
        /// Whose it is.
        id: String,
        /// What is wrong with it; never its content.
        what: String,
    },
}

impl StoreError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unavailable { .. } => true,
            Self::Refused { .. } | Self::Corrupt { .. } => false,
        }
    }

    pub(crate) fn corrupt(item: &'static str, id: impl std::fmt::Display, what: impl std::fmt::Display) -> Self {
        Self::Corrupt { item, id: id.to_string(), what: what.to_string() }
    }
}
