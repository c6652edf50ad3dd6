//! What every package's `Cargo.toml` says.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::Finding;
use crate::repository::{Package, Repository};
use crate::rust_text::code_only;

/// What is said once, for all packages.
const INHERITED: [&str; 5] = ["version", "edition", "rust-version", "license", "publish"];
const DEPENDENCIES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// `version.workspace = true` and so on, and the workspace's lints.
pub(super) fn inherit(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    Ok(repository.packages.iter().flat_map(inherited).collect())
}

fn inherited(package: &Package) -> Vec<Finding> {
    let of_package = |key: &str| package.manifest.get("package").and_then(|table| table.get(key));
    let mut findings: Vec<Finding> = INHERITED
        .into_iter()
        .filter(|key| !of_package(key).is_some_and(is_inherited))
        .map(|key| {
            Finding::new(
                package.manifest_path(),
                format!("`{key}` is not inherited"),
                format!("`{key}.workspace = true`"),
            )
        })
        .collect();
    if !package.manifest.get("lints").is_some_and(is_inherited) {
        let fix = "a `[lints]` table with `workspace = true`";
        findings.push(Finding::new(package.manifest_path(), "the workspace's lints are not inherited", fix));
    }
    findings
}

/// Whether `value` is `{ workspace = true, … }`.
fn is_inherited(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

/// Dependencies are `name.workspace = true`, and what the workspace lists is somebody's.
pub(super) fn dependencies(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let mut findings: Vec<Finding> = repository.packages.iter().flat_map(not_inherited).collect();
    let used: BTreeSet<&str> = repository
        .packages
        .iter()
        .flat_map(|package| package.dependencies.iter().map(|dependency| dependency.name.as_str()))
        .collect();
    let listed = repository.manifest.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    for name in listed.and_then(Value::as_table).into_iter().flat_map(Table::keys) {
        if !used.contains(name.as_str()) {
            let problem = format!("no package depends on `{name}`");
            findings.push(Finding::new("Cargo.toml", problem, "take it out of [workspace.dependencies]"));
        }
    }
    Ok(findings)
}

fn not_inherited(package: &Package) -> Vec<Finding> {
    let targets = package.manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let tables = std::iter::once(&package.manifest).chain(targets);
    let declared =
        tables.flat_map(|table| DEPENDENCIES.iter().filter_map(|kind| table.get(*kind)?.as_table())).flatten();
    declared
        .filter(|(_, value)| !is_inherited(value))
        .map(|(name, _)| {
            let fix =
                format!("enter it in [workspace.dependencies] of Cargo.toml and say `{name}.workspace = true` here");
            Finding::new(package.manifest_path(), format!("`{name}` has a version of its own"), fix)
        })
        .collect()
}

/// A dependency whose name stands nowhere in the package's code is a leftover.
pub(super) fn used(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for package in &repository.packages {
        let code: String =
            repository.files_of(package).filter(|file| file.is_rust()).map(|file| code_only(&file.text)).collect();
        let words: BTreeSet<&str> =
            code.split(|character: char| !character.is_alphanumeric() && character != '_').collect();
        let names: BTreeSet<&str> = package.dependencies.iter().map(|dependency| dependency.name.as_str()).collect();
        // A package names itself to switch on features for its own tests.
        for name in names.into_iter().filter(|name| *name != package.name) {
            if !words.contains(library_name(name).as_str()) {
                let problem = format!("`{name}` is not used");
                findings.push(Finding::new(package.manifest_path(), problem, "take it out, or use it"));
            }
        }
    }
    Ok(findings)
}

/// The name by which code says a package.
fn library_name(package: &str) -> String {
    match package {
        "dynoxide-rs" => "dynoxide".to_owned(),
        _ => package.replace('-', "_"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::kit::{package, places, repository, with_files};
    use super::*;

    fn with_manifest(manifest: &str) -> Package {
        Package { manifest: manifest.parse().unwrap(), ..package("turnlock-store", &[]) }
    }

    #[test]
    fn what_is_not_inherited_is_named() {
        let manifest = "[package]\nversion.workspace = true\nedition = \"2024\"\nrust-version.workspace = true\n\
                        license.workspace = true\npublish.workspace = true";
        let problems: Vec<String> =
            inherited(&with_manifest(manifest)).into_iter().map(|found| found.problem).collect();
        assert_eq!(problems, ["`edition` is not inherited", "the workspace's lints are not inherited"]);
    }

    #[test]
    fn dependencies_with_versions_of_their_own_are_named() {
        let manifest = "[dependencies]\nbytes.workspace = true\nserde = \"1\"\n\
                        [dev-dependencies]\ntokio = { workspace = true, features = [\"net\"] }\ninsta = { version = \"1\" }\n\
                        [target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"";
        let problems: Vec<String> =
            not_inherited(&with_manifest(manifest)).into_iter().map(|found| found.problem).collect();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(["serde", "insta", "libc"].iter().all(|name| problems.iter().any(|problem| problem.contains(name))));
    }

    #[test]
    fn what_nobody_depends_on_is_no_dependency_of_the_workspace() {
        let mut repository = repository();
        repository.manifest = "[workspace.dependencies]\nbytes = \"1\"\nserde = \"1\"".parse().unwrap();
        repository.packages.push(package("turnlock-store", &["serde?"]));
        let findings = dependencies(&repository).unwrap();
        assert_eq!(findings.len(), 1);
        assert!(findings[0].problem.contains("bytes"));
    }

    #[test]
    fn a_dependency_must_stand_in_the_code() {
        let mut repository = with_files(&[
            ("shared/store/src/lib.rs", "use aws_sdk_dynamodb::Client; // serde_json"),
            ("shared/storehouse/src/lib.rs", "use serde_json::Value;"),
        ]);
        repository.packages.push(package("turnlock-store", &["aws-sdk-dynamodb", "serde_json"]));
        let findings = used(&repository).unwrap();
        assert_eq!(places(&findings), ["shared/store/Cargo.toml"]);
        assert!(findings[0].problem.contains("serde_json"));
    }
}
