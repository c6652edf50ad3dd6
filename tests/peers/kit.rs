//! A library's process, and what was played for it.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use turnlock_replay::{FEATURES, script::Script};
use turnlock_tests::programs;

/// A running script of this folder: a line of JSON in, a line of JSON out.
pub(crate) struct Peer {
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    pub(crate) fn start(script: &str) -> Self {
        let path = format!("{}/peers/{script}", env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new(programs::python());
        command.arg(path).env_clear().env("PYTHONDONTWRITEBYTECODE", "1");
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, input, output }
    }

    pub(crate) fn ask(&mut self, question: &Value) -> Value {
        writeln!(self.input, "{question}").unwrap();
        let line = self.output.next().expect("the library's process ended: see above").unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Normally it has ended with its input; a test that failed does not wait for it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Plays lines of a script; what there was to see.
pub(crate) fn play(lines: &[Value]) -> Value {
    let head = json!({ "replay": 1 });
    let text: Vec<String> = std::iter::once(&head).chain(lines).map(Value::to_string).collect();
    let script = Script::parse("peer", &text.join("\n"), FEATURES).unwrap();
    turnlock_replay::play(&script, 0).unwrap().output.to_json().unwrap()
}

/// The calls of a platform, as method and arguments.
pub(crate) fn calls(played: &Value, platform: &str) -> Vec<Value> {
    let methods = played["platform_calls"].as_object().into_iter().flatten();
    let ours = methods.filter_map(|(name, calls)| Some((name.strip_prefix(platform)?.strip_prefix('.')?, calls)));
    let flat = ours.flat_map(|(method, calls)| {
        let calls = calls.as_array().into_iter().flatten();
        calls.map(move |call| json!({ "method": method, "arguments": call["arguments"] }))
    });
    flat.collect()
}
