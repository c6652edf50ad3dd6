//! The Python programs that the tests and the template's checks use: a virtual environment in `target/`, made from
//! `tests/requirements.txt` and made again only when that file changes. The system's own packages are left alone.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::cargo::Program;
use crate::progress;

/// What is installed.
const REQUIREMENTS: &str = "tests/requirements.txt";

/// The folder of the programs in the environment, which is made if it is not there.
///
/// # Errors
/// There is no Python to make it with, or a package cannot be installed.
pub(crate) fn programs() -> anyhow::Result<PathBuf> {
    let metadata = Program::cargo("metadata --format-version 1 --no-deps").output()?;
    let metadata: Value = serde_json::from_str(&metadata).context("`cargo metadata` wrote no JSON")?;
    let folder = |name: &str| metadata[name].as_str().map(PathBuf::from).context("`cargo metadata` has changed");
    let list = folder("workspace_root")?.join(REQUIREMENTS);
    let wanted = std::fs::read_to_string(&list).with_context(|| format!("{} cannot be read", list.display()))?;
    let environment = folder("target_directory")?.join("python");
    let installed = environment.join("installed.txt");
    if std::fs::read_to_string(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(environment.join("bin"));
    }
    progress::step(format_args!("python packages of {REQUIREMENTS}"), || make(&environment, &list))?;
    // Last: an installation that broke off is begun anew.
    std::fs::write(&installed, wanted).with_context(|| format!("{} cannot be written", installed.display()))?;
    Ok(environment.join("bin"))
}

fn make(environment: &Path, list: &Path) -> anyhow::Result<()> {
    if environment.exists() {
        std::fs::remove_dir_all(environment).with_context(|| format!("{} cannot be removed", environment.display()))?;
    }
    if !Program::new("python3").words("-c").arguments(["import venv, ensurepip"]).works() {
        bail!("python3 (3.11 or newer) with its venv module is missing; on Debian: apt-get install python3-venv");
    }
    Program::new("python3").words("-m venv").arguments([environment]).run()?;
    // The list is complete, so nothing is resolved: what is missing in it is found by `pip check`.
    let pip = || Program::new(&environment.join("bin/python").to_string_lossy()).words("-m pip --no-input --quiet");
    pip().words("install --disable-pip-version-check --no-deps --requirement").arguments([list]).run()?;
    pip().words("check").run()
}
