//! One process's worth of real parts, and the platform stub.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderMap;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::time::Instant;
use turnlock_app::admit::{Admission, Depth};
use turnlock_app::control::Control;
use turnlock_app::deliver::observers::Observer;
use turnlock_app::deliver::{BATCH_TIME, Delivery, ReplyRoute};
use turnlock_app::pairing::Pairings;
use turnlock_app::policy::Policy;
use turnlock_app::send;
use turnlock_app::settings::{AgentSettings, Limits};
use turnlock_app::turn::Agent;
use turnlock_app::words::Language;
use turnlock_channels::http::{PlatformError, PlatformHttp, PlatformRequest, PlatformResponse};
use turnlock_channels::{Outbound, slack, telegram};
use turnlock_clock::Clock;
use turnlock_domain::event::{Channel, OutboundEvent};
use turnlock_domain::rate::Rate;
use turnlock_embedded::EmbeddedDynamoDb;
use turnlock_models::{Router, Scripted};
use turnlock_queue::Record;
use turnlock_queue::local::{LocalQueue, LocalQueues, Location, QueueSettings};
use turnlock_store::Store;

/// Store, queues and platform of one process.
pub(crate) struct Kit {
    pub(crate) clock: Clock,
    pub(crate) store: Store,
    pub(crate) inbound: Arc<LocalQueue>,
    pub(crate) control: Arc<LocalQueue>,
    pub(crate) outbound: Arc<LocalQueue>,
    pub(crate) jobs: Arc<LocalQueue>,
    pub(crate) platform: Arc<Platform>,
}

impl Kit {
    pub(crate) async fn new() -> Self {
        Self::with_capacity(1000).await
    }

    /// As [`Kit::new`], with room for so many waiting events.
    pub(crate) async fn with_capacity(capacity: usize) -> Self {
        let clock = Clock::starting_at("2026-01-05T09:00:00Z".parse().unwrap());
        let database = EmbeddedDynamoDb::memory().unwrap();
        let store = Store::embedded(database.http_client(), "turnlock", clock.clone(), 1);
        store.create_table().await.unwrap();
        let inbound = QueueSettings { capacity, ..QueueSettings::fifo("inbound") };
        let fifo = QueueSettings::fifo;
        let settings = vec![inbound, fifo("control"), fifo("outbound"), QueueSettings::standard("jobs")];
        let queues = LocalQueues::open(&Location::Memory, clock.clone(), settings).unwrap();
        let queue = |name| queues.queue(name).unwrap();
        Self {
            store,
            inbound: queue("inbound"),
            control: queue("control"),
            outbound: queue("outbound"),
            jobs: queue("jobs"),
            platform: Arc::new(Platform::default()),
            clock,
        }
    }

    pub(crate) fn admission(&self, rate: Rate, queue_limit: u64) -> Arc<Admission> {
        Arc::new(Admission {
            store: self.store.clone(),
            inbound: self.inbound.clone(),
            control: self.control.clone(),
            outbound: self.outbound.clone(),
            rate,
            queue_limit,
            steered: BTreeSet::new(),
            language: Language::English,
            clock: self.clock.clone(),
            depth: Depth::default(),
            pairings: Pairings::default(),
        })
    }

    pub(crate) fn control(&self, store: &Store) -> Control {
        Control {
            store: store.clone(),
            control: self.control.clone(),
            inbound: self.inbound.clone(),
            dead_letters: self.inbound.clone(),
            outbound: self.outbound.clone(),
            settings: settings(),
        }
    }

    /// An agent whose derived work goes nowhere.
    pub(crate) fn agent(&self) -> Agent {
        Agent {
            store: self.store.clone(),
            inbound: self.inbound.clone(),
            dead_letters: self.inbound.clone(),
            outbound: self.outbound.clone(),
            consolidate: self.inbound.clone(),
            review: self.inbound.clone(),
            models: Arc::new(Router::single(Arc::new(Scripted::stand_in()))),
            tools: Arc::default(),
            files: Arc::default(),
            settings: settings(),
        }
    }

    pub(crate) fn delivery(&self) -> Delivery {
        self.delivery_with(Vec::new())
    }

