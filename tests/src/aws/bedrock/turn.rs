//! One scripted answer, and the gate that holds one.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

/// How many characters a piece of a stream has, unless a test says otherwise.
const PIECE: usize = 20;

/// An answer: what a model says, how it arrives, and how it ends.
#[derive(Debug, Clone)]
pub struct Turn {
    /// Content blocks, as Converse writes them.
    pub(super) blocks: Vec<Value>,
    pub(super) stop: Option<String>,
    pub(super) usage: Value,
    pub(super) piece: usize,
    pub(super) pause: Duration,
    pub(super) end: End,
    delay: Duration,
    gate: Option<(usize, Gate)>,
}

/// How an answer ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// As it should.
    Whole,
    /// It does not begin.
    Refused { status: u16, kind: String, message: String, retry_after: Option<u64> },
    /// With an error in the stream.
    Exception(String),
    /// With the connection.
    Cut,
}

impl Turn {
    /// The model says `text`.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::of(json!({ "text": text }))
    }

    /// The model calls `tool`.
    #[must_use]
    pub fn tool(tool: &str, input: Value) -> Self {
        Self::of(call(tool, input))
    }

    /// Bedrock refuses with an error of this status and name, such as `ThrottlingException`.
    #[must_use]
    pub fn refused(status: u16, kind: &str, message: &str) -> Self {
        let end = End::Refused { status, kind: kind.to_owned(), message: message.to_owned(), retry_after: None };
        Self { blocks: Vec::new(), end, ..Self::text("") }
    }

    /// And asks to come back after `seconds`.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        if let End::Refused { retry_after, .. } = &mut self.end {
            *retry_after = Some(seconds);
        }
        self
    }

    /// Then it calls `tool`, too.
    #[must_use]
    pub fn and_tool(mut self, tool: &str, input: Value) -> Self {
        self.blocks.push(call(tool, input));
        self
    }

    /// Before, it reasons, and signs that.
    #[must_use]
    pub fn reasoned(mut self, text: &str, signature: &str) -> Self {
        let block = json!({ "reasoningContent": { "reasoningText": { "text": text, "signature": signature } } });
        self.blocks.insert(0, block);
        self
    }

    /// Why it ends, where that is neither `end_turn` nor `tool_use` with calls.
    #[must_use]
    pub fn stopping(mut self, reason: &str) -> Self {
        self.stop = Some(reason.to_owned());
        self
    }

    /// What it takes.
    #[must_use]
    pub fn using(mut self, input: u64, output: u64) -> Self {
        self.usage = json!({ "inputTokens": input, "outputTokens": output, "totalTokens": input + output });
        self
    }

    /// It begins late.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// It comes in pieces of this many characters, with a pause after each.
    #[must_use]
    pub fn paced(mut self, characters: usize, pause: Duration) -> Self {
        (self.piece, self.pause) = (characters, pause);
        self
    }

    /// It waits at `gate` once this many pieces are sent; 0 is before the status.
    #[must_use]
    pub fn held_after(mut self, pieces: usize, gate: &Gate) -> Self {
        self.gate = Some((pieces, gate.clone()));
        self
    }

    /// It ends with an error in the stream, such as `modelStreamErrorException`, in the place of its end. What comes in
    /// one piece cannot: it is refused with a `ModelErrorException`.
    #[must_use]
    pub fn breaking(mut self, exception: &str) -> Self {
        self.end = End::Exception(exception.to_owned());
        self
    }

    /// The connection is cut in the place of its end.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.end = End::Cut;
        self
    }

    /// Waits until it may begin.
    pub(super) async fn begun(&self) {
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        if let Some(gate) = self.gate_after(0) {
            gate.pass().await;
        }
    }

    /// The gate behind so many pieces.
    pub(super) fn gate_after(&self, pieces: usize) -> Option<&Gate> {
        self.gate.as_ref().filter(|(after, _)| *after == pieces).map(|(_, gate)| gate)
    }

    /// Why it ends.
    pub(super) fn stop_reason(&self) -> &str {
        let calls = self.blocks.iter().any(|block| block.get("toolUse").is_some());
        self.stop.as_deref().unwrap_or(if calls { "tool_use" } else { "end_turn" })
    }

    /// Gives its calls ids that no other has.
    pub(super) fn with_ids(mut self, calls: &mut u64) -> Self {
        for call in self.blocks.iter_mut().filter_map(|block| block.get_mut("toolUse")) {
            *calls += 1;
            call["toolUseId"] = json!(format!("tooluse_{calls}"));
        }
        self
    }

    fn of(block: Value) -> Self {
        Self {
            blocks: vec![block],
            stop: None,
            usage: json!({ "inputTokens": 10, "outputTokens": 5, "totalTokens": 15 }),
            piece: PIECE,
            pause: Duration::ZERO,
            end: End::Whole,
            delay: Duration::ZERO,
            gate: None,
        }
    }
}

fn call(tool: &str, input: Value) -> Value {
    json!({ "toolUse": { "toolUseId": "", "name": tool, "input": input } })
}

/// Holds answers until it is opened.
#[derive(Debug, Clone)]
pub struct Gate(Arc<watch::Sender<State>>);

#[derive(Debug, Default)]
struct State {
    arrived: usize,
    open: bool,
}

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(State::default())))
    }
}

impl Gate {
    /// Waits until so many answers have come to it.
    pub async fn reached_by(&self, answers: usize) {
        self.0.subscribe().wait_for(|state| state.arrived >= answers).await.unwrap();
    }

    /// Lets through whoever waits, and whoever comes.
    pub fn open(&self) {
        self.0.send_modify(|state| state.open = true);
    }

    pub(super) async fn pass(&self) {
        self.0.send_modify(|state| state.arrived += 1);
        self.0.subscribe().wait_for(|state| state.open).await.unwrap();
    }
}
