//! Lambda, as far as a function can tell: its real binary as processes that ask a Runtime API for work, each with one
//! invocation at a time, as many as there are concurrent ones. What an emulator does not offer is here to be asked for:
//! kill the process that works just now, put another version in its place.
//!
//! Not here: the freezing of idle processes, limits of memory and size, extensions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::worker::{Ended, Worker};

/// What a function is deployed with.
#[derive(Debug, Clone)]
pub struct Deployed {
    /// Its name in the stack.
    pub name: String,
    /// Its logical id in the template, which is its access key, too.
    pub id: String,
    /// The folder that stands for its zip file, with `bootstrap` in it.
    pub package: PathBuf,
    /// Its environment, Lambda's own variables included.
    pub environment: BTreeMap<String, String>,
    /// After how long an invocation is ended.
    pub timeout: Duration,
    /// How many invocations run at once; more are throttled.
    pub concurrency: usize,
    /// Where its processes write.
    pub log: PathBuf,
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq)]
pub enum InvokeError {
    /// All processes that may be are busy.
    Throttled,
    /// The function reported an error, or ended, or took too long: what Lambda answers with `X-Amz-Function-Error`.
    Function(Value),
}

/// All functions of a stack.
#[derive(Debug, Default)]
pub struct Lambda {
    functions: Mutex<BTreeMap<String, Arc<Function>>>,
}

/// A function.
#[derive(Debug)]
struct Function {
    slots: Arc<Semaphore>,
    state: Mutex<Version>,
    /// How many invocations run.
    running: watch::Sender<usize>,
    /// The events of all invocations so far.
    received: Mutex<Vec<Bytes>>,
    started: AtomicUsize,
    /// Counts the orders to kill what works.
    kills: watch::Sender<u64>,
}

/// What new processes are made from, and those of it that wait for work.
#[derive(Debug)]
struct Version {
    number: u64,
    deployed: Deployed,
    idle: Vec<Worker>,
}

impl Lambda {
    /// Puts a function there.
    pub fn deploy(&self, deployed: Deployed) {
        let name = deployed.name.clone();
        let function = Function {
            slots: Arc::new(Semaphore::new(deployed.concurrency)),
            state: Mutex::new(Version { number: 0, deployed, idle: Vec::new() }),
            running: watch::Sender::new(0),
            received: Mutex::default(),
            started: AtomicUsize::new(0),
            kills: watch::Sender::new(0),
        };
        self.functions.lock().unwrap().insert(name, Arc::new(function));
    }

    /// Replaces a function's code: new invocations get new processes, those that run end as they would have.
    pub fn replace(&self, id: &str, package: PathBuf) {
        let function = self.function(id);
        let mut version = function.state.lock().unwrap();
        version.number += 1;
        version.deployed.package = package;
        version.idle.clear();
    }

    /// Gives a function another timeout, as an update of its configuration does.
    pub fn set_timeout(&self, id: &str, timeout: Duration) {
        self.function(id).state.lock().unwrap().deployed.timeout = timeout;
    }

    /// Invokes a function by its logical id and waits for its result.
    ///
    /// # Errors
    /// [`InvokeError`]
    pub async fn invoke(&self, id: &str, payload: &Value) -> Result<Value, InvokeError> {
        let name = self.function(id).state.lock().unwrap().deployed.name.clone();
        let result = self.invoke_named(&name, payload.to_string().into()).await?;
        Ok(serde_json::from_slice(&result).unwrap_or_default())
    }

    /// Invokes a function by its name in the stack.
    pub(super) async fn invoke_named(&self, name: &str, payload: Bytes) -> Result<Bytes, InvokeError> {
        let function = self.functions.lock().unwrap().get(name).cloned();
        let function = function.unwrap_or_else(|| panic!("there is no function {name}"));
        let Ok(_slot) = Arc::clone(&function.slots).try_acquire_owned() else { return Err(InvokeError::Throttled) };
        function.received.lock().unwrap().push(payload.clone());
        function.running.send_modify(|running| *running += 1);
        let _running = Running(&function.running);
        function.run(payload).await
    }

    /// SIGKILL for every process of the function that works; how many invocations that were.
    pub fn kill(&self, id: &str) -> usize {
        let function = self.function(id);
        let running = *function.running.borrow();
        function.kills.send_modify(|kills| *kills += 1);
        running
    }

