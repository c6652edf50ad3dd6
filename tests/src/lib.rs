//! Whole flows through the handlers, crashes, and rules that the code is held to. The tests are in `flows/`, `crash/`,
//! `rules/` and `aws/`; this library is the local AWS that the last ones run on.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test's tool that cannot go on fails the test")]

pub mod aws;
pub mod template;
