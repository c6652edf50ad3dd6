//! The outside worlds: a folder each, with verify, inbound, outbound and client.

pub mod http;
