//! The endpoint that the functions have in place of AWS: it notes who asked for what, answers as it was told to, and
//! passes everything else on: DynamoDB to dynoxide, Bedrock to the scripted one, the rest to ministack. An event bus it is
//! itself: it takes what the real one takes, and keeps it. So it is for functions of a team's own: each answers with what
//! it was called with.
//!
//! Who asks is known by the access key, of which every function has its own. Signatures are not looked at.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The largest body of a request: an SQS batch is 1 MiB, a DynamoDB transaction 4 MiB.
const MAX_BODY: usize = 16 << 20;

/// A request of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The function's logical id in the template; of others, their access key.
    pub caller: String,
    /// The service and its operation, as the API spells it: `sqs:SendMessageBatch`.
    pub operation: String,
    /// What it was done to: a queue's, table's or secret's name, a model's id.
    pub resource: String,
    /// The actions that IAM asks for; a transaction needs those of its parts.
    pub actions: BTreeSet<String>,
    /// The status of the answer.
    pub status: u16,
    /// The capacity units that DynamoDB says it used, reads and writes together.
    pub capacity: f64,
}

/// An answer in place of the service's own.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Whose requests; empty = everybody's.
    pub caller: String,
    /// Which operation: `dynamodb:TransactWriteItems`.
    pub operation: String,
    /// How many of them.
    pub times: u32,
    /// Whether the service carries the request out before the answer is lost.
    pub carried_out: bool,
    /// The status of the answer.
    pub status: u16,
    /// The error as the service writes it.
    pub body: Value,
}

/// The endpoint.
#[derive(Debug)]
pub struct Front {
    address: String,
    http: reqwest::Client,
    services: Services,
    calls: Mutex<Vec<Call>>,
    faults: Mutex<Vec<Fault>>,
    bus: Mutex<Vec<Value>>,
}

/// Where the services are, as `http://host:port`.
#[derive(Debug, Clone)]
pub struct Services {
    /// dynoxide.
    pub dynamodb: String,
    /// The scripted Bedrock.
    pub bedrock: String,
    /// ministack.
    pub others: String,
}

impl Front {
    /// Serves for as long as `servers` lives.
    pub async fn serve(services: Services, servers: &mut JoinSet<()>) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let front = Arc::new(Self {
            address,
            http: super::http_client(),
            services,
            calls: Mutex::default(),
            faults: Mutex::default(),
            bus: Mutex::default(),
        });
        let router = Router::new().fallback(pass).with_state(Arc::clone(&front));
        servers.spawn(async move { axum::serve(listener, router).await.unwrap() });
        front
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Everything that was asked for so far, in the order of the answers.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// The entries that were put on an event bus so far.
    #[must_use]
    pub fn on_the_bus(&self) -> Vec<Value> {
        self.bus.lock().unwrap().clone()
    }

    /// Takes the entries of a `PutEvents`; its answer.
    fn put_events(&self, request: &[u8]) -> Value {
        let request: Value = serde_json::from_slice(request).unwrap();
        let entries = request["Entries"].as_array().unwrap();
        self.bus.lock().unwrap().extend(entries.iter().cloned());
        let ids: Vec<Value> = entries.iter().map(|_| json!({ "EventId": "1" })).collect();
        json!({ "FailedEntryCount": 0, "Entries": ids })
    }

    /// Answers some of the requests to come with `fault`; the first one that fits is used.
    pub fn fail(&self, fault: Fault) {
        self.faults.lock().unwrap().push(fault);
    }

    /// How many answers of [`Front::fail`] were not used.
    #[must_use]
    pub fn faults_left(&self) -> u32 {
        self.faults.lock().unwrap().iter().map(|fault| fault.times).sum()
    }

    fn fault(&self, call: &Call) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap();
        let fits = |fault: &&mut Fault| {
            fault.times > 0
                && fault.operation == call.operation
                && (fault.caller.is_empty() || fault.caller == call.caller)
        };
        let fault = faults.iter_mut().find(fits)?;
        fault.times -= 1;
        Some(fault.clone())
    }
}

