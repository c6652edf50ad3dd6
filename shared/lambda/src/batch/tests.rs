use std::sync::Mutex;

use async_trait::async_trait;
use serde_json::{Value, json};
use turnlock_queue::{NewMessage, QueueError, ReceiptError, SendError};

use super::*;

/// Notes the visibilities that are set.
#[derive(Default)]
struct Visibilities(Mutex<Vec<(String, u64)>>);

#[async_trait]
impl Queue for Visibilities {
    async fn send(&self, _message: NewMessage) -> Result<(), SendError> {
        unreachable!("a batch sends nothing")
    }

    async fn set_visibility(&self, receipt: &Receipt, visibility: Duration) -> Result<(), ReceiptError> {
        self.0.lock().unwrap().push((receipt.0.clone(), visibility.as_secs()));
        Ok(())
    }

    async fn waiting(&self) -> Result<u64, QueueError> {
        unreachable!("a batch asks for nothing")
    }
}

/// An event with a record for each (id, group).
fn event(records: &[(&str, Option<&str>)]) -> Value {
    let source = if records.iter().any(|(_, group)| group.is_some()) { "inbound.fifo" } else { "review" };
    let record = |(id, group): &(&str, Option<&str>)| {
        let mut attributes = json!({ "ApproximateReceiveCount": "3", "SentTimestamp": "1760000000123" });
        if let Some(group) = group {
            attributes["MessageGroupId"] = json!(group);
        }
        json!({
            "messageId": id, "receiptHandle": format!("r-{id}"), "body": id, "attributes": attributes,
            "messageAttributes": {
                "traceparent": { "stringValue": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                    "dataType": "String", "binaryListValues": [], "stringListValues": [] },
                "blob": { "binaryValue": "AAAA", "dataType": "Binary" },
            },
            "md5OfBody": "", "eventSource": "aws:sqs", "awsRegion": "eu-central-1",
            "eventSourceARN": format!("arn:aws:sqs:eu-central-1:123456789012:{source}"),
        })
    };
    json!({ "Records": records.iter().map(record).collect::<Vec<_>>() })
}

fn batch(records: &[(&str, Option<&str>)], left: Duration) -> Batch {
    let clock = Clock::system();
    let event: Event = serde_json::from_value(event(records)).unwrap();
    let deadline = clock.now_ms().0 + i64::try_from(left.as_millis()).unwrap();
    event.into_batch(u64::try_from(deadline).unwrap(), &clock)
}

/// What ran, what comes again, and the visibilities that the runner itself set. `failing` give themselves back for 7 s.
async fn run(batch: Batch, failing: &[&str]) -> (Vec<String>, Vec<String>, Vec<(String, u64)>) {
    let (queue, ran) = (Visibilities::default(), Mutex::new(Vec::new()));
    let back = batch
        .each(&queue, async |record, _| {
            ran.lock().unwrap().push(record.message_id.clone());
            match failing.contains(&record.body.as_str()) {
                true => Handled::GivenBack(Duration::from_secs(7)),
                false => Handled::Done,
            }
        })
        .await;
    (ran.into_inner().unwrap(), back, queue.0.into_inner().unwrap())
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_record_is_what_was_sent() {
    let batch = batch(&[("m1", Some("g"))], MINUTE);
    let record = &batch.records[0];
    assert_eq!((record.message_id.as_str(), record.receipt.0.as_str(), record.body.as_str()), ("m1", "r-m1", "m1"));
    assert_eq!((record.group.as_deref(), record.receive_count, record.sent_at.0), (Some("g"), 3, 1_760_000_000_123));
    assert_eq!(record.attributes.keys().collect::<Vec<_>>(), ["traceparent"]);
    let left = batch.deadline - Instant::now();
    assert!(batch.is_fifo && left > Duration::from_secs(58) && left <= MINUTE, "{left:?}");
}

/// Cases sqs-fifo-unprocessed-lost and sqs-fifo-continue: what was not run is reported, and not run.
#[tokio::test]
async fn sqs_fifo_unprocessed_lost_sqs_fifo_continue() {
    let group = Some("g");
    let (ran, back, set) = run(batch(&[("m1", group), ("m2", group), ("m3", group)], MINUTE), &["m2"]).await;
    assert_eq!((ran, back), (vec!["m1".into(), "m2".into()], vec!["m2".to_owned(), "m3".to_owned()]));
    assert_eq!(set, [("r-m3".to_owned(), 7)], "with the visibility of the first");
}

/// Case sqs-fifo-other-group: another group goes on.
#[tokio::test]
async fn sqs_fifo_other_group() {
    let records = [("m1", Some("s1")), ("m2", Some("s2")), ("m3", Some("s1")), ("m4", Some("s2"))];
    let (ran, back, _) = run(batch(&records, MINUTE), &["m1"]).await;
    assert_eq!(ran, ["m1", "m2", "m4"]);
    assert_eq!(back, ["m1", "m3"]);
}

#[tokio::test]
async fn standard_queues_have_no_groups() {
    let (ran, back, set) = run(batch(&[("m1", None), ("m2", None), ("m3", None)], MINUTE), &["m1", "m3"]).await;
    assert_eq!((ran.len(), back), (3, vec!["m1".to_owned(), "m3".to_owned()]));
    assert!(set.is_empty(), "the handler's own");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_started_that_could_not_be_finished() {
    let queue = Visibilities::default();
    let batch = batch(&[("m1", Some("s1")), ("m2", Some("s2")), ("m3", Some("s1"))], Duration::from_secs(10));
    let back = batch
        .each(&queue, async |record, deadline| {
            assert!(record.message_id == "m1" && Instant::now() < deadline);
            tokio::time::sleep(Duration::from_secs(8)).await;
            Handled::Done
        })
        .await;
    assert_eq!(back, ["m2", "m3"]);
    assert_eq!(queue.0.into_inner().unwrap(), [("r-m2".to_owned(), 0), ("r-m3".to_owned(), 0)]);
}

#[tokio::test]
async fn a_panic_gives_its_record_back_and_touches_no_other() {
    let queue = Visibilities::default();
    let records = [("m1", Some("s1")), ("m2", Some("s1")), ("m3", Some("s2"))];
    let back = batch(&records, MINUTE)
        .each(&queue, async |record, _| {
            assert_ne!(record.message_id, "m1", "planted");
            Handled::Done
        })
        .await;
    assert_eq!(back, ["m1", "m2"]);
    assert_eq!(queue.0.into_inner().unwrap(), [("r-m1".to_owned(), 30), ("r-m2".to_owned(), 30)]);
}

/// Case lm-spawn-frozen: nothing runs on when a batch has ended.
#[tokio::test]
async fn lm_spawn_frozen() {
    let (_, back, _) = run(batch(&[("m1", Some("s1")), ("m2", Some("s2"))], MINUTE), &["m2"]).await;
    assert_eq!(back, ["m2"]);
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[test]
fn an_answer_names_each_record_once() {
    let answer = Answer::new(vec!["m2".into(), "m1".into(), "m2".into()]);
    let expected = json!({ "batchItemFailures": [{ "itemIdentifier": "m1" }, { "itemIdentifier": "m2" }] });
    assert_eq!(serde_json::to_value(answer).unwrap(), expected);
}

#[test]
fn what_is_no_batch_is_an_error() {
    for odd in [json!({}), json!({ "Records": [{}] }), json!({ "Records": null }), json!("text")] {
        assert!(serde_json::from_value::<Event>(odd.clone()).is_err(), "{odd}");
    }
    assert!(serde_json::from_value::<Event>(event(&[])).unwrap().records.is_empty());
}
