use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_sdk_bedrockruntime::config::{Region, SharedCredentialsProvider};
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::Response as Answer;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use turnlock_domain::message::{Block, Media, Message, Reasoning, Role};
use turnlock_domain::session::SessionKey;
use turnlock_domain::turn::Usage;

use super::*;
use crate::model::answer;
use crate::{ModelEvent, Purpose, StopReason, ToolSpec};

mod errors;
mod extras;
mod frames;

use frames::{exception, frame, stopped, text_delta};

const MODEL: &str = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0";

/// What the server received.
type Received = Arc<Mutex<Vec<Post>>>;

struct Post {
    peer: SocketAddr,
    path: String,
    authorization: String,
    body: Value,
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    /// The connection is cut.
    Cut,
    /// Nothing more comes.
    Hangs,
}

#[derive(Clone)]
struct Script {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    pieces: Vec<Vec<u8>>,
    end: End,
    received: Received,
}

impl Script {
    fn stream(pieces: Vec<Vec<u8>>) -> Self {
        let headers = vec![("content-type", "application/vnd.amazon.eventstream")];
        Self { status: 200, headers, pieces, end: End::Whole, received: Arc::default() }
    }

    /// An answer in one piece.
    fn json(status: u16, headers: &[(&'static str, &'static str)], body: &Value) -> Self {
        let headers = [&[("content-type", "application/json")], headers].concat();
        Self { status, headers, ..Self::stream(vec![body.to_string().into_bytes()]) }
    }
}

async fn converse(
    State(script): State<Script>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Answer<Body> {
    let path = request.uri().path().to_owned();
    let authorization = request.headers()["authorization"].to_str().expect("text").to_owned();
    let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.expect("a body");
    let body = serde_json::from_slice(&body).expect("JSON");
    script.received.lock().expect("not poisoned").push(Post { peer, path, authorization, body });
    let pieces = stream::iter(script.pieces.into_iter().map(Ok));
    let rest = match script.end {
        End::Whole => stream::empty().boxed(),
        End::Cut => stream::once(cut()).boxed(),
        End::Hangs => stream::pending().boxed(),
    };
    let mut answer = Answer::builder().status(script.status);
    for (name, value) in script.headers {
        answer = answer.header(name, value);
    }
    answer.body(Body::from_stream(pieces.chain(rest))).expect("a response")
}

/// Breaks a body off, once what came before is written.
async fn cut() -> std::io::Result<Vec<u8>> {
    tokio::task::yield_now().await;
    Err(std::io::Error::other("cut"))
}

fn settings() -> BedrockSettings {
    BedrockSettings {
        model: MODEL.into(),
        streams: true,
        capabilities: Capabilities { tools: true, images: true, ..Capabilities::default() },
        max_tokens: None,
        guardrail: None,
        thinking: None,
        timeouts: Timeouts { idle: Duration::from_millis(300), ..Timeouts::default() },
    }
}

/// What is handed over asks for retries and impatience, which are not this provider's.
fn aws(endpoint: &str) -> SdkConfig {
    let impatient = Duration::from_millis(1);
    SdkConfig::builder()
        .region(Region::new("eu-central-1"))
        .credentials_provider(SharedCredentialsProvider::new(Credentials::new(
            "AKIDTEST", "secret", None, None, "test",
        )))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .endpoint_url(endpoint)
        .retry_config(RetryConfig::standard())
        .timeout_config(TimeoutConfig::builder().read_timeout(impatient).operation_timeout(impatient).build())
        .build()
}

/// Runs `ask` against a server that plays `script`.
async fn served_with<T>(script: Script, settings: BedrockSettings, ask: impl AsyncFnOnce(Bedrock) -> T) -> T {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().fallback(converse).with_state(script);
    let router = router.into_make_service_with_connect_info::<SocketAddr>();
    let server = async { axum::serve(listener, router).await };
    let model = Bedrock::new(&aws(&format!("http://{address}")), settings);
    tokio::select! {
        answer = ask(model) => answer,
        ended = server => panic!("the server ended: {ended:?}"),
    }
}

async fn served<T>(script: Script, ask: impl AsyncFnOnce(Bedrock) -> T) -> T {
    served_with(script, settings(), ask).await
}

fn request(messages: Vec<Message>) -> ModelRequest {
    let mut request = ModelRequest::new(Purpose::Turn, SessionKey::from_text("cli:1"), messages);
    request.tools =
        vec![ToolSpec { name: "get.it".into(), description: "d".into(), schema: json!({"type": "object"}) }];
    request
}

fn hi() -> ModelRequest {
    request(vec![Message::user("hi")])
}

/// All events of a stream, the last error by its kind.
async fn events_with(script: Script, settings: BedrockSettings) -> Vec<Result<ModelEvent, &'static str>> {
    served_with(script, settings, async |model| match model.stream(&hi()).await {
        Ok(stream) => stream.map(|item| item.map_err(|error| error.kind())).collect().await,
        Err(error) => vec![Err(error.kind())],
    })
    .await
}

