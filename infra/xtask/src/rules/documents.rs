//! What documents say of the tree.

use std::path::{Component, Path, PathBuf};

use super::Finding;
use crate::repository::{File, Repository};

const CODE_MAP: &str = "shared/README.md";

/// A link from one document to a file or folder has something at its end.
pub(super) fn links(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in repository.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (number, line) in prose(&file.text) {
            for target in targets(line).filter(|target| is_local(target)) {
                let path = target.split('#').next().unwrap_or_default();
                if !path.is_empty() && !exists(repository, file, path) {
                    let place = format!("{}:{}", file.path, number);
                    findings.push(Finding::new(place, format!("nothing is at `{target}`"), "correct the link"));
                }
            }
        }
    }
    Ok(findings)
}

/// The numbered lines of a document outside of its code blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        (!is_fence && !in_code).then_some((number + 1, line))
    })
}

/// The targets of `[text](target)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

fn is_local(target: &str) -> bool {
    !target.contains("://") && !target.starts_with("mailto:")
}

fn exists(repository: &Repository, file: &File, target: &str) -> bool {
    let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
    let mut path = PathBuf::new();
    for part in folder.join(target).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    repository.files.iter().any(|file| Path::new(&file.path).starts_with(&path))
}

/// A file or folder that a document names in backticks is there: `host/src/routes.rs`, `shared/store/`, `keys.rs`.
pub(super) fn paths(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in repository.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (number, line) in prose(&file.text) {
            for path in line.split('`').skip(1).step_by(2).filter(|text| is_path(text)) {
                if !repository.files.iter().any(|file| has_path(&file.path, path)) {
                    let place = format!("{}:{}", file.path, number);
                    findings.push(Finding::new(place, format!("there is no `{path}`"), "name what is there now"));
                }
            }
        }
    }
    Ok(findings)
}

/// Whether `text` is a Rust file or a folder of ours; what has a gap (`<name>`, `*`) or is made at run time is not.
fn is_path(text: &str) -> bool {
    let is_plain = text.chars().all(|character| character.is_ascii_alphanumeric() || "/_-.".contains(character));
    is_plain && (text.ends_with(".rs") || text.ends_with('/')) && !text.starts_with(['/', '.']) && text != "target/"
}

/// Whether `path` is, from some folder on, the whole of `file` or a folder of it.
fn has_path(file: &str, path: &str) -> bool {
    let (file, path) = (format!("/{file}"), format!("/{path}"));
    file.ends_with(&path) || (path.ends_with('/') && file.contains(&path))
}

/// The code map names the folder of every package.
pub(super) fn code_map(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let map = repository.files.iter().find(|file| file.path == CODE_MAP).map_or("", |file| file.text.as_str());
    let missing = repository.packages.iter().filter(|package| !map.contains(&format!("`{}/`", package.folder)));
    let finding = |folder: &str| {
        let fix = "say what it is for, whom it may know and what it must not do";
        Finding::new(CODE_MAP, format!("does not name `{folder}/`"), fix)
    };
    Ok(missing.map(|package| finding(&package.folder)).collect())
}

#[cfg(test)]
mod tests {
    use super::super::kit::{package, places, with_files};
    use super::*;

    #[test]
    fn dead_links_are_named() {
        let text = "[a](../b.rs) [b](src/) [c](https://c.example/x) [d](#d)\n[e](b.rs) [f](../b.rs#e)\n```\n[g](nowhere)\n```\n";
        let findings = links(&with_files(&[("a/README.md", text), ("b.rs", ""), ("a/src/lib.rs", "")])).unwrap();
        assert_eq!(places(&findings), ["a/README.md:2"]);
    }

    #[test]
    fn paths_that_lead_nowhere_are_named() {
        let text = "`shared/a/src/lib.rs` `a/src/` `lib.rs`\n`b.rs`\n`src/a/`\n`x/<name>/` `/v1/` `.turnlock/` `fn f()` `rs`\n";
        let findings = paths(&with_files(&[("README.md", text), ("shared/a/src/lib.rs", "")])).unwrap();
        assert_eq!(places(&findings), ["README.md:2", "README.md:3"]);
    }

    #[test]
    fn the_map_has_every_package() {
        let mut repository = with_files(&[(CODE_MAP, "`shared/store/` is the store.")]);
        repository.packages = vec![package("turnlock-store", &[]), package("turnlock-queue", &[])];
        let findings = code_map(&repository).unwrap();
        assert_eq!(findings.len(), 1);
        assert!(findings[0].problem.contains("`shared/queue/`"));
    }
}
