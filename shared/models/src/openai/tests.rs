use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response as Answer};
use axum::routing::post;
use futures_util::stream;
use serde_json::json;
use turnlock_domain::message::{Block, Media, Message, Role};
use turnlock_domain::session::SessionKey;
use turnlock_domain::turn::Usage;

use super::*;
use crate::model::answer;
use crate::{ModelEvent, Purpose, StopReason, ToolSpec};

mod reasoning;

/// What the server received.
type Received = Arc<Mutex<Vec<(HeaderMap, Value)>>>;

#[derive(Clone)]
struct Script {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    pieces: Vec<Vec<u8>>,
    /// The body does not end.
    hangs: bool,
    received: Received,
}

impl Script {
    fn stream(pieces: Vec<Vec<u8>>) -> Self {
        let headers = vec![("content-type", "text/event-stream; charset=utf-8")];
        Self { status: 200, headers, pieces, hangs: false, received: Arc::default() }
    }
}

async fn complete(State(script): State<Script>, headers: HeaderMap, body: String) -> Answer<Body> {
    let body = serde_json::from_str(&body).expect("JSON");
    script.received.lock().expect("not poisoned").push((headers, body));
    let pieces = stream::iter(script.pieces.into_iter().map(Ok::<_, std::io::Error>));
    let rest = if script.hangs { stream::pending().boxed() } else { stream::empty().boxed() };
    let mut answer = Answer::builder().status(script.status);
    for (name, value) in script.headers {
        answer = answer.header(name, value);
    }
    answer.body(Body::from_stream(pieces.chain(rest))).expect("a response")
}

/// Runs `ask` against a server that plays `script`.
async fn served<T>(script: Script, ask: impl AsyncFnOnce(OpenAi) -> T) -> T {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().route("/v1/chat/completions", post(complete)).with_state(script);
    let server = async { axum::serve(listener, router).await };
    let client = OpenAi::new(OpenAiSettings {
        base_url: format!("http://{address}/v1/"),
        api_key: Some(SecretString::from("sk-secret")),
        model: "test-model".into(),
        capabilities: Capabilities { tools: true, images: true, ..Capabilities::default() },
        max_tokens: None,
        timeouts: Timeouts { idle: Duration::from_millis(300), ..Timeouts::default() },
    });
    tokio::select! {
        answer = ask(client.expect("a client")) => answer,
        ended = server => panic!("the server ended: {ended:?}"),
    }
}

fn request(messages: Vec<Message>) -> ModelRequest {
    let mut request = ModelRequest::new(Purpose::Turn, SessionKey::from_text("cli:1"), messages);
    request.tools =
        vec![ToolSpec { name: "get.it".into(), description: "d".into(), schema: json!({"type": "object"}) }];
    request
}

/// All events of a stream in `pieces`, the last error by its kind.
async fn events(script: Script) -> Vec<Result<ModelEvent, &'static str>> {
    served(script, async |model| match model.stream(&request(vec![Message::user("hi")])).await {
        Ok(stream) => stream.map(|item| item.map_err(|error| error.kind())).collect().await,
        Err(error) => vec![Err(error.kind())],
    })
    .await
}

fn text(text: &str) -> Result<ModelEvent, &'static str> {
    Ok(ModelEvent::Text(text.into()))
}

fn start(index: u32, id: &str, name: &str) -> Result<ModelEvent, &'static str> {
    Ok(ModelEvent::ToolStart { index, id: id.into(), name: name.into() })
}

fn input(index: u32, json: &str) -> Result<ModelEvent, &'static str> {
    Ok(ModelEvent::ToolInput { index, json: json.into() })
}

fn stop(reason: StopReason, input_tokens: u64, output_tokens: u64) -> Result<ModelEvent, &'static str> {
    let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
    Ok(ModelEvent::Stop { reason, usage })
}

fn content(text: &str) -> String {
    sse(json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]}))
}

