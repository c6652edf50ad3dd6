//! The store as a process reaches it: a connector under the AWS SDK's client. An interceptor of the SDK would not do: it
//! cannot play a death.

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use serde_json::{Value, json};

use super::life::{Life, Outgoing};
use super::rule::{Failure, Port};

/// `inner` under the rules of `life`'s plan.
pub(super) fn client(life: Life, inner: SharedHttpClient) -> SharedHttpClient {
    http_client_fn(move |settings, components| {
        let inner = inner.http_connector(settings, components);
        SharedHttpConnector::new(FaultConnector { life: life.clone(), inner })
    })
}

#[derive(Debug)]
struct FaultConnector {
    life: Life,
    inner: SharedHttpConnector,
}

impl HttpConnector for FaultConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (life, inner) = (self.life.clone(), self.inner.clone());
        HttpConnectorFuture::new(async move {
            let operation = operation(&request);
            let bytes = request.body().bytes().map_or(0, <[u8]>::len);
            let items = items(&request);
            let outgoing = Outgoing { port: Port::Store, operation: &operation, bytes };
            let sending = async { inner.call(request).await };
            let answer = life.pass(outgoing, sending, |failure| refusal(&operation, items, failure)).await;
            if let Ok(response) = &answer {
                life.count_answer(Port::Store, response.body().bytes().map_or(0, <[u8]>::len));
            }
            answer
        })
    }
}

/// The operation's name, from `DynamoDB_20120810.<name>`.
fn operation(request: &HttpRequest) -> String {
    let target = request.headers().get("x-amz-target").unwrap_or_default();
    target.rsplit('.').next().unwrap_or_default().to_owned()
}

/// How many items a transaction names: a cancelled one has a reason for each.
fn items(request: &HttpRequest) -> usize {
    let body = request.body().bytes().and_then(|body| serde_json::from_slice::<Value>(body).ok());
    body.as_ref().and_then(|body| body["TransactItems"].as_array()).map_or(0, Vec::len)
}

fn refusal(operation: &str, items: usize, failure: Failure) -> Result<HttpResponse, ConnectorError> {
    let name = failure.name();
    match failure {
        Failure::Unreachable => Err(ConnectorError::io(format!("played: {name}").into()).never_connected()),
        Failure::LostAnswer | Failure::Slow | Failure::Full => {
            Err(ConnectorError::io(format!("played: {name}").into()))
        }
        Failure::Conflict { reasons } if items > 0 => {
            Ok(error("TransactionCanceledException", cancelled(&reasons, items)))
        }
        Failure::Conflict { .. } => {
            Ok(error("TransactionConflictException", json!({ "message": "Transaction is ongoing for the item" })))
        }
        Failure::InProgress => Ok(error(
            "TransactionInProgressException",
            json!({ "Message": "The transaction with the given request token is already in progress." }),
        )),
        Failure::Throttled => Ok(error("ProvisionedThroughputExceededException", throttled(operation))),
    }
}

fn throttled(operation: &str) -> Value {
    json!({ "message": format!("The level of configured provisioned throughput for the table was exceeded ({operation}).") })
}

/// The list of a cancelled transaction, padded with `None` to one reason an item.
fn cancelled(reasons: &[String], items: usize) -> Value {
    let first = ["TransactionConflict".to_owned()];
    let given = if reasons.is_empty() { &first[..] } else { reasons };
    let codes: Vec<&str> =
        given.iter().map(String::as_str).chain(std::iter::repeat("None")).take(items.max(given.len())).collect();
    let list: Vec<Value> = codes.iter().map(|code| reason(code)).collect();
    let message =
        format!("Transaction cancelled, please refer cancellation reasons for specific reasons [{}]", codes.join(", "));
    json!({ "Message": message, "CancellationReasons": list })
}

fn reason(code: &str) -> Value {
    let message = match code {
        "None" => return json!({ "Code": code }),
        "TransactionConflict" => "Transaction is ongoing for the item",
        "ConditionalCheckFailed" => "The conditional request failed",
        "ProvisionedThroughputExceeded" => "The level of configured provisioned throughput was exceeded",
        "ThrottlingError" => "Throughput exceeds the current capacity of your table",
        other => other,
    };
    json!({ "Code": code, "Message": message })
}

