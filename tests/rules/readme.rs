//! What README tells a newcomer to write and to type works.

use std::path::Path;

use turnlock_config::Config;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn readme() -> String {
    std::fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap()
}

/// The code blocks in `language`.
fn blocks<'r>(readme: &'r str, language: &str) -> Vec<&'r str> {
    let fence = format!("```{language}\n");
    readme.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_configurations_are_taken() {
    let readme = readme();
    let secret = |name: &str| Some(if name.ends_with("BOT_TOKEN") { "1000001:secret" } else { name }.to_owned());
    let shown: Vec<Config> =
        blocks(&readme, "toml").into_iter().map(|block| Config::parse(block, &secret).unwrap()).collect();
    let whole = shown.iter().find(|config| !config.telegram.is_empty()).unwrap();
    assert_eq!((whole.telegram.len(), whole.slack.len(), whole.webhook.len(), whole.models.len()), (1, 1, 1, 1));
}

/// The first arguments of a command of ours.
fn arguments<'r>(readme: &'r str, command: &str) -> Vec<&'r str> {
    let lines = blocks(readme, "console").into_iter().flat_map(str::lines);
    lines.filter_map(|line| line.split_once(command)?.1.split(' ').next()).collect()
}

#[test]
fn the_recorded_deliveries_are_there() {
    let readme = readme();
    let files = arguments(&readme, "cargo run -- send ");
    assert_eq!(files.len(), 3);
    for file in files {
        assert!(Path::new(ROOT).join(file).is_file(), "{file}");
    }
}

#[test]
fn the_replay_is_one_of_those_that_are_played() {
    let readme = readme();
    let [file] = arguments(&readme, "cargo run -- replay ")[..] else { panic!("one replay is shown") };
    assert!(file.starts_with("tests/data/cases/") && Path::new(ROOT).join(file).is_file(), "{file}");
}
