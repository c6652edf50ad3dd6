//! The agent's handler as the one-process host runs it, over a store and queues of its own, and rounds of plain turns
//! through it.
//!
//! A [`Chat`] is a session of a given length that has lived for a while: long-term memory has taken in all but the last
//! turns, there is a memory snapshot, and it is fresh. A [`Round`] is what is measured: the turns of several chats at
//! once, each chat's one after the other, from the received record to the last enqueue. What belongs to others is done
//! between the rounds: sending and receiving the records, deleting them, draining what the turns have sent, and moving
//! the boundary, so that however long it goes on, every turn sees as much history and no consolidation falls due.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use jiff::Timestamp;
use serde_json::Map;
use tokio::task::JoinSet;
use turnlock_app::send;
use turnlock_app::settings::AgentSettings;
use turnlock_app::turn::{Agent, Handled, scope};
use turnlock_clock::Clock;
use turnlock_config::Config;
use turnlock_domain::envelope::{Envelope, Position};
use turnlock_domain::event::{Channel, ContentBlock, EventType, InboundEvent, SCHEMA};
use turnlock_domain::ids::EventId;
use turnlock_domain::message::Message;
use turnlock_domain::session::{DEFAULT_ACCOUNT, SessionKey};
use turnlock_embedded::EmbeddedDynamoDb;
use turnlock_host::queues;
use turnlock_models::{Router, Scripted};
use turnlock_queue::local::{LocalQueue, LocalQueues, Location};
use turnlock_queue::{MAX_BATCH, Record};
use turnlock_store::Store;
use turnlock_store::consolidation::{Claim, ClaimStart, Finished};
use turnlock_store::memory::{Episode, Evidence, Fact};

use crate::counting::{Counter, Counts};
use crate::processor;

/// How many turns a chat makes in a round: as many records as one receive gives.
pub const TURNS: usize = MAX_BATCH;
/// How many messages a consolidation leaves behind the boundary: the last three turns.
const KEPT: u64 = 6;
/// How long one invocation of the handler may take.
const INVOCATION: Duration = Duration::from_secs(300);
/// What people write, about as long as people's messages are.
const QUESTION: &str = "Could you move the meeting with the Berlin office to Thursday at ten, and tell Mia?";
const ANSWER: &str = "Done: the meeting with the Berlin office is on Thursday at ten now. I have written to Mia, and she \
                      has accepted. Shall I move the call that follows it, too?";

/// The agent's handler and what it works on.
pub struct Rig {
    agent: Arc<Agent>,
    inbound: Arc<LocalQueue>,
    outbound: Arc<LocalQueue>,
    counter: Counter,
    numbers: AtomicU64,
}

/// A session that rounds are made with.
#[derive(Debug)]
pub struct Chat {
    id: String,
    session: SessionKey,
    messages: u64,
    boundary: u64,
}

/// What one round of turns came to.
#[derive(Debug, Clone)]
pub struct Round {
    /// How many turns there were.
    pub turns: u64,
    /// From the first record's handling to the last enqueue.
    pub wall: Duration,
    /// What this process used of the processors meanwhile.
    pub processor: Duration,
    /// The requests meanwhile.
    pub counts: Counts,
}

impl Rig {
    /// A rig over files in `directory`, as the one-process host works.
    ///
    /// # Errors
    /// What keeps the store or the queues from being opened.
    pub async fn over_files(directory: &Path) -> anyhow::Result<Self> {
        let database = EmbeddedDynamoDb::file(&directory.join("store.db"))?;
        Self::over(&database, &Location::File(directory.join("queues.db"))).await
    }

    /// A rig in memory: for counting.
    ///
    /// # Errors
    /// What keeps the store or the queues from being opened.
    pub async fn in_memory() -> anyhow::Result<Self> {
        Self::over(&EmbeddedDynamoDb::memory()?, &Location::Memory).await
    }

