//! The binary from outside: a real process on a port of its own, in a directory of its own.

mod chat;
mod commands;
mod demo;
mod ends;
mod guard;
mod kit;
