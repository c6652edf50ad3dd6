//! What Lambda and the gateways before it may do to a function: events of other shapes, environments that lack something.

use aws_smithy_types::base64;
use std::time::Duration;

use serde_json::json;
use turnlock_config::names;
use turnlock_replay::fakes::{Answer, ScriptedAnswer};
use turnlock_tests::aws::front::Fault;
use turnlock_tests::aws::lambda::Deployed;

use crate::kit::{Kit, TELEGRAM};

/// Cases ag-v1-on-http-api, ag-v2-base64-form: an update is an update in every shape that API Gateway and function URLs
/// bring; what is none of them is a 400, and the process lives on.
#[tokio::test(flavor = "multi_thread")]
async fn ag_v1_on_http_api_and_ag_v2_base64_form() {
    let kit = Kit::start("", &[]).await;
    let update = |chat| kit.private(chat, "hello").to_string();
    let encoded = base64::encode(update(2));
    let version_one = json!({
        "version": "1.0", "resource": "/telegram/{account}", "path": "/telegram/main", "httpMethod": "POST",
        "headers": { "X-Telegram-Bot-Api-Secret-Token": TELEGRAM },
        "multiValueHeaders": { "X-Telegram-Bot-Api-Secret-Token": [TELEGRAM] },
        "requestContext": { "httpMethod": "POST", "stage": "$default" },
        "body": update(1), "isBase64Encoded": false,
    });
    let version_two = json!({
        "version": "2.0", "rawPath": "/telegram/main", "rawQueryString": "",
        "headers": { "x-telegram-bot-api-secret-token": TELEGRAM },
        "requestContext": { "http": { "method": "POST", "path": "/telegram/main" }, "stage": "$default" },
        "body": encoded, "isBase64Encoded": true,
    });
    for (event, status) in [(version_one, 200), (version_two, 200), (json!({ "Records": [] }), 400), (json!(7), 400)] {
        let answer = kit.aws.lambda.invoke("IngressTelegram", &event).await;
        assert_eq!(answer.as_ref().map(|answer| &answer["statusCode"]), Ok(&json!(status)), "{event}");
    }
    for chat in 1..=2 {
        kit.shows(&format!("telegram:main:{chat}"), &["echo: hello"]).await;
    }
    assert_eq!(kit.aws.lambda.started("IngressTelegram"), 1);
    kit.end().await;
}

/// A variable that is missing ends a function's start with its name in the log, before any request.
#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_lacks_a_variable_does_not_start() {
    let kit = Kit::start("", &[]).await;
    let lambda = &kit.aws.lambda;
    let mut tried = 0;
    for deployed in lambda.deployed() {
        let variables = deployed.environment.keys().filter(|name| name.starts_with("TURNLOCK_") && *name != names::LOG);
        for variable in variables {
            let id = format!("{}Without{variable}", deployed.id);
            let mut lacking = Deployed { id: id.clone(), name: id.clone(), ..deployed.clone() };
            lacking.environment.remove(variable);
            lacking.log = deployed.log.with_file_name(format!("{id}.txt"));
            let log = lacking.log.clone();
            lambda.deploy(lacking);
            assert!(lambda.invoke(&id, &json!({})).await.is_err(), "{id} starts");
            let log = std::fs::read_to_string(log).unwrap();
            assert!(log.contains(variable.as_str()), "{id}: {log}");
            tried += 1;
        }
    }
    assert!(tried > 50, "{tried}");
}

/// A history that the table refuses to give stands in the way of a model and of nothing else: the message is answered with
/// an error, and a new conversation can be begun.
#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_cannot_be_read_is_no_silence() {
    let kit = Kit::start("attempts = 2", &[]).await;
    let refuse = |times| Fault {
        caller: "Agent".to_owned(),
        operation: "dynamodb:Query".to_owned(),
        times,
        carried_out: false,
        status: 400,
        body: json!({ "__type": "com.amazon.coral.validate#ValidationException", "message": "planted" }),
    };
    kit.aws.front.fail(refuse(3));
    kit.say(5, "hello").await;
    let sorry = "Sorry, something went wrong and I could not answer this message. Please send it again.";
    kit.shows("telegram:main:5", &[sorry]).await;
    kit.aws.front.fail(refuse(1));
    kit.say(5, "/new").await;
    let fresh = "This is a new conversation. What can I do for you?";
    kit.shows("telegram:main:5", &[sorry, fresh]).await;
    kit.say(5, "again").await;
    kit.shows("telegram:main:5", &[sorry, fresh, "echo: again"]).await;
    assert!(!kit.aws.log("Agent").contains("hello"));
    kit.end().await;
}

/// A worker that has shown a message and cannot say so goes on trying: whoever comes after it would show it once more.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_away_for_a_moment_doubles_no_reply() {
    let kit = Kit::start("", &[]).await;
    let puts = |times| Fault {
        caller: "Delivery".to_owned(),
        operation: "dynamodb:PutItem".to_owned(),
        times,
        carried_out: false,
        status: 500,
        body: json!({ "__type": "InternalServerError" }),
    };
    let answer = Answer { delay: Duration::from_millis(1500), ..Answer::default() };
    kit.aws.platforms.script(ScriptedAnswer { times: Some(1), answer, ..ScriptedAnswer::default() });
    kit.say(5, "hello").await;
    kit.shows("telegram:main:5", &["echo: hello"]).await;
    // The text is there, the answer is not: what the worker writes then is refused more often than one request is sent.
    kit.aws.front.fail(puts(8));
    kit.end().await;
}

/// Requests that were carried out and whose answers were lost, at every step of a turn: nothing is done twice.
#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_double_nothing() {
    let kit = Kit::start("", &[]).await;
    for (caller, operation) in [
        ("IngressTelegram", "sqs:SendMessage"),
        ("Agent", "dynamodb:UpdateItem"),
        ("Agent", "dynamodb:TransactWriteItems"),
        ("Agent", "sqs:SendMessage"),
        ("Delivery", "dynamodb:PutItem"),
    ] {
        kit.aws.front.fail(Fault {
            caller: caller.to_owned(),
            operation: operation.to_owned(),
            times: 1,
            carried_out: true,
            status: 500,
            body: json!({ "__type": "InternalServerError" }),
        });
    }
    kit.say(5, "hello").await;
    kit.shows("telegram:main:5", &["echo: hello"]).await;
    kit.say(5, "and now?").await;
    kit.shows("telegram:main:5", &["echo: hello", "echo: and now?"]).await;
    assert_eq!(kit.aws.bedrock.asked().len(), 2);
    kit.end().await;
}
