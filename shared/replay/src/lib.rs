//! Replays: scripts played against the real handlers in one process, with a virtual clock, faults on demand and fake
//! platforms. Offline and deterministic: the same file, seed and version give the same output, byte for byte.
//!
//! | module | holds |
//! |---|---|
//! | [`faults`] | what can go wrong between a process and the store, the queues and the platforms |
//! | [`fakes`] | Telegram, Slack and webhook receivers in memory |
//! | [`script`] | replay files, read and checked |
//! | [`player`] | plays a script: processes that can die over a world that does not |
//! | [`output`] | what a replay shows: the object, expectations, the transcript |

pub mod fakes;
pub mod faults;
pub mod output;
pub mod player;
pub mod script;

pub use player::{FEATURES, Failed, PlayError, Played, play};
