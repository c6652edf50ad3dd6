//! Bedrock Runtime on loopback, as a test scripts it: `Converse` and `ConverseStream`, on the real wire.
//!
//! A request is answered by the next [`Turn`] of the first script that fits it and is not used up; where none fits, by an
//! echo of what the user said last, or by the tool that the request forces. A request that Bedrock refuses is refused
//! ([`rules`]). Every request is kept, with whether it was.
//!
//! Not here: the signature, throttling by itself, other operations.

pub mod rules;
mod steps;
pub mod turn;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub use self::turn::{Gate, Turn};

/// How a model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The answer comes in one piece.
    Converse,
    /// It comes as a stream of events.
    ConverseStream,
}

/// A request as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The id of the model or inference profile.
    pub model: String,
    /// How it was asked.
    pub operation: Operation,
    /// The body.
    pub body: Value,
    /// Why Bedrock refuses it.
    pub refused: Option<String>,
}

impl Asked {
    /// What the user said last; results of tools are not the user's.
    #[must_use]
    pub fn last_user_text(&self) -> String {
        let messages = self.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let users = messages.iter().rev().filter(|message| message["role"] == "user");
        let text = |message: &Value| -> Option<String> {
            let blocks = message["content"].as_array()?.iter();
            let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        };
        users.into_iter().find_map(text).unwrap_or_default()
    }

    /// The tool that it must call.
    #[must_use]
    pub fn forced_tool(&self) -> Option<&str> {
        self.body.pointer("/toolConfig/toolChoice/tool/name")?.as_str()
    }
}

/// The server. It ends with the set of servers that it was started in.
#[derive(Debug, Clone)]
pub struct ScriptedBedrock {
    address: String,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    scripts: Vec<Script>,
    asked: Vec<Asked>,
    calls: u64,
}

#[derive(Debug)]
struct Script {
    fits: Fits,
    turns: VecDeque<Turn>,
}

#[derive(Debug)]
enum Fits {
    /// Whoever asks without forcing a tool: a turn, not a job.
    Anything,
    /// And the user's last text contains this.
    Text(String),
    /// Whoever forces this tool: a job.
    Forced(String),
}

impl ScriptedBedrock {
    /// Starts to listen.
    pub async fn serve(servers: &mut JoinSet<()>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::<Mutex<Shared>>::default();
        let router = Router::new().fallback(converse).with_state(Arc::clone(&shared));
        servers.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, shared }
    }

    /// Its endpoint: `http://host:port`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What the next requests that force no tool are answered with, whoever asks.
    pub fn say(&self, turns: impl IntoIterator<Item = Turn>) {
        self.script(Fits::Anything, turns);
    }

    /// What requests are answered with that force no tool and in which the user's last text contains `text`. The rounds
    /// of one turn, between which tools run, have the same last text.
    pub fn on(&self, text: &str, turns: impl IntoIterator<Item = Turn>) {
        self.script(Fits::Text(text.to_owned()), turns);
    }

    /// What requests are answered with that force `tool`.
    pub fn on_forced(&self, tool: &str, turns: impl IntoIterator<Item = Turn>) {
        self.script(Fits::Forced(tool.to_owned()), turns);
    }

    /// Every request so far, in the order in which they came.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.shared).asked.clone()
    }

    /// How many scripted turns nobody has asked for.
    #[must_use]
    pub fn left(&self) -> usize {
        lock(&self.shared).scripts.iter().map(|script| script.turns.len()).sum()
    }

    fn script(&self, fits: Fits, turns: impl IntoIterator<Item = Turn>) {
        let turns = turns.into_iter().collect();
        lock(&self.shared).scripts.push(Script { fits, turns });
    }
}

impl Shared {
    /// Keeps the request and takes the turn that answers it.
    fn take(&mut self, asked: Asked) -> Turn {
        let fitting = |script: &&mut Script| !script.turns.is_empty() && script.fits.fits(&asked);
        let turn = match &asked.refused {
            Some(reason) => Turn::refused(400, "ValidationException", reason),
            None => match self.scripts.iter_mut().find(fitting).and_then(|script| script.turns.pop_front()) {
                Some(turn) => turn,
                None => unscripted(&asked),
            },
        };
        self.asked.push(asked);
        turn.with_ids(&mut self.calls)
    }
}

impl Fits {
    fn fits(&self, asked: &Asked) -> bool {
        match (self, asked.forced_tool()) {
            (Self::Forced(tool), Some(forced)) => tool == forced,
            (Self::Anything, None) => true,
            (Self::Text(text), None) => asked.last_user_text().contains(text.as_str()),
            (Self::Forced(_), None) | (Self::Anything | Self::Text(_), Some(_)) => false,
        }
    }
}

/// An echo, or the forced tool with the least that its schema takes.
fn unscripted(asked: &Asked) -> Turn {
    let Some(name) = asked.forced_tool() else {
        let text = asked.last_user_text();
        // In a group the first line says who wrote.
        let said = text
            .split_once('\n')
            .filter(|(who, _)| who.starts_with('[') && (who.ends_with(")]") || who.ends_with(">]")));
        return Turn::text(&format!("echo: {}", said.map_or(text.as_str(), |(_, said)| said)));
    };
    let tools = asked.body["toolConfig"]["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let spec = tools.iter().map(|tool| &tool["toolSpec"]).find(|spec| spec["name"] == name);
    Turn::tool(name, spec.map_or_else(|| json!({}), |spec| least(&spec["inputSchema"]["json"])))
}

/// The least value of a JSON Schema: required fields only.
fn least(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("string") => json!("-"),
        Some("array") => json!([]),
        Some("integer" | "number") => json!(0),
        Some("boolean") => json!(false),
        _ => {
            let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
            let names = required.iter().filter_map(Value::as_str);
            let fields = names.map(|name| (name.to_owned(), least(&schema["properties"][name])));
            Value::Object(fields.collect::<Map<_, _>>())
        }
    }
}

async fn converse(State(shared): State<Arc<Mutex<Shared>>>, request: Request) -> Response {
    let Some((model, operation)) = route(request.uri().path()) else {
        return steps::refusal(StatusCode::NOT_FOUND, "UnknownOperationException", "", None);
    };
    let body = to_bytes(request.into_body(), usize::MAX).await.unwrap();
    let Ok(body) = serde_json::from_slice(&body) else {
        return steps::refusal(StatusCode::BAD_REQUEST, "SerializationException", "", None);
    };
    let refused = rules::refusal(&body);
    let turn = lock(&shared).take(Asked { model, operation, body, refused });
    turn.begun().await;
    if let Some(refused) = steps::refused(&turn) {
        return refused;
    }
    match operation {
        Operation::Converse => steps::whole(&turn),
        Operation::ConverseStream => steps::streamed(turn),
    }
}

/// `/model/{id}/converse` and `/model/{id}/converse-stream`; the id is one segment, percent-encoded.
fn route(path: &str) -> Option<(String, Operation)> {
    let (id, operation) = path.strip_prefix("/model/")?.split_once('/')?;
    let operation = match operation {
        "converse" => Operation::Converse,
        "converse-stream" => Operation::ConverseStream,
        _ => return None,
    };
    Some((percent_decode_str(id).decode_utf8().ok()?.into_owned(), operation))
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
