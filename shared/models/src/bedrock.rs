//! Amazon Bedrock: `ConverseStream`, or `Converse` for models that do not stream.
//!
//! The SDK signs, sends and reads; the body is [`wire::bedrock`]'s, so that what a replay shows is what leaves. The
//! SDK's retries and its guard against slow streams are off: to try again is the caller's policy, and silence has one
//! limit here as with every provider. Nothing of a body is logged or stands in an error.

mod decode;
mod failure;
mod stream;

use std::fmt;
use std::future::Future;

use async_trait::async_trait;
use aws_sdk_bedrockruntime::Client;
use aws_sdk_bedrockruntime::config::http::HttpRequest;
use aws_sdk_bedrockruntime::config::retry::RetryConfig;
use aws_sdk_bedrockruntime::config::timeout::TimeoutConfig;
use aws_sdk_bedrockruntime::config::{BehaviorVersion, Config, StalledStreamProtectionConfig};
use aws_sdk_bedrockruntime::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_types::body::SdkBody;
use aws_types::SdkConfig;
use bytes::Bytes;
use tokio::time::timeout;

use crate::error::ModelError;
use crate::model::{Capabilities, Model, ModelStream, Timeouts};
use crate::request::ModelRequest;
use crate::wire;

/// What a model on Bedrock is asked with.
#[derive(Debug, Clone)]
pub struct BedrockSettings {
    /// The id of a model or of an inference profile, or the ARN of either.
    pub model: String,
    /// Whether it is asked by `ConverseStream`. Some models do not stream, or not with tools (Llama): they refuse that
    /// operation with a `ValidationException`, and answer `Converse` in one piece.
    pub streams: bool,
    /// What the model can do.
    pub capabilities: Capabilities,
    /// The most tokens of one answer, where a request does not say; `None` = the model's own limit.
    pub max_tokens: Option<u32>,
    /// How long to wait.
    pub timeouts: Timeouts,
}

/// A model on Bedrock.
pub struct Bedrock {
    client: Client,
    settings: BedrockSettings,
}

impl fmt::Debug for Bedrock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bedrock").field("model", &self.settings.model).finish_non_exhaustive()
    }
}

impl Bedrock {
    /// A client with the region, credentials, endpoint and HTTP client of `aws`.
    #[must_use]
    pub fn new(aws: &SdkConfig, settings: BedrockSettings) -> Self {
        let waits = TimeoutConfig::builder()
            .connect_timeout(settings.timeouts.connect)
            .disable_read_timeout()
            .disable_operation_attempt_timeout()
            .disable_operation_timeout()
            .build();
        let config = Config::from(aws)
            .to_builder()
            .behavior_version(BehaviorVersion::latest())
            .retry_config(RetryConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .timeout_config(waits)
            .build();
        Self { client: Client::from_conf(config), settings }
    }

    fn body(&self, request: &ModelRequest) -> Bytes {
        let mut body = wire::bedrock(request);
        if let (None, Some(max_tokens)) = (request.max_tokens, self.settings.max_tokens) {
            body["inferenceConfig"]["maxTokens"] = max_tokens.into();
        }
        Bytes::from(body.to_string())
    }

    /// Waits for the status, and without streaming for the whole answer.
    async fn opened<T, E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static>(
        &self,
        call: impl Future<Output = Result<T, SdkError<E>>> + Send,
    ) -> Result<T, ModelError> {
        match timeout(self.settings.timeouts.first, call).await {
            Err(_) => Err(ModelError::Timeout),
            Ok(answer) => answer.map_err(failure::before_the_answer),
        }
    }
}

#[async_trait]
impl Model for Bedrock {
    fn name(&self) -> &str {
        &self.settings.model
    }

    fn capabilities(&self) -> &Capabilities {
        &self.settings.capabilities
    }

    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        let prepared = request.prepared(self.name(), self.capabilities());
        let body = self.body(prepared.request());
        if self.settings.streams {
            let call = self.client.converse_stream().model_id(self.name()).customize().mutate_request(carry(body));
            let answer = self.opened(call.send()).await?;
            Ok(prepared.answering(stream::events(answer.stream, self.settings.timeouts.idle)))
        } else {
            let call = self.client.converse().model_id(self.name()).customize().mutate_request(carry(body));
            let events = decode::whole(self.opened(call.send()).await?)?;
            Ok(prepared.answering(futures_util::stream::iter(events.into_iter().map(Ok))))
        }
    }
}

/// Puts `body` in the place of the SDK's own, before the request is signed.
fn carry(body: Bytes) -> impl Fn(&mut HttpRequest) + Send + Sync + 'static {
    move |request| {
        request.headers_mut().insert("content-length", body.len().to_string());
        *request.body_mut() = SdkBody::from(body.clone());
    }
}

#[cfg(test)]
mod tests;