fn calls(calls: Value) -> String {
    sse(json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": null}]}))
}

fn finish(reason: &str) -> String {
    sse(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
}

fn sse(chunk: Value) -> String {
    format!("data: {chunk}\n\n")
}

/// Streams as OpenAI and compatible servers send them, each in whole, byte by byte, and in between.
#[tokio::test]
async fn recorded_streams_become_events() {
    let done = "data: [DONE]\n\n";
    let usage = sse(json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}}));
    let call = |id: &str, arguments: &str| json!({"index": 0, "id": id, "type": "function", "function": {"name": "get", "arguments": arguments}});
    let table = [
        (
            "openai",
            [content("Grüße "), content("😀"), finish("stop"), usage.clone(), done.into()].concat(),
            vec![text("Grüße "), text("😀"), stop(StopReason::EndTurn, 9, 3)],
        ),
        (
            "no DONE, carriage returns, comments",
            format!(": ok\r\n\r\n{}", [content("a"), finish("length")].concat().replace('\n', "\r\n")),
            vec![text("a"), stop(StopReason::MaxTokens, 0, 0)],
        ),
        (
            "a call in fragments",
            [
                calls(
                    json!([{"index": 0, "id": "c1", "type": "function", "function": {"name": "get", "arguments": ""}}]),
                ),
                calls(json!([{"index": 0, "function": {"arguments": "{\"a\""}}])),
                calls(json!([{"index": 0, "function": {"arguments": ":1}"}}])),
                finish("tool_calls"),
                done.into(),
            ]
            .concat(),
            vec![start(0, "c1", "get"), input(0, "{\"a\""), input(0, ":1}"), stop(StopReason::ToolUse, 0, 0)],
        ),
        (
            "whole calls, index 0 reused, stop instead of tool_calls",
            [calls(json!([call("c1", "{}")])), calls(json!([call("c2", "{\"b\":2}")])), finish("stop")].concat(),
            vec![
                start(0, "c1", "get"),
                input(0, "{}"),
                start(1, "c2", "get"),
                input(1, "{\"b\":2}"),
                stop(StopReason::ToolUse, 0, 0),
            ],
        ),
        (
            "an id made up for every piece, arguments as an object",
            [
                calls(json!([call("c1", "{\"a\":")])),
                calls(json!([{"index": 0, "id": "c9", "function": {"arguments": "1}"}}])),
                calls(json!([{"index": 1, "id": "c2", "function": {"name": "get", "arguments": {"b": 2}}}])),
                finish("tool_calls"),
            ]
            .concat(),
            vec![
                start(0, "c1", "get"),
                input(0, "{\"a\":"),
                input(0, "1}"),
                start(1, "c2", "get"),
                input(1, "{\"b\":2}"),
                stop(StopReason::ToolUse, 0, 0),
            ],
        ),
        (
            "reasoning beside the content",
            [
                sse(json!({"choices": [{"delta": {"reasoning_content": "hm", "content": null}}]})),
                sse(json!({"choices": [{"delta": {"reasoning": "m"}}]})),
                content("a"),
                finish("stop"),
            ]
            .concat(),
            vec![
                Ok(ModelEvent::Reasoning("hm".into())),
                Ok(ModelEvent::Reasoning("m".into())),
                text("a"),
                stop(StopReason::EndTurn, 0, 0),
            ],
        ),
        (
            "refused",
            [sse(json!({"choices": [{"delta": {"refusal": "No."}}]})), finish("stop")].concat(),
            vec![text("No."), stop(StopReason::Refused, 0, 0)],
        ),
        (
            "filtered",
            [content("a"), finish("content_filter")].concat(),
            vec![text("a"), stop(StopReason::Refused, 0, 0)],
        ),
        (
            "reasoning under both names at once, content in parts, a role alone, no choices",
            [
                sse(json!({"choices": [{"delta": {"role": "assistant", "content": null}}]})),
                sse(json!({"choices": [{"delta": {"reasoning_content": "hm", "reasoning": "hm"}}], "usage": null})),
                sse(json!({"choices": [{"delta": {"reasoning": {"odd": 1}, "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "m"}]},
                    {"type": "text", "text": "a"}, {"type": "reference", "ids": [1]}, "b"]}}]})),
                sse(json!({"choices": null, "usage": {"prompt_tokens": null, "completion_tokens": "many"}})),
                sse(json!({"choices": []})),
                finish("stop"),
            ]
            .concat(),
            vec![
                Ok(ModelEvent::Reasoning("hm".into())),
                Ok(ModelEvent::Reasoning("m".into())),
                text("a"),
                text("b"),
                stop(StopReason::EndTurn, 0, 0),
            ],
        ),
        (
            "a call of which only the beginning fits",
            [calls(json!([call("c1", "{\"a\":")])), finish("length")].concat(),
            vec![start(0, "c1", "get"), input(0, "{\"a\":"), stop(StopReason::MaxTokens, 0, 0)],
        ),
        (
            "a call without a function",
            [calls(json!([{"index": 0, "id": "c1", "function": null}])), finish("tool_calls")].concat(),
            vec![start(0, "c1", ""), stop(StopReason::ToolUse, 0, 0)],
        ),
        (
            "an error that is no chunk",
            [content("a"), sse(json!({"object": "error", "message": "boom", "code": 503}))].concat(),
            vec![text("a"), Err("overloaded")],
        ),
        ("an error of a word", sse(json!({"error": "boom"})), vec![Err("interrupted")]),
        ("calls announced, none sent", finish("tool_calls"), vec![stop(StopReason::Malformed, 0, 0)]),
        (
            "a lone surrogate",
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\\ud83d\"},\"finish_reason\":\"stop\"}]}\n\n".into(),
            vec![text("a\u{fffd}"), stop(StopReason::EndTurn, 0, 0)],
        ),
        ("no finish reason", [content("Hel"), done.into()].concat(), vec![text("Hel"), Err("interrupted")]),
        ("cut off", content("Hel"), vec![text("Hel"), Err("interrupted")]),
        ("not JSON", format!("{}data: <html>\n\n", content("a")), vec![text("a"), Err("interrupted")]),
        (
            "an error in the stream",
            [content("a"), sse(json!({"error": {"message": "boom", "code": 502}}))].concat(),
            vec![text("a"), Err("unavailable")],
        ),
        (
            "a rate limit in the stream",
            sse(json!({"error": {"message": "slow down", "type": "rate_limit_error"}})),
            vec![Err("throttled")],
        ),
    ];
    for (name, body, want) in table {
        for size in [body.len(), 1, 7] {
            let pieces = body.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
            assert_eq!(events(Script::stream(pieces)).await, want, "{name}, in pieces of {size}");
        }
    }
}

