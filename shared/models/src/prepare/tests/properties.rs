//! Whatever is stored, whatever a model can do: what leaves is valid, and always the same.

use std::time::Duration;

use proptest::prelude::*;

use super::rules;
use super::*;
use crate::bedrock::body::{Extras, body};
use crate::{BedrockSettings, Guardrail, Thinking, Timeouts};

/// What a person asks last.
const LAST: &str = "the last word 😀";

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(vec!["hi", "", " ", "a\0b", "\u{e0041}", "\u{200b}", "😀", "שלום", "[Ann (1)]\nhi"])
            .prop_map(str::to_owned),
        1 => (0..4_usize).prop_map(|n| "long word ".repeat(300 << n)),
        1 => "\\PC{0,12}",
    ]
}

fn any_media() -> impl Strategy<Value = Media> {
    let urls = prop::sample::select(vec![
        "telegram-file:F",
        "data:image/png;base64,AAAA",
        "data:application/pdf;base64,AAAA",
        "data:text/plain;base64,aGk=",
        "data:text/plain;base64,",
        "data:odd",
        "",
    ]);
    let names =
        prop::option::of(prop::sample::select(vec!["a.pdf", "A.PDF", "x]\n[", "", "slack-file://F0", "\u{202e}"]));
    (urls, names).prop_map(|(url, name)| Media {
        url: url.to_owned(),
        name: name.map(str::to_owned),
        mime_type: "text/plain\n[".to_owned(),
    })
}

fn any_reasoning() -> impl Strategy<Value = Block> {
    let some = |text: &'static str| prop::option::of(Just(text.to_owned()));
    let model = prop::option::of(prop::sample::select(vec!["m", "another"]));
    (any_text(), some("c2ln"), some("AAEC"), model).prop_map(|(text, signature, redacted, model)| {
        Block::Reasoning(Reasoning { text, signature, redacted, model: model.map(str::to_owned) })
    })
}

fn any_block(depth: u32) -> BoxedStrategy<Block> {
    let ids = || prop::sample::select(vec!["t1", "t2", "t3", "", "a b", "é"]);
    let inputs = prop::sample::select(vec![json!({}), json!({"q": "\0"}), json!(null), json!("x"), json!([1])]);
    let names = prop::sample::select(vec!["recall", "debug.state", "made up", ""]);
    let calls = (ids(), names, inputs).prop_map(|(id, name, input)| Block::ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
        input,
    });
    let leaf = prop_oneof![
        3 => any_text().prop_map(|text| Block::Text { text }),
        2 => any_media().prop_map(Block::File),
        1 => any_media().prop_map(Block::Image),
        2 => any_reasoning(),
        1 => Just(Block::Unknown),
        4 => calls,
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let content = prop::collection::vec(any_block(depth - 1), 0..3);
    let results = (ids(), content, any::<bool>()).prop_map(|(id, content, is_error)| Block::ToolResult {
        tool_use_id: id.to_owned(),
        content,
        is_error,
    });
    prop_oneof![3 => leaf, 2 => results].boxed()
}

fn any_history() -> impl Strategy<Value = Vec<Message>> {
    let message = (any::<bool>(), prop::collection::vec(any_block(1), 0..5))
        .prop_map(|(is_user, content)| Message::new(if is_user { Role::User } else { Role::Assistant }, content));
    prop::collection::vec(message, 0..9)
}

fn any_request() -> impl Strategy<Value = ModelRequest> {
    let tools = prop::collection::vec(prop::sample::select(vec!["recall", "debug.state", "a b"]), 0..4);
    let forced = prop::option::of(prop::sample::select(vec!["recall", "debug.state", "not there"]));
    let purpose = prop::sample::select(vec![Purpose::Turn, Purpose::Turn, Purpose::Consolidate]);
    let limits = (prop::option::of(1..5000_u32), any::<bool>());
    (any_history(), tools, forced, purpose, limits, any_text()).prop_map(
        |(messages, tools, forced, purpose, (max_tokens, tighter), system)| ModelRequest {
            purpose,
            tools: tools.into_iter().map(tool).collect(),
            force_tool: forced.map(str::to_owned),
            max_tokens,
            tighter,
            system,
            ..request(messages)
        },
    )
}

fn any_capabilities() -> impl Strategy<Value = Capabilities> {
    let window = prop::option::of(1000..6000_u32);
    (any::<[bool; 5]>(), window).prop_map(|([tools, images, documents, cache, results_alone], context_tokens)| {
        Capabilities { tools, images, documents, cache, results_alone, starts_in_reasoning: false, context_tokens }
    })
}

