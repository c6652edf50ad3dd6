//! Lines as JSON on stdout, which Lambda sends to CloudWatch. Lines of the targets that count something carry CloudWatch
//! metrics in them (CloudWatch User Guide, "Specification: Embedded metric format"), so that a metric costs no request.
//!
//! Lines hold ids and outcomes, never bodies, tokens or signatures.

use std::fmt;
use std::io::Write;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt as lines};
use turnlock_app::journal_line;
use turnlock_clock::Clock;
use turnlock_config::names;

use crate::start::StartError;

/// The target of the line of a batch.
const BATCH: &str = "turnlock::batch";
/// The namespace of our metrics.
const NAMESPACE: &str = "Turnlock";
/// One line an event; what leaves for a channel is in the events' own line already.
const USUAL: &str = "info";
/// What is written whatever the filter says: the lines that count.
const ALWAYS: &str = "turnlock::event=info,turnlock::job=info,turnlock::dead=info,turnlock::undelivered=info,\
                      turnlock::unobserved=info,turnlock::batch=info,turnlock::wait=info";
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// A target whose lines count: the metric's name, and the fields that divide it.
struct Metric {
    target: &'static str,
    name: &'static str,
    by: &'static [&'static str],
}

const METRICS: [Metric; 5] = [
    Metric { target: journal_line::EVENT, name: "Events", by: &["channel", "outcome"] },
    Metric { target: journal_line::JOB, name: "Jobs", by: &["kind", "outcome"] },
    Metric { target: journal_line::DEAD, name: "Dead", by: &[] },
    Metric { target: turnlock_app::deliver::UNDELIVERED, name: "Undelivered", by: &["channel"] },
    Metric { target: turnlock_app::deliver::observers::UNOBSERVED, name: "Unobserved", by: &["observer"] },
];

/// Starts the log.
pub(crate) fn start() -> Result<(), StartError> {
    let function = names::environment(names::AWS_LAMBDA_FUNCTION_NAME).unwrap_or_default();
    let layer = lines::layer()
        .with_writer(std::io::stdout)
        .fmt_fields(Fields)
        .event_format(Json { function, clock: Clock::system() });
    let filter = filter(names::environment(names::LOG))?;
    let started = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
    started.map_err(|error| StartError::Machine(error.into()))?;
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        // A message that was put together may quote what somebody wrote.
        let what = panic.payload().downcast_ref::<&'static str>().copied().unwrap_or("(not shown)");
        tracing::error!(place, what, "a panic at {place}");
    }));
    Ok(())
}

fn filter(wanted: Option<String>) -> Result<Targets, StartError> {
    let wanted = wanted.filter(|wanted| !wanted.is_empty()).unwrap_or_else(|| USUAL.to_owned()).to_lowercase();
    let allowed = "must be off, error, warn, info, debug or trace, or a list like `warn,turnlock_app=debug`";
    // The parser takes a misspelt level for the name of a target, and then nothing is logged at all.
    let level_of = |part: &str| part.rsplit('=').next().unwrap_or_default().trim().to_lowercase();
    if !wanted.split(',').all(|part| LEVELS.contains(&level_of(part).as_str())) {
        return Err(StartError::Invalid { name: names::LOG, allowed });
    }
    let targets = match wanted.as_str() {
        level @ ("off" | "error") => level.to_owned(),
        "info" => "warn,turnlock=info,turnlock::outbound=warn".to_owned(),
        level if LEVELS.contains(&level) => format!("warn,turnlock={level}"),
        targets => targets.to_owned(),
    };
    format!("{targets},{ALWAYS}").parse().map_err(|_| StartError::Invalid { name: names::LOG, allowed })
}

/// The line of a function that cannot start. The log may be what does not start, so this is written by hand.
pub(crate) fn cannot_start(error: &StartError) {
    let missing = match error {
        StartError::Missing(names) => names.as_slice(),
        _ => &[],
    };
    let message = format!("the function cannot start: {}", chain(error));
    let line = json!({ "level": "ERROR", "target": "turnlock::start", "message": message, "missing": missing });
    // Nobody could be told that nobody can be told.
    drop(writeln!(std::io::stdout(), "{line}"));
}

/// An error and everything below it, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |line, error| format!("{line}: {error}"))
}

/// The line of a batch that was worked on.
pub(crate) fn batch(records: usize, given_back: usize, oldest: Duration) {
    let oldest_ms = u64::try_from(oldest.as_millis()).unwrap_or(u64::MAX);
    tracing::info!(target: BATCH, records, given_back, oldest_ms, "a batch of {records} records");
}

/// The format of a line.
struct Json {
    function: String,
    clock: Clock,
}

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = Map::new();
        let now = self.clock.now();
        line.insert("timestamp".to_owned(), json!(now.to_string()));
        line.insert("level".to_owned(), json!(event.metadata().level().as_str()));
        line.insert("target".to_owned(), json!(event.metadata().target()));
        line.insert("function".to_owned(), json!(self.function));
        // What the spans say, the outer ones first; the line's own fields win.
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            let fields =
                extensions.get::<FormattedFields<N>>().map(|fields| fields.fields.as_str()).unwrap_or_default();
            // Each recording appends an object of its own.
            let objects = serde_json::Deserializer::from_str(fields).into_iter::<Map<String, Value>>();
            line.extend(objects.flatten().flatten());
        }
        event.record(&mut Object(&mut line));
        self.count(event.metadata().target(), now.as_millisecond(), &mut line);
        writeln!(writer, "{}", Value::Object(line))
    }
}

impl Json {
    /// Puts the metric of a counting line into it.
    fn count(&self, target: &str, at: i64, line: &mut Map<String, Value>) {
        let metric = |name: &str, unit: &str| json!({ "Name": name, "Unit": unit });
        let (metrics, by): (Vec<Value>, &[&str]) = if target == BATCH {
            (vec![metric("records", "Count"), metric("given_back", "Count"), metric("oldest_ms", "Milliseconds")], &[])
        } else if target == journal_line::WAIT {
            (vec![metric("waited_ms", "Milliseconds")], &[])
        } else if let Some(metric) = METRICS.iter().find(|metric| metric.target == target) {
            line.insert(metric.name.to_owned(), json!(1));
            (vec![json!({ "Name": metric.name, "Unit": "Count" })], metric.by)
        } else {
            return;
        };
        let dimensions: Vec<&str> = std::iter::once("function").chain(by.iter().copied()).collect();
        let directive = json!({ "Namespace": NAMESPACE, "Dimensions": [dimensions], "Metrics": metrics });
        line.insert("_aws".to_owned(), json!({ "Timestamp": at, "CloudWatchMetrics": [directive] }));
    }
}

/// The fields of spans, kept as JSON.
struct Fields;

impl<'writer> FormatFields<'writer> for Fields {
    fn format_fields<R: tracing_subscriber::field::RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut object = Map::new();
        fields.record(&mut Object(&mut object));
        write!(writer, "{}", Value::Object(object))
    }
}

/// Fields as JSON. A field without a value is left out.
struct Object<'a>(&'a mut Map<String, Value>);

impl Object<'_> {
    fn put(&mut self, field: &Field, value: Value) {
        if value != "" {
            self.0.insert(field.name().to_owned(), value);
        }
    }
}

impl Visit for Object<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, json!(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, json!(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, json!(format!("{value:?}")));
    }
}

#[cfg(test)]
mod tests;
