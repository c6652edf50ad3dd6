//! Whole flows through the handlers, crashes, and rules that the code is held to. The tests are in `flows/`, `crash/`
//! and `rules/`; this library is empty.
