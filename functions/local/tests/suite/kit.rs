//! Starts the binary, waits on conditions (never for a time), and kills what it started.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take on a busy machine.
const WITHIN: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What `env:SECRET_TOKEN` is in a configuration; `env:BOT_TOKEN` is there, too.
pub(crate) const SECRET_TOKEN: &str = "a-secret-token-of-the-tests";

/// A recorded delivery.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/channels/src").join(name)
}

/// A directory to work in, with the binary beside it.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnlock"));
        command.args(arguments).current_dir(self.0.path());
        for name in turnlock_config::names::ALL {
            command.env_remove(name);
        }
        command.env("BOT_TOKEN", "1:token").env("SECRET_TOKEN", SECRET_TOKEN);
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.run_with_input(arguments, "")
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Starts `serve` on any port and waits until it listens.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Serving {
        let log = std::fs::File::create(self.path("log")).unwrap();
        let mut command = self.command(&[&["serve", "--port", "0"], arguments].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(log).stdin(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix("Turnlock runs at ").map(str::to_owned));
        let address = address.unwrap_or_else(|| panic!("{}", std::fs::read_to_string(self.path("log")).unwrap()));
        // Nobody reads on: what is said later must not block it.
        let rest = std::thread::spawn(move || lines.collect());
        Serving { child, address, http: reqwest::Client::builder().no_proxy().build().unwrap(), rest: Some(rest) }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap()
    }
}

/// A host that runs.
pub(crate) struct Serving {
    child: Child,
    pub(crate) address: String,
    pub(crate) http: reqwest::Client,
    rest: Option<std::thread::JoinHandle<Vec<String>>>,
}

impl Serving {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.http.get(self.url(path)).send().await.unwrap().json().await.unwrap()
    }

    /// Posts a message to a session.
    pub(crate) async fn say(&self, session: &str, text: &str, query: &str) -> Value {
        let body = json!({ "text": text, "session": session });
        let response = self.http.post(self.url(&format!("/v1/messages{query}"))).json(&body).send().await.unwrap();
        assert!(response.status().is_success(), "{}", response.status());
        response.json().await.unwrap()
    }

    /// The event, once it is over.
    pub(crate) async fn done(&self, event: &Value) -> Value {
        let link = event["links"]["self"].as_str().unwrap().to_owned();
        until("the event is over", async || Some(self.get(&link).await).filter(|event| event["status"] == "done")).await
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Waits for the end; what was said after the address comes too.
    pub(crate) async fn ended(mut self) -> (ExitStatus, Vec<String>) {
        let status = until("the process ends", async || self.child.try_wait().unwrap()).await;
        (status, self.rest.take().unwrap().join().unwrap())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `look` finds something.
pub(crate) async fn until<Found>(what: &str, mut look: impl AsyncFnMut() -> Option<Found>) -> Found {
    let end = Instant::now() + WITHIN;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < end, "{what}: not within {WITHIN:?}");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// What a command wrote.
pub(crate) fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a command complained about.
pub(crate) fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
