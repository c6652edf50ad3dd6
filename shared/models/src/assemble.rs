//! Collects a stream's events into an answer. Arguments that do not parse never reach a tool: such a call stands in the
//! answer's content, so that it can be answered, and in its list of bad calls, but not among its calls.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use turnlock_domain::message::{Block, Message, Reasoning, Role};
use turnlock_domain::text::{JsonError, is_blank, parse_json};
use turnlock_domain::turn::Usage;

use crate::error::ModelError;
use crate::event::{ModelEvent, StopReason};

/// As much of unreadable arguments as the history keeps, in bytes: enough for the model to see its mistake.
const UNREADABLE_MAX: usize = 2000;

/// What is wrong with the last call of an answer that was cut off: what there is of it may read like a whole one.
const CUT: &str = "the answer ended before it was whole, and this call may be cut off";
/// What is wrong with every call of an answer that was blocked, or that its provider could not read.
const BLOCKED: &str = "the answer was blocked";

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Reasoning first, then text, then tool uses; nothing blank. Text still holds thinking tags.
    pub content: Vec<Block>,
    /// Calls that must not run.
    pub bad_calls: Vec<BadCall>,
    /// Why it ended.
    pub stop: StopReason,
    /// The tokens it took.
    pub usage: Usage,
}

/// A call whose arguments cannot be used. Its `ToolUse` in the content is there to be answered with an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadCall {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What is wrong, in words for the model.
    pub error: String,
}

/// A call that may run.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments: an object.
    pub input: Value,
}

impl Answer {
    /// The text, thinking tags and all.
    #[must_use]
    pub fn text(&self) -> String {
        self.message().text()
    }

    /// The calls that may run, in order. Bad calls are not among them.
    #[must_use]
    pub fn calls(&self) -> Vec<ToolCall> {
        let runnable = |id: &str| !self.bad_calls.iter().any(|bad| bad.id == id);
        self.content
            .iter()
            .filter_map(|block| match block {
                Block::ToolUse { id, name, input } if runnable(id) => {
                    Some(ToolCall { id: id.clone(), name: name.clone(), input: input.clone() })
                }
                _ => None,
            })
            .collect()
    }

    /// The answer as a message of the history.
    #[must_use]
    pub fn message(&self) -> Message {
        Message::new(Role::Assistant, self.content.clone())
    }
}

/// Collects events. Feed it every event of one stream, then [`Assembler::finish`].
#[derive(Debug)]
pub struct Assembler {
    model: String,
    reasoning: Vec<Reasoning>,
    /// Whether the last reasoning block may still grow.
    open: bool,
    text: String,
    calls: BTreeMap<u32, Call>,
    stop: Option<(StopReason, Usage)>,
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    name: String,
    input: String,
}

