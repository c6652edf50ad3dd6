//! The repository's own rules: what neither the compiler nor clippy can see. A rule looks at the [`Repository`] and names
//! what breaks it: the file, what is wrong there, and what to do.

mod code;
mod dependencies;
mod documents;
mod files;
mod layers;
mod packages;

use std::fmt;

use anyhow::bail;

use crate::progress;
use crate::repository::Repository;

/// A rule: the sentence that it holds, and its check.
struct Rule {
    holds: &'static str,
    check: fn(&Repository) -> anyhow::Result<Vec<Finding>>,
}

/// Every rule.
const RULES: &[Rule] = &[
    Rule { holds: "packages inherit version, edition, licence and lints", check: packages::inherit },
    Rule { holds: "versions of dependencies stand in one place", check: packages::dependencies },
    Rule { holds: "every dependency is used", check: packages::used },
    Rule { holds: "packages know only whom they may know", check: layers::knowledge },
    Rule { holds: "only their holders name the AWS SDK, SQLite, HTTP", check: layers::holders },
    Rule { holds: "what must not be linked is not linked", check: layers::absences },
    Rule { holds: "licences are on the list", check: dependencies::licences },
    Rule { holds: "crates come from crates.io", check: dependencies::sources },
    Rule { holds: "one TLS and one HTTP stack, no banned crate", check: dependencies::bans },
    Rule { holds: "no test is ignored, no lint is allowed in silence", check: code::attributes },
    Rule { holds: "the clock alone asks the machine for the time", check: code::clock },
    Rule { holds: "every module says what it is", check: code::module_docs },
    Rule { holds: "files have one subject", check: code::length },
    Rule { holds: "no snapshot waits for review", check: files::snapshots },
    Rule { holds: "no file names a path of one machine", check: files::machine_paths },
    Rule { holds: "links between documents lead somewhere", check: documents::links },
    Rule { holds: "documents name files that are there", check: documents::paths },
    Rule { holds: "the code map has every package", check: documents::code_map },
];

/// Something that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    /// The file's path from the root, with a line where one is known.
    place: String,
    problem: String,
    fix: String,
}

impl Finding {
    fn new(place: impl Into<String>, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into(), fix: fix.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "    {}: {}\n        fix: {}", self.place, self.problem, self.fix)
    }
}

/// Checks every rule and names everything that breaks one.
pub(crate) fn check() -> anyhow::Result<()> {
    let repository = Repository::read()?;
    let mut broken = 0;
    for rule in RULES {
        let findings = (rule.check)(&repository)?;
        progress::say(format_args!("    {}: {}", if findings.is_empty() { "ok" } else { "BROKEN" }, rule.holds));
        findings.iter().for_each(progress::say);
        broken += findings.len();
    }
    if broken > 0 {
        bail!("{broken} places break a rule");
    }
    Ok(())
}

#[cfg(test)]
mod kit {
    //! Repositories made of a few lines.

    use std::path::PathBuf;

    use super::{Finding, Repository};
    use crate::repository::{Dependency, File, Package};

    /// A repository without anything.
    pub(super) fn repository() -> Repository {
        Repository {
            root: PathBuf::from("/checkouts/turnlock"),
            files: Vec::new(),
            packages: Vec::new(),
            crates: std::collections::BTreeSet::new(),
            manifest: toml::Table::new(),
            lock: toml::Table::new(),
        }
    }

    /// A repository with these files.
    pub(super) fn with_files(files: &[(&str, &str)]) -> Repository {
        let files = files.iter().map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() });
        Repository { files: files.collect(), ..repository() }
    }

    /// A package, in `shared/` if it has the prefix, whose dependencies are development ones where they end in `?`.
    pub(super) fn package(name: &str, dependencies: &[&str]) -> Package {
        let dependencies = dependencies
            .iter()
            .map(|name| Dependency { name: name.trim_end_matches('?').to_owned(), development: name.ends_with('?') });
        Package {
            name: name.to_owned(),
            folder: name.strip_prefix("turnlock-").map_or(name.to_owned(), |rest| format!("shared/{rest}")),
            dependencies: dependencies.collect(),
            manifest: toml::Table::new(),
        }
    }

    /// Where the findings are.
    pub(super) fn places(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.place.as_str()).collect()
    }
}
