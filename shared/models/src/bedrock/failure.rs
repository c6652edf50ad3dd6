//! What a refusal means. Of what Bedrock writes only the error's name is kept: messages quote requests.
//!
//! Names and statuses: the `Errors` of Converse and ConverseStream in the API reference of Bedrock Runtime. Inside a
//! stream the status is the one that the same error has before it.

use std::error::Error;
use std::time::Duration;

use aws_sdk_bedrockruntime::config::http::HttpResponse;
use aws_sdk_bedrockruntime::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_bedrockruntime::types::error::ConverseStreamOutputError as InStream;

use crate::error::ModelError;

/// The longest wait that is believed.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);

/// What to do where access is refused.
const ACCESS: &str = "allow the role bedrock:InvokeModel and bedrock:InvokeModelWithResponseStream on the model (on an \
                      inference profile: on the profile, and on the model in each of its regions), and check that the \
                      account may use the model";

/// A call that has no answer.
pub(super) struct Unanswered {
    pub(super) error: ModelError,
    /// What it would be answered without.
    pub(super) without: Option<Extra>,
}

/// What of a request some models refuse, and can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    /// Cache points.
    CachePoints,
    /// Thinking, and the reasoning of earlier answers.
    Thinking,
    /// Both, for what stands in this conversation: another is not refused for it.
    ThinkingHere,
}

impl From<ModelError> for Unanswered {
    fn from(error: ModelError) -> Self {
        Self { error, without: None }
    }
}

/// Why a call has no answer.
pub(super) fn before_the_answer<E>(error: SdkError<E>) -> Unanswered
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    if let SdkError::ServiceError(refused) = &error {
        let (status, retry_after) = (refused.raw().status().as_u16(), retry_after(refused.raw()));
        let refusal = Refusal::of(refused.err());
        let without = if matches!(status, 400 | 403) { refusal.speaks_of.extra() } else { None };
        return Unanswered { error: refusal.meaning(status, retry_after), without };
    }
    unserved(error).into()
}

fn unserved<E: Error + Send + Sync + 'static>(error: SdkError<E>) -> ModelError {
    match error {
        SdkError::ResponseError(unread) => {
            let (status, retry_after) = (unread.raw().status().as_u16(), retry_after(unread.raw()));
            match status {
                200..=299 => ModelError::Interrupted("the answer cannot be read".into()),
                _ => Refusal::default().meaning(status, retry_after),
            }
        }
        SdkError::TimeoutError(_) => ModelError::Timeout,
        SdkError::DispatchFailure(failure) if failure.is_timeout() => ModelError::Timeout,
        SdkError::ConstructionFailure(_) => ModelError::Invalid { reason: "the request cannot be built".to_owned() },
        error => ModelError::Unavailable(error.into_source().unwrap_or_else(Into::into)),
    }
}

/// The error that ends a stream.
pub(super) fn inside_the_answer<R>(error: SdkError<InStream, R>) -> ModelError {
    match error {
        SdkError::ServiceError(reported) => match reported.err() {
            InStream::ThrottlingException(_) => ModelError::Throttled { retry_after: None },
            InStream::ServiceUnavailableException(_) => ModelError::Overloaded,
            InStream::InternalServerException(_) => {
                ModelError::Unavailable("internalServerException in the stream".into())
            }
            InStream::ValidationException(error) => {
                Refusal { name: "validationException".to_owned(), ..Refusal::of(error) }.meaning(400, None)
            }
            InStream::ModelStreamErrorException(_) => {
                ModelError::Interrupted("modelStreamErrorException in the stream".into())
            }
            _ => ModelError::Interrupted("an error that this version does not know, in the stream".into()),
        },
        SdkError::DispatchFailure(broken) if broken.is_timeout() => ModelError::Timeout,
        SdkError::DispatchFailure(_) => ModelError::Interrupted("the connection broke".into()),
        _ => ModelError::Interrupted("a frame of the stream cannot be read".into()),
    }
}

