use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_types::SdkConfig;
use aws_types::region::Region;
use futures_util::future::join_all;
use futures_util::{FutureExt, StreamExt};
use turnlock_domain::message::{Block, Message, Reasoning, Role};
use turnlock_domain::session::SessionKey;
use turnlock_domain::turn::Usage;
use turnlock_models::{
    Answer, Bedrock, BedrockSettings, Capabilities, Model, ModelError, ModelEvent, ModelRequest, Purpose, StopReason,
    Timeouts, ToolSpec, answer,
};

use super::*;

const MODEL: &str = "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-v1:0";

/// The provider before a server of its own, streaming and not.
async fn both(check: impl AsyncFn(Bedrock, ScriptedBedrock, Operation)) {
    for operation in [Operation::ConverseStream, Operation::Converse] {
        let mut servers = JoinSet::new();
        let server = ScriptedBedrock::serve(&mut servers).await;
        let model = model(&server, operation == Operation::ConverseStream);
        check(model, server, operation).await;
    }
}

fn model(server: &ScriptedBedrock, streams: bool) -> Bedrock {
    let credentials = Credentials::new("AKIDTEST", "secret", None, None, "test");
    let aws = SdkConfig::builder()
        .region(Region::new("eu-central-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .endpoint_url(server.address())
        .build();
    let capabilities = Capabilities { tools: true, ..Capabilities::default() };
    let settings = BedrockSettings {
        model: MODEL.into(),
        streams,
        capabilities,
        max_tokens: None,
        guardrail: None,
        thinking: None,
        timeouts: Timeouts::default(),
    };
    Bedrock::new(&aws, settings)
}

fn request(messages: Vec<Message>) -> ModelRequest {
    let mut request = ModelRequest::new(Purpose::Turn, SessionKey::from_text("cli:1"), messages);
    let schema = json!({
        "type": "object",
        "properties": {"q": {"type": "string"}, "all": {"type": "array"}, "n": {"type": "integer"}},
        "required": ["q", "all"],
    });
    request.tools = vec![ToolSpec { name: "lookup".into(), description: "d".into(), schema }];
    request
}

async fn ask(model: &Bedrock, text: &str) -> Result<Answer, ModelError> {
    answer(model, &request(vec![Message::user(text)])).await
}

#[tokio::test]
async fn without_a_script_the_user_is_echoed_and_a_forced_tool_called() {
    both(async |model, server, operation| {
        assert_eq!(ask(&model, "Grüße 😀").await.unwrap().text(), "echo: Grüße 😀");
        let mut forced = request(vec![Message::user("hi")]);
        forced.force_tool = Some("lookup".into());
        server.on("hi", [Turn::text("not for a job")]);
        let called = answer(&model, &forced).await.unwrap();
        assert_eq!((&called.calls()[0].input, called.stop), (&json!({"q": "-", "all": []}), StopReason::ToolUse));
        let asked = server.asked();
        assert_eq!((asked[0].model.as_str(), asked[0].operation), (MODEL, operation));
        assert_eq!(asked[0].body["messages"], json!([{"role": "user", "content": [{"text": "Grüße 😀"}]}]));
        assert_eq!((asked[1].forced_tool(), server.left()), (Some("lookup"), 1));
    })
    .await;
}

/// The rounds of a turn take its turns in order, each call with an id of its own; reasoning comes back as it was sent.
#[tokio::test]
async fn a_turn_with_a_tool_has_its_rounds() {
    both(async |model, server, _| {
        let call = Turn::text("Let me look.").and_tool("lookup", json!({"q": "é"})).reasoned("hmm", "c2ln+/==");
        server.on("weather", [call.paced(3, Duration::ZERO).using(100, 20), Turn::tool("lookup", json!({}))]);
        server.on("weather", [Turn::text("Sunny.").stopping("max_tokens")]);
        server.on_forced("lookup", [Turn::text("not for a turn")]);
        let mut messages = vec![Message::user("the weather?")];
        let mut ids = Vec::new();
        for _ in 0..2 {
            let round = answer(&model, &request(messages.clone())).await.unwrap();
            let id = round.calls()[0].id.clone();
            let result =
                Block::ToolResult { tool_use_id: id.clone(), content: vec![Block::text("ok")], is_error: false };
            messages.extend([round.message(), Message::new(Role::User, vec![result])]);
            ids.push(id);
        }
        let last = answer(&model, &request(messages.clone())).await.unwrap();
        assert_eq!((last.text(), last.stop), ("Sunny.".into(), StopReason::MaxTokens));
        assert_eq!(ids, ["tooluse_1", "tooluse_2"]);
        let reasoning = Reasoning {
            text: "hmm".into(),
            signature: Some("c2ln+/==".into()),
            redacted: None,
            model: Some(MODEL.into()),
        };
        let [Block::Reasoning(kept), Block::Text { text }, Block::ToolUse { input, .. }] = &messages[1].content[..]
        else {
            panic!("{messages:?}")
        };
        assert_eq!((kept, text.as_str(), input), (&reasoning, "Let me look.", &json!({"q": "é"})));
        let asked = server.asked();
        assert_eq!(
            asked[1].body["messages"][1]["content"][0]["reasoningContent"]["reasoningText"]["signature"],
            "c2ln+/=="
        );
        assert!(asked.iter().all(|asked| asked.refused.is_none()));
        assert_eq!(server.left(), 1, "what is for jobs is left");
    })
    .await;
}

#[tokio::test]
async fn usage_and_order_are_the_script_s() {
    both(async |model, server, _| {
        server.say([Turn::text("one").using(7, 3), Turn::text("two")]);
        let first = ask(&model, "a").await.unwrap();
        assert_eq!(
            (first.text(), first.usage),
            ("one".into(), Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() })
        );
        assert_eq!(ask(&model, "b").await.unwrap().text(), "two");
        assert_eq!(ask(&model, "c").await.unwrap().text(), "echo: c");
    })
    .await;
}

#[tokio::test]
async fn a_hundred_sessions_at_once_get_their_own_answers() {
    both(async |model, server, _| {
        for n in 0..100 {
            server.on(&format!("<{n}>"), [Turn::text(&format!("answer {n}"))]);
        }
        let answers = join_all((0..100).map(async |n| ask(&model, &format!("question <{n}>")).await.unwrap().text()));
        assert_eq!(answers.await, (0..100).map(|n| format!("answer {n}")).collect::<Vec<_>>());
        assert_eq!(server.left(), 0);
    })
    .await;
}

#[tokio::test]
async fn errors_come_where_the_script_puts_them() {
    both(async |model, server, operation| {
        let streamed = |kind| if operation == Operation::ConverseStream { kind } else { "unavailable" };
        let table = [
            (Turn::refused(429, "ThrottlingException", "slow down").retry_after(3), "throttled"),
            (Turn::refused(503, "ServiceUnavailableException", ""), "overloaded"),
            (Turn::refused(403, "AccessDeniedException", "no"), "unauthorized"),
            (Turn::text("Hel").breaking("modelStreamErrorException"), streamed("interrupted")),
            (Turn::text("Hel").breaking("throttlingException"), streamed("throttled")),
            (Turn::text("Hel").cut(), "interrupted"),
        ];
        for (turn, want) in table {
            server.say([turn.clone()]);
            let error = ask(&model, "hi").await.expect_err("no answer");
            assert_eq!(error.kind(), want, "{turn:?}");
            let wait = (want == "throttled" && error.retry_after().is_some()).then(|| Duration::from_secs(3));
            assert_eq!(error.retry_after(), wait);
        }
    })
    .await;
}

/// The text before a break arrives: what a person saw of it.
#[tokio::test]
async fn a_stream_arrives_piece_by_piece_and_is_held_where_the_test_wants() {
    let mut servers = JoinSet::new();
    let server = ScriptedBedrock::serve(&mut servers).await;
    let model = model(&server, true);
    let gate = Gate::default();
    server.say([Turn::text("abcdef").paced(2, Duration::from_millis(1)).held_after(2, &gate).cut()]);
    let mut stream = model.stream(&request(vec![Message::user("hi")])).await.unwrap();
    for piece in ["ab", "cd"] {
        assert_eq!(stream.next().await.unwrap().unwrap(), ModelEvent::Text(piece.into()));
    }
    gate.reached_by(1).await;
    assert!(stream.next().now_or_never().is_none(), "the gate is closed");
    gate.open();
    assert_eq!(stream.next().await.unwrap().unwrap(), ModelEvent::Text("ef".into()));
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), "interrupted");
}

