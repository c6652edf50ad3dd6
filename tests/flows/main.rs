//! Whole flows through the handlers, a module a flow.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests, too")]

mod albums;
mod approvals;
mod bad_input;
mod bench;
mod bus;
mod cases;
mod failing_models;
mod files;
mod hour;
mod kit;
mod leaks;
mod long_turns;
mod slack_ingress;
mod slash_commands;
mod steering;
mod stop_button;
mod thinking;
mod turns;
