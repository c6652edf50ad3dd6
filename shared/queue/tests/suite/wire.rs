//! SQS as a script: an HTTP client under the SDK that plays one answer a request and keeps what was sent.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, SharedHttpClient, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use aws_types::SdkConfig;
use aws_types::region::Region;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::Instant;
use turnlock_queue::MAX_BYTES;
use turnlock_queue::sqs::SqsQueue;

/// A FIFO queue of the script.
pub(crate) const FIFO: &str = "https://sqs.eu-central-1.amazonaws.com/123456789012/inbound.fifo";

/// A standard queue of the script.
pub(crate) const STANDARD: &str = "https://sqs.eu-central-1.amazonaws.com/123456789012/consolidate";

/// What a request meets.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// 200 and this.
    Done(Value),
    /// An error as SQS writes it: status, its name in the query protocol, its message.
    Error(u16, &'static str, &'static str),
    /// Nobody listens.
    Refused,
    /// The connection breaks after the request has gone out.
    Broken,
    /// There is never an answer.
    Silence,
}

/// What SQS says when it has no more room. It blames the sender, with 403 (github.com/async-aws/aws/issues/1227).
pub(crate) const THROTTLED: Answer = Answer::Error(403, "RequestThrottled", "Request is throttled.");

/// What SQS says when it breaks down itself.
pub(crate) const INTERNAL: Answer = Answer::Error(500, "InternalFailure", "We encountered an internal error.");

/// A message was accepted.
pub(crate) fn sent() -> Answer {
    Answer::Done(json!({ "MessageId": "m", "MD5OfMessageBody": "d" }))
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    /// The operation's name, from `AmazonSQS.<name>`.
    pub(crate) operation: String,
    /// Its parameters.
    pub(crate) body: Value,
    /// How long after the first one it came.
    pub(crate) after: Duration,
}

#[derive(Debug, Default)]
struct Script {
    answers: VecDeque<Answer>,
    sent: Vec<Sent>,
    start: Option<Instant>,
}

/// A script and what has been asked of it. After its last answer it repeats that one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wire {
    script: Arc<Mutex<Script>>,
}

impl Wire {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let wire = Self::default();
        wire.script.lock().unwrap().answers = answers.into_iter().collect();
        wire
    }

    /// The queue at `url` behind this script.
    pub(crate) fn queue(&self, url: &str) -> SqsQueue {
        self.queue_of(url, MAX_BYTES)
    }

    /// The same with a limit of its own.
    pub(crate) fn queue_of(&self, url: &str, max_bytes: usize) -> SqsQueue {
        let credentials = Credentials::new("key", "secret", None, None, "test");
        let config = SdkConfig::builder()
            .http_client(self.http_client())
            .region(Region::new("eu-central-1"))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .build();
        SqsQueue::new(SqsQueue::client(&config), url, max_bytes, 7)
    }

    /// All requests so far.
    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.script.lock().unwrap().sent.clone()
    }

    fn http_client(&self) -> SharedHttpClient {
        let connector = SharedHttpConnector::new(self.clone());
        http_client_fn(move |_, _| connector.clone())
    }

    fn next(&self, request: &HttpRequest) -> Answer {
        let mut script = self.script.lock().unwrap();
        let target = request.headers().get("x-amz-target").unwrap();
        let operation = target.strip_prefix("AmazonSQS.").unwrap().to_owned();
        let body = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
        let after = script.start.get_or_insert_with(Instant::now).elapsed();
        script.sent.push(Sent { operation, body, after });
        match script.answers.len() {
            0 => panic!("the script has no answer"),
            1 => script.answers[0].clone(),
            _ => script.answers.pop_front().unwrap(),
        }
    }
}

impl HttpConnector for Wire {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let answer = self.next(&request);
        HttpConnectorFuture::new(async move {
            match answer {
                Answer::Done(body) => Ok(response(200, &body)),
                Answer::Error(status, code, message) => {
                    let kind = format!("com.amazonaws.sqs#{code}");
                    let mut response = response(status, &json!({ "__type": kind, "message": message }));
                    response.headers_mut().insert("x-amzn-query-error", format!("{code};Sender"));
                    Ok(response)
                }
                Answer::Refused => Err(broken(io::ErrorKind::ConnectionRefused)),
                Answer::Broken => Err(broken(io::ErrorKind::ConnectionReset)),
                Answer::Silence => std::future::pending().await,
            }
        })
    }
}

fn response(status: u16, body: &Value) -> HttpResponse {
    let status = StatusCode::from_u16(status).unwrap();
    let mut response = HttpResponse::new(status.into(), SdkBody::from(body.to_string()));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    response
}

fn broken(kind: io::ErrorKind) -> ConnectorError {
    ConnectorError::io(Box::new(io::Error::from(kind)))
}
