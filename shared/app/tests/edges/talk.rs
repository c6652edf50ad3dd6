//! A chat with an agent whose model plays a script and whose tools note when they ran.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use turnlock_app::policy::Policy;
use turnlock_app::send;
use turnlock_app::settings::AgentSettings;
use turnlock_app::turn::{Agent, Handled};
use turnlock_config::Config;
use turnlock_domain::envelope::{Envelope, Position};
use turnlock_domain::event::{MessageKind, OutboundEvent};
use turnlock_domain::ids::EventId;
use turnlock_domain::message::Block;
use turnlock_domain::session::SessionKey;
use turnlock_domain::turn::Outcome;
use turnlock_models::scripted::ScriptLine;
use turnlock_models::wire::Wire;
use turnlock_models::{Router, Scripted};
use turnlock_queue::{Queue, Receipt};
use turnlock_store::approvals::{Approval, Decided, Decision, Verdict};
use turnlock_store::history::StoredTurn;
use turnlock_store::sessions::Head;
use turnlock_store::steer::{SteerText, Steered};
use turnlock_tools::{Registry, Risk, ToolContext, ToolError, ToolHandler, ToolInfo, ToolOutput, ToolSpec};

use crate::kit::Kit;

/// How long one invocation lasts.
pub(crate) const INVOCATION: Duration = Duration::from_secs(300);

/// The chat `telegram:5`.
pub(crate) struct Talk {
    pub(crate) kit: Kit,
    pub(crate) agent: Agent,
    pub(crate) model: Arc<Scripted>,
    pub(crate) ran: Arc<Ran>,
}

/// What the tools did.
#[derive(Default)]
pub(crate) struct Ran {
    calls: Mutex<Vec<(String, Instant, Instant)>>,
    next: Mutex<VecDeque<BoxFuture<'static, ()>>>,
}

impl Ran {
    /// The calls that came to an end, as `tool input`, in the order in which they started.
    pub(crate) fn calls(&self) -> Vec<String> {
        let mut calls = self.calls.lock().unwrap().clone();
        calls.sort_by_key(|(_, started, _)| *started);
        calls.into_iter().map(|(call, ..)| call).collect()
    }

    /// How many ran at once, at the most.
    pub(crate) fn most_at_once(&self) -> usize {
        let calls = self.calls.lock().unwrap().clone();
        let beside = |at: Instant| calls.iter().filter(|(_, start, end)| *start <= at && at < *end).count();
        calls.iter().map(|(_, start, _)| beside(*start)).max().unwrap_or_default()
    }

    /// Does this in the middle of the next call.
    pub(crate) fn during_the_next(&self, what: impl Future<Output = ()> + Send + 'static) {
        self.next.lock().unwrap().push_back(Box::pin(what));
    }
}

struct Noting {
    name: String,
    takes: Duration,
    ran: Arc<Ran>,
}

#[async_trait]
impl ToolHandler for Noting {
    async fn call(&self, input: Value, _context: ToolContext) -> Result<ToolOutput, ToolError> {
        let started = Instant::now();
        let seconds = input["seconds"].as_u64().map_or(self.takes, Duration::from_secs);
        sleep(seconds).await;
        let next = self.ran.next.lock().unwrap().pop_front();
        if let Some(next) = next {
            next.await;
        }
        let call = format!("{} {}", self.name, input["n"]);
        self.ran.calls.lock().unwrap().push((call.clone(), started, Instant::now()));
        Ok(ToolOutput::text(format!("did {call}")))
    }
}

/// An agent's settings with this configuration on top.
pub(crate) fn policy(toml: &str) -> Policy {
    Policy::from_config(&Config::parse(toml, &|_| None).unwrap())
}

/// The tools of these names, which note in `ran` when they ran.
pub(crate) fn tools(ran: &Arc<Ran>, names: &[&str]) -> Arc<Registry> {
    let mut tools = Registry::default();
    let all = [("look", Risk::Read, true), ("note", Risk::Write, false), ("pay", Risk::Execute, false)];
    for (name, risk, keyed) in all.into_iter().filter(|(name, ..)| names.contains(name)) {
        let spec = ToolSpec { name: name.to_owned(), description: String::new(), schema: json!({ "type": "object" }) };
        let info = ToolInfo { spec, risk, keyed, timeout: Duration::from_secs(120), foreign: false };
        let takes = Duration::from_secs(1);
        tools.register_handler(info, Arc::new(Noting { name: name.to_owned(), takes, ran: ran.clone() }));
    }
    Arc::new(tools)
}

impl Talk {
    /// The tools: `look` reads, `note` writes, `pay` is asked for; none of the last two may run twice.
    pub(crate) async fn new() -> Self {
        let (kit, ran) = (Kit::new().await, Arc::new(Ran::default()));
        let model = Arc::new(Scripted::new(Wire::Neutral));
        let tools = tools(&ran, &["look", "note", "pay"]);
        let models = Arc::new(Router::single(model.clone()));
        let jobs = || kit.jobs.clone();
        let agent = Agent { models, tools, consolidate: jobs(), review: jobs(), ..kit.agent() };
        Self { kit, agent, model, ran }
    }

    /// Changes the agent's settings.
    pub(crate) fn set(&mut self, change: impl FnOnce(&mut AgentSettings)) {
        let mut settings = (*self.agent.settings).clone();
        change(&mut settings);
        self.agent.settings = Arc::new(settings);
    }

    /// The model asks for these calls next: `(tool, input)`.
    pub(crate) fn model_calls(&self, calls: &[(&str, Value)]) {
        let calls: Vec<Value> = calls.iter().map(|(name, input)| json!({ "name": name, "input": input })).collect();
        self.model.push(serde_json::from_value::<ScriptLine>(json!({ "tools": calls })).unwrap());
    }

