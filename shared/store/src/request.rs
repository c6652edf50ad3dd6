//! Requests, our one retry policy, and how a failed condition is told apart from everything else.
//!
//! A transient failure (throttling, a conflict of transactions in either form, an I/O error, 5xx) is repeated at most
//! [`ATTEMPTS`] times with seeded jitter. A write whose answer was lost may have taken effect: its repetition then fails
//! its own condition, and the caller recognises its own work in the old image.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::batch_get_item::builders::BatchGetItemFluentBuilder;
use aws_sdk_dynamodb::operation::get_item::builders::GetItemFluentBuilder;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::put_item::builders::PutItemFluentBuilder;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, TransactWriteItem};
use backon::BackoffBuilder;
use sha2::{Digest, Sha256};

use crate::error::StoreError;
use crate::{Store, keys};

/// An item as DynamoDB gives it.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// How often one request is sent at the most.
pub(crate) const ATTEMPTS: usize = 6;
const FIRST_DELAY: Duration = Duration::from_millis(25);
const LONGEST_DELAY: Duration = Duration::from_millis(800);

/// What a conditional write came to.
#[derive(Debug)]
pub(crate) enum Conditional {
    /// The condition held; the item as the request asked for it back.
    Met(Option<Item>),
    /// It did not; the item as it is, if there is one.
    Failed(Option<Item>),
}

/// What a transaction came to.
#[derive(Debug)]
pub(crate) enum Transaction {
    /// All of it took effect, now or in an earlier sending.
    Done,
    /// None of it did: at each action's index, whether its condition failed, and the item as it is.
    Cancelled(Vec<Reason>),
}

/// One action's reason.
#[derive(Debug, Default)]
pub(crate) struct Reason {
    pub(crate) condition_failed: bool,
    pub(crate) item: Option<Item>,
}

enum Fault {
    Transient(Box<dyn std::error::Error + Send + Sync>),
    Permanent(Box<dyn std::error::Error + Send + Sync>),
    Condition(Option<Item>),
    Cancelled(Vec<Reason>),
}

const TRANSIENT_CODES: &[&str] = &[
    "InternalServerError",
    "InternalFailure",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "ServiceUnavailableException",
    "ThrottlingException",
    "TransactionConflictException",
    "TransactionInProgressException",
    "ReplicatedWriteConflictException",
    "LimitExceededException",
];

/// Sorts what is the same for every operation; conditions have been looked at before.
fn sort<E>(error: SdkError<E>) -> Fault
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    let transient = match &error {
        SdkError::TimeoutError(_) | SdkError::DispatchFailure(_) | SdkError::ResponseError(_) => true,
        SdkError::ServiceError(service) => {
            service.raw().status().as_u16() >= 500
                || service.err().code().is_some_and(|code| TRANSIENT_CODES.contains(&code))
        }
        _ => false,
    };
    if transient { Fault::Transient(error.into()) } else { Fault::Permanent(error.into()) }
}

fn sort_update(error: SdkError<UpdateItemError>) -> Fault {
    match error.as_service_error() {
        Some(UpdateItemError::ConditionalCheckFailedException(failed)) => Fault::Condition(failed.item.clone()),
        _ => sort(error),
    }
}

fn sort_put(error: SdkError<PutItemError>) -> Fault {
    match error.as_service_error() {
        Some(PutItemError::ConditionalCheckFailedException(failed)) => Fault::Condition(failed.item.clone()),
        _ => sort(error),
    }
}

/// A cancelled transaction is a lost race only if a condition failed; a conflict or throttling is repeated. Reasons that
/// can never succeed (validation, a collection's size) are permanent.
fn sort_transaction(error: SdkError<TransactWriteItemsError>) -> Fault {
    let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error() else {
        return sort(error);
    };
    let reasons = cancelled.cancellation_reasons();
    let is = |code: &str| reasons.iter().any(|reason| reason.code() == Some(code));
    if is("ConditionalCheckFailed") {
        return Fault::Cancelled(
            reasons
                .iter()
                .map(|reason| Reason {
                    condition_failed: reason.code() == Some("ConditionalCheckFailed"),
                    item: reason.item().filter(|item| !item.is_empty()).cloned(),
                })
                .collect(),
        );
    }
    if is("ValidationError") || is("ItemCollectionSizeLimitExceeded") {
        return Fault::Permanent(error.into());
    }
    Fault::Transient(error.into())
}