/// The words that servers have for how an answer ended.
#[tokio::test]
async fn finish_reasons_are_reported_as_they_came() {
    let table = [
        ("stop", Ok(StopReason::EndTurn)),
        ("eos_token", Ok(StopReason::EndTurn)),
        ("STOP", Ok(StopReason::EndTurn)),
        ("stop_sequence", Ok(StopReason::StopSequence)),
        ("length", Ok(StopReason::MaxTokens)),
        ("MAX_TOKENS", Ok(StopReason::MaxTokens)),
        ("model_length", Ok(StopReason::ContextFull)),
        ("content_filter", Ok(StopReason::Refused)),
        ("SAFETY", Ok(StopReason::Refused)),
        ("tool_use", Ok(StopReason::Malformed)),
        ("bored", Ok(StopReason::Other("bored".into()))),
        ("insufficient_system_resource", Err("overloaded")),
        ("abort", Err("interrupted")),
        ("error", Err("interrupted")),
    ];
    for (reason, want) in table {
        let body = [content("a"), finish(reason)].concat().into_bytes();
        let want = want.map(|reason| ModelEvent::Stop { reason, usage: Usage::default() });
        assert_eq!(events(Script::stream(vec![body])).await, [text("a"), want], "{reason}");
    }
}

#[tokio::test]
async fn what_a_cache_held_is_counted_apart() {
    let table = [
        json!({"prompt_tokens": 130, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 100}}),
        json!({"prompt_tokens": 130, "completion_tokens": 3, "prompt_cache_hit_tokens": 100}),
    ];
    for tokens in table {
        let body = [content("a"), finish("stop"), sse(json!({"choices": [], "usage": tokens}))].concat().into_bytes();
        let usage = Usage { input_tokens: 30, output_tokens: 3, cache_read_tokens: 100, ..Usage::default() };
        let stop = Ok(ModelEvent::Stop { reason: StopReason::EndTurn, usage });
        assert_eq!(events(Script::stream(vec![body])).await, [text("a"), stop], "{tokens}");
    }
}

