//! Lambda, as far as one process can tell: it is started with its environment, asks the Runtime API for an event, answers
//! it and asks for the next (Lambda Developer Guide, "Using the Lambda runtime API for custom runtimes").

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::server::{self, Answer};

/// How long a start or an answer may take.
const LONGEST: Duration = Duration::from_secs(20);
/// What an invocation has left when it begins.
const INVOCATION: Duration = Duration::from_secs(300);
const RUNTIME: &str = "/2018-06-01/runtime/";

/// What a function asks the Runtime API, and when it had asked.
struct Call {
    at: Instant,
    what: What,
}

enum What {
    /// It wants an event.
    Next,
    /// Its answer.
    Response(Bytes),
    /// Anything else: errors, mostly.
    Other(String),
}

/// The Runtime API of one process.
struct RuntimeApi {
    calls: mpsc::UnboundedSender<Call>,
    events: Mutex<mpsc::UnboundedReceiver<Bytes>>,
}

/// A running function; killed when dropped.
pub(super) struct Process {
    child: Child,
    log: PathBuf,
    calls: mpsc::UnboundedReceiver<Call>,
    events: mpsc::UnboundedSender<Bytes>,
    /// Lives as long as the process.
    _server: JoinSet<()>,
}

impl Process {
    /// Starts `program` with nothing but `environment` and what Lambda itself sets, its output in the file `log`. Returns
    /// when it asks for work, with the time that took.
    pub(super) async fn start(
        program: &Path,
        environment: &BTreeMap<&'static str, String>,
        log: &Path,
    ) -> anyhow::Result<(Self, Duration)> {
        let (listener, port) = server::listen().await?;
        let (to_us, calls) = mpsc::unbounded_channel();
        let (events, to_function) = mpsc::unbounded_channel();
        let api = RuntimeApi { calls: to_us, events: Mutex::new(to_function) };
        let mut server = JoinSet::new();
        server.spawn(server::serve(listener, None, Arc::new(api)));
        let output = File::create(log)?;
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(environment)
            .env("AWS_LAMBDA_RUNTIME_API", format!("127.0.0.1:{port}"))
            .env("AWS_LAMBDA_FUNCTION_NAME", "bench")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .kill_on_drop(true);
        let started = Instant::now();
        let child = command.spawn().with_context(|| {
            format!("{} cannot be started; `cargo xtask bench cold` builds it first", program.display())
        })?;
        let mut process = Self { child, log: log.to_owned(), calls, events, _server: server };
        let at = process.wants_work().await.with_context(|| process.output())?;
        Ok((process, at - started))
    }

    /// Gives it `event`; returns its answer, how long that took, and is back when it wants the next one.
    pub(super) async fn invoke(&mut self, event: Bytes) -> anyhow::Result<(Duration, Value)> {
        let started = Instant::now();
        self.events.send(event).context("the Runtime API is gone")?;
        let answer = match self.next_call().await? {
            Call { at, what: What::Response(body) } => (at - started, serde_json::from_slice(&body)?),
            Call { what, .. } => bail!("in place of an answer: {what}"),
        };
        self.wants_work().await?;
        Ok(answer)
    }

    /// What it holds of the machine's memory; only Linux says.
    pub(super) fn resident_kb(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()?)).ok()?;
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())
    }

    async fn wants_work(&mut self) -> anyhow::Result<Instant> {
        match self.next_call().await? {
            Call { at, what: What::Next } => Ok(at),
            Call { what, .. } => bail!("in place of a request for work: {what}"),
        }
    }

    async fn next_call(&mut self) -> anyhow::Result<Call> {
        let call = tokio::select! {
            call = timeout(LONGEST, self.calls.recv()) => call,
            ended = self.child.wait() => bail!("it ended with {}", ended?),
        };
        call.context("it asked for nothing")?.context("the Runtime API is gone")
    }

    /// What it wrote.
    pub(super) fn output(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Next => f.write_str("a request for work"),
            Self::Response(body) => write!(f, "an answer: {}", String::from_utf8_lossy(body)),
            Self::Other(request) => f.write_str(request),
        }
    }
}

impl Answer for RuntimeApi {
    async fn answer(&self, request: Request<Bytes>) -> anyhow::Result<Response<Bytes>> {
        let at = Instant::now();
        let path = request.uri().path();
        ensure!(path.starts_with(RUNTIME), "there is nothing at {path}");
        let is_next = request.method() == Method::GET && path.ends_with("/invocation/next");
        let what = match path.ends_with("/response") {
            _ if is_next => What::Next,
            true => What::Response(request.into_body()),
            false => What::Other(format!("{path} {}", String::from_utf8_lossy(request.body()))),
        };
        self.calls.send(Call { at, what })?;
        if !is_next {
            return Ok(Response::builder().status(StatusCode::ACCEPTED).body(Bytes::new())?);
        }
        let event = self.events.lock().await.recv().await.context("there are no more events")?;
        let deadline = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)? + INVOCATION;
        let response = Response::builder()
            .header("content-type", "application/json")
            .header("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd")
            .header("lambda-runtime-deadline-ms", deadline.as_millis().to_string())
            .header("lambda-runtime-invoked-function-arn", "arn:aws:lambda:eu-central-1:123456789012:function:bench")
            .header("lambda-runtime-trace-id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=0");
        Ok(response.body(event)?)
    }
}