async fn pass(State(front): State<Arc<Front>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, MAX_BODY).await.unwrap();
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut call = read(&parts.headers, path, &body);
    if let Some(fault) = front.fault(&call) {
        if fault.carried_out {
            forward(&front, &call, &parts.method, path, &parts.headers, body).await.bytes().await.unwrap();
        }
        call.status = fault.status;
        front.calls.lock().unwrap().push(call);
        let status = StatusCode::from_u16(fault.status).unwrap();
        return (status, [("content-type", "application/x-amz-json-1.0")], fault.body.to_string()).into_response();
    }
    if call.operation == "events:PutEvents" {
        let answer = front.put_events(&body);
        call.status = 200;
        front.calls.lock().unwrap().push(call);
        return ([("content-type", "application/x-amz-json-1.1")], answer.to_string()).into_response();
    }
    if call.operation == "lambda:Invoke" {
        call.status = 200;
        front.calls.lock().unwrap().push(call);
        return ([("content-type", "application/json")], body).into_response();
    }
    let answer = forward(&front, &call, &parts.method, path, &parts.headers, body).await;
    call.status = answer.status().as_u16();
    let mut response = Response::builder().status(answer.status());
    for (name, value) in answer.headers() {
        if name != http::header::TRANSFER_ENCODING {
            response = response.header(name, value);
        }
    }
    // A model's answer is passed on as it comes; of DynamoDB's the capacity is noted.
    let body = if call.operation.starts_with("dynamodb:") {
        let bytes = answer.bytes().await.unwrap();
        call.capacity = capacity(&bytes);
        Body::from(bytes)
    } else {
        Body::from_stream(answer.bytes_stream())
    };
    front.calls.lock().unwrap().push(call);
    response.body(body).unwrap()
}

async fn forward(
    front: &Front,
    call: &Call,
    method: &http::Method,
    path: &str,
    headers: &HeaderMap,
    body: Bytes,
) -> reqwest::Response {
    let service = call.operation.split(':').next().unwrap_or_default();
    let (address, body) = match service {
        "dynamodb" => (&front.services.dynamodb, with_capacity(body)),
        "bedrock" => (&front.services.bedrock, body),
        _ => (&front.services.others, body),
    };
    let mut headers = headers.clone();
    for name in [http::header::HOST, http::header::CONTENT_LENGTH, http::header::TRANSFER_ENCODING] {
        headers.remove(name);
    }
    let request = front.http.request(method.clone(), format!("{address}{path}")).headers(headers).body(body);
    request.send().await.unwrap_or_else(|error| panic!("{} of {}: {error:?}", call.operation, call.caller))
}

/// Asks DynamoDB for the capacity it uses, which no reader of ours minds in the answer.
fn with_capacity(body: Bytes) -> Bytes {
    let Ok(Value::Object(mut request)) = serde_json::from_slice(&body) else { return body };
    request.entry("ReturnConsumedCapacity").or_insert(json!("TOTAL"));
    Value::Object(request).to_string().into()
}

fn capacity(answer: &[u8]) -> f64 {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let units = |entry: &Value| entry["CapacityUnits"].as_f64().unwrap_or_default();
    match &answer["ConsumedCapacity"] {
        Value::Array(entries) => entries.iter().map(units).sum(),
        entry => units(entry),
    }
}

/// What a request asks for.
fn read(headers: &HeaderMap, path: &str, body: &[u8]) -> Call {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let credential = header("authorization").split("Credential=").nth(1).unwrap_or_default();
    let caller = credential.split('/').next().unwrap_or_default().to_owned();
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let (operation, resource) = match header("x-amz-target").split_once('.') {
        Some((target, operation)) => {
            let service = match target.split('_').next().unwrap_or_default() {
                "AmazonSQS" => "sqs",
                "DynamoDB" => "dynamodb",
                "AWSEvents" => "events",
                other => other,
            };
            (format!("{service}:{operation}"), resource(&request))
        }
        None if path.starts_with(FUNCTIONS) => invocation(path),
        None => bedrock(path),
    };
    let actions = actions(&operation, &request);
    Call { caller, operation, resource, actions, status: 0, capacity: 0.0 }
}

/// The name at the end of whatever names a resource; of several parts the table of the first.
fn resource(request: &Value) -> String {
    let named = ["QueueUrl", "TableName", "SecretId"].into_iter().find_map(|name| request[name].as_str());
    let first = || {
        let item = request["TransactItems"].get(0)?.as_object()?.values().next()?;
        item["TableName"].as_str()
    };
    let batch = || request["RequestItems"].as_object()?.keys().next().map(String::as_str);
    let name = named.or_else(first).or_else(batch).unwrap_or_default();
    name.rsplit('/').next().unwrap_or_default().to_owned()
}

/// What the path of an invocation begins with.
const FUNCTIONS: &str = "/2015-03-31/functions/";

/// `/2015-03-31/functions/{name}/invocations`; an ARN is percent-encoded, and its last part the name.
fn invocation(path: &str) -> (String, String) {
    let name = path.trim_start_matches(FUNCTIONS).split('/').next().unwrap_or_default();
    let name = name.rsplit("%3A").next().unwrap_or_default();
    ("lambda:Invoke".to_owned(), name.to_owned())
}

/// `/model/{id}/converse` and `/model/{id}/converse-stream`, percent-encoded.
fn bedrock(path: &str) -> (String, String) {
    let mut parts = path.trim_start_matches('/').split('/').skip(1);
    let (model, operation) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let operation = match operation {
        "converse" => "bedrock:Converse",
        "converse-stream" => "bedrock:ConverseStream",
        _ => "unknown:unknown",
    };
    (operation.to_owned(), model.to_owned())
}

