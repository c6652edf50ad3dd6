//! The template grants what the functions need, and nothing else.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::join;
use tokio::time::timeout;
use turnlock_tests::aws::bedrock::Turn;
use turnlock_tests::aws::front::Fault;
use turnlock_tests::template::granted_actions;

use crate::kit::{Kit, WITHIN};
use crate::{chats, pairing};

/// What people are told of a message that came to nothing.
const SORRY: &str = "Sorry, something went wrong and I could not answer this message. Please send it again.";

/// What is needed where a queue gives up a turn that waits for a person: after days. `shared/app/tests/edges/asking.rs` has it.
const AFTER_DAYS: (&str, &str) = ("DeadLetter", "dynamodb:DeleteItem");

/// Everything that the functions can be brought to do is done once, from the channels to the rare ways: jobs, faults, what
/// is unreadable, dead letters, calls that wait for a person, a model that does not stream, a channel that steers. Then every
/// action that a role grants was asked for, and no other ([`Kit::end`] looks for those, here and in every flow).
#[tokio::test(flavor = "multi_thread")]
async fn every_granted_action_is_needed() {
    let kit = Kit::start("consolidate_after = 2\ndaily_cost = 1000", &[]).await;
    join!(chats::all(&kit), memory(&kit, 21), commands(&kit), large_turn(&kit), function(&kit), approvals(&kit));
    unreadable(&kit).await;
    given_up(&kit).await;
    let whole = kit.aws.configuration.replace("[[models]]", "[[models]]\nstream = false");
    let whole = whole.replace("[agent.limits]", "while_busy = { telegram = \"steer\" }\n\n[agent.limits]");
    kit.aws.replace_all(&whole, Duration::ZERO).await;
    memory(&kit, 22).await;
    strangers(&kit).await;
    kit.settle().await;
    let mut unneeded = BTreeMap::new();
    for deployed in kit.aws.lambda.deployed() {
        let (granted, asked) = (granted_actions(&deployed.id), kit.asked_for(&deployed.id));
        let unasked = granted.difference(&asked).filter(|action| (deployed.id.as_str(), action.as_str()) != AFTER_DAYS);
        let unasked: Vec<String> = unasked.cloned().collect();
        if !unasked.is_empty() {
            unneeded.insert(deployed.id, unasked);
        }
    }
    assert_eq!(unneeded, BTreeMap::new());
    kit.end_with_dead_letters(5).await;
}

