//! Delivery: outbound events to their channels, in order within a chat, through the ledger, with observers beside.
//!
//! One batch of the outbound queue is one [`Delivery::handle`]. What it returns is not done and comes again: its
//! visibility is set by then. A record that is given back for any reason takes every later record of its chat with it,
//! with the same visibility (trace V12): two answers never change places. Within a batch
//! chats do not wait for one another, but it ends as a whole: a chat's next batch waits for the slowest chat of this one,
//! at most the time of an invocation. A host that can hand out records one by one does (one process: batches of one).
//!
//! | module | does |
//! |---|---|
//! | [`rules`] | drops what no reader would see, before any channel is asked |
//! | [`observers`] | who gets a copy of every event |
//! | `parts` | an event's parts to a platform, one ledger write before and one after each call |
//! | `preview` | frames: the reply while it is written |
//! | `slots` | how often frames may be shown |
//! | `refused` | what follows a call that did not show its part |
//! | `rests` | what stands beside an answer and is taken away |
//! | `late` | what a worker repairs whose result another one has overtaken |
//! | `stored` | events whose reader fetches them: the item is the delivery |
//! | `hold` | how long a record is ours |
//!
//! At least once: a final's part whose answer was lost is sent once more and stays marked; a second lost answer leaves it
//! `uncertain`. Where its message is known it is edited, as often as it takes. Frames are never repeated and never given
//! back. One that waited for longer than the next ones need is dropped; of those in hand, where a host hands out more than
//! one, only the newest of its turn is shown, and none beside its final. What cannot be delivered ends in the ledger as `failed`,
//! in a log line and, where a later try may do better, as a dead item; exception text is never shown to anybody.

mod clients;
mod hold;
mod late;
pub mod observers;
mod parts;
mod preview;
mod refused;
mod rests;
pub mod rules;
mod slots;
mod stored;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;
use tracing::Instrument;
use turnlock_channels::http::PlatformHttp;
use turnlock_channels::{Handler, Outbound};
use turnlock_clock::Clock;
use turnlock_config::Config;
use turnlock_domain::event::{ASKED_BY, Channel, OutboundEvent};
use turnlock_domain::ids::EventId;
use turnlock_queue::{Queue, Record};
use turnlock_store::dead::{DeadItem, DeadPut};
use turnlock_store::ledger::{Ledger, LedgerState, LedgerWrite};
use turnlock_store::{Store, StoreError};

pub use clients::clients;

use self::hold::{Ended, Hold};
use self::observers::Observer;
use self::rules::Decision;
use crate::admit::chain;
use crate::ingress::ConfigMismatch;
use crate::journal_line;
use crate::words::Language;

/// The target of lines about deliveries.
pub const DELIVERY: &str = "turnlock::delivery";
/// The target of the line of an event that does not reach its channel, or not for sure.
pub const UNDELIVERED: &str = "turnlock::undelivered";
/// The name under which the outbound queue stands in dead items.
pub const OUTBOUND_QUEUE: &str = "outbound";
/// How long one batch is worked on where no invocation says when it ends.
pub const BATCH_TIME: Duration = Duration::from_secs(90);

/// The longest wait before something is tried again that a platform could not take.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The longest time that a platform's "later" is taken for.
const LONGEST_BLOCK: Duration = Duration::from_secs(3600);

/// What delivery needs. One a process.
pub struct Delivery {
    /// The ledger, the chats and the items that API clients read.
    pub store: Store,
    /// The queue that the records come from.
    pub outbound: Arc<dyn Queue>,
    /// The platforms' clients.
    pub channels: Arc<Outbound>,
    /// The time of items.
    pub clock: Clock,
    /// Who gets a copy of every event.
    pub observers: Vec<Arc<dyn Observer>>,
    /// Webhook sources and schedules whose replies go to a chat, by channel and account.
    pub reply_routes: BTreeMap<(Channel, String), ReplyRoute>,
    /// The language of what no model wrote.
    pub language: Language,
}

/// The chat to which the replies to a webhook source or a schedule go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyRoute {
    /// Its channel.
    pub channel: Channel,
    /// Our account there.
    pub account: String,
    /// The chat.
    pub chat: String,
    /// A thread in it.
    pub thread: Option<String>,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settled {
    /// It is done.
    Done,
    /// It has to come again.
    Back(Duration),
}