/// What an error says.
#[derive(Debug, Default)]
struct Refusal {
    name: String,
    speaks_of: SpeaksOf,
}

/// What of an error's text changes what is to be done.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum SpeaksOf {
    #[default]
    Nothing,
    /// The conversation is too long.
    Context,
    /// The model takes no cache points, or not there.
    CachePoints,
    /// The model does not think, or takes no reasoning.
    Thinking,
    /// The reasoning of this conversation is not as it should be.
    ThinkingHere,
    /// The model is reached through an inference profile only.
    Profile,
    /// The model does not stream, or not with tools.
    Streaming,
}

impl Refusal {
    fn of(error: &impl ProvideErrorMetadata) -> Self {
        let name = error.code().unwrap_or_default();
        let is_word = name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let message = error.message().unwrap_or_default().to_lowercase();
        Self { name: if is_word { name.to_owned() } else { String::new() }, speaks_of: SpeaksOf::of(&message) }
    }

    fn meaning(&self, status: u16, retry_after: Option<Duration>) -> ModelError {
        let name = if self.name.is_empty() { "without a code" } else { &self.name };
        let invalid = |advice| ModelError::Invalid { reason: format!("status {status} ({name}){advice}") };
        match (self.name.as_str(), status) {
            // A quota may come as a 400: waiting helps all the same.
            ("ThrottlingException" | "TooManyRequestsException" | "ServiceQuotaExceededException", _) => {
                ModelError::Throttled { retry_after }
            }
            ("ModelNotReadyException", _) | (_, 503) => ModelError::Overloaded,
            (_, 401 | 403) => ModelError::Unauthorized { advice: ACCESS },
            (_, 408) => ModelError::Timeout,
            (_, 413) => ModelError::ContextFull,
            (_, 429) => ModelError::Throttled { retry_after },
            (_, 424 | 500..=599) => ModelError::Unavailable(format!("status {status} ({name})").into()),
            _ => match self.speaks_of {
                SpeaksOf::Context => ModelError::ContextFull,
                SpeaksOf::Profile => invalid(": name an inference profile in the place of this model"),
                SpeaksOf::Streaming => invalid(": set `stream = false` for it, so that it answers in one piece"),
                SpeaksOf::CachePoints | SpeaksOf::Thinking | SpeaksOf::ThinkingHere | SpeaksOf::Nothing => invalid(""),
            },
        }
    }
}

impl SpeaksOf {
    fn of(message: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|words| message.contains(words));
        let too_long = ["input is too long", "prompt is too long", "too many input tokens", "input tokens exceed"];
        let context = ["context limit", "context length", "context window"];
        let cache = ["cachepoint", "cache point", "cache_control", "prompt caching"];
        if has(&cache) {
            Self::CachePoints
        } else if has(&too_long) || has(&context) {
            Self::Context
        } else if has(&["thinking", "reasoning"]) {
            // Claude's refusals of a conversation name the place: `messages.1.content.0`.
            if has(&["messages."]) { Self::ThinkingHere } else { Self::Thinking }
        } else if has(&["inference profile"]) {
            Self::Profile
        } else if has(&["streaming"]) {
            Self::Streaming
        } else {
            Self::Nothing
        }
    }

    fn extra(self) -> Option<Extra> {
        match self {
            Self::CachePoints => Some(Extra::CachePoints),
            Self::Thinking => Some(Extra::Thinking),
            Self::ThinkingHere => Some(Extra::ThinkingHere),
            Self::Nothing | Self::Context | Self::Profile | Self::Streaming => None,
        }
    }
}

/// Seconds, or milliseconds in AWS's own header.
fn retry_after(response: &HttpResponse) -> Option<Duration> {
    let number = |name: &str| response.headers().get(name)?.trim().parse::<f64>().ok();
    let seconds = number("x-amz-retry-after").map(|ms| ms / 1000.0).or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok().map(|wait| wait.min(RETRY_AFTER_MAX))
}
