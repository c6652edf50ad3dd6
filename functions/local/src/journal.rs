//! The recent events of this process for the page: a bounded ring, filled by the lines that the use cases log anyway
//! (ids and outcomes, never what was said).

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::Context;
use turnlock_app::journal_line;

/// How many lines are kept.
const CAPACITY: usize = 300;

/// What the stable targets of the use cases begin with.
const TARGETS: &str = "turnlock::";

/// The recent lines; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Ring>>);

#[derive(Debug, Default)]
struct Ring {
    lines: VecDeque<(u64, Value)>,
    last: u64,
}

impl Journal {
    /// What is newer than `after`, oldest first, and the number to ask with the next time.
    pub(crate) fn since(&self, after: u64) -> Value {
        let ring = self.ring();
        // A number from before a restart is ahead of everything: whoever asks with it has seen nothing of this process.
        let after = if after > ring.last { 0 } else { after };
        let lines: Vec<&Value> = ring.lines.iter().filter(|(at, _)| *at > after).map(|(_, line)| line).collect();
        json!({ "events": lines, "last": ring.last })
    }

    /// The layer that fills it.
    pub(crate) fn layer<S: Subscriber>(&self) -> impl Layer<S> + use<S> {
        Recorder(self.clone())
    }

    fn push(&self, mut line: Map<String, Value>) {
        let mut ring = self.ring();
        ring.last += 1;
        line.insert("number".to_owned(), json!(ring.last));
        if ring.lines.len() == CAPACITY {
            ring.lines.pop_front();
        }
        let number = ring.last;
        ring.lines.push_back((number, Value::Object(line)));
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which lines are kept, whatever is logged.
pub(crate) fn targets() -> Targets {
    // That an event waits is no news here: a moment later there is its end.
    Targets::new().with_target(TARGETS, Level::INFO).with_target(journal_line::ACCEPTED, LevelFilter::OFF)
}

struct Recorder(Journal);

impl<S: Subscriber> Layer<S> for Recorder {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        let kind = metadata.target().trim_start_matches(TARGETS);
        let mut line = Map::new();
        event.record(&mut Fields(&mut line));
        // A field of the line's own may be called the same (`kind` of what is sent), and says something else.
        line.extend([
            ("at".to_owned(), json!(Timestamp::now())),
            ("kind".to_owned(), json!(kind)),
            ("level".to_owned(), json!(metadata.level().as_str())),
        ]);
        self.0.push(line);
    }
}

struct Fields<'l>(&'l mut Map<String, Value>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), json!(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), json!(value));
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn it_keeps_the_newest_lines_of_the_stable_targets() {
        let journal = Journal::default();
        let subscriber = tracing_subscriber::registry().with(journal.layer().with_filter(targets()));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "turnlock_app::turn", "not kept");
            for n in 0..=CAPACITY as u64 {
                tracing::info!(target: "turnlock::event", event_id = "e", attempts = n, "event e committed");
            }
        });
        let all = journal.since(0);
        assert_eq!(all["events"].as_array().map(Vec::len), Some(CAPACITY));
        assert_eq!(all["last"], CAPACITY as u64 + 1);
        let newest = journal.since(CAPACITY as u64);
        assert_eq!(newest["events"][0]["attempts"], CAPACITY as u64);
        assert_eq!(newest["events"][0]["kind"], "event");
        assert_eq!(newest["events"][0]["message"], "event e committed");
        assert_eq!(journal.since(9_999)["events"].as_array().map(Vec::len), Some(CAPACITY));
    }

    /// Whoever reads the ring looks for `outbound`.
    #[test]
    fn a_line_is_of_the_kind_of_its_target() {
        let journal = Journal::default();
        let subscriber = tracing_subscriber::registry().with(journal.layer().with_filter(targets()));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "turnlock::outbound", kind = "Final", is_final = true, "outbound event e.final");
        });
        let line = &journal.since(0)["events"][0];
        assert_eq!((&line["kind"], &line["is_final"]), (&json!("outbound"), &json!(true)));
    }
}
