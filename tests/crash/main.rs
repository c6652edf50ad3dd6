//! What happens when a process dies, or a request fails, at any moment.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests, too")]

mod chaos;
mod enumeration;
mod inference;
mod promises;
mod run;
mod sigkill;
mod traces;
