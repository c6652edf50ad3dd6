//! The world outside: a Telegram that shows what it is sent, and a model that answers each message in its own way. Both
//! outlive the processes that call them, and each process calls them at addresses of its own, so that what the dead sent
//! is told from what the living send.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Json, Response};
use fastrand::Rng;
use futures_util::StreamExt;
use futures_util::stream;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::load::{self, Kind};

/// The longest pause before an answer, and between the pieces of a slow one.
const LONGEST_PAUSE_MS: u64 = 60;
/// Telegram's word for an edit that changes nothing.
const NOT_MODIFIED: &str = "Bad Request: message is not modified: specified new message content and reply markup are \
    exactly the same as a current content and reply markup of the message";
/// What stands in place of a chunk at the end of an answer.
const DONE: &str = "[DONE]";
/// How many pieces a slow answer comes in. The first one names its message.
const PIECES: usize = 5;
/// The pause between the pieces of an answer that takes long enough for a preview.
const LONG_PAUSE: Duration = Duration::from_millis(250);

/// The servers, and what was asked of them.
pub(super) struct Outside {
    address: String,
    starts: AtomicU32,
    seen: Mutex<Seen>,
    /// How many answers the model has finished.
    answers: watch::Sender<u64>,
}

struct Seen {
    rng: Rng,
    shown: Vec<Shown>,
    problems: Vec<String>,
}

/// A message that stands in a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    /// Which start of the process sent it.
    pub(super) start: u32,
    /// Where it stands.
    pub(super) chat: i64,
    /// Its id.
    pub(super) id: String,
    /// Its text.
    pub(super) text: String,
    /// Whether it was edited.
    pub(super) edited: bool,
}

