//! A store in memory whose answers can be lost on demand, and whose items can be seen as they are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use serde_json::Value;
use turnlock_clock::Clock;
use turnlock_domain::ids::EventId;
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;
use turnlock_embedded::EmbeddedDynamoDb;
use turnlock_store::Store;

/// The instant at which every bench starts.
pub(crate) const NOW: Millis = Millis(1_760_000_000_000);

const TABLE: &str = "turnlock";

pub(crate) struct Bench {
    pub(crate) store: Store,
    /// Another worker's.
    pub(crate) other: Store,
    client: Client,
    wire: Arc<Mutex<Wire>>,
}

#[derive(Debug, Default)]
struct Wire {
    /// The answers to lose: the operation, and how many of its requests come before.
    lose: Vec<(String, usize)>,
    requests: Vec<String>,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let database = EmbeddedDynamoDb::memory().unwrap();
        let wire = Arc::new(Mutex::new(Wire::default()));
        let clock = Clock::starting_at(NOW.timestamp());
        let store = |seed| Store::embedded(lossy(database.http_client(), &wire), TABLE, clock.clone(), seed);
        let config = Store::client_config()
            .http_client(database.http_client())
            .region(aws_sdk_dynamodb::config::Region::new("local"))
            .endpoint_url("http://embedded.invalid")
            .credentials_provider(aws_credential_types::Credentials::new(
                "embedded", "embedded", None, None, "embedded",
            ))
            .build();
        let bench = Self { store: store(1), other: store(2), client: Client::from_conf(config), wire: wire.clone() };
        bench.store.create_table().await.unwrap();
        bench.forget_requests();
        bench
    }

    /// The next request of `operation` takes effect, and its answer is lost.
    pub(crate) fn lose(&self, operation: &str) {
        self.lose_nth(operation, 1);
    }

    /// The same of the `nth` request of `operation` from here.
    pub(crate) fn lose_nth(&self, operation: &str, nth: usize) {
        self.wire.lock().unwrap().lose.push((operation.to_owned(), nth - 1));
    }

    /// The requests since the last time, sendings of the same one included.
    pub(crate) fn forget_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.wire.lock().unwrap().requests)
    }

    pub(crate) async fn put(&self, item: &Value) {
        let item: HashMap<String, AttributeValue> = serde_dynamo::to_item(item).unwrap();
        self.client.put_item().table_name(TABLE).set_item(Some(item)).send().await.unwrap();
    }

    pub(crate) async fn item(&self, (pk, sk): (String, String)) -> Option<Value> {
        let request = self.client.get_item().table_name(TABLE);
        let output = request.key("pk", AttributeValue::S(pk)).key("sk", AttributeValue::S(sk)).send().await.unwrap();
        output.item.map(|item| serde_dynamo::from_item(item).unwrap())
    }
}

pub(crate) fn session() -> SessionKey {
    SessionKey::from_text("telegram:1000001")
}

pub(crate) fn event(id: &str) -> EventId {
    EventId::from_stored(id)
}

fn lossy(inner: SharedHttpClient, wire: &Arc<Mutex<Wire>>) -> SharedHttpClient {
    let wire = wire.clone();
    http_client_fn(move |settings, components| {
        let inner = inner.http_connector(settings, components);
        SharedHttpConnector::new(Lossy { inner, wire: wire.clone() })
    })
}

#[derive(Debug)]
struct Lossy {
    inner: SharedHttpConnector,
    wire: Arc<Mutex<Wire>>,
}

impl HttpConnector for Lossy {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let (answer, wire) = (self.inner.call(request), self.wire.clone());
        HttpConnectorFuture::new(async move {
            // Requests of tasks that run at the same time take turns.
            tokio::task::yield_now().await;
            let answer = answer.await;
            let mut wire = wire.lock().unwrap();
            let lost = wire.lose.iter().position(|(of, before)| *of == operation && *before == 0);
            wire.lose
                .iter_mut()
                .filter(|(of, _)| *of == operation)
                .for_each(|(_, before)| *before = before.saturating_sub(1));
            if let Some(lost) = lost {
                wire.lose.remove(lost);
            }
            wire.requests.push(operation);
            if lost.is_some() { Err(ConnectorError::io("the answer was lost".into())) } else { answer }
        })
    }
}
