//! The HTTP side of the process: requests become values for the host, its answers become responses, and the page is
//! beside them.
//!
//! | route | answers |
//! |---|---|
//! | `/`, `/page.css`, `/page.js` | the page |
//! | `/demo/chats`, `/demo/events` | what the stand-in platforms show, recent events; in the demo alone |
//! | `/operator/pairings` | what `turnlock pair` asks |
//! | everything else | [`Host::answer`] |
//!
//! Not here: whose request it is (the channels know), except for the operator, who holds the token that this process
//! made at its start. Every request passes the [`guard`] first.

mod demo;
mod guard;
mod page;
mod pairings;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::sync::watch;
use turnlock_app::api::STREAM_HEADERS;
use turnlock_channels::{IngressRequest, IngressResponse, gateway};
use turnlock_host::Host;

pub(crate) use demo::Demo;
pub(crate) use guard::Guard;
pub(crate) use pairings::{PATH as PAIRINGS, Question};

/// No route takes more; those that take less say so themselves.
const MAX_BODY: usize = 2 << 20;

/// How much of a body that is too large is read before the connection ends.
const MAX_DISCARDED: usize = 16 << 20;

/// How long a body may take to arrive: a sender that stalls holds nothing for ever.
const BODY_WITHIN: Duration = Duration::from_secs(20);

/// What the routes work with.
pub(crate) struct Front {
    /// Every function.
    pub(crate) host: Arc<Host>,
    /// Who may reach us under which name.
    pub(crate) guard: Guard,
    /// The operator's token of this boot.
    pub(crate) token: SecretString,
    /// What the page shows of the demo.
    pub(crate) demo: Option<Demo>,
    /// Turns true when the process is about to end: streams end then, their clients come back.
    pub(crate) closing: watch::Receiver<bool>,
}

/// All routes.
pub(crate) fn router(front: Front) -> Router {
    let front = Arc::new(front);
    let mut router = Router::new()
        .route("/", get(page::index))
        .route("/page.css", get(page::style))
        .route("/page.js", get(page::script))
        .route(PAIRINGS, post(pairings::pairings));
    if front.demo.is_some() {
        router = router.route("/demo/chats", get(demo::chats)).route("/demo/events", get(demo::events));
    }
    router
        .fallback(answer)
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&front), guard::check))
        .with_state(front)
}

async fn answer(State(front): State<Arc<Front>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = match read(&parts.headers, body).await {
        Ok(body) => body,
        Err((status, word, sentence)) => return refusal(status, word, sentence),
    };
    if let Some(demo) = &front.demo {
        demo.note(parts.uri.path(), &body);
    }
    let is_operator = parts.uri.path().starts_with("/v1/") && front.is_operator(&parts.headers);
    let request = IngressRequest {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers,
        body,
    };
    let answer = if is_operator { front.host.answer_operator(request).await } else { front.host.answer(request).await };
    match answer {
        turnlock_host::Response::Full(answer) => full(answer),
        turnlock_host::Response::Events(events) => stream(events, front.closing.clone()),
    }
}

impl Front {
    fn is_operator(&self, headers: &HeaderMap) -> bool {
        gateway::verify(&[("operator".to_owned(), self.token.clone())], headers).is_ok()
    }
}

type BodyRefusal = (StatusCode, &'static str, &'static str);

/// The whole body, unless it is too large or too slow. What is too large is read to its end all the same, within
/// reason, and thrown away: a sender that is still writing when the connection closes never sees the answer.
async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, BodyRefusal> {
    const TOO_LARGE: BodyRefusal = (StatusCode::PAYLOAD_TOO_LARGE, "too_large", "the body is larger than 2 MiB");
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > MAX_DISCARDED) {
        return Err(TOO_LARGE);
    }
    match tokio::time::timeout(BODY_WITHIN, collect(body)).await {
        Ok(Ok(Some(body))) => Ok(body),
        Ok(Ok(None)) => Err(TOO_LARGE),
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "body_broken", "the body ended before its end")),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "body_slow", "the body took too long to arrive")),
    }
}

/// A body of at most [`MAX_BODY`] bytes; nothing of a larger one is kept.
async fn collect(body: Body) -> Result<Option<Bytes>, axum::Error> {
    let mut pieces = body.into_data_stream();
    let (mut kept, mut length) = (Vec::new(), 0);
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        length += piece.len();
        if length > MAX_DISCARDED {
            return Ok(None);
        }
        if length <= MAX_BODY {
            kept.extend_from_slice(&piece);
        } else {
            kept = Vec::new();
        }
    }
    Ok((length <= MAX_BODY).then(|| Bytes::from(kept)))
}

fn full(answer: IngressResponse) -> Response {
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in &answer.headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().append(*name, value);
        }
    }
    private(response)
}

/// Server-sent events as they come, until they end or the process does.
fn stream(events: BoxStream<'static, Bytes>, mut closing: watch::Receiver<bool>) -> Response {
    let closed = async move { drop(closing.wait_for(|closing| *closing).await) };
    let mut response = Response::new(Body::from_stream(events.take_until(closed).map(Ok::<_, Infallible>)));
    for (name, value) in STREAM_HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    private(response)
}

/// A word for programs and a sentence for people; the connection ends, since the body may not have been read.
fn refusal(status: StatusCode, word: &str, sentence: &str) -> Response {
    let mut response = json(&json!({ "error": word, "message": sentence }));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn json(value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    private(response)
}

/// Answers are for whoever asked: no browser guesses their kind, no cache keeps them.
fn private(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
