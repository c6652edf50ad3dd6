//! Whole flows through the handlers, crashes, and rules that the code is held to. The tests are in `flows/`, `crash/`,
//! `rules/`, `template/`, `aws/` and `peers/`; this library is the template as values, and the local AWS it is deployed on.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test's tool that cannot go on fails the test")]

pub mod aws;
pub mod programs;
pub mod template;
