//! The template and the binaries on a local AWS, from the HTTP route to the chat. A test is one deployment.
//!
//! They run what is in the target folder: `cargo xtask test` makes it new (the binaries of every package, and the Python of
//! ministack). After a change, by hand: `cargo build --workspace --bins`.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests, too")]

mod chats;
mod cost;
mod crashes;
mod edges;
mod files;
mod kit;
mod load;
mod long_turn;
mod observers;
mod pairing;
mod queues;
mod redrive;
mod rights;
