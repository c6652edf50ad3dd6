//! The AWS SDK's client over the embedded database: the shapes that the store's invariants stand on.

#![expect(clippy::unwrap_used, reason = "the helpers of these tests, too")]

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, ConditionCheck, Delete, KeySchemaElement, KeyType, Put,
    ReturnValuesOnConditionCheckFailure, ScalarAttributeType, TimeToLiveSpecification, TransactWriteItem, Update,
};
use turnlock_embedded::EmbeddedDynamoDb;

const TABLE: &str = "turnlock";

fn client(database: &EmbeddedDynamoDb) -> Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("eu-central-1"))
        .allow_no_auth()
        .endpoint_url("http://embedded.invalid")
        .retry_config(RetryConfig::disabled())
        .http_client(database.http_client())
        .build();
    Client::from_conf(config)
}

async fn create_table(client: &Client) {
    let attribute = |name: &str| {
        AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S).build().unwrap()
    };
    let key = |name: &str, kind| KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap();
    client
        .create_table()
        .table_name(TABLE)
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(attribute("pk"))
        .attribute_definitions(attribute("sk"))
        .key_schema(key("pk", KeyType::Hash))
        .key_schema(key("sk", KeyType::Range))
        .send()
        .await
        .unwrap();
}

fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.into())
}

fn number(value: u32) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

async fn put(client: &Client, sk: &str, fence: u32) {
    client
        .put_item()
        .table_name(TABLE)
        .item("pk", text("session"))
        .item("sk", text(sk))
        .item("fence", number(fence))
        .send()
        .await
        .unwrap();
}

async fn with_table() -> (EmbeddedDynamoDb, Client) {
    let database = EmbeddedDynamoDb::memory().unwrap();
    let client = client(&database);
    create_table(&client).await;
    (database, client)
}

#[tokio::test]
async fn a_refused_condition_returns_the_old_item() {
    let (_database, client) = with_table().await;
    put(&client, "head", 7).await;
    let update = |expected: u32| {
        client
            .update_item()
            .table_name(TABLE)
            .key("pk", text("session"))
            .key("sk", text("head"))
            .update_expression("SET fence = fence + :one")
            .condition_expression("fence = :expected")
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":expected", number(expected))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
    };
    let error = update(3).await.unwrap_err().into_service_error();
    let UpdateItemError::ConditionalCheckFailedException(refused) = error else { panic!("{error:?}") };
    assert_eq!(refused.item.unwrap()["fence"], number(7));

    update(7).await.unwrap();
    let got = client.get_item().table_name(TABLE).key("pk", text("session")).key("sk", text("head")).send().await;
    assert_eq!(got.unwrap().item.unwrap()["fence"], number(8));
}

#[tokio::test]
async fn a_cancelled_transaction_names_its_reasons_in_order() {
    let (_database, client) = with_table().await;
    put(&client, "head", 7).await;
    put(&client, "marker", 1).await;
    let head = Update::builder()
        .table_name(TABLE)
        .key("pk", text("session"))
        .key("sk", text("head"))
        .update_expression("SET fence = :next")
        .expression_attribute_values(":next", number(8))
        .build()
        .unwrap();
    let marker = Put::builder()
        .table_name(TABLE)
        .item("pk", text("session"))
        .item("sk", text("marker"))
        .condition_expression("attribute_not_exists(pk)")
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
        .build()
        .unwrap();
    let turn = Put::builder().table_name(TABLE).item("pk", text("session")).item("sk", text("turn")).build().unwrap();
    let absent = ConditionCheck::builder()
        .table_name(TABLE)
        .key("pk", text("session"))
        .key("sk", text("nothing"))
        .condition_expression("attribute_exists(pk)")
        .build()
        .unwrap();
    let error = client
        .transact_write_items()
        .transact_items(TransactWriteItem::builder().update(head).build())
        .transact_items(TransactWriteItem::builder().put(marker).build())
        .transact_items(TransactWriteItem::builder().put(turn).build())
        .transact_items(TransactWriteItem::builder().condition_check(absent).build())
        .send()
        .await
        .unwrap_err()
        .into_service_error();
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = error else { panic!("{error:?}") };
    let reasons = cancelled.cancellation_reasons();
    let codes: Vec<_> = reasons.iter().map(|reason| reason.code().unwrap_or_default()).collect();
    assert_eq!(codes, ["None", "ConditionalCheckFailed", "None", "ConditionalCheckFailed"]);
    assert_eq!(reasons[1].item().unwrap()["fence"], number(1));
    assert!(reasons[3].item().is_none());

    let items = client
        .query()
        .table_name(TABLE)
        .key_condition_expression("pk = :pk")
        .expression_attribute_values(":pk", text("session"))
        .send()
        .await
        .unwrap();
    assert_eq!(items.count(), 2, "a cancelled transaction wrote nothing");
}