/// Who is killed inside a turn leaves its answer behind; its successor gets the next.
#[tokio::test]
async fn a_held_answer_whose_asker_is_gone_is_used_up() {
    both(async |model, server, _| {
        let gate = Gate::default();
        server.on("go", [Turn::text("never seen").held_after(0, &gate), Turn::text("done")]);
        tokio::select! {
            answer = ask(&model, "go") => panic!("{answer:?}"),
            () = gate.reached_by(1) => {}
        }
        assert_eq!(ask(&model, "go").await.unwrap().text(), "done");
        assert_eq!((server.asked().len(), server.left()), (2, 0));
    })
    .await;
}

#[tokio::test]
async fn what_is_refused_is_kept_and_takes_no_turn() {
    let mut servers = JoinSet::new();
    let server = ScriptedBedrock::serve(&mut servers).await;
    server.say([Turn::text("a")]);
    let post = |path: &str, body: Value| {
        reqwest::Client::new().post(format!("{}{path}", server.address())).body(body.to_string()).send()
    };
    let blank = json!({"messages": [{"role": "user", "content": [{"text": " "}]}]});
    let answer = post("/model/m/converse", blank).await.unwrap();
    assert_eq!(answer.status(), 400);
    let kind = answer.headers()["x-amzn-errortype"].to_str().unwrap().to_owned();
    assert_eq!(kind, "ValidationException:http://internal.amazon.com/coral/com.amazon.bedrock/");
    assert!(server.asked()[0].refused.is_some());
    assert_eq!(server.left(), 1);
    for (path, status) in [("/model/a/b/converse", 404), ("/model/m/invoke", 404), ("/", 404)] {
        assert_eq!(post(path, json!({})).await.unwrap().status(), status, "{path}");
    }
}

