//! A table, a job queue with its workers, a model that plays scripts, and one session.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use turnlock_clock::Clock;
use turnlock_domain::commit::{Draft, Written};
use turnlock_domain::envelope::Position;
use turnlock_domain::ids::EventId;
use turnlock_domain::message::Message;
use turnlock_domain::session::SessionKey;
use turnlock_domain::turn::{Job, JobTarget, Outcome, Usage};
use turnlock_embedded::EmbeddedDynamoDb;
use turnlock_models::{RecordedRequest, Router, ScriptLine, Scripted, Wire};
use turnlock_queue::local::{LocalQueue, LocalQueues, Location, QueueSettings};
use turnlock_queue::pool::{WorkerPool, handler};
use turnlock_queue::{Queue, Record};
use turnlock_store::Store;
use turnlock_store::memory::{Episode, Fact};
use turnlock_store::sessions::{Acquire, Acquired, Head, HeadChange};

use crate::jobs::Jobs;
use crate::send;
use crate::turn::Handled;

pub(super) const SCOPE: &str = "chat:telegram:1";

pub(super) struct Bench {
    pub(super) store: Store,
    pub(super) model: Arc<Scripted>,
    queues: LocalQueues,
    pub(super) jobs: Jobs,
}

pub(super) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn session() -> SessionKey {
    SessionKey::new("telegram", "main", "1", None)
}

/// `turns` turns, each with its own user text.
pub(super) fn conversation(turns: usize) -> Vec<Message> {
    (0..turns)
        .flat_map(|n| [Message::user(format!("The colour of box b{n} is c{n}.")), Message::assistant("Noted.")])
        .collect()
}

impl Bench {
    pub(super) async fn new() -> Self {
        Self::with_model(Scripted::new(Wire::Neutral)).await
    }

    pub(super) async fn with_model(model: Scripted) -> Self {
        let bench = Self::without_table(model);
        bench.store.create_table().await.expect("a table");
        bench
    }

    /// A store that cannot be reached until its table is made.
    pub(super) fn without_table(model: Scripted) -> Self {
        let clock = Clock::starting_at("2026-01-05T09:00:00Z".parse().expect("a time"));
        let database = EmbeddedDynamoDb::memory().expect("a database");
        let store = Store::embedded(database.http_client(), "turnlock", clock.clone(), 1);
        let settings = vec![QueueSettings::standard("jobs"), QueueSettings::standard("dead")];
        let queues = LocalQueues::open(&Location::Memory, clock, settings).expect("queues");
        let model = Arc::new(model);
        let dead_letters = queues.queue("dead").expect("the dead letters");
        let models = Arc::new(Router::single(model.clone()));
        let jobs = Jobs { store: store.clone(), models, dead_letters, daily_cost: None };
        Self { store, model, queues, jobs }
    }

    pub(super) async fn with_session(messages: &[Message]) -> Self {
        let bench = Self::new().await;
        bench.seed(0, messages).await;
        bench
    }

    pub(super) async fn seed(&self, boundary: u64, messages: &[Message]) {
        self.store.seed_session(&session(), 0, boundary, messages).await.expect("seeded");
    }

    pub(super) fn dead_letters(&self) -> Arc<LocalQueue> {
        self.queues.queue("dead").expect("the queue")
    }

    pub(super) fn queue(&self) -> Arc<LocalQueue> {
        self.queues.queue("jobs").expect("the queue")
    }

    /// One turn through the store's own commit.
    pub(super) async fn turn(&self, id: &str, messages: Vec<Message>, outcome: Outcome) {
        let event = EventId::derive("telegram", &["1", id]);
        let (session, now) = (session(), self.store.clock().now_ms());
        let want = Acquire {
            session: &session,
            event: &event,
            accepted_at: now,
            position: &Position::new(now, "1"),
            route: "{}",
            owner: id,
            lease: seconds(60),
            dead_letter: false,
        };
        let Acquired::Mine(lock, head) = self.store.acquire(&want).await.expect("acquires") else {
            panic!("the session is free")
        };
        let reset = outcome == Outcome::Reset;
        let draft = Draft {
            event_id: event,
            session: session.clone(),
            generation: head.generation + u32::from(reset),
            fence: lock.fence,
            first: if reset { 0 } else { head.message_count },
            messages,
            outcome,
            usage: Usage::default(),
            calls: Vec::new(),
            owed: Vec::new(),
            merged: Vec::new(),
            at: now,
        };
        let written = self.store.commit(&draft, &lock, None, &HeadChange::default()).await.expect("commits");
        assert!(matches!(written, Written::Committed), "{written:?}");
    }

    pub(super) async fn send(&self, job: &Job) {
        send::job(&*self.queue(), job, None).await.expect("sent");
    }

    /// Sends the consolidation of the session from `from`.
    pub(super) async fn owe(&self, from: u64) {
        self.send(&Job::Consolidate(target(from))).await;
    }

    /// Two workers drain the queue for `time`.
    pub(super) async fn work(&self, time: Duration) {
        let (jobs, queue) = (self.jobs.clone(), self.queue());
        let worker = handler(move |batch: Vec<Record>| {
            let (jobs, queue) = (jobs.clone(), queue.clone());
            async move {
                let mut unfinished = Vec::new();
                for record in &batch {
                    if jobs.handle(&*queue, record).await != Handled::Done {
                        unfinished.push(record.message_id.clone());
                    }
                }
                unfinished
            }
        });
        let pool = WorkerPool::new(self.queue(), 2, 1, worker);
        assert!(timeout(time, pool.run()).await.is_err(), "the pool runs until it is dropped");
    }

    pub(super) async fn is_drained(&self) -> bool {
        let queue = self.queue();
        queue.waiting().await.expect("asked") == 0 && queue.in_flight().expect("asked") == 0
    }

    pub(super) fn script(&self, line: Value) {
        self.model.push(serde_json::from_value::<ScriptLine>(line).expect("a line"));
    }

    /// The model's requests as JSON text.
    pub(super) fn requests(&self) -> Vec<String> {
        self.model.requests().iter().map(|request: &RecordedRequest| request.request.to_string()).collect()
    }

    pub(super) async fn head(&self) -> Head {
        self.store.head(&session()).await.expect("read").expect("a head")
    }

    pub(super) async fn facts(&self) -> Vec<Fact> {
        self.store.facts(SCOPE, 500).await.expect("facts")
    }

    pub(super) async fn episodes(&self) -> Vec<Episode> {
        self.store.episodes(SCOPE, 50).await.expect("episodes")
    }

    /// The texts that a search finds.
    pub(super) async fn recalled(&self, query: &str) -> Vec<String> {
        let found = self.store.recall(SCOPE, query, 5).await.expect("searched");
        found.iter().map(|found| found.text().to_owned()).collect()
    }
}

pub(super) fn target(from: u64) -> JobTarget {
    JobTarget {
        session: session(),
        generation: 0,
        from,
        scope: SCOPE.to_owned(),
        event_id: EventId::derive("telegram", &["1", "owes"]),
    }
}

/// A script line that saves one fact after `wait` seconds.
pub(super) fn saving(purpose: &str, wait: u64, key: &str, text: &str) -> Value {
    let input = json!({ "summary": format!("About {key}."), "facts": [{ "key": key, "text": text }] });
    json!({ "for": purpose, "chunks": [{ "wait": wait }], "tools": [{ "name": "save_memory", "input": input }] })
}
