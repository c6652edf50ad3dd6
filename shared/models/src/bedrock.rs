//! Amazon Bedrock: `ConverseStream`, or `Converse` for models that do not stream.
//!
//! The SDK signs, sends and reads; the body is [`crate::wire::bedrock`]'s, so that what a replay shows is what leaves,
//! and what the settings add to it: cache points, a guardrail, thinking. The SDK's retries and its guard against slow
//! streams are off: to try again is the caller's policy, and silence has one limit here as with every provider. Nothing
//! of a body is logged or stands in an error.
//!
//! One thing is sent again at once: a request that was refused for its cache points or its thinking, without those.
//! Which models take them, and where, changes too often to be known here; what a model refused, it is not sent again.

pub(crate) mod body;
mod decode;
mod failure;
mod stream;

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

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
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::time::timeout;

use crate::error::ModelError;
use crate::event::ModelEvent;
use crate::model::{Capabilities, Model, ModelStream, Timeouts};
use crate::request::ModelRequest;

use body::Extras;
use failure::{Extra, Unanswered};

/// What a model on Bedrock is asked with.
#[derive(Debug, Clone)]
pub struct BedrockSettings {
    /// The id of a model or of an inference profile, or the ARN of either.
    pub model: String,
    /// Whether it is asked by `ConverseStream`. Some models do not stream, or not with tools (Llama): they refuse that
    /// operation with a `ValidationException`, and answer `Converse` in one piece.
    pub streams: bool,
    /// What the model can do. That Llama wants results alone is known by the id; an application's inference profile has an
    /// id that does not say.
    pub capabilities: Capabilities,
    /// The most tokens of one answer, where a request does not say; `None` = the model's own limit.
    pub max_tokens: Option<u32>,
    /// The guardrail that questions and answers pass.
    pub guardrail: Option<Guardrail>,
    /// Whether a Claude model thinks before it answers.
    pub thinking: Option<Thinking>,
    /// How long to wait.
    pub timeouts: Timeouts,
}

/// A guardrail. An answer that streams passes it piece by piece before it leaves Bedrock: nothing that it would block is
/// ever shown. What it blocks ends with [`crate::StopReason::Refused`], in the words that the guardrail has for that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guardrail {
    /// Its id or ARN.
    pub id: String,
    /// Its version: a number, or `DRAFT`.
    pub version: String,
}

/// How a model thinks (Bedrock User Guide, "Extended thinking", "Adaptive thinking").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// Up to this many tokens, at least 1,024 and fewer than the answer's limit.
    Budget(u32),
    /// As much as it finds right.
    Adaptive,
}

/// A model on Bedrock.
pub struct Bedrock {
    client: Client,
    settings: BedrockSettings,
    /// Whether it refused cache points: it is not sent any for as long as the process lives.
    refuses_cache_points: AtomicBool,
    /// Whether it refused to think, or reasoning: the same.
    refuses_thinking: AtomicBool,
}

/// What the id of every model has that refuses anything beside the results of tools.
const RESULTS_ALONE: &str = "meta.llama";

impl fmt::Debug for Bedrock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bedrock").field("model", &self.settings.model).finish_non_exhaustive()
    }
}

impl Bedrock {
    /// A client with the region, credentials, endpoint and HTTP client of `aws`.
    #[must_use]
    pub fn new(aws: &SdkConfig, mut settings: BedrockSettings) -> Self {
        settings.capabilities.results_alone |= settings.model.contains(RESULTS_ALONE);
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
        let client = Client::from_conf(config);
        let (refuses_cache_points, refuses_thinking) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { client, settings, refuses_cache_points, refuses_thinking }
    }

    /// Sends `body` and waits for the first of the answer.
    async fn send(&self, body: Bytes) -> Result<Events, Unanswered> {
        if self.settings.streams {
            let call = self.client.converse_stream().model_id(self.name()).customize().mutate_request(carry(body));
            let answer = self.opened(call.send()).await?;
            Ok(stream::events(answer.stream, self.settings.timeouts.idle).boxed())
        } else {
            let call = self.client.converse().model_id(self.name()).customize().mutate_request(carry(body));
            let events = decode::whole(self.opened(call.send()).await?)?;
            Ok(futures_util::stream::iter(events.into_iter().map(Ok)).boxed())
        }
    }

    /// Waits for the status, and without streaming for the whole answer.
    async fn opened<T, E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static>(
        &self,
        call: impl Future<Output = Result<T, SdkError<E>>> + Send,
    ) -> Result<T, Unanswered> {
        match timeout(self.settings.timeouts.first, call).await {
            Err(_) => Err(ModelError::Timeout.into()),
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
        let prepared = request.prepared(self.name(), self.capabilities(), self.settings.max_tokens);
        let mut extras = Extras::wanted(&self.settings, prepared.request());
        extras.cache_points &= !self.refuses_cache_points.load(Ordering::Relaxed);
        let thinks = !self.refuses_thinking.load(Ordering::Relaxed);
        extras.thinking &= thinks;
        extras.reasoning &= thinks;
        loop {
            let body = body::body(&self.settings, prepared.request(), extras);
            let unanswered = match self.send(Bytes::from(body.to_string())).await {
                Ok(events) => return Ok(prepared.answering(events)),
                Err(unanswered) => unanswered,
            };
            // Each is left out once at most.
            match unanswered.without {
                Some(Extra::CachePoints) if extras.cache_points => {
                    self.refuses_cache_points.store(true, Ordering::Relaxed);
                    extras.cache_points = false;
                    tracing::warn!(model = self.name(), "the model refuses cache points: it gets none any more");
                }
                Some(Extra::Thinking) if extras.thinking || extras.reasoning => {
                    self.refuses_thinking.store(true, Ordering::Relaxed);
                    (extras.thinking, extras.reasoning) = (false, false);
                    tracing::warn!(model = self.name(), "the model refuses to think: it is asked without any more");
                }
                Some(Extra::ThinkingHere) if extras.thinking || extras.reasoning => {
                    (extras.thinking, extras.reasoning) = (false, false);
                    tracing::warn!(session.id = %request.session, model = self.name(),
                        "the model refuses its reasoning: it is asked without, and does not think");
                }
                Some(_) | None => return Err(unanswered.error),
            }
        }
    }
}

type Events = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// Puts `body` in the place of the SDK's own, before the request is signed.
fn carry(body: Bytes) -> impl Fn(&mut HttpRequest) + Send + Sync + 'static {
    move |request| {
        request.headers_mut().insert("content-length", body.len().to_string());
        *request.body_mut() = SdkBody::from(body.clone());
    }
}

#[cfg(test)]
mod tests;
