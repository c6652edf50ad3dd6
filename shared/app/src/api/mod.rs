//! The HTTP API: messages in, events and their streams, sessions. One router over values; the caller turns requests into
//! [`IngressRequest`]s (the path as it came, not decoded) and answers into its own.
//!
//! | route | answers |
//! |---|---|
//! | `POST /v1/messages[?wait=20]` | 202 with the event's id and links; with `wait` (seconds, at most 25) 200 with the final if it comes in time. `Idempotency-Key`: the same key and body is the same event, another body is 409 |
//! | `GET /v1/events/{id}` | the event: `queued`, `running` with the text so far, `waiting_for_approval` with what is asked and its id, `done` with the final, or with `merged_into`: the event whose turn took it up |
//! | `GET /v1/events/{id}/stream` | the same as server-sent events `frame`, `approval`, and `final` or `merged`; `Last-Event-ID` resumes |
//! | `GET /healthz` | 200, to whoever asks |
//! | `GET /v1/sessions/{key}/messages[?limit=20][&before=n]` | the newest messages of the session's conversation |
//! | `POST /v1/sessions/{key}/stop` | 202: what was sent to the session before this ends |
//! | `GET /v1/approvals` | the calls that wait for a decision which the caller may make |
//! | `POST /v1/approvals/{id}` with `{"decision": "allow"}` or `"deny"` | 200 once it is stored, and for the same again; 409 decided otherwise, 410 over, 403 not the caller's to decide |
//!
//! A caller is known by its bearer key and sees the events and sessions of its own account alone; what it may not see is
//! answered as if it were not there. The operator, whom the host knows by other means, sees everything and writes as the
//! terminal. Reasoning is never shown. Text is read from what delivery wrote, so nothing shows before its commit.
//!
//! Reading costs requests: a wait and a stream ask the table with growing pauses, and both end.

mod approvals;
mod events;
mod messages;
mod sessions;
mod stream;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::Method;
use percent_encoding::percent_decode_str;
use secrecy::SecretString;
use turnlock_channels::{IngressRequest, IngressResponse, gateway};
use turnlock_clock::Clock;
use turnlock_config::{Allow, Config};
use turnlock_domain::event::Channel;
use turnlock_domain::ids::EventId;
use turnlock_domain::session::{DEFAULT_ACCOUNT, SessionKey, encode_part};
use turnlock_store::{Store, StoreError};

use crate::admit::{Admission, BUSY_RETRY, chain};
use crate::ingress::{FreshIds, error, later, refuse};
use crate::policy::Policy;

pub use messages::MAX_WAIT;

/// What the API needs.
pub struct Api {
    /// Events, sessions, admissions.
    pub store: Store,
    /// Decides about messages.
    pub admission: Arc<Admission>,
    /// The time.
    pub clock: Clock,
    /// Identities of messages that bring no key.
    pub ids: Arc<FreshIds>,
    /// Who may call.
    pub access: Access,
    /// Who may decide about calls that wait.
    pub policy: Policy,
    /// How waits and streams ask for news.
    pub polling: Polling,
    /// How long a stream lasts before its client has to come back; `None` = until the final.
    pub stream_limit: Option<Duration>,
}

/// Who may call the API.
#[derive(Debug, Clone)]
pub enum Access {
    /// Holders of a key.
    Keys(Vec<Caller>),
    /// Everybody, as the default account: for the demo, on loopback. They see everything, like its operator.
    Open,
}

/// A caller of the API.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Its name: the account of its events.
    pub name: String,
    /// Its bearer key.
    pub key: SecretString,
    /// The chats it may use.
    pub allow: Allow,
}

/// How often the table is asked for news: the pause grows from the shortest to the longest, and starts over whenever
/// something was new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Polling {
    /// The first pause.
    pub shortest: Duration,
    /// The longest.
    pub longest: Duration,
}

impl Default for Polling {
    fn default() -> Self {
        Self { shortest: Duration::from_millis(50), longest: Duration::from_millis(500) }
    }
}

impl Polling {
    fn next(self, pause: Duration) -> Duration {
        (pause + pause / 2).clamp(self.shortest, self.longest)
    }
}

/// The longest id or session key that is looked for: ours are shorter, and no key of the table may be longer.
const MAX_KEY: usize = 1024;

/// An answer of the API.
pub enum ApiResponse {
    /// A whole answer.
    Full(IngressResponse),
    /// Status 200 and server-sent events, to be passed on as they come ([`STREAM_HEADERS`]).
    Events(BoxStream<'static, Bytes>),
}

/// The headers of [`ApiResponse::Events`].
pub const STREAM_HEADERS: [(&str, &str); 3] =
    [("content-type", "text/event-stream"), ("cache-control", "no-store"), ("x-accel-buffering", "no")];

/// What a caller may see.
#[derive(Debug, Clone)]
enum Scope {
    /// The events and sessions of one account.
    Account { name: String, allow: Allow },
    /// Everything, writing on `channel`.
    Everything { channel: Channel },
}

impl Scope {
    /// Whether what belongs to `session` may be seen. The keys of the API's sessions have no thread.
    fn sees(&self, session: &SessionKey) -> bool {
        let Self::Account { name, allow } = self else { return true };
        let mut parts = session.as_str().split(':');
        let (channel, rest) = (parts.next(), parts.collect::<Vec<_>>());
        let (account, chat) = match rest[..] {
            [chat] => (DEFAULT_ACCOUNT, chat),
            [account, chat] => (account, chat),
            _ => return false,
        };
        let chat = percent_decode_str(chat).decode_utf8_lossy();
        channel == Some(Channel::Gateway.as_str()) && account == encode_part(name) && allow.permits(&[&chat])
    }

