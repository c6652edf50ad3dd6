//! Streams: what a delta of a model costs on its way into frames, and whether a stream's frames come as evenly when many
//! are written at once.
//!
//! Every function of one process over a store and queues in files, as the host runs it, and turns through the API, each
//! with a reader of its event stream. The model writes [`DELTAS`] deltas of [`DELTA`] characters, one every [`PACE`],
//! whoever else writes: one that is not taken in time waits, as in a socket. Its text begins with reasoning in tags and
//! has code and links, so that the filter has something to look at.
//!
//! - **The processor time of a delta** is that of the whole process, from the first message to the last final, over the
//!   number of deltas: the turn (filter, assembler, frames, lease, flags), the queues, delivery and the readers.
//! - **The gap** is the time between two frames of a stream that follow one another: as they are *sent* to the outbound
//!   queue, and as the reader of the API has *seen* them. Gaps of [`STREAMS`] streams at once are compared with those of
//!   one alone. A frame is sent every `agent.limits.frame_interval_ms`, the default unless told otherwise.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use async_trait::async_trait;
use futures_util::future::try_join_all;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, Method};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;
use turnlock_bench::figures::{percentile, rounded};
use turnlock_bench::processor;
use turnlock_channels::IngressRequest;
use turnlock_config::Config;
use turnlock_domain::event::MessageKind;
use turnlock_domain::turn::Usage;
use turnlock_host::{Host, Response, queues};
use turnlock_models::{Capabilities, Model, ModelError, ModelEvent, ModelRequest, ModelStream, StopReason};
use turnlock_queue::{NewMessage, Queue, QueueError, Receipt, ReceiptError, SendError};

use crate::path;

/// How many streams there are at once.
const STREAMS: usize = 100;
/// How many deltas an answer has.
const DELTAS: usize = 2_000;
/// How many characters a delta has.
const DELTA: usize = 5;
/// How often a delta comes: a fast model's pace.
const PACE: Duration = Duration::from_millis(10);
/// How often one stream alone is repeated: it has few frames.
const ROUNDS: usize = 3;
/// When to give up.
const LONGEST: Duration = Duration::from_secs(180);
/// What a delta may cost, in milliseconds.
const DELTA_LIMIT: f64 = 1.0;
/// How many times as long the gaps of many streams may be.
const GAP_LIMIT: f64 = 2.0;
/// What an answer consists of, behind its reasoning.
const PARAGRAPH: &str = "The **meeting** with the Berlin office is on Thursday at ten; `a < b` and <b>tags</b> stay as \
                         they are, see [the notes](https://example.com/notes?a=1&b=2). Grüße aus 東京 and 👋🏽 to all.\n\n";

/// What may be chosen.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Settings {
    /// The shortest time between two frames of a stream, in milliseconds
    #[arg(long, default_value_t = Config::default().agent.limits.frame_interval_ms, value_parser = clap::value_parser!(u32).range(100..))]
    interval_ms: u32,
}

/// What streams came to.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    streams: usize,
    deltas: usize,
    pace_ms: u128,
    interval_ms: u32,
    cpu_per_delta: PerDelta,
    /// When frames were sent to the outbound queue.
    sent: Comparison,
    /// When a reader of the API had them.
    seen: Comparison,
}

/// Processor time of one delta.
#[derive(Debug, Serialize)]
struct PerDelta {
    alone_ms: f64,
    together_ms: f64,
    limit_ms: f64,
}

/// Gaps between frames.
#[derive(Debug, Serialize)]
struct Comparison {
    alone: Gaps,
    together: Gaps,
    /// How many times as long the 99th percentile is.
    p99_ratio: f64,
    limit: f64,
}

#[derive(Debug, Serialize)]
struct Gaps {
    gaps: usize,
    p50_ms: f64,
    p99_ms: f64,
}

/// Measures all of it; takes about a minute and a half.
pub(crate) async fn measure(settings: &Settings) -> anyhow::Result<Report> {
    let interval_ms = settings.interval_ms;
    let mut alone = Load::default();
    for _ in 0..ROUNDS {
        alone.add(load(interval_ms, 1).await?);
    }
    let together = load(interval_ms, STREAMS).await?;
    Ok(Report {
        streams: STREAMS,
        deltas: DELTAS,
        pace_ms: PACE.as_millis(),
        interval_ms,
        cpu_per_delta: PerDelta {
            alone_ms: alone.per_delta(),
            together_ms: together.per_delta(),
            limit_ms: DELTA_LIMIT,
        },
        sent: Comparison::new(&alone.sent, &together.sent),
        seen: Comparison::new(&alone.seen, &together.seen),
    })
}

