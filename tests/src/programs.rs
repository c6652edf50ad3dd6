//! The binaries that tests run as processes of their own, in the folder above the tests' own. Cargo does not build those
//! of other packages for a test, so a test looks whether they are as new as their sources.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The folder of the binaries: tests stand in `target/<profile>/deps`.
#[must_use]
pub fn folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).expect("tests stand in target/<profile>/deps").to_owned()
}

/// Whether `program` is there and no source of it is newer.
#[must_use]
pub fn is_current(program: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    let Some(built) = changed(program) else { return false };
    // Built beside the tests of the whole workspace it has no list of sources, and is as new as they are.
    let Ok(list) = std::fs::read_to_string(program.with_extension("d")) else { return true };
    // `program: source source …`, as for make; a space within a name stands behind a backslash.
    let sources = list.trim_end().split_once(": ").map(|(_, sources)| sources.replace("\\ ", "\0")).unwrap_or_default();
    let is_older =
        |source: &str| changed(Path::new(&source.replace('\0', " "))).is_some_and(|at: SystemTime| at <= built);
    sources.split(' ').all(is_older)
}

/// The Python that `cargo xtask test` installed beside the build, with what `requirements.txt` lists.
#[must_use]
pub fn python() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let mut found = test.ancestors().map(|folder| folder.join("python/bin/python"));
    let found = found.find(|python| python.exists());
    found.unwrap_or_else(|| panic!("there is no python/ in the target folder: `cargo xtask test` makes it"))
}
