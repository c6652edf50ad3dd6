//! Dead letters, and what an operator does about them.

use std::process::Command;

use serde_json::json;
use turnlock_tests::aws::bedrock::Turn;
use turnlock_tests::programs;

use crate::kit::Kit;

/// What the queues gave up is settled and kept; `turnlock redrive` lists it and brings back what can be brought back.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_given_up_is_kept_and_sent_again() {
    let kit = Kit::start("", &[]).await;
    kit.aws.bedrock.on("hello", [Turn::text("Good day.")]);
    kit.say(5, "hello").await;
    kit.shows("telegram:main:5", &["Good day."]).await;
    // A final whose delivery was given up, and something that is nothing of ours at the head of a session.
    let sent = kit.aws.lambda.received("Delivery").pop().unwrap();
    let event: serde_json::Value = serde_json::from_slice(&sent).unwrap();
    let mut outbound: serde_json::Value = serde_json::from_str(event["Records"][0]["body"].as_str().unwrap()).unwrap();
    outbound["event_id"] = json!("late.final");
    outbound["content"] = json!([{ "type": "text", "text": "This comes late." }]);
    kit.put("DeadLetterQueue", "chat-5", &outbound.to_string()).await;
    kit.put("InboundQueue", "telegram:5", "no event of ours").await;
    kit.say(5, "and now?").await;
    kit.shows("telegram:main:5", &["Good day.", "echo: and now?"]).await;
    kit.dead_letters(2).await;

    let (listed, list) = redrive(&kit, &[]);
    assert!(listed && list.contains("  outbound ") && list.contains("  inbound "), "{list}");
    let (all_sent, text) = redrive(&kit, &["--all"]);
    assert!(!all_sent && text.contains("it is no message of this version"), "{text}");
    assert!(text.contains("sent to the outbound queue again"), "{text}");
    kit.shows("telegram:main:5", &["Good day.", "echo: and now?", "This comes late."]).await;
    // What was sent is gone from the list, what cannot be sent stays.
    let (_, list) = redrive(&kit, &[]);
    assert!(!list.contains("  outbound ") && list.contains("  inbound "), "{list}");
    kit.end_with_dead_letters(2).await;
}

/// The operator's command with the deployment's environment: whether it did all it was asked for, and what it says.
fn redrive(kit: &Kit, arguments: &[&str]) -> (bool, String) {
    let physical = |id: &str| kit.aws.stack.physical(id).to_owned();
    let environment = [
        ("TURNLOCK_TABLE", physical("Table")),
        ("TURNLOCK_INBOUND_QUEUE", physical("InboundQueue")),
        ("TURNLOCK_OUTBOUND_QUEUE", physical("OutboundQueue")),
        ("TURNLOCK_CONSOLIDATE_QUEUE", physical("ConsolidateQueue")),
        ("TURNLOCK_REVIEW_QUEUE", physical("ReviewQueue")),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "Operator".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ("AWS_ENDPOINT_URL", kit.aws.front.address().to_owned()),
    ];
    let program = programs::folder().join("turnlock");
    assert!(programs::is_current(&program), "{} is older than its sources", program.display());
    let output = Command::new(program).arg("redrive").args(arguments).env_clear().envs(environment).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}
