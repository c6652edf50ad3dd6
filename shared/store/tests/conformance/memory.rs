use turnlock_domain::time::Millis;
use turnlock_store::memory::{Episode, Evidence, Fact, Forgotten, MAX_FACTS, SnapshotWrite, Unmemorable, fact_key};

use crate::bench::{Bench, NOW, event, session};

pub(crate) fn evidence(range: std::ops::Range<u64>, at: Millis) -> Evidence {
    Evidence::new(session(), 0, range, vec![event("telegram:1:2")], "scripted", at).unwrap()
}

pub(crate) fn fact(key: &str, text: &str) -> Fact {
    Fact::new(key, text, evidence(0..2, NOW)).unwrap()
}

pub(crate) async fn texts(bench: &Bench, scope: &str) -> Vec<String> {
    bench.store.facts(scope, 500).await.unwrap().iter().map(|fact| fact.text().to_owned()).collect()
}

#[tokio::test]
async fn every_write_raises_the_epoch() {
    let bench = Bench::new().await;
    assert_eq!(bench.store.scope_head("person:1").await.unwrap().epoch, 0);
    bench.store.remember("person:1", &[fact("cat", "A cat"), fact("tea", "Tea")], "t1").await.unwrap();
    bench.store.remember("person:1", &[], "t2").await.unwrap();
    let head = bench.store.scope_head("person:1").await.unwrap();
    assert_eq!((head.epoch, head.scope.as_str(), head.needs_snapshot()), (1, "person:1", true));
    assert_eq!(texts(&bench, "person:1").await, ["A cat", "Tea"]);
    assert_eq!(bench.store.forget("person:1", "Cat!").await.unwrap(), Forgotten::Gone);
    assert_eq!(bench.store.forget("person:1", "cat").await.unwrap(), Forgotten::NotThere);
    assert_eq!(bench.store.scope_head("person:1").await.unwrap().epoch, 2, "nothing forgotten, nothing old");
    assert_eq!(texts(&bench, "person:1").await, ["Tea"]);
    assert_eq!(texts(&bench, "person:2").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_fact_may_be_forgotten_twice_within_minutes() {
    let bench = Bench::new().await;
    for token in ["t1", "t2"] {
        bench.store.remember("s", &[fact("cat", "A cat")], token).await.unwrap();
        assert_eq!(bench.store.forget("s", "cat").await.unwrap(), Forgotten::Gone);
        assert!(texts(&bench, "s").await.is_empty());
    }
}

#[tokio::test]
async fn of_one_key_the_last_is_kept_and_the_number_is_bounded() {
    let bench = Bench::new().await;
    let mut facts = vec![fact("cat", "one"), fact("CAT", "two")];
    facts.extend((0..100).map(|n| fact(&format!("n{n}"), "x")));
    bench.store.remember("s", &facts, "t").await.unwrap();
    let kept = texts(&bench, "s").await;
    assert_eq!((kept.len(), kept[0].as_str()), (MAX_FACTS - 1, "two"));
}

#[tokio::test]
async fn a_lost_answer_raises_the_epoch_once() {
    let bench = Bench::new().await;
    bench.lose("TransactWriteItems");
    bench.store.remember("s", &[fact("cat", "A cat")], "t").await.unwrap();
    assert_eq!(bench.store.scope_head("s").await.unwrap().epoch, 1);
    bench.store.remember("s", &[fact("cat", "Another cat")], "t").await.unwrap();
    assert_eq!(texts(&bench, "s").await, ["Another cat"], "other facts under the same name are not refused");
    bench.lose("TransactWriteItems");
    assert_eq!(bench.store.forget("s", "cat").await.unwrap(), Forgotten::Gone);
    assert_eq!(bench.store.scope_head("s").await.unwrap().epoch, 3);
}

/// Trace V14: a snapshot of facts that were read before one was forgotten is old when it is written.
#[tokio::test]
async fn a_forgotten_fact_does_not_come_back_through_the_snapshot() {
    let bench = Bench::new().await;
    bench.store.remember("s", &[fact("cat", "A cat")], "t").await.unwrap();
    let read_before = bench.store.scope_head("s").await.unwrap().epoch;
    let snapshot = texts(&bench, "s").await.join("\n");
    bench.other.forget("s", "cat").await.unwrap();
    let written = bench.store.write_snapshot("s", &snapshot, read_before).await.unwrap();
    assert_eq!(written, SnapshotWrite::Written);
    let head = bench.store.scope_head("s").await.unwrap();
    assert_eq!((head.fresh_snapshot(), head.needs_snapshot()), (None, true));
    assert_eq!(bench.store.write_snapshot("s", "", head.epoch).await.unwrap(), SnapshotWrite::Written);
    assert_eq!(bench.store.write_snapshot("s", &snapshot, read_before).await.unwrap(), SnapshotWrite::NotNewer);
    assert_eq!(bench.store.scope_head("s").await.unwrap().fresh_snapshot(), Some(""));
}

#[tokio::test]
async fn a_snapshot_survives_a_lost_answer_and_makes_no_scope() {
    let bench = Bench::new().await;
    assert_eq!(bench.store.write_snapshot("s", "x", 5).await.unwrap(), SnapshotWrite::NotNewer);
    assert_eq!(bench.store.scope_head("s").await.unwrap().snapshot, None, "a purged scope does not come back");
    bench.store.remember("s", &[fact("cat", "A cat")], "t").await.unwrap();
    bench.lose("UpdateItem");
    assert_eq!(bench.store.write_snapshot("s", "A cat", 1).await.unwrap(), SnapshotWrite::Written);
}

#[tokio::test]
async fn facts_come_from_every_page() {
    let bench = Bench::new().await;
    let long = "字".repeat(1_000);
    for batch in 0..13 {
        let facts: Vec<Fact> = (0..40).map(|n| fact(&format!("f{batch:02}{n:02}"), &long)).collect();
        bench.store.remember("s", &facts, &batch.to_string()).await.unwrap();
    }
    bench.forget_requests();
    assert_eq!(bench.store.facts("s", 500).await.unwrap().len(), 500);
    let queries = bench.forget_requests();
    assert!(queries.len() > 1 && queries.len() < 5, "{queries:?}");
    assert_eq!(bench.store.facts("s", 3).await.unwrap().len(), 3);
}

#[tokio::test]
async fn recall_finds_facts_and_episodes() {
    let bench = Bench::new().await;
    bench.store.remember("s", &[fact("cat", "用户的猫叫小白"), fact("tea", "Likes tea")], "t").await.unwrap();
    let found = bench.store.recall("s", "猫叫什么名字？", 5).await.unwrap();
    assert_eq!(found.iter().map(|found| found.text()).collect::<Vec<_>>(), ["用户的猫叫小白"]);
    assert!(bench.store.recall("other", "tea", 5).await.unwrap().is_empty(), "another scope");
}

#[test]
fn no_evidence_no_memory() {
    let none = Evidence::new(session(), 0, 4..4, vec![], "scripted", NOW);
    assert_eq!(none.unwrap_err(), Unmemorable::NoEvidence);
    assert_eq!(Fact::new("k", " \n ", evidence(0..1, NOW)).unwrap_err(), Unmemorable::NoText);
    assert_eq!(Episode::new("", evidence(0..1, NOW)).unwrap_err(), Unmemorable::NoText);
    let ids = (0..50).map(|n| event(&n.to_string())).collect();
    let kept = Evidence::new(session(), 0, 0..50, ids, "scripted", NOW).unwrap();
    assert_eq!(kept.event_ids().len(), 20);
    assert_eq!(kept.event_ids()[19], event("49"));
}

/// Case ddb-empty-key: whatever a model calls a fact, its key is neither empty nor too long.
#[test]
fn ddb_empty_key() {
    for (text, key) in [("Favourite Tea!", "favourite-tea"), ("  a#b  ", "a-b"), ("猫的名字", "猫的名字"), ("-a-", "a")]
    {
        assert_eq!(fact_key(text), key);
    }
    assert_eq!(fact_key(&fact_key("Favourite Tea!")), "favourite-tea");
    let hashed = [fact_key(""), fact_key("🐱"), fact_key("🐶"), fact_key(&"x".repeat(129)), fact_key(&"x".repeat(130))];
    for (n, key) in hashed.iter().enumerate() {
        assert!(key.starts_with('~') && key.len() == 33);
        assert!(!hashed[..n].contains(key));
    }
    assert_eq!(fact("", "Likes tea").key(), "likes-tea");
}