    /// The model says this next.
    pub(crate) fn model_says(&self, text: &str) {
        self.model.push(ScriptLine::text(text));
    }

    pub(crate) fn envelope(&self, id: &str, text: &str) -> Envelope {
        let now = self.kit.clock.now_ms();
        let number: u32 = id.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
        serde_json::from_value(json!({
            "event": { "event_id": id, "event_type": "message", "channel": "telegram", "chat_id": "5", "sender_id": "7",
                "timestamp": "2026-01-05T09:00:00Z", "content": [{ "type": "text", "text": text }] },
            "accepted_at": now, "position": place(number),
        }))
        .unwrap()
    }

    /// Somebody says this; `id` ends in its place in the chat.
    pub(crate) async fn hears(&self, id: &str, text: &str) {
        send::inbound(&*self.kit.inbound, &self.envelope(id, text)).await.unwrap();
    }

    /// Takes the turn of what can be received now; nothing if nothing can.
    pub(crate) async fn take(&self) -> Option<Handled> {
        self.take_within(INVOCATION).await
    }

    /// The same in an invocation of this length.
    pub(crate) async fn take_within(&self, time: Duration) -> Option<Handled> {
        let record = self.kit.inbound.receive(1).unwrap().pop()?;
        let handled = self.agent.handle(&record, Instant::now() + time).await;
        if handled == Handled::Done {
            self.kit.inbound.delete(&record.receipt).unwrap();
        }
        Some(handled)
    }

    /// Takes what can be received, waiting for what comes again, until nothing is left; how often something was received.
    pub(crate) async fn settle(&self) -> usize {
        let mut receives = 0;
        while let Some(due) = self.kit.inbound.next_due().unwrap() {
            sleep(due.since(self.kit.clock.now_ms()) + Duration::from_millis(1)).await;
            receives += usize::from(self.take().await.is_some());
            assert!(receives < 1000, "it never settles");
        }
        receives
    }

    pub(crate) fn session(&self) -> SessionKey {
        SessionKey::new("telegram", "main", "5", None)
    }

    pub(crate) async fn head(&self) -> Head {
        self.kit.store.head(&self.session()).await.unwrap().unwrap()
    }

    /// What the parked turn asks for.
    pub(crate) async fn asked(&self) -> Approval {
        let ask = self.head().await.ask.unwrap();
        self.kit.store.approval(&ask.id).await.unwrap().unwrap()
    }

    /// Decides, and wakes the turn as control does.
    pub(crate) async fn decide(&self, verdict: Verdict) {
        let decision = Decision { verdict, by: "telegram:7".to_owned(), at: self.kit.clock.now_ms(), command: None };
        let decided = self.kit.store.decide(&self.asked().await, &decision).await.unwrap();
        let Decided::Stored(head) = decided else { panic!("{decided:?}") };
        self.wake(&head).await;
    }

    /// Stops what was sent before the place `before`, and wakes the turn.
    pub(crate) async fn stop(&self, before: u32) {
        let head = self.kit.store.stop(&self.session(), &place(before)).await.unwrap();
        self.wake(&head).await;
    }

    async fn wake(&self, head: &Head) {
        if let (None, Some(receipt)) = (&head.owner, &head.receipt) {
            // It may be awake already.
            drop(self.kit.inbound.wake(&Receipt(receipt.clone())).await);
        }
    }

    /// What was sent to the chat since the last time: frames are left out.
    pub(crate) fn sent(&self) -> Vec<OutboundEvent> {
        let mut sent = Vec::new();
        loop {
            let batch = self.kit.batch();
            if batch.is_empty() {
                return sent;
            }
            for record in batch {
                self.kit.outbound.delete(&record.receipt).unwrap();
                let event: OutboundEvent = serde_json::from_str(&record.body).unwrap();
                if !matches!(event.message_kind, MessageKind::Streaming | MessageKind::Progress) {
                    sent.push(event);
                }
            }
        }
    }

    pub(crate) async fn outcome(&self, id: &str) -> Option<Outcome> {
        let marker = self.kit.store.marker(&EventId::from_stored(id)).await.unwrap();
        marker.map(|marker| marker.outcome().clone())
    }

    pub(crate) async fn history(&self) -> Vec<StoredTurn> {
        self.kit.store.history(&self.session(), 0, 0).await.unwrap()
    }

    /// The texts of the results in a turn of the history, in order.
    pub(crate) async fn results(&self, turn: usize) -> Vec<String> {
        let history = self.history().await;
        let blocks = history[turn].messages.iter().flat_map(|message| &message.content);
        let results = blocks.filter_map(|block| match block {
            Block::ToolResult { content, .. } => Some(content),
            _ => None,
        });
        results
            .map(|content| match &content[0] {
                Block::Text { text } => text.clone(),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    /// What the model was asked, the nth time; every request was valid.
    pub(crate) fn request(&self, nth: usize) -> String {
        let requests = self.model.requests();
        assert!(requests.iter().all(|request| request.problems.is_empty()), "{requests:#?}");
        requests[nth].request.to_string()
    }
}

/// The place of the `n`th message.
pub(crate) fn place(n: u32) -> Position {
    Position::new(turnlock_domain::time::Millis(1_767_603_600_000), &n.to_string())
}

/// The text of the event `id` for a turn that runs, as control adds it.
pub(crate) async fn steer(store: &turnlock_store::Store, envelope: &Envelope) -> Steered {
    let text = SteerText {
        position: envelope.position.clone(),
        event_id: envelope.event.event_id.clone(),
        by: envelope.event.person(),
        text: envelope.event.text(),
    };
    store.steer(&envelope.event.session_key(), &text).await.unwrap()
}
