//! What a person reads while it runs, on stderr beside cargo's own lines; stdout belongs to the programs that are run.

use std::fmt::Display;
use std::io::Write;
use std::time::Instant;

/// Writes a line. A reader that went away is no error.
pub(crate) fn say(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Runs `work` between a line that names it and one that says how it ended, after how long.
pub(crate) fn step<T>(name: impl Display, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    say(format_args!("==> {name}"));
    let started = Instant::now();
    let done = work();
    let seconds = started.elapsed().as_secs_f64();
    match &done {
        Ok(_) => say(format_args!("<== {name}: ok ({seconds:.1} s)")),
        Err(error) => say(format_args!("<== {name}: FAILED ({seconds:.1} s): {error:#}")),
    }
    done
}
