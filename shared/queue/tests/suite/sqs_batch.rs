//! Many messages at once: how they are cut into requests, and what becomes of each.

use serde_json::{Value, json};
use turnlock_queue::{MAX_BYTES, NewMessage, PUBLISH_TIMEOUT, Queue, SendError};

use crate::wire::{Answer, FIFO, INTERNAL, STANDARD, THROTTLED, Wire};

/// An answer that accepts the entries with these ids.
fn accepted(ids: &[usize]) -> Value {
    let entries = ids.iter().map(|id| json!({ "Id": id.to_string(), "MessageId": "m", "MD5OfMessageBody": "d" }));
    entries.collect()
}

fn all(ids: &[usize]) -> Answer {
    Answer::Done(json!({ "Successful": accepted(ids) }))
}

/// An answer that accepts some entries and fails others: id, SQS's code, whether it blames the sender.
fn some(ids: &[usize], failed: &[(usize, &str, bool)]) -> Answer {
    let failed = failed.iter().map(|(id, code, sender)| {
        json!({ "Id": id.to_string(), "Code": code, "Message": "Request is refused.", "SenderFault": sender })
    });
    Answer::Done(json!({ "Successful": accepted(ids), "Failed": failed.collect::<Value>() }))
}

/// The entries' ids, request by request.
fn requests(wire: &Wire) -> Vec<Vec<usize>> {
    let ids = |body: &Value| {
        let entries = body["Entries"].as_array().unwrap().iter();
        entries.map(|entry| entry["Id"].as_str().unwrap().parse().unwrap()).collect()
    };
    wire.sent()
        .iter()
        .map(|request| {
            assert_eq!(request.operation, "SendMessageBatch");
            ids(&request.body)
        })
        .collect()
}

