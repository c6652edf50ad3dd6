//! Who gets a copy of every reply on AWS, beside its channel: an event bus.

use serde_json::{Value, json};
use turnlock_tests::aws::front::Fault;

use crate::kit::Kit;

/// Every event is on the bus once, with what it says. A bus that refuses delays and alters nothing, and is counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_copied_beside_its_delivery() {
    let kit = Kit::start("", &[]).await;
    kit.say(41, "hello").await;
    kit.shows("telegram:main:41", &["echo: hello"]).await;
    kit.settle().await;
    let finals = |kit: &Kit| -> Vec<Value> {
        let entries = kit.aws.front.on_the_bus().into_iter();
        let details = entries.filter(|entry| {
            let named = [&entry["EventBusName"], &entry["Source"], &entry["DetailType"]];
            named == [&json!("replies"), &json!("turnlock"), &json!("Outbound event")]
        });
        let details = details.map(|entry| serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap());
        details.filter(|event: &Value| event["is_final"] == true).collect()
    };
    let seen = finals(&kit);
    assert_eq!(seen.len(), 1);
    assert_eq!((&seen[0]["channel"], &seen[0]["content"][0]["text"]), (&json!("telegram"), &json!("echo: hello")));
    kit.aws.front.fail(Fault {
        caller: "Delivery".to_owned(),
        operation: "events:PutEvents".to_owned(),
        times: 1,
        carried_out: false,
        status: 400,
        body: json!({ "__type": "AccessDeniedException", "message": "scripted" }),
    });
    kit.say(42, "hello").await;
    kit.shows("telegram:main:42", &["echo: hello"]).await;
    kit.settle().await;
    assert_eq!(finals(&kit).len(), 1);
    let log = kit.aws.log("Delivery");
    let counted = log.lines().filter(|line| line.contains("\"Unobserved\":1") && line.contains("\"observer\":\"bus\""));
    assert_eq!(counted.count(), 1, "{log}");
    kit.end().await;
}
