//! The process under test: found or built, started on one data directory again and again, killed.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;
use turnlock_tests::programs::{folder, is_current};

use super::outside::Outside;
use super::{load, until};

/// How many lines of the log a failure shows.
const LAST_LINES: usize = 40;

/// A directory to work in. What went on there is shown if the test fails.
pub(super) struct Place {
    directory: TempDir,
    program: PathBuf,
    seed: u64,
}

/// A process.
pub(super) struct Host {
    child: Child,
    started: Instant,
    announcement: PathBuf,
    http: reqwest::Client,
}

/// A process that listens.
pub(super) struct Ready {
    /// Where.
    pub(super) address: String,
    /// The operator's token.
    pub(super) token: String,
    /// How long after its start its first health check was answered.
    pub(super) after: Duration,
    /// When that was.
    pub(super) at: Instant,
}

/// What the process says about itself in its data directory.
#[derive(Deserialize)]
struct Announcement {
    address: String,
    pid: u32,
    token: String,
}

impl Place {
    /// A new directory, and a binary that is as new as its sources.
    pub(super) fn new(seed: u64) -> Self {
        Self { directory: tempfile::tempdir().unwrap(), program: program(), seed }
    }

    /// A file of the data directory.
    pub(super) fn data(&self, name: &str) -> PathBuf {
        self.directory.path().join("data").join(name)
    }

    /// What every process so far has logged.
    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    /// Starts the next process, to which the outside world has addresses of its own.
    pub(super) fn start(&self, outside: &Outside) -> Host {
        let config = self.directory.path().join("turnlock.toml");
        std::fs::write(&config, configuration(&outside.next_start())).unwrap();
        let log = OpenOptions::new().create(true).append(true).open(self.log_file()).unwrap();
        let mut command = Command::new(&self.program);
        command.args(["serve", "--port", "0", "--config"]).arg(&config).arg("--data").arg(self.data(""));
        command.env_clear().envs([
            ("TELEGRAM_BOT_TOKEN", load::BOT_TOKEN),
            ("TELEGRAM_SECRET_TOKEN", load::SECRET_TOKEN),
            ("LOAD_API_KEY", load::API_KEY),
        ]);
        let command = command.current_dir(&self.directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Host {
            child: command.spawn().unwrap(),
            started: Instant::now(),
            announcement: self.data("host.json"),
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            // One line an event and more go well; what did not is at a higher level.
            let lines: Vec<&str> = log.lines().filter(|line| !line.contains(" INFO ")).collect();
            let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
            eprintln!("TURNLOCK_TEST_SEED={}; the last warnings:\n{last}", self.seed);
        }
    }
}

impl Host {
    /// Waits until it listens and answers; `None` when the time is over.
    pub(super) async fn ready(&self, within: Duration) -> Option<Ready> {
        until(within, async || {
            let announcement: Announcement = serde_json::from_slice(&std::fs::read(&self.announcement).ok()?).ok()?;
            let Announcement { address, pid, token } = announcement;
            let check = self.http.get(format!("{address}/healthz"));
            let is_ours = pid == self.child.id();
            let answers = is_ours && check.send().await.is_ok_and(|answer| answer.status().is_success());
            answers.then(|| Ready { address, token, after: self.started.elapsed(), at: Instant::now() })
        })
        .await
    }

    /// Kills it: SIGKILL where there are signals. It must not have ended before.
    pub(super) fn kill(mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "the process ended by itself: {ended:?}");
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Attempts count deaths, and consolidation is due early: this is about neither patience nor long sessions. `outside` is
/// where the world is for this process.
fn configuration(outside: &str) -> String {
    format!(
        r#"
[agent.limits]
concurrency = 8
rpm = 0
attempts = 20
consolidate_after = 12
frame_interval_ms = 100

[[models]]
provider = "openai"
model = "outside"
base_url = "{outside}/model"

[telegram.main]
bot_token = "env:TELEGRAM_BOT_TOKEN"
secret_token = "env:TELEGRAM_SECRET_TOKEN"
username = "echo_bot"
base_url = "{outside}/telegram"
allow = ["*"]

[gateway.keys.{caller}]
key = "env:LOAD_API_KEY"
"#,
        caller = load::CALLER
    )
}

/// The binary in the folder above this test's own. Cargo does not build it for this package, so it is built here if it is
/// not there or older than its sources (as it is after a change and `cargo test --package turnlock-tests`).
fn program() -> PathBuf {
    let folder = folder();
    let program = folder.join(format!("turnlock{}", std::env::consts::EXE_SUFFIX));
    if is_current(&program) { program } else { build(&folder) }
}

fn build(folder: &Path) -> PathBuf {
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    eprintln!("building turnlock: it is not in {}, or older than its sources", folder.display());
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--package", "turnlock", "--profile", profile]);
    cargo.arg("--message-format=json-render-diagnostics").current_dir(env!("CARGO_MANIFEST_DIR"));
    let built = cargo.stderr(Stdio::inherit()).output().unwrap();
    assert!(built.status.success(), "turnlock cannot be built");
    let messages = String::from_utf8_lossy(&built.stdout).into_owned();
    let mut programs = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let path = message["executable"].as_str().filter(|_| message["target"]["name"] == "turnlock")?;
        Some(PathBuf::from(path))
    });
    programs.next().expect("cargo says where the binary is")
}
