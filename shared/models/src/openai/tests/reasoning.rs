//! Which of the model's messages carry its reasoning.

use turnlock_domain::message::Reasoning;

use super::*;

/// Answers `refusals` with 400 and these messages, one after another, and everything else with "ok".
async fn refusing<T>(refusals: &[&'static str], ask: impl AsyncFnOnce(OpenAi) -> T) -> (T, Vec<Value>) {
    let left = Arc::new(Mutex::new(refusals.to_vec()));
    let received: Arc<Mutex<Vec<Value>>> = Arc::default();
    let bodies = Arc::clone(&received);
    let answer = async move |body: String| {
        bodies.lock().expect("not poisoned").push(serde_json::from_str(&body).expect("JSON"));
        let mut left = left.lock().expect("not poisoned");
        let answer = Answer::builder();
        if left.is_empty() {
            let body = Body::from([content("ok"), finish("stop")].concat());
            return answer.header("content-type", "text/event-stream").body(body);
        }
        let body = json!({ "error": { "message": left.remove(0), "type": "invalid_request_error" } });
        answer.status(400).body(Body::from(body.to_string()))
    };
    let answer = post(async move |body| answer(body).await.expect("a response"));
    let router = Router::new().route("/v1/chat/completions", answer);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base_url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let model = OpenAi::new(OpenAiSettings {
        base_url,
        api_key: None,
        model: "m".into(),
        capabilities: Capabilities { tools: true, ..Capabilities::default() },
        max_tokens: Some(7),
        timeouts: Timeouts::default(),
    });
    let answered = tokio::select! {
        answered = ask(model.expect("a client")) => answered,
        ended = async { axum::serve(listener, router).await } => panic!("the server ended: {ended:?}"),
    };
    let received = std::mem::take(&mut *received.lock().expect("not poisoned"));
    (answered, received)
}

/// A turn that is over, and one whose step waits for an answer; the model thought in both.
fn thoughtful() -> ModelRequest {
    let thought = |text: &str| {
        let model = Some("m".to_owned());
        Block::Reasoning(Reasoning { text: text.into(), model, ..Reasoning::default() })
    };
    let call = Block::ToolUse { id: "t1".into(), name: "get.it".into(), input: json!({}) };
    let result = Block::ToolResult { tool_use_id: "t1".into(), content: vec![Block::text("ok")], is_error: false };
    request(vec![
        Message::user("a"),
        Message::new(Role::Assistant, vec![thought("old"), Block::text("b")]),
        Message::user("c"),
        Message::new(Role::Assistant, vec![thought("pl"), thought("an"), call]),
        Message::new(Role::User, vec![result]),
    ])
}

/// The reasoning that the model's two messages carry.
fn carried(body: &Value) -> [Value; 2] {
    [1, 3].map(|message| body["messages"][message]["reasoning_content"].clone())
}

const NEVER: [Value; 2] = [Value::Null, Value::Null];

fn at_hand() -> [Value; 2] {
    [Value::Null, json!("plan")]
}

/// DeepSeek refuses the second step of a turn whose first comes back without its reasoning.
#[tokio::test]
async fn reasoning_goes_back_within_its_turn() {
    let (answered, received) = refusing(&[], async |model| answer(&model, &thoughtful()).await).await;
    assert_eq!(answered.expect("an answer").text(), "ok");
    assert_eq!(received.iter().map(carried).collect::<Vec<_>>(), [at_hand()]);
    assert_eq!(received[0]["max_tokens"], 7, "what is configured");
}

/// Servers want it otherwise: the request is sent once more, and the process remembers what was answered.
#[tokio::test]
async fn reasoning_goes_where_the_server_wants_it() {
    for (words, want) in [
        ("Missing `reasoning_content` field in the assistant message at message index 1.", [json!(""), json!("plan")]),
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", [json!(""), json!("plan")]),
        ("property 'reasoning_content' is unsupported", NEVER),
        // What was refused is repeated, whatever the model thought.
        ("extra_forbidden: messages.3.reasoning_content, input: the order id is missing", NEVER),
    ] {
        let (texts, received) = refusing(&[words], async |model| {
            let first = answer(&model, &thoughtful()).await.expect("an answer").text();
            [first, answer(&model, &thoughtful()).await.expect("another").text()]
        })
        .await;
        assert_eq!(texts, ["ok", "ok"]);
        let bodies: Vec<_> = received.iter().map(carried).collect();
        assert_eq!(bodies, [at_hand(), want.clone(), want], "{words}");
    }
}

#[tokio::test]
async fn what_did_not_help_is_not_remembered() {
    let words = "property 'reasoning_content' is unsupported";
    let (kind, received) = refusing(&[words; 2], async |model| {
        let refused = answer(&model, &thoughtful()).await.expect_err("refused").kind();
        answer(&model, &thoughtful()).await.expect("an answer");
        refused
    })
    .await;
    let bodies: Vec<_> = received.iter().map(carried).collect();
    assert_eq!((kind, bodies), ("invalid", vec![at_hand(), NEVER, at_hand()]));
    let hi = request(vec![Message::user("hi")]);
    let (refused, received) = refusing(&[words], async |model| answer(&model, &hi).await).await;
    assert_eq!((refused.expect_err("refused").kind(), received.len()), ("invalid", 1), "there is nothing to leave out");
}