async fn events(script: Script) -> Vec<Result<ModelEvent, &'static str>> {
    events_with(script, settings()).await
}

fn text(text: &str) -> Result<ModelEvent, &'static str> {
    Ok(ModelEvent::Text(text.into()))
}

fn stop(reason: StopReason, input_tokens: u64, output_tokens: u64) -> Result<ModelEvent, &'static str> {
    let usage = Usage { input_tokens, output_tokens, ..Usage::default() };
    Ok(ModelEvent::Stop { reason, usage })
}

fn delta(block: u32, delta: Value) -> Vec<u8> {
    frame("contentBlockDelta", &json!({"contentBlockIndex": block, "delta": delta, "p": "abcdefg"}))
}

fn call(block: u32, id: &str, name: &str) -> Vec<u8> {
    let start = json!({"toolUse": {"toolUseId": id, "name": name}});
    frame("contentBlockStart", &json!({"contentBlockIndex": block, "start": start}))
}

fn input(block: u32, json: &str) -> Vec<u8> {
    delta(block, json!({"toolUse": {"input": json}}))
}

fn reasoning(block: u32, piece: Value) -> Vec<u8> {
    delta(block, json!({ "reasoningContent": piece }))
}

fn block_stop(block: u32) -> Vec<u8> {
    frame("contentBlockStop", &json!({ "contentBlockIndex": block }))
}

fn usage(usage: Value) -> Vec<u8> {
    frame("metadata", &json!({"usage": usage, "metrics": {"latencyMs": 1}}))
}

/// Streams as Bedrock sends them, each in whole, byte by byte, and in between.
#[tokio::test]
async fn streams_become_events() {
    let begin = frame("messageStart", &json!({"role": "assistant"}));
    let tokens = usage(json!({"inputTokens": 9, "outputTokens": 3, "totalTokens": 12}));
    let cached = json!({"inputTokens": 9, "outputTokens": 3, "totalTokens": 142,
                        "cacheReadInputTokens": 100, "cacheWriteInputTokens": 30});
    let with_cache =
        Usage { input_tokens: 9, output_tokens: 3, cache_read_tokens: 100, cache_write_tokens: 30, ..Usage::default() };
    let started = |index, id: &str, name: &str| Ok(ModelEvent::ToolStart { index, id: id.into(), name: name.into() });
    let argument = |index, json: &str| Ok(ModelEvent::ToolInput { index, json: json.into() });
    let table = [
        (
            "text",
            [begin.clone(), text_delta("Grüße "), text_delta("😀"), block_stop(0), stopped("end_turn"), tokens]
                .concat(),
            vec![text("Grüße "), text("😀"), stop(StopReason::EndTurn, 9, 3)],
        ),
        (
            "what a cache held and what was written to it are counted apart",
            [text_delta("a"), block_stop(0), stopped("end_turn"), usage(cached)].concat(),
            vec![text("a"), Ok(ModelEvent::Stop { reason: StopReason::EndTurn, usage: with_cache })],
        ),
        (
            "two calls behind text, one without arguments",
            [
                begin,
                text_delta("Well."),
                block_stop(0),
                call(1, "tooluse_a", "get_it_6ed80c13939e"),
                input(1, ""),
                input(1, "{\"a\""),
                input(1, ":1}"),
                block_stop(1),
                call(2, "tooluse_b", "made_up"),
                block_stop(2),
                stopped("tool_use"),
            ]
            .concat(),
            vec![
                text("Well."),
                started(0, "tooluse_a", "get.it"),
                argument(0, "{\"a\""),
                argument(0, ":1}"),
                started(1, "tooluse_b", "made_up"),
                stop(StopReason::ToolUse, 0, 0),
            ],
        ),
        (
            "reasoning: a signature and an encrypted block are whole, whatever the pieces",
            [
                reasoning(0, json!({"text": "hm"})),
                reasoning(0, json!({"text": "m"})),
                reasoning(0, json!({"signature": "c2"})),
                reasoning(0, json!({"signature": "ln"})),
                block_stop(0),
                reasoning(1, json!({"redactedContent": "AAEC"})),
                reasoning(1, json!({"redactedContent": "/w=="})),
                block_stop(1),
                delta(2, json!({"text": "a"})),
                block_stop(2),
                stopped("end_turn"),
            ]
            .concat(),
            vec![
                Ok(ModelEvent::Reasoning("hm".into())),
                Ok(ModelEvent::Reasoning("m".into())),
                Ok(ModelEvent::Signature("c2ln".into())),
                Ok(ModelEvent::Redacted("AAEC/w==".into())),
                text("a"),
                stop(StopReason::EndTurn, 0, 0),
            ],
        ),
        (
            "what this version does not know is skipped",
            [
                frame("somethingNew", &json!({"a": 1})),
                delta(0, json!({"hologram": {}})),
                text_delta("a"),
                stopped("end_turn"),
            ]
            .concat(),
            vec![text("a"), stop(StopReason::EndTurn, 0, 0)],
        ),
        ("arguments of no call", input(3, "{}"), vec![Err("interrupted")]),
    ];
    for (name, body, want) in table {
        for size in [body.len(), 1, 7] {
            let pieces = body.chunks(size).map(<[u8]>::to_vec).collect();
            assert_eq!(events(Script::stream(pieces)).await, want, "{name}, in pieces of {size}");
        }
    }
}

