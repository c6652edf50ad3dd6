//! What Rust files say of themselves.

use super::Finding;
use crate::repository::{File, Repository};
use crate::rust_text::code_only;

/// Past this, a file has a second subject.
const MOST_LINES: usize = 600;
/// Files that are longer all the same, and why.
const LONG_FILES: &[(&str, &str)] = &[];

/// Every test runs, and a lint is switched off by `#[expect(…, reason = "…")]`, which ends when its cause does.
pub(super) fn attributes(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    Ok(rust(repository).flat_map(attributes_of).collect())
}

fn attributes_of(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in code_only(&file.text).lines().enumerate() {
        let line: String = line.split_whitespace().collect();
        let place = format!("{}:{}", file.path, number + 1);
        if line.contains("#[ignore") {
            let fix = "make it quick and certain, or take it out";
            findings.push(Finding::new(&place, "a test that nobody runs", fix));
        }
        if line.contains("#[allow(") || line.contains("#![allow(") {
            let fix = "`#[expect(…, reason = \"…\")]`: it warns when it is no longer needed";
            findings.push(Finding::new(&place, "a lint is allowed", fix));
        }
        // The reason may stand on a later line of the same attribute.
        let whole = statement(&file.text, number);
        if line.contains("[expect(") && !whole.contains("reason =") {
            findings.push(Finding::new(&place, "an expected lint without a reason", "add `reason = \"…\"`"));
        }
    }
    findings
}

/// The lines from `number` to the one that ends an attribute.
fn statement(text: &str, number: usize) -> String {
    let mut whole = String::new();
    for line in text.lines().skip(number) {
        whole.push_str(line);
        if line.trim_end().ends_with(']') {
            break;
        }
    }
    whole
}

/// Whose time a lease, a signature and a rate are compared with: `shared/clock`. What asks the machine instead cannot be
/// replayed, and disagrees with everything else.
pub(super) fn clock(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let asked = rust(repository).filter(|file| {
        file.path.starts_with("shared/") && file.path.contains("/src/") && !file.path.starts_with("shared/clock/")
    });
    let asked = asked.filter(|file| !file.path.ends_with("/tests.rs"));
    Ok(asked.flat_map(machine_time).collect())
}

fn machine_time(file: &File) -> Vec<Finding> {
    let code = code_only(&file.text);
    let lines = code.lines().enumerate().filter(|(_, line)| {
        ["Timestamp::now", "Zoned::now", "SystemTime::now"].iter().any(|call| line.contains(call))
            || (line.contains("std::time::") && line.contains("Instant"))
    });
    let fix = "`turnlock_clock::Clock` for the time, `tokio::time::Instant` for how long something takes";
    lines
        .map(|(number, _)| Finding::new(format!("{}:{}", file.path, number + 1), "asks the machine for the time", fix))
        .collect()
}

/// A file under `src/` begins with `//!`, unit tests in a file of their own excepted.
pub(super) fn module_docs(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let undocumented = rust(repository).filter(|file| {
        file.path.contains("/src/") && !file.path.ends_with("/tests.rs") && !file.text.starts_with("//!")
    });
    let fix = "begin it with `//!`: what it is, what it is not, how it fails";
    Ok(undocumented.map(|file| Finding::new(&file.path, "the module does not say what it is", fix)).collect())
}

/// Files end where their subject ends.
pub(super) fn length(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in rust(repository) {
        let lines = file.text.lines().count();
        let is_listed = LONG_FILES.iter().any(|(path, _)| *path == file.path);
        if lines > MOST_LINES && !is_listed {
            let fix = "give its second subject a file of its own";
            findings.push(Finding::new(&file.path, format!("{lines} lines, more than {MOST_LINES}"), fix));
        }
        if lines <= MOST_LINES && is_listed {
            let fix = "take it out of LONG_FILES in infra/xtask/src/rules/code.rs";
            findings.push(Finding::new(&file.path, "listed as long, and is not", fix));
        }
    }
    Ok(findings)
}

fn rust(repository: &Repository) -> impl Iterator<Item = &File> {
    repository.files.iter().filter(|file| file.is_rust())
}

#[cfg(test)]
mod tests {
    use super::super::kit::{places, with_files};
    use super::*;

    #[test]
    fn ignored_tests_and_allowed_lints_are_named() {
        let text = "//! #[ignore]\n#[ignore = \"slow\"]\n#[ allow(dead_code) ]\n#[expect(\n    dead_code,\n    reason = \"why\"\n)]\n\
                    #[expect(dead_code)]\nlet text = \"#[allow(dead_code)]\";\nfn allow() {}\n";
        let findings = attributes(&with_files(&[("a.rs", text), ("b.md", "#[ignore]")])).unwrap();
        assert_eq!(places(&findings), ["a.rs:2", "a.rs:3", "a.rs:8"]);
    }

    #[test]
    fn the_machines_time_is_the_clocks() {
        let code = "use std::time::Duration;\nuse std::time::{Duration, Instant};\n// Timestamp::now()\nlet now = Timestamp::now();";
        let files =
            ["shared/app/src/a.rs", "shared/app/src/tests.rs", "shared/clock/src/lib.rs", "functions/local/src/a.rs"];
        let findings = clock(&with_files(&files.map(|path| (path, code)))).unwrap();
        assert_eq!(places(&findings), ["shared/app/src/a.rs:2", "shared/app/src/a.rs:4"]);
    }

    #[test]
    fn modules_say_what_they_are() {
        let repository = with_files(&[
            ("shared/a/src/lib.rs", "use b;"),
            ("shared/a/src/b.rs", "//! It is b."),
            ("shared/a/src/b/tests.rs", "use super::*;"),
            ("shared/a/tests/c.rs", "use a;"),
        ]);
        assert_eq!(places(&module_docs(&repository).unwrap()), ["shared/a/src/lib.rs"]);
    }

    #[test]
    fn long_files_are_named() {
        let long = "\n".repeat(MOST_LINES + 1);
        let repository = with_files(&[("a.rs", &long), ("b.rs", &long[1..]), ("c.md", &long)]);
        assert_eq!(places(&length(&repository).unwrap()), ["a.rs"]);
    }
}
