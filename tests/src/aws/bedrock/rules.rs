//! What Bedrock refuses in a request, as far as its documentation says and its users report: the rules of conversations,
//! with which a session that breaks one fails for ever.

use std::collections::BTreeSet;

use serde_json::Value;

/// Why Bedrock refuses `body`, in words like its own.
#[must_use]
pub fn refusal(body: &Value) -> Option<String> {
    check(body).err()
}

type Checked = Result<(), String>;

fn check(body: &Value) -> Checked {
    let messages = list(&body["messages"]);
    let tools: Vec<&str> =
        list(&body["toolConfig"]["tools"]).iter().filter_map(|tool| tool["toolSpec"]["name"].as_str()).collect();
    list(&body["system"]).iter().try_for_each(|block| text(block, "system"))?;
    for (index, name) in tools.iter().enumerate() {
        is_name(name, "a tool's name")?;
        ensure(!tools[..index].contains(name), || format!("the tool {name} is defined twice"))?;
    }
    ensure(!messages.is_empty(), || "messages is empty".into())?;
    let mut expected = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        let role = if index % 2 == 0 { "user" } else { "assistant" };
        ensure(message["role"] == role, || {
            format!("messages.{index}: a conversation must alternate, starting with a user message")
        })?;
        ensure(!list(&message["content"]).is_empty(), || format!("messages.{index}: content is empty"))?;
        list(&message["content"]).iter().try_for_each(|block| content(block, role, index))?;
        let holds = |kind| list(&message["content"]).iter().any(|block| block.get(kind).is_some());
        ensure(!holds("document") || holds("text"), || format!("messages.{index}: a document without text beside it"))?;
        let results = ids(message, "toolResult");
        let calls = ids(message, "toolUse");
        let unique: BTreeSet<&str> = results.iter().copied().collect();
        ensure(unique.len() == results.len() && unique == expected, || {
            format!("messages.{index}: Expected toolResult blocks for the following ids: {expected:?}")
        })?;
        ensure(!tools.is_empty() || (calls.is_empty() && results.is_empty()), || {
            "The toolConfig field must be defined when using toolUse and toolResult content blocks.".into()
        })?;
        expected = calls.iter().copied().collect();
        ensure(expected.len() == calls.len(), || format!("messages.{index}: a toolUseId comes twice"))?;
    }
    ensure(expected.is_empty(), || format!("Expected toolResult blocks for the following ids: {expected:?}"))
}

fn content(block: &Value, role: &str, index: usize) -> Checked {
    let place = format!("messages.{index}");
    if block.get("text").is_some() {
        text(block, &place)?;
    }
    let is_media = block.get("image").is_some() || block.get("document").is_some();
    ensure(!is_media || role == "user", || format!("{place}: media stands in an assistant's message"))?;
    if let Some(call) = block.get("toolUse") {
        ensure(role == "assistant" && call["input"].is_object(), || format!("{place}: not a call"))?;
        is_name(call["toolUseId"].as_str().unwrap_or_default(), "a toolUseId")?;
        is_name(call["name"].as_str().unwrap_or_default(), "a tool's name")?;
    }
    if let Some(result) = block.get("toolResult") {
        ensure(role == "user", || format!("{place}: a result stands in an assistant's message"))?;
        let texts = list(&result["content"]).iter().filter(|block| block.get("text").is_some());
        texts.into_iter().try_for_each(|block| text(block, &place))?;
    }
    Ok(())
}

fn text(block: &Value, place: &str) -> Checked {
    let is_blank = block["text"].as_str().is_none_or(|text| text.trim().is_empty());
    ensure(!is_blank, || format!("The text field in the ContentBlock object at {place} is blank."))
}

fn is_name(name: &str, what: &str) -> Checked {
    let is_name = (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    ensure(is_name, || format!("{what} must satisfy [a-zA-Z0-9_-]{{1,64}}: {name}"))
}

fn ids<'a>(message: &'a Value, kind: &str) -> Vec<&'a str> {
    list(&message["content"]).iter().filter_map(|block| block.get(kind)?["toolUseId"].as_str()).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(otherwise()) }
}
