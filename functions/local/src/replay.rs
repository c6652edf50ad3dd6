//! `turnlock replay FILE…`: plays scripts against the real handlers, offline and on a virtual clock. What is shown and
//! what is held against it is the replay's own affair; here are the files, the output and the exit code: 0 = every
//! expectation held, 1 = one did not, 2 = a file is refused.

use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;
use turnlock_replay::output::transcript;
use turnlock_replay::player::FEATURES;
use turnlock_replay::script::Script;
use turnlock_replay::{Played, play};

use crate::arguments::Replay;
use crate::console;
use crate::failure::Misuse;

/// Plays the files in turn; all of them, whatever an earlier one came to. Each is read before anything is played, so a
/// file that is refused is told at once.
pub(crate) fn run(replay: &Replay) -> anyhow::Result<ExitCode> {
    let scripts: Vec<Script> = replay.files.iter().map(|file| script(file)).collect::<Result<_, _>>()?;
    let several = scripts.len() > 1;
    let mut held = true;
    for script in &scripts {
        let played = play(script, replay.seed).map_err(|error| Misuse(error.to_string()))?;
        let name = several.then_some(script.name.as_str());
        if replay.json {
            console::line(json(&played, name)?);
        } else {
            name.into_iter().for_each(|name| console::line(format_args!("{name}\n")));
            console::line(transcript(&played.output));
        }
        held &= played.failures.is_empty();
        complain(&script.name, &played);
    }
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn script(file: &Path) -> anyhow::Result<Script> {
    let name = file.display().to_string();
    let source = std::fs::read_to_string(file).map_err(|error| Misuse(format!("{name} cannot be read: {error}")))?;
    Script::parse(&name, &source, FEATURES).map_err(|error| Misuse(error.to_string()).into())
}

/// The whole output; where there are several, each says whose it is.
fn json(played: &Played, name: Option<&str>) -> anyhow::Result<Value> {
    let mut output = played.output.to_json()?;
    if let (Some(name), Some(fields)) = (name, output.as_object_mut()) {
        fields.insert("file".to_owned(), Value::from(name));
    }
    Ok(output)
}

fn complain(name: &str, played: &Played) {
    for failed in &played.failures {
        for difference in &failed.differences {
            console::aside(format_args!("{name}:{}: expected {difference}", failed.line));
        }
    }
    if played.faults_left > 0 {
        console::aside(format_args!("{name}: {} of its faults never came", played.faults_left));
    }
}
