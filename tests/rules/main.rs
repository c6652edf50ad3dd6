//! Rules that the code is held to by reading it.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests, too")]

mod readme;
mod response_stage;
