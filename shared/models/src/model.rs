//! The trait that every model provider implements.

use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{Stream, StreamExt};

use crate::assemble::{Answer, Assembler};
use crate::error::ModelError;
use crate::event::ModelEvent;
use crate::request::ModelRequest;

/// An answer as it arrives. It ends after [`ModelEvent::Stop`] or after an error; one that ends otherwise broke off.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// What a model can do. The defaults are those of a plain text model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// It calls tools. One that does not is sent none, and calls in its history as text.
    pub tools: bool,
    /// It sees images. One that does not is sent a placeholder.
    pub images: bool,
    /// It reads documents. One that does not is sent a placeholder.
    pub documents: bool,
    /// It takes cache points. Only Bedrock's wire has them: other servers find out by themselves what they hold already.
    pub cache: bool,
    /// It refuses anything beside the results of tools in one message: what a person says there follows in one of its own.
    pub results_alone: bool,
    /// Its template opens the thinking tag, so that its text begins inside it.
    pub starts_in_reasoning: bool,
    /// Tokens it takes, question and answer together; what is old of a turn's request is left out beyond. `None` = unknown.
    pub context_tokens: Option<u32>,
}

/// How long to wait for a provider. The time of a whole answer is the caller's to limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For the status, which comes when the model begins (a local server may have to load it first), or when it is done
    /// where it does not stream.
    pub first: Duration,
    /// Between two chunks.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), first: Duration::from_secs(120), idle: Duration::from_secs(60) }
    }
}

/// A language model.
#[async_trait]
pub trait Model: Send + Sync {
    /// Its name: what reasoning is stamped with, so that no other model is sent it.
    fn name(&self) -> &str;

    /// What it can do.
    fn capabilities(&self) -> &Capabilities;

    /// Asks it. The request may be anything; what is sent is [`ModelRequest::prepared`].
    ///
    /// # Errors
    /// [`ModelError`] before the first event here, after it as an item of the stream.
    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError>;
}

/// Asks `model` and waits for the whole answer: for jobs, which show nothing while it arrives.
///
/// # Errors
/// Whatever the call fails with; a stream that ends without a stop is [`ModelError::Interrupted`].
pub async fn answer(model: &dyn Model, request: &ModelRequest) -> Result<Answer, ModelError> {
    let mut stream = model.stream(request).await?;
    let mut assembler = Assembler::new(model.name());
    while let Some(event) = stream.next().await {
        assembler.push(event?);
    }
    assembler.finish()
}
