//! Any OpenAI-compatible endpoint, streamed: OpenAI itself, a router, a server on the same machine.
//!
//! One request is one `POST {base_url}/chat/completions`; to try again is the caller's policy. Bodies and keys are never
//! logged and stand in no error. Everything read is bounded: a line, the whole answer, the silence between two chunks.
//!
//! One thing is sent again at once: a request that was refused for the reasoning that its messages carry, or do not. Most
//! servers do not read it, some want it back with every call (DeepSeek), and some refuse a field that they do not know.

mod body;
mod chunk;
mod sse;
mod status;

use std::fmt;
use std::sync::OnceLock;

use async_trait::async_trait;
use futures_util::StreamExt;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::time::timeout;

use crate::error::ModelError;
use crate::model::{Capabilities, Model, ModelStream};
use crate::request::ModelRequest;
use crate::wire;

use crate::model::Timeouts;

/// Whose newer models take the token limit under another name, and refuse the old one.
const OPENAI_HOST: &str = "api.openai.com";

/// What an endpoint is reached with.
#[derive(Debug, Clone)]
pub struct OpenAiSettings {
    /// The address up to and without `/chat/completions`, e.g. `https://api.openai.com/v1`.
    pub base_url: String,
    /// The key, where the endpoint wants one.
    pub api_key: Option<SecretString>,
    /// The model's name there.
    pub model: String,
    /// What the model can do.
    pub capabilities: Capabilities,
    /// The most tokens of one answer, where a request does not say; `None` = the endpoint's own limit.
    pub max_tokens: Option<u32>,
    /// How long to wait.
    pub timeouts: Timeouts,
}

/// A model behind an OpenAI-compatible endpoint.
pub struct OpenAi {
    client: Client,
    settings: OpenAiSettings,
    url: String,
    /// Under which name the token limit is sent.
    limit_field: &'static str,
    /// What the endpoint turned out to want, for as long as the process lives.
    carried: OnceLock<Carried>,
}

/// Which of the model's messages carry its reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Carried {
    /// Those of the turn at hand that have any.
    #[default]
    AtHand,
    /// All; what has none carries an empty text.
    Everywhere,
    /// None.
    Nowhere,
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi").field("model", &self.settings.model).finish_non_exhaustive()
    }
}

impl OpenAi {
    /// A client for one endpoint.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] if the address is none, or no HTTP client can be built.
    pub fn new(settings: OpenAiSettings) -> Result<Self, ModelError> {
        let invalid = |reason: &str| ModelError::Invalid { reason: reason.to_owned() };
        let url = format!("{}/chat/completions", settings.base_url.trim_end_matches('/'));
        let parsed = reqwest::Url::parse(&url).map_err(|_| invalid("base_url is not a URL"))?;
        // A redirect would carry the conversation, and on the same host the key, to where nobody sent it.
        let client = Client::builder()
            .connect_timeout(settings.timeouts.connect)
            .redirect(Policy::none())
            .build()
            .map_err(|error| ModelError::Unavailable(error.into()))?;
        let limit_field = if parsed.host_str() == Some(OPENAI_HOST) { "max_completion_tokens" } else { "max_tokens" };
        Ok(Self { client, settings, url, limit_field, carried: OnceLock::new() })
    }

    fn body(&self, request: &ModelRequest, carried: Carried) -> Value {
        let mut body = wire::openai(&self.settings.model, request);
        if let Some(fields) = body.as_object_mut()
            && let Some(limit) = fields.remove("max_tokens")
        {
            fields.insert(self.limit_field.to_owned(), limit);
        }
        let messages = body["messages"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut);
        for message in messages.filter(|message| message["role"] == "assistant") {
            match carried {
                Carried::AtHand => {}
                Carried::Everywhere => _ = message.entry(wire::REASONING).or_insert_with(|| "".into()),
                Carried::Nowhere => _ = message.remove(wire::REASONING),
            }
        }
        body
    }

    async fn send(&self, body: &Value) -> Result<Response, ModelError> {
        let mut post = self.client.post(&self.url).header(ACCEPT, "text/event-stream").json(body);
        if let Some(key) = &self.settings.api_key {
            post = post.bearer_auth(key.expose_secret());
        }
        match timeout(self.settings.timeouts.first, post.send()).await {
            Err(_) => Err(ModelError::Timeout),
            Ok(Err(error)) if error.is_timeout() => Err(ModelError::Timeout),
            // The address may hold credentials.
            Ok(Err(error)) => Err(ModelError::Unavailable(error.without_url().into())),
            Ok(Ok(response)) => Ok(response),
        }
    }
}

#[async_trait]
impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.settings.model
    }

    fn capabilities(&self) -> &Capabilities {
        &self.settings.capabilities
    }

    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        let prepared = request.prepared(self.name(), self.capabilities(), self.settings.max_tokens);
        let idle = self.settings.timeouts.idle;
        let body = self.body(prepared.request(), self.carried.get().copied().unwrap_or_default());
        let mut response = self.send(&body).await?;
        if !response.status().is_success() {
            let refused = status::failure(response, idle).await;
            let Some(carried) = refused.carried else { return Err(refused.error) };
            let other = self.body(prepared.request(), carried);
            if other == body {
                return Err(refused.error);
            }
            response = self.send(&other).await?;
            if !response.status().is_success() {
                return Err(status::failure(response, idle).await.error);
            }
            // A call beside this one may have learned it before.
            _ = self.carried.set(carried);
            tracing::warn!(model = self.name(), ?carried, "the endpoint wants the model's reasoning otherwise");
        }
        let is_stream = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_none_or(|kind| !kind.starts_with("application/json"));
        let bytes = response.bytes_stream().map(|piece| piece.map_err(reqwest::Error::without_url)).boxed();
        Ok(prepared.answering(body::events(bytes, is_stream, idle)))
    }
}

#[cfg(test)]
mod tests;
