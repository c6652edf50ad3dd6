//! Lambda's event source mappings for SQS, by the rules of AWS ("Using Lambda with Amazon SQS", "Handling errors for an
//! SQS event source"), where ministack's own differ: groups of a FIFO queue run in parallel, and a result that says
//! nothing valid fails its whole batch. What failed becomes visible when its visibility ends: nothing shortens it.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::cloud::{Cloud, REGION};
use super::lambda::Lambda;

/// How long a request waits for messages, in seconds.
const WAIT: u64 = 20;

/// An event source mapping.
#[derive(Debug, Clone)]
pub(super) struct Mapping {
    /// The function's name in the stack.
    pub(super) function: String,
    /// The queue.
    pub(super) queue_url: String,
    /// Its ARN.
    pub(super) queue_arn: String,
    /// How many messages a batch has at most.
    pub(super) batch_size: u64,
    /// How many batches are processed at once.
    pub(super) concurrency: usize,
    /// Whether the function says which records failed (`ReportBatchItemFailures`).
    pub(super) reports_failures: bool,
}

/// Polls until it is dropped. Batches in work are given up with it.
pub(super) async fn poll(mapping: Mapping, cloud: Arc<Cloud>, lambda: Arc<Lambda>) {
    let slots = Arc::new(Semaphore::new(mapping.concurrency));
    let mapping = Arc::new(mapping);
    let mut batches = JoinSet::new();
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await.unwrap();
        let request = json!({
            "QueueUrl": mapping.queue_url,
            "MaxNumberOfMessages": mapping.batch_size,
            "WaitTimeSeconds": WAIT,
            "AttributeNames": ["All"],
            "MessageAttributeNames": ["All"],
        });
        let answer = cloud.json("AmazonSQS.ReceiveMessage", &request).await;
        let messages = answer["Messages"].as_array().cloned().unwrap_or_default();
        while let Some(ended) = batches.try_join_next() {
            ended.unwrap();
        }
        if messages.is_empty() {
            continue;
        }
        let (mapping, cloud, lambda) = (Arc::clone(&mapping), Arc::clone(&cloud), Arc::clone(&lambda));
        batches.spawn(async move {
            process(&mapping, &cloud, &lambda, &messages).await;
            drop(slot);
        });
    }
}

/// Gives a batch to the function and deletes what succeeded.
async fn process(mapping: &Mapping, cloud: &Cloud, lambda: &Lambda, messages: &[Value]) {
    let records: Vec<Value> = messages.iter().map(|message| record(message, &mapping.queue_arn)).collect();
    let payload = Bytes::from(json!({ "Records": records }).to_string());
    let Ok(result) = lambda.invoke_named(&mapping.function, payload).await else { return };
    let ids: BTreeSet<&str> = messages.iter().filter_map(|message| message["MessageId"].as_str()).collect();
    let failed = if mapping.reports_failures { failures(&result, &ids) } else { Some(BTreeSet::new()) };
    let Some(failed) = failed else { return };
    for message in messages {
        let id = message["MessageId"].as_str().unwrap();
        if !failed.contains(id) {
            let request = json!({ "QueueUrl": mapping.queue_url, "ReceiptHandle": message["ReceiptHandle"] });
            cloud.json("AmazonSQS.DeleteMessage", &request).await;
        }
    }
}

/// Which of `ids` failed by the function's result; none if the whole batch did.
fn failures(result: &[u8], ids: &BTreeSet<&str>) -> Option<BTreeSet<String>> {
    let result: Value = serde_json::from_slice(result).ok()?;
    let list = match &result {
        Value::Null => return Some(BTreeSet::new()),
        Value::Object(object) => object.get("batchItemFailures").unwrap_or(&Value::Null),
        _ => return None,
    };
    let list = match list {
        Value::Null => return Some(BTreeSet::new()),
        Value::Array(list) => list,
        _ => return None,
    };
    let failed = list.iter().map(|entry| entry["itemIdentifier"].as_str().filter(|id| ids.contains(id)));
    failed.map(|id| id.map(str::to_owned)).collect()
}

/// A message as Lambda passes it on.
fn record(message: &Value, queue_arn: &str) -> Value {
    let attributes = message["MessageAttributes"].as_object().cloned().unwrap_or_default();
    let attributes = attributes.into_iter().map(|(name, value)| (name, lower_first(value)));
    json!({
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": attributes.collect::<Map<_, _>>(),
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": REGION,
    })
}

/// `StringValue` is `stringValue` in an event, and so on.
fn lower_first(value: Value) -> Value {
    let Value::Object(fields) = value else { return value };
    let lowered = fields.into_iter().map(|(name, value)| {
        let mut letters = name.chars();
        let first = letters.next().map(|first| first.to_ascii_lowercase());
        (first.into_iter().chain(letters).collect::<String>(), value)
    });
    Value::Object(lowered.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_fails_records_or_the_whole_batch() {
        let ids = BTreeSet::from(["m1", "m2"]);
        let some = |ids: &[&str]| Some(ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<_>>());
        for (result, expected) in [
            ("null", some(&[])),
            ("{}", some(&[])),
            (r#"{"batchItemFailures":null}"#, some(&[])),
            (r#"{"batchItemFailures":[]}"#, some(&[])),
            (r#"{"batchItemFailures":[{"itemIdentifier":"m2"}]}"#, some(&["m2"])),
            (r#"{"batchItemFailures":[{"itemIdentifier":"m3"}]}"#, None),
            (r#"{"batchItemFailures":[{"itemIdentifier":""}]}"#, None),
            (r#"{"batchItemFailures":[{"itemIdentifier":null}]}"#, None),
            (r#"{"batchItemFailures":[{"id":"m1"}]}"#, None),
            ("done", None),
            ("", None),
        ] {
            assert_eq!(failures(result.as_bytes(), &ids), expected, "{result}");
        }
    }

    #[test]
    fn a_record_has_the_events_spelling() {
        let message = json!({
            "MessageId": "m1",
            "ReceiptHandle": "h",
            "Body": "{}",
            "MD5OfBody": "x",
            "Attributes": { "MessageGroupId": "g", "ApproximateReceiveCount": "1" },
            "MessageAttributes": { "traceparent": { "DataType": "String", "StringValue": "00-1" } },
        });
        let record = record(&message, "arn:aws:sqs:us-east-1:0:q");
        assert_eq!(record["messageAttributes"]["traceparent"], json!({ "dataType": "String", "stringValue": "00-1" }));
        assert_eq!(record["attributes"]["MessageGroupId"], "g");
        assert_eq!(record["messageId"], "m1");
    }
}
