//! SQS on the wire: what is sent, and what each answer, or its absence, is taken for.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use turnlock_domain::time::Millis;
use turnlock_queue::{
    InvalidMessage, MAX_VISIBILITY, NewMessage, PUBLISH_TIMEOUT, Queue, Receipt, ReceiptError, Record, SendError,
};

use crate::kit::seconds;
use crate::wire::{Answer, FIFO, INTERNAL, STANDARD, THROTTLED, Wire, sent};

fn message() -> NewMessage {
    NewMessage::fifo("hello", "s1", "telegram:b:1001")
}

fn receipt() -> Receipt {
    Receipt("AQEB".into())
}

/// What sending comes to behind these answers, and how many requests it took.
async fn sending(answers: impl IntoIterator<Item = Answer>) -> (Result<(), SendError>, usize) {
    let wire = Wire::new(answers);
    let outcome = wire.queue(FIFO).send(message()).await;
    (outcome, wire.sent().len())
}

#[tokio::test(start_paused = true)]
async fn a_message_goes_out_with_its_ids_and_attributes_and_nothing_else() {
    let wire = Wire::new([sent()]);
    let attributes = BTreeMap::from([("traceparent".to_owned(), "00-0af7-b7ad-01".to_owned())]);
    wire.queue(FIFO).send(NewMessage { attributes, ..message() }).await.unwrap();
    let [request] = &wire.sent()[..] else { panic!("one request") };
    assert_eq!(request.operation, "SendMessage");
    assert_eq!(
        request.body,
        json!({
            "QueueUrl": FIFO,
            "MessageBody": "hello",
            "MessageAttributes": { "traceparent": { "DataType": "String", "StringValue": "00-0af7-b7ad-01" } },
            "MessageGroupId": "s1",
            "MessageDeduplicationId": "telegram:b:1001",
        })
    );
}

#[tokio::test(start_paused = true)]
async fn a_standard_queue_gets_a_delay_in_whole_seconds_rounded_up() {
    let wire = Wire::new([sent()]);
    let delay = Duration::from_millis(1001);
    wire.queue(STANDARD).send(NewMessage { delay, ..NewMessage::standard("job") }).await.unwrap();
    assert_eq!(wire.sent()[0].body, json!({ "QueueUrl": STANDARD, "MessageBody": "job", "DelaySeconds": 2 }));
}

