use futures_util::stream;
use serde_json::json;
use turnlock_domain::message::{Reasoning, Role};
use turnlock_domain::session::SessionKey;

use super::*;
use crate::{StopReason, Wire};

const ALL: Capabilities = Capabilities { tools: true, images: true, starts_in_reasoning: false, context_tokens: None };

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest::new(Purpose::Turn, SessionKey::from_text("cli:1"), messages)
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec { name: name.into(), description: "d".into(), schema: json!({"type": "object"}) }
}

fn tool_use(id: &str, name: &str) -> Message {
    Message::new(Role::Assistant, vec![Block::ToolUse { id: id.into(), name: name.into(), input: json!({"q": "x"}) }])
}

fn result(id: &str, content: Vec<Block>) -> Message {
    Message::new(Role::User, vec![Block::ToolResult { tool_use_id: id.into(), content, is_error: false }])
}

/// Case br-tool-name-dot: the same alias in history and list, and the way back.
#[tokio::test]
async fn br_tool_name_dot() {
    let mut request =
        request(vec![Message::user("go"), tool_use("t1", "debug.state.get"), result("t1", vec![Block::text("ok")])]);
    request.tools = vec![tool("debug.state.get"), tool("recall"), tool("recall")];
    request.force_tool = Some("debug.state.get".into());
    let prepared = request.prepared("m", &ALL);
    let sent = prepared.request();
    let alias = sent.tools[0].name.clone();
    assert_ne!(alias, "debug.state.get");
    assert_eq!(sent.force_tool.as_ref(), Some(&alias));
    assert!(matches!(&sent.messages[1].content[0], Block::ToolUse { name, .. } if *name == alias));
    assert_eq!(sent.tools.len(), 2, "a name is listed once");
    assert_eq!(prepared.problems(), Vec::<String>::new());

    let raw = ModelEvent::ToolStart { index: 0, id: "t2".into(), name: alias };
    let events: Vec<_> = prepared.answering(stream::iter([Ok(raw)])).collect().await;
    let want = ModelEvent::ToolStart { index: 0, id: "t2".into(), name: "debug.state.get".into() };
    assert!(matches!(&events[..], [Ok(event)] if *event == want), "{events:?}");
}

