//! Who may know whom. `shared/README.md` says the same in words, with the reasons; change both together.

use super::Finding;
use crate::repository::{Package, Repository};

/// What a package may depend on.
struct Layer {
    package: &'static str,
    knows: Knows,
    /// Beyond that, in tests, examples and benchmarks.
    tests_know: &'static [&'static str],
}

/// Which of our packages, without the prefix.
enum Knows {
    These(&'static [&'static str]),
    /// Every folder of `shared/`.
    Shared,
}

const fn layer(package: &'static str, knows: &'static [&'static str], tests_know: &'static [&'static str]) -> Layer {
    Layer { package, knows: Knows::These(knows), tests_know }
}

/// What a Lambda function may name: the use cases, their parts, and what makes them a function.
const FUNCTION: &[&str] = &["app", "channels", "config", "lambda", "models", "queue", "tools"];

/// Every package of the workspace, the inner ones first. What runs everything in one process (`embedded`, `host`,
/// `replay`) is known by the programs and tests that do so, and by no function that becomes a Lambda.
const LAYERS: &[Layer] = &[
    layer("turnlock-domain", &[], &[]),
    layer("turnlock-embedded", &[], &[]),
    layer("turnlock-clock", &["domain"], &[]),
    layer("turnlock-config", &["domain"], &[]),
    layer("turnlock-store", &["clock", "domain"], &["embedded"]),
    // Itself, with all its features.
    layer("turnlock-queue", &["clock", "domain"], &["queue"]),
    layer("turnlock-models", &["domain"], &["models"]),
    layer("turnlock-channels", &["clock", "domain"], &[]),
    // Itself, with all its features.
    layer("turnlock-tools", &["domain", "store"], &["clock", "embedded", "tools"]),
    layer(
        "turnlock-app",
        &["channels", "clock", "config", "domain", "models", "queue", "store", "tools"],
        &["embedded"],
    ),
    layer(
        "turnlock-host",
        &["app", "channels", "clock", "config", "domain", "models", "queue", "store", "tools"],
        &["embedded"],
    ),
    layer(
        "turnlock-lambda",
        &["app", "channels", "clock", "config", "domain", "models", "queue", "store", "tools"],
        &[],
    ),
    layer("turnlock-agent", FUNCTION, &[]),
    layer("turnlock-consolidate", FUNCTION, &[]),
    layer("turnlock-control", FUNCTION, &[]),
    layer("turnlock-dead-letter", FUNCTION, &[]),
    layer("turnlock-delivery", FUNCTION, &[]),
    layer("turnlock-gateway", FUNCTION, &[]),
    layer("turnlock-ingress-cron", FUNCTION, &[]),
    layer("turnlock-ingress-slack", FUNCTION, &[]),
    layer("turnlock-ingress-telegram", FUNCTION, &[]),
    layer("turnlock-ingress-webhook", FUNCTION, &[]),
    layer("turnlock-review", FUNCTION, &[]),
    Layer { package: "turnlock-replay", knows: Knows::Shared, tests_know: &[] },
    Layer { package: "turnlock", knows: Knows::Shared, tests_know: &[] },
    Layer { package: "turnlock-bench", knows: Knows::Shared, tests_know: &[] },
    Layer { package: "turnlock-tests", knows: Knows::Shared, tests_know: &[] },
    layer("xtask", &[], &[]),
];

/// A crate of others that only some of our packages may name.
struct Held {
    /// Its name; with a `*` at its end, what it begins with.
    name: &'static str,
    holders: &'static [&'static str],
    /// Beyond that, in tests, examples and benchmarks.
    test_holders: &'static [&'static str],
    reason: &'static str,
}

