//! The main job, over the embedded DynamoDB, the local queues and a platform that says yes: a Telegram update becomes a
//! committed turn and one message in the chat.

#![expect(clippy::unwrap_used, reason = "helpers of these tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderMap;
use secrecy::SecretString;
use serde_json::{Value, json};
use turnlock_channels::http::{PlatformError, PlatformHttp, PlatformRequest, PlatformResponse};
use turnlock_channels::{IngressRequest, telegram};
use turnlock_clock::Clock;
use turnlock_config::{Config, DemoSecrets};
use turnlock_domain::event::OutboundEvent;
use turnlock_domain::session::SessionKey;
use turnlock_embedded::EmbeddedDynamoDb;
use turnlock_host::{Host, Ports, Response, queues};
use turnlock_models::{Router, Scripted, Wire};
use turnlock_queue::local::{LocalQueue, LocalQueues, Location};
use turnlock_store::Store;

/// The chat in which every call takes a minute.
const SLOW: i64 = 60;

/// A platform that accepts everything.
#[derive(Default)]
struct Accepting(Mutex<Vec<Value>>);

#[async_trait]
impl PlatformHttp for Accepting {
    async fn send(&self, request: PlatformRequest, _: Duration) -> Result<PlatformResponse, PlatformError> {
        let arguments: Value = serde_json::from_slice(&request.body).unwrap();
        if arguments["chat_id"] == SLOW {
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        let mut calls = self.0.lock().unwrap();
        calls.push(arguments);
        let body = json!({"ok": true, "result": {"message_id": calls.len()}});
        Ok(PlatformResponse { status: 200, headers: HeaderMap::new(), body: Bytes::from(body.to_string()) })
    }
}

fn config() -> Config {
    let secret = |text: &str| SecretString::from(text.to_owned());
    Config::demo(DemoSecrets {
        telegram_bot_token: secret("1:token"),
        telegram_secret_token: secret("telegram-secret"),
        slack_bot_token: secret("xoxb-token"),
        slack_signing_secret: secret("slack-secret"),
        webhook_secret: secret("whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"),
        gateway_key: secret("gateway-key"),
    })
}

struct Bench {
    host: Host,
    platform: Arc<Accepting>,
    model: Arc<Scripted>,
    outbound: Arc<LocalQueue>,
}

async fn bench() -> Bench {
    let clock = Clock::starting_at("2026-01-05T09:00:00Z".parse().unwrap());
    let store = Store::embedded(EmbeddedDynamoDb::memory().unwrap().http_client(), "turnlock", clock.clone(), 1);
    store.create_table().await.unwrap();
    let config = Arc::new(config());
    let queues = LocalQueues::open(&Location::Memory, clock.clone(), queues::settings(&config)).unwrap();
    let outbound = queues.queue(queues::OUTBOUND).unwrap();
    let (platform, model) = (Arc::new(Accepting::default()), Arc::new(Scripted::new(Wire::Neutral)));
    let ports = Ports {
        tools: Arc::new(turnlock_tools::builtin(&store)),
        store,
        queues,
        wrap: Box::new(|_, queue| queue),
        around: None,
        platforms: platform.clone(),
        models: Arc::new(Router::single(model.clone())),
        clock,
        config,
        open: true,
        seed: 7,
    };
    Bench { host: Host::new(ports).unwrap(), platform, model, outbound }
}

impl Bench {
    async fn telegram(&self, update: u64, text: &str) -> u16 {
        let body = json!({"update_id": update, "message": {"message_id": update, "date": 1_767_603_600,
            "chat": {"id": 1_000_001, "type": "private"}, "from": {"id": 1_000_001, "is_bot": false, "first_name": "Ann"},
            "text": text}});
        let headers = telegram::sign_headers(&SecretString::from("telegram-secret".to_owned()));
        self.answer(IngressRequest::post("/telegram/main", headers, body.to_string())).await.0
    }

    async fn answer(&self, request: IngressRequest) -> (u16, Value) {
        let Response::Full(response) = self.host.answer(request).await else { panic!("a stream") };
        (response.status, serde_json::from_slice(&response.body).unwrap_or_default())
    }

