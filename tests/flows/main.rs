//! Whole flows through the handlers, a module a flow.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests, too")]

mod albums;
mod bad_input;
mod bench;
mod bus;
mod cases;
mod files;
mod hour;
mod leaks;
mod slack_ingress;
mod slash_commands;
mod thinking;
mod turns;