/// An error as DynamoDB writes it.
fn error(name: &str, mut body: Value) -> HttpResponse {
    body["__type"] = json!(format!("com.amazonaws.dynamodb.v20120810#{name}"));
    let status = http::StatusCode::BAD_REQUEST;
    let mut response = HttpResponse::new(status.into(), SdkBody::from(body.to_string()));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    response
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use aws_sdk_dynamodb::Client;
    use aws_sdk_dynamodb::config::retry::RetryConfig;
    use aws_sdk_dynamodb::config::{BehaviorVersion, Region};
    use aws_sdk_dynamodb::error::SdkError;
    use aws_sdk_dynamodb::operation::put_item::PutItemError;
    use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
    use aws_sdk_dynamodb::types::{
        AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, Put, ScalarAttributeType,
        TransactWriteItem,
    };
    use futures_util::FutureExt;
    use turnlock_embedded::EmbeddedDynamoDb;

    use super::super::rule::{Fault, Operation, Rule, Span};
    use super::super::{FaultPlan, in_turn};
    use super::*;

    fn client_over(http: SharedHttpClient) -> Client {
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("eu-central-1"))
            .allow_no_auth()
            .endpoint_url("http://embedded.invalid")
            .retry_config(RetryConfig::disabled())
            .http_client(http)
            .build();
        Client::from_conf(config)
    }

    async fn database() -> EmbeddedDynamoDb {
        let database = EmbeddedDynamoDb::memory().unwrap();
        let attribute = AttributeDefinition::builder().attribute_name("pk").attribute_type(ScalarAttributeType::S);
        let key = KeySchemaElement::builder().attribute_name("pk").key_type(KeyType::Hash);
        client_over(database.http_client())
            .create_table()
            .table_name("table")
            .billing_mode(BillingMode::PayPerRequest)
            .attribute_definitions(attribute.build().unwrap())
            .key_schema(key.build().unwrap())
            .send()
            .await
            .unwrap();
        database
    }

    async fn put(client: &Client, pk: &str) -> Result<(), SdkError<PutItemError>> {
        client.put_item().table_name("table").item("pk", AttributeValue::S(pk.into())).send().await.map(drop)
    }

    async fn transact(client: &Client) -> TransactWriteItemsError {
        let put = |pk: &str| {
            let put = Put::builder().table_name("table").item("pk", AttributeValue::S(pk.into()));
            TransactWriteItem::builder().put(put.build().unwrap()).build()
        };
        let request = client.transact_write_items().transact_items(put("a")).transact_items(put("b"));
        request.send().await.unwrap_err().into_service_error()
    }

    async fn count(database: &EmbeddedDynamoDb) -> i32 {
        client_over(database.http_client()).scan().table_name("table").send().await.unwrap().count()
    }

    fn plan(operation: &str, fault: Fault) -> FaultPlan {
        let plan = FaultPlan::new();
        let operation = Operation::from_text(operation);
        plan.arm(Rule { port: Port::Store, operation, nth: 1, span: Span::Times(1), fault }.checked().unwrap());
        plan
    }

    fn failing(operation: &str, failure: Failure) -> FaultPlan {
        plan(operation, Fault::Fail { failure, delay: Duration::ZERO })
    }

    #[tokio::test(start_paused = true)]
    async fn the_sdk_sees_an_io_error_whether_it_was_carried_out_or_not() {
        for (failure, applied) in [(Failure::Unreachable, 0), (Failure::LostAnswer, 1)] {
            let database = database().await;
            let client = client_over(failing("PutItem", failure).process().store(database.http_client()));
            let error = put(&client, "a").await.unwrap_err();
            assert!(matches!(&error, SdkError::DispatchFailure(failure) if failure.is_io()), "{error:?}");
            assert_eq!(count(&database).await, applied);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_sdk_sees_dynamodbs_own_errors() {
        let database = database().await;
        let client = |failure| client_over(failing("*", failure).process().store(database.http_client()));

        let error = put(&client(Failure::Throttled), "a").await.unwrap_err().into_service_error();
        assert!(error.is_provisioned_throughput_exceeded_exception(), "{error:?}");
        let error = put(&client(Failure::Conflict { reasons: vec![] }), "a").await.unwrap_err().into_service_error();
        assert!(error.is_transaction_conflict_exception(), "{error:?}");
        let error = transact(&client(Failure::InProgress)).await;
        assert!(error.is_transaction_in_progress_exception(), "{error:?}");
        assert_eq!(count(&database).await, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_transaction_has_a_reason_for_each_item() {
        let database = database().await;
        let table = [
            (vec![], ["TransactionConflict", "None"]),
            (vec!["None".to_owned(), "ThrottlingError".to_owned()], ["None", "ThrottlingError"]),
        ];
        for (reasons, expected) in table {
            let plan = failing("TransactWriteItems", Failure::Conflict { reasons });
            let error = transact(&client_over(plan.process().store(database.http_client()))).await;
            let TransactWriteItemsError::TransactionCanceledException(cancelled) = error else { panic!("{error:?}") };
            let codes: Vec<_> = cancelled.cancellation_reasons().iter().filter_map(|reason| reason.code()).collect();
            assert_eq!(codes, expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_death_leaves_the_write_or_not_and_a_successor_goes_on() {
        for (after, left) in [(false, 0), (true, 1)] {
            let database = database().await;
            let plan = plan("PutItem", Fault::Kill { after });
            let life = plan.process();
            let client = client_over(life.store(database.http_client()));
            assert!(put(&client, "a").now_or_never().is_none());
            assert!(life.is_over());
            assert_eq!(count(&database).await, left);
            put(&client_over(plan.process().store(database.http_client())), "b").await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_and_bytes_are_counted_by_turn() {
        let database = database().await;
        let plan = FaultPlan::new();
        let client = client_over(plan.process().store(database.http_client()));
        in_turn("telegram:1:1", put(&client, "a")).await.unwrap();
        put(&client, "b").await.unwrap();
        let counts = plan.counts().remove(&Port::Store).unwrap();
        assert_eq!((counts.total, counts.by_operation["PutItem"]), (2, 2));
        let turn = &counts.by_turn["telegram:1:1"];
        assert_eq!(turn.total, 1);
        assert!(turn.bytes > 20 && counts.bytes > turn.bytes, "{counts:?}");
    }
}