/// A turn with so many calls of tools that a review of what was said follows, which finds something; and so many turns
/// that the first of them are taken into memory.
async fn memory(kit: &Kit, chat: i64) {
    let chat_name = format!("telegram:main:{chat}");
    let remember =
        |number| Turn::tool("remember", json!({ "key": format!("fact-{number}"), "text": "They like tea." }));
    let turns = (0..10).map(remember).chain([Turn::text("noted")]);
    kit.aws.bedrock.on(&format!("remember {chat}"), turns);
    let kept = json!({ "summary": "They talked.", "facts": [{ "key": "drink", "text": "They like coffee, too." }] });
    kit.aws
        .bedrock
        .on_forced("save_memory", [Turn::tool("save_memory", kept.clone()), Turn::tool("save_memory", kept)]);
    let mut shown = vec!["noted".to_owned()];
    kit.say(chat, &format!("remember {chat}")).await;
    kit.shows(&chat_name, &["noted"]).await;
    for text in ["one", "two", "three", "four"] {
        kit.say(chat, text).await;
        shown.push(format!("echo: {text}"));
        kit.shows(&chat_name, &shown.iter().map(String::as_str).collect::<Vec<_>>()).await;
    }
    let taken = async {
        while kit.aws.bedrock.left() > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(WITHIN, taken).await.expect("jobs ask the model");
}

/// A conversation that begins with a turn that is stored in parts (an item has at most 400 KB), and goes on until that
/// turn is taken into memory.
async fn large_turn(kit: &Kit) {
    let (question, answer) = ("Look at this. ".repeat(15_000), "I see. ".repeat(35_000));
    kit.aws.bedrock.on("Look at this. Look", [Turn::text(&answer)]);
    for text in [question.as_str(), "one", "two", "three", "four"] {
        let message = json!({ "text": text, "session": "large" });
        let (status, answer) = kit.api(Method::POST, "/v1/messages?wait=20", None, &message).await;
        assert_eq!((status, answer["status"].as_str()), (StatusCode::OK, Some("done")), "{answer}");
    }
}

/// A tool that is a function of a team's own: the model reads what it answers.
async fn function(kit: &Kit) {
    let call = Turn::tool("orders", json!({ "of": "Ann" }));
    kit.aws.bedrock.on("what did Ann order", [call, Turn::text("tea")]);
    kit.say(25, "what did Ann order?").await;
    kit.shows("telegram:main:25", &["tea"]).await;
    assert_eq!(invoked(kit, "orders"), 1);
}

/// Calls that wait for a person: one is allowed over the API, one is denied by its code from another chat, one is stopped.
async fn approvals(kit: &Kit) {
    let refund = |order: &str| Turn::tool("refund", json!({ "order": order }));
    for (text, order, answer) in [("refund seven", "7", Some("refunded")), ("refund eight", "8", Some("left as it is"))]
    {
        kit.aws.bedrock.on(text, std::iter::once(refund(order)).chain(answer.map(Turn::text)));
    }
    kit.aws.bedrock.on("refund nine", [refund("9")]);
    join!(kit.say(27, "refund seven"), kit.say(29, "refund eight"), kit.say(30, "refund nine"));
    let allow = format!("/v1/approvals/{}", asked(kit, 27).await);
    let (status, answer) = kit.api(Method::POST, &allow, None, &json!({ "decision": "allow" })).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let denied = asked(kit, 29).await;
    kit.say(28, &format!("/deny {}", &denied[denied.len() - 6..])).await;
    asked(kit, 30).await;
    kit.say(30, "/stop").await;
    says(kit, 27, "refunded").await;
    says(kit, 29, "left as it is").await;
    says(kit, 30, "(stopped)").await;
    assert_eq!(invoked(kit, "refund"), 1, "what was allowed runs, and nothing else");
}

/// How often a function of the team's own was invoked.
fn invoked(kit: &Kit, function: &str) -> usize {
    let calls = kit.aws.front.calls().into_iter();
    calls.filter(|call| call.operation == "lambda:Invoke" && call.resource == function).count()
}

/// The id of what a chat is asked.
async fn asked(kit: &Kit, chat: i64) -> String {
    let session = format!("telegram:{chat}");
    let asked = async {
        loop {
            let (_, answer) = kit.api(Method::GET, "/v1/approvals", None, &Value::Null).await;
            let mut open = answer["approvals"].as_array().into_iter().flatten();
            if let Some(one) = open.find(|one| one["session"] == session.as_str()) {
                return one["id"].as_str().unwrap().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(WITHIN, asked).await.expect("the call is asked for")
}

/// Waits until a private chat shows a message.
async fn says(kit: &Kit, chat: i64, text: &str) {
    let name = format!("telegram:main:{chat}");
    let mut changes = kit.aws.platforms.changes();
    while !kit.texts(&name).iter().any(|shown| shown == text) {
        timeout(WITHIN, changes.changed()).await.unwrap_or_else(|_| panic!("{:?}", kit.texts(&name))).unwrap();
    }
}

/// The body of a record that the agent was handed.
fn received(kit: &Kit, text: &str) -> String {
    let received = kit.aws.lambda.received("Agent").into_iter();
    let mut events = received.map(|event| serde_json::from_slice::<Value>(&event).unwrap());
    let event = events.find(|event| event.to_string().contains(text)).unwrap();
    event["Records"][0]["body"].as_str().unwrap().to_owned()
}

/// A command that is put off by an outage of the table and then answered, and one that writes.
async fn commands(kit: &Kit) {
    kit.aws.front.fail(Fault {
        caller: "Control".to_owned(),
        operation: "dynamodb:GetItem".to_owned(),
        times: 10,
        carried_out: false,
        status: 500,
        body: json!({ "__type": "com.amazonaws.dynamodb.v20120810#InternalServerError", "message": "scripted" }),
    });
    for (count, command) in ["/status", "/approve nothing", "/stop"].into_iter().enumerate() {
        kit.say(23, command).await;
        let mut changes = kit.aws.platforms.changes();
        while kit.texts("telegram:main:23").len() <= count {
            timeout(WITHIN, changes.changed()).await.unwrap().unwrap();
        }
    }
}

/// Somebody who is on no list writes to each of our identities: a code may have let them in.
async fn strangers(kit: &Kit) {
    pairing::close_lists(kit).await;
    kit.say(26, "hello?").await;
    kit.shows("telegram:main:26", &[&pairing::refusal("26")]).await;
    let fixture = include_str!("../../shared/channels/src/slack/fixtures/dm.json");
    let event = json!({ "text": "hello?", "channel": "D0STRANGE", "ts": "1760000060.000100" });
    assert_eq!(kit.slack(fixture, &event).await, StatusCode::OK);
    kit.shows("slack:main:D0STRANGE", &[&pairing::refusal("U0USER")]).await;
}

/// What is no message of ours, in every queue.
async fn unreadable(kit: &Kit) {
    kit.put("InboundQueue", "g", "no event").await;
    for queue in ["ConsolidateQueue", "ReviewQueue"] {
        let request = json!({ "QueueUrl": kit.aws.stack.physical(queue), "MessageBody": "no job" });
        kit.aws.cloud.json("AmazonSQS.SendMessage", &request).await;
    }
    kit.dead_letters(3).await;
}

/// An event that its queue gave up is settled as a turn of its own, and its sender hears of it; one that was answered
/// before has its answer sent again, which delivery recognises.
async fn given_up(kit: &Kit) {
    kit.say(24, "answered").await;
    kit.shows("telegram:main:24", &["echo: answered"]).await;
    let body = received(kit, "answered");
    let mut envelope: Value = serde_json::from_str(&body).unwrap();
    envelope["event"]["event_id"] = json!("given-up");
    kit.put("DeadLetterQueue", "g", &envelope.to_string()).await;
    kit.dead_letters(4).await;
    kit.put("DeadLetterQueue", "g", &body).await;
    kit.dead_letters(5).await;
    kit.shows("telegram:main:24", &["echo: answered", SORRY]).await;
}
