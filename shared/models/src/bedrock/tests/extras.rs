//! What the settings add to a request, and what is left out where it is refused.

use axum::extract::Path;

use super::*;

/// Answers `refusals` with 400 and these messages, one after another, and everything else with "ok".
async fn refusing<T>(
    refusals: &[&'static str],
    settings: BedrockSettings,
    ask: impl AsyncFnOnce(Bedrock) -> T,
) -> (T, Vec<Value>) {
    let left = Arc::new(Mutex::new(refusals.to_vec()));
    let received: Arc<Mutex<Vec<Value>>> = Arc::default();
    let bodies = Arc::clone(&received);
    let answer = async move |Path(_): Path<String>, body: String| {
        bodies.lock().expect("not poisoned").push(serde_json::from_str(&body).expect("JSON"));
        let mut left = left.lock().expect("not poisoned");
        let answer = Answer::builder();
        if left.is_empty() {
            let body = [text_delta("ok"), stopped("end_turn")].concat();
            return answer.header("content-type", "application/vnd.amazon.eventstream").body(Body::from(body));
        }
        let message = json!({ "message": left.remove(0) }).to_string();
        answer.status(400).header("x-amzn-errortype", "ValidationException").body(Body::from(message))
    };
    let router = Router::new()
        .route("/{*path}", axum::routing::post(async move |path, body| answer(path, body).await.expect("a response")));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let model = Bedrock::new(&aws(&format!("http://{address}")), settings);
    let answered = tokio::select! {
        answered = ask(model) => answered,
        ended = async { axum::serve(listener, router).await } => panic!("the server ended: {ended:?}"),
    };
    let received = std::mem::take(&mut *received.lock().expect("not poisoned"));
    (answered, received)
}

fn caching() -> BedrockSettings {
    BedrockSettings { capabilities: Capabilities { cache: true, ..settings().capabilities }, ..settings() }
}

fn thinking(thinking: Thinking) -> BedrockSettings {
    BedrockSettings { thinking: Some(thinking), max_tokens: Some(8192), ..settings() }
}

fn sent(settings: &BedrockSettings, request: &ModelRequest) -> Value {
    let prepared = request.prepared(&settings.model, &settings.capabilities, settings.max_tokens);
    body::body(settings, prepared.request(), Extras::wanted(settings, prepared.request()))
}

fn is_point(block: &Value) -> bool {
    block.get("cachePoint").is_some()
}

fn reasoned(text: &str) -> Block {
    Block::Reasoning(Reasoning { text: text.into(), signature: Some("c2ln".into()), ..Reasoning::default() })
}

fn call(id: &str) -> Block {
    Block::ToolUse { id: id.into(), name: "get.it".into(), input: json!({}) }
}

fn result(id: &str) -> Message {
    let content = vec![Block::text("ok")];
    Message::new(Role::User, vec![Block::ToolResult { tool_use_id: id.into(), content, is_error: false }])
}

fn assistant(content: Vec<Block>) -> Message {
    Message::new(Role::Assistant, content)
}

#[test]
fn cache_points_stand_where_the_next_request_has_the_same() {
    let mut request = request(vec![
        Message::user("one"),
        Message::assistant("two"),
        Message::user("three"),
        assistant(vec![reasoned("hm"), call("t1")]),
        result("t1"),
    ]);
    request.system = "Be kind.".into();
    let point = json!({"cachePoint": {"type": "default"}});
    let body = sent(&caching(), &request);
    assert_eq!(body["system"], json!([{"text": "Be kind."}, point]));
    assert_eq!(body["toolConfig"]["tools"][1], point);
    let ends: Vec<bool> = body["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|message| message["content"].as_array().and_then(|content| content.last()).is_some_and(is_point))
        .collect();
    assert_eq!(ends, [false, false, true, false, true]);
    assert_eq!(body.to_string().matches("cachePoint").count(), 4, "the most that a request may have");
    let nova = BedrockSettings { model: "eu.amazon.nova-pro-v1:0".into(), ..caching() };
    assert_eq!(sent(&nova, &request).to_string().matches("cachePoint").count(), 3, "none behind tools");
    assert!(!sent(&settings(), &request).to_string().contains("cachePoint"));
}

/// Case br-cachepoint-after-reasoning: no point stands behind reasoning.
#[test]
fn br_cachepoint_after_reasoning() {
    let odd = ModelRequest {
        messages: vec![Message::user("a"), Message::new(Role::User, vec![Block::text("b"), reasoned("x")])],
        ..hi()
    };
    // As it would be if nothing had mended it.
    let settings = caching();
    let extras = Extras { cache_points: true, thinking: false, reasoning: true };
    let body = body::body(&settings, &odd, extras);
    let last = body["messages"][1]["content"].as_array().expect("content");
    assert!(!last.iter().any(is_point), "{last:?}");
    assert!(is_point(&body["messages"][0]["content"][1]));
}

/// Case br-cachepoint-only: a message never holds a point alone.
#[test]
fn br_cachepoint_only() {
    let odd =
        ModelRequest { messages: vec![Message::user("a"), Message::new(Role::User, vec![Block::Unknown])], ..hi() };
    let extras = Extras { cache_points: true, thinking: false, reasoning: true };
    assert_eq!(body::body(&caching(), &odd, extras)["messages"][1]["content"], json!([]));
    let body = sent(&caching(), &odd);
    let messages = body["messages"].as_array().expect("messages");
    assert_eq!(messages.len(), 1, "and a message of nothing is left out");
}

/// Case br-cachepoint-after-reasoning: a request that is refused for its cache points is sent once more without any, and
/// the process remembers it.
#[tokio::test]
async fn br_cachepoint_after_reasoning_refused() {
    for words in [
        "You invoked an unsupported model or your request did not allow prompt caching. See the documentation.",
        "Malformed input request: #/messages/6/content/0: extraneous key [cachePoint] is not permitted",
    ] {
        let (texts, received) = refusing(&[words], caching(), async |model| {
            [answer(&model, &hi()).await.expect("an answer").text(), answer(&model, &hi()).await.expect("one").text()]
        })
        .await;
        assert_eq!(texts, ["ok", "ok"]);
        let points: Vec<bool> = received.iter().map(|body| body.to_string().contains("cachePoint")).collect();
        assert_eq!(points, [true, false, false], "{words}");
    }
    let words = "your request did not allow prompt caching";
    let (error, received) = refusing(&[words; 3], caching(), async |model| answer(&model, &hi()).await).await;
    assert_eq!((error.expect_err("refused").kind(), received.len()), ("invalid", 2), "once more, not for ever");
    let (error, received) = refusing(&["no"], caching(), async |model| answer(&model, &hi()).await).await;
    assert_eq!((error.expect_err("refused").kind(), received.len()), ("invalid", 1), "another refusal is the caller's");
}

#[test]
fn a_guardrail_reads_a_stream_before_anybody_else() {
    let guarded = |streams| BedrockSettings {
        guardrail: Some(Guardrail { id: "g1".into(), version: "2".into() }),
        streams,
        ..settings()
    };
    let config = json!({"guardrailIdentifier": "g1", "guardrailVersion": "2"});
    assert_eq!(sent(&guarded(false), &hi())["guardrailConfig"], config);
    let mut sync = config;
    sync["streamProcessingMode"] = json!("sync");
    assert_eq!(sent(&guarded(true), &hi())["guardrailConfig"], sync);
    assert!(sent(&settings(), &hi()).get("guardrailConfig").is_none());
}

#[test]
fn a_model_thinks_where_it_may() {
    let field = |settings: &BedrockSettings, request: &ModelRequest| {
        sent(settings, request).pointer("/additionalModelRequestFields/thinking").cloned()
    };
    let budget = thinking(Thinking::Budget(4096));
    let enabled = Some(json!({"type": "enabled", "budget_tokens": 4096}));
    assert_eq!(field(&budget, &hi()), enabled);
    assert_eq!(field(&thinking(Thinking::Adaptive), &hi()), Some(json!({"type": "adaptive"})));
    assert_eq!(field(&settings(), &hi()), None);
    assert_eq!(field(&budget, &ModelRequest { max_tokens: Some(1024), ..hi() }), None, "nothing left to say");
    assert_eq!(field(&budget, &ModelRequest { force_tool: Some("get.it".into()), ..hi() }), None, "it must call");
}

/// A call that may write less thinks less, and keeps room for what it says.
#[test]
fn a_budget_shrinks_with_the_limit() {
    let budget = |budget: u32, configured: u32, limit: u32| {
        let settings = BedrockSettings { max_tokens: Some(configured), ..thinking(Thinking::Budget(budget)) };
        let body = sent(&settings, &ModelRequest { max_tokens: Some(limit), ..hi() });
        assert_eq!(body["inferenceConfig"]["maxTokens"], limit.min(configured));
        body.pointer("/additionalModelRequestFields/thinking/budget_tokens").and_then(Value::as_u64)
    };
    for (limit, want) in [
        (30_000, Some(16_000)),
        (20_000, Some(16_000)),
        (11_600, Some(8000)),
        (10_001, Some(8000)),
        (9999, Some(4000)),
        (2000, Some(1024)),
        (1024, None),
    ] {
        assert_eq!(budget(16_000, 20_000, limit), want, "{limit}");
    }
    assert_eq!(budget(4096, 4097, 4097), Some(4096), "what is configured is sent as it is");
}

/// Case br-reasoning-must-start: where the reasoning before a call is lost, that call goes with thinking off.
#[test]
fn br_reasoning_must_start() {
    let thinks = |messages: Vec<Message>| {
        let body = sent(&thinking(Thinking::Budget(4096)), &request(messages));
        body.get("additionalModelRequestFields").is_some()
    };
    let go = || Message::user("go");
    let kept = || assistant(vec![reasoned("plan"), call("t1")]);
    let lost = || assistant(vec![call("t1")]);
    assert!(!thinks(vec![go(), lost(), result("t1")]));
    assert!(thinks(vec![go(), kept(), result("t1")]));
    assert!(thinks(vec![go(), lost(), result("t1"), Message::assistant("done"), Message::user("next")]), "it is over");
    let second = || assistant(vec![call("t2")]);
    assert!(thinks(vec![go(), kept(), result("t1"), second(), result("t2")]), "it thinks at the beginning of a turn");
    let unsigned = || Block::Reasoning(Reasoning { text: "plan".into(), ..Reasoning::default() });
    assert!(!thinks(vec![go(), assistant(vec![unsigned(), call("t1")]), result("t1")]), "it is not sent");
    assert!(thinks(vec![go(), assistant(vec![unsigned(), reasoned("plan"), call("t1")]), result("t1")]));
    let foreign = Block::Reasoning(Reasoning {
        text: "plan".into(),
        signature: Some("s".into()),
        model: Some("another".into()),
        ..Reasoning::default()
    });
    assert!(!thinks(vec![go(), assistant(vec![foreign, call("t1")]), result("t1")]), "another model's is not sent");
}

/// What cannot be seen in the conversation the provider says: it is asked once more without thinking and reasoning.
#[tokio::test]
async fn br_reasoning_must_start_refused() {
    let words = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.";
    let messages = vec![Message::user("go"), assistant(vec![reasoned("plan"), call("t1")]), result("t1")];
    let thinking = thinking(Thinking::Budget(4096));
    let (answered, received) =
        refusing(&[words], thinking, async |model| answer(&model, &request(messages)).await).await;
    assert_eq!(answered.expect("an answer").text(), "ok");
    assert!(received[0].to_string().contains("budget_tokens") && received[0].to_string().contains("reasoningContent"));
    let again = received[1].to_string();
    assert!(!again.contains("budget_tokens") && !again.contains("reasoningContent"), "{again}");
    assert_eq!(received[1]["messages"][1]["content"][0]["toolUse"]["toolUseId"], "t1");
}

/// A model that does not think, or takes no reasoning at all, is not sent any for as long as the process lives; one that
/// finds fault with a conversation is, in the next one.
#[tokio::test]
async fn a_refused_thinking_is_remembered() {
    let messages = || vec![Message::user("a"), assistant(vec![reasoned("plan"), Block::text("b")]), Message::user("c")];
    for (words, want) in [
        ("User messages cannot contain reasoning content. Please remove it and try again.", [true, false, false]),
        ("This model does not support thinking.", [true, false, false]),
        ("messages.1.content.0: `thinking` blocks cannot be modified.", [true, false, true]),
    ] {
        let (texts, received) = refusing(&[words], thinking(Thinking::Budget(4096)), async |model| {
            let first = answer(&model, &request(messages())).await.expect("an answer").text();
            [first, answer(&model, &request(messages())).await.expect("another").text()]
        })
        .await;
        assert_eq!(texts, ["ok", "ok"]);
        let thinks = |body: &Value| ["budget_tokens", "reasoningContent"].map(|word| body.to_string().contains(word));
        let got: Vec<[bool; 2]> = received.iter().map(thinks).collect();
        assert_eq!(got, want.map(|thinks| [thinks; 2]), "{words}");
    }
}

/// Case br-text-with-toolresult: Llama is known by its id, whatever the configuration says.
#[test]
fn br_text_with_toolresult() {
    let messages = || {
        let mut answered = result("t1");
        answered.content.push(Block::text("also in euro please"));
        vec![Message::user("go"), assistant(vec![call("t1")]), answered]
    };
    for (model, roles) in [
        ("us.meta.llama3-3-70b-instruct-v1:0", &["user", "assistant", "user", "assistant", "user"][..]),
        ("meta.llama4-scout-17b-instruct-v1:0", &["user", "assistant", "user", "assistant", "user"]),
        (MODEL, &["user", "assistant", "user"]),
    ] {
        let bedrock = Bedrock::new(&aws("http://127.0.0.1:1"), BedrockSettings { model: model.into(), ..settings() });
        let prepared = request(messages()).prepared(model, bedrock.capabilities(), None);
        let body = crate::wire::bedrock(prepared.request());
        let got: Vec<&str> =
            body["messages"].as_array().expect("messages").iter().filter_map(|one| one["role"].as_str()).collect();
        assert_eq!(got, roles, "{model}");
        assert!(body.to_string().contains("also in euro please"), "nothing is lost");
    }
}

/// Case br-blank-citation: a cited text comes back as text, and what is blank around it is not kept.
#[tokio::test]
async fn br_blank_citation() {
    let content = json!([{"citationsContent": {"content": [{"text": "Green."}], "citations": []}}, {"text": ""}]);
    let body = json!({
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        "metrics": {"latencyMs": 1},
    });
    let whole = BedrockSettings { streams: false, ..settings() };
    let answer = served_with(Script::json(200, &[], &body), whole, async |model| answer(&model, &hi()).await).await;
    assert_eq!(answer.expect("an answer").content, [Block::text("Green.")]);
}
