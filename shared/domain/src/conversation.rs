//! The model always gets a valid conversation: one checker and one repair for every request, whatever its purpose (a turn,
//! a consolidation, a review).
//!
//! The rules are the union of what providers refuse: roles alternate from a user message on; every tool use is answered in
//! the next message, once, by a result that stands before anything else; ids and names have the allowed shape; no text is
//! blank, no message empty. [`check`] names what is wrong; [`repair`] makes any stored history valid, so that a session
//! that is already broken heals on load. A history that is valid comes back as it is.
//!
//! The stored messages stay as they are: the repaired ones are a view, made anew for every request, always the same for
//! the same history. Nothing here fails.

mod check;
mod names;
mod repair;

pub use check::{Problem, check, check_request};
pub use names::{alias, file_name, is_name};
pub use repair::{Change, Repaired, repair};
