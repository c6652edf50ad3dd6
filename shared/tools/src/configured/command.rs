//! A tool that is a command on this machine: the request on its standard input, the answer on its standard output. For one
//! process only; a Lambda function has no commands of a team's own.
//!
//! There is no shell between, and of our environment it gets nothing: neither our secrets nor a `PATH` that depends on who
//! started us. Exit code 0 makes its output the answer; any other is a refusal, and the model reads what it said on standard
//! error or, without that, on standard output. What a signal ended may have done its work. A command that is given up is killed with everything it started.

use std::process::Stdio;

use async_trait::async_trait;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::{ANSWER_MAX, FAILURE_MAX, answer, failure, request};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::output::ToolOutput;
use crate::tool::ToolHandler;

/// Where programs are looked for whose path is not written out.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

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
        let mut child = child.map_err(|error| ToolError::Failed(error.into()))?;
        let group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let write = async {
            if let Some(mut stdin) = stdin {
                // A command that does not read its input to the end may do without it.
                drop(stdin.write_all(&body).await);
            }
        };
        let ((), said, complained) = tokio::join!(write, start(stdout, ANSWER_MAX), start(stderr, 4 * FAILURE_MAX));
        let (said, complained) = (said.map_err(cut_off)?, complained.map_err(cut_off)?);
        let status = child.wait().await.map_err(cut_off)?;
        group.has_ended();
        if status.success() {
            return Ok(answer(&said.0, said.1));
        }
        let Some(code) = status.code() else { return Err(ToolError::CutOff("a signal ended the command".into())) };
        let words = if complained.0.is_empty() { said.0 } else { complained.0 };
        Err(failure(&self.name, &format!("ended with the code {code}"), &String::from_utf8_lossy(&words)))
    }
}

fn cut_off(error: std::io::Error) -> ToolError {
    ToolError::CutOff(error.into())
}

/// Reads a stream to its end and keeps its start; whether there was more.
async fn start(stream: Option<impl AsyncRead + Unpin>, max: usize) -> Result<(Vec<u8>, bool), std::io::Error> {
    let Some(mut stream) = stream else { return Ok((Vec::new(), false)) };
    let mut kept = Vec::new();
    (&mut stream).take(max as u64).read_to_end(&mut kept).await?;
    // Who writes on must be able to.
    let more = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok((kept, more > 0))
}

/// The processes of a command, until it has ended: whoever gives it up drops this, and they are killed.
struct Group(Option<Pid>);

impl Group {
    /// Nothing is left to be killed; its number may soon be another's.
    fn has_ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Its leader has not been waited for, so the number is still its own; that it ended by itself is no error.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
