//! Every channel from its HTTP route to what a reader sees.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::join;
use turnlock_tests::aws::bedrock::{Gate, Turn};

use crate::kit::Kit;

#[tokio::test(flavor = "multi_thread")]
async fn every_channel_answers() {
    let kit = Kit::start("", &[]).await;
    join!(all(&kit), duplicates(&kit));
    kit.end().await;
}

/// Something is said on every channel, and answered.
pub(crate) async fn all(kit: &Kit) {
    join!(
        telegram_private(kit),
        telegram_group(kit),
        telegram_album(kit),
        slack_direct_message(kit),
        slack_mention_and_thread(kit),
        webhook_with_callback(kit),
        api_with_wait(kit),
        cron(kit),
    );
}

async fn telegram_private(kit: &Kit) {
    kit.say(1_000_001, "hello").await;
    kit.shows("telegram:main:1000001", &["echo: hello"]).await;
    kit.say(1_000_001, "and now?").await;
    kit.shows("telegram:main:1000001", &["echo: hello", "echo: and now?"]).await;
}

async fn telegram_group(kit: &Kit) {
    assert_eq!(kit.update(&kit.group(-100, "who is on call?")).await, StatusCode::OK);
    kit.shows("telegram:main:-100", &["echo: @echo_bot who is on call?"]).await;
}

/// Photos that are sent as one are one turn, also through SQS, whose visibility has whole seconds.
async fn telegram_album(kit: &Kit) {
    for caption in ["", "compare", ""] {
        let mut update = kit.private(1_000_003, "");
        let message = update["message"].as_object_mut().unwrap();
        message.remove("text");
        let number = message["message_id"].clone();
        message.insert("media_group_id".to_owned(), json!("9001"));
        message.insert("photo".to_owned(), json!([{ "file_id": format!("F{number}"), "width": 90, "height": 90 }]));
        if !caption.is_empty() {
            message.insert("caption".to_owned(), json!(caption));
        }
        assert_eq!(kit.update(&update).await, StatusCode::OK);
    }
    kit.shows("telegram:main:1000003", &["echo: compare\n[image]\n[image]\n[image]"]).await;
}

async fn slack_direct_message(kit: &Kit) {
    let fixture = include_str!("../../shared/channels/src/slack/fixtures/dm.json");
    let event = json!({ "text": "direct", "ts": "1760000000.000100" });
    assert_eq!(kit.slack(fixture, &event).await, StatusCode::OK);
    kit.shows("slack:main:D0DM", &["echo: direct"]).await;
}

/// A mention is answered in its thread; what follows in the thread belongs to the same conversation.
async fn slack_mention_and_thread(kit: &Kit) {
    let mention = include_str!("../../shared/channels/src/slack/fixtures/app_mention.json");
    let event = json!({ "text": "<@U0BOT> first", "ts": "1760000020.000200" });
    assert_eq!(kit.slack(mention, &event).await, StatusCode::OK);
    kit.shows("slack:main:C0CHAN:1760000020.000200", &["echo: first"]).await;
    let thread = include_str!("../../shared/channels/src/slack/fixtures/thread_mention.json");
    let event = json!({ "text": "<@U0BOT> second", "ts": "1760000040.000100" });
    assert_eq!(kit.slack(thread, &event).await, StatusCode::OK);
    kit.shows("slack:main:C0CHAN:1760000020.000200", &["echo: first", "echo: second"]).await;
    let asked = kit.aws.bedrock.asked();
    let second = asked.iter().find(|asked| asked.last_user_text().contains("second")).unwrap();
    assert_eq!(second.body["messages"].as_array().map(Vec::len), Some(3));
}

