//! The items as they were written by version 1, in `tests/golden/`. They must load for ever, and the writer must still
//! produce them. A change that fails the first half breaks stored data; one that fails the second needs a new file
//! beside the old one, which goes on being read.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use turnlock_domain::event::{MessageKind, Revision};
use turnlock_domain::rate::Rate;
use turnlock_store::buckets::Taken;
use turnlock_store::consolidation::{Claim, ClaimStart};
use turnlock_store::dead::DeadItem;
use turnlock_store::gateway::{GatewayFinal, GatewayFrame};
use turnlock_store::keys::{self, Key};
use turnlock_store::ledger::{Ledger, LedgerWrite};
use turnlock_store::memory::Episode;
use turnlock_store::reviews::ReviewClaim;

use crate::bench::{Bench, NOW, event, session};
use crate::memory::{evidence, fact};

const LEASE: Duration = Duration::from_secs(300);
const FINAL: Revision = Revision { fence: 7, sequence: Revision::FINAL };

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.json"))
}

fn golden(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file(name)).unwrap()).unwrap()
}

/// What the writer makes of `name` is what the file says; random names of writes excepted.
pub(crate) async fn is_written(bench: &Bench, name: &str, key: Key) {
    let mut written = bench.item(key).await.unwrap();
    for random in ["writer", "slot"] {
        if let Some(value) = written.get_mut(random) {
            assert!(!value.as_str().unwrap().is_empty());
            *value = Value::from("0");
        }
    }
    assert_eq!(written, golden(name), "{name}");
}

pub(crate) async fn with(name: &str) -> Bench {
    let bench = Bench::new().await;
    bench.put(&golden(name)).await;
    bench
}

fn whole_ledger() -> Ledger {
    let frame = Revision { fence: 7, sequence: 1 };
    crate::ledger::ledger("telegram:1:2.final")
        .sending(0, frame, NOW)
        .sent(0, "10", NOW)
        .sending(0, FINAL, NOW)
        .uncertain(0, "timeout", NOW)
        .sending(0, FINAL, NOW)
        .sent(0, "11", NOW)
        .sending(1, FINAL, NOW)
        .failed(1, "400", NOW)
}

#[tokio::test]
async fn ledger() {
    let bench = Bench::new().await;
    bench.store.write_ledger(whole_ledger()).await.unwrap();
    is_written(&bench, "ledger", keys::ledger("telegram:1:2.final")).await;
    let bench = with("ledger").await;
    let read = bench.store.ledger("telegram:1:2.final").await.unwrap().unwrap();
    assert_eq!(read.parts(), whole_ledger().parts());
    assert!(matches!(bench.store.write_ledger(read).await.unwrap(), LedgerWrite::Written(_)));
}

#[tokio::test]
async fn chat() {
    let bench = Bench::new().await;
    bench.store.reserve_slot("telegram:5", NOW, Duration::from_secs(1)).await.unwrap();
    bench.store.clear_chat_gone("telegram:5", NOW).await.unwrap();
    bench.store.mark_chat_gone("telegram:5", "blocked", NOW + Duration::from_millis(1)).await.unwrap();
    bench.store.alias_chat("telegram:5", "telegram:-1005").await.unwrap();
    is_written(&bench, "chat", keys::chat("telegram:5")).await;
    let chat = with("chat").await.store.chat("telegram:5").await.unwrap().unwrap();
    assert_eq!((chat.gone.as_deref(), chat.alias.as_deref()), (Some("blocked"), Some("telegram:-1005")));
    assert_eq!(chat.next_at, NOW + Duration::from_secs(1));
}

#[tokio::test]
async fn gateway() {
    let (id, frame_id) = (event("gateway:ops:k"), event("gateway:ops:f"));
    let last = GatewayFinal { text: "Hello".to_owned(), kind: MessageKind::Final, at: NOW };
    let frame = GatewayFrame {
        revision: Revision { fence: 7, sequence: 2 },
        text: "Hel".to_owned(),
        kind: MessageKind::Streaming,
    };
    let bench = Bench::new().await;
    bench.store.put_frame(&frame_id, &session(), &frame, NOW).await.unwrap();
    bench.store.put_frame(&id, &session(), &frame, NOW).await.unwrap();
    bench.store.put_final(&id, &session(), &last).await.unwrap();
    is_written(&bench, "gateway_frame", keys::gateway(&frame_id)).await;
    is_written(&bench, "gateway_final", keys::gateway(&id)).await;
    let seen = with("gateway_frame").await.store.gateway_event(&frame_id).await.unwrap().unwrap();
    assert_eq!((seen.frame, seen.final_), (Some(frame), None));
    let seen = with("gateway_final").await.store.gateway_event(&id).await.unwrap().unwrap();
    assert_eq!((seen.frame, seen.final_), (None, Some(last)));
}

