//! Jobs over real parts: the embedded store, queues in memory, the scripted model, virtual time.

mod bench;
mod consolidation;
mod races;
mod review;
