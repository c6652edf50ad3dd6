//! Deliveries: what lies between a commit and what a chat shows, and what it costs in calls to the platform.
//!
//! Every function of one process over a store and queues in files, platforms in memory that answer at once, and chats of
//! both that each have one turn after the other. *Plain* turns are answered in one go; *streamed* ones with
//! [`STREAMED`] characters in [`PIECES`] pieces, so that a preview grows in the chat and the final replaces it.
//!
//! A turn counts from the moment at which its final is sent to the outbound queue, which is what its worker does next
//! after the commit, to the platform's answer to the call that showed its last word. A preview that showed all of it
//! before the commit counts as zero: nobody waited for anything.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use async_trait::async_trait;
use futures_util::future::try_join_all;
use jiff::Timestamp;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;
use turnlock_bench::figures::{percentile, rounded};
use turnlock_channels::http::{PlatformError, PlatformHttp, PlatformRequest, PlatformResponse};
use turnlock_channels::{IngressRequest, slack, telegram};
use turnlock_domain::event::{Channel, OutboundEvent};
use turnlock_host::{Host, Response, queues};
use turnlock_models::{Scripted, Wire};
use turnlock_queue::{NewMessage, Queue, QueueError, Receipt, ReceiptError, SendError};
use turnlock_replay::fakes::FakePlatforms;

use crate::path;

/// How many plain turns there are, each in a chat of its own.
const PLAIN: usize = 200;
/// One turn follows another by this: platforms take thirty messages a second of one bot.
const PACE: Duration = Duration::from_millis(50);
/// How many streamed turns run at once, half of them on each platform.
const CHATS: usize = 24;
/// How many of them each chat has, one after the other.
const ROUNDS: usize = 3;
/// How long a streamed answer is, in characters.
pub(crate) const STREAMED: usize = 10_000;
/// In how many pieces it comes.
pub(crate) const PIECES: usize = 20;
/// How long a model takes for a piece.
const PIECE: f64 = 0.25;
/// When to give up.
const LONGEST: Duration = Duration::from_secs(120);
/// What the last word of an answer begins with.
const MARK: &str = "end-";

/// What deliveries came to.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Short answers in one go.
    plain: Figures,
    /// Long answers as they are written.
    streamed: Figures,
}