/// One sending, its error sorted.
async fn sent<T, E>(
    sending: impl Future<Output = Result<T, SdkError<E>>>,
    sort: fn(SdkError<E>) -> Fault,
) -> Result<T, Fault> {
    sending.await.map_err(sort)
}

impl Store {
    /// Takes a function that makes futures, not an async closure: the compiler cannot see that one's futures may change
    /// threads, and a worker pool needs to know.
    async fn retry<T, Sending>(&self, operation: &'static str, mut send: impl FnMut() -> Sending) -> Result<T, Fault>
    where
        Sending: Future<Output = Result<T, Fault>>,
    {
        let mut delays = self.delays();
        loop {
            let source = match send().await {
                Err(Fault::Transient(source)) => source,
                settled => return settled,
            };
            let Some(delay) = delays.next() else { return Err(Fault::Transient(source)) };
            tracing::debug!(operation, error = %source, "a request to the table is sent again");
            tokio::time::sleep(delay).await;
        }
    }

    fn delays(&self) -> impl Iterator<Item = Duration> + use<> {
        let seed = self.jitter.lock().map_or(0, |mut random| random.u64(..));
        backon::ExponentialBuilder::default()
            .with_min_delay(FIRST_DELAY)
            .with_max_delay(LONGEST_DELAY)
            .with_max_times(ATTEMPTS - 1)
            .with_jitter()
            .with_jitter_seed(seed)
            .build()
    }

    pub(crate) fn update_item(&self, pk: String, sk: String) -> UpdateItemFluentBuilder {
        self.client
            .update_item()
            .table_name(&*self.table)
            .key(keys::PK, AttributeValue::S(pk))
            .key(keys::SK, AttributeValue::S(sk))
    }

    pub(crate) async fn update(&self, request: UpdateItemFluentBuilder) -> Result<Conditional, StoreError> {
        let sent = self.retry("UpdateItem", || sent(request.clone().send(), sort_update)).await;
        conditional("UpdateItem", sent.map(|output| output.attributes))
    }

    pub(crate) fn put_item(&self, item: Item) -> PutItemFluentBuilder {
        self.client.put_item().table_name(&*self.table).set_item(Some(item))
    }

    pub(crate) async fn put(&self, request: PutItemFluentBuilder) -> Result<Conditional, StoreError> {
        let sent = self.retry("PutItem", || sent(request.clone().send(), sort_put)).await;
        conditional("PutItem", sent.map(|output| output.attributes))
    }

    pub(crate) fn get_item(&self, pk: String, sk: String) -> GetItemFluentBuilder {
        self.client
            .get_item()
            .table_name(&*self.table)
            .consistent_read(true)
            .key(keys::PK, AttributeValue::S(pk))
            .key(keys::SK, AttributeValue::S(sk))
    }

    pub(crate) async fn get(&self, request: GetItemFluentBuilder) -> Result<Option<Item>, StoreError> {
        let sent = self.retry("GetItem", || sent(request.clone().send(), sort)).await;
        sent.map(|output| output.item).map_err(|fault| failed("GetItem", fault))
    }

    pub(crate) fn query(&self) -> QueryFluentBuilder {
        self.client.query().table_name(&*self.table).consistent_read(true)
    }

    /// One page of a query: what a page leaves out is newer or older than anybody asked for.
    pub(crate) async fn query_page(&self, request: QueryFluentBuilder) -> Result<Vec<Item>, StoreError> {
        let sent = self.retry("Query", || sent(request.clone().send(), sort)).await;
        sent.map(|output| output.items.unwrap_or_default()).map_err(|fault| failed("Query", fault))
    }

    /// The first `limit` items of a query, over as many pages as they take.
    pub(crate) async fn query_pages(&self, request: QueryFluentBuilder, limit: usize) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        let mut start = None;
        loop {
            let left = i32::try_from(limit - items.len()).unwrap_or(i32::MAX);
            if left == 0 {
                return Ok(items);
            }
            let page = request.clone().limit(left).set_exclusive_start_key(start);
            let sent = self.retry("Query", || sent(page.clone().send(), sort)).await;
            let output = sent.map_err(|fault| failed("Query", fault))?;
            items.extend(output.items.unwrap_or_default());
            start = output.last_evaluated_key;
            if start.is_none() {
                return Ok(items);
            }
        }
    }