/// Every reason that Bedrock names, and one that it may add.
#[tokio::test]
async fn stop_reasons_are_reported_as_they_came() {
    let table = [
        ("end_turn", StopReason::EndTurn),
        ("tool_use", StopReason::ToolUse),
        ("max_tokens", StopReason::MaxTokens),
        ("stop_sequence", StopReason::StopSequence),
        ("guardrail_intervened", StopReason::Refused),
        ("content_filtered", StopReason::Refused),
        ("malformed_model_output", StopReason::Malformed),
        ("malformed_tool_use", StopReason::Malformed),
        ("model_context_window_exceeded", StopReason::ContextFull),
        ("bored", StopReason::Other("bored".into())),
    ];
    for (name, want) in table {
        let body = [text_delta("a"), stopped(name)].concat();
        assert_eq!(events(Script::stream(vec![body])).await, [text("a"), stop(want, 0, 0)], "{name}");
    }
}

/// Case br-stop-reason-override: a call does not change the reason.
#[tokio::test]
async fn br_stop_reason_override() {
    let body = [call(0, "t1", "get"), input(0, "{\"q\":\"x\"}"), block_stop(0), stopped("max_tokens")].concat();
    let answer = served(Script::stream(vec![body]), async |model| answer(&model, &hi()).await).await;
    assert_eq!(answer.expect("an answer").stop, StopReason::MaxTokens);
}

/// Cases br-reasoning-in-text and br-reasoning-dropped: the person sees the text only, and the next request carries the
/// reasoning byte for byte, first in the assistant's turn.
#[tokio::test]
async fn br_reasoning_dropped() {
    let body = [
        reasoning(0, json!({"text": " hmm\n"})),
        reasoning(0, json!({"signature": "c2ln+/=="})),
        block_stop(0),
        reasoning(1, json!({"redactedContent": "AAEC/w=="})),
        block_stop(1),
        delta(2, json!({"text": "Hi"})),
        block_stop(2),
        call(3, "t1", "get_it_6ed80c13939e"),
        block_stop(3),
        stopped("tool_use"),
    ];
    let script = Script::stream(body.into());
    let received = Arc::clone(&script.received);
    let said = served(script, async |model| {
        let first = answer(&model, &hi()).await.expect("an answer");
        let result = Block::ToolResult { tool_use_id: "t1".into(), content: vec![Block::text("ok")], is_error: false };
        let next = vec![Message::user("hi"), first.message(), Message::new(Role::User, vec![result])];
        answer(&model, &request(next)).await.expect("another");
        first
    })
    .await;
    assert_eq!(said.text(), "Hi");
    let received = received.lock().expect("not poisoned");
    let want = json!([
        {"reasoningContent": {"reasoningText": {"text": " hmm\n", "signature": "c2ln+/=="}}},
        {"reasoningContent": {"redactedContent": "AAEC/w=="}},
        {"text": "Hi"},
        {"toolUse": {"toolUseId": "t1", "name": "get_it_6ed80c13939e", "input": {}}},
    ]);
    assert_eq!(received[1].body["messages"][1]["content"], want);
}