/// What one kind of turn came to, by channel.
#[derive(Debug, Serialize)]
struct Figures(BTreeMap<&'static str, Figure>);

#[derive(Debug, Serialize)]
struct Figure {
    turns: usize,
    /// From the commit to the platform's answer to the call that showed the last word.
    commit_to_visible_p50_ms: f64,
    commit_to_visible_p99_ms: f64,
    /// Of one turn, by method.
    platform_calls: BTreeMap<String, f64>,
}

/// Measures both kinds.
pub(crate) async fn measure() -> anyhow::Result<Report> {
    let directory = tempfile::tempdir()?;
    let platforms = Arc::new(Seen::default());
    let model = Arc::new(Scripted::new(Wire::Neutral));
    let config = path::config();
    let fakes = Arc::new(path::platforms(&config));
    let http = Arc::new(Watched { seen: Arc::clone(&platforms), fakes: Arc::clone(&fakes) });
    let seen = Arc::clone(&platforms);
    let wrap = move |name: &str, queue: Arc<dyn Queue>| -> Arc<dyn Queue> {
        if name == queues::OUTBOUND { Arc::new(Outgoing { seen: Arc::clone(&seen), queue }) } else { queue }
    };
    let host = path::host(directory.path(), config, http, model.clone(), Box::new(wrap)).await?;
    let bench = Bench { host, fakes, model, seen: platforms };
    let measured = tokio::select! {
        () = bench.host.run() => bail!("the workers ended"),
        measured = bench.both() => measured,
    };
    bench.host.stop(Duration::ZERO).await;
    measured
}

struct Bench {
    host: Host,
    fakes: Arc<FakePlatforms>,
    model: Arc<Scripted>,
    seen: Arc<Seen>,
}

/// One turn to make.
struct Turn {
    channel: Channel,
    /// Numbers the chat.
    chat: usize,
    /// The last word of its answer.
    mark: String,
    answer: Value,
}

impl Bench {
    async fn both(&self) -> anyhow::Result<Report> {
        // What happens only once is not measured.
        for chat in 0..2 {
            self.turn(plain(chat, "warm")).await?;
        }
        self.seen.take();
        let paced = (0..PLAIN).map(|turn| async move {
            tokio::time::sleep(PACE * u32::try_from(turn)?).await;
            self.turn(plain(100 + turn, "plain")).await
        });
        try_join_all(paced).await?;
        let plain = self.seen.take().figures()?;
        let chats = (0..CHATS).map(|chat| async move {
            for round in 0..ROUNDS {
                self.turn(streamed(10_000 + chat, round)).await?;
            }
            Ok::<_, anyhow::Error>(())
        });
        try_join_all(chats).await?;
        Ok(Report { plain, streamed: self.seen.take().figures()? })
    }

    /// Makes a turn and waits until its answer is committed and can be seen.
    async fn turn(&self, turn: Turn) -> anyhow::Result<()> {
        let session = format!("{}:{}", turn.channel.as_str(), chat_id(turn.channel, turn.chat));
        let line = json!({ "session": session, "for": "turn", "chunks": turn.answer });
        self.model.push(serde_json::from_value(line)?);
        let Response::Full(response) = self.host.answer(self.request(&turn)).await else {
            bail!("a message is not answered by a stream")
        };
        ensure!(response.status == 200, "a message was answered with {}", response.status);
        let mut changes = self.seen.changes.subscribe();
        let shown = changes.wait_for(|_| self.seen.is_over(&turn.mark));
        timeout(LONGEST, shown).await.context("an answer was not shown in time")?.context("nobody looks any more")?;
        Ok(())
    }

    fn request(&self, turn: &Turn) -> IngressRequest {
        let (chat, number) = (chat_id(turn.channel, turn.chat), self.seen.next());
        let now = Timestamp::now();
        if turn.channel == Channel::Telegram {
            let id: usize = TELEGRAM_CHATS + turn.chat;
            let update = json!({ "update_id": number, "message": { "message_id": number, "date": now.as_second(),
                "chat": { "id": id, "type": "private" }, "from": { "id": id, "is_bot": false, "first_name": "Ann" },
                "text": "Tell me." } });
            self.fakes.note(Channel::Telegram, "main", &update);
            let headers = telegram::sign_headers(&SecretString::from(path::SECRET));
            return IngressRequest::post("/telegram/main", headers, update.to_string());
        }
        let envelope = json!({ "type": "event_callback", "team_id": "T0TEAM", "api_app_id": "A0APP",
            "event_id": format!("Ev{number}"), "event_time": now.as_second(),
            "event": { "type": "message", "channel": chat, "channel_type": "im", "user": "U0ANN",
                "ts": format!("{}.{:06}", now.as_second(), number), "text": "Tell me." } });
        let body = envelope.to_string();
        let headers = slack::sign(&SecretString::from(path::SLACK_SECRET), now, body.as_bytes());
        IngressRequest::post("/slack/main", headers, body)
    }
}

const TELEGRAM_CHATS: usize = 2_000_000;

fn chat_id(channel: Channel, chat: usize) -> String {
    if channel == Channel::Telegram { (TELEGRAM_CHATS + chat).to_string() } else { format!("D{chat:06}") }
}

fn channel(chat: usize) -> Channel {
    if chat.is_multiple_of(2) { Channel::Telegram } else { Channel::Slack }
}

fn plain(chat: usize, name: &str) -> Turn {
    let mark = format!("{MARK}{name}-{chat}");
    let answer = json!([format!("The meeting with the Berlin office is on Thursday at ten now. {mark}")]);
    Turn { channel: channel(chat), chat, mark, answer }
}

fn streamed(chat: usize, round: usize) -> Turn {
    let mark = format!("{MARK}streamed-{chat}-{round}");
    let piece = "word ".repeat(STREAMED / PIECES / "word ".len());
    let pieces = (0..PIECES).flat_map(|_| [json!(piece), json!({ "wait": PIECE })]);
    let answer = pieces.chain([json!(mark)]).collect();
    Turn { channel: channel(chat), chat, mark, answer }
}

/// What was seen of the turns, by the last word of their answers.
#[derive(Debug, Default)]
struct Seen {
    turns: Mutex<Turns>,
    changes: watch::Sender<()>,
    numbers: std::sync::atomic::AtomicU32,
}

#[derive(Debug, Default)]
struct Turns {
    moments: BTreeMap<String, Moments>,
    calls: BTreeMap<(&'static str, String), usize>,
}

/// Of one turn.
#[derive(Debug, Default)]
struct Moments {
    channel: Option<Channel>,
    committed: Option<Instant>,
    visible: Option<Instant>,
}

impl Seen {
    fn next(&self) -> u32 {
        self.numbers.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        // Nothing between lock and unlock leaves a half state behind, so a poisoned one is whole.
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, text: &str, note: impl FnOnce(&mut Moments)) {
        if let Some(mark) = text.split_whitespace().next_back().filter(|word| word.starts_with(MARK)) {
            note(self.turns().moments.entry(mark.to_owned()).or_default());
            self.changes.send_replace(());
        }
    }

    fn is_over(&self, mark: &str) -> bool {
        self.turns().moments.get(mark).is_some_and(|turn| turn.committed.is_some() && turn.visible.is_some())
    }

    fn take(&self) -> Turns {
        std::mem::take(&mut *self.turns())
    }
}

impl Turns {
    fn figures(self) -> anyhow::Result<Figures> {
        let mut waits: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
        for (mark, turn) in &self.moments {
            let (Some(channel), Some(committed), Some(visible)) = (turn.channel, turn.committed, turn.visible) else {
                bail!("the turn {mark} was seen in part only")
            };
            let wait = visible.saturating_duration_since(committed).as_secs_f64() * 1e3;
            waits.entry(channel.as_str()).or_default().push(wait);
        }
        let figure = |(channel, waits): (&'static str, Vec<f64>)| {
            let of_channel = self.calls.iter().filter(|((of, _), _)| *of == channel);
            let per_turn = |count: usize| rounded(count as f64 / waits.len() as f64, 100.0);
            let figure = Figure {
                turns: waits.len(),
                commit_to_visible_p50_ms: rounded(percentile(&waits, 0.5), 100.0),
                commit_to_visible_p99_ms: rounded(percentile(&waits, 0.99), 100.0),
                platform_calls: of_channel.map(|((_, method), count)| (method.clone(), per_turn(*count))).collect(),
            };
            (channel, figure)
        };
        Ok(Figures(waits.into_iter().map(figure).collect()))
    }
}

/// The way to the platforms, watched.
struct Watched {
    seen: Arc<Seen>,
    fakes: Arc<FakePlatforms>,
}

#[async_trait]
impl PlatformHttp for Watched {
    async fn send(&self, request: PlatformRequest, timeout: Duration) -> Result<PlatformResponse, PlatformError> {
        let (channel, method) = (request.channel, request.method.clone());
        let arguments: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let answer = self.fakes.send(request, timeout).await?;
        *self.seen.turns().calls.entry((channel.as_str(), method)).or_default() += 1;
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if body["ok"] == true {
            let text = arguments["text"].as_str().unwrap_or_default();
            let now = Instant::now();
            self.seen.note(text, |turn| turn.visible = turn.visible.or(Some(now)));
        }
        Ok(answer)
    }
}

/// The way to the outbound queue, watched.
struct Outgoing {
    seen: Arc<Seen>,
    queue: Arc<dyn Queue>,
}

#[async_trait]
impl Queue for Outgoing {
    async fn send(&self, message: NewMessage) -> Result<(), SendError> {
        let event = serde_json::from_str::<OutboundEvent>(&message.body).ok().filter(|event| event.is_final);
        if let Some(event) = event {
            let now = Instant::now();
            self.seen.note(&event.text(), |turn| {
                turn.channel = Some(event.channel);
                turn.committed = Some(now);
            });
        }
        self.queue.send(message).await
    }

    async fn set_visibility(&self, receipt: &Receipt, visibility: Duration) -> Result<(), ReceiptError> {
        self.queue.set_visibility(receipt, visibility).await
    }

    async fn wake(&self, receipt: &Receipt) -> Result<(), ReceiptError> {
        self.queue.wake(receipt).await
    }

    async fn waiting(&self) -> Result<u64, QueueError> {
        self.queue.waiting().await
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "commit to visible               turns   p50 ms   p99 ms   platform calls per turn")?;
        for (kind, figures) in [("plain", &self.plain), ("streamed", &self.streamed)] {
            for (channel, figure) in &figures.0 {
                let (p50, p99) = (figure.commit_to_visible_p50_ms, figure.commit_to_visible_p99_ms);
                let calls: Vec<String> = figure.platform_calls.iter().map(|(name, n)| format!("{n} {name}")).collect();
                let name = format!("{kind}, {channel}");
                writeln!(f, "{name:<30} {:>6} {p50:>8.1} {p99:>8.1}   {}", figure.turns, calls.join(", "))?;
            }
        }
        Ok(())
    }
}