    /// The items under `keys` (at most 100), strongly consistent, in no order; missing ones are left out.
    pub(crate) async fn batch_get(&self, wanted: Vec<(String, String)>) -> Result<Vec<Item>, StoreError> {
        let keys = wanted.into_iter().map(|(pk, sk)| {
            HashMap::from([(keys::PK.to_owned(), AttributeValue::S(pk)), (keys::SK.to_owned(), AttributeValue::S(sk))])
        });
        let wanted = KeysAndAttributes::builder().consistent_read(true).set_keys(Some(keys.collect())).build();
        let wanted = wanted.map_err(|error| StoreError::Refused { operation: "BatchGetItem", source: error.into() })?;
        let mut request: BatchGetItemFluentBuilder = self.client.batch_get_item().request_items(&*self.table, wanted);
        let mut found = Vec::new();
        let mut delays = self.delays();
        loop {
            let sent = self.retry("BatchGetItem", || sent(request.clone().send(), sort)).await;
            let mut output = sent.map_err(|fault| failed("BatchGetItem", fault))?;
            found
                .extend(output.responses.take().and_then(|mut tables| tables.remove(&*self.table)).unwrap_or_default());
            let Some(rest) = output.unprocessed_keys.filter(|rest| !rest.is_empty()) else { return Ok(found) };
            let Some(delay) = delays.next() else {
                return Err(StoreError::Unavailable {
                    operation: "BatchGetItem",
                    source: "keys stayed unprocessed".into(),
                });
            };
            tokio::time::sleep(delay).await;
            request = self.client.batch_get_item().set_request_items(Some(rest));
        }
    }

    /// Sends a transaction whose token derives from `token`: a repetition within ten minutes is recognised by DynamoDB,
    /// a later one by the conditions.
    pub(crate) async fn transact(
        &self,
        actions: Vec<TransactWriteItem>,
        token: &str,
    ) -> Result<Transaction, StoreError> {
        let token = hex::encode(&Sha256::digest(token.as_bytes())[..16]);
        let request = self.client.transact_write_items().set_transact_items(Some(actions)).client_request_token(token);
        let sent = self.retry("TransactWriteItems", || sent(request.clone().send(), sort_transaction)).await;
        match sent {
            Ok(_) => Ok(Transaction::Done),
            Err(Fault::Cancelled(reasons)) => Ok(Transaction::Cancelled(reasons)),
            Err(fault) => Err(failed("TransactWriteItems", fault)),
        }
    }
}

fn conditional(operation: &'static str, sent: Result<Option<Item>, Fault>) -> Result<Conditional, StoreError> {
    match sent {
        Ok(item) => Ok(Conditional::Met(item)),
        Err(Fault::Condition(item)) => Ok(Conditional::Failed(item.filter(|item| !item.is_empty()))),
        Err(fault) => Err(failed(operation, fault)),
    }
}

fn failed(operation: &'static str, fault: Fault) -> StoreError {
    match fault {
        Fault::Transient(source) => StoreError::Unavailable { operation, source },
        Fault::Permanent(source) => StoreError::Refused { operation, source },
        Fault::Condition(_) | Fault::Cancelled(_) => {
            StoreError::Refused { operation, source: "a condition failed that nobody set".into() }
        }
    }
}
