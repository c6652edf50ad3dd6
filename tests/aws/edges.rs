//! What Lambda and the gateways before it may do to a function: events of other shapes, environments that lack something.

use aws_smithy_types::base64;
use serde_json::json;
use turnlock_config::names;
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