/// Why work on an event stopped before its end.
enum Stop {
    /// Nobody knows whether the record is still ours: another worker may have it.
    Ended,
    /// The platform is not to be called again before this time is over.
    Wait(Duration),
    /// The table could not be asked.
    Store(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Ended> for Stop {
    fn from(Ended: Ended) -> Self {
        Self::Ended
    }
}

impl Delivery {
    /// Delivery to every account of `config` that can send, through `http`.
    ///
    /// # Errors
    /// [`ConfigMismatch`] for a webhook's header or address that is none.
    pub fn from_config(
        config: &Config,
        (store, outbound): (Store, Arc<dyn Queue>),
        http: &Arc<dyn PlatformHttp>,
        clock: &Clock,
        observers: Vec<Arc<dyn Observer>>,
    ) -> Result<Self, ConfigMismatch> {
        Ok(Self {
            store,
            outbound,
            channels: Arc::new(clients::clients(config, http, clock)?),
            clock: clock.clone(),
            observers,
            reply_routes: clients::reply_routes(config),
            language: Language::from_code(&config.agent.language).unwrap_or_default(),
        })
    }

    /// Delivers a batch; returns the message ids that are not done. Their visibility is set. No call to a platform starts
    /// that could not be answered, and its result written, before `deadline`.
    pub async fn handle(&self, records: Vec<Record>, deadline: Instant) -> Vec<String> {
        let holds = join_all(records.iter().map(|record| Hold::take(&*self.outbound, record, deadline))).await;
        let mut chats: Vec<(String, Vec<Hold<'_>>)> = Vec::new();
        for hold in holds {
            let chat = hold.record.group.clone().unwrap_or_else(|| hold.record.message_id.clone());
            match chats.iter_mut().find(|(known, _)| *known == chat) {
                Some((_, holds)) => holds.push(hold),
                None => chats.push((chat, vec![hold])),
            }
        }
        let chats = join_all(chats.into_iter().map(|(_, holds)| self.chat(holds))).await;
        let (unfinished, taken): (Vec<_>, Vec<_>) = chats.into_iter().unzip();
        let (unfinished, taken) = (unfinished.concat(), taken.concat());
        // Only now, and once for all of them: no record waits for the copies of those before it.
        observers::show(&self.observers, &taken).await;
        unfinished
    }

    /// The records of one chat, in order, up to the first that has to come again: what is not done, and the events of
    /// those that were worked on. A frame does not come again, whatever stands before it.
    async fn chat(&self, holds: Vec<Hold<'_>>) -> (Vec<String>, Vec<OutboundEvent>) {
        let parse = |hold: &Hold<'_>| serde_json::from_str::<OutboundEvent>(&hold.record.body);
        let mut events: VecDeque<_> = holds.iter().map(parse).collect();
        let (mut unfinished, mut taken) = (Vec::new(), Vec::new());
        let mut back = None;
        for mut hold in holds {
            let Some(event) = events.pop_front() else { break };
            let frame = event.as_ref().ok().filter(|event| rules::is_frame(event));
            let needless =
                frame.is_some_and(|frame| events.iter().flatten().any(|later| rules::supersedes(later, frame)));
            if frame.is_some() && (needless || back.is_some()) {
                taken.extend(event.ok());
                continue;
            }
            if back.is_none() {
                let span = journal_line::record_span(hold.record);
                back = match self.record(&mut hold, event, &mut taken).instrument(span).await {
                    Settled::Done => continue,
                    Settled::Back(visibility) => Some(visibility),
                };
            }
            hold.give_back(back.unwrap_or_default()).await;
            unfinished.push(hold.record.message_id.clone());
        }
        (unfinished, taken)
    }

    async fn record(
        &self,
        hold: &mut Hold<'_>,
        event: Result<OutboundEvent, serde_json::Error>,
        taken: &mut Vec<OutboundEvent>,
    ) -> Settled {
        let is_frame = event.as_ref().is_ok_and(rules::is_frame);
        if !hold.has_time() && !is_frame {
            return Settled::Back(Duration::ZERO);
        }
        let event = match event {
            Ok(event) => event,
            Err(error) => return self.unreadable(hold.record, &error).await,
        };
        let delivered = self.deliver(&event, hold).await;
        let event_id = event.event_id.clone();
        taken.push(event);
        match delivered {
            Ok(()) => Settled::Done,
            // Whatever comes after it says more.
            Err(_) if is_frame => Settled::Done,
            Err(Stop::Wait(wait)) => Settled::Back(wait),
            // Whatever keeps the queue from saying so may last for longer than the receives that a reply has.
            Err(Stop::Ended) => Settled::Back(growing(hold.record.receive_count)),
            Err(Stop::Store(error)) => {
                tracing::error!(target: DELIVERY, event_id, error = %chain(&error),
                    "the delivery of event {event_id} is put off");
                Settled::Back(growing(hold.record.receive_count))
            }
        }
    }

    async fn deliver(&self, event: &OutboundEvent, hold: &mut Hold<'_>) -> Result<(), Stop> {
        if let Decision::Drop(reason) = rules::decide(event) {
            tracing::debug!(target: DELIVERY, event_id = event.event_id, reason, "event {} is dropped", event.event_id);
            return Ok(());
        }
        let (event, routed) = self.addressed(event);
        match (self.channels.handler(event.channel, &event.account), event.channel) {
            (Handler::Platform, _) => Box::pin(parts::deliver(self, event, routed, hold)).await,
            // A webhook or a schedule that nobody replies to is read like an API event.
            (Handler::Store, _) | (Handler::None, Channel::Webhook | Channel::Cron) => {
                self.keep(&event, hold.record).await
            }
            (
                Handler::None,
                Channel::Telegram | Channel::Slack | Channel::Gateway | Channel::Cli | Channel::Unknown,
            ) => self.undeliverable(&event, "no_handler", hold.record).await,
        }
    }

    /// The event where it is to be shown, and whether that is a chat in which nobody asked: replies to some webhooks and
    /// schedules go to one.
    fn addressed(&self, event: &OutboundEvent) -> (OutboundEvent, bool) {
        let mut event = event.clone();
        let route = self.reply_routes.get(&(event.channel, event.account.clone()));
        if let Some(route) = route {
            event.channel = route.channel;
            event.account.clone_from(&route.account);
            event.chat_id.clone_from(&route.chat);
            event.thread_id.clone_from(&route.thread);
            event.reply_to_id = None;
            // Who asked was named by somebody outside of that chat's platform.
            event.metadata.remove(ASKED_BY);
        }
        (event, route.is_some())
    }

    /// Writes an event to the item that its reader fetches. The write can be repeated, so its outcome is never unknown
    /// and the ledger needs one entry, afterwards.
    async fn keep(&self, event: &OutboundEvent, record: &Record) -> Result<(), Stop> {
        match stored::put(&self.store, event, self.language).await? {
            stored::Put::NoCause => self.undeliverable(event, "no_cause", record).await,
            stored::Put::Different => self.undeliverable(event, "another_final", record).await,
            stored::Put::Shown if rules::is_frame(event) => Ok(()),
            stored::Put::Shown => {
                let now = self.clock.now_ms();
                let ledger = Ledger::new(&event.event_id, event, 1, now).kept(0, event.revision, now);
                let ledger = ledger.sent(0, &event.event_id, now);
                self.store.write_ledger(ledger).await?;
                Ok(())
            }
        }
    }

    /// Gives up what of an event is not shown: no call will bring it to its channel.
    async fn undeliverable(&self, event: &OutboundEvent, reason: &'static str, record: &Record) -> Result<(), Stop> {
        let now = self.clock.now_ms();
        let ledger = match self.store.ledger(&event.event_id).await? {
            Some(ledger) => ledger,
            None => Ledger::new(&event.event_id, event, 1, now),
        };
        let unsent = |ledger: &Ledger, part: usize| ledger.parts()[part].known() != LedgerState::Sent;
        let parts: Vec<usize> = (0..ledger.parts().len()).filter(|part| unsent(&ledger, *part)).collect();
        if !parts.is_empty() {
            let failed = parts.into_iter().fold(ledger, |ledger, part| ledger.failed(part, reason, now));
            match self.store.write_ledger(failed).await? {
                LedgerWrite::Written(_) | LedgerWrite::Raced(_) => {}
            }
        }
        self.give_up(event, reason, record.body.clone(), record.receive_count).await
    }

    /// The line of an event that does not reach its channel, or not for sure; and the dead item, for the alarm and for a
    /// redrive, where a later try may do better: `body` is what is sent again then.
    async fn give_up(&self, event: &OutboundEvent, reason: &str, body: String, receive_count: u32) -> Result<(), Stop> {
        let caused_by = event.caused_by.as_ref().map(EventId::as_str).unwrap_or_default();
        tracing::warn!(target: UNDELIVERED, event_id = event.event_id, caused_by, channel = event.channel.as_str(),
            account = event.account, reason, "event {} was not delivered: {reason}", event.event_id);
        // A chat that is gone is marked; an event that shows nothing, or nowhere, does so the next time too.
        if rules::is_frame(event) || ["chat_gone", "nothing_to_show", "no_cause", "another_final"].contains(&reason) {
            return Ok(());
        }
        let dead = DeadItem {
            event_id: EventId::from_stored(event.event_id.clone()),
            queue: OUTBOUND_QUEUE.to_owned(),
            reason: reason.to_owned(),
            body,
            at: self.clock.now_ms(),
            receive_count,
        };
        if self.store.put_dead(&dead).await? == DeadPut::Kept {
            journal_line::dead(&dead);
        }
        Ok(())
    }

    /// Keeps a body that is no event of ours for the operator: it would not become one by coming again.
    async fn unreadable(&self, record: &Record, error: &serde_json::Error) -> Settled {
        tracing::error!(target: DELIVERY, message_id = record.message_id, line = error.line(), column = error.column(),
            "record {} is no outbound event", record.message_id);
        let dead = DeadItem {
            event_id: EventId::derive(OUTBOUND_QUEUE, &[&record.message_id]),
            queue: OUTBOUND_QUEUE.to_owned(),
            reason: "unreadable".to_owned(),
            body: record.body.clone(),
            at: self.clock.now_ms(),
            receive_count: record.receive_count,
        };
        match self.store.put_dead(&dead).await {
            Ok(_) => {
                journal_line::dead(&dead);
                Settled::Done
            }
            Err(error) => {
                tracing::error!(target: DELIVERY, message_id = record.message_id, error = %chain(&error),
                    "the dead item of record {} was not kept", record.message_id);
                Settled::Back(growing(record.receive_count))
            }
        }
    }
}

/// How long a record rests after its `receives`-th receive came to nothing: 2, 4, 8 … 60 s.
fn growing(receives: u32) -> Duration {
    let seconds = 1_u64.checked_shl(receives.clamp(1, 16)).unwrap_or(u64::MAX);
    Duration::from_secs(seconds).min(LONGEST_WAIT)
}