/// Case br-tooluseid-shape: ids of answers are valid, and unlike every other, whatever the provider sends.
#[tokio::test]
async fn br_tooluseid_shape() {
    let history = vec![Message::user("go"), tool_use("call_0", "recall"), result("call_0", vec![Block::text("ok")])];
    let mut request = request(history);
    request.tools = vec![tool("recall")];
    let ids = |request: &ModelRequest| {
        let prepared = request.prepared("m", &ALL);
        let raw = ["call_0", "", "call 123/é", "fine", "fine"].map(str::to_owned);
        let raw = (0..).zip(raw).map(|(index, id)| Ok(ModelEvent::ToolStart { index, id, name: "recall".into() }));
        prepared
            .answering(stream::iter(raw.collect::<Vec<_>>()))
            .map(|event| match event {
                Ok(ModelEvent::ToolStart { id, .. }) => id,
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    let first = ids(&request).await;
    assert!(first.iter().all(|id| turnlock_domain::conversation::is_name(id)), "{first:?}");
    let distinct: std::collections::BTreeSet<&String> = first.iter().collect();
    assert_eq!((distinct.len(), first.contains(&"call_0".to_owned()), first[3].as_str()), (5, false, "fine"));
    assert_eq!(ids(&request).await, first, "the same question gets the same ids");
    request.messages.push(Message::user("and?"));
    assert_ne!(ids(&request).await[0], first[0]);
}

#[test]
fn only_the_models_own_reasoning_is_sent() {
    let reasoning = |maker: Option<&str>| {
        let maker = maker.map(str::to_owned);
        Block::Reasoning(Reasoning {
            text: "t".into(),
            signature: Some("s".into()),
            model: maker,
            ..Reasoning::default()
        })
    };
    let said = vec![reasoning(Some("m")), reasoning(Some("other")), reasoning(None), Block::text("hi")];
    let request = request(vec![Message::user("a"), Message::new(Role::Assistant, said), Message::user("b")]);
    let sent = request.prepared("m", &ALL);
    assert_eq!(sent.request().messages[1].content, [reasoning(Some("m")), reasoning(None), Block::text("hi")]);
    let elsewhere = request.prepared("third", &ALL);
    assert_eq!(elsewhere.request().messages[1].content, [reasoning(None), Block::text("hi")]);
}

#[test]
fn a_model_without_tools_reads_calls_as_text() {
    let mut request =
        request(vec![Message::user("go"), tool_use("t1", "recall"), result("t1", vec![Block::text("ok")])]);
    request.tools = vec![tool("recall")];
    request.force_tool = Some("recall".into());
    let prepared = request.prepared("m", &Capabilities::default());
    let texts: Vec<String> = prepared.request().messages.iter().map(Message::text).collect();
    assert_eq!(texts, ["go", "[called the tool recall with {\"q\":\"x\"}]", "[the tool answered: ok]"]);
    assert!(prepared.request().tools.is_empty() && prepared.request().force_tool.is_none());
    assert_eq!(prepared.problems(), Vec::<String>::new());
}

#[test]
fn a_model_without_images_gets_a_placeholder_without_the_reference() {
    let image =
        Media { url: "telegram-file:SECRET".into(), name: Some("cat.png".into()), mime_type: "image/png".into() };
    let messages =
        vec![Message::new(Role::User, vec![Block::Image(image.clone()), Block::File(image), Block::text("look")])];
    let request = request(messages);
    let text = request.prepared("m", &Capabilities::default()).request().messages[0].content[0].clone();
    assert_eq!(text, Block::text("[image: cat.png]"));
    for wire in [Wire::Openai, Wire::Bedrock] {
        let sent = wire.render("m", request.prepared("m", &ALL).request()).to_string();
        assert!(sent.contains("[image: cat") && !sent.contains("SECRET"), "{sent}");
    }
}

#[test]
fn a_turn_is_cut_to_the_context_and_a_job_is_not() {
    let long = "x".repeat(3000);
    let mut request = request(vec![Message::user(&*long), Message::assistant("old"), Message::user("new")]);
    let small = Capabilities { context_tokens: Some(1000), ..ALL };
    assert_eq!(request.prepared("m", &small).request().messages, [Message::user("new")]);
    request.purpose = Purpose::Consolidate;
    assert_eq!(request.prepared("m", &small).request().messages, request.messages);
}

/// Whatever a history holds, the request is valid, for every purpose and model.
#[test]
fn broken_histories_leave_valid() {
    let histories = [
        vec![],
        vec![Message::user("   ")],
        vec![Message::assistant("hi")],
        vec![Message::user("a"), Message::user("b")],
        vec![Message::user("go"), tool_use("t1", "a.b"), Message::user("next")],
        vec![Message::user("go"), tool_use("bad id", "a"), result("bad id", vec![])],
        vec![result("t9", vec![Block::text("orphan")]), Message::user("next")],
        vec![Message::user("a"), Message::new(Role::Assistant, vec![Block::Unknown]), Message::user("b")],
    ];
    for history in histories {
        for capabilities in [ALL, Capabilities::default(), Capabilities { context_tokens: Some(1000), ..ALL }] {
            for purpose in [Purpose::Turn, Purpose::Consolidate] {
                let mut request = request(history.clone());
                (request.purpose, request.tools) = (purpose, vec![tool("a.b")]);
                let asked =
                    history.last().is_some_and(|last| last.role == Role::User && !last.text().trim().is_empty());
                let problems = request.prepared("m", &capabilities).problems();
                let only_unasked = problems.iter().all(|problem| problem == "the last message is not the user's");
                assert!(problems.is_empty() || (!asked && only_unasked), "{history:?}: {problems:?}");
            }
        }
    }
}

#[tokio::test]
async fn errors_pass_as_they_are() {
    let prepared = request(vec![Message::user("a")]).prepared("m", &ALL);
    let stop = ModelEvent::Stop { reason: StopReason::EndTurn, usage: turnlock_domain::turn::Usage::default() };
    let raw = [Ok(ModelEvent::Text("x".into())), Ok(stop), Err(ModelError::Overloaded)];
    let kinds: Vec<_> = prepared.answering(stream::iter(raw)).map(|item| item.is_ok()).collect().await;
    assert_eq!(kinds, [true, true, false]);
}