/// What would decide more than a package is for, if any package could name it.
const HELD: &[Held] = &[
    Held {
        name: "aws-sdk-*",
        holders: &[
            "turnlock-models",
            "turnlock-queue",
            "turnlock-store",
            "turnlock-tools",
            "turnlock-lambda",
            "turnlock-bench",
        ],
        test_holders: &["turnlock-embedded", "turnlock-replay", "turnlock-tests"],
        reason: "AWS is behind the store and the adapters; use cases know neither its types nor its errors",
    },
    Held {
        name: "aws-*",
        holders: &[
            "turnlock-models",
            "turnlock-queue",
            "turnlock-store",
            "turnlock-tools",
            "turnlock-embedded",
            "turnlock-replay",
            "turnlock-bench",
            "turnlock-tests",
            "turnlock-lambda",
        ],
        test_holders: &[],
        reason: "only what stands under the SDK's client knows its parts",
    },
    Held {
        name: "dynoxide-rs",
        holders: &["turnlock-embedded", "turnlock-tests"],
        test_holders: &[],
        reason: "the embedded DynamoDB is reached through the SDK, as the real one is",
    },
    Held {
        name: "rusqlite",
        holders: &["turnlock-queue"],
        test_holders: &["turnlock-tests"],
        reason: "only the local queue has a file of its own",
    },
    Held {
        name: "reqwest",
        holders: &[
            "turnlock-models",
            "turnlock-tools",
            "turnlock-channels",
            "turnlock-host",
            "turnlock",
            "turnlock-tests",
        ],
        test_holders: &[],
        reason: "what leaves this process goes through a model, a tool, a platform client or the operator's command",
    },
    Held {
        name: "axum",
        holders: &["turnlock", "turnlock-tests"],
        test_holders: &["turnlock-models", "turnlock-tools"],
        reason: "handlers take and return values; only the one process listens",
    },
    Held {
        name: "tracing-subscriber",
        holders: &["turnlock", "turnlock-replay", "turnlock-lambda"],
        test_holders: &["turnlock-app", "turnlock-host", "turnlock-tests"],
        reason: "where log lines go is the program's decision, and a replay's, which shows them",
    },
    Held {
        name: "lambda_runtime",
        holders: &["turnlock-lambda", "turnlock-bench"],
        test_holders: &[],
        reason: "a function composes; how Lambda is spoken to stands in one place",
    },
    Held {
        name: "anyhow",
        holders: &["turnlock", "turnlock-bench", "xtask"],
        test_holders: &["turnlock-tests"],
        reason: "a library's errors have a variant for each step that fails",
    },
    Held {
        name: "clap",
        holders: &["turnlock", "turnlock-bench", "xtask"],
        test_holders: &[],
        reason: "only programs have a command line",
    },
];

/// Crates that a package does not link, whatever the way.
struct Absence {
    package: &'static str,
    crates: &'static [&'static str],
    reason: &'static str,
}

const ABSENCES: &[Absence] = &[
    Absence {
        package: "turnlock-domain",
        crates: &["tokio", "mio", "reqwest", "hyper", "rusqlite", "getrandom", "fastrand", "tracing"],
        reason: "values and rules: no I/O, no randomness, no logs",
    },
    Absence {
        package: "turnlock-app",
        crates: &["rusqlite"],
        reason: "the use cases become Lambda functions; the local queue is a feature of `turnlock-queue` for one process",
    },
    Absence {
        package: "turnlock-host",
        crates: &["dynoxide-rs", "axum"],
        reason: "whoever makes a host brings the store and the listener; the use cases become Lambda functions without \
                 either",
    },
    Absence {
        package: "turnlock-ingress-telegram",
        crates: INGRESS,
        reason: "what takes events in asks no model and keeps no file: it is to start in milliseconds",
    },
    Absence { package: "turnlock-ingress-slack", crates: INGRESS, reason: "as ingress-telegram" },
    Absence { package: "turnlock-ingress-webhook", crates: INGRESS, reason: "as ingress-telegram" },
    Absence { package: "turnlock-ingress-cron", crates: INGRESS, reason: "as ingress-telegram" },
    Absence {
        package: "turnlock-agent",
        crates: &["dynoxide-rs", "rusqlite", "axum"],
        reason: "on AWS the table and the queues are AWS's",
    },
];

/// What no ingress links.
const INGRESS: &[&str] = &["aws-sdk-bedrockruntime", "dynoxide-rs", "rusqlite", "axum"];

/// Our packages depend on those that [`LAYERS`] lets them know.
pub(super) fn knowledge(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    Ok(repository.packages.iter().flat_map(|package| unknown_to(package, repository)).collect())
}

