//! The binary from outside: a real process on a port of its own, in a directory of its own.

#![expect(clippy::unwrap_used, reason = "the helpers of these tests, too")]

mod asks;
mod chat;
mod commands;
mod connect;
mod demo;
mod ends;
mod guard;
mod kit;
mod pair;
mod replay;
