//! Every environment variable that is read, in one place. Besides these, the configuration file names variables of its
//! own (`env:NAME`) for its secrets.

/// The path of the configuration file, where the command line names none.
pub const CONFIG: &str = "TURNLOCK_CONFIG";
/// What is logged: a level, or targets with levels, e.g. `info` or `warn,turnlock_app=debug`.
pub const LOG: &str = "TURNLOCK_LOG";

/// All of them, for checks and for the reference page.
pub const ALL: &[&str] = &[CONFIG, LOG];

/// The value of an environment variable; one that is not Unicode counts as absent.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the place")]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
