//! What all channels share on the way in: one request, one answer, and the result of normalising.
//!
//! Nothing here knows a platform. A [`Refusal`] names the rule that was broken and where, never what the body says.

use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::Value;
use turnlock_domain::envelope::{Command, Position};
use turnlock_domain::event::InboundEvent;
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;
use turnlock_domain::text::JsonError;
use turnlock_domain::time::Millis;

/// One HTTP request as it arrived, the body decoded (never re-encoded: signatures hold for these very bytes).
#[derive(Clone)]
pub struct IngressRequest {
    /// The method.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
    /// The query, without the question mark.
    pub query: String,
    /// The headers, found whatever their case.
    pub headers: HeaderMap,
    /// The raw body.
    pub body: Bytes,
}

impl IngressRequest {
    /// A `POST` of `body`.
    #[must_use]
    pub fn post(path: impl Into<String>, headers: HeaderMap, body: impl Into<Bytes>) -> Self {
        Self { method: Method::POST, path: path.into(), query: String::new(), headers, body: body.into() }
    }

    /// Checks what needs no secret: the method and the size.
    ///
    /// # Errors
    /// [`Refusal::MethodNotAllowed`] for anything but `POST`, [`Refusal::TooLarge`] above `limit` bytes.
    pub fn check(&self, limit: usize) -> Result<(), Refusal> {
        if self.method != Method::POST {
            return Err(Refusal::MethodNotAllowed);
        }
        if self.body.len() > limit {
            return Err(Refusal::TooLarge { limit });
        }
        Ok(())
    }

    /// The header called `name`, if it is there and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The request's trace context (W3C `traceparent`), if it has a well-formed one.
    #[must_use]
    pub fn trace(&self) -> Option<String> {
        trace(&self.headers)
    }
}

/// Says what a request is without its secrets: no headers, no query, no body.
impl std::fmt::Debug for IngressRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IngressRequest")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

pub(crate) fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The `traceparent` of a request, if it is one (W3C Trace Context, section 3.2): a text of 55 characters, so that nobody
/// makes an event carry anything else in its place.
pub(crate) fn trace(headers: &HeaderMap) -> Option<String> {
    let parent = header(headers, "traceparent")?;
    let lengths: Vec<usize> = parent.split('-').map(str::len).collect();
    let hexadecimal = parent.bytes().all(|b| b == b'-' || b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    (lengths == [2, 32, 16, 2] && hexadecimal).then(|| parent.to_owned())
}

/// The answer to one HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngressResponse {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Bytes,
}

impl IngressResponse {
    /// A status and nothing else.
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new() }
    }

    /// A status and JSON.
    #[must_use]
    pub fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: vec![("content-type", "application/json".to_owned())],
            body: Bytes::from(body.to_string()),
        }
    }

    /// A status and plain text.
    #[must_use]
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self {
            status,
            headers: vec![("content-type", "text/plain; charset=utf-8".to_owned())],
            body: Bytes::from(body.into()),
        }
    }

    /// The same answer with one more header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// An event with what only our own ingress may claim about it: all but `accepted_at` of its envelope.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// The event.
    pub event: InboundEvent,
    /// Its place among the events of its session.
    pub position: Position,
    /// The command it is, if it is one; its event then has the type `control`.
    pub command: Option<Command>,
    /// Whether no person waits for the answer.
    pub unattended: bool,
    /// Whether its chat may have had another id before, under which its conversation goes on.
    pub can_have_moved: bool,
}

/// One of several messages that a person sent as one.
#[derive(Debug, Clone, PartialEq)]
pub struct AlbumPart {
    /// The message as an event of its own.
    pub arrival: Arrival,
    /// What all parts have in common: the identity of the whole.
    pub album: EventId,
    /// Its place among them: the platform's number of the message.
    pub number: i64,
    /// Whether it is for us by itself. In a group that is the part whose caption names us; the others say nothing.
    pub addressed: bool,
}

/// What a verified request turned out to be.
#[derive(Debug, Clone, PartialEq)]
pub enum Normalised {
    /// Something to work on.
    Event(Box<Arrival>),
    /// Said to us, but with nothing in it that a turn could work on: its text is invisible, or it holds a kind of
    /// content that this version cannot read. No turn; the person gets a kind sentence. The event's content is empty.
    Unreadable {
        /// Why, as a word for logs: `blank` or `unsupported_content`.
        reason: &'static str,
        /// Whom to answer, and where.
        arrival: Box<Arrival>,
    },
    /// Nothing to do, and nobody waits: answer 200 and count it.
    Ignored {
        /// Why, as a word for logs.
        reason: &'static str,
        /// What it would have been recognised by, where it has an identity.
        event_id: Option<EventId>,
    },
    /// The platform says something about a chat itself: it is noted, and nobody waits for an answer.
    Chat {
        /// What it is recognised by.
        event_id: EventId,
        /// What it says.
        news: ChatNews,
    },
    /// One of several messages that a person sent as one.
    AlbumPart(Box<AlbumPart>),
    /// The platform asked a question of its own (a URL check): this is the whole answer.
    Answer(IngressResponse),
}