/// Case br-reasoning-signature-only: the service's own block without text is kept.
#[tokio::test]
async fn br_reasoning_signature_only() {
    let body = [reasoning(0, json!({"text": ""})), reasoning(0, json!({"signature": "c2ln"})), block_stop(0)];
    let body = [body.concat(), delta(1, json!({"text": "Hi"})), stopped("end_turn")].concat();
    let answer = served(Script::stream(vec![body]), async |model| answer(&model, &hi()).await).await;
    let kept = Reasoning { signature: Some("c2ln".into()), model: Some(MODEL.into()), ..Reasoning::default() };
    assert_eq!(answer.expect("an answer").content, [Block::Reasoning(kept), Block::text("Hi")]);
}

/// A model that does not stream answers in one piece; callers see the same events.
#[tokio::test]
async fn an_answer_in_one_piece_becomes_the_same_events() {
    let content = json!([
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": "AAEC/w=="}},
        {"text": "Well."},
        {"toolUse": {"toolUseId": "t1", "name": "get_it_6ed80c13939e", "input": {"a": [1, -2, 0.5, null, true, "é"]}}},
        {"toolUse": {"toolUseId": "t2", "name": "made_up", "input": {}}},
    ]);
    let body = json!({
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use",
        "usage": {"inputTokens": 9, "outputTokens": 3, "totalTokens": 12},
        "metrics": {"latencyMs": 1},
    });
    let script = Script::json(200, &[], &body);
    let received = Arc::clone(&script.received);
    let want = [
        Ok(ModelEvent::Reasoning("hm".into())),
        Ok(ModelEvent::Signature("c2ln".into())),
        Ok(ModelEvent::Redacted("AAEC/w==".into())),
        text("Well."),
        Ok(ModelEvent::ToolStart { index: 0, id: "t1".into(), name: "get.it".into() }),
        Ok(ModelEvent::ToolInput { index: 0, json: "{\"a\":[1,-2,0.5,null,true,\"é\"]}".into() }),
        Ok(ModelEvent::ToolStart { index: 1, id: "t2".into(), name: "made_up".into() }),
        Ok(ModelEvent::ToolInput { index: 1, json: "{}".into() }),
        stop(StopReason::ToolUse, 9, 3),
    ];
    assert_eq!(events_with(script, BedrockSettings { streams: false, ..settings() }).await, want);
    let received = received.lock().expect("not poisoned");
    assert_eq!(received[0].path, "/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse");
    assert_eq!(received[0].body["messages"], json!([{"role": "user", "content": [{"text": "hi"}]}]));
}

#[tokio::test]
async fn the_request_is_signed_and_its_body_is_the_wire_s() {
    let image = Media { url: "data:image/png;base64,AAAA".into(), mime_type: "image/png".into(), name: None };
    let mut request = request(vec![Message::new(Role::User, vec![Block::text("look 👀"), Block::Image(image)])]);
    (request.system, request.force_tool) = ("Be kind.".into(), Some("get.it".into()));
    let script = Script::stream(vec![text_delta("ok"), stopped("end_turn")]);
    let received = Arc::clone(&script.received);
    let arn = "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/abc";
    let settings = BedrockSettings { model: arn.into(), max_tokens: Some(7), ..settings() };
    served_with(script, settings, async |model| {
        answer(&model, &request).await.expect("an answer");
        answer(&model, &ModelRequest { max_tokens: Some(5), ..request.clone() }).await.expect("an answer");
    })
    .await;
    let received = received.lock().expect("not poisoned");
    let [Post { path, authorization, body, .. }, second] = &received[..] else { panic!("two requests") };
    let encoded = "arn%3Aaws%3Abedrock%3Aeu-central-1%3A123456789012%3Aapplication-inference-profile%2Fabc";
    assert_eq!(*path, format!("/model/{encoded}/converse-stream"));
    assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=AKIDTEST/"), "{authorization}");
    assert!(authorization.contains("/eu-central-1/bedrock/aws4_request"), "{authorization}");
    let alias = "get_it_6ed80c13939e";
    let want = json!({
        "system": [{"text": "Be kind."}],
        "messages": [{"role": "user", "content": [
            {"text": "look 👀"},
            {"image": {"format": "png", "source": {"bytes": "AAAA"}}},
        ]}],
        "toolConfig": {
            "tools": [{"toolSpec": {"name": alias, "description": "d", "inputSchema": {"json": {"type": "object"}}}}],
            "toolChoice": {"tool": {"name": alias}},
        },
        "inferenceConfig": {"maxTokens": 7},
    });
    assert_eq!(*body, want);
    assert_eq!(received[0].peer, second.peer, "an answer is read to its end: the next request has its connection");
    assert_eq!(second.body["inferenceConfig"]["maxTokens"], 5, "a request may ask for less than is configured");
}
