//! What a turn costs, counted at the endpoint of the functions.

use std::collections::BTreeMap;

use crate::kit::Kit;

/// A plain turn of a conversation that goes on: from the platform's request to its reply in the chat. Beside what is counted
/// here, the event source mappings receive and delete each of the two messages.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "the figures are what the test is for")]
async fn a_plain_turn_from_ingress_to_delivered() {
    // The second message comes when the session's rate is at rest again.
    // Without the optional event bus, which is one request more for each reply.
    let kit = Kit::start("rpm = 600", &[("EventBus", "")]).await;
    kit.say(5, "first").await;
    kit.shows("telegram:main:5", &["echo: first"]).await;
    kit.settle().await;
    let before = kit.aws.front.calls().len();
    let started = kit.invocations();
    kit.say(5, "second").await;
    kit.shows("telegram:main:5", &["echo: first", "echo: second"]).await;
    kit.settle().await;
    let calls = kit.aws.front.calls().split_off(before);
    // The depth of the queue is asked for every ten seconds, whatever comes in.
    let calls: Vec<_> = calls.into_iter().filter(|call| call.operation != "sqs:GetQueueAttributes").collect();
    let mut requests: BTreeMap<String, usize> = BTreeMap::new();
    let mut units: BTreeMap<String, f64> = BTreeMap::new();
    for call in &calls {
        let name = format!("{} {}", call.caller, call.operation);
        *requests.entry(name.clone()).or_default() += 1;
        if call.operation.starts_with("dynamodb:") {
            *units.entry(name).or_default() += call.capacity;
        }
    }
    let of = |service: &str| calls.iter().filter(|call| call.operation.starts_with(service)).count();
    let total: f64 = units.values().sum();
    let invoked = kit.invocations() - started;
    println!(
        "DynamoDB: {} requests, {total} capacity units; SQS: {} requests; Lambda: {invoked} invocations",
        of("dynamodb:"),
        of("sqs:")
    );
    for (name, count) in &requests {
        println!("  {count} {name} {}", units.get(name).map(|units| format!("({units} units)")).unwrap_or_default());
    }
    let expected = [
        ("Agent bedrock:ConverseStream", 1),
        ("Agent dynamodb:BatchGetItem", 1),
        ("Agent dynamodb:Query", 1),
        ("Agent dynamodb:TransactWriteItems", 1),
        ("Agent dynamodb:UpdateItem", 1),
        ("Agent sqs:ChangeMessageVisibility", 1),
        ("Agent sqs:SendMessage", 1),
        ("Delivery dynamodb:GetItem", 2),
        ("Delivery dynamodb:PutItem", 2),
        ("Delivery sqs:ChangeMessageVisibility", 1),
        ("IngressTelegram dynamodb:UpdateItem", 1),
        ("IngressTelegram sqs:SendMessage", 1),
    ];
    assert_eq!(requests, expected.map(|(name, count)| (name.to_owned(), count)).into());
    assert_eq!(invoked, 3);
    assert!((total - UNITS).abs() < f64::EPSILON, "{total} capacity units");
    kit.end().await;
}

/// Capacity units of the table, as DynamoDB counts them: a transaction writes twice.
const UNITS: f64 = 15.0;