/// What some streams at once came to: gaps in milliseconds.
#[derive(Debug, Default)]
struct Load {
    streams: usize,
    processor: Duration,
    sent: Vec<f64>,
    seen: Vec<f64>,
}

impl Load {
    fn add(&mut self, other: Self) {
        self.streams += other.streams;
        self.processor += other.processor;
        self.sent.extend(other.sent);
        self.seen.extend(other.seen);
    }

    fn per_delta(&self) -> f64 {
        rounded(self.processor.as_secs_f64() * 1e3 / (self.streams * DELTAS) as f64, 1e4)
    }
}

/// Runs so many streams at once, in a process of their own making.
async fn load(interval_ms: u32, streams: usize) -> anyhow::Result<Load> {
    let directory = tempfile::tempdir()?;
    let mut config = path::config();
    config.agent.limits.concurrency = streams;
    config.agent.limits.frame_interval_ms = interval_ms;
    let platforms = Arc::new(path::platforms(&config));
    let sent = Arc::new(Moments::default());
    let watched = Arc::clone(&sent);
    let wrap = move |name: &str, queue: Arc<dyn Queue>| -> Arc<dyn Queue> {
        if name == queues::OUTBOUND { Arc::new(Outgoing { sent: Arc::clone(&watched), queue }) } else { queue }
    };
    let host = path::host(directory.path(), config, platforms, Arc::new(Typist::default()), Box::new(wrap)).await?;
    let before = processor::time();
    let readers = try_join_all((0..streams).map(|chat| follow(&host, chat)));
    let seen = tokio::select! {
        () = host.run() => bail!("the workers ended"),
        seen = timeout(LONGEST, readers) => seen.context("the answers did not come in time")??,
    };
    let processor = processor::time().saturating_sub(before);
    host.stop(Duration::ZERO).await;
    let sent = std::mem::take(&mut *sent.by_turn());
    ensure!(sent.len() == streams, "{} of {streams} turns sent frames", sent.len());
    Ok(Load { streams, processor, sent: gaps(sent.values()), seen: gaps(&seen) })
}

/// Writes in a chat and reads the stream of the answer; when its frames were seen.
async fn follow(host: &Host, chat: usize) -> anyhow::Result<Vec<Instant>> {
    let message = json!({ "text": "Tell me all.", "session": format!("chat-{chat}") });
    let Response::Full(accepted) =
        host.answer(IngressRequest::post("/v1/messages", HeaderMap::new(), message.to_string())).await
    else {
        bail!("a message is not answered by a stream")
    };
    ensure!(accepted.status == 202, "a message was answered with {}", accepted.status);
    let accepted: Value = serde_json::from_slice(&accepted.body)?;
    let path = accepted["links"]["stream"].as_str().context("an accepted message has a stream")?;
    let request = IngressRequest { method: Method::GET, ..IngressRequest::post(path, HeaderMap::new(), "") };
    let Response::Events(mut events) = host.answer(request).await else { bail!("{path} is no stream") };
    let mut frames = Vec::new();
    while let Some(event) = events.next().await {
        let name = event.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"event: "));
        match name {
            Some(b"frame") => frames.push(Instant::now()),
            Some(b"final") => return Ok(frames),
            _ => {}
        }
    }
    bail!("a stream ended without a final")
}

/// The times between moments that follow one another, of each stream for itself, in milliseconds.
fn gaps<'a>(streams: impl IntoIterator<Item = &'a Vec<Instant>>) -> Vec<f64> {
    let pairs = streams.into_iter().flat_map(|moments| moments.windows(2));
    pairs.map(|pair| pair[1].saturating_duration_since(pair[0]).as_secs_f64() * 1e3).collect()
}

impl Comparison {
    fn new(alone: &[f64], together: &[f64]) -> Self {
        let p99_ratio = rounded(percentile(together, 0.99) / percentile(alone, 0.99), 100.0);
        Self { alone: Gaps::new(alone), together: Gaps::new(together), p99_ratio, limit: GAP_LIMIT }
    }
}

impl Gaps {
    fn new(gaps: &[f64]) -> Self {
        let [p50_ms, p99_ms] = [0.5, 0.99].map(|part| rounded(percentile(gaps, part), 10.0));
        Self { gaps: gaps.len(), p50_ms, p99_ms }
    }
}

/// A model that writes at its pace, whether it is listened to or not.
struct Typist {
    capabilities: Capabilities,
    deltas: Arc<[String]>,
}

