//! A tool that is a Lambda function: invoked with the request, waited for, its answer is its result.
//!
//! An error that the function throws is a refusal, and the model reads its message without its stack trace. A function that
//! ran out of time or memory may have done its work all the same; one whose code could not be loaded has not. Throttling
//! means that it was not started. (Lambda Developer Guide, "Understanding retry behavior", "Invoke", errors, and
//! "Troubleshoot invocation issues".)

use async_trait::async_trait;
use aws_sdk_lambda::Client;
use aws_sdk_lambda::config::retry::RetryConfig;
use aws_sdk_lambda::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_lambda::operation::invoke::InvokeError;
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::InvocationType;
use aws_types::SdkConfig;
use serde::Deserialize;
use serde_json::Value;

use super::{ANSWER_MAX, answer, failure, request};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tool::ToolHandler;

/// The most bytes of a request (Lambda quotas: 6 MB, synchronous).
const REQUEST_MAX: usize = 6 * 1024 * 1024;

/// A tool that is a function on AWS.
pub struct Function {
    name: String,
    function: String,
    client: Client,
}

/// What Lambda answers for a function that failed.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Thrown {
    error_message: String,
    error_type: String,
}

/// What the runtimes say of code that could not be loaded: nothing of the call ran.
const NOT_LOADED: &[&str] = &[
    "Runtime.ImportModuleError",
    "Runtime.UserCodeSyntaxError",
    "Runtime.HandlerNotFound",
    "Runtime.MalformedHandlerName",
    "Runtime.InvalidEntrypoint",
];

impl Thrown {
    fn sorted(&self, name: &str) -> ToolError {
        let Self { error_message, error_type } = self;
        if NOT_LOADED.contains(&error_type.as_str()) {
            return ToolError::Failed(format!("the function's code cannot be loaded: {error_type}").into());
        }
        // Some runtimes' timeouts have a message alone: "2026-01-05T09:00:00Z 0a1b… Task timed out after 3.00 seconds".
        let is_timeout = error_type.is_empty() && error_message.contains("Task timed out after ");
        if is_timeout || error_type.starts_with("Sandbox.") || error_type.starts_with("Runtime.") {
            let end = if is_timeout { "a timeout" } else { error_type };
            return ToolError::BrokeDown(format!("the function ended with {end}").into());
        }
        failure(name, "failed", error_message)
    }
}

impl Function {
    /// The tool `name` that invokes `function` (a name or an ARN) in the account that `sdk` is for. Nothing is repeated here:
    /// a call that may have been made is not made again.
    #[must_use]
    pub fn new(name: &str, function: &str, sdk: &SdkConfig) -> Self {
        let config = aws_sdk_lambda::config::Builder::from(sdk).retry_config(RetryConfig::disabled()).build();
        Self { name: name.to_owned(), function: function.to_owned(), client: Client::from_conf(config) }
    }
}

#[async_trait]
impl ToolHandler for Function {
    async fn call(&self, input: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let body = request(&self.name, &input, &context)?;
        if body.len() > REQUEST_MAX {
            return Err(ToolError::ForModel(format!("The input is too large for the tool `{}`.", self.name)));
        }
        let invoke = self.client.invoke().function_name(&self.function).payload(Blob::new(body));
        let answered = invoke.invocation_type(InvocationType::RequestResponse).send().await.map_err(sorted)?;
        let payload = answered.payload().map(Blob::as_ref).unwrap_or_default();
        if answered.function_error().is_none() {
            let kept = &payload[..payload.len().min(ANSWER_MAX)];
            return Ok(answer(kept, kept.len() < payload.len()));
        }
        let thrown: Thrown = serde_json::from_slice(payload).unwrap_or_default();
        Err(thrown.sorted(&self.name))
    }
}

/// Whether a call without an answer was surely not made.
fn sorted(error: SdkError<InvokeError>) -> ToolError {
    let SdkError::ServiceError(service) = &error else {
        return match error {
            SdkError::ConstructionFailure(_) => ToolError::Failed(error.into()),
            _ => ToolError::CutOff(error.into()),
        };
    };
    let not_started = ["TooManyRequestsException", "EC2ThrottledException", "ENILimitReachedException"];
    let status = service.raw().status().as_u16();
    if status == 429 || service.err().code().is_some_and(|code| not_started.contains(&code)) {
        ToolError::Transient(error.into())
    } else if status >= 500 {
        ToolError::BrokeDown(error.into())
    } else {
        ToolError::Failed(error.into())
    }
}
