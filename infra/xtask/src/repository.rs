//! The repository as the rules see it: its files, its packages, and the crates that it is built from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use crate::cargo::Program;

/// Folders that are made, not written.
const MADE: [&str; 3] = [".git", "target", ".turnlock"];

/// What the rules look at.
pub(crate) struct Repository {
    /// Where it is checked out.
    pub(crate) root: PathBuf,
    /// Every text file, sorted by path.
    pub(crate) files: Vec<File>,
    /// The workspace's own packages, sorted by folder.
    pub(crate) packages: Vec<Package>,
    /// Every crate that is built on a platform of ours, with its licence.
    pub(crate) crates: BTreeSet<Crate>,
    /// `Cargo.toml`, parsed.
    pub(crate) manifest: toml::Table,
    /// `Cargo.lock`, parsed.
    pub(crate) lock: toml::Table,
}

/// A text file.
pub(crate) struct File {
    /// Its path from the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// Whether it is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// One of our packages.
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its folder from the root, with `/`.
    pub(crate) folder: String,
    pub(crate) dependencies: Vec<Dependency>,
    /// Its `Cargo.toml`, parsed.
    pub(crate) manifest: toml::Table,
}

impl Package {
    /// Its manifest's path from the root.
    pub(crate) fn manifest_path(&self) -> String {
        format!("{}/Cargo.toml", self.folder)
    }
}

/// A dependency that a package declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Whether only its tests, examples and benchmarks have it.
    pub(crate) development: bool,
}

/// A crate that is built.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: String,
}

impl Repository {
    /// Reads the repository around the current directory.
    pub(crate) fn read() -> anyhow::Result<Self> {
        let metadata = Program::cargo("metadata --format-version 1 --no-deps --locked").output()?;
        let metadata: Value = serde_json::from_str(&metadata).context("`cargo metadata` wrote no JSON")?;
        let root = PathBuf::from(text(&metadata["workspace_root"])?);
        let mut files = Vec::new();
        collect(&root, &root, &mut files)?;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let crates = Program::cargo_tree("--workspace --edges normal,build,dev --format {p}|{l}");
        Ok(Self {
            packages: packages(&root, &metadata)?,
            crates: crates_of(&crates.output()?),
            manifest: table(&root.join("Cargo.toml"))?,
            lock: table(&root.join("Cargo.lock"))?,
            root,
            files,
        })
    }

    /// The names of the crates that `package` links, itself among them. Unlike the whole, this is what a build of that
    /// package alone has.
    pub(crate) fn linked_by(&self, package: &str) -> anyhow::Result<BTreeSet<String>> {
        let tree = Program::cargo_tree("--edges normal --format {p}|{l} --package").arguments([package]);
        Ok(crates_of(&tree.output()?).into_iter().map(|linked| linked.name).collect())
    }

    /// The files of `package`, nested packages excepted (there are none).
    pub(crate) fn files_of<'r>(&'r self, package: &'r Package) -> impl Iterator<Item = &'r File> {
        let files = self.files.iter();
        files.filter(|file| file.path.strip_prefix(&package.folder).is_some_and(|rest| rest.starts_with('/')))
    }
}

fn packages(root: &Path, metadata: &Value) -> anyhow::Result<Vec<Package>> {
    let packages = metadata["packages"].as_array().context("`cargo metadata` lists no packages")?;
    let mut packages =
        packages.iter().map(|package| read_package(root, package)).collect::<anyhow::Result<Vec<_>>>()?;
    packages.sort_by(|one, other| one.folder.cmp(&other.folder));
    Ok(packages)
}

fn read_package(root: &Path, package: &Value) -> anyhow::Result<Package> {
    let path = Path::new(text(&package["manifest_path"])?);
    let folder =
        path.parent().and_then(|folder| folder.strip_prefix(root).ok()).context("a package outside of the root")?;
    let dependencies = package["dependencies"].as_array().context("a package without dependencies")?;
    let dependencies = dependencies.iter().map(|dependency| {
        Ok(Dependency {
            name: text(&dependency["name"])?.to_owned(),
            development: dependency["kind"].as_str() == Some("dev"),
        })
    });
    Ok(Package {
        name: text(&package["name"])?.to_owned(),
        folder: slashed(folder),
        dependencies: dependencies.collect::<anyhow::Result<_>>()?,
        manifest: table(path)?,
    })
}

/// Reads lines of `cargo tree`: `name v1.2.3 …|licence`, ` (*)` behind what it has written before.
fn crates_of(tree: &str) -> BTreeSet<Crate> {
    let mut crates: BTreeMap<(String, String), String> = BTreeMap::new();
    for line in tree.lines() {
        let (package, licence) = line.split_once('|').unwrap_or((line, ""));
        let mut words = package.split_whitespace();
        let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
        let licence = licence.trim_end_matches("(*)").trim().to_owned();
        crates.insert((name.to_owned(), version.trim_start_matches('v').to_owned()), licence);
    }
    crates.into_iter().map(|((name, version), licence)| Crate { name, version, licence }).collect()
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<File>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))? {
        let path = entry?.path();
        let is_made = path.file_name().is_some_and(|name| MADE.iter().any(|made| name == *made));
        if is_made || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files)?;
        } else if let Ok(text) = String::from_utf8(read(&path)?) {
            files.push(File { path: slashed(path.strip_prefix(root)?), text });
        }
    }
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))
}

/// A TOML file.
pub(crate) fn table(path: &Path) -> anyhow::Result<toml::Table> {
    let text = String::from_utf8(read(path)?).with_context(|| format!("{} is no UTF-8", path.display()))?;
    text.parse().with_context(|| format!("{} is no TOML", path.display()))
}

fn text(value: &Value) -> anyhow::Result<&str> {
    value.as_str().context("`cargo metadata` has changed its shape")
}

fn slashed(path: &Path) -> String {
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_read_once_for_each_version() {
        let tree = "turnlock v0.1.0 (/somewhere)|MIT\nserde v1.0.1|MIT OR Apache-2.0\nserde v1.0.1|MIT OR Apache-2.0 (*)\n\
                    thiserror-impl v2.0.0 (proc-macro)|MIT\nsyn v2.0.0|MIT\nsyn v3.0.0|MIT";
        let crates: Vec<String> =
            crates_of(tree).into_iter().map(|found| [found.name, found.version, found.licence].join(" ")).collect();
        assert_eq!(
            crates,
            [
                "serde 1.0.1 MIT OR Apache-2.0",
                "syn 2.0.0 MIT",
                "syn 3.0.0 MIT",
                "thiserror-impl 2.0.0 MIT",
                "turnlock 0.1.0 MIT"
            ]
        );
    }
}
