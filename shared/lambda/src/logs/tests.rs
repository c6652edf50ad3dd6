use std::sync::{Arc, Mutex};

use turnlock_domain::event::Channel;
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;

use super::*;

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The lines that `work` writes.
fn lines(work: impl FnOnce()) -> Vec<Value> {
    let kept = Kept::default();
    let writer = kept.clone();
    let format = Json { function: "agent".to_owned(), clock: Clock::system() };
    let layer = lines::layer().with_writer(move || writer.clone()).fmt_fields(Fields).event_format(format);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), work);
    let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_event_s_line_counts_it() {
    let lines = lines(|| {
        let (id, session) = (EventId::from_stored("telegram:1:1"), SessionKey::new("telegram", "main", "5", None));
        let outcome = journal_line::EventOutcome::Committed;
        journal_line::event(&id, Some(&session), Channel::Telegram, outcome, "", 1);
    });
    let line = &lines[0];
    assert_eq!((&line["event_id"], &line["session"]), (&json!("telegram:1:1"), &json!("telegram:5")));
    assert_eq!((&line["function"], &line["level"], &line["Events"]), (&json!("agent"), &json!("INFO"), &json!(1)));
    let metrics = &line["_aws"]["CloudWatchMetrics"][0];
    assert_eq!(metrics["Namespace"], "Turnlock");
    assert_eq!(metrics["Dimensions"], json!([["function", "channel", "outcome"]]));
    assert_eq!(metrics["Metrics"], json!([{ "Name": "Events", "Unit": "Count" }]));
    assert!(line["_aws"]["Timestamp"].is_i64());
    // Every dimension and metric is a field of the line.
    assert!(line["channel"] == "telegram" && line["outcome"] == "committed");
    assert!(line.get("reason").is_none(), "an empty field says nothing");
}

#[test]
fn a_dead_item_and_a_batch_count() {
    let lines = lines(|| {
        let item = turnlock_store::dead::DeadItem {
            event_id: EventId::from_stored("e1"),
            queue: "inbound".to_owned(),
            reason: "given up".to_owned(),
            body: "planted".to_owned(),
            at: turnlock_domain::time::Millis(0),
            receive_count: 11,
        };
        journal_line::dead(&item);
        batch(3, 1, Duration::from_millis(1500));
        let session = SessionKey::from_text("telegram:1");
        journal_line::wait(&EventId::from_stored("telegram:1:2".to_owned()), &session, Duration::from_secs(61));
    });
    assert_eq!(
        (&lines[0]["Dead"], &lines[0]["_aws"]["CloudWatchMetrics"][0]["Dimensions"]),
        (&json!(1), &json!([["function"]]))
    );
    assert!(!lines[0].to_string().contains("planted"));
    assert_eq!(
        (&lines[1]["records"], &lines[1]["given_back"], &lines[1]["oldest_ms"]),
        (&json!(3), &json!(1), &json!(1500))
    );
    assert_eq!(lines[1]["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap().len(), 3);
    assert_eq!(
        (&lines[2]["waited_ms"], &lines[2]["_aws"]["CloudWatchMetrics"][0]["Metrics"]),
        (&json!(61_000), &json!([{ "Name": "waited_ms", "Unit": "Milliseconds" }]))
    );
}

#[test]
fn a_line_has_the_fields_of_its_spans() {
    let lines = lines(|| {
        let span = tracing::info_span!(
            "record",
            message_id = "m1",
            traceparent = "00-1-2-01",
            receives = 2,
            cause = tracing::field::Empty
        );
        span.in_scope(|| {
            span.record("cause", "late");
            tracing::warn!(message_id = "own", "something {}", "went \"wrong\"");
        });
        tracing::info!("outside");
    });
    assert_eq!((&lines[0]["traceparent"], &lines[0]["receives"]), (&json!("00-1-2-01"), &json!(2)));
    assert_eq!((&lines[0]["message_id"], &lines[0]["cause"]), (&json!("own"), &json!("late")));
    assert_eq!(lines[0]["message"], "something went \"wrong\"");
    assert!(lines[1].get("traceparent").is_none() && lines[1].get("_aws").is_none());
}

#[test]
fn a_misspelt_level_is_refused() {
    for wrong in ["bogus", "inof", "info,=", "warn,turnlock=loud"] {
        assert!(filter(Some(wrong.to_owned())).is_err(), "{wrong}");
    }
    for right in ["info", "DEBUG", "warn,turnlock_app=debug", ""] {
        assert!(filter(Some(right.to_owned())).is_ok(), "{right}");
    }
}

/// An alarm looks at what these lines count.
#[test]
fn lines_that_count_are_written_whatever_the_filter_says() {
    for level in ["off", "error", "warn", "info", "debug", "warn,turnlock_app=debug"] {
        let targets = filter(Some(level.to_owned())).unwrap();
        for target in METRICS.iter().map(|metric| metric.target).chain([BATCH]) {
            assert!(targets.would_enable(target, &tracing::Level::INFO), "{target} at {level}");
        }
        assert!(!targets.would_enable("turnlock::outbound", &tracing::Level::INFO) || level == "debug", "{level}");
    }
    assert!(!filter(Some("off".to_owned())).unwrap().would_enable("turnlock_app", &tracing::Level::ERROR));
}

/// An event that an observer did not take counts, whatever the level is.
#[test]
fn a_copy_that_was_not_taken_counts() {
    use turnlock_app::deliver::observers::UNOBSERVED;
    let lines = lines(|| tracing::warn!(target: UNOBSERVED, observer = "bus", "not taken"));
    assert_eq!((&lines[0]["Unobserved"], &lines[0]["observer"]), (&json!(1), &json!("bus")));
    assert_eq!(lines[0]["_aws"]["CloudWatchMetrics"][0]["Dimensions"], json!([["function", "observer"]]));
    assert!(filter(Some("off".to_owned())).unwrap().would_enable(UNOBSERVED, &tracing::Level::WARN));
}
