//! A tool that is a command on this machine: the request on its standard input, the answer on its standard output. For one
//! process only; a Lambda function has no commands of a team's own.
//!
//! There is no shell between, and of our environment it gets nothing: neither our secrets nor a `PATH` that depends on who
//! started us. Exit code 0 makes its output the answer; any other is a refusal, and the model reads what it said on standard
//! error or, without that, on standard output. What a signal ended may have done its work. A call ends with its command:
//! whatever that has started and left behind, or was doing when it was given up, is killed.

use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use super::{ANSWER_MAX, FAILURE_MAX, answer, failure, request};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tool::ToolHandler;

/// Where programs are looked for whose path is not written out.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// As much as is read at a time, in bytes.
const PIECE: usize = 16 * 1024;
/// How long what a command has written is read after its end. It is there at once; only what has left its group could still
/// hold its output open.
const READ_WITHIN: Duration = Duration::from_millis(500);

/// A tool that is a command.
pub struct Command {
    name: String,
    program: String,
    arguments: Vec<String>,
}

impl Command {
    /// The tool `name` that runs `program` with `arguments`.
    #[must_use]
    pub fn new(name: &str, program: &str, arguments: &[String]) -> Self {
        Self { name: name.to_owned(), program: program.to_owned(), arguments: arguments.to_vec() }
    }
}

#[async_trait]
impl ToolHandler for Command {
    async fn call(&self, input: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let body = request(&self.name, &input, &context)?;
        let child = tokio::process::Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .envs([("PATH", PATH), ("LANG", "C.UTF-8")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let mut children = signal(SignalKind::child()).map_err(|error| ToolError::Failed(error.into()))?;
        let mut child = child.map_err(|error| ToolError::Failed(error.into()))?;
        let Some(leader) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) else {
            return Err(ToolError::BrokeDown("the command has no process".into()));
        };
        let group = Group(leader);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let write = async {
            if let Some(mut stdin) = stdin {
                // A command that does not read its input to the end may do without it.
                drop(stdin.write_all(&body).await);
            }
        };
        let (mut said, mut complained) = (Start::new(ANSWER_MAX), Start::new(4 * FAILURE_MAX));
        {
            let talk = async {
                let ((), said, complained) = tokio::join!(write, said.read(stdout), complained.read(stderr));
                said.and(complained)
            };
            tokio::pin!(talk);
            let talked = tokio::select! {
                talked = &mut talk => Some(talked),
                ended = ended(leader, &mut children) => ended.map(|()| None).map_err(broke_down)?,
            };
            // Both are over once the command is, whoever of what it started still holds its output.
            ended(leader, &mut children).await.map_err(broke_down)?;
            drop(group);
            let talked = match talked {
                Some(talked) => talked,
                None => timeout(READ_WITHIN, talk).await.unwrap_or(Ok(())),
            };
            talked.map_err(broke_down)?;
        }
        let status = child.wait().await.map_err(broke_down)?;
        if status.success() {
            return Ok(answer(&said.kept, said.is_cut));
        }
        let Some(code) = status.code() else { return Err(ToolError::BrokeDown("a signal ended the command".into())) };
        let words = if complained.kept.is_empty() { said.kept } else { complained.kept };
        Err(failure(&self.name, &format!("ended with the code {code}"), &String::from_utf8_lossy(&words)))
    }
}

fn broke_down(error: std::io::Error) -> ToolError {
    ToolError::BrokeDown(error.into())
}

/// Waits until the process `leader` has ended, and leaves it to be waited for: until then its number is its own, and so is
/// its group's.
async fn ended(leader: Pid, children: &mut tokio::signal::unix::Signal) -> Result<(), std::io::Error> {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    while waitid(WaitId::Pid(leader), look)?.is_none() {
        children.recv().await;
    }
    Ok(())
}

/// The start of a stream.
struct Start {
    kept: Vec<u8>,
    max: usize,
    /// Whether there was more.
    is_cut: bool,
}

impl Start {
    fn new(max: usize) -> Self {
        Self { kept: Vec::new(), max, is_cut: false }
    }

    /// Reads a stream to its end: who writes on must be able to. What was read stays if this is given up.
    async fn read(&mut self, stream: Option<impl AsyncRead + Unpin>) -> Result<(), std::io::Error> {
        let Some(mut stream) = stream else { return Ok(()) };
        let mut piece = Vec::with_capacity(PIECE);
        while stream.read_buf(&mut piece).await? > 0 {
            let room = self.max - self.kept.len();
            self.kept.extend_from_slice(&piece[..piece.len().min(room)]);
            self.is_cut |= piece.len() > room;
            piece.clear();
        }
        Ok(())
    }
}

/// The processes of a command: whoever drops this kills them. That has to be before its leader is waited for.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        // That they have ended by themselves is no error.
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}
