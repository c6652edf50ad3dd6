//! `turnlock replay FILE…`: plays scripts against the real handlers, offline and on a virtual clock. What is shown and
//! what is held against it is the replay's own affair; here are the files, the output and the exit code: 0 = every
//! expectation held, 1 = one did not, 2 = a file is refused.

use std::path::Path;
use std::process::ExitCode;

use turnlock_replay::output::transcript;
use turnlock_replay::player::FEATURES;
use turnlock_replay::script::Script;
use turnlock_replay::{Played, play};

use crate::arguments::Replay;
use crate::console;
use crate::failure::Misuse;

/// Plays the files in turn; all of them, whatever an earlier one came to. A file that is refused is the end.
pub(crate) fn run(replay: &Replay) -> anyhow::Result<ExitCode> {
    let mut held = true;
    for file in &replay.files {
        let name = file.display().to_string();
        let played = played(file, &name, replay.seed)?;
        if replay.json {
            console::line(played.output.to_json()?);
        } else {
            console::line(transcript(&played.output));
        }
        held &= played.failures.is_empty();
        complain(&name, &played);
    }
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn played(file: &Path, name: &str, seed: u64) -> anyhow::Result<Played> {
    let source = std::fs::read_to_string(file).map_err(|error| Misuse(format!("{name} cannot be read: {error}")))?;
    let script = Script::parse(name, &source, FEATURES).map_err(|error| Misuse(error.to_string()))?;
    play(&script, seed).map_err(|error| Misuse(error.to_string()).into())
}

fn complain(name: &str, played: &Played) {
    for failed in &played.failures {
        for difference in &failed.differences {
            console::aside(format_args!("{name}:{}: expected {difference}", failed.line));
        }
    }
}
