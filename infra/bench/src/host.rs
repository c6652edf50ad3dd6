//! The host as a process: how soon it answers after a start and after a `kill -9`, and its memory when it rests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use turnlock_bench::figures::{median, rounded};

use crate::report::HostProcess;

/// How often it is started.
const STARTS: usize = 7;
/// How long an answer may take.
const LONGEST: Duration = Duration::from_secs(20);
/// What stands before the address in the line that says it.
const RUNS_AT: &str = "Turnlock runs at http://";

/// Measures the `turnlock` that was built beside this program; `None` if there is none.
pub(crate) fn measure() -> anyhow::Result<Option<HostProcess>> {
    let Some(program) = program() else { return Ok(None) };
    let (mut first, mut again, mut memory) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let directory = tempfile::tempdir()?;
        let started = Instant::now();
        let host = Running::start(&program, directory.path())?;
        host.ask("/v1/messages?wait=20", 200)?;
        first.push(started.elapsed());
        memory.extend(host.resident_kb());
        // In work or waiting when the process dies; the same session answers the next message only after it.
        host.ask("/v1/messages", 202)?;
        drop(host);
        let started = Instant::now();
        Running::start(&program, directory.path())?.ask("/v1/messages?wait=20", 200)?;
        again.push(started.elapsed());
    }
    let ms = |times: Vec<Duration>| rounded(median(times.iter().map(|time| time.as_secs_f64() * 1e3)), 10.0);
    let mb = |kb: u64| rounded(kb as f64 / 1024.0, 10.0);
    Ok(Some(HostProcess {
        first_reply_ms: ms(first),
        reply_after_kill_ms: ms(again),
        idle_mb: (!memory.is_empty()).then(|| median(memory.into_iter().map(mb))),
    }))
}

fn program() -> Option<PathBuf> {
    let beside =
        std::env::current_exe().ok()?.with_file_name("turnlock").with_extension(std::env::consts::EXE_EXTENSION);
    beside.exists().then_some(beside)
}

/// A host in a directory of its own; killed when dropped, as by `kill -9`.
struct Running {
    child: Child,
    address: String,
    /// Open for as long as the host may write to it.
    output: Option<BufReader<ChildStdout>>,
}

impl Running {
    fn start(program: &Path, directory: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(program)
            .args(["serve", "--port", "0"])
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        let output = child.stdout.take().map(BufReader::new);
        let mut running = Self { child, address: String::new(), output };
        for line in running.output.iter_mut().flat_map(BufRead::lines) {
            if let Some((_, address)) = line?.split_once(RUNS_AT) {
                running.address = address.trim().to_owned();
                return Ok(running);
            }
        }
        bail!("the host ended before it said where it is")
    }

    /// Posts a message in the one session and reads the whole answer.
    fn ask(&self, target: &str, status: u16) -> anyhow::Result<()> {
        let body = r#"{"text": "Good morning!", "session": "bench"}"#;
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(LONGEST))?;
        write!(
            stream,
            "POST {target} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            self.address,
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        ensure!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "another answer than {status}: {answer}");
        Ok(())
    }

    /// What it holds of the machine's memory; only Linux says.
    fn resident_kb(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself, which the next request tells better.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
