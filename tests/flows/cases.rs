//! Every file in `tests/data/cases` is a case: an input that broke another system, played from the outside, with what a
//! user or an operator sees here. What a file shows is said in the file.
//!
//! A folder is an area and a test. A file is named after its case, expects something, and meets every fault it names: a
//! story whose fault never came is not the story that it tells.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use turnlock_replay::player::FEATURES;
use turnlock_replay::script::{Line, Script};

/// The folders, each with its test below.
const AREAS: [&str; 11] = [
    "bedrock",
    "delivery",
    "dynamodb",
    "memory",
    "reasoning",
    "security",
    "slack",
    "sqs",
    "telegram-inbound",
    "telegram-outbound",
    "unicode",
];

/// What no output may hold: the stories about reasoning have it in every text that stays hidden.
const HIDDEN: &str = "HIDDEN";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/cases")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

/// Plays every file of an area, a line of output each; fails with file, line and difference of all that do not hold.
#[expect(clippy::print_stdout, reason = "a line a file")]
fn play(area: &str) -> Vec<(String, Value)> {
    let mut problems = String::new();
    let mut outputs = Vec::new();
    for path in entries(&folder().join(area)) {
        let name = format!("tests/data/cases/{area}/{}", path.file_name().unwrap().to_string_lossy());
        let script = Script::parse(&name, &std::fs::read_to_string(&path).unwrap(), FEATURES).unwrap();
        assert_eq!(script.header.case.as_deref(), path.file_stem().unwrap().to_str(), "{name} is named after its case");
        let expected = script.lines.iter().filter_map(|line| match &line.line {
            Line::Expect(wanted) => Some(wanted.len()),
            _ => None,
        });
        let expected: usize = expected.sum();
        assert!(expected > 0, "{name} expects nothing");
        let played = turnlock_replay::play(&script, 0).unwrap();
        for failed in &played.failures {
            for difference in &failed.differences {
                writeln!(problems, "{name}:{}: expected {difference}", failed.line).unwrap();
            }
        }
        if played.faults_left > 0 {
            writeln!(problems, "{name}: {} of its faults never came", played.faults_left).unwrap();
        }
        println!("{name}: {expected} expectations");
        outputs.push((name, played.output.to_json().unwrap()));
    }
    assert!(problems.is_empty(), "\n{problems}");
    assert!(!outputs.is_empty(), "{area} is the right folder");
    outputs
}

#[test]
fn every_area_has_its_test() {
    let folders: Vec<_> = entries(&folder()).iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(folders, AREAS);
}

#[test]
fn reasoning() {
    for (name, output) in play("reasoning") {
        assert!(!output.to_string().contains(HIDDEN), "{name} shows what is hidden");
    }
}

#[test]
fn delivery() {
    play("delivery");
}

#[test]
fn telegram_inbound() {
    play("telegram-inbound");
}

#[test]
fn telegram_outbound() {
    play("telegram-outbound");
}

#[test]
fn slack() {
    play("slack");
}

#[test]
fn unicode() {
    play("unicode");
}

#[test]
fn dynamodb() {
    play("dynamodb");
}

#[test]
fn memory() {
    play("memory");
}

#[test]
fn sqs() {
    play("sqs");
}

#[test]
fn security() {
    play("security");
}

#[test]
fn bedrock() {
    play("bedrock");
}