/// Each of these was accepted by some system's own mock, and refused by Bedrock.
#[test]
fn what_bedrock_refuses_is_refused() {
    let user = |content: Value| json!({"role": "user", "content": content});
    let model = |content: Value| json!({"role": "assistant", "content": content});
    let call = |id: &str| json!({"toolUse": {"toolUseId": id, "name": "lookup", "input": {}}});
    let result = |id: &str| json!({"toolResult": {"toolUseId": id, "content": [{"text": "ok"}]}});
    let text = || json!({"text": "hi"});
    let tools = json!({"tools": [{"toolSpec": {"name": "lookup", "inputSchema": {"json": {}}}}]});
    let table = [
        ("a question", vec![user(json!([text()]))], None),
        (
            "a round",
            vec![
                user(json!([text()])),
                model(json!([call("t1"), call("t2")])),
                user(json!([result("t2"), result("t1")])),
            ],
            None,
        ),
        ("nothing", vec![], Some("messages is empty")),
        ("the model first", vec![model(json!([text()]))], Some("messages.0: a conversation must alternate")),
        ("two in a row", vec![user(json!([text()])), user(json!([text()]))], Some("messages.1: a conversation must")),
        ("no content", vec![user(json!([]))], Some("messages.0: content is empty")),
        ("br_blank_text", vec![user(json!([{"text": "  "}]))], Some("The text field")),
        (
            "br_result_missing",
            vec![user(json!([text()])), model(json!([call("t1"), call("t2")])), user(json!([result("t1")]))],
            Some("messages.2: Expected toolResult"),
        ),
        (
            "br_result_exceeds",
            vec![user(json!([text()])), model(json!([call("t1")])), user(json!([result("t1"), result("t2")]))],
            Some("messages.2: Expected toolResult"),
        ),
        ("an open call", vec![user(json!([text()])), model(json!([call("t1")]))], Some("Expected toolResult")),
        (
            "br_tooluseid_shape",
            vec![user(json!([text()])), model(json!([call("call 1")])), user(json!([result("call 1")]))],
            Some("a toolUseId must satisfy"),
        ),
        ("a document alone", vec![user(json!([{"document": {}}]))], Some("messages.0: a document without text")),
        (
            "an image of the model's",
            vec![user(json!([text()])), model(json!([{"image": {}}]))],
            Some("messages.1: media"),
        ),
    ];
    for (name, messages, want) in table {
        let refused = rules::refusal(&json!({"messages": messages, "toolConfig": tools}));
        match want {
            None => assert_eq!(refused, None, "{name}"),
            Some(want) => assert!(refused.as_deref().is_some_and(|why| why.starts_with(want)), "{name}: {refused:?}"),
        }
    }
    let round = [user(json!([text()])), model(json!([call("t1")])), user(json!([result("t1")]))];
    let without_tools = rules::refusal(&json!({ "messages": round }));
    assert!(without_tools.is_some_and(|why| why.contains("toolConfig field must be defined")));
    let dotted = json!({"tools": [{"toolSpec": {"name": "a.b"}}]});
    let br_tool_name_dot = rules::refusal(&json!({"messages": [user(json!([text()]))], "toolConfig": dotted}));
    assert!(br_tool_name_dot.is_some_and(|why| why.starts_with("a tool's name must satisfy")));
}
