//! The figures of cold starts, as JSON and for people.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::targets::MINIMAL;
use crate::figures::{median, rounded};

/// All of it.
#[derive(Debug, Serialize)]
pub struct Report {
    /// How many runs the medians are of.
    runs: usize,
    functions: Vec<Function>,
}

/// The medians of one target.
#[derive(Debug, Serialize)]
struct Function {
    name: &'static str,
    /// From the start of the process to its first request for work.
    init_ms: f64,
    /// From the first event to its answer.
    first_ms: f64,
    /// Both.
    cold_ms: f64,
    /// From a later event to its answer.
    warm_ms: f64,
    /// After the first event; where the system says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    rss_mb: Option<f64>,
}

/// One life of a function.
#[derive(Debug, Clone)]
pub struct Run {
    /// From the start of the process to its first request for work.
    pub init: Duration,
    /// From the first event to its answer.
    pub first: Duration,
    /// The same of each of the others.
    pub warm: Vec<Duration>,
    /// What it held of the machine's memory after the first event.
    pub resident_kb: Option<u64>,
}

impl Report {
    /// The medians of the runs of each target.
    pub fn new<'r>(runs: impl Iterator<Item = (&'static str, &'r [Run])>) -> Self {
        let runs: Vec<_> = runs.collect();
        let count = runs.iter().map(|(_, runs)| runs.len()).min().unwrap_or_default();
        Self { runs: count, functions: runs.into_iter().map(|(name, runs)| Function::new(name, runs)).collect() }
    }
}

impl Function {
    fn new(name: &'static str, runs: &[Run]) -> Self {
        let ms = |times: Vec<Duration>| rounded(median(times.iter().map(|time| time.as_secs_f64() * 1e3)), 100.0);
        let init_ms = ms(runs.iter().map(|run| run.init).collect());
        let first_ms = ms(runs.iter().map(|run| run.first).collect());
        let resident: Vec<u64> = runs.iter().filter_map(|run| run.resident_kb).collect();
        let mb = |kb: u64| rounded(kb as f64 / 1024.0, 100.0);
        Self {
            name,
            init_ms,
            first_ms,
            cold_ms: rounded(init_ms + first_ms, 100.0),
            warm_ms: ms(runs.iter().flat_map(|run| run.warm.clone()).collect()),
            rss_mb: (!resident.is_empty()).then(|| median(resident.into_iter().map(mb))),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minimal = self.functions.iter().find(|function| function.name == MINIMAL).map(|minimal| minimal.cold_ms);
        writeln!(f, "{:<22} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}", "", "init", "first", "cold", "x", "warm", "RSS")?;
        writeln!(f, "{:<22} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}", "", "ms", "ms", "ms", MINIMAL, "ms", "MB")?;
        for Function { name, init_ms, first_ms, cold_ms, warm_ms, rss_mb } in &self.functions {
            write!(f, "{name:<22} {init_ms:>7.2} {first_ms:>7.2} {cold_ms:>7.2}")?;
            match minimal {
                Some(minimal) => write!(f, " {:>7.2}", cold_ms / minimal)?,
                None => write!(f, " {:>7}", "")?,
            }
            write!(f, " {warm_ms:>7.2}")?;
            rss_mb.map_or(Ok(()), |rss| write!(f, " {rss:>7.2}"))?;
            writeln!(f)?;
        }
        writeln!(f, "\nmedians of {} runs", self.runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(init: u64, first: u64, warm: &[u64], resident_kb: u64) -> Run {
        let ms = Duration::from_millis;
        let warm = warm.iter().copied().map(ms).collect();
        Run { init: ms(init), first: ms(first), warm, resident_kb: Some(resident_kb) }
    }

    #[test]
    fn every_figure_is_a_median_of_its_own() {
        let minimal = [run(5, 4, &[1, 9], 8_192), run(4, 6, &[1, 1], 8_192), run(9, 5, &[2, 2], 9_216)];
        let other = [run(8, 6, &[2], 10_240), run(7, 5, &[2], 10_240), run(8, 9, &[2], 10_240)];
        let report = Report::new([(MINIMAL, &minimal[..]), ("ingress-cron", &other[..])].into_iter());
        let minimal = serde_json::json!({
            "name": "minimal", "init_ms": 5.0, "first_ms": 5.0, "cold_ms": 10.0, "warm_ms": 2.0, "rss_mb": 8.0,
        });
        let other = serde_json::json!({
            "name": "ingress-cron", "init_ms": 8.0, "first_ms": 6.0, "cold_ms": 14.0, "warm_ms": 2.0, "rss_mb": 10.0,
        });
        let expected = serde_json::json!({ "runs": 3, "functions": [minimal, other] });
        assert_eq!(serde_json::to_value(&report).unwrap(), expected);
        let shown = report.to_string();
        let other = shown.lines().find(|line| line.starts_with("ingress-cron")).unwrap();
        assert_eq!(other.split_whitespace().collect::<Vec<_>>()[3..5], ["14.00", "1.40"]);
    }
}
