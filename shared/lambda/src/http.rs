//! HTTP in Lambda: API Gateway's REST APIs (payload 1.0), its HTTP APIs (1.0 and 2.0) and function URLs (2.0) to a request,
//! and an answer back (API Gateway Developer Guide, "Working with AWS Lambda proxy integrations for HTTP APIs"; Lambda
//! Developer Guide, "Invoking Lambda function URLs"). An event of any other shape is answered with 400.
//!
//! The body is decoded by the event's flag, never by its content type, and to the very bytes that were signed. HTTP APIs
//! decode the path, REST APIs and function URLs do not; requests here always have it encoded.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde::{Deserialize, Serialize};
use turnlock_app::api::{ApiResponse, STREAM_HEADERS};
use turnlock_channels::{IngressRequest, IngressResponse};
use turnlock_config::Config;

use crate::reload::Reloading;
use crate::start::{Start, StartError};

/// What an event stream may come to before it ends: an answer of a function holds 6 MB (Lambda quotas).
const MAX_STREAM: usize = 4 << 20;

/// Serves requests until Lambda ends the process: `build` makes the use case, `answer` answers with it.
///
/// # Errors
/// [`StartError`]; nothing once it runs.
pub async fn serve<T>(
    start: Start,
    build: impl Fn(&Start, &Arc<Config>) -> Result<T, StartError> + 'static,
    answer: impl AsyncFn(&T, IngressRequest) -> ApiResponse,
) -> Result<(), StartError> {
    let (use_case, ()) = tokio::join!(Reloading::new(start.clone(), build), start.prepare_admission());
    let (use_case, answer) = (&use_case?, &answer);
    let respond = async move |event: LambdaEvent<Event>| -> Result<Answer, Error> {
        let (request, format) = match event.payload.request() {
            Ok(request) => request,
            Err(why) => {
                tracing::warn!(why, "an event is no HTTP request");
                let refusal = serde_json::json!({ "error": "bad_request", "message": why });
                return Ok(Answer::new(IngressResponse::json(400, &refusal), Format::Two));
            }
        };
        let response = match with_newest_secrets(use_case, answer, request).await {
            ApiResponse::Full(response) => response,
            ApiResponse::Events(events) => what_there_is(events).await,
        };
        Ok(Answer::new(response, format))
    };
    let ended = lambda_runtime::run(service_fn(|event| Box::pin(respond(event)))).await;
    ended.map_err(StartError::Runtime)
}

/// The answer to a request. Whoever is refused by a signature may know a secret that is newer than ours: if there is one, it
/// decides.
async fn with_newest_secrets<T>(
    use_case: &Reloading<T>,
    answer: impl AsyncFn(&T, IngressRequest) -> ApiResponse,
    request: IngressRequest,
) -> ApiResponse {
    let answered = answer(&*use_case.get().await, request.clone()).await;
    if !is_unauthorised(&answered) {
        return answered;
    }
    match use_case.newer().await {
        Some(newer) => answer(&newer, request).await,
        None => answered,
    }
}

/// Whether a signature or a key did not match.
fn is_unauthorised(answer: &ApiResponse) -> bool {
    matches!(answer, ApiResponse::Full(response) if response.status == 401)
}

/// An event stream as one answer: up to the first news, since nothing of an answer is seen before its end. The client
/// comes back for more with the id of the last event.
async fn what_there_is(mut events: BoxStream<'static, Bytes>) -> IngressResponse {
    let mut body = Vec::new();
    while let Some(piece) = events.next().await {
        if body.len() + piece.len() > MAX_STREAM {
            break;
        }
        body.extend_from_slice(&piece);
        if piece.starts_with(b"id:") {
            break;
        }
    }
    let mut response = IngressResponse { status: 200, headers: Vec::new(), body: Bytes::from(body) };
    response.headers.extend(STREAM_HEADERS.map(|(name, value)| (name, value.to_owned())));
    response
}

/// Which shape an answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// Payload 1.0.
    One,
    /// Payload 2.0.
    Two,
}

/// An event, whatever it is.
#[derive(Deserialize)]
#[serde(untagged)]
enum Event {
    Http(Box<HttpEvent>),
    Other(serde::de::IgnoredAny),
}

/// What the shapes have in common and what tells them apart. Only what is used is read; `null` is as good as nothing.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct HttpEvent {
    version: Option<String>,
    http_method: Option<String>,
    path: Option<String>,
    raw_path: Option<String>,
    raw_query_string: Option<String>,
    headers: Option<BTreeMap<String, Option<String>>>,
    multi_value_headers: Option<BTreeMap<String, Option<Vec<String>>>>,
    query_string_parameters: Option<BTreeMap<String, Option<String>>>,
    multi_value_query_string_parameters: Option<BTreeMap<String, Option<Vec<String>>>>,
    body: Option<String>,
    is_base64_encoded: Option<bool>,
    request_context: Option<RequestContext>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RequestContext {
    http: Option<HttpContext>,
    stage: Option<String>,
    domain_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HttpContext {
    method: Option<String>,
}

impl Event {
    fn request(self) -> Result<(IngressRequest, Format), &'static str> {
        match self {
            Self::Http(event) => event.request(),
            Self::Other(_) => Err("this is no event of API Gateway or of a function URL"),
        }
    }
}

