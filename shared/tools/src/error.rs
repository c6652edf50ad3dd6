//! How a tool fails. The variant says who gets to read the error: the model, so that it can do better, or the operator,
//! in the log. What only the operator may read never reaches a conversation.

/// What a tool's failure has below it.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why a tool has no result.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The call cannot be done as it was asked: a sentence for the model, which may ask differently. Not logged.
    #[error("{0}")]
    ForModel(String),
    /// Something below could not be reached or was busy. The model is told to try later; the cause is logged.
    #[error("the tool could not reach what it needs")]
    Transient(#[source] Cause),
    /// The call was under way when the connection to what does it was lost: nobody knows whether it took effect. The model
    /// is told so, unless repeating the call is harmless; the cause is logged.
    #[error("the tool was cut off")]
    CutOff(#[source] Cause),
    /// What does the call was reached and broke down over it, as it says itself or its end shows. The model is told the same
    /// as of [`ToolError::CutOff`]; but that it can be reached is known, and other calls may well be answered.
    #[error("the tool broke down")]
    BrokeDown(#[source] Cause),
    /// Something below is broken. The model is told that the tool failed; the cause is logged.
    #[error("the tool failed")]
    Failed(#[source] Cause),
}

impl ToolError {
    /// An error that the model reads.
    #[must_use]
    pub fn for_model(sentence: impl Into<String>) -> Self {
        Self::ForModel(sentence.into())
    }
}

impl From<turnlock_store::StoreError> for ToolError {
    fn from(error: turnlock_store::StoreError) -> Self {
        if error.is_transient() { Self::Transient(error.into()) } else { Self::Failed(error.into()) }
    }
}