    async fn over(database: &EmbeddedDynamoDb, location: &Location) -> anyhow::Result<Self> {
        let (clock, config, counter) = (Clock::system(), Config::default(), Counter::default());
        let store = Store::embedded(counter.store(database.http_client()), "turnlock", clock.clone(), 1);
        store.create_table().await?;
        let local = LocalQueues::open(location, clock, queues::settings(&config))?;
        let queue = |name: &str| Ok::<_, anyhow::Error>(counter.queue(local.queue(name)?));
        let agent = Agent {
            inbound: queue(queues::INBOUND)?,
            dead_letters: queue(queues::DEAD_LETTER)?,
            outbound: queue(queues::OUTBOUND)?,
            consolidate: queue(queues::CONSOLIDATE)?,
            review: queue(queues::REVIEW)?,
            models: Arc::new(Router::single(Arc::new(Scripted::stand_in()))),
            tools: Arc::new(turnlock_tools::builtin(&store)),
            files: Arc::default(),
            settings: Arc::new(AgentSettings::from_config(&config)),
            store,
        };
        let (inbound, outbound) = (local.queue(queues::INBOUND)?, local.queue(queues::OUTBOUND)?);
        Ok(Self { agent: Arc::new(agent), inbound, outbound, counter, numbers: AtomicU64::new(1) })
    }

    /// Puts a session of `messages` messages into the store and makes a first turn in it, which builds its snapshot.
    ///
    /// # Errors
    /// Those of the store and of the turn.
    pub async fn chat(&self, messages: u64) -> anyhow::Result<Chat> {
        let id = self.number().to_string();
        let session = self.event(&id).session_key();
        let boundary = messages.saturating_sub(KEPT);
        let history: Vec<Message> = (0..messages / 2)
            .flat_map(|turn| [Message::user(format!("{QUESTION} ({turn})")), Message::assistant(ANSWER)])
            .collect();
        let store = &self.agent.store;
        store.seed_session(&session, 0, boundary, &history).await?;
        let evidence =
            Evidence::new(session.clone(), 0, 0..boundary.max(1), Vec::new(), "scripted", store.clock().now_ms())?;
        let facts = [
            Fact::new("name", "The user is called Ann and works in the Oslo office.", evidence.clone())?,
            Fact::new("meetings", "Ann prefers meetings in the morning.", evidence)?,
        ];
        store.remember(&scope(&self.envelope(&id)), &facts, &id).await?;
        let mut chat = Chat { id, session, messages, boundary };
        self.round(std::slice::from_mut(&mut chat), 1).await?;
        Ok(chat)
    }

    /// Makes `turns` turns (at most [`TURNS`]) in each of `chats`, all chats at once, then restores what a round finds.
    ///
    /// # Errors
    /// Those of the store and the queues, and a turn that did not end well.
    pub async fn round(&self, chats: &mut [Chat], turns: usize) -> anyhow::Result<Round> {
        let records = self.receive(chats, turns).await?;
        let receipts: Vec<_> = records.iter().flatten().map(|record| record.receipt.clone()).collect();
        drop(self.counter.take());
        let (started, processor) = (Instant::now(), processor::time());
        self.handle(records).await?;
        let round = Round {
            turns: receipts.len() as u64,
            wall: started.elapsed(),
            processor: processor::time().saturating_sub(processor),
            counts: self.counter.take(),
        };
        for receipt in &receipts {
            self.inbound.delete(receipt)?;
        }
        ensure!(self.drain()? == receipts.len(), "every turn sends one final and nothing else");
        for chat in chats {
            chat.messages += 2 * turns as u64;
            self.consolidate(chat).await?;
        }
        Ok(round)
    }

    /// Sends the events of a round and receives them: for each chat, its records in order.
    async fn receive(&self, chats: &[Chat], turns: usize) -> anyhow::Result<Vec<Vec<Record>>> {
        for chat in chats {
            for _ in 0..turns {
                send::inbound(&*self.inbound, &self.envelope(&chat.id)).await?;
            }
        }
        let records: Vec<Vec<Record>> = chats.iter().map(|_| self.inbound.receive(turns)).collect::<Result<_, _>>()?;
        ensure!(records.iter().all(|records| records.len() == turns), "a receive gives the records of one chat");
        Ok(records)
    }

