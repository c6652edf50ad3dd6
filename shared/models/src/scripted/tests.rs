use futures_util::StreamExt;
use serde_json::json;
use tokio::time::{Duration, Instant, timeout};
use turnlock_domain::message::{Block, Message};
use turnlock_domain::turn::Usage;

use super::*;
use crate::model::answer;
use crate::{ModelEvent, StopReason, ToolSpec, transcript};

fn line(line: Value) -> ScriptLine {
    serde_json::from_value(line).expect("a script line")
}

fn turn(text: &str) -> ModelRequest {
    ModelRequest::new(Purpose::Turn, SessionKey::from_text("cli:1"), vec![Message::user(text)])
}

async fn events(model: &Scripted, request: &ModelRequest) -> Vec<Result<ModelEvent, String>> {
    match model.stream(request).await {
        Ok(stream) => stream.map(|item| item.map_err(|error| error.kind().to_owned())).collect().await,
        Err(error) => vec![Err(format!("before: {}", error.kind()))],
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_fitting_line_with_times_left_answers() {
    let model = Scripted::new(Wire::Neutral);
    model.push(line(json!({"for": "consolidate", "chunks": ["job"]})));
    model.push(line(json!({"session": "cli:2", "chunks": ["other"]})));
    model.push(line(json!({"chunks": ["a", "b"], "times": 2})));
    assert_eq!(model.answers_left(), 4);
    for want in ["ab", "ab", "hello"] {
        assert_eq!(answer(&model, &turn("hello")).await.expect("an answer").text(), want);
    }
    assert_eq!(model.answers_left(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_line_plays_in_order_and_waits_in_virtual_time() {
    let model = Scripted::new(Wire::Neutral);
    model.push(line(json!({
        "chunks": ["Hel", {"reasoning": "hm", "signature": "s"}, {"redacted": "AAAA"}, {"wait": 2}, {"repeat": "lo", "times": 2}],
        "tools": [{"name": "recall", "input": {"q": 1}, "id": "t1"}, {"name": "pay", "input_chunks": ["{", "}"], "id": "t2"}],
        "usage": {"input_tokens": 3, "output_tokens": 4},
    })));
    let started = Instant::now();
    let got: Vec<ModelEvent> = events(&model, &turn("x")).await.into_iter().map(|event| event.expect("fine")).collect();
    assert_eq!(started.elapsed(), Duration::from_secs(2));
    let usage = Usage { input_tokens: 3, output_tokens: 4, ..Usage::default() };
    assert_eq!(
        got,
        [
            ModelEvent::Text("Hel".into()),
            ModelEvent::Reasoning("hm".into()),
            ModelEvent::Signature("s".into()),
            ModelEvent::Redacted("AAAA".into()),
            ModelEvent::Text("lolo".into()),
            ModelEvent::ToolStart { index: 0, id: "t1".into(), name: "recall".into() },
            ModelEvent::ToolInput { index: 0, json: "{\"q\":1}".into() },
            ModelEvent::ToolStart { index: 1, id: "t2".into(), name: "pay".into() },
            ModelEvent::ToolInput { index: 1, json: "{".into() },
            ModelEvent::ToolInput { index: 1, json: "}".into() },
            ModelEvent::Stop { reason: StopReason::ToolUse, usage },
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn errors_come_after_the_chunks_or_before_everything() {
    let text = || Ok(ModelEvent::Text("x".into()));
    let before = |kind: &str| vec![Err(format!("before: {kind}"))];
    let after = |kind: &str| vec![text(), Err(kind.to_owned())];
    let table = [
        (json!({"error": "throttled"}), before("throttled")),
        (json!({"error": "overloaded"}), before("overloaded")),
        (json!({"error": "invalid"}), before("invalid")),
        (json!({"error": "mid_stream"}), vec![Err("interrupted".to_owned())]),
        (json!({"error": "eof"}), vec![]),
        (json!({"chunks": ["x"], "error": "throttled"}), after("throttled")),
        (json!({"chunks": ["x"], "error": "mid_stream"}), after("interrupted")),
        (json!({"chunks": ["x"], "error": "eof"}), vec![text()]),
    ];
    for (script, want) in table {
        let model = Scripted::new(Wire::Neutral);
        model.push(line(script.clone()));
        assert_eq!(events(&model, &turn("x")).await, want, "{script}");
    }
}

/// Case br-throttle-abort: a throttled call is refused before anything streams, and says that trying again helps.
#[tokio::test(start_paused = true)]
async fn br_throttle_abort() {
    let model = Scripted::new(Wire::Neutral);
    model.push(line(json!({"error": "throttled"})));
    let error = model.stream(&turn("x")).await.err().expect("refused");
    assert!(error.is_retryable());
    assert_eq!(answer(&model, &turn("again")).await.expect("an answer").text(), "again");
}

#[tokio::test(start_paused = true)]
async fn a_hanging_answer_never_ends() {
    let model = Scripted::new(Wire::Neutral);
    model.push(line(json!({"chunks": ["x"], "error": "hang"})));
    let mut stream = model.stream(&turn("x")).await.expect("it streams");
    assert!(matches!(stream.next().await, Some(Ok(ModelEvent::Text(_)))));
    assert!(timeout(Duration::from_secs(86_400), stream.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn it_echoes_exactly_the_last_user_text() {
    let model = Scripted::new(Wire::Neutral);
    let mut request = turn("  first ");
    request.messages.push(Message::assistant("reply"));
    request.messages.push(Message::user(" second\n line "));
    assert_eq!(answer(&model, &request).await.expect("an answer").text(), " second\n line ");
}

#[tokio::test(start_paused = true)]
async fn the_stand_in_says_so_in_several_pieces_and_keeps_no_requests() {
    let model = Scripted::stand_in();
    assert_eq!(events(&model, &turn("hi")).await.len(), 4);
    insta::assert_snapshot!(answer(&model, &turn("hi")).await.expect("an answer").text(), @r"
    You said: hi

    I am a stand-in, not a language model: name a real one under `[[models]]` in `turnlock.toml` to talk to it here.
    ");
    assert_eq!(model.requests(), []);
}

/// In a group the first line is ours: an echo leaves it out, and nothing else in brackets.
#[tokio::test]
async fn an_echo_leaves_out_who_wrote() {
    let model = Scripted::new(Wire::Neutral);
    for (asked, want) in [
        ("[Ann Ames (1000001)]\nhi\n[Bob (7)]\nho", "hi\n[Bob (7)]\nho"),
        ("[<@U0USER>]\nhi", "hi"),
        ("[in reply to a message of Ann]\n> x\nhi", "[in reply to a message of Ann]\n> x\nhi"),
        ("[Ann (1)]", "[Ann (1)]"),
    ] {
        let said = crate::answer(&model, &turn(asked)).await.expect("an answer").text();
        assert_eq!(said, want);
    }
}

#[tokio::test(start_paused = true)]
async fn a_consolidation_keeps_one_fact_per_user_message() {
    let model = Scripted::new(Wire::Neutral);
    let talk = [Message::user("My cat is called Tom."), Message::assistant("Noted."), Message::user("!?")];
    let mut request = turn(&format!("Keep what matters:\n{}", transcript::render(0, &talk)));
    request.purpose = Purpose::Consolidate;
    let tool = ToolSpec { name: "keep".into(), description: "d".into(), schema: json!({"type": "object"}) };
    (request.tools, request.force_tool) = (vec![tool], Some("keep".into()));
    let calls = answer(&model, &request).await.expect("an answer").calls();
    let [call] = &calls[..] else { panic!("one call: {calls:?}") };
    assert_eq!(call.name, "keep");
    let facts = json!([
        {"key": "my-cat-is-called-tom-c6b0e39b", "value": "My cat is called Tom."},
        {"key": "8faf838e", "value": "!?"},
    ]);
    assert_eq!(call.input, json!({"summary": "2 messages of the user.", "facts": facts}));
}

#[tokio::test(start_paused = true)]
async fn every_request_is_kept_as_it_would_have_left() {
    let model = Scripted::new(Wire::Neutral);
    let mut request = turn("hi");
    request.system = "Be kind.".into();
    request.messages.push(Message::new(turnlock_domain::message::Role::User, vec![Block::text("  "), Block::Unknown]));
    answer(&model, &request).await.expect("an answer");
    let [kept] = &model.requests()[..] else { panic!("one request") };
    let wire = json!({
        "for": "turn", "session": "cli:1", "problems": [],
        "request": {"system": "Be kind.", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}], "tools": []},
    });
    assert_eq!(serde_json::to_value(kept).expect("prints"), wire);
}

#[test]
fn a_wrong_line_says_what_is_allowed() {
    let table = [
        (json!({"chunk": ["x"]}), "unknown field `chunk`"),
        (json!({"chunks": [{"think": "x"}]}), "a chunk is a text"),
        (json!({"chunks": [{"wait": -1}]}), "a chunk is a text"),
        (json!({"error": "boom"}), "expected one of `throttled`, `overloaded`"),
        (json!({"for": "lunch"}), "expected one of `turn`"),
    ];
    for (wrong, want) in table {
        let error = serde_json::from_value::<ScriptLine>(wrong.clone()).expect_err("refused").to_string();
        assert!(error.contains(want), "{wrong}: {error}");
    }
}