fn any_settings() -> impl Strategy<Value = BedrockSettings> {
    let model = prop::sample::select(vec!["m", "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "amazon.nova-pro-v1:0"]);
    let thinking = prop::option::of(prop::sample::select(vec![Thinking::Budget(1024), Thinking::Adaptive]));
    (model, any_capabilities(), thinking, any::<bool>(), any::<bool>()).prop_map(
        |(model, capabilities, thinking, streams, guarded)| BedrockSettings {
            model: model.to_owned(),
            streams,
            capabilities,
            max_tokens: Some(4096),
            guardrail: guarded.then(|| Guardrail { id: "g".to_owned(), version: "1".to_owned() }),
            thinking,
            timeouts: Timeouts { connect: Duration::ZERO, ..Timeouts::default() },
        },
    )
}

/// The JSON of both wires, after each was held to its rules.
fn checked(request: &ModelRequest, settings: &BedrockSettings) -> Result<[Value; 2], TestCaseError> {
    let prepared = request.prepared(&settings.model, &settings.capabilities, settings.max_tokens);
    prop_assert_eq!(prepared.problems(), Vec::<String>::new());
    let prepared = prepared.request();
    let wanted = Extras::wanted(settings, prepared);
    let without = Extras { cache_points: false, thinking: false, reasoning: false };
    let bedrock = body(settings, prepared, wanted);
    for sent in [&bedrock, &body(settings, prepared, without)] {
        prop_assert_eq!(rules::of_bedrock(sent), Vec::<String>::new(), "{}", sent);
        prop_assert!(!settings.capabilities.results_alone || rules::results_stand_alone(sent), "{}", sent);
    }
    let openai = crate::wire::openai(&settings.model, prepared);
    prop_assert_eq!(rules::of_openai(&openai), Vec::<String>::new(), "{}", openai);
    Ok([bedrock, openai])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn whatever_is_stored_leaves_valid(request in any_request(), settings in any_settings()) {
        let first = checked(&request, &settings)?;
        prop_assert_eq!(first, checked(&request, &settings)?, "the same question is the same bytes");
    }

    #[test]
    fn what_was_said_last_is_always_there(mut request in any_request(), settings in any_settings()) {
        request.messages.push(Message::user(LAST));
        for body in checked(&request, &settings)? {
            let last = body["messages"].as_array().and_then(|messages| messages.last()).map(Value::to_string);
            prop_assert!(last.is_some_and(|last| last.contains(LAST)), "{}", body);
        }
    }

    #[test]
    fn a_question_that_fits_the_window_is_asked(request in any_request(), window in 1000..20_000_u32) {
        let mut request = ModelRequest { purpose: Purpose::Turn, tools: Vec::new(), system: String::new(), ..request };
        request.messages.extend([Message::assistant("ok"), Message::user(LAST)]);
        let capabilities = Capabilities { context_tokens: Some(window), ..ALL };
        let fitted = request.prepared("m", &capabilities, None);
        let alone = ModelRequest { messages: fitted.request().messages.clone(), ..request };
        let text = crate::wire::openai("m", &alone)["messages"].to_string();
        let real = tiktoken_rs::o200k_base_singleton().encode_ordinary(&text).len();
        prop_assert!(real <= usize::try_from(window).unwrap_or(usize::MAX), "{} tokens for a window of {}", real, window);
    }
}

/// The rules themselves: each is broken by something.
#[test]
fn the_rules_find_what_is_broken() {
    let text = json!([{"text": "a"}]);
    let call = json!([{"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}]);
    let point = json!({"cachePoint": {"type": "default"}});
    let reasoning = json!({"reasoningContent": {"reasoningText": {"text": "x"}}});
    let table = [
        (json!([]), "the user begins and ends"),
        (json!([{"role": "user", "content": text}, {"role": "user", "content": text}]), "roles alternate"),
        (json!([{"role": "user", "content": [point]}]), "a message is not empty, nor a cache point alone"),
        (json!([{"role": "user", "content": [{"text": " "}]}]), "no text is blank"),
        (
            json!([{"role": "user", "content": [{"text": "a"}, reasoning, point]}]),
            "no cache point stands behind reasoning",
        ),
        (
            json!([{"role": "user", "content": text}, {"role": "assistant", "content": call}, {"role": "user", "content": text}]),
            "each call has its one result in the next message",
        ),
        (json!([{"role": "user", "content": [{"document": {"name": "d"}}]}]), "a document has text beside it"),
        (json!([{"role": "assistant", "content": [reasoning, {"text": "a"}]}]), "reasoning is signed or encrypted"),
    ];
    for (messages, want) in table {
        let broken = rules::of_bedrock(&json!({ "messages": messages }));
        assert!(broken.iter().any(|rule| rule == want), "{messages}: {broken:?}");
    }
    assert!(!rules::results_stand_alone(
        &json!({"messages": [{"content": [{"toolResult": {}}, {"text": "also in euro please"}]}]})
    ));
    let unanswered = json!({"messages": [{"role": "assistant", "content": null, "tool_calls": [{"id": "t"}]}]});
    assert!(rules::of_openai(&unanswered).contains(&"no call is left without a result".to_owned()));
}
