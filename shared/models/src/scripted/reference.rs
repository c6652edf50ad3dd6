//! What is answered where no script line fits. `scripted` documents it: people write expectations against it.

use std::collections::VecDeque;

use serde_json::{Value, json};
use turnlock_domain::ids::digest;
use turnlock_domain::message::{Message, Role};
use turnlock_domain::turn::Usage;

use super::line::ScriptedCall;
use super::play::{Step, tool_call};
use crate::event::{ModelEvent, StopReason};
use crate::request::{ModelRequest, Purpose};
use crate::transcript;

/// Said by the stand-in after its echo.
const STAND_IN: &str = "I am a stand-in, not a language model: name a real one under `[[models]]` in `turnlock.toml` \
                        to talk to it here.";

/// The reference answer to `request`.
pub(super) fn answer(request: &ModelRequest, stand_in: bool) -> VecDeque<Step> {
    let events = match request.purpose {
        Purpose::Turn if stand_in => said(stand_in_pieces(&last_user_text(request))),
        Purpose::Turn => said(vec![last_user_text(request)]),
        Purpose::Consolidate => called(request, consolidation(request)),
        Purpose::ReviewMemory | Purpose::ReviewSkills | Purpose::Embed if request.force_tool.is_some() => {
            called(request, json!({ "facts": [] }))
        }
        Purpose::ReviewMemory | Purpose::ReviewSkills | Purpose::Embed => said(vec!["Nothing to keep.".to_owned()]),
    };
    events.into_iter().map(Step::Event).collect()
}

fn said(pieces: Vec<String>) -> Vec<ModelEvent> {
    pieces.into_iter().map(ModelEvent::Text).chain([stop(StopReason::EndTurn)]).collect()
}

fn called(request: &ModelRequest, input: Value) -> Vec<ModelEvent> {
    if request.tools.is_empty() {
        return said(vec![input.to_string()]);
    }
    let name = request.force_tool.clone().unwrap_or_else(|| "save_memory".to_owned());
    let call = ScriptedCall { name, input: Some(input), input_chunks: None, id: String::new() };
    tool_call(0, call).chain([stop(StopReason::ToolUse)]).collect()
}

fn stop(reason: StopReason) -> ModelEvent {
    ModelEvent::Stop { reason, usage: Usage::default() }
}

/// Split at the sentences, so that a first run shows a stream.
fn stand_in_pieces(text: &str) -> Vec<String> {
    let (opening, rest) = STAND_IN.split_once(": ").unwrap_or((STAND_IN, ""));
    vec![format!("You said: {text}"), format!("\n\n{opening}: "), rest.to_owned()]
}

/// The newest text of the user; results of tools are not the user's.
fn last_user_text(request: &ModelRequest) -> String {
    let texts = request.messages.iter().rev().filter(|message| message.role == Role::User).map(Message::text);
    let text = texts.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_else(|| "(no text)".to_owned());
    without_sender(&text).to_owned()
}

/// In a group the first line says who wrote, `[Ann (1000001)]` or `[<@U1>]`: an echo repeats what was written.
fn without_sender(text: &str) -> &str {
    let is_sender = |line: &str| line.starts_with('[') && [")]", ">]"].iter().any(|end| line.ends_with(end));
    text.split_once('\n').filter(|(line, _)| is_sender(line)).map_or(text, |(_, said)| said)
}

fn consolidation(request: &ModelRequest) -> Value {
    let texts = user_texts(request);
    let facts: Vec<Value> = texts.iter().map(|text| json!({ "key": key(text), "value": text })).collect();
    json!({ "summary": format!("{} messages of the user.", texts.len()), "facts": facts })
}

fn user_texts(request: &ModelRequest) -> Vec<String> {
    let users = || request.messages.iter().filter(|message| message.role == Role::User).map(Message::text);
    let lines: Vec<transcript::Line> = users().flat_map(|text| transcript::parse(&text)).collect();
    if lines.is_empty() {
        return users().filter(|text| !text.trim().is_empty()).collect();
    }
    let said = lines.into_iter().filter(|line| line.role == "user");
    said.map(|line| without_sender(&line.text).to_owned()).collect()
}

/// A key that a person recognises and that two different texts do not share.
fn key(text: &str) -> String {
    let words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(6)
        .map(str::to_lowercase)
        .collect();
    let words: String = words.join("-").chars().take(40).collect();
    let digest = &digest(text.as_bytes())[..8];
    if words.is_empty() { digest.to_owned() } else { format!("{words}-{digest}") }
}
