//! What a turn costs: measured by `cargo xtask bench turn`, counted exactly by the flat-cost test. What a cold start costs:
//! measured by `cargo xtask bench cold`.
//!
//! | module | holds |
//! |---|---|
//! | [`rig`] | the agent's handler over files, sessions of any length, and rounds of plain turns |
//! | [`counting`] | the store and the queues with every request counted |
//! | [`cold`] | cold starts of the functions |
//! | [`figures`] | their arithmetic |
//! | [`processor`] | the processor time of this process |
//!
//! Timed figures depend on the machine and on what else it does; counted ones do not, and only those are tested.

pub mod cold;
pub mod counting;
pub mod figures;
pub mod processor;
pub mod rig;