fn unknown_to(package: &Package, repository: &Repository) -> Vec<Finding> {
    let Some(layer) = LAYERS.iter().find(|layer| layer.package == package.name) else {
        let fix = "enter it in infra/xtask/src/rules/layers.rs and in shared/README.md";
        return vec![Finding::new(package.manifest_path(), format!("nobody says whom {} may know", package.name), fix)];
    };
    let ours = |name: &str| repository.packages.iter().find(|package| package.name == name);
    let mut findings = Vec::new();
    for dependency in &package.dependencies {
        let Some(known) = ours(&dependency.name) else { continue };
        let name = dependency.name.trim_start_matches("turnlock-");
        let may = match layer.knows {
            Knows::These(names) => names.contains(&name),
            Knows::Shared => known.folder.starts_with("shared/"),
        };
        let tests_may = dependency.development && layer.tests_know.contains(&name);
        if !(may || tests_may) {
            let problem = format!("{} may not know {}", package.name, dependency.name);
            let fix = "move what needs it to a package that may; or change infra/xtask/src/rules/layers.rs and \
                       shared/README.md, with the reason";
            findings.push(Finding::new(package.manifest_path(), problem, fix));
        }
    }
    findings
}

/// Crates of others are named by those who hold them.
pub(super) fn holders(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for package in &repository.packages {
        for dependency in &package.dependencies {
            let Some(held) = HELD.iter().find(|held| held.covers(&dependency.name)) else { continue };
            let name = package.name.as_str();
            let tests_may = dependency.development && held.test_holders.contains(&name);
            if !(held.holders.contains(&name) || tests_may) {
                let problem = format!("{name} may not name `{}`: {}", dependency.name, held.reason);
                let fix = format!("ask one of {} for what you need", held.holders.join(", "));
                findings.push(Finding::new(package.manifest_path(), problem, fix));
            }
        }
    }
    Ok(findings)
}

impl Held {
    fn covers(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == self.name,
        }
    }
}

/// What [`ABSENCES`] lists is not linked.
pub(super) fn absences(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for absence in ABSENCES {
        let linked = repository.linked_by(absence.package)?;
        for name in absence.crates.iter().filter(|name| linked.contains(**name)) {
            let problem = format!("{} links `{name}`: {}", absence.package, absence.reason);
            let fix = format!("`cargo tree -e normal -p {} -i {name}` shows the way; cut it", absence.package);
            findings.push(Finding::new("Cargo.lock", problem, fix));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::super::kit::{package, places, repository};
    use super::*;

    #[test]
    fn a_package_knows_only_its_layer() {
        let mut repository = repository();
        repository.packages = vec![
            package("turnlock-domain", &["serde"]),
            package("turnlock-embedded", &["turnlock-domain"]),
            package("turnlock-store", &["turnlock-domain", "turnlock-embedded?", "turnlock-host?"]),
            package("turnlock-tools", &["turnlock-embedded"]),
            package("turnlock-host", &["turnlock-store"]),
            package("turnlock", &["turnlock-embedded", "turnlock-host", "xtask"]),
            package("turnlock-surprise", &[]),
            package("xtask", &[]),
        ];
        let findings = knowledge(&repository).unwrap();
        let problems: Vec<&str> = findings.iter().map(|finding| finding.problem.as_str()).collect();
        assert_eq!(
            problems,
            [
                "turnlock-embedded may not know turnlock-domain",
                "turnlock-store may not know turnlock-host",
                "turnlock-tools may not know turnlock-embedded",
                "turnlock may not know xtask",
                "nobody says whom turnlock-surprise may know",
            ]
        );
    }

    #[test]
    fn held_crates_have_holders() {
        let mut repository = repository();
        repository.packages = vec![
            package("turnlock-store", &["aws-sdk-dynamodb"]),
            package("turnlock-app", &["aws-sdk-sqs", "serde"]),
            package("turnlock-embedded", &["aws-sdk-dynamodb?", "aws-smithy-types", "dynoxide-rs"]),
            package("turnlock-replay", &["aws-sdk-dynamodb"]),
        ];
        assert_eq!(places(&holders(&repository).unwrap()), ["shared/app/Cargo.toml", "shared/replay/Cargo.toml"]);
    }
}
