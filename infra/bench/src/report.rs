//! The figures, as JSON and for people.

use std::fmt;

use serde::Serialize;
use turnlock_bench::figures::{median, rounded};

use crate::turns::Rounds;

/// All of it.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Plain turns a second, 8 sessions at once: the median over the rounds of every length.
    turns_per_s: f64,
    threads: u8,
    history: Vec<Length>,
    /// The whole path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<Path>,
    /// The host as a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<HostProcess>,
}

/// What a turn takes in sessions of one length.
#[derive(Debug, Serialize)]
struct Length {
    messages: u64,
    turns_per_s: f64,
    /// What the process uses of the processors for one turn.
    cpu_ms: f64,
    /// The time by which one turn follows another; a turn itself takes longer, since 8 are in work.
    wall_ms: f64,
    requests: Requests,
    bytes_written: u64,
    /// How many turns the figures come from.
    turns: u64,
}

/// Requests of one turn.
#[derive(Debug, Serialize)]
struct Requests {
    store: u64,
    queue: u64,
}

/// From the ingress handler to the platform.
#[derive(Debug, Serialize)]
pub(crate) struct Path {
    pub(crate) messages: u64,
    /// While the same process handled turns.
    pub(crate) accepted_per_s: f64,
    pub(crate) delivered_per_s: f64,
}

/// The program `turnlock`.
#[derive(Debug, Serialize)]
pub(crate) struct HostProcess {
    pub(crate) first_reply_ms: f64,
    pub(crate) reply_after_kill_ms: f64,
    /// Where the system says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idle_mb: Option<f64>,
}

impl Report {
    pub(crate) fn new(threads: u8, lengths: &[Rounds]) -> anyhow::Result<Self> {
        let turns_per_s = median(lengths.iter().map(Rounds::per_second));
        let history = lengths.iter().map(Length::new).collect::<Result<_, _>>()?;
        Ok(Self { turns_per_s: rounded(turns_per_s, 10.0), threads, history, path: None, host: None })
    }
}

impl Length {
    fn new(rounds: &Rounds) -> anyhow::Result<Self> {
        let per_second = rounds.per_second();
        let (store, queue, bytes_written) = rounds.requests()?;
        Ok(Self {
            messages: rounds.messages,
            turns_per_s: rounded(per_second, 10.0),
            cpu_ms: rounded(rounds.processor_ms(), 1e3),
            wall_ms: rounded(1e3 / per_second, 1e3),
            requests: Requests { store, queue },
            bytes_written,
            turns: rounds.turns(),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "turns per second     {:>8.1}   (8 sessions at once, {} threads)\n",
            self.turns_per_s, self.threads
        )?;
        writeln!(f, "messages  turns/s   cpu ms  wall ms  store  queue  bytes written")?;
        for length in &self.history {
            let Requests { store, queue } = length.requests;
            writeln!(
                f,
                "{:>8} {:>8.1} {:>8.3} {:>8.3} {store:>6} {queue:>6} {:>14}",
                length.messages, length.turns_per_s, length.cpu_ms, length.wall_ms, length.bytes_written
            )?;
        }
        if let Some(path) = &self.path {
            writeln!(f, "\nwhole path, update to delivered: {:.1} messages/s", path.delivered_per_s)?;
        }
        match &self.host {
            Some(host) => {
                let (first, again) = (host.first_reply_ms, host.reply_after_kill_ms);
                writeln!(f, "\nhost: first reply {first:.0} ms after its start, {again:.0} ms after kill -9")?;
                host.idle_mb.map_or(Ok(()), |idle| writeln!(f, "host: {idle:.1} MB when it rests"))
            }
            None if self.path.is_some() => {
                writeln!(f, "\nhost: not measured, there is no `turnlock` beside this program (cargo build --release)")
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use turnlock_bench::counting::Counts;
    use turnlock_bench::rig::Round;

    use super::*;

    fn round(turns: u64, milliseconds: u64, second: &str) -> Round {
        let store = [("Query", turns), (second, turns)].map(|(name, count)| (name.to_owned(), count)).into();
        let counts = Counts { store, queue: [("send".to_owned(), turns)].into(), bytes_written: turns * 3_000 };
        let (wall, processor) = (Duration::from_millis(milliseconds), Duration::from_millis(milliseconds / 2));
        Round { turns, wall, processor, counts }
    }

    #[test]
    fn the_figures_have_the_names_that_others_read() {
        let rounds = vec![round(10, 100, "GetItem"), round(10, 40, "GetItem"), round(10, 50, "GetItem")];
        let report = Report::new(2, &[Rounds { messages: 100, rounds }]).unwrap();
        let history = json!([{
            "messages": 100, "turns_per_s": 200.0, "cpu_ms": 2.5, "wall_ms": 5.0,
            "requests": { "store": 2, "queue": 1 }, "bytes_written": 3_000, "turns": 30,
        }]);
        let expected = json!({ "turns_per_s": 200.0, "threads": 2, "history": history });
        assert_eq!(serde_json::to_value(&report).unwrap(), expected);
    }

    #[test]
    fn turns_that_differ_in_their_requests_have_no_figure() {
        let mut uneven = round(10, 100, "GetItem");
        uneven.counts.store.insert("GetItem".to_owned(), 11);
        let others = vec![round(10, 100, "GetItem"), round(10, 100, "Query")];
        for rounds in [vec![uneven], others, Vec::new()] {
            assert!(Report::new(2, &[Rounds { messages: 10, rounds }]).is_err());
        }
    }
}
