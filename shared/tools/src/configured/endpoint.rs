//! A tool behind an HTTP endpoint: the request is POSTed as JSON, with its key in `Idempotency-Key`.
//!
//! 2xx is an answer. 429 and 503 say that the call was not taken on; any other 5xx, and a connection that is lost after it
//! was made, that nobody knows. Every other status is a refusal, and the model reads what it says. Redirects are not
//! followed. The address is the operator's, so it may be one of an inner network; where it is shown a token of ours (RFC
//! 6750), it can refuse everybody else.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, redirect};
use serde_json::Value;

use super::{ANSWER_MAX, answer, failure, request};
use crate::context::ToolContext;
use crate::error::{Cause, ToolError};
use crate::output::ToolOutput;
use crate::tool::ToolHandler;

/// How long a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// A tool that is asked over HTTP.
pub struct Endpoint {
    name: String,
    url: String,
    client: Client,
}

impl Endpoint {
    /// The tool `name` behind `url`, which is shown the token `bearer`.
    ///
    /// # Errors
    /// The HTTP client cannot be made, or no header can carry the token.
    pub fn new(name: &str, url: &str, bearer: Option<&str>) -> Result<Self, Cause> {
        let mut headers = HeaderMap::new();
        if let Some(bearer) = bearer {
            let mut bearer = HeaderValue::from_str(&format!("Bearer {bearer}"))
                .map_err(|_| "the bearer token has characters that no header can carry")?;
            bearer.set_sensitive(true);
            headers.insert(AUTHORIZATION, bearer);
        }
        let client = Client::builder()
            .default_headers(headers)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_WITHIN)
            .user_agent(concat!("Turnlock/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { name: name.to_owned(), url: url.to_owned(), client })
    }
}

#[async_trait]
impl ToolHandler for Endpoint {
    async fn call(&self, input: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let body = request(&self.name, &input, &context)?;
        let request = self.client.post(&self.url).header(CONTENT_TYPE, "application/json");
        let response = request.header("idempotency-key", &context.key).body(body).send().await.map_err(lost)?;
        let status = response.status();
        let (body, is_cut) = read(response).await?;
        if status.is_success() {
            return Ok(answer(&body, is_cut));
        }
        let cause = format!("the endpoint answered {}", status.as_u16()).into();
        match status.as_u16() {
            429 | 503 => Err(ToolError::Transient(cause)),
            500.. => Err(ToolError::BrokeDown(cause)),
            code => Err(failure(&self.name, &format!("answered {code}"), &String::from_utf8_lossy(&body))),
        }
    }
}

/// A request without an answer. Only one that never had a connection was surely not taken on. The address may hold what is
/// nobody's business, and is not repeated.
fn lost(error: reqwest::Error) -> ToolError {
    let is_unsent = error.is_connect() || error.is_builder();
    let cause = error.without_url().into();
    if is_unsent { ToolError::Transient(cause) } else { ToolError::CutOff(cause) }
}

/// The start of an answer, and whether there was more.
async fn read(mut response: Response) -> Result<(Vec<u8>, bool), ToolError> {
    let mut body: Vec<u8> = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| ToolError::BrokeDown(error.without_url().into()))? {
        let room = ANSWER_MAX - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok((body, true));
        }
    }
    Ok((body, false))
}