/// Messages of these groups, in this order.
fn fifo(groups: &[&str]) -> Vec<NewMessage> {
    let messages = groups.iter().enumerate();
    messages.map(|(place, group)| NewMessage::fifo(format!("body {place}"), *group, place.to_string())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_request_holds_what_each_message_has() {
    let wire = Wire::new([all(&[0])]);
    let mut message = NewMessage::fifo("hello", "s1", "1001.redrive1");
    message.attributes.insert("traceparent".into(), "00-0af7-b7ad-01".into());
    assert!(wire.queue(FIFO).send_all(vec![message]).await[0].is_ok());
    assert_eq!(
        wire.sent()[0].body,
        json!({ "QueueUrl": FIFO, "Entries": [{
            "Id": "0",
            "MessageBody": "hello",
            "MessageAttributes": { "traceparent": { "DataType": "String", "StringValue": "00-0af7-b7ad-01" } },
            "MessageGroupId": "s1",
            "MessageDeduplicationId": "1001.redrive1",
        }] })
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_holds_ten_messages() {
    let wire = Wire::new([all(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), all(&[10, 11])]);
    let messages = (0..12).map(|_| NewMessage::standard("job")).collect();
    let outcomes = wire.queue(STANDARD).send_all(messages).await;
    assert!(outcomes.len() == 12 && outcomes.iter().all(Result::is_ok));
    assert_eq!(requests(&wire), [vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9], vec![10, 11]]);
    assert!(Wire::new([]).queue(STANDARD).send_all(vec![]).await.is_empty());
}

/// Case sqs-batch-total-size: ten messages of 30,000 bytes do not fit 262,144, eight do. The limit itself fits.
#[tokio::test(start_paused = true)]
async fn sqs_batch_total_size() {
    let messages = |bytes: &[usize]| bytes.iter().map(|bytes| NewMessage::standard("x".repeat(*bytes))).collect();
    let wire = Wire::new([all(&[0, 1, 2, 3, 4, 5, 6, 7]), all(&[8, 9])]);
    let outcomes = wire.queue_of(STANDARD, 262_144).send_all(messages(&[30_000; 10])).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(requests(&wire), [vec![0, 1, 2, 3, 4, 5, 6, 7], vec![8, 9]]);

    let wire = Wire::new([all(&[0, 1]), all(&[2])]);
    let outcomes = wire.queue_of(STANDARD, 100).send_all(messages(&[50, 50, 1])).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(requests(&wire), [vec![0, 1], vec![2]]);

    let wire = Wire::new([all(&[0]), all(&[1])]);
    let mut with_attribute: Vec<NewMessage> = messages(&[50, 50]);
    with_attribute[1].attributes.insert("a".into(), "b".into());
    let outcomes = wire.queue_of(STANDARD, 100).send_all(with_attribute).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(requests(&wire), [[0], [1]]);
}

/// Case sqs-size: what is too large is refused alone, before anything is sent.
#[tokio::test(start_paused = true)]
async fn sqs_size_refuses_one_message_of_many() {
    let wire = Wire::new([all(&[0, 2])]);
    let messages = ["a".to_owned(), "x".repeat(MAX_BYTES + 1), "b".to_owned()].map(NewMessage::standard);
    let outcomes = wire.queue(STANDARD).send_all(messages.into()).await;
    assert!(matches!(outcomes[..], [Ok(()), Err(SendError::TooLarge { .. }), Ok(())]), "{outcomes:?}");
    assert_eq!(requests(&wire), [[0, 2]]);
}

#[tokio::test(start_paused = true)]
async fn a_request_holds_one_message_of_a_group() {
    let wire = Wire::new([all(&[0, 2]), all(&[1, 4]), all(&[3])]);
    let outcomes = wire.queue(FIFO).send_all(fifo(&["a", "a", "b", "a", "b"])).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(requests(&wire), [vec![0, 2], vec![1, 4], vec![3]]);
}

/// A message that does not fit holds back the smaller ones behind it in its group, and no other group.
#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_not_overtaken() {
    let bodies = [("a", 60), ("b", 60), ("b", 1), ("c", 40)];
    let messages = bodies.iter().enumerate();
    let messages =
        messages.map(|(place, (group, bytes))| NewMessage::fifo("x".repeat(*bytes), *group, place.to_string()));
    let wire = Wire::new([all(&[0, 3]), all(&[1]), all(&[2])]);
    let outcomes = wire.queue_of(FIFO, 100).send_all(messages.collect()).await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(requests(&wire), [vec![0, 3], vec![1], vec![2]]);
}

#[tokio::test(start_paused = true)]
async fn failed_entries_are_sent_again_alone() {
    let wire = Wire::new([
        some(&[0], &[(1, "InternalError", false), (2, "RequestThrottled", true)]),
        some(&[2], &[(1, "ServiceUnavailable", false)]),
        all(&[1]),
        all(&[3]),
    ]);
    let outcomes = wire.queue(FIFO).send_all(fifo(&["a", "b", "c", "b"])).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    // The second message of `b` waits for the first one.
    assert_eq!(requests(&wire), [vec![0, 1, 2], vec![1, 2], vec![1], vec![3]]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_fails_as_a_whole_is_sent_again() {
    for fault in [THROTTLED, INTERNAL, Answer::Refused, Answer::Broken, Answer::Silence] {
        let wire = Wire::new([fault, all(&[0, 1])]);
        let outcomes = wire.queue(FIFO).send_all(fifo(&["a", "b"])).await;
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        assert_eq!(requests(&wire), [[0, 1], [0, 1]]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_is_refused_is_the_only_one_and_its_group_goes_on() {
    let wire = Wire::new([some(&[1], &[(0, "InvalidMessageContents", true)]), all(&[2])]);
    let outcomes = wire.queue(FIFO).send_all(fifo(&["a", "b", "a"])).await;
    assert!(matches!(outcomes[..], [Err(SendError::Invalid(_)), Ok(()), Ok(())]), "{outcomes:?}");
    assert_eq!(requests(&wire), [vec![0, 1], vec![2]]);
}

#[tokio::test(start_paused = true)]
async fn after_a_failure_that_lasts_nothing_more_of_its_group_is_sent() {
    let failing = [(0, "RequestThrottled", true)];
    let first = some(&[1], &failing);
    let again = some(&[], &failing);
    let wire = Wire::new([first, again.clone(), again.clone(), again.clone(), again.clone(), again, all(&[3])]);
    let outcomes = wire.queue(FIFO).send_all(fifo(&["a", "b", "a", "b"])).await;
    let [Err(SendError::Full { .. }), Ok(()), Err(SendError::Unreachable(behind)), Ok(())] = &outcomes[..] else {
        panic!("{outcomes:?}")
    };
    assert_eq!(behind.to_string(), "an earlier message of its group was not sent");
    assert_eq!(requests(&wire), [vec![0, 1], vec![0], vec![0], vec![0], vec![0], vec![0], vec![3]]);
}

/// On a standard queue nobody waits for anybody.
#[tokio::test(start_paused = true)]
async fn a_standard_queue_has_no_order_to_keep() {
    let message = || NewMessage { group: Some("tenant".into()), ..NewMessage::standard("job") };
    let wire = Wire::new([some(&[1], &[(0, "InvalidParameterValue", true)])]);
    let outcomes = wire.queue(STANDARD).send_all(vec![message(), message()]).await;
    assert!(matches!(outcomes[..], [Err(SendError::Unreachable(_)), Ok(())]), "{outcomes:?}");
    assert_eq!(requests(&wire), [[0, 1]]);
}

/// An entry that the answer leaves out, or whose answer was lost once, may have been accepted.
#[tokio::test(start_paused = true)]
async fn lost_answers_of_entries_are_told() {
    let (outcomes, _) = sending([all(&[0])]).await;
    assert!(matches!(outcomes[..], [Ok(()), Err(SendError::LostAnswer(_))]), "{outcomes:?}");
    let (outcomes, _) = sending([Answer::Broken, some(&[0], &[(1, "InvalidMessageContents", true)])]).await;
    assert!(matches!(outcomes[..], [Ok(()), Err(SendError::LostAnswer(_))]), "{outcomes:?}");
    let (outcomes, wire) = sending([Answer::Broken, THROTTLED]).await;
    assert!(matches!(outcomes[..], [Err(SendError::LostAnswer(_)), Err(SendError::LostAnswer(_))]), "{outcomes:?}");
    assert_eq!(wire.sent().len(), 6);
}

async fn sending(answers: impl IntoIterator<Item = Answer>) -> (Vec<Result<(), SendError>>, Wire) {
    let wire = Wire::new(answers);
    let outcomes = wire.queue(FIFO).send_all(fifo(&["a", "b"])).await;
    (outcomes, wire)
}

#[tokio::test(start_paused = true)]
async fn a_request_ends_with_the_publish_timeout() {
    let start = tokio::time::Instant::now();
    let (outcomes, wire) = sending([Answer::Silence]).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(SendError::LostAnswer(_)))), "{outcomes:?}");
    assert_eq!(start.elapsed(), PUBLISH_TIMEOUT);
    assert_eq!(wire.sent().len(), 3);
}
