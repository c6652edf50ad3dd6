//! Client libraries that other people write, as peers: what they make is understood here, what is sent here is valid for
//! them. One process of Python a library, fed and read line by line, without any network.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod kit;
mod slack;
mod telegram;
