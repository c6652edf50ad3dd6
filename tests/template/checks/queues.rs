//! Queues: modes, lifetimes, visibilities, dead letters, and who drains them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use turnlock_config::Config;
use turnlock_host::queues;
use turnlock_queue::MAX_BYTES;
use turnlock_store::{LEDGER_LIFETIME, MARKER_LIFETIME};
use turnlock_tests::template::{Template, sources, target};

use super::{seconds, unless};

/// AWS's advice for event sources: a message is not seen again while its function may still be at it or throttled.
const VISIBILITY_FACTOR: i64 = 6;

/// The queues are those of one process, and of their kinds, and take messages as large as the code counts with. High
/// throughput: a group is the scope of everything, and ids are ours, never the content's (case `sqs-dedup-content`).
pub(in super::super) fn settings(template: &Template) -> Vec<String> {
    let fifo = template.queues().filter(|(_, queue)| is_fifo(queue));
    let wanted = [
        ("DeduplicationScope", Value::from("messageGroup")),
        ("FifoThroughputLimit", Value::from("perMessageGroupId")),
        ("ContentBasedDeduplication", Value::from(false)),
    ];
    let wrong = fifo.flat_map(|(id, queue)| {
        let wrong = wanted.iter().filter(|(name, value)| queue[name] != *value);
        wrong.map(move |(name, value)| format!("{id}: {name} is not {value}")).collect::<Vec<_>>()
    });
    let small = template.queues().filter_map(|(id, queue)| {
        let largest = &queue["MaximumMessageSize"];
        unless(*largest == MAX_BYTES, || format!("{id}: a message has {largest} bytes at most, not {MAX_BYTES}"))
    });
    let local = queues::settings(&Config::default()).into_iter().map(|queue| (logical(&queue.name), queue.fifo));
    let deployed = template.queues().map(|(id, queue)| (id.to_owned(), is_fifo(queue)));
    let (local, deployed): (BTreeMap<_, _>, BTreeMap<_, _>) = (local.collect(), deployed.collect());
    let kinds = unless(local == deployed, || format!("FIFO or not: {deployed:?}, in one process {local:?}"));
    wrong.chain(small).chain(kinds).collect()
}

/// Every queue has dead letters but those that hold them; of the same kind; after as many receives as in one process.
pub(in super::super) fn dead_letters(template: &Template) -> Vec<String> {
    let dead: BTreeSet<&str> = template.queues().filter_map(|(_, queue)| dead_letter_queue(queue)).collect();
    let receives = receives();
    let found = template.queues().flat_map(|(id, queue)| {
        let receive_count = queue["RedrivePolicy"]["maxReceiveCount"].as_u64();
        match dead_letter_queue(queue) {
            None => vec![unless(dead.contains(id), || format!("{id}: nothing becomes of what it gives up"))],
            Some(to) => vec![
                unless(!dead.contains(id), || format!("{id}: its messages were given up before")),
                unless(is_fifo(queue) == is_fifo(template.properties(to)), || format!("{id}: {to} is of another kind")),
                unless(receive_count == receives.get(id).copied(), || {
                    format!("{id}: maxReceiveCount is not {:?}", receives.get(id))
                }),
            ],
        }
    });
    found.flatten().collect()
}

/// What the queues of one process have.
fn receives() -> BTreeMap<String, u64> {
    let settings = queues::settings(&Config::default());
    settings.iter().map(|queue| (logical(&queue.name), u64::from(queue.max_receive_count))).collect()
}

/// `dead-letter` is `DeadLetterQueue`.
fn logical(name: &str) -> String {
    let words = name.split('-').map(|word| word[..1].to_ascii_uppercase() + &word[1..]);
    words.collect::<String>() + "Queue"
}

/// A message may spend its whole retention in a queue, and the whole of another among the dead letters. Its marker must
/// outlive both, the ledger the marker.
pub(in super::super) fn lifetimes(template: &Template) -> Vec<String> {
    let retention = |queue: &Value| seconds(&queue["MessageRetentionPeriod"]);
    let longest = seconds(&Value::from(14 * 24 * 3600));
    let short = template.queues().filter_map(|(id, queue)| {
        unless(retention(queue) == longest, || {
            format!("{id}: its messages are deleted early, after {} s", retention(queue))
        })
    });
    let forgotten = template.queues().filter_map(|(id, queue)| {
        let both = retention(queue) + retention(template.properties(dead_letter_queue(queue)?));
        let outlived = Duration::from_secs(u64::try_from(both).ok()?) < MARKER_LIFETIME;
        unless(outlived, || format!("{id}: its messages outlive their markers"))
    });
    let ledger = unless(MARKER_LIFETIME < LEDGER_LIFETIME, || "markers outlive the ledger".to_owned());
    short.chain(forgotten).chain(ledger).collect()
}

/// Case `sqs-visibility-six`.
pub(in super::super) fn visibility(template: &Template) -> Vec<String> {
    let mut found = Vec::new();
    for (id, function) in template.functions() {
        for source in sources(function) {
            let visibility = seconds(&template.properties(source.queue)["VisibilityTimeout"]);
            let timeout = seconds(&function["Timeout"]);
            found.extend(unless(visibility == VISIBILITY_FACTOR * timeout, || {
                format!("{}: {visibility} s out of sight, {id} takes {timeout} s", source.queue)
            }));
        }
    }
    found
}

/// Each queue has one function (what a filter does not match, Lambda deletes), which takes one record at a time, says what
/// it did not finish, and is not given more than it may run.
pub(in super::super) fn consumers(template: &Template) -> Vec<String> {
    let mut drained: BTreeMap<&str, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (id, function) in template.functions() {
        for source in sources(function) {
            *drained.entry(source.queue).or_default() += 1;
            let most = source.properties["ScalingConfig"]["MaximumConcurrency"].as_u64().unwrap_or(0);
            let reports = source.properties["FunctionResponseTypes"] == Value::from(vec!["ReportBatchItemFailures"]);
            let place = format!("{id} from {}", source.queue);
            found.extend([
                unless(reports, || format!("{place}: a batch fails as a whole")),
                unless(source.properties["BatchSize"] == 1, || format!("{place}: records wait for each other")),
                unless((2..=1000).contains(&most), || format!("{place}: MaximumConcurrency {most}, not 2 to 1000")),
                unless(source.properties["FilterCriteria"].is_null(), || format!("{place}: a filter deletes messages")),
            ]);
        }
    }
    let of = |id: &str| drained.get(id).copied().unwrap_or_default();
    found.extend(
        template.queues().map(|(id, _)| unless(of(id) == 1, || format!("{id}: {} functions drain it", of(id)))),
    );
    found.into_iter().flatten().collect()
}

fn is_fifo(queue: &Value) -> bool {
    queue["FifoQueue"] == true
}

fn dead_letter_queue(queue: &Value) -> Option<&str> {
    target(&queue["RedrivePolicy"]["deadLetterTargetArn"])
}