    pub(crate) fn delivery_with(&self, observers: Vec<Arc<dyn Observer>>) -> Delivery {
        let http: Arc<dyn PlatformHttp> = self.platform.clone();
        let token = || SecretString::from("1:token");
        let channels = Outbound::new()
            .with_telegram(telegram::Client::new(Arc::clone(&http), "main", token(), "http://telegram.invalid"))
            .with_slack(slack::Client::new(http, "main", token(), "http://slack.invalid"));
        let route = ReplyRoute {
            channel: turnlock_domain::event::Channel::Telegram,
            account: "main".to_owned(),
            chat: "77".to_owned(),
            thread: None,
        };
        Delivery {
            store: self.store.clone(),
            outbound: self.outbound.clone(),
            channels: Arc::new(channels),
            clock: self.clock.clone(),
            observers,
            reply_routes: BTreeMap::from([((Channel::Webhook, "alerts".to_owned()), route)]),
            language: Language::English,
        }
    }

    /// Sends events to the outbound queue.
    pub(crate) async fn send(&self, events: &[&OutboundEvent]) {
        for event in events {
            send::outbound(&*self.outbound, event).await.unwrap();
        }
    }

    /// What can be received of the outbound queue now.
    pub(crate) fn batch(&self) -> Vec<Record> {
        self.outbound.receive(10).unwrap()
    }

    /// Delivers what comes for so long, one record at a time, as every host does.
    pub(crate) async fn deliver_one_by_one(&self, delivery: &Delivery, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            let batch = self.outbound.receive(1).unwrap();
            let unfinished = delivery.handle(batch.clone(), invocation()).await;
            for record in batch.iter().filter(|record| !unfinished.contains(&record.message_id)) {
                self.outbound.delete(&record.receipt).unwrap();
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Delivers one batch and deletes what is done, as an event source mapping does; returns how many come again.
    pub(crate) async fn deliver(&self, delivery: &Delivery) -> usize {
        self.deliver_within(delivery, BATCH_TIME).await
    }

    /// The same in an invocation that ends after `time`.
    pub(crate) async fn deliver_within(&self, delivery: &Delivery, time: Duration) -> usize {
        let batch = self.batch();
        let unfinished = delivery.handle(batch.clone(), Instant::now() + time).await;
        for record in batch.iter().filter(|record| !unfinished.contains(&record.message_id)) {
            self.outbound.delete(&record.receipt).unwrap();
        }
        unfinished.len()
    }

    /// Delivers until nothing is left, waiting for what has to; at most ten minutes.
    pub(crate) async fn drain(&self, delivery: &Delivery) {
        for _ in 0..6000 {
            self.deliver(delivery).await;
            if self.outbound.next_due().unwrap().is_none() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the outbound queue is never empty");
    }

    /// The texts of the notices that wait to be delivered, in order.
    pub(crate) fn notices(&self) -> Vec<String> {
        let events = self.outbound.receive(10).unwrap().into_iter().map(|record| {
            let event: OutboundEvent = serde_json::from_str(&record.body).unwrap();
            self.outbound.delete(&record.receipt).unwrap();
            event.text()
        });
        events.collect()
    }
}

/// When an invocation ends that begins now.
pub(crate) fn invocation() -> Instant {
    Instant::now() + BATCH_TIME
}

fn settings() -> Arc<AgentSettings> {
    Arc::new(AgentSettings {
        name: "Echo".to_owned(),
        language: Language::English,
        instructions: String::new(),
        unstreamed: BTreeSet::new(),
        intro: BTreeMap::new(),
        policy: Policy::default(),
        limits: Limits {
            turn: Duration::from_secs(300),
            max_wait: Duration::from_secs(3600),
            attempts: 5,
            lease: Duration::from_secs(60),
            queue: 1000,
            consolidate_after: 50,
            frame_interval: Duration::from_secs(1),
            daily_cost: None,
        },
    })
}

/// An outbound event as JSON says it, over a final to a Telegram chat.
pub(crate) fn event(changes: Value) -> OutboundEvent {
    let mut event = json!({
        "event_id": "e1.final", "channel": "telegram", "chat_id": "5", "caused_by": "e1", "turn": "e1",
        "content": [{ "type": "text", "text": "Hello." }],
        "revision": { "fence": 1, "sequence": u32::MAX },
    });
    event.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    serde_json::from_value(event).unwrap()
}

/// An event called `id` that says `text`.
pub(crate) fn says(id: &str, text: &str) -> OutboundEvent {
    event(json!({ "event_id": id, "content": [{ "type": "text", "text": text }] }))
}

/// A frame of the turn `e1` that says `text` so far.
pub(crate) fn frame(sequence: u32, text: &str) -> OutboundEvent {
    event(json!({
        "event_id": format!("e1.frame.1.{sequence}"), "message_kind": "streaming", "is_final": false,
        "content": [{ "type": "text", "text": text }], "revision": { "fence": 1, "sequence": sequence },
    }))
}

/// What the platform does with a call.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// It carries it out.
    Done,
    /// It carries it out after this time; the caller's own patience is not looked at, as when its process sleeps.
    DoneAfter(Duration),
    /// It carries it out, and the answer is lost.
    Lost,
    /// It is not reached.
    Unreachable,
    /// It refuses, with this body.
    Refuse(u16, Value),
}

/// A Telegram refusal.
pub(crate) fn refuse(code: u16, description: &str, parameters: Value) -> Answer {
    let body = json!({ "ok": false, "error_code": code, "description": description, "parameters": parameters });
    Answer::Refuse(code, body)
}

/// A call as it was made.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) arguments: Value,
    pub(crate) at: Instant,
}

/// A platform that answers by a script, and by its rules when the script is over.
#[derive(Default)]
pub(crate) struct Platform {
    script: Mutex<VecDeque<Answer>>,
    calls: Mutex<Vec<Call>>,
    /// By chat and message: every chat counts its own.
    shown: Mutex<BTreeMap<(String, String), String>>,
}

impl Platform {
    /// The answers to the next calls.
    pub(crate) fn answers(&self, answers: impl IntoIterator<Item = Answer>) {
        self.script.lock().unwrap().extend(answers);
    }