impl Default for Typist {
    fn default() -> Self {
        let reasoning = format!("<think>{}</think>", "They want to know all of it. ".repeat(20));
        let text: Vec<char> = reasoning.chars().chain(PARAGRAPH.chars().cycle()).take(DELTAS * DELTA).collect();
        Self { capabilities: Capabilities::default(), deltas: text.chunks(DELTA).map(String::from_iter).collect() }
    }
}

#[async_trait]
impl Model for Typist {
    fn name(&self) -> &str {
        "typist"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        let prepared = request.prepared(self.name(), &self.capabilities, None);
        let (deltas, begun) = (Arc::clone(&self.deltas), tokio::time::Instant::now());
        let stop = ModelEvent::Stop { reason: StopReason::EndTurn, usage: Usage::default() };
        let texts = stream::iter(0..deltas.len()).then(move |index| {
            let due = begun + PACE * u32::try_from(index).unwrap_or(u32::MAX);
            let text = deltas[index].clone();
            async move {
                tokio::time::sleep_until(due).await;
                Ok(ModelEvent::Text(text))
            }
        });
        Ok(prepared.answering(texts.chain(stream::iter([Ok(stop)]))))
    }
}

/// When the frames of turns were sent.
#[derive(Debug, Default)]
struct Moments(Mutex<BTreeMap<String, Vec<Instant>>>);

impl Moments {
    fn by_turn(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Instant>>> {
        // Nothing between lock and unlock leaves a half state behind, so a poisoned one is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The way to the outbound queue, watched.
struct Outgoing {
    sent: Arc<Moments>,
    queue: Arc<dyn Queue>,
}

/// What is looked at of an outbound event.
#[derive(Deserialize)]
struct Looked {
    turn: Option<String>,
    message_kind: MessageKind,
}

#[async_trait]
impl Queue for Outgoing {
    async fn send(&self, message: NewMessage) -> Result<(), SendError> {
        let now = Instant::now();
        let event = serde_json::from_str::<Looked>(&message.body).ok();
        if let Some(Looked { turn: Some(turn), message_kind: MessageKind::Streaming }) = event {
            self.sent.by_turn().entry(turn).or_default().push(now);
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
        let PerDelta { alone_ms, together_ms, limit_ms } = &self.cpu_per_delta;
        let (streams, interval) = (self.streams, self.interval_ms);
        writeln!(
            f,
            "processor time per delta: {alone_ms:.4} ms alone, {together_ms:.4} ms of {streams} (limit {limit_ms} ms)"
        )?;
        writeln!(f, "\nframes every {interval} ms, gaps    streams   p50 ms   p99 ms   p99 of one alone")?;
        for (place, Comparison { alone, together, p99_ratio, limit }) in [("sent", &self.sent), ("seen", &self.seen)] {
            let Gaps { p50_ms, p99_ms, .. } = alone;
            writeln!(f, "{place:<30} {:>7} {p50_ms:>8.1} {p99_ms:>8.1}", 1)?;
            let Gaps { p50_ms, p99_ms, .. } = together;
            writeln!(f, "{place:<30} {streams:>7} {p50_ms:>8.1} {p99_ms:>8.1}   {p99_ratio:.2} times (limit {limit})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_those_of_a_stream_and_the_ratio_that_of_their_slowest() {
        let begun = Instant::now();
        let moments = |at: &[u64]| at.iter().map(|ms| begun + Duration::from_millis(*ms)).collect::<Vec<_>>();
        let alone = gaps([&moments(&[0, 100, 200])]);
        let together = gaps([&moments(&[0, 100, 250]), &moments(&[50, 200]), &moments(&[7])]);
        assert_eq!((alone.as_slice(), together.as_slice()), ([100.0; 2].as_slice(), [100.0, 150.0, 150.0].as_slice()));
        let expected = json!({
            "alone": { "gaps": 2, "p50_ms": 100.0, "p99_ms": 100.0 },
            "together": { "gaps": 3, "p50_ms": 150.0, "p99_ms": 150.0 },
            "p99_ratio": 1.5, "limit": 2.0,
        });
        assert_eq!(serde_json::to_value(Comparison::new(&alone, &together)).unwrap(), expected);
    }

    #[test]
    fn the_model_writes_all_of_its_deltas() {
        let deltas = Typist::default().deltas;
        assert_eq!(deltas.len(), DELTAS);
        assert!(deltas.iter().all(|delta| delta.chars().count() == DELTA));
    }
}