/// What IAM asks for ("Actions, resources, and condition keys for AWS services"): a batch needs the action of its entries,
/// a transaction those of its parts, a conversation the invocation of its model, and its guardrail where it names one.
fn actions(operation: &str, request: &Value) -> BTreeSet<String> {
    let (service, name) = operation.split_once(':').unwrap_or_default();
    let names: Vec<&str> = match (service, name) {
        ("sqs", name) => vec![name.trim_end_matches("Batch")],
        ("lambda", "Invoke") => vec!["InvokeFunction"],
        ("bedrock", "Converse") => vec!["InvokeModel"],
        ("bedrock", "ConverseStream") => vec!["InvokeModelWithResponseStream"],
        ("dynamodb", "TransactWriteItems" | "TransactGetItems") => {
            let items = request["TransactItems"].as_array().map(Vec::as_slice).unwrap_or_default();
            let parts = items.iter().filter_map(|item| item.as_object()?.keys().next().map(String::as_str));
            parts
                .map(|part| match part {
                    "Put" => "PutItem",
                    "Update" => "UpdateItem",
                    "Delete" => "DeleteItem",
                    "Get" => "GetItem",
                    _ => "ConditionCheckItem",
                })
                .collect()
        }
        (_, name) => vec![name],
    };
    let guardrail = request.get("guardrailConfig").map(|_| "ApplyGuardrail");
    names.into_iter().chain(guardrail).map(|name| format!("{service}:{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(target: &str, body: &Value) -> Call {
        let mut headers = HeaderMap::new();
        headers.insert("x-amz-target", target.parse().unwrap());
        let authorization = "AWS4-HMAC-SHA256 Credential=Agent/20260101/us-east-1/sqs/aws4_request, Signature=0";
        headers.insert("authorization", authorization.parse().unwrap());
        read(&headers, "/", body.to_string().as_bytes())
    }

    #[test]
    fn a_request_says_who_asks_for_what() {
        let batch = call("AmazonSQS.SendMessageBatch", &json!({ "QueueUrl": "http://h/0/out.fifo", "Entries": [] }));
        assert_eq!((batch.caller.as_str(), batch.operation.as_str()), ("Agent", "sqs:SendMessageBatch"));
        assert_eq!((batch.resource.as_str(), batch.actions), ("out.fifo", ["sqs:SendMessage".to_owned()].into()));
        let parts = json!({ "TransactItems": [
            { "Update": { "TableName": "table" } },
            { "Put": { "TableName": "table" } },
            { "ConditionCheck": { "TableName": "table" } },
        ] });
        let transaction = call("DynamoDB_20120810.TransactWriteItems", &parts);
        assert_eq!(transaction.resource, "table");
        let actions: Vec<_> = transaction.actions.iter().map(String::as_str).collect();
        assert_eq!(actions, ["dynamodb:ConditionCheckItem", "dynamodb:PutItem", "dynamodb:UpdateItem"]);
    }

    #[test]
    fn a_conversation_invokes_its_model() {
        let call = read(&HeaderMap::new(), "/model/eu.some-model%3A0/converse-stream", b"{}");
        assert_eq!((call.operation.as_str(), call.resource.as_str()), ("bedrock:ConverseStream", "eu.some-model%3A0"));
        assert_eq!(call.actions, ["bedrock:InvokeModelWithResponseStream".to_owned()].into());
        let guarded = br#"{"guardrailConfig":{"guardrailIdentifier":"g1","guardrailVersion":"1"}}"#;
        let call = read(&HeaderMap::new(), "/model/m/converse", guarded);
        let actions: Vec<_> = call.actions.iter().map(String::as_str).collect();
        assert_eq!(actions, ["bedrock:ApplyGuardrail", "bedrock:InvokeModel"]);
    }

    #[test]
    fn a_function_is_invoked_by_its_name_or_its_arn() {
        for name in ["orders", "arn%3Aaws%3Alambda%3Aus-east-1%3A000000000000%3Afunction%3Aorders"] {
            let call = read(&HeaderMap::new(), &format!("/2015-03-31/functions/{name}/invocations"), b"{}");
            assert_eq!((call.operation.as_str(), call.resource.as_str()), ("lambda:Invoke", "orders"));
            assert_eq!(call.actions, ["lambda:InvokeFunction".to_owned()].into());
        }
    }

    #[test]
    fn capacity_is_the_sum_of_its_tables() {
        assert_eq!(capacity(br#"{"ConsumedCapacity":[{"CapacityUnits":2.0},{"CapacityUnits":0.5}]}"#), 2.5);
        assert_eq!(capacity(br#"{"ConsumedCapacity":{"CapacityUnits":1.5}}"#), 1.5);
        assert_eq!(capacity(b"{}"), 0.0);
    }
}
