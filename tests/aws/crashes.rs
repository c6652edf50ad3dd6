//! Processes die where it hurts, and two of them want the same session.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::join;
use tokio::time::timeout;
use turnlock_replay::fakes::{Answer, ScriptedAnswer};
use turnlock_tests::aws::bedrock::{Gate, Turn};

use crate::kit::{Kit, WITHIN};

/// SIGKILL inside the second step of a turn: its successor takes the session when the lease is over, goes on with the
/// result of the first step, and there is one final.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_inside_a_turn() {
    let kit = Kit::start("", &[]).await;
    let gate = Gate::default();
    let call = Turn::tool("current_time", json!({}));
    kit.aws.bedrock.on("what time", [call, Turn::text("never seen").held_after(0, &gate), Turn::text("noon")]);
    kit.say(5, "what time is it?").await;
    timeout(WITHIN, gate.reached_by(1)).await.unwrap();
    assert_eq!(kit.aws.lambda.kill("Agent"), 1);
    kit.aws.lambda.is_idle("Agent").await;
    kit.reappear("Agent", "InboundQueue").await;
    kit.shows_within("telegram:main:5", &["noon"], LEASE + WITHIN).await;
    // The tool ran once, and both askers of the second step had its result.
    let asked = kit.aws.bedrock.asked();
    let results = |body: &Value| body.to_string().matches("toolResult").count();
    assert_eq!(asked.iter().map(|asked| results(&asked.body)).collect::<Vec<_>>(), [0, 1, 1]);
    gate.open();
    kit.end().await;
}

/// A lease and what a successor waits beyond it.
const LEASE: Duration = Duration::from_secs(50);

/// A record that is received while its turn runs, as after a visibility that ended too early: the second worker finds the
/// session locked, gives the record back and asks no model.
#[tokio::test(flavor = "multi_thread")]
async fn two_workers_with_one_session() {
    let kit = Kit::start("", &[]).await;
    let gate = Gate::default();
    kit.aws.bedrock.on("slowly", [Turn::text("done").held_after(0, &gate)]);
    kit.say(6, "slowly").await;
    timeout(WITHIN, gate.reached_by(1)).await.unwrap();
    let event: Value = serde_json::from_slice(&kit.aws.lambda.received("Agent")[0]).unwrap();
    let id = &event["Records"][0]["messageId"];
    let second = kit.aws.lambda.invoke("Agent", &event).await.unwrap();
    assert_eq!(second, json!({ "batchItemFailures": [{ "itemIdentifier": id }] }));
    gate.open();
    kit.shows("telegram:main:6", &["done"]).await;
    // And once more when all is committed: nobody is asked again, nothing more is shown.
    kit.settle().await;
    let third = kit.aws.lambda.invoke("Agent", &event).await.unwrap();
    assert_eq!(third, json!({ "batchItemFailures": [] }));
    assert_eq!(kit.aws.bedrock.asked().len(), 1);
    kit.end().await;
}

/// SIGKILL between the platform's answer and the ledger's: the final is sent once more, and what comes after it is in
/// its place.
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_killed_between_sending_and_recording() {
    let kit = Kit::start("", &[]).await;
    let answer = Answer { delay: Duration::from_secs(30), ..Answer::default() };
    let chat = Some("7".to_owned());
    kit.aws.platforms.script(ScriptedAnswer { chat, times: Some(1), answer, ..ScriptedAnswer::default() });
    kit.say(7, "first").await;
    kit.shows("telegram:main:7", &["echo: first"]).await;
    assert_eq!(kit.aws.lambda.kill("Delivery"), 1);
    kit.aws.lambda.is_idle("Delivery").await;
    kit.say(7, "second").await;
    kit.reappear("Delivery", "OutboundQueue").await;
    kit.shows("telegram:main:7", &["echo: first", "echo: first", "echo: second"]).await;
    kit.end().await;
}

/// A message that fails every time is answered; the next one runs. What is no event at all becomes a dead item at once
/// and holds nobody up.
#[tokio::test(flavor = "multi_thread")]
async fn sqs_fifo_poison() {
    let kit = Kit::start("attempts = 2", &[]).await;
    let failing = || Turn::refused(500, "InternalServerException", "scripted");
    // Each of two attempts asks three times.
    kit.aws.bedrock.on("poison", (0..6).map(|_| failing()));
    let unreadable = json!({
        "QueueUrl": kit.aws.stack.physical("InboundQueue"),
        "MessageBody": "no event",
        "MessageGroupId": "telegram:main:8",
        "MessageDeduplicationId": "unreadable",
    });
    kit.aws.cloud.json("AmazonSQS.SendMessage", &unreadable).await;
    kit.say(8, "poison").await;
    kit.say(8, "next question").await;
    let sorry = "Sorry, something went wrong and I could not answer this message. Please send it again.";
    kit.shows("telegram:main:8", &[sorry, "echo: next question"]).await;
    kit.end_with_dead_letters(1).await;
    let log = kit.aws.log("DeadLetter");
    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let dead = lines.iter().find(|line| line["Dead"] == 1).unwrap_or_else(|| panic!("{log}"));
    // The alarm looks where the function counts.
    let mut alarms = kit.aws.stack.of_type("AWS::CloudWatch::Alarm").map(|(_, alarm)| &alarm["Dimensions"]);
    assert!(alarms.any(|dimensions| *dimensions == json!([{ "Name": "function", "Value": { "Ref": "DeadLetter" } }])));
    assert_eq!(dead["function"], kit.aws.stack.physical("DeadLetter"));
}

/// `/stop` while the model writes: the turn ends with what there is, and the next message is answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_a_turn_runs() {
    let kit = Kit::start("", &[]).await;
    let gate = Gate::default();
    kit.aws
        .bedrock
        .on("a long story", [Turn::text("Once upon a time there was").paced(5, Duration::ZERO).held_after(3, &gate)]);
    kit.say(9, "a long story").await;
    timeout(WITHIN, gate.reached_by(1)).await.unwrap();
    let (answered, ()) = join!(stopped(&kit), kit.say(9, "/stop"));
    assert!(answered.iter().any(|text| text.contains("(stopped)")), "{answered:?}");
    gate.open();
    kit.say(9, "hello again").await;
    kit.settle().await;
    assert_eq!(kit.texts("telegram:main:9").last().map(String::as_str), Some("echo: hello again"));
    kit.end().await;
}

/// What the chat shows once the turn is stopped.
async fn stopped(kit: &Kit) -> Vec<String> {
    let mut changes = kit.aws.platforms.changes();
    loop {
        let texts = kit.texts("telegram:main:9");
        if texts.iter().any(|text| text.contains("(stopped)")) {
            return texts;
        }
        timeout(WITHIN, changes.changed()).await.unwrap().unwrap();
    }
}
