//! The tools that a model may call, behind one [`Registry`].
//!
//! A tool of ours implements [`Tool`]: a typed input whose JSON Schema the model is shown, a risk, whether it may be
//! repeated. The registry erases the type once, in private. Tools that are known only at run time (scripted ones, and
//! whatever is reached over a protocol) come in by [`Registry::register_handler`].
//!
//! [`Registry::run`] always gives the model an answer: an unknown name, an input that does not fit, an error, a timeout
//! and a panic all become a sentence that it can act on, and every result is cleaned, without secrets, bounded, and marked
//! as data where it is somebody else's.
//!
//! Not here: whether a call is allowed (approvals are the turn's), the journal of calls, and their log line. A tool has
//! no way to speak to the user or to the queues: it answers the model, and that is all.
//!
//! | module | holds |
//! |---|---|
//! | [`tool`] | the trait, its erased form, risk and timeout |
//! | [`context`] | what a call knows of its turn |
//! | [`error`] | how a tool fails, and who gets to read it |
//! | [`output`] | results: cleaned, never blank, bounded |
//! | [`registry`] | the tools by name, and how a call is run |
//! | `current_time`, `remember`, `recall`, `read_result` | the tools that need no more than the store, listed once in [`builtin`] |
//! | [`configured`] | tools of a team's own: functions on AWS, endpoints, commands |
//! | [`web_fetch`] | the tool that reads the public web |

pub mod configured;
pub mod context;
mod current_time;
pub mod error;
mod input;
pub mod output;
mod read_result;
mod recall;
pub mod registry;
mod remember;
pub mod tool;
pub mod web_fetch;

pub use context::ToolContext;
pub use error::ToolError;
pub use output::{RESULT_MAX, ToolOutput};
pub use registry::{Registry, ToolOutcome, ToolRun};
pub use tool::{Risk, Tool, ToolHandler, ToolInfo, ToolSpec};
pub use web_fetch::WebFetch;

use turnlock_store::Store;

/// The tools that every agent has and that need no more than the store: the one list of them. [`WebFetch`] comes on top
/// where there is a web to fetch from, which a replay has not.
#[must_use]
pub fn builtin(store: &Store) -> Registry {
    let mut registry = Registry::new(store.clone());
    registry.register(current_time::CurrentTime);
    registry.register(read_result::ReadResult::new(store.clone()));
    registry.register(remember::Remember::new(store.clone()));
    registry.register(recall::Recall::new(store.clone()));
    registry
}

#[cfg(test)]
mod builtin_tests;
