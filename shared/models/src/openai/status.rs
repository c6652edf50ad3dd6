//! What a refusal means. Of its body only the code is kept, and only if it looks like one: bodies quote requests.

use std::time::Duration;

use futures_util::StreamExt;
use reqwest::Response;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;
use tokio::time::timeout;

use super::Carried;
use crate::error::ModelError;
use crate::wire;

/// As much of a refusal's body as is read.
const BODY_MAX: usize = 64 * 1024;
/// The longest wait that is believed.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);

/// What to do where access is refused.
const ACCESS: &str = "check the API key, and whether its account may use this model";

/// A request that was refused.
pub(super) struct Refused {
    pub(super) error: ModelError,
    /// How reasoning is to be sent for the request to be answered, if that is what it was refused for.
    pub(super) carried: Option<Carried>,
}

/// What a response of a status other than success stands for.
pub(super) async fn failure(response: Response, idle: Duration) -> Refused {
    let status = response.status().as_u16();
    let retry_after = retry_after(response.headers());
    // The status decides; a body that does not come changes nothing.
    let body = timeout(idle.min(Duration::from_secs(10)), read(response)).await.unwrap_or_default();
    let refusal = serde_json::from_slice(&body).map(|body: Value| Refusal::of_body(&body)).unwrap_or_default();
    let carried = if matches!(status, 400 | 422) { carried(&body) } else { None };
    Refused { error: of_status(status, retry_after, &refusal), carried }
}

/// What a refusal says about reasoning. All of its body is looked through: some servers name the field in lists of theirs.
/// One that does not know the field may repeat what stood in it, whatever words that has: so that is asked for first.
fn carried(body: &[u8]) -> Option<Carried> {
    let body = String::from_utf8_lossy(body).to_lowercase();
    let wants = ["missing", "must be passed back", "must be provided", "is required"];
    let unknown = ["extra_forbidden", "extra inputs", "not permitted", "unsupported", "unexpected", "unrecognized"];
    match body.contains(wire::REASONING) {
        true if unknown.iter().any(|words| body.contains(words)) => Some(Carried::Nowhere),
        true if wants.iter().any(|words| body.contains(words)) => Some(Carried::Everywhere),
        true => Some(Carried::Nowhere),
        false => None,
    }
}

/// What an error object says.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    code: String,
    speaks_of_context: bool,
}

impl Refusal {
    /// Reads a body: some servers put into it what belongs under its `error`.
    fn of_body(body: &Value) -> Self {
        if body["error"].is_null() { Self::of(body) } else { Self::of(&body["error"]) }
    }

    /// Reads the value of `error`, in a body or in a stream.
    pub(super) fn of(error: &Value) -> Self {
        let code = [&error["code"], &error["type"]].into_iter().find_map(word).unwrap_or_default();
        let message = error["message"].as_str().or_else(|| error.as_str()).unwrap_or_default().to_lowercase();
        let speaks_of_context = code.contains("context_length")
            || ["context length", "context window", "maximum context", "context size", "prompt is too long"]
                .iter()
                .any(|words| message.contains(words));
        Self { code, speaks_of_context }
    }

    /// The error that this object stands for inside a stream of status 200.
    pub(super) fn in_stream(&self) -> ModelError {
        match self.code.parse::<u16>() {
            Ok(status @ 400..=599) => of_status(status, None, self),
            _ if self.speaks_of_context => ModelError::ContextFull,
            _ if self.code.contains("rate_limit") => ModelError::Throttled { retry_after: None },
            _ if self.code.contains("overloaded") => ModelError::Overloaded,
            _ => ModelError::Interrupted(
                format!("the provider reported an error in mid stream ({})", self.name()).into(),
            ),
        }
    }

    fn name(&self) -> &str {
        if self.code.is_empty() { "without a code" } else { &self.code }
    }
}

fn of_status(status: u16, retry_after: Option<Duration>, refusal: &Refusal) -> ModelError {
    match status {
        401 | 403 => ModelError::Unauthorized { advice: ACCESS },
        408 => ModelError::Timeout,
        413 => ModelError::ContextFull,
        // An account without money answers like a throttled one, but waiting does not fill it.
        429 if refusal.code != "insufficient_quota" => ModelError::Throttled { retry_after },
        503 | 529 => ModelError::Overloaded,
        500..=599 => ModelError::Unavailable(format!("status {status} ({})", refusal.name()).into()),
        _ if refusal.speaks_of_context => ModelError::ContextFull,
        _ => ModelError::Invalid { reason: format!("status {status} ({})", refusal.name()) },
    }
}

