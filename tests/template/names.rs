//! Environment variables: what the template sets is what the binaries ask for, of each function and both ways.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use turnlock_config::names;
use turnlock_tests::template::{Template, binary, environment, read};

/// What has a default. What Lambda sets itself (`names::AWS`) the template may not set.
const OPTIONAL: [&str; 1] = [names::LOG];

/// What each function's environment is in the template.
fn set() -> BTreeMap<String, BTreeSet<String>> {
    let template = Template::new(&read(), &[]);
    let names = |function| environment(function).into_keys().map(str::to_owned).collect();
    template.functions().map(|(id, function)| (binary(id), names(function))).collect()
}

/// A binary without an environment ends at once and names, in one line, everything that it misses.
fn asked(name: &str) -> BTreeSet<String> {
    let output = Command::new(program(name)).env_clear().output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{name} cannot start without an environment");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut missing = lines.filter_map(|line| line["missing"].as_array().cloned());
    let missing = missing.next().unwrap_or_else(|| panic!("{name} does not say what it misses: {text}"));
    missing.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// Beside the tests, where `cargo build --workspace --bins` puts it.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).expect("tests stand in target/<profile>/deps");
    let program = folder.join(name);
    assert!(Path::is_file(&program), "{name} is not built: `cargo build --workspace --bins`");
    program
}

#[test]
fn every_function_asks_for_what_the_template_sets() {
    for (name, mut set) in set() {
        set.retain(|variable| !OPTIONAL.contains(&variable.as_str()));
        let mut asked = asked(&name);
        asked.retain(|variable| !names::AWS.contains(&variable.as_str()));
        assert_eq!(asked, set, "{name}: asked for, and set");
    }
}

#[test]
fn every_name_is_set_somewhere_and_every_name_that_is_set_is_one() {
    let set: BTreeSet<String> = set().into_values().flatten().collect();
    let all: BTreeSet<String> = names::ALL.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(set, all);
}
