//! Whole flows through the handlers, crashes, and rules that the code is held to. The tests are in `flows/`, `crash/`,
//! `rules/` and `template/`; this library is the template as values.

#![expect(clippy::expect_used, reason = "a test's tool that cannot go on fails the test")]

pub mod template;