impl Outside {
    /// Serves at any port for as long as `servers` lives.
    pub(super) async fn serve(rng: Rng, servers: &mut JoinSet<std::io::Result<()>>) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let outside = Arc::new(Self {
            address: format!("http://{}", listener.local_addr().unwrap()),
            starts: AtomicU32::new(0),
            seen: Mutex::new(Seen { rng, shown: Vec::new(), problems: Vec::new() }),
            answers: watch::Sender::new(0),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&outside));
        servers.spawn(async move { axum::serve(listener, router).await });
        outside
    }

    /// Where the next process finds the servers.
    pub(super) fn next_start(&self) -> String {
        format!("{}/{}", self.address, self.starts.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Waits until the model has finished another answer, but no longer than `within`.
    pub(super) async fn next_answer(&self, within: Duration) {
        drop(timeout(within, self.answers.subscribe().changed()).await);
    }

    /// What stands in a chat, in the order in which it came.
    pub(super) fn chat(&self, chat: i64) -> Vec<Shown> {
        self.seen.lock().unwrap().shown.iter().filter(|shown| shown.chat == chat).cloned().collect()
    }

    /// Whether a chat shows `text`.
    pub(super) fn shows(&self, chat: i64, text: &str) -> bool {
        self.seen.lock().unwrap().shown.iter().any(|shown| shown.chat == chat && shown.text == text)
    }

    /// What was asked that should not have been.
    pub(super) fn problems(&self) -> Vec<String> {
        self.seen.lock().unwrap().problems.clone()
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(self.seen.lock().unwrap().rng.u64(0..=LONGEST_PAUSE_MS))
    }

    fn problem(&self, problem: String) -> Response {
        self.seen.lock().unwrap().problems.push(problem);
        StatusCode::BAD_REQUEST.into_response()
    }
}

async fn answer(State(outside): State<Arc<Outside>>, request: Request) -> Response {
    let path = request.uri().path().trim_start_matches('/').to_owned();
    let Ok(body) = axum::body::to_bytes(request.into_body(), usize::MAX).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (start, rest) = path.split_once('/').unwrap_or_default();
    let start = start.parse().unwrap_or_default();
    if rest == format!("telegram/bot{}/sendMessage", load::BOT_TOKEN) {
        outside.show(start, &body).await
    } else if rest == format!("telegram/bot{}/editMessageText", load::BOT_TOKEN) {
        outside.edit(start, &body).await
    } else if rest == format!("telegram/bot{}/sendChatAction", load::BOT_TOKEN) {
        // A turn that has no text after a second.
        Json(json!({ "ok": true, "result": true })).into_response()
    } else if rest == "model/chat/completions" {
        outside.think(start, &body)
    } else {
        outside.problem(format!("{path} was called"))
    }
}

impl Outside {
    /// Telegram's `sendMessage`. The message stands in the chat from the moment it came, whoever waits for the answer.
    async fn show(&self, start: u32, body: &Value) -> Response {
        let (Some(chat), Some(text)) = (body["chat_id"].as_i64(), body["text"].as_str()) else {
            return self.problem(format!("start {start} sent {body}"));
        };
        let id = {
            let shown = &mut self.seen.lock().unwrap().shown;
            let id = shown.len() + 1;
            shown.push(Shown { start, chat, id: id.to_string(), text: text.to_owned(), edited: false });
            id
        };
        self.shown((id as u64, chat, text)).await
    }

    /// Telegram's `editMessageText`. As for `show`, the message shows it at once.
    async fn edit(&self, start: u32, body: &Value) -> Response {
        let message = (body["message_id"].as_u64(), body["chat_id"].as_i64(), body["text"].as_str());
        let (Some(id), Some(chat), Some(text)) = message else {
            return self.problem(format!("start {start} edited {body}"));
        };
        let modified = {
            let shown = &mut self.seen.lock().unwrap().shown;
            let found = shown.iter_mut().find(|shown| shown.chat == chat && shown.id == id.to_string());
            found.map(|shown| {
                shown.edited = true;
                std::mem::replace(&mut shown.text, text.to_owned()) != text
            })
        };
        match modified {
            Some(true) => self.shown((id, chat, text)).await,
            Some(false) => refused(NOT_MODIFIED),
            None => self.problem(format!("start {start} edited what is not there: {body}")),
        }
    }

    async fn shown(&self, (id, chat, text): (u64, i64, &str)) -> Response {
        sleep(self.pause()).await;
        Json(json!({ "ok": true, "result": { "message_id": id, "chat": { "id": chat }, "text": text } }))
            .into_response()
    }

    /// `POST /chat/completions`, streamed.
    fn think(&self, start: u32, body: &Value) -> Response {
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        if let Some(problem) = invalid(&messages) {
            return self.problem(format!("start {start} asked the model for the impossible: {problem} in {body}"));
        }
        if let Some(tool) = body["tool_choice"]["function"]["name"].as_str() {
            return self.streamed(call("call_save", tool, &json!({ "summary": "They talked.", "facts": [] })));
        }
        let last = messages.last().map(|message| message["role"].clone()).unwrap_or_default();
        let text = messages.iter().rev().find(|message| message["role"] == "user");
        let text = text.and_then(|message| message["content"].as_str()).unwrap_or_default();
        let reply = load::reply(text);
        if self.seen.lock().unwrap().shown.iter().any(|shown| shown.text == reply) {
            return self.problem(format!("start {start} asked the model for `{text}`, whose reply was out already"));
        }
        match Kind::of(text) {
            Kind::Tool if last == "user" => self.streamed(call(&text.replace(' ', "_"), "current_time", &json!({}))),
            Kind::Plain | Kind::Tool => self.streamed(said(vec![(self.pause() / 6, reply)])),
            kind @ (Kind::Slow | Kind::Long) => {
                let size = reply.len().div_ceil(PIECES);
                let pieces = reply.as_bytes().chunks(size).map(|piece| String::from_utf8_lossy(piece).into_owned());
                let pause = || if kind == Kind::Long { LONG_PAUSE } else { self.pause() };
                self.streamed(said(pieces.map(|piece| (pause(), piece)).collect()))
            }
        }
    }
}

impl Outside {
    /// Server-sent events of one answer. What its last piece completes ends in the same breath: no preview shows all of it,
    /// and a chat that shows a whole reply has the final.
    fn streamed(&self, choices: Vec<(Duration, Vec<Value>)>) -> Response {
        let last = choices.len().saturating_sub(1);
        let event = |data: &str| format!("data: {data}\n\n");
        let chunks = choices.into_iter().enumerate().map(move |(index, (pause, choices))| {
            let events = choices.iter().map(|choice| event(&json!({ "choices": [choice] }).to_string()));
            let end = (index == last).then(|| event(DONE));
            (pause, events.chain(end).collect::<String>(), index == last)
        });
        let chunks: Vec<_> = chunks.collect();
        let answers = self.answers.clone();
        let events = stream::iter(chunks).then(move |(pause, chunk, is_last)| {
            let answers = answers.clone();
            async move {
                sleep(pause).await;
                if is_last {
                    answers.send_modify(|count| *count += 1);
                }
                Ok::<_, Infallible>(chunk)
            }
        });
        ([("content-type", "text/event-stream")], Body::from_stream(events)).into_response()
    }
}

/// What Telegram says to a call that it does not take.
fn refused(description: &str) -> Response {
    let body = json!({ "ok": false, "error_code": 400, "description": description });
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}

/// What a provider would refuse: roles that do not alternate, calls without results, results without calls.
fn invalid(messages: &[Value]) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut before = "assistant";
    for message in messages.iter().skip_while(|message| message["role"] == "system") {
        let role = message["role"].as_str().unwrap_or_default();
        match role {
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let Some(at) = open.iter().position(|open| *open == id) else {
                    return Some(format!("a result of `{id}`, which is no open call"));
                };
                open.remove(at);
            }
            _ if !open.is_empty() => return Some(format!("no result of {open:?}")),
            "user" if before == "assistant" => {}
            "assistant" if before != "assistant" => {
                let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
                open.extend(calls.iter().filter_map(|call| call["id"].as_str()));
            }
            _ => return Some(format!("{role} after {before}")),
        }
        before = role;
    }
    (before == "assistant").then(|| "nothing to answer".to_owned())
}

/// A text in pieces, each after a pause.
fn said(pieces: Vec<(Duration, String)>) -> Vec<(Duration, Vec<Value>)> {
    let pieces = pieces.into_iter().map(|(pause, piece)| (pause, vec![json!({ "delta": { "content": piece } })]));
    let mut pieces: Vec<_> = pieces.collect();
    if let Some((_, last)) = pieces.last_mut() {
        last.push(json!({ "delta": {}, "finish_reason": "stop" }));
    }
    pieces
}

/// One call of a tool. Every call of a conversation has another id.
fn call(id: &str, tool: &str, arguments: &Value) -> Vec<(Duration, Vec<Value>)> {
    let function = json!({ "name": tool, "arguments": arguments.to_string() });
    let call = json!([{ "index": 0, "id": id, "type": "function", "function": function }]);
    vec![(Duration::ZERO, vec![json!({ "delta": { "tool_calls": call }, "finish_reason": "tool_calls" })])]
}