/// A code, if the value is one: a word or a status.
fn word(value: &Value) -> Option<String> {
    let text =
        value.as_str().map_or_else(|| value.as_u64().map(|code| code.to_string()), |text| Some(text.to_owned()))?;
    let is_word = (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    is_word.then_some(text)
}

/// Seconds, or milliseconds in OpenAI's own header. A date is not understood: the caller's own backoff then decides.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number(RETRY_AFTER.as_str()))?;
    Duration::try_from_secs_f64(seconds).ok().map(|wait| wait.min(RETRY_AFTER_MAX))
}

async fn read(response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let mut pieces = response.bytes_stream();
    while let Some(Ok(piece)) = pieces.next().await {
        body.extend_from_slice(&piece);
        if body.len() >= BODY_MAX {
            body.truncate(BODY_MAX);
            break;
        }
    }
    body
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_tells_whether_trying_again_helps() {
        let table = [
            (400, json!({"code": "invalid_value"}), "invalid"),
            (400, json!({"code": "context_length_exceeded"}), "context_full"),
            (400, json!({"code": 400, "message": "the request exceeds the available context size"}), "context_full"),
            (401, json!({}), "unauthorized"),
            (403, json!({}), "unauthorized"),
            (404, json!({"code": "model_not_found"}), "invalid"),
            (408, json!({}), "timeout"),
            (413, json!({}), "context_full"),
            (422, json!("prompt"), "invalid"),
            (429, json!({"code": "rate_limit_exceeded"}), "throttled"),
            (429, json!({"code": "insufficient_quota"}), "invalid"),
            (500, json!({}), "unavailable"),
            (502, json!(null), "unavailable"),
            (503, json!({}), "overloaded"),
            (529, json!({"type": "overloaded_error"}), "overloaded"),
            (302, json!({}), "invalid"),
        ];
        for (status, error, want) in table {
            assert_eq!(of_status(status, None, &Refusal::of(&error)).kind(), want, "{status} {error}");
        }
    }

    #[test]
    fn an_error_may_be_the_body_itself() {
        let full =
            json!({"object": "error", "message": "This model's maximum context length is 8 tokens", "code": 400});
        assert_eq!(of_status(400, None, &Refusal::of_body(&full)).kind(), "context_full");
        assert_eq!(of_status(400, None, &Refusal::of_body(&json!({ "error": full }))).kind(), "context_full");
        assert_eq!(of_status(400, None, &Refusal::of_body(&json!(["odd"]))).kind(), "invalid");
    }

    #[test]
    fn nothing_of_a_body_but_its_code_is_repeated() {
        let error = json!({"message": "your prompt 'my secret'", "type": "my secret", "code": "bad_value"});
        let shown = of_status(400, None, &Refusal::of(&error)).to_string();
        assert_eq!(shown, "the model provider refuses the request: status 400 (bad_value)");
        let error = json!({"message": "my secret", "type": "my secret"});
        let shown = of_status(400, None, &Refusal::of(&error)).to_string();
        assert_eq!(shown, "the model provider refuses the request: status 400 (without a code)");
    }

    #[test]
    fn an_error_in_the_stream_is_sorted_the_same_way() {
        let table = [
            (json!({"code": 429}), "throttled"),
            (json!({"code": "rate_limit_exceeded"}), "throttled"),
            (json!({"type": "overloaded_error"}), "overloaded"),
            (json!({"code": 502, "message": "upstream"}), "unavailable"),
            (json!("boom"), "interrupted"),
            (json!({"message": "this model's maximum context is 8192 tokens"}), "context_full"),
        ];
        for (error, want) in table {
            assert_eq!(Refusal::of(&error).in_stream().kind(), want, "{error}");
        }
    }

    #[test]
    fn a_wait_is_read_in_seconds_and_milliseconds_and_not_believed_for_ever() {
        let table: [(&str, &str, Option<u64>); 6] = [
            ("retry-after", "2", Some(2000)),
            ("retry-after", "0.5", Some(500)),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after", "999999", Some(3_600_000)),
            ("retry-after", "-1", None),
            ("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT", None),
        ];
        for (name, value, want) in table {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().expect("a header"));
            assert_eq!(retry_after(&headers), want.map(Duration::from_millis), "{name}: {value}");
        }
    }
}