/// A call that the answer's limit cut off is never run; reasoning is kept apart, stamped, and not sent back when its turn
/// is over.
#[tokio::test]
async fn a_cut_call_is_bad_and_reasoning_does_not_return() {
    let call = json!([{"index": 0, "id": "c1", "function": {"name": "get", "arguments": "{}"}}]);
    let body = [
        sse(json!({"choices": [{"delta": {"reasoning_content": "secret thought"}}]})),
        content("Well."),
        calls(call),
        finish("length"),
    ];
    let script = Script::stream(vec![body.concat().into_bytes()]);
    let received = Arc::clone(&script.received);
    let first = served(script, async |model| {
        let first = answer(&model, &request(vec![Message::user("hi")])).await.expect("an answer");
        let next = vec![Message::user("hi"), first.message(), Message::user("go on")];
        answer(&model, &request(next)).await.expect("another");
        first
    })
    .await;
    assert_eq!((first.text().as_str(), first.calls().len(), first.bad_calls.len()), ("Well.", 0, 1));
    assert!(matches!(&first.content[0], Block::Reasoning(kept) if kept.model.as_deref() == Some("test-model")));
    let received = received.lock().expect("not poisoned");
    assert!(!received[1].1.to_string().contains("secret thought"));
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let body = json!({"choices": [{"message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}],
                      "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    let headers = vec![("content-type", "application/json")];
    let script = Script { headers, ..Script::stream(vec![body.to_string().into_bytes()]) };
    assert_eq!(events(script).await, [text("whole"), stop(StopReason::EndTurn, 1, 2)]);
}

#[tokio::test]
async fn silence_is_a_timeout_unless_only_the_usage_is_awaited() {
    let hanging = |body: String| Script { hangs: true, ..Script::stream(vec![body.into_bytes()]) };
    assert_eq!(events(hanging(content("a"))).await, [text("a"), Err("timeout")]);
    assert_eq!(
        events(hanging([content("a"), finish("stop")].concat())).await,
        [text("a"), stop(StopReason::EndTurn, 0, 0)]
    );
}

/// Case br-midstream-swallowed: reasoning and then an error is no answer, and trying again helps.
#[tokio::test]
async fn br_midstream_swallowed() {
    let reasoning = sse(json!({"choices": [{"delta": {"reasoning_content": "hm"}}]}));
    let body = [reasoning, sse(json!({"error": {"message": "upstream", "code": 500}}))].concat();
    let script = Script::stream(vec![body.into_bytes()]);
    let error = served(script, async |model| answer(&model, &request(vec![Message::user("hi")])).await).await;
    assert!(error.expect_err("no answer").is_retryable());
}

#[tokio::test]
async fn a_line_without_end_is_given_up() {
    let pieces = vec![vec![b'x'; sse::LINE_MAX], vec![b'x'; 2]];
    assert_eq!(events(Script::stream(pieces)).await, [Err("interrupted")]);
}

#[tokio::test]
async fn a_refusal_tells_when_to_come_back_and_repeats_nothing() {
    let body = json!({"error": {"message": "prompt: my secret", "code": "rate_limit_exceeded"}});
    let script = Script {
        status: 429,
        headers: vec![("retry-after", "7")],
        ..Script::stream(vec![body.to_string().into_bytes()])
    };
    let error = served(script, async |model| answer(&model, &request(vec![Message::user("hi")])).await).await;
    let error = error.expect_err("refused");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert!(!format!("{error:?}").contains("secret"));
}

#[tokio::test]
async fn nobody_at_the_address_is_retryable_and_names_no_address() {
    let settings = OpenAiSettings {
        base_url: "http://user:hunter2@127.0.0.1:1/v1".into(),
        api_key: None,
        model: "m".into(),
        capabilities: Capabilities::default(),
        max_tokens: None,
        timeouts: Timeouts::default(),
    };
    let model = OpenAi::new(settings).expect("a client");
    let error = answer(&model, &request(vec![Message::user("hi")])).await.expect_err("nobody there");
    assert!(error.is_retryable());
    assert!(!format!("{error:?} {model:?}").contains("hunter2"));
}

#[test]
fn openai_itself_takes_the_limit_under_its_new_name() {
    let settings = |base_url: &str| OpenAiSettings {
        base_url: base_url.into(),
        api_key: None,
        model: "m".into(),
        capabilities: Capabilities::default(),
        max_tokens: None,
        timeouts: Timeouts::default(),
    };
    let mut request = request(vec![Message::user("hi")]);
    request.max_tokens = Some(5);
    for (url, field) in
        [("https://api.openai.com/v1", "max_completion_tokens"), ("http://127.0.0.1:11434/v1", "max_tokens")]
    {
        assert_eq!(OpenAi::new(settings(url)).expect("a client").body(&request, Carried::AtHand)[field], 5, "{url}");
    }
    assert!(matches!(OpenAi::new(settings("not a url")), Err(ModelError::Invalid { .. })));
}

#[tokio::test]
async fn the_request_is_a_chat_completion() {
    let image = Media { url: "data:image/png;base64,AAAA".into(), mime_type: "image/png".into(), name: None };
    let call = Block::ToolUse { id: "t1".into(), name: "get.it".into(), input: json!({"q": 1}) };
    let result = Block::ToolResult { tool_use_id: "t1".into(), content: vec![Block::text("no")], is_error: true };
    let mut request = request(vec![
        Message::user("go"),
        Message::new(Role::Assistant, vec![Block::text("Well."), call]),
        Message::new(Role::User, vec![result, Block::text("look"), Block::Image(image)]),
    ]);
    (request.system, request.max_tokens) = ("Be kind.".into(), Some(99));
    request.force_tool = Some("get.it".into());
    let received = Received::default();
    let script = Script {
        received: Arc::clone(&received),
        ..Script::stream(vec![[content("ok"), finish("stop")].concat().into()])
    };
    let answer = served(script, async |model| answer(&model, &request).await).await.expect("an answer");
    assert_eq!(answer.text(), "ok");
    let received = received.lock().expect("not poisoned");
    let [(headers, body)] = &received[..] else { panic!("one request") };
    assert_eq!(headers["authorization"], "Bearer sk-secret");
    let alias = "get_it_6ed80c13939e";
    let want = json!({
        "model": "test-model",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "Well.", "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": alias, "arguments": "{\"q\":1}"}},
            ]},
            {"role": "tool", "tool_call_id": "t1", "content": "[error] no"},
            {"role": "user", "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ]},
        ],
        "tools": [{"type": "function", "function": {"name": alias, "description": "d", "parameters": {"type": "object"}}}],
        "tool_choice": {"type": "function", "function": {"name": alias}},
        "max_tokens": 99,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(*body, want);
}
