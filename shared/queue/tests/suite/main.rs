//! The queue from outside, a module a subject, on virtual time.

#![expect(clippy::unwrap_used, reason = "test helpers state what they expect, as the tests do")]

mod capacity;
mod conformance;
mod durability;
mod kit;
mod local;
mod model;
mod pool;
mod sqs;
mod sqs_batch;
mod wire;
