//! The edges of the runtime against real parts: the embedded table and the in-memory queues on virtual time, and a
//! platform that does what a script says.

#![expect(clippy::unwrap_used, reason = "the helpers of these tests, too")]

mod admission;
mod api;
mod asking;
mod cards;
mod chats;
mod commands;
mod cron;
mod deciding;
mod delivery;
mod kit;
mod pairing;
mod places;
mod preview;
mod races;
mod redrive;
mod routing;
mod steering;
mod steps;
mod stopping;
mod talk;
mod troubles;
