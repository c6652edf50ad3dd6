//! One process of a function and the Runtime API that it alone asks for work (Lambda Developer Guide, "Using the Lambda
//! runtime API for custom runtimes"). It dies with this value.

use std::fs::OpenOptions;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::lambda::Deployed;

/// How long a process may take before it asks for work.
const INIT: Duration = Duration::from_secs(10);

/// A process.
#[derive(Debug)]
pub(super) struct Worker {
    child: Child,
    arn: String,
    invocations: mpsc::UnboundedSender<Invocation>,
    /// How many invocations it has had: their ids.
    count: u64,
    _api: JoinSet<()>,
}

/// How an invocation ends without a result.
#[derive(Debug)]
pub(super) enum Ended {
    /// By an error that the runtime reported.
    Reported(Value),
    /// By the end of the process.
    Exited,
    /// Not by itself.
    TimedOut,
}

/// Where a result goes: what the function returns, or the error that it reports.
type Answer = oneshot::Sender<Result<Bytes, Value>>;

#[derive(Debug)]
struct Invocation {
    id: String,
    arn: String,
    payload: Bytes,
    /// In milliseconds since the Unix epoch.
    deadline: u128,
    answer: Answer,
}

/// The process's side.
#[derive(Debug)]
struct Api {
    invocations: tokio::sync::Mutex<mpsc::UnboundedReceiver<Invocation>>,
    current: Mutex<Option<(String, Answer)>>,
    /// The process asked for work.
    ready: Notify,
}

impl Worker {
    /// Starts a process and waits until it asks for work.
    pub(super) async fn start(deployed: &Deployed) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (invocations, receiver) = mpsc::unbounded_channel();
        let api = Arc::new(Api {
            invocations: tokio::sync::Mutex::new(receiver),
            current: Mutex::default(),
            ready: Notify::new(),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&api));
        let mut servers = JoinSet::new();
        servers.spawn(async move { axum::serve(listener, router).await.unwrap() });
        let log = OpenOptions::new().create(true).append(true).open(&deployed.log).unwrap();
        let mut command = Command::new(deployed.package.join("bootstrap"));
        command.current_dir(&deployed.package).env_clear().envs(&deployed.environment);
        command.env("AWS_LAMBDA_RUNTIME_API", address.to_string());
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).kill_on_drop(true);
        let child = command.spawn().map_err(|error| format!("{}: {error}", deployed.id))?;
        let arn = format!("arn:aws:lambda:us-east-1:000000000000:function:{}", deployed.name);
        let mut worker = Self { child, arn, invocations, count: 0, _api: servers };
        tokio::select! {
            ready = timeout(INIT, api.ready.notified()) => ready.map_err(|_| "the start took too long".to_owned())?,
            ended = worker.child.wait() => return Err(format!("{} ended while it started: {ended:?}", deployed.id)),
        }
        Ok(worker)
    }

    /// Whether the process has not ended.
    pub(super) fn lives(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|ended| ended.is_none())
    }

    /// Gives the process an invocation and waits for its result.
    pub(super) async fn invoke(&mut self, payload: Bytes, limit: Duration) -> Result<Bytes, Ended> {
        self.count += 1;
        let (answer, answered) = oneshot::channel();
        let deadline = (SystemTime::now() + limit).duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let id = format!("{}-{}", self.child.id().unwrap_or_default(), self.count);
        // Where nobody receives, the process is about to be found dead.
        let _ = self.invocations.send(Invocation { id, arn: self.arn.clone(), payload, deadline, answer });
        tokio::select! {
            biased;
            answer = timeout(limit, answered) => match answer {
                Ok(Ok(answer)) => answer.map_err(Ended::Reported),
                Ok(Err(_)) => Err(Ended::Exited),
                Err(_) => Err(Ended::TimedOut),
            },
            _ = self.child.wait() => Err(Ended::Exited),
        }
    }
}

/// What a runtime may ask.
async fn answer(State(api): State<Arc<Api>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let mut path = parts.uri.path().trim_start_matches("/2018-06-01/runtime/").split('/');
    match (path.next(), path.next(), path.next()) {
        (Some("invocation"), Some("next"), None) => api.next().await,
        (Some("invocation"), Some(id), Some("response")) => api.settle(id, Ok(body)),
        (Some("invocation"), Some(id), Some("error")) => api.settle(id, Err(error(&body))),
        // The process ends after it has said why, which is in its log.
        (Some("init"), Some("error"), None) => StatusCode::ACCEPTED.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn error(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| json!({ "errorMessage": String::from_utf8_lossy(body) }))
}

impl Api {
    async fn next(&self) -> Response {
        self.ready.notify_one();
        let Some(invocation) = self.invocations.lock().await.recv().await else {
            return StatusCode::GONE.into_response();
        };
        let headers = [
            ("lambda-runtime-aws-request-id", invocation.id.clone()),
            ("lambda-runtime-deadline-ms", invocation.deadline.to_string()),
            ("lambda-runtime-invoked-function-arn", invocation.arn),
            ("content-type", "application/json".to_owned()),
        ];
        *self.current.lock().unwrap() = Some((invocation.id, invocation.answer));
        (headers, invocation.payload).into_response()
    }

    fn settle(&self, id: &str, result: Result<Bytes, Value>) -> Response {
        let current = self.current.lock().unwrap().take_if(|(current, _)| current == id);
        let Some((_, answer)) = current else { return StatusCode::BAD_REQUEST.into_response() };
        // The invocation may have ended meanwhile.
        let _ = answer.send(result);
        StatusCode::ACCEPTED.into_response()
    }
}