/// Cases sqs-size and sqs-dedup-content: the size counts with the attributes, ids are explicit, and what breaks a rule is
/// refused before anything is sent.
#[tokio::test(start_paused = true)]
async fn sqs_size_and_rules_are_looked_at_before_anything_is_sent() {
    let wire = Wire::new([]);
    let queue = wire.queue_of(FIFO, 262_144);
    let attributes = BTreeMap::from([("traceparent".to_owned(), "v".to_owned())]);
    let large = NewMessage { body: "x".repeat(262_144 - 17), attributes, ..message() };
    let outcome = queue.send(large).await;
    assert!(matches!(outcome, Err(SendError::TooLarge { bytes: 262_145, limit: 262_144 })), "{outcome:?}");
    let outcome = queue.send(NewMessage { deduplication_id: None, ..message() }).await;
    assert!(matches!(outcome, Err(SendError::Invalid(InvalidMessage::NoDeduplicationId))), "{outcome:?}");
    assert!(wire.sent().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_tried_again_as_the_same_message() {
    for fault in [THROTTLED, INTERNAL, Answer::Refused, Answer::Broken, Answer::Silence] {
        let wire = Wire::new([fault.clone(), fault, sent()]);
        wire.queue(FIFO).send(message()).await.unwrap();
        let requests = wire.sent();
        assert_eq!(requests.len(), 3);
        assert!(requests.iter().all(|request| request.body == requests[0].body));
    }
}

#[tokio::test(start_paused = true)]
async fn tries_are_spread_and_repeat_with_their_seed() {
    let after = async || {
        let wire = Wire::new([THROTTLED]);
        wire.queue(FIFO).send(message()).await.unwrap_err();
        wire.sent().iter().map(|request| request.after.as_millis()).collect::<Vec<_>>()
    };
    let times = after().await;
    assert_eq!(times, after().await);
    let gaps: Vec<u128> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let floors = [50, 100, 200, 400, 800];
    assert_eq!(gaps.len(), floors.len());
    assert!(gaps.iter().zip(floors).all(|(gap, floor)| (floor..=2 * floor + 2).contains(gap)), "{gaps:?}");
}

/// The names under which SQS, and KMS through it, throttle.
#[tokio::test(start_paused = true)]
async fn throttling_that_lasts_is_a_full_queue() {
    for code in ["RequestThrottled", "ThrottlingException", "Throttling", "OverLimit", "KMS.ThrottlingException"] {
        let (outcome, requests) = sending([Answer::Error(400, code, "")]).await;
        assert!(matches!(outcome, Err(SendError::Full { .. })), "{code}: {outcome:?}");
        assert_eq!(outcome.unwrap_err().retry_after(), Some(seconds(5)));
        assert_eq!(requests, 6);
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_says_whether_the_message_may_have_been_accepted() {
    let unavailable = Answer::Error(503, "ServiceUnavailable", "");
    for never in [Answer::Refused, unavailable] {
        let (outcome, requests) = sending([never]).await;
        assert!(matches!(outcome, Err(SendError::Unreachable(_))), "{outcome:?}");
        assert_eq!(requests, 6);
    }
    for perhaps in [Answer::Broken, INTERNAL, Answer::Done(Value::Null)] {
        let (outcome, _) = sending([perhaps]).await;
        assert!(matches!(outcome, Err(SendError::LostAnswer(_))), "{outcome:?}");
    }
    // Once it may have been accepted, no later try takes that back.
    for later in [THROTTLED, Answer::Refused, Answer::Error(403, "AccessDeniedException", "")] {
        let (outcome, _) = sending([Answer::Broken, later]).await;
        assert!(matches!(outcome, Err(SendError::LostAnswer(_))), "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn sending_ends_with_the_publish_timeout() {
    let wire = Wire::new([Answer::Silence]);
    let start = tokio::time::Instant::now();
    let outcome = wire.queue(FIFO).send(message()).await;
    assert!(matches!(outcome, Err(SendError::LostAnswer(_))), "{outcome:?}");
    assert_eq!(start.elapsed(), PUBLISH_TIMEOUT);
    assert_eq!(wire.sent().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_sqs_refuses_is_not_tried_again() {
    let shorter = "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.";
    let (outcome, requests) = sending([Answer::Error(400, "InvalidParameterValue", shorter)]).await;
    assert!(matches!(outcome, Err(SendError::TooLarge { bytes: 5, limit: 1024 })), "{outcome:?}");
    assert_eq!(requests, 1);

    let (outcome, requests) = sending([Answer::Error(400, "InvalidMessageContents", "")]).await;
    assert!(matches!(outcome, Err(SendError::Invalid(InvalidMessage::ControlCharacter))), "{outcome:?}");
    assert_eq!(requests, 1);

    // What the operator cures is no fault of the message.
    for code in ["AWS.SimpleQueueService.NonExistentQueue", "AccessDeniedException", "KMS.DisabledException"] {
        let (outcome, requests) = sending([Answer::Error(400, code, "")]).await;
        assert!(matches!(outcome, Err(SendError::Unreachable(_))), "{code}: {outcome:?}");
        assert_eq!(requests, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn visibility_is_sent_in_whole_seconds_rounded_up() {
    let millis = Duration::from_millis;
    let cases = [(millis(0), 0), (millis(1), 1), (millis(1000), 1), (millis(1001), 2), (MAX_VISIBILITY, 43_200)];
    for (visibility, expected) in cases {
        let wire = Wire::new([Answer::Done(json!({}))]);
        wire.queue(FIFO).set_visibility(&receipt(), visibility).await.unwrap();
        let [request] = &wire.sent()[..] else { panic!("one request") };
        assert_eq!(request.operation, "ChangeMessageVisibility");
        let expected = json!({ "QueueUrl": FIFO, "ReceiptHandle": "AQEB", "VisibilityTimeout": expected });
        assert_eq!(request.body, expected);
    }
    let wire = Wire::new([]);
    let outcome = wire.queue(FIFO).set_visibility(&receipt(), MAX_VISIBILITY + millis(1)).await;
    assert!(matches!(outcome, Err(ReceiptError::VisibilityTooLong(_))), "{outcome:?}");
    assert!(wire.sent().is_empty());
}

/// SQS's words for a receipt that has ended, for a visibility too far off, and for what only passes.
#[tokio::test(start_paused = true)]
async fn receipts_end_in_three_ways_of_saying_it() {
    let expired = "Value AQEB for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.";
    let gone = "Value AQEB for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available \
                for visibility timeout change.";
    let ended = [
        Answer::Error(400, "ReceiptHandleIsInvalid", "The input receipt handle is invalid."),
        Answer::Error(400, "AWS.SimpleQueueService.MessageNotInflight", ""),
        Answer::Error(400, "InvalidParameterValue", expired),
        Answer::Error(400, "InvalidParameterValue", gone),
    ];
    for answer in ended {
        let wire = Wire::new([answer]);
        let queue = wire.queue(FIFO);
        let (set, woken) = (queue.set_visibility(&receipt(), seconds(90)).await, queue.wake(&receipt()).await);
        let deleted = queue.delete(&receipt()).await;
        for outcome in [set, woken, deleted] {
            assert!(matches!(outcome, Err(ReceiptError::Ended)), "{outcome:?}");
        }
        assert_eq!(wire.sent().len(), 3, "nothing is tried again");
    }

    let beyond = "Value 43200 for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the \
                  message is beyond the limit [43200 seconds]";
    let wire = Wire::new([Answer::Error(400, "InvalidParameterValue", beyond)]);
    let outcome = wire.queue(FIFO).set_visibility(&receipt(), MAX_VISIBILITY).await;
    assert!(matches!(outcome, Err(ReceiptError::VisibilityTooLong(MAX_VISIBILITY))), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn a_receipt_is_tried_again_and_then_unavailable() {
    let done = || Answer::Done(json!({}));
    for fault in [THROTTLED, INTERNAL, Answer::Refused, Answer::Broken, Answer::Silence] {
        let wire = Wire::new([fault.clone(), done(), fault, done()]);
        let queue = wire.queue(FIFO);
        queue.set_visibility(&receipt(), seconds(90)).await.unwrap();
        queue.delete(&receipt()).await.unwrap();
        assert_eq!(wire.sent().len(), 4);
    }
    for lasting in [THROTTLED, Answer::Broken, Answer::Error(403, "AccessDeniedException", "")] {
        let outcome = Wire::new([lasting]).queue(FIFO).set_visibility(&receipt(), seconds(90)).await;
        assert!(matches!(outcome, Err(ReceiptError::Unavailable(_))), "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_what_can_be_received() {
    let wire = Wire::new([Answer::Done(json!({ "Attributes": { "ApproximateNumberOfMessages": "17" } }))]);
    assert_eq!(wire.queue(FIFO).waiting().await.unwrap(), 17);
    let [request] = &wire.sent()[..] else { panic!("one request") };
    assert_eq!(request.operation, "GetQueueAttributes");
    assert_eq!(request.body, json!({ "QueueUrl": FIFO, "AttributeNames": ["ApproximateNumberOfMessages"] }));
    assert!(Wire::new([Answer::Done(json!({}))]).queue(FIFO).waiting().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_received_message_is_a_record() {
    let answer = json!({ "Messages": [
        {
            "MessageId": "5fea7756", "ReceiptHandle": "AQEB", "Body": "hello",
            "Attributes": {
                "ApproximateReceiveCount": "3", "SentTimestamp": "1767603600123", "MessageGroupId": "s1",
            },
            "MessageAttributes": { "traceparent": { "DataType": "String", "StringValue": "00-0af7-b7ad-01" } },
        },
        {
            "MessageId": "5fea7757", "ReceiptHandle": "AQEC", "Body": "again",
            "Attributes": { "ApproximateReceiveCount": "1", "SentTimestamp": "1767603600124" },
        },
    ] });
    let wire = Wire::new([Answer::Done(answer), Answer::Done(json!({}))]);
    let queue = wire.queue(FIFO);
    let records = queue.receive(10, seconds(90), seconds(20)).await.unwrap();
    let first = Record {
        message_id: "5fea7756".into(),
        receipt: receipt(),
        body: "hello".into(),
        group: Some("s1".into()),
        attributes: BTreeMap::from([("traceparent".into(), "00-0af7-b7ad-01".into())]),
        receive_count: 3,
        sent_at: Millis(1_767_603_600_123),
    };
    let second = Record {
        message_id: "5fea7757".into(),
        receipt: Receipt("AQEC".into()),
        body: "again".into(),
        group: None,
        attributes: BTreeMap::new(),
        receive_count: 1,
        sent_at: Millis(1_767_603_600_124),
    };
    assert_eq!(records, [first, second]);
    assert_eq!(queue.receive(10, seconds(90), seconds(20)).await.unwrap(), []);
    assert_eq!(
        wire.sent()[0].body,
        json!({
            "QueueUrl": FIFO,
            "MaxNumberOfMessages": 10,
            "VisibilityTimeout": 90,
            "WaitTimeSeconds": 20,
            "MessageAttributeNames": ["All"],
            "MessageSystemAttributeNames": ["ApproximateReceiveCount", "MessageGroupId", "SentTimestamp"],
        })
    );
}

/// A long wait is no lost answer.
#[tokio::test(start_paused = true)]
async fn receiving_waits_as_long_as_it_was_asked_to_and_no_longer() {
    let wire = Wire::new([Answer::Silence]);
    let start = tokio::time::Instant::now();
    assert!(wire.queue(FIFO).receive(1, seconds(30), seconds(20)).await.is_err());
    assert_eq!(start.elapsed(), seconds(20) + PUBLISH_TIMEOUT);
    let second = wire.sent()[1].after;
    assert!(second > seconds(22), "{second:?}");
}