#[tokio::test]
async fn a_transactions_token_is_recognised_through_every_client_of_the_database() {
    let (database, client) = with_table().await;
    put(&client, "counter", 0).await;
    let add = |client: &Client, token: &str, by: u32| {
        let update = Update::builder()
            .table_name(TABLE)
            .key("pk", text("session"))
            .key("sk", text("counter"))
            .update_expression("ADD fence :by")
            .expression_attribute_values(":by", number(by))
            .build()
            .unwrap();
        client
            .transact_write_items()
            .client_request_token(token)
            .transact_items(TransactWriteItem::builder().update(update).build())
            .send()
    };
    add(&client, "turn-1", 1).await.unwrap();
    let successor = self::client(&database);
    add(&successor, "turn-1", 1).await.unwrap();
    let error = add(&successor, "turn-1", 2).await.unwrap_err().into_service_error();
    assert!(matches!(error, TransactWriteItemsError::IdempotentParameterMismatchException(_)), "{error:?}");
    let got = client.get_item().table_name(TABLE).key("pk", text("session")).key("sk", text("counter")).send().await;
    assert_eq!(got.unwrap().item.unwrap()["fence"], number(1));
}

#[tokio::test]
async fn every_other_operation_of_the_store_is_answered() {
    let (_database, client) = with_table().await;
    let ttl = TimeToLiveSpecification::builder().attribute_name("ttl").enabled(true).build().unwrap();
    client.update_time_to_live().table_name(TABLE).time_to_live_specification(ttl).send().await.unwrap();
    let described = client.describe_table().table_name(TABLE).send().await.unwrap();
    assert_eq!(described.table().and_then(|table| table.table_status()).unwrap().as_str(), "ACTIVE");

    put(&client, "a", 1).await;
    put(&client, "b", 2).await;
    assert_eq!(client.scan().table_name(TABLE).send().await.unwrap().count(), 2);
    let keys = aws_sdk_dynamodb::types::KeysAndAttributes::builder()
        .keys([("pk".into(), text("session")), ("sk".into(), text("a"))].into())
        .keys([("pk".into(), text("session")), ("sk".into(), text("absent"))].into())
        .consistent_read(true)
        .build()
        .unwrap();
    let batch = client.batch_get_item().request_items(TABLE, keys).send().await.unwrap();
    assert_eq!(batch.responses().unwrap()[TABLE].len(), 1);

    let delete = Delete::builder().table_name(TABLE).key("pk", text("session")).key("sk", text("a")).build().unwrap();
    let transact = client.transact_write_items().transact_items(TransactWriteItem::builder().delete(delete).build());
    transact.send().await.unwrap();
    client.delete_item().table_name(TABLE).key("pk", text("session")).key("sk", text("b")).send().await.unwrap();
    assert_eq!(client.scan().table_name(TABLE).send().await.unwrap().count(), 0);
}

#[tokio::test]
async fn an_operation_outside_the_list_and_a_missing_table_are_errors_of_dynamodb() {
    let (_database, client) = with_table().await;
    let error = client.delete_table().table_name(TABLE).send().await.unwrap_err().into_service_error();
    assert_eq!(error.meta().code(), Some("UnknownOperationException"));
    let error = client.scan().table_name("other").send().await.unwrap_err().into_service_error();
    assert!(error.is_resource_not_found_exception(), "{error:?}");
}

#[tokio::test]
async fn a_request_that_is_never_polled_writes_nothing() {
    let (_database, client) = with_table().await;
    drop(client.put_item().table_name(TABLE).item("pk", text("x")).item("sk", text("y")).send());
    assert_eq!(client.scan().table_name(TABLE).send().await.unwrap().count(), 0);
}

#[tokio::test]
async fn a_file_keeps_its_items_and_is_in_wal_mode() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.sqlite");
    {
        let database = EmbeddedDynamoDb::file(&path).unwrap();
        let client = client(&database);
        create_table(&client).await;
        put(&client, "head", 7).await;
        assert!(directory.path().join("store.sqlite-wal").exists());
    }
    let reopened = client(&EmbeddedDynamoDb::file(&path).unwrap());
    assert_eq!(reopened.scan().table_name(TABLE).send().await.unwrap().count(), 1);
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.txt");
    std::fs::write(&path, "x".repeat(4096)).unwrap();
    assert!(EmbeddedDynamoDb::file(&path).is_err());
}