    /// Waits until no invocation of the function runs.
    pub async fn is_idle(&self, id: &str) {
        let mut running = self.function(id).running.subscribe();
        running.wait_for(|running| *running == 0).await.unwrap();
    }

    /// The events that the function was invoked with so far.
    #[must_use]
    pub fn received(&self, id: &str) -> Vec<Bytes> {
        self.function(id).received.lock().unwrap().clone()
    }

    /// How many processes of the function were started.
    #[must_use]
    pub fn started(&self, id: &str) -> usize {
        self.function(id).started.load(Ordering::Relaxed)
    }

    /// The functions, by their logical ids.
    #[must_use]
    pub fn deployed(&self) -> Vec<Deployed> {
        let functions = self.functions.lock().unwrap();
        functions.values().map(|function| function.state.lock().unwrap().deployed.clone()).collect()
    }

    fn function(&self, id: &str) -> Arc<Function> {
        let functions = self.functions.lock().unwrap();
        let found = functions.values().find(|function| function.state.lock().unwrap().deployed.id == id);
        Arc::clone(found.unwrap_or_else(|| panic!("the template has no function {id}")))
    }

    /// Serves what ministack forwards invocations to, for as long as `servers` lives; the address.
    pub async fn serve(self: &Arc<Self>, servers: &mut JoinSet<()>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        let router = Router::new().fallback(forwarded).with_state(Arc::clone(self));
        servers.spawn(async move { axum::serve(listener, router).await.unwrap() });
        address
    }
}

/// An invocation that runs, until its result is there or nobody waits for it.
struct Running<'a>(&'a watch::Sender<usize>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|running| *running -= 1);
    }
}

/// An invocation that ministack received: the event is the body, the function stands in a header.
async fn forwarded(State(lambda): State<Arc<Lambda>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let name = parts.headers.get("x-amzn-lambda-function-name").and_then(|name| name.to_str().ok()).unwrap_or_default();
    let payload = to_bytes(body, usize::MAX).await.unwrap();
    match lambda.invoke_named(name, payload).await {
        Ok(result) => result.into_response(),
        Err(InvokeError::Throttled) => StatusCode::TOO_MANY_REQUESTS.into_response(),
        Err(InvokeError::Function(error)) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

impl Function {
    async fn run(&self, payload: Bytes) -> Result<Bytes, InvokeError> {
        let mut kills = self.kills.subscribe();
        let (number, mut worker, timeout) = self.worker().await?;
        let outcome = tokio::select! {
            outcome = worker.invoke(payload, timeout) => outcome,
            _ = kills.changed() => Err(Ended::Exited),
        };
        match outcome {
            Ok(result) => {
                self.keep(number, worker);
                Ok(result)
            }
            Err(Ended::Reported(error)) => {
                self.keep(number, worker);
                Err(InvokeError::Function(error))
            }
            // The process is dead, or dies with its worker.
            Err(Ended::Exited) => Err(failed("Runtime.ExitError", "Runtime exited without providing a reason")),
            Err(Ended::TimedOut) => Err(failed("Sandbox.Timedout", &format!("Task timed out after {timeout:?}"))),
        }
    }

    /// A process that waits for work, or a new one.
    async fn worker(&self) -> Result<(u64, Worker, Duration), InvokeError> {
        let (number, deployed, idle) = {
            let mut version = self.state.lock().unwrap();
            (version.number, version.deployed.clone(), version.idle.pop())
        };
        let worker = match idle.and_then(|mut worker| worker.lives().then_some(worker)) {
            Some(worker) => worker,
            None => {
                self.started.fetch_add(1, Ordering::Relaxed);
                Worker::start(&deployed).await.map_err(|error| failed("Runtime.ExitError", &error))?
            }
        };
        Ok((number, worker, deployed.timeout))
    }

    /// The process waits for more, unless the code was replaced meanwhile.
    fn keep(&self, number: u64, worker: Worker) {
        let mut version = self.state.lock().unwrap();
        if version.number == number {
            version.idle.push(worker);
        }
    }
}

fn failed(kind: &str, message: &str) -> InvokeError {
    InvokeError::Function(json!({ "errorType": kind, "errorMessage": message }))
}