impl Assembler {
    /// One for an answer of `model`, whose name its reasoning is stamped with.
    #[must_use]
    pub fn new(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            reasoning: Vec::new(),
            open: false,
            text: String::new(),
            calls: BTreeMap::new(),
            stop: None,
        }
    }

    /// Takes the next event.
    pub fn push(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Text(text) => {
                self.open = false;
                self.text.push_str(&text);
            }
            ModelEvent::Reasoning(text) => self.open_reasoning().text.push_str(&text),
            ModelEvent::Signature(signature) => {
                self.open_reasoning().signature.get_or_insert_default().push_str(&signature);
                self.open = false;
            }
            ModelEvent::Redacted(data) => {
                self.open = false;
                self.reasoning.push(Reasoning { redacted: Some(data), ..self.blank_reasoning() });
            }
            ModelEvent::ToolStart { index, id, name } => {
                self.open = false;
                let call = self.calls.entry(index).or_default();
                (call.id, call.name) = (id, name);
            }
            ModelEvent::ToolInput { index, json } => {
                self.calls.entry(index).or_default().input.push_str(&json);
            }
            ModelEvent::Stop { reason, usage } => self.stop = Some((reason, usage)),
        }
    }

    /// The text so far, thinking tags and all.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The whole answer.
    ///
    /// # Errors
    /// [`ModelError::Interrupted`] if no stop came: a stream that simply ends is no answer.
    pub fn finish(self) -> Result<Answer, ModelError> {
        let Some((stop, usage)) = self.stop else {
            return Err(ModelError::Interrupted("the stream ended without a stop".into()));
        };
        let said = |reasoning: &Reasoning| {
            reasoning.signature.is_some() || reasoning.redacted.is_some() || !is_blank(&reasoning.text)
        };
        let mut content: Vec<Block> = self.reasoning.into_iter().filter(said).map(Block::Reasoning).collect();
        if !is_blank(&self.text) {
            content.push(Block::Text { text: self.text });
        }
        let mut bad_calls = Vec::new();
        let last = self.calls.keys().next_back().copied();
        for (index, call) in self.calls {
            let whole = match stop {
                StopReason::Refused | StopReason::Malformed => Err(BLOCKED.to_owned()),
                StopReason::MaxTokens | StopReason::ContextFull | StopReason::Other(_) if last == Some(index) => {
                    Err(CUT.to_owned())
                }
                _ => call.arguments(),
            };
            let input = whole.unwrap_or_else(|error| {
                bad_calls.push(BadCall { id: call.id.clone(), name: call.name.clone(), error });
                json!({ "unreadable": start(&call.input) })
            });
            content.push(Block::ToolUse { id: call.id, name: call.name, input });
        }
        Ok(Answer { content, bad_calls, stop, usage })
    }

    fn open_reasoning(&mut self) -> &mut Reasoning {
        if !self.open {
            self.reasoning.push(self.blank_reasoning());
            self.open = true;
        }
        let last = self.reasoning.len() - 1;
        &mut self.reasoning[last]
    }

    fn blank_reasoning(&self) -> Reasoning {
        Reasoning { model: Some(self.model.clone()), ..Reasoning::default() }
    }
}

impl Call {
    /// The arguments, or what is wrong with them. Only arguments of no bytes at all are an empty object.
    fn arguments(&self) -> Result<Value, String> {
        if self.name.is_empty() {
            return Err("the call names no tool".to_owned());
        }
        if self.input.is_empty() {
            return Ok(json!({}));
        }
        match parse_json(self.input.as_bytes()) {
            Ok(input @ Value::Object(_)) => Ok(input),
            Ok(_) => Err("the arguments are not a JSON object".to_owned()),
            Err(JsonError::Truncated { line, column }) => {
                Err(format!("the arguments end in the middle (line {line}, column {column})"))
            }
            Err(JsonError::Syntax { line, column } | JsonError::Shape { line, column }) => {
                Err(format!("the arguments are not valid JSON (line {line}, column {column})"))
            }
            Err(JsonError::Utf8 { at }) => Err(format!("the arguments are not UTF-8 (byte {at})")),
        }
    }
}

