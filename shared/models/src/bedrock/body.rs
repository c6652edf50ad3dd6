//! The body of a request: the wire's, and what the settings add to it.
//!
//! A cache point says that what stands before it may be taken from a cache (Bedrock User Guide, "Prompt caching"): at most
//! four, in a message never alone and never behind reasoning. They stand where the next request has the same again: behind
//! the tools, behind the instructions, and behind the last two messages of the user - the last one is the next request's
//! beginning, the one before was the last one's end.

use serde_json::{Value, json};
use turnlock_domain::message::{Block, Message, Role};

use super::{BedrockSettings, Thinking};
use crate::request::ModelRequest;
use crate::wire;

/// Whose models take cache points behind tools; Nova takes them in instructions and messages alone.
const CACHES_TOOLS: &str = "anthropic.";
/// The most cache points in messages; with those of the tools and the instructions there are four.
const POINTS_IN_MESSAGES: usize = 2;

/// The least that a model may be told to think, in tokens (Anthropic, "Extended thinking").
const THINKING_MIN: u32 = 1024;

/// What is sent beside the plain request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extras {
    /// Cache points.
    pub(crate) cache_points: bool,
    /// That the model thinks.
    pub(crate) thinking: bool,
    /// The reasoning of earlier answers.
    pub(crate) reasoning: bool,
}

impl Extras {
    /// What the settings ask for and the request allows.
    pub(crate) fn wanted(settings: &BedrockSettings, request: &ModelRequest) -> Self {
        Self {
            cache_points: settings.capabilities.cache,
            thinking: thinking_of(settings, request).is_some() && may_think(request),
            reasoning: true,
        }
    }
}

/// The body of `ConverseStream`, or of `Converse` for a model that does not stream.
pub(crate) fn body(settings: &BedrockSettings, request: &ModelRequest, extras: Extras) -> Value {
    let mut body = wire::bedrock(request);
    if let Some(guardrail) = &settings.guardrail {
        body["guardrailConfig"] = json!({ "guardrailIdentifier": guardrail.id, "guardrailVersion": guardrail.version });
        if settings.streams {
            // Asynchronously, text would be shown before the guardrail has read it.
            body["guardrailConfig"]["streamProcessingMode"] = json!("sync");
        }
    }
    if let Some(thinking) = thinking_of(settings, request).filter(|_| extras.thinking) {
        body["additionalModelRequestFields"] = json!({ "thinking": thinking });
    }
    if !extras.reasoning {
        without_reasoning(&mut body);
    }
    if extras.cache_points {
        add_cache_points(&mut body, settings.model.contains(CACHES_TOOLS));
    }
    body
}

/// The field that makes Claude think. The budget is a part of the answer's limit, and must leave something of it.
fn thinking_of(settings: &BedrockSettings, request: &ModelRequest) -> Option<Value> {
    match settings.thinking? {
        Thinking::Adaptive => Some(json!({ "type": "adaptive" })),
        Thinking::Budget(budget) => {
            let limit = request.max_tokens?;
            let budget = budget_within(budget, limit, settings.max_tokens.unwrap_or(limit));
            (budget < limit).then(|| json!({ "type": "enabled", "budget_tokens": budget }))
        }
    }
}

/// The budget of an answer that may be shorter than what is configured: no more than its share. It is halved, not cut to
/// measure: another budget is another request to the provider's cache, and the limit shrinks from call to call.
fn budget_within(budget: u32, limit: u32, configured: u32) -> u32 {
    let share = u64::from(budget) * u64::from(limit) / u64::from(configured.max(1));
    let mut fitting = budget;
    while u64::from(fitting) > share && fitting > THINKING_MIN {
        fitting /= 2;
    }
    fitting.max(THINKING_MIN)
}

/// A model that must call a tool may not think about it. And one that waits for results must have thought before it
/// called: where that reasoning is lost (an old session, another model's calls), the request is refused with thinking on.
fn may_think(request: &ModelRequest) -> bool {
    let mut opening = None;
    for message in request.messages.iter().rev() {
        match message.role {
            Role::Assistant => opening = Some(message),
            Role::User if brings_results(message) => {}
            Role::User => break,
        }
    }
    request.force_tool.is_none() && opening.is_none_or(begins_with_reasoning)
}

/// As the wire sends it: reasoning that is not sealed is not there.
fn begins_with_reasoning(message: &Message) -> bool {
    let unsent = |block: &Block| matches!(block, Block::Reasoning(reasoning) if !reasoning.is_sealed());
    let first = message.content.iter().find(|block| !unsent(block));
    matches!(first, Some(Block::Reasoning(_)))
}

fn brings_results(message: &Message) -> bool {
    message.content.iter().any(|block| matches!(block, Block::ToolResult { .. }))
}

/// No message becomes empty: a valid one does not end in reasoning.
fn without_reasoning(body: &mut Value) {
    for message in body["messages"].as_array_mut().into_iter().flatten() {
        if let Some(content) = message["content"].as_array_mut() {
            content.retain(|block| block.get("reasoningContent").is_none());
        }
    }
}

fn add_cache_points(body: &mut Value, in_tools: bool) {
    let point = json!({ "cachePoint": { "type": "default" } });
    if let Some(system) = body.get_mut("system").and_then(Value::as_array_mut) {
        system.push(point.clone());
    }
    if in_tools && let Some(tools) = body.pointer_mut("/toolConfig/tools").and_then(Value::as_array_mut) {
        tools.push(point.clone());
    }
    let messages = body["messages"].as_array_mut().into_iter().flatten().rev();
    let users = messages.filter(|message| message["role"] == "user");
    for message in users.take(POINTS_IN_MESSAGES) {
        let Some(content) = message["content"].as_array_mut() else { continue };
        if content.last().is_some_and(|last| last.get("reasoningContent").is_none()) {
            content.push(point.clone());
        }
    }
}
