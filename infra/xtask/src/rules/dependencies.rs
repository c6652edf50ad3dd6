//! The crates of others: licences, sources, bans. The lists are in `infra/deny.toml`, in the format of `cargo-deny`, which
//! understands it too; compiling that tool would cost more than everything that is checked here.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use toml::Value;

use super::Finding;
use crate::licence;
use crate::repository::{Repository, table};

const LISTS: &str = "infra/deny.toml";

/// What is built is under a licence that is on the list.
pub(super) fn licences(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let lists = table(&repository.root.join(LISTS))?;
    let allowed = strings(&lists, "licenses", "allow")?;
    not_allowed(repository, &allowed)
}

fn not_allowed(repository: &Repository, allowed: &[&str]) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for found in &repository.crates {
        if !licence::is_allowed(&found.licence, allowed).unwrap_or(false) {
            let problem = format!("{} {} is under `{}`", found.name, found.version, found.licence);
            let fix = format!("do without it, or have the licence accepted in {LISTS}");
            findings.push(Finding::new("Cargo.lock", problem, fix));
        }
    }
    Ok(findings)
}

/// What is locked comes from the registries on the list, or is ours.
pub(super) fn sources(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let lists = table(&repository.root.join(LISTS))?;
    from_elsewhere(repository, &strings(&lists, "sources", "allow-registry")?)
}

fn from_elsewhere(repository: &Repository, registries: &[&str]) -> anyhow::Result<Vec<Finding>> {
    let packages = repository.lock.get("package").and_then(Value::as_array).context("Cargo.lock lists no packages")?;
    let mut findings = Vec::new();
    for package in packages {
        let name = package.get("name").and_then(Value::as_str).context("a package without a name in Cargo.lock")?;
        let problem = match package.get("source").and_then(Value::as_str) {
            Some(source) if source.strip_prefix("registry+").is_some_and(|url| registries.contains(&url)) => continue,
            Some(source) => format!("{name} comes from {source}"),
            None if repository.packages.iter().any(|ours| ours.name == name) => continue,
            None => format!("{name} comes from a folder outside of the workspace"),
        };
        findings.push(Finding::new(
            "Cargo.lock",
            problem,
            format!("use a release from one of {}", registries.join(", ")),
        ));
    }
    Ok(findings)
}

/// No banned crate is built, and one version of those of which there must be one.
pub(super) fn bans(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let lists = table(&repository.root.join(LISTS))?;
    let bans = lists.get("bans").and_then(|bans| bans.get("deny")).and_then(Value::as_array);
    let bans = bans.with_context(|| format!("{LISTS} has no bans.deny"))?;
    banned(repository, &bans.iter().map(Ban::read).collect::<anyhow::Result<Vec<_>>>()?)
}

struct Ban<'l> {
    name: &'l str,
    /// Banned is a second version, not the crate.
    only_twice: bool,
    reason: &'l str,
}

impl<'l> Ban<'l> {
    fn read(entry: &'l Value) -> anyhow::Result<Self> {
        let name =
            entry.get("crate").and_then(Value::as_str).with_context(|| format!("{LISTS}: a ban without `crate`"))?;
        if name.contains([':', '@']) {
            bail!("{LISTS}: `{name}` names a version, which is not understood here");
        }
        let reason = entry.get("reason").and_then(Value::as_str);
        Ok(Self {
            name,
            only_twice: entry.get("deny-multiple-versions").and_then(Value::as_bool) == Some(true),
            reason: reason.with_context(|| format!("{LISTS}: the ban of `{name}` has no reason"))?,
        })
    }
}

fn banned(repository: &Repository, bans: &[Ban<'_>]) -> anyhow::Result<Vec<Finding>> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for found in &repository.crates {
        versions.entry(&found.name).or_default().push(&found.version);
    }
    let mut findings = Vec::new();
    for ban in bans {
        let found = versions.get(ban.name).map(Vec::as_slice).unwrap_or_default();
        if found.len() > usize::from(ban.only_twice) {
            let problem = format!("{} {} is built: {}", ban.name, found.join(" and "), ban.reason);
            let fix = format!("`cargo tree --workspace -e all -i {}@{}` shows who asks for it", ban.name, found[0]);
            findings.push(Finding::new("Cargo.lock", problem, fix));
        }
    }
    Ok(findings)
}

fn strings<'t>(lists: &'t toml::Table, section: &str, key: &str) -> anyhow::Result<Vec<&'t str>> {
    let list = lists.get(section).and_then(|section| section.get(key)).and_then(Value::as_array);
    let list = list.with_context(|| format!("{LISTS} has no {section}.{key}"))?;
    list.iter().map(|entry| entry.as_str().with_context(|| format!("{LISTS}: {section}.{key} holds no text"))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::kit::{package, repository};
    use super::*;
    use crate::repository::Crate;

    fn with_crates(crates: &[(&str, &str, &str)]) -> Repository {
        let crates = crates.iter().map(|(name, version, licence)| Crate {
            name: (*name).to_owned(),
            version: (*version).to_owned(),
            licence: (*licence).to_owned(),
        });
        Repository { crates: crates.collect(), ..repository() }
    }

    fn problems(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.problem.as_str()).collect()
    }

    #[test]
    fn licences_off_the_list_and_unreadable_ones_are_named() {
        let repository =
            with_crates(&[("one", "1.0.0", "MIT"), ("two", "2.0.0", "GPL-3.0-only"), ("three", "3.0.0", "")]);
        let findings = not_allowed(&repository, &["MIT"]).unwrap();
        assert_eq!(problems(&findings), ["three 3.0.0 is under ``", "two 2.0.0 is under `GPL-3.0-only`"]);
    }

    #[test]
    fn git_and_folders_outside_are_no_source() {
        let mut repository = repository();
        repository.packages.push(package("turnlock-store", &[]));
        repository.lock = "[[package]]\nname = \"a\"\nsource = \"registry+https://good.example\"\n\
                           [[package]]\nname = \"b\"\nsource = \"git+https://git.example/b\"\n\
                           [[package]]\nname = \"c\"\n[[package]]\nname = \"turnlock-store\""
            .parse()
            .unwrap();
        let findings = from_elsewhere(&repository, &["https://good.example"]).unwrap();
        assert_eq!(
            problems(&findings),
            ["b comes from git+https://git.example/b", "c comes from a folder outside of the workspace"]
        );
    }

    #[test]
    fn a_second_version_is_banned_apart_from_the_crate() {
        let repository =
            with_crates(&[("hyper", "0.14.0", "MIT"), ("hyper", "1.0.0", "MIT"), ("rustls", "0.23.0", "MIT")]);
        let bans = [("hyper", true), ("rustls", true), ("ring", false)];
        let bans = bans.map(|(name, only_twice)| Ban { name, only_twice, reason: "one is enough" });
        let findings = banned(&repository, &bans).unwrap();
        assert_eq!(problems(&findings), ["hyper 0.14.0 and 1.0.0 is built: one is enough"]);
        let bans = [Ban { name: "rustls", only_twice: false, reason: "never" }];
        assert_eq!(problems(&banned(&repository, &bans).unwrap()), ["rustls 0.23.0 is built: never"]);
    }
}
