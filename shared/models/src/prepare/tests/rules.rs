//! What each provider refuses, told from the JSON that leaves: written from their documents, and knowing nothing of how it
//! was made.

use std::collections::BTreeSet;

use serde_json::Value;
use turnlock_domain::conversation::is_name;
use turnlock_domain::text::is_blank;

/// Bedrock User Guide, "Inference request parameters and response fields" and "Prompt caching"; API Reference, `Message`,
/// `ToolUseBlock`, `DocumentBlock`.
pub(super) fn of_bedrock(body: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    let mut rule = |kept: bool, rule: &str| {
        if !kept {
            broken.push(rule.to_owned());
        }
    };
    let messages = list(&body["messages"]);
    let roles: Vec<&str> = messages.iter().filter_map(|message| message["role"].as_str()).collect();
    rule(roles.first() == Some(&"user") && roles.last() == Some(&"user"), "the user begins and ends");
    rule(roles.windows(2).all(|pair| pair[0] != pair[1]), "roles alternate");

    let mut ids = BTreeSet::new();
    let mut waiting: Vec<&str> = Vec::new();
    let mut has_calls = false;
    for message in messages {
        let (content, is_user) = (list(&message["content"]), message["role"] == "user");
        let plain = content.iter().filter(|block| block.get("cachePoint").is_none());
        rule(plain.clone().count() > 0, "a message is not empty, nor a cache point alone");
        rule(!is_user || only(content, "reasoningContent").is_empty(), "the user does not reason");
        let sealed = |one: &&Value| {
            one.get("redactedContent").is_some()
                || one.pointer("/reasoningText/signature").is_some_and(Value::is_string)
        };
        rule(only(content, "reasoningContent").iter().all(sealed), "reasoning is signed or encrypted");
        rule(content.last().is_none_or(|last| last.get("reasoningContent").is_none()), "no message ends in reasoning");
        rule(is_user || ["image", "document"].iter().all(|kind| only(content, kind).is_empty()), "media is the user's");
        let documents = !only(content, "document").is_empty();
        rule(!documents || !only(content, "text").is_empty(), "a document has text beside it");

        let results: Vec<&str> =
            only(content, "toolResult").iter().filter_map(|one| one["toolUseId"].as_str()).collect();
        rule(is_user || results.is_empty(), "results are the user's");
        let sorted = |ids: &[&str]| {
            let mut ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
            ids.sort_unstable();
            ids
        };
        rule(sorted(&waiting) == sorted(&results), "each call has its one result in the next message");
        let is_result = |block: &&Value| block.get("toolResult").is_some();
        rule(content.iter().skip_while(is_result).all(|block| !is_result(&block)), "results come first");
        for result in only(content, "toolResult") {
            rule(!list(&result["content"]).is_empty(), "a result is not empty");
        }
        waiting.clear();
        for call in only(content, "toolUse") {
            let (id, name) =
                (call["toolUseId"].as_str().unwrap_or_default(), call["name"].as_str().unwrap_or_default());
            rule(is_name(id) && ids.insert(id), "a call has an id of its own");
            rule(is_name(name), "a tool has a name of the right shape");
            rule(call["input"].is_object(), "arguments are an object");
            waiting.push(id);
            has_calls = true;
        }
        for pair in content.windows(2) {
            let behind_reasoning = pair[0].get("reasoningContent").is_some() && pair[1].get("cachePoint").is_some();
            rule(!behind_reasoning, "no cache point stands behind reasoning");
        }
    }
    rule(waiting.is_empty(), "no call is left without a result");

    let mut documents = Vec::new();
    let mut points = 0;
    visit(body, &mut |key, value| match key {
        "text" if value.is_string() => rule(!value.as_str().is_none_or(is_blank), "no text is blank"),
        "document" => documents.push(value["name"].as_str().unwrap_or_default().to_owned()),
        "cachePoint" => points += 1,
        _ => {}
    });
    rule(documents.len() <= 5, "at most five documents");
    rule(documents.iter().collect::<BTreeSet<_>>().len() == documents.len(), "documents have names of their own");
    rule(points <= 4, "at most four cache points");

    let tools: Vec<&str> =
        list(&body["toolConfig"]["tools"]).iter().filter_map(|tool| tool["toolSpec"]["name"].as_str()).collect();
    rule(!has_calls || !tools.is_empty(), "calls in the history need tools in the request");
    rule(tools.iter().all(|name| is_name(name)), "a tool is offered under a name of the right shape");
    rule(tools.iter().collect::<BTreeSet<_>>().len() == tools.len(), "a tool is offered once");
    let forced = body.pointer("/toolConfig/toolChoice/tool/name").and_then(Value::as_str);
    rule(forced.is_none_or(|name| tools.contains(&name)), "the tool that must be called is offered");
    rule(forced.is_none() || body.get("additionalModelRequestFields").is_none(), "no thinking about a forced tool");
    broken
}

/// As [`of_bedrock`], for a model that refuses anything beside results.
pub(super) fn results_stand_alone(body: &Value) -> bool {
    list(&body["messages"]).iter().map(|message| list(&message["content"])).all(|content| {
        let results = only(content, "toolResult").len();
        results == 0 || results + only(content, "cachePoint").len() == content.len()
    })
}

/// OpenAI API Reference, "Create chat completion".
pub(super) fn of_openai(body: &Value) -> Vec<String> {
    let mut broken = Vec::new();
    let mut rule = |kept: bool, rule: &str| {
        if !kept {
            broken.push(rule.to_owned());
        }
    };
    let messages = list(&body["messages"]);
    rule(messages.last().is_some_and(|last| last["role"] != "assistant" && last["role"] != "system"), "somebody asks");
    let (mut ids, mut waiting) = (BTreeSet::new(), BTreeSet::new());
    let offers = !list(&body["tools"]).is_empty();
    for message in messages {
        let (role, content) = (message["role"].as_str().unwrap_or_default(), &message["content"]);
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            rule(waiting.remove(id), "a result answers a call of the message before, once");
        } else {
            rule(waiting.is_empty(), "every call is answered before anything else is said");
        }
        let calls = list(&message["tool_calls"]);
        match content {
            Value::Null => rule(!calls.is_empty(), "a message is not empty"),
            Value::String(text) => rule(!is_blank(text), "no text is blank"),
            parts => {
                rule(role == "user" && !list(parts).is_empty(), "only the user's content has parts");
                let texts = || list(parts).iter().filter_map(|part| part["text"].as_str());
                rule(!texts().any(is_blank), "no part is blank");
            }
        }
        for call in calls {
            let id = call["id"].as_str().unwrap_or_default();
            rule(is_name(id) && ids.insert(id), "a call has an id of its own");
            rule(call["function"]["name"].as_str().is_some_and(is_name), "a tool has a name of the right shape");
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            rule(
                serde_json::from_str::<Value>(arguments).is_ok_and(|input| input.is_object()),
                "arguments are an object",
            );
            rule(offers, "calls in the history need tools in the request");
            waiting.insert(id);
        }
    }
    rule(waiting.is_empty(), "no call is left without a result");
    broken
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The blocks of one kind.
fn only<'v>(content: &'v [Value], kind: &str) -> Vec<&'v Value> {
    content.iter().filter_map(|block| block.get(kind)).collect()
}

/// Every key with its value, but what a model or a tool's author wrote.
fn visit<'v>(value: &'v Value, see: &mut impl FnMut(&'v str, &'v Value)) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                see(key, value);
                if !matches!(key.as_str(), "input" | "json" | "reasoningText") {
                    visit(value, see);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| visit(item, see)),
        _ => {}
    }
}