    /// Puts a final into the outbound queue.
    async fn says(&self, chat: i64, id: &str, text: &str) {
        let event: OutboundEvent = serde_json::from_value(json!({
            "event_id": id, "channel": "telegram", "chat_id": chat.to_string(), "caused_by": id, "turn": id,
            "content": [{"type": "text", "text": text}], "revision": {"fence": 1, "sequence": u32::MAX}}))
        .unwrap();
        turnlock_app::send::outbound(&*self.outbound, &event).await.unwrap();
    }

    async fn run(&self, seconds: u64) {
        let _ = tokio::time::timeout(Duration::from_secs(seconds), self.host.run()).await;
    }

    fn texts(&self) -> Vec<String> {
        let calls = self.platform.0.lock().unwrap();
        calls.iter().map(|call| call["text"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_telegram_update_becomes_a_committed_delivered_reply() {
    let bench = bench().await;
    assert_eq!(bench.telegram(1, "hello").await, 200);
    bench.run(10).await;
    assert_eq!(bench.texts(), ["hello"]);
    assert_eq!(bench.telegram(1, "hello").await, 200);
    assert_eq!(bench.telegram(2, "again").await, 200);
    bench.run(10).await;
    assert_eq!(bench.texts(), ["hello", "again"]);
    assert_eq!(bench.model.requests().len(), 2);
    let session = SessionKey::from_text("telegram:1000001");
    let turns = bench.host.store().history(&session, 0, 0).await.unwrap();
    assert_eq!(turns.iter().map(|turn| turn.messages.len()).collect::<Vec<_>>(), [2, 2]);
    let head = bench.host.store().head(&session).await.unwrap().unwrap();
    assert_eq!((head.owner, head.unfinished, head.fence), (None, None, 2));
}

/// A chat's next record does not wait for another chat that was received at the same moment.
#[tokio::test(start_paused = true)]
async fn a_slow_chat_holds_up_no_other() {
    let bench = bench().await;
    bench.says(SLOW, "s1.final", "slow").await;
    bench.says(5, "e1.final", "one").await;
    bench.run(1).await;
    bench.says(5, "e2.final", "two").await;
    bench.says(SLOW, "s2.final", "slower").await;
    bench.run(1).await;
    assert_eq!(bench.texts(), ["one", "two"]);
    bench.run(200).await;
    assert_eq!(bench.texts(), ["one", "two", "slow", "slower"], "in order within the slow chat");
}

#[tokio::test(start_paused = true)]
async fn an_api_message_is_answered_and_its_event_can_be_read() {
    let bench = bench().await;
    let request = IngressRequest::post("/v1/messages", HeaderMap::new(), json!({"text": "hi"}).to_string());
    let (status, accepted) = bench.answer(request).await;
    assert_eq!(status, 202, "{accepted}");
    bench.run(10).await;
    let path = format!("/v1/events/{}", accepted["event_id"].as_str().unwrap());
    let request = IngressRequest { method: http::Method::GET, ..IngressRequest::post(path, HeaderMap::new(), "") };
    let (status, event) = bench.answer(request).await;
    assert_eq!(
        (status, event["status"].as_str(), event["message"]["text"].as_str()),
        (200, Some("done"), Some("hi")),
        "{event}"
    );
}

#[tokio::test(start_paused = true)]
async fn commands_answer_and_a_reset_begins_a_new_generation() {
    let bench = bench().await;
    for (update, text) in [(1, "hello"), (2, "/status"), (3, "/help"), (4, "/stop"), (5, "/new"), (6, "again")] {
        assert_eq!(bench.telegram(update, text).await, 200);
        bench.run(10).await;
    }
    let texts = bench.texts();
    assert_eq!(texts.len(), 6, "{texts:?}");
    assert_eq!(texts[1], "I am waiting for your next message. This conversation has 2 messages.");
    assert_eq!(texts[3], "Nothing is running.");
    assert_eq!(texts[4], "This is a new conversation. What can I do for you?");
    assert_eq!(texts[5], "again");
    let head = bench.host.store().head(&SessionKey::from_text("telegram:1000001")).await.unwrap().unwrap();
    assert_eq!((head.generation, head.message_count), (1, 2));
}