fn start(text: &str) -> &str {
    &text[..text.floor_char_boundary(UNREADABLE_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assembled(events: Vec<ModelEvent>) -> Answer {
        let mut assembler = Assembler::new("m");
        for event in events {
            assembler.push(event);
        }
        assembler.finish().expect("a whole answer")
    }

    fn stop(reason: StopReason) -> ModelEvent {
        ModelEvent::Stop { reason, usage: Usage::default() }
    }

    fn call(input: &[&str], reason: StopReason) -> Answer {
        let start = ModelEvent::ToolStart { index: 0, id: "t1".into(), name: "delete_rows".into() };
        let input = input.iter().map(|json| ModelEvent::ToolInput { index: 0, json: (*json).into() });
        assembled([start].into_iter().chain(input).chain([stop(reason)]).collect())
    }

    /// Case br-reasoning-in-text: the signed block and what is said never mix; reasoning comes first.
    #[test]
    fn br_reasoning_in_text() {
        let answer = assembled(vec![
            ModelEvent::Reasoning("hm".into()),
            ModelEvent::Reasoning("m".into()),
            ModelEvent::Signature("c2ln".into()),
            ModelEvent::Text("Hi".into()),
            ModelEvent::Redacted("AAAA".into()),
            stop(StopReason::EndTurn),
        ]);
        let model = Some("m".to_owned());
        let signed =
            Reasoning { text: "hmm".into(), signature: Some("c2ln".into()), redacted: None, model: model.clone() };
        let redacted = Reasoning { redacted: Some("AAAA".into()), model, ..Reasoning::default() };
        assert_eq!(answer.content, [Block::Reasoning(signed), Block::Reasoning(redacted), Block::text("Hi")]);
        assert_eq!(answer.text(), "Hi");
    }

    /// Case br-reasoning-signature-only.
    #[test]
    fn br_reasoning_signature_only() {
        let answer = assembled(vec![ModelEvent::Signature("c2ln".into()), stop(StopReason::EndTurn)]);
        assert!(matches!(&answer.content[..], [Block::Reasoning(kept)] if kept.signature.as_deref() == Some("c2ln")));
    }

    /// Case br-blank-citation: what the service returns blank is filtered before it is stored.
    #[test]
    fn br_blank_citation() {
        let answer = assembled(vec![
            ModelEvent::Reasoning(" ".into()),
            ModelEvent::Text(" \n".into()),
            stop(StopReason::EndTurn),
        ]);
        assert_eq!(answer.content, []);
    }

    /// Case br-partial-json-run.
    #[test]
    fn br_partial_json_run() {
        let answer = call(&["{\"table\":\"a", "\",\"where\":"], StopReason::ToolUse);
        assert_eq!(answer.calls(), []);
        let [bad] = &answer.bad_calls[..] else { panic!("one bad call: {answer:?}") };
        assert_eq!((bad.id.as_str(), bad.name.as_str()), ("t1", "delete_rows"));
        assert_eq!(bad.error, "the arguments end in the middle (line 1, column 21)");
        let answer = call(&["{\"table\": nothing}"], StopReason::ToolUse);
        assert_eq!(answer.bad_calls[0].error, "the arguments are not valid JSON (line 1, column 12)");
        assert!(matches!(&answer.content[..], [Block::ToolUse { id, .. }] if id == "t1"), "it can be answered");
    }

    #[test]
    fn only_arguments_of_no_bytes_are_an_empty_object() {
        let table: [(&[&str], Option<Value>); 6] = [
            (&[], Some(json!({}))),
            (&["", ""], Some(json!({}))),
            (&["{", "\"a\":1}"], Some(json!({"a": 1}))),
            (&[" "], None),
            (&["null"], None),
            (&["[1]"], None),
        ];
        for (input, want) in table {
            let got = call(input, StopReason::ToolUse).calls().pop().map(|call| call.input);
            assert_eq!(got, want, "{input:?}");
        }
    }

    /// Case br-stop-reason-override.
    #[test]
    fn br_stop_reason_override() {
        let answer = call(&["{\"q\":\"x\"}"], StopReason::MaxTokens);
        assert_eq!(answer.stop, StopReason::MaxTokens);
    }

    /// The last call of an answer that was cut off is not run, however it reads; those before it are whole.
    #[test]
    fn a_call_that_may_be_cut_off_is_not_run() {
        for (reason, input, runs) in [
            (StopReason::MaxTokens, &["{\"q\":\"x\"}"][..], false),
            (StopReason::MaxTokens, &[], false),
            (StopReason::ContextFull, &["{}"], false),
            (StopReason::Other("bored".into()), &["{}"], false),
            (StopReason::Refused, &["{}"], false),
            (StopReason::Malformed, &[], false),
            (StopReason::ToolUse, &["{}"], true),
        ] {
            let answer = call(input, reason);
            assert_eq!((answer.calls().len(), answer.bad_calls.len()), (usize::from(runs), usize::from(!runs)));
        }
        let start = |index| ModelEvent::ToolStart { index, id: format!("t{index}"), name: "f".into() };
        let blocked = assembled(vec![start(0), start(1), stop(StopReason::Refused)]);
        assert_eq!((blocked.calls().len(), blocked.bad_calls.len()), (0, 2), "of a blocked answer none is");
        let answer = assembled(vec![start(0), start(1), stop(StopReason::MaxTokens)]);
        let ids: Vec<String> = answer.calls().into_iter().map(|call| call.id).collect();
        assert_eq!((ids, answer.bad_calls[0].id.as_str()), (vec!["t0".to_owned()], "t1"));
    }

    /// Case br-midstream-exception-frame: a stream that simply ends is no success.
    #[test]
    fn br_midstream_exception_frame() {
        let mut assembler = Assembler::new("m");
        assembler.push(ModelEvent::Text("Hel".into()));
        assert!(matches!(assembler.finish(), Err(ModelError::Interrupted(_))));
    }
}
