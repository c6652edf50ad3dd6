use turnlock_domain::event::{InboundEvent, MessageKind, OutboundEvent, Revision};
use turnlock_store::ledger::{Ledger, LedgerState, LedgerWrite, PartPlan};

use crate::bench::{Bench, NOW};

const FRAME: Revision = Revision { fence: 7, sequence: 1 };
const FINAL: Revision = Revision { fence: 7, sequence: Revision::FINAL };

pub(crate) fn ledger(id: &str) -> Ledger {
    let inbound = serde_json::json!({
        "event_id": "telegram:1:2", "channel": "telegram", "chat_id": "5", "timestamp": "2026-01-05T09:00:00Z",
    });
    let inbound: InboundEvent = serde_json::from_value(inbound).unwrap();
    let mut outbound = OutboundEvent::answering(&inbound, "final", MessageKind::Final, "hi");
    outbound.revision = FINAL;
    Ledger::new(id, &outbound, 1, NOW)
}

fn written(write: LedgerWrite) -> Ledger {
    match write {
        LedgerWrite::Written(ledger) => ledger,
        LedgerWrite::Raced(ledger) => panic!("raced: {ledger:?}"),
    }
}

#[tokio::test]
async fn what_is_written_is_read() {
    let bench = Bench::new().await;
    assert_eq!(bench.store.ledger("o").await.unwrap(), None);
    let began = written(bench.store.write_ledger(ledger("o").sending(0, FINAL, NOW)).await.unwrap());
    assert_eq!(began.version(), 1);
    let sent = written(bench.store.write_ledger(began.sent(0, "10", NOW)).await.unwrap());
    assert_eq!((sent.version(), sent.state()), (2, LedgerState::Sent));
    assert_eq!(bench.store.ledger("o").await.unwrap(), Some(sent.clone()));
    assert_eq!(bench.store.ledgers(10).await.unwrap(), [sent]);
}

#[tokio::test]
async fn of_two_workers_one_calls_the_platform() {
    let bench = Bench::new().await;
    let first = written(bench.store.write_ledger(ledger("o").sending(0, FINAL, NOW)).await.unwrap());
    let raced = bench.other.write_ledger(ledger("o").sending(0, FINAL, NOW)).await.unwrap();
    assert_eq!(raced, LedgerWrite::Raced(first.clone()), "the same write of somebody else is not ours");
    let second = written(bench.other.write_ledger(first.clone().sending(0, FINAL, NOW)).await.unwrap());
    let late = bench.store.write_ledger(first.sent(0, "10", NOW)).await.unwrap();
    assert_eq!(late, LedgerWrite::Raced(second), "the late worker learns that it must repair");
}

/// Trace V11: a worker that froze before its edit finds that the final is there.
#[tokio::test]
async fn a_frozen_frame_is_refused_after_the_final() {
    let bench = Bench::new().await;
    let read = written(bench.store.write_ledger(ledger("o").sending(0, FRAME, NOW).sent(0, "10", NOW)).await.unwrap());
    let last = written(bench.other.write_ledger(read.clone().sending(0, FINAL, NOW).sent(0, "10", NOW)).await.unwrap());
    let frame = Revision { fence: 7, sequence: 2 };
    let LedgerWrite::Raced(now) = bench.store.write_ledger(read.sending(0, frame, NOW)).await.unwrap() else {
        panic!("a frame was begun after the final");
    };
    assert_eq!(now, last);
    assert!(now.is_stale(frame));
    assert_eq!(now.plan(0, frame, false), PartPlan::Leave(LedgerState::Sent));
}

#[tokio::test]
async fn a_lost_answer_is_recognised() {
    let bench = Bench::new().await;
    bench.lose("PutItem");
    let began = written(bench.store.write_ledger(ledger("o").sending(0, FINAL, NOW)).await.unwrap());
    bench.lose("PutItem");
    let sent = written(bench.store.write_ledger(began.sent(0, "10", NOW)).await.unwrap());
    assert_eq!(sent.version(), 2);
    assert_eq!(bench.store.ledger("o").await.unwrap(), Some(sent));
    assert_eq!(bench.forget_requests(), ["PutItem", "PutItem", "PutItem", "PutItem", "GetItem"]);
}

/// What was given up is opened under the version that was read, and what is shown stays shown.
#[tokio::test]
async fn a_ledger_is_opened_once_more() {
    let bench = Bench::new().await;
    bench.store.reopen_ledger("o").await.unwrap();
    assert_eq!(bench.store.ledger("o").await.unwrap(), None, "nothing is made up");
    let given_up =
        ledger("o").sending(0, FINAL, NOW).sent(0, "10", NOW).sending(1, FINAL, NOW).failed(1, "rejected", NOW);
    let given_up = written(bench.store.write_ledger(given_up).await.unwrap());
    bench.store.reopen_ledger("o").await.unwrap();
    let opened = bench.store.ledger("o").await.unwrap().unwrap();
    assert_eq!((opened.version(), opened.state()), (given_up.version() + 1, LedgerState::Pending));
    assert_eq!(opened.plan(0, FINAL, true), PartPlan::Leave(LedgerState::Sent));
    bench.store.reopen_ledger("o").await.unwrap();
    assert_eq!(bench.store.ledger("o").await.unwrap(), Some(opened), "opening it again changes nothing");
}
