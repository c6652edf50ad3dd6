//! Flat cost (invariant 15): what a plain turn asks for and writes does not depend on the session's length.

use std::collections::BTreeMap;

use turnlock_bench::counting::Counts;
use turnlock_bench::rig::Rig;

const LENGTHS: [u64; 4] = [10, 100, 1_000, 5_000];
/// The most bytes that a plain turn writes.
const MOST_BYTES: u64 = 5_000;

fn named(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// A turn in a session of `messages` messages.
async fn turn(messages: u64) -> anyhow::Result<Counts> {
    let rig = Rig::in_memory().await?;
    let mut chat = rig.chat(messages).await?;
    Ok(rig.round(std::slice::from_mut(&mut chat), 1).await?.counts)
}

#[tokio::test]
async fn a_plain_turn_costs_the_same_at_every_length() {
    let mut bytes = Vec::new();
    for messages in LENGTHS {
        let counts = turn(messages).await.unwrap();
        let store = named(&[("BatchGetItem", 1), ("Query", 1), ("TransactWriteItems", 1), ("UpdateItem", 1)]);
        assert_eq!(counts.store, store, "at {messages} messages");
        assert_eq!(counts.queue, named(&[("send", 1), ("set_visibility", 1)]), "at {messages} messages");
        bytes.push(counts.bytes_written);
    }
    let (least, most) = (*bytes.iter().min().unwrap(), *bytes.iter().max().unwrap());
    assert!(least > 0 && most < MOST_BYTES, "{bytes:?}");
    assert!(most * 100 <= least * 105, "{bytes:?}");
}