    /// Who may use which chats.
    fn allow(&self) -> &Allow {
        match self {
            Self::Account { allow, .. } => allow,
            Self::Everything { .. } => &Allow::Everybody,
        }
    }
}

impl Access {
    /// The callers that `config` names; one without a key has no way in.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        let callers = config.gateway.keys.iter().filter_map(|(name, caller)| {
            Some(Caller { name: name.clone(), key: caller.key.clone()?, allow: caller.allow.clone() })
        });
        Self::Keys(callers.collect())
    }
}

impl Api {
    /// The API with the callers that `config` names, or `open` to everybody. Streams last until the final; a function
    /// whose time is limited sets [`Api::stream_limit`].
    #[must_use]
    pub fn from_config(
        config: &Config,
        store: Store,
        admission: Arc<Admission>,
        clock: Clock,
        ids: Arc<FreshIds>,
        open: bool,
    ) -> Self {
        let access = if open { Access::Open } else { Access::from_config(config) };
        let policy = Policy::from_config(config);
        Self { store, admission, clock, ids, access, policy, polling: Polling::default(), stream_limit: None }
    }

    /// Answers a request of somebody who has to prove who they are, but for `GET /healthz`.
    pub async fn route(&self, request: IngressRequest) -> ApiResponse {
        if request.path == "/healthz" {
            return ApiResponse::Full(IngressResponse::text(200, "ok"));
        }
        match self.scope(&request) {
            Ok(scope) => self.dispatch(&scope, request).await,
            Err(answer) => ApiResponse::Full(answer),
        }
    }

    /// Answers a request of the operator, whom the caller has recognised: it writes on the terminal's channel.
    pub async fn route_as_operator(&self, request: IngressRequest) -> ApiResponse {
        self.dispatch(&Scope::Everything { channel: Channel::Cli }, request).await
    }

    fn scope(&self, request: &IngressRequest) -> Result<Scope, IngressResponse> {
        let callers = match &self.access {
            Access::Open => return Ok(Scope::Everything { channel: Channel::Gateway }),
            Access::Keys(callers) => callers,
        };
        let keys: Vec<_> = callers.iter().map(|caller| (caller.name.clone(), caller.key.clone())).collect();
        let name = gateway::verify(&keys, &request.headers)
            .map_err(|refusal| refuse(Channel::Gateway, "", &refusal).with_header("www-authenticate", "Bearer"))?;
        let allow: BTreeMap<&str, &Allow> =
            callers.iter().map(|caller| (caller.name.as_str(), &caller.allow)).collect();
        let allow = allow.get(name).map_or_else(Allow::default, |allow| (*allow).clone());
        Ok(Scope::Account { name: name.to_owned(), allow })
    }

    async fn dispatch(&self, scope: &Scope, request: IngressRequest) -> ApiResponse {
        let path = request.path.trim_start_matches('/').to_owned();
        let segments: Vec<String> =
            path.split('/').map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned()).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let full = match segments[..] {
            ["v1", "messages"] => self.post_message(scope, &request).await,
            ["v1", "events", _]
            | ["v1", "events", _, "stream"]
            | ["v1", "sessions", _, "messages"]
            | ["v1", "approvals"]
                if request.method != Method::GET =>
            {
                Ok(error(405, "method_not_allowed", "only GET is allowed here").with_header("allow", "GET"))
            }
            ["v1", "sessions", _, "stop"] | ["v1", "approvals", _] if request.method != Method::POST => {
                Ok(error(405, "method_not_allowed", "only POST is allowed here").with_header("allow", "POST"))
            }
            ["v1", "events", key]
            | ["v1", "events", key, "stream"]
            | ["v1", "sessions", key, "messages" | "stop"]
            | ["v1", "approvals", key]
                if !(1..=MAX_KEY).contains(&key.len()) =>
            {
                Ok(not_found())
            }
            ["v1", "approvals"] => self.get_approvals(scope).await,
            // Boxed: few requests decide, and every one would be as large as if it did.
            ["v1", "approvals", id] => Box::pin(self.post_approval(scope, id, &request)).await,
            ["v1", "sessions", key, "stop"] => self.post_stop(scope, &SessionKey::from_text(key)).await,
            ["v1", "events", id] => self.get_event(scope, &EventId::from_stored(id)).await,
            ["v1", "events", id, "stream"] => match self.stream(scope, &EventId::from_stored(id), &request).await {
                Ok(Ok(stream)) => return ApiResponse::Events(stream),
                Ok(Err(answer)) => Ok(answer),
                Err(error) => Err(error),
            },
            ["v1", "sessions", key, "messages"] => {
                self.get_messages(scope, &SessionKey::from_text(key), &request.query).await
            }
            _ => Ok(not_found()),
        };
        ApiResponse::Full(full.unwrap_or_else(|error| unavailable(&error)))
    }
}

/// What is not there, and what the caller may not see.
fn not_found() -> IngressResponse {
    error(404, "not_found", "there is nothing here")
}

fn invalid(sentence: &str) -> IngressResponse {
    error(400, "invalid", sentence)
}

fn unavailable(problem: &StoreError) -> IngressResponse {
    tracing::error!(error = %chain(problem), "an API request could not be answered");
    if problem.is_transient() {
        later(503, "unavailable", BUSY_RETRY)
    } else {
        error(500, "internal", "this request could not be answered")
    }
}

/// The value of `name` in a query, decoded; the first one counts.
fn parameter(query: &str, name: &str) -> Option<String> {
    form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// A whole number in a query, between `least` and `most`; absent = `default`.
fn number(query: &str, name: &str, (least, most): (u64, u64), default: u64) -> Result<u64, IngressResponse> {
    let Some(value) = parameter(query, name) else { return Ok(default) };
    let number = value.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| invalid(&format!("`{name}`: a whole number from {least} to {most}")))
}
