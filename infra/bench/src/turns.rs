//! The agent's handler: rounds of plain turns, each length's next round after the others', so that whatever else the
//! machine does meanwhile hits every length alike.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use turnlock_bench::figures::median;
use turnlock_bench::rig::{Chat, Rig, Round, TURNS};

/// How many sessions are in work at once.
const SESSIONS: usize = 8;
/// Rounds of each length that are made first and not measured.
const WARM_UP: usize = 1;
/// At least so many rounds of each length are measured, however long they take.
const LEAST_ROUNDS: usize = 3;
/// No further round begins after this time.
const ENOUGH_TIME: Duration = Duration::from_secs(15);

/// How much is measured; a profiler wants less.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Settings {
    /// The lengths of the sessions, in messages
    #[arg(long, value_delimiter = ',', default_value = "10,100,1000,5000")]
    lengths: Vec<u64>,
    /// The most rounds of each length; a round is 80 turns
    #[arg(long, default_value_t = 20)]
    rounds: usize,
}

/// The rounds of one length.
#[derive(Debug)]
pub(crate) struct Rounds {
    /// The length.
    pub(crate) messages: u64,
    /// Them.
    pub(crate) rounds: Vec<Round>,
}

impl Rounds {
    /// How many turns were measured.
    pub(crate) fn turns(&self) -> u64 {
        self.rounds.iter().map(|round| round.turns).sum()
    }

    /// The median of the rounds' turns a second.
    pub(crate) fn per_second(&self) -> f64 {
        median(self.rounds.iter().map(|round| round.turns as f64 / round.wall.as_secs_f64()))
    }

    /// The median of the rounds' processor milliseconds a turn.
    pub(crate) fn processor_ms(&self) -> f64 {
        median(self.rounds.iter().map(|round| round.processor.as_secs_f64() * 1e3 / round.turns as f64))
    }

    /// Requests of a turn to the store and to the queues, and the bytes that it writes.
    pub(crate) fn requests(&self) -> anyhow::Result<(u64, u64, u64)> {
        let of_round = |round: &Round| {
            let a_turn = |counts: &BTreeMap<String, u64>| {
                let same = counts.values().all(|count| *count == round.turns);
                same.then_some(counts.len() as u64).context("the turns of a round differ in their requests")
            };
            Ok::<_, anyhow::Error>((a_turn(&round.counts.store)?, a_turn(&round.counts.queue)?))
        };
        let requests: Vec<_> = self.rounds.iter().map(of_round).collect::<Result<_, _>>()?;
        let (store, queue) = *requests.first().context("nothing was measured")?;
        ensure!(requests.iter().all(|round| *round == (store, queue)), "the rounds differ in their requests");
        let bytes: u64 = self.rounds.iter().map(|round| round.counts.bytes_written).sum();
        Ok((store, queue, bytes / self.turns().max(1)))
    }
}

/// Measures every length.
pub(crate) async fn measure(settings: Settings) -> anyhow::Result<Vec<Rounds>> {
    let directory = tempfile::tempdir()?;
    let rig = Rig::over_files(directory.path()).await?;
    let mut lengths: Vec<(Rounds, Vec<Chat>)> = Vec::new();
    for messages in settings.lengths {
        let mut chats = Vec::new();
        for _ in 0..SESSIONS {
            chats.push(rig.chat(messages).await?);
        }
        lengths.push((Rounds { messages, rounds: Vec::new() }, chats));
    }
    for _ in 0..WARM_UP {
        for (_, chats) in &mut lengths {
            rig.round(chats, TURNS).await?;
        }
    }
    let started = Instant::now();
    for made in 0..settings.rounds {
        if made >= LEAST_ROUNDS && started.elapsed() > ENOUGH_TIME {
            break;
        }
        for (rounds, chats) in &mut lengths {
            rounds.rounds.push(rig.round(chats, TURNS).await?);
        }
    }
    Ok(lengths.into_iter().map(|(rounds, _)| rounds).collect())
}