impl HttpEvent {
    fn request(self) -> Result<(IngressRequest, Format), &'static str> {
        let context = self.request_context.unwrap_or_default();
        let (method, path, format) = match (self.http_method, self.path, self.raw_path) {
            (Some(method), Some(path), _) => (method, path, Format::One),
            (None, _, Some(path)) => {
                (context.http.and_then(|http| http.method).ok_or("this event has no method")?, path, Format::Two)
            }
            _ => return Err("this is no event of API Gateway or of a function URL"),
        };
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| "this event has no method of HTTP")?;
        let is_function_url = context.domain_name.is_some_and(|domain| domain.contains(".lambda-url."));
        // A REST API's event has no version.
        let is_decoded = self.version.is_some() && !is_function_url;
        let path = if format == Format::Two { without_stage(&path, context.stage.as_deref()) } else { &path };
        let body = self.body.unwrap_or_default();
        let body = if self.is_base64_encoded.unwrap_or_default() {
            Bytes::from(STANDARD.decode(body).map_err(|_| "the body is said to be base64 and is not")?)
        } else {
            Bytes::from(body)
        };
        let request = IngressRequest {
            method,
            path: if is_decoded { encoded(path) } else { path.to_owned() },
            query: match self.raw_query_string {
                Some(query) => query,
                None => query(self.multi_value_query_string_parameters, self.query_string_parameters),
            },
            headers: headers(self.multi_value_headers, self.headers),
            body,
        };
        Ok((request, format))
    }
}

/// HTTP APIs put the name of their stage before the path, unless it is the default one.
fn without_stage<'p>(path: &'p str, stage: Option<&str>) -> &'p str {
    let Some(stage) = stage.filter(|stage| *stage != "$default") else { return path };
    let rest = path.strip_prefix('/').and_then(|path| path.strip_prefix(stage));
    rest.filter(|rest| rest.starts_with('/')).unwrap_or(path)
}

/// A decoded path as it was before, as far as routes can tell: its separators were separators.
fn encoded(path: &str) -> String {
    path.split('/').map(turnlock_domain::session::encode_part).collect::<Vec<_>>().join("/")
}

fn query(
    many: Option<BTreeMap<String, Option<Vec<String>>>>,
    single: Option<BTreeMap<String, Option<String>>>,
) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let values = all_values(many, single);
    query.extend_pairs(values);
    query.finish()
}

fn headers(
    many: Option<BTreeMap<String, Option<Vec<String>>>>,
    single: Option<BTreeMap<String, Option<String>>>,
) -> HeaderMap {
    // A header that is none is left out, like one that was never sent: whoever needs it refuses.
    let parse = |(name, value): (String, String)| {
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(&value).ok()?))
    };
    let mut headers = HeaderMap::new();
    for (name, value) in all_values(many, single).into_iter().filter_map(parse) {
        headers.append(name, value);
    }
    headers
}

/// All values of all names; the map of single ones has only the last of each.
fn all_values(
    many: Option<BTreeMap<String, Option<Vec<String>>>>,
    single: Option<BTreeMap<String, Option<String>>>,
) -> Vec<(String, String)> {
    match many.filter(|many| !many.is_empty()) {
        Some(many) => {
            let named = |(name, values): (String, Option<Vec<String>>)| {
                values.unwrap_or_default().into_iter().map(move |value| (name.clone(), value))
            };
            many.into_iter().flat_map(named).collect()
        }
        None => single.unwrap_or_default().into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
    }
}

/// An answer as both formats take it: 2.0 joins a header's values by commas, 1.0 has a map of its own for several.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status_code: u16,
    headers: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    multi_value_headers: Option<BTreeMap<&'static str, Vec<String>>>,
    body: String,
    is_base64_encoded: bool,
}

impl Answer {
    fn new(response: IngressResponse, format: Format) -> Self {
        let mut headers: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for (name, value) in response.headers {
            headers.entry(name).or_default().push(value);
        }
        // Answers are for whoever asked: no browser guesses their kind, no cache keeps them.
        headers.entry("x-content-type-options").or_insert_with(|| vec!["nosniff".to_owned()]);
        headers.entry("cache-control").or_insert_with(|| vec!["no-store".to_owned()]);
        let joined = headers.iter().map(|(name, values)| (*name, values.join(", "))).collect();
        let (body, is_base64_encoded) = match String::from_utf8(response.body.to_vec()) {
            Ok(text) => (text, false),
            Err(bytes) => (STANDARD.encode(bytes.as_bytes()), true),
        };
        Self {
            status_code: response.status,
            headers: joined,
            multi_value_headers: (format == Format::One).then_some(headers),
            body,
            is_base64_encoded,
        }
    }
}

#[cfg(test)]
mod tests;
