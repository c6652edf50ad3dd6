//! One line of a script, as a replay file writes it.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;
use turnlock_domain::session::SessionKey;
use turnlock_domain::turn::Usage;

use crate::request::{ModelRequest, Purpose};

/// The most characters that a repeated text may become: a slip of the pen must not eat the machine's memory.
const REPEAT_MAX: usize = 64 << 20;

/// The answer to the next calls that fit. Absent fields fit all.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptLine {
    /// The purpose of the calls it answers.
    #[serde(rename = "for", default)]
    pub purpose: Option<Purpose>,
    /// The session of the calls it answers.
    #[serde(default)]
    pub session: Option<SessionKey>,
    /// What is streamed, in order.
    #[serde(default)]
    pub chunks: Vec<Chunk>,
    /// The calls that follow the chunks.
    #[serde(default)]
    pub tools: Vec<ScriptedCall>,
    /// The stop reason; `tool_use` if there are calls, else `end_turn`.
    #[serde(default)]
    pub stop: Option<String>,
    /// The tokens it reports.
    #[serde(default)]
    pub usage: Usage,
    /// How the answer fails, after the chunks and calls.
    #[serde(default)]
    pub error: Option<ScriptError>,
    /// How many calls it answers.
    #[serde(default = "once")]
    pub times: u32,
}

/// One piece of a scripted answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk {
    /// Text.
    Text(String),
    /// Reasoning, with its signature if there is one.
    Reasoning {
        /// The text.
        text: String,
        /// The signature.
        signature: Option<String>,
    },
    /// Encrypted reasoning, base64.
    Redacted(String),
    /// Nothing, for so many seconds.
    Wait(f64),
}

/// A scripted tool call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The registered name of the tool.
    pub name: String,
    /// The arguments.
    #[serde(default)]
    pub input: Option<Value>,
    /// The arguments as fragments of JSON text, broken if they like.
    #[serde(default)]
    pub input_chunks: Option<Vec<String>>,
    /// The call's id as the provider would give it; one is made if it is absent.
    #[serde(default)]
    pub id: String,
}

/// How a scripted answer fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptError {
    /// The provider limits the rate.
    Throttled,
    /// The provider has no capacity.
    Overloaded,
    /// The provider refuses the request for good.
    Invalid,
    /// The provider reports an error in mid stream.
    MidStream,
    /// The stream ends without a stop.
    Eof,
    /// Nothing more ever comes.
    Hang,
}

impl ScriptLine {
    /// A line that answers one call of any purpose with `text`.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            purpose: None,
            session: None,
            chunks: vec![Chunk::Text(text.into())],
            tools: Vec::new(),
            stop: None,
            usage: Usage::default(),
            error: None,
            times: 1,
        }
    }

    pub(super) fn fits(&self, request: &ModelRequest) -> bool {
        self.purpose.is_none_or(|purpose| purpose == request.purpose)
            && self.session.as_ref().is_none_or(|session| *session == request.session)
    }
}

fn once() -> u32 {
    1
}

impl<'de> Deserialize<'de> for Chunk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        chunk(&value).ok_or_else(|| {
            D::Error::custom(format_args!(
                "a chunk is a text, {{\"repeat\", \"times\"}}, a list of texts, {{\"reasoning\", \"signature\"}}, \
                 {{\"redacted\"}} or {{\"wait\": seconds}}, not {value}"
            ))
        })
    }
}

fn chunk(value: &Value) -> Option<Chunk> {
    if let Some(text) = text(value) {
        return Some(Chunk::Text(text));
    }
    let fields = value.as_object()?;
    let string = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    let only = |keys: &[&str]| fields.keys().all(|key| keys.contains(&key.as_str()));
    if only(&["reasoning", "signature"]) {
        // A signature alone is what some models send for reasoning that they do not show.
        let text = fields.get("reasoning").map_or(Some(String::new()), text)?;
        return Some(Chunk::Reasoning { text, signature: string("signature") });
    }
    if only(&["redacted"]) {
        return string("redacted").map(Chunk::Redacted);
    }
    let seconds = fields.get("wait").filter(|_| only(&["wait"]))?.as_f64()?;
    (0.0..1e9).contains(&seconds).then_some(Chunk::Wait(seconds))
}

/// A text as scripts may write it: plain, repeated, or in pieces.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(pieces) => pieces.iter().map(text).collect(),
        Value::Object(fields) if fields.len() == 2 => {
            let times = usize::try_from(fields.get("times")?.as_u64()?).ok()?;
            let piece = text(fields.get("repeat")?)?;
            (piece.len().checked_mul(times)? <= REPEAT_MAX).then(|| piece.repeat(times))
        }
        _ => None,
    }
}