/// What a platform says about a chat. Chats go by our names for them ([`SessionKey::new`] without a thread).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatNews {
    /// Nothing can be sent to it any more.
    Gone {
        /// The chat.
        chat: SessionKey,
        /// Why, as a word: `blocked`, `kicked`, `left`.
        reason: &'static str,
        /// Since when, by the platform's clock.
        at: Millis,
    },
    /// It can be sent to, from now on or again.
    Back {
        /// The chat.
        chat: SessionKey,
        /// Since when, by the platform's clock.
        at: Millis,
    },
    /// It has another id from now on.
    Moved {
        /// The chat as it was called.
        from: SessionKey,
        /// The chat as it is called.
        to: SessionKey,
    },
}

impl ChatNews {
    /// A word for logs.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Gone { .. } | Self::Back { .. } => "membership",
            Self::Moved { .. } => "migration",
        }
    }
}

impl Normalised {
    pub(crate) fn ignored(reason: &'static str, event_id: &EventId) -> Self {
        Self::Ignored { reason, event_id: Some(event_id.clone()) }
    }
}

/// Why a request does not come in. `Display` names the rule and the place, never the body, a secret or a signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The route has no secret: nothing can be verified, so nothing comes in until the operator sets one.
    #[error(
        "this route has no usable secret configured: its operator has to add one (for the API: a [gateway.keys.NAME])"
    )]
    SecretMissing,
    /// The signature, token or key is absent or wrong.
    #[error("the signature or key is missing or does not match")]
    BadSignature,
    /// The signature's time is more than five minutes away from now.
    #[error("the signature's timestamp is too far from now")]
    Stale,
    /// The body is no JSON, even after repair.
    #[error(transparent)]
    Malformed(#[from] JsonError),
    /// A field or header is missing or has a value that is not allowed.
    #[error("`{field}`: {expected}")]
    Invalid {
        /// The field or header, by our own name for it.
        field: &'static str,
        /// What is allowed.
        expected: &'static str,
    },
    /// The body is larger than this route takes.
    #[error("the body is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// Only `POST` is answered here.
    #[error("only POST is allowed here")]
    MethodNotAllowed,
}

impl Refusal {
    /// The HTTP status that says it.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::SecretMissing => 503,
            Self::BadSignature | Self::Stale => 401,
            Self::Malformed(_) | Self::Invalid { .. } => 400,
            Self::TooLarge { .. } => 413,
            Self::MethodNotAllowed => 405,
        }
    }

    /// A word for logs and for the `reason` of an event that was refused.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::SecretMissing => "secret_missing",
            Self::BadSignature => "bad_signature",
            Self::Stale => "stale_signature",
            Self::Malformed(_) => "malformed",
            Self::Invalid { .. } => "invalid",
            Self::TooLarge { .. } => "too_large",
            Self::MethodNotAllowed => "method_not_allowed",
        }
    }

    /// The refusal as an answer: which rule was broken, in words that are the same for everybody.
    #[must_use]
    pub fn response(&self) -> IngressResponse {
        let answer = IngressResponse::json(
            self.status(),
            &serde_json::json!({ "error": self.reason(), "message": self.to_string() }),
        );
        match self {
            Self::MethodNotAllowed => answer.with_header("allow", "POST"),
            Self::SecretMissing
            | Self::BadSignature
            | Self::Stale
            | Self::Malformed(_)
            | Self::Invalid { .. }
            | Self::TooLarge { .. } => answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_shows_no_header_query_or_body() {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", "Bearer planted-secret".parse().unwrap());
        let mut request = IngressRequest::post("/hook", headers, "planted-secret");
        request.query = "token=planted-secret".to_owned();
        assert!(!format!("{request:?}").contains("planted-secret"));
    }

    /// Case ag-async-size: the size is checked before anything is accepted.
    #[test]
    fn ag_async_size() {
        let large = IngressRequest::post("/hook", HeaderMap::new(), vec![b'x'; 473_086]);
        let refusal = large.check(131_072).unwrap_err();
        assert_eq!((refusal.status(), refusal.reason()), (413, "too_large"));
        assert_eq!(large.check(473_086), Ok(()));
    }

    #[test]
    fn a_trace_is_taken_only_if_it_is_one() {
        let of = |value: &str| trace(&HeaderMap::from_iter([("traceparent".parse().unwrap(), value.parse().unwrap())]));
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(of(parent).as_deref(), Some(parent));
        for odd in ["", "00-4bf9-00f0-01", &parent.to_uppercase(), &format!("{parent}-x"), &parent.replace('7', "x")] {
            assert_eq!(of(odd), None, "{odd}");
        }
    }

    #[test]
    fn only_post_comes_in() {
        let mut request = IngressRequest::post("/hook", HeaderMap::new(), "");
        request.method = Method::GET;
        let answer = request.check(10).unwrap_err().response();
        assert_eq!((answer.status, answer.headers[1].1.as_str()), (405, "POST"));
    }
}
