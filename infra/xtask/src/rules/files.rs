//! What must not lie about, in files of any kind.

use super::Finding;
use crate::repository::Repository;

/// A snapshot that differs is reviewed before it is committed.
pub(super) fn snapshots(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let pending =
        repository.files.iter().filter(|file| file.path.ends_with(".pending-snap") || file.path.ends_with(".snap.new"));
    let fix = "`cargo insta review`, or write the snapshot by hand and delete this file";
    Ok(pending.map(|file| Finding::new(&file.path, "a snapshot waits for review", fix)).collect())
}

/// A file that names a folder of one machine is wrong on every other.
pub(super) fn machine_paths(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let mut folders: Vec<String> = ["home", "root", "Users"].map(|name| format!("/{name}/")).into();
    if let Some(parent) = repository.root.parent().filter(|parent| parent.parent().is_some()) {
        folders.push(format!("{}/", parent.display()));
    }
    let mut findings = Vec::new();
    for file in &repository.files {
        for (number, line) in file.text.lines().enumerate() {
            if let Some(folder) = folders.iter().find(|folder| names_folder(line, folder)) {
                let place = format!("{}:{}", file.path, number + 1);
                let fix = "name it from the root of the repository, or make it an argument";
                findings.push(Finding::new(place, format!("names a folder under {folder}"), fix));
            }
        }
    }
    Ok(findings)
}

/// Whether `line` has `folder` where a path begins, not in the middle of one or of a URL.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|before| before.is_alphanumeric() || "_-.~}>)*".contains(before))
    })
}

#[cfg(test)]
mod tests {
    use super::super::kit::{places, with_files};
    use super::*;

    #[test]
    fn pending_snapshots_are_named() {
        let repository = with_files(&[("a/.b.rs.pending-snap", ""), ("a/b.snap", ""), ("a/c.snap.new", "")]);
        assert_eq!(places(&snapshots(&repository).unwrap()), ["a/.b.rs.pending-snap", "a/c.snap.new"]);
    }

    #[test]
    fn folders_of_one_machine_are_named() {
        let here = format!("path = \"{}/notes\"", "/checkouts");
        let home = format!("cp {}/a.txt .", "/home");
        let repository = with_files(&[
            ("a.toml", &here),
            ("b.sh", &home),
            ("c.md", "https://api.example/checkouts/7 and src/checkouts/a and `https://a.example/users/home/`"),
        ]);
        assert_eq!(places(&machine_paths(&repository).unwrap()), ["a.toml:1", "b.sh:1"]);
    }
}
