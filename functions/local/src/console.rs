//! What people read: the only place that writes to stdout. Logs go to stderr by `logs`.
//!
//! A reader that went away (`turnlock chat | head -1`) is no error: what cannot be written is not missed.

use std::fmt::Display;
use std::io::Write;

/// Writes a line.
pub(crate) fn line(text: impl Display) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

/// Writes a piece of a line that grows.
pub(crate) fn piece(text: impl Display) {
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{text}");
    let _ = out.flush();
}

/// Writes a line about the command itself, beside its output.
pub(crate) fn aside(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
