//! The store over the embedded DynamoDB, a module a kind of item: what races come to, what a lost answer does, and that
//! items of past versions still load.

#![expect(clippy::unwrap_used, reason = "the helpers of these tests, too")]

mod admission;
mod albums;
mod approvals;
mod bench;
mod buckets;
mod chats;
mod consolidation;
mod dead;
mod gateway;
mod golden;
mod golden_sessions;
mod ledger;
mod memory;
mod pairing;
mod results;
mod reviews;
mod sessions;
mod spend;
mod steer;