    /// The methods that were called so far.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.calls().into_iter().map(|call| call.method).collect()
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// What the reader of `chat` sees, in order.
    pub(crate) fn chat(&self, chat: &str) -> Vec<String> {
        let shown = self.shown.lock().unwrap();
        shown.iter().filter(|((of, _), _)| of == chat).map(|(_, text)| text.clone()).collect()
    }

    /// Puts a message of ours into a chat.
    pub(crate) fn show(&self, chat: &str, message: i64, text: &str) {
        self.shown.lock().unwrap().insert((chat.to_owned(), key(message)), text.to_owned());
    }

    /// Carries a call out: the message's number.
    fn apply(&self, call: &Call) -> i64 {
        let mut shown = self.shown.lock().unwrap();
        let text = |name: &str| match &call.arguments[name] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let chat = if call.arguments.get("chat_id").is_some() { text("chat_id") } else { text("channel") };
        let known = call.arguments.get("message_id").or(call.arguments.get("ts"));
        let known = known.and_then(|id| id.as_i64().or_else(|| id.as_str()?.parse().ok()));
        let there = shown.keys().filter(|(of, _)| *of == chat).count();
        let message = known.unwrap_or_else(|| 100 + i64::try_from(there).unwrap());
        match call.method.as_str() {
            "deleteMessage" | "chat.delete" => drop(shown.remove(&(chat, key(message)))),
            "sendChatAction" => {}
            _ => drop(shown.insert((chat, key(message)), text("text"))),
        }
        message
    }
}

fn key(message: i64) -> String {
    format!("{message:012}")
}

#[async_trait]
impl PlatformHttp for Platform {
    async fn send(&self, request: PlatformRequest, _timeout: Duration) -> Result<PlatformResponse, PlatformError> {
        let arguments = serde_json::from_slice(&request.body).unwrap();
        let call = Call { method: request.method, arguments, at: Instant::now() };
        self.calls.lock().unwrap().push(call.clone());
        let answer = self.script.lock().unwrap().pop_front().unwrap_or(Answer::Done);
        let message = match answer {
            Answer::Done => self.apply(&call),
            Answer::DoneAfter(time) => {
                tokio::time::sleep(time).await;
                self.apply(&call)
            }
            Answer::Lost => {
                self.apply(&call);
                return Err(PlatformError::AnswerLost("lost".into()));
            }
            Answer::Unreachable => return Err(PlatformError::Unreachable("refused".into())),
            Answer::Refuse(status, body) => return Ok(response(status, &body)),
        };
        Ok(response(200, &json!({ "ok": true, "result": { "message_id": message }, "ts": message.to_string() })))
    }
}

fn response(status: u16, body: &Value) -> PlatformResponse {
    PlatformResponse { status, headers: HeaderMap::new(), body: Bytes::from(body.to_string()) }
}