    /// What is measured.
    async fn handle(&self, records: Vec<Vec<Record>>) -> anyhow::Result<()> {
        let mut chats = JoinSet::new();
        for records in records {
            let agent = Arc::clone(&self.agent);
            chats.spawn(async move {
                for record in records {
                    match agent.handle(&record, tokio::time::Instant::now() + INVOCATION).await {
                        Handled::Done => {}
                        Handled::GivenBack(_) => bail!("the turn of record {} was handed back", record.message_id),
                    }
                }
                Ok(())
            });
        }
        while let Some(ended) = chats.join_next().await {
            ended.context("a turn panicked")??;
        }
        Ok(())
    }

    /// Takes out what the turns have sent; returns how much it was.
    fn drain(&self) -> anyhow::Result<usize> {
        let mut drained = 0;
        loop {
            let records = self.outbound.receive(MAX_BATCH)?;
            if records.is_empty() {
                return Ok(drained);
            }
            for record in &records {
                self.outbound.delete(&record.receipt)?;
            }
            drained += records.len();
        }
    }

    /// Moves the boundary as a consolidation does; what it remembers goes to another scope, so that the chat's snapshot
    /// stays fresh.
    async fn consolidate(&self, chat: &mut Chat) -> anyhow::Result<()> {
        let (store, to) = (&self.agent.store, chat.messages.saturating_sub(KEPT));
        if to <= chat.boundary {
            return Ok(());
        }
        let now = store.clock().now_ms();
        let claim = Claim {
            session: chat.session.clone(),
            generation: 0,
            from: chat.boundary,
            job: format!("bench.{}.{}", chat.id, chat.boundary),
            worker: "bench".to_owned(),
        };
        let started = store.start_consolidation(&claim, now, INVOCATION).await?;
        ensure!(matches!(started, ClaimStart::Mine { .. }), "nobody else consolidates: {started:?}");
        let evidence = Evidence::new(chat.session.clone(), 0, chat.boundary..to, Vec::new(), "scripted", now)?;
        let episode = Episode::new("Meetings were moved.", evidence)?;
        let finished = store.finish_consolidation(&claim, "bench", &episode, &[]).await?;
        ensure!(finished == Finished::Moved, "the boundary moves: {finished:?}");
        chat.boundary = to;
        Ok(())
    }

    fn envelope(&self, chat: &str) -> Envelope {
        let (event, now) = (self.event(chat), self.agent.store.clock().now_ms());
        let position = Position::new(now, event.reply_to_id.as_deref().unwrap_or_default());
        Envelope {
            event,
            accepted_at: now,
            position,
            command: None,
            unattended: false,
            redrive: 0,
            former_chat: None,
            album: false,
        }
    }

    /// A private message of the Telegram user `chat`.
    fn event(&self, chat: &str) -> InboundEvent {
        let number = self.number().to_string();
        InboundEvent {
            schema: SCHEMA,
            event_id: EventId::derive(Channel::Telegram.as_str(), &["1", &number]),
            event_type: EventType::Message,
            channel: Channel::Telegram,
            account: DEFAULT_ACCOUNT.to_owned(),
            sender_id: chat.to_owned(),
            chat_id: chat.to_owned(),
            content: vec![ContentBlock::text(QUESTION)],
            timestamp: Timestamp::now(),
            reply_to_id: Some(number),
            thread_id: None,
            session_key_override: None,
            metadata: Map::new(),
            gateway_metadata: Map::new(),
            trace: None,
        }
    }

    /// One that was not there yet, of seven digits: all chats and events have names of one length.
    fn number(&self) -> u64 {
        1_000_000 + self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}