/// The reply is posted to the callback, which checks its signature, under the id of the event.
async fn webhook_with_callback(kit: &Kit) {
    assert_eq!(kit.webhook("msg_1", &json!({ "alert": "disk is full" })).await, StatusCode::OK);
    let mut changes = kit.aws.platforms.changes();
    let posted = || {
        let chats = kit.aws.platforms.chats();
        let texts: Vec<String> = chats
            .into_iter()
            .filter(|(name, _)| name.starts_with("webhook:main:"))
            .flat_map(|(_, chat)| chat.messages)
            .map(|message| message.text)
            .collect();
        texts
    };
    while posted().is_empty() {
        tokio::time::timeout(crate::kit::WITHIN, changes.changed()).await.unwrap().unwrap();
    }
    assert_eq!(posted().len(), 1);
    assert!(posted()[0].contains("disk is full"), "{:?}", posted());
    // The trace went through the queue: the turn's own line has it.
    let log = kit.aws.log("Agent");
    let line = log.lines().find(|line| line.contains("turnlock::event") && line.contains("webhook:main"));
    assert!(line.is_some_and(|line| line.contains(crate::kit::TRACE)), "{line:?}");
}

async fn api_with_wait(kit: &Kit) {
    let message = json!({ "text": "through the API", "session": "mine" });
    let (status, answer) = kit.api(Method::POST, "/v1/messages?wait=20", Some("key-1"), &message).await;
    assert_eq!((status, answer["status"].as_str()), (StatusCode::OK, Some("done")), "{answer}");
    assert!(answer.to_string().contains("echo: through the API"), "{answer}");
    // The same key and body is the same event; another body is none.
    let (status, again) = kit.api(Method::POST, "/v1/messages?wait=20", Some("key-1"), &message).await;
    assert_eq!((status, &again["event_id"]), (StatusCode::OK, &answer["event_id"]));
    let other = json!({ "text": "something else", "session": "mine" });
    assert_eq!(kit.api(Method::POST, "/v1/messages", Some("key-1"), &other).await.0, StatusCode::CONFLICT);
    let path = format!("/v1/events/{}", answer["event_id"].as_str().unwrap());
    assert_eq!(kit.api(Method::GET, &path, None, &Value::Null).await.0, StatusCode::OK);
    let stream = format!("{path}/stream");
    let (status, stream) = kit.api(Method::GET, &stream, None, &Value::Null).await;
    assert_eq!(status, StatusCode::OK);
    assert!(stream.as_str().unwrap_or_default().contains("echo: through the API"), "{stream}");
    let path = answer["links"]["messages"].as_str().unwrap_or_else(|| panic!("{answer}"));
    let (status, messages) = kit.api(Method::GET, path, None, &Value::Null).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(messages["messages"].as_array().map(Vec::len), Some(2), "{messages}");
}

/// The schedule calls with its identity and its time, twice; ministack does not fill these in, so the test does.
async fn cron(kit: &Kit) {
    let schedule = "arn:aws:scheduler:us-east-1:000000000000:schedule/default/turnlock-Schedule";
    let call = json!({ "cron": "daily", "schedule": schedule, "scheduled_time": "2026-01-01T08:00:00Z" });
    for _ in 0..2 {
        kit.aws.lambda.invoke("IngressCron", &call).await.unwrap();
    }
    kit.shows("telegram:main:77", &["echo: What is new?"]).await;
}

/// An update that comes again, at once and while its turn runs, is one message with one answer.
async fn duplicates(kit: &Kit) {
    let gate = Gate::default();
    kit.aws.bedrock.on("only once", [Turn::text("once").held_after(0, &gate)]);
    let update = kit.private(2_000_001, "only once");
    let posted = join!(kit.update(&update), kit.update(&update), kit.update(&update));
    assert_eq!(posted, (StatusCode::OK, StatusCode::OK, StatusCode::OK));
    gate.reached_by(1).await;
    assert_eq!(kit.update(&update).await, StatusCode::OK);
    gate.open();
    kit.shows("telegram:main:2000001", &["once"]).await;
    assert_eq!(kit.update(&update).await, StatusCode::OK);
}