#[tokio::test]
async fn bucket() {
    let rate = Rate { rpm: 20, burst: 2 };
    let bench = Bench::new().await;
    for id in ["a", "b", "c"] {
        bench.store.take(&session(), &event(id), rate, NOW).await.unwrap();
    }
    is_written(&bench, "bucket", keys::bucket(&session())).await;
    let bench = with("bucket").await;
    let take = async |id: &str| bench.store.take(&session(), &event(id), rate, NOW).await.unwrap();
    assert_eq!(take("b").await, Taken::AllowedBefore);
    assert!(matches!(take("c").await, Taken::Limited { notice: true, .. }));
    assert!(matches!(take("d").await, Taken::Limited { notice: false, .. }));
}

#[tokio::test]
async fn admission() {
    let id = event("gateway:ops:k");
    let bench = Bench::new().await;
    bench.store.admit(&id, "d1", &session(), NOW).await.unwrap();
    bench.store.mark_queued(&id).await.unwrap();
    is_written(&bench, "admission", keys::admission(&id)).await;
    let read = with("admission").await.store.admission(&id).await.unwrap();
    assert_eq!(read, bench.store.admission(&id).await.unwrap());
}

#[tokio::test]
async fn memory() {
    let scope = "person:telegram:1000001";
    let bench = Bench::new().await;
    bench.store.remember(scope, &[fact("Favourite tea", "Likes green tea")], "t").await.unwrap();
    bench.store.write_snapshot(scope, "- Likes green tea", 1).await.unwrap();
    is_written(&bench, "scope_head", keys::scope_head(scope)).await;
    is_written(&bench, "fact", keys::fact(scope, "favourite-tea")).await;
    let head = with("scope_head").await.store.scope_head(scope).await.unwrap();
    assert_eq!(head.fresh_snapshot(), Some("- Likes green tea"));
    let facts = with("fact").await.store.facts(scope, 10).await.unwrap();
    assert_eq!(facts, [fact("Favourite tea", "Likes green tea")]);
}

#[tokio::test]
async fn consolidation() {
    let (scope, key) = ("chat:telegram:1000001", keys::head(&session()));
    let claim = Claim { session: session(), generation: 0, from: 0, job: "j".to_owned(), worker: "w".to_owned() };
    let bench = Bench::new().await;
    let (pk, sk) = key.clone();
    let base = serde_json::json!({"pk": pk, "sk": sk, "generation": 0, "message_count": 60, "boundary": 0});
    bench.put(&base).await;
    bench.store.start_consolidation(&claim, NOW, LEASE).await.unwrap();
    bench.store.fix_consolidation_target(&claim, 40).await.unwrap();
    bench.store.fail_consolidation(&claim).await.unwrap();
    bench.store.start_consolidation(&claim, NOW, LEASE).await.unwrap();
    is_written(&bench, "claim", key.clone()).await;
    let episode = Episode::new("They talked about tea.", evidence(0..40, NOW)).unwrap();
    bench.store.finish_consolidation(&claim, scope, &episode, &[]).await.unwrap();
    is_written(&bench, "claim_done", key).await;
    is_written(&bench, "episode", keys::episode(scope, &session(), 0, 0)).await;
    assert_eq!(with("episode").await.store.episodes(scope, 5).await.unwrap(), [episode]);
    let started = with("claim").await.store.start_consolidation(&claim, NOW, LEASE).await.unwrap();
    assert!(matches!(started, ClaimStart::Mine { to: Some(40), .. }), "{started:?}");
    let started = with("claim_done").await.store.start_consolidation(&claim, NOW, LEASE).await.unwrap();
    assert!(matches!(started, ClaimStart::Superseded), "{started:?}");
}

#[tokio::test]
async fn review() {
    let bench = Bench::new().await;
    bench.store.claim_review("j", "w", NOW, LEASE).await.unwrap();
    is_written(&bench, "review_claim", keys::job_claim("j")).await;
    let claim = with("review_claim").await.store.claim_review("j", "other", NOW, LEASE).await.unwrap();
    assert!(matches!(claim, ReviewClaim::HeldBy { .. }));
}

#[tokio::test]
async fn dead() {
    let item = DeadItem {
        event_id: event("telegram:1:2"),
        queue: "inbound".to_owned(),
        reason: "too_many_receives".to_owned(),
        body: "{\"schema\":1}".to_owned(),
        at: NOW,
        receive_count: 1001,
    };
    let bench = Bench::new().await;
    bench.store.put_dead(&item).await.unwrap();
    is_written(&bench, "dead", keys::dead_event(&item.event_id)).await;
    is_written(&bench, "dead_listed", keys::dead(NOW, &item.event_id)).await;
    assert_eq!(with("dead").await.store.dead_item(&item.event_id).await.unwrap(), Some(item.clone()));
    let listed = with("dead_listed").await.store.dead_items(5).await.unwrap();
    assert_eq!(listed, [DeadItem { body: String::new(), ..item }]);
}
