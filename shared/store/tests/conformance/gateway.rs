use turnlock_domain::event::{MessageKind, Revision};
use turnlock_store::gateway::{FinalPut, FramePut, GatewayFinal, GatewayFrame};

use crate::bench::{Bench, NOW, event, session};

fn frame(fence: u64, sequence: u32) -> GatewayFrame {
    let text = format!("{fence}.{sequence}");
    GatewayFrame { revision: Revision { fence, sequence }, text, kind: MessageKind::Streaming }
}

fn last(text: &str) -> GatewayFinal {
    GatewayFinal { text: text.to_owned(), kind: MessageKind::Final, at: NOW }
}

#[tokio::test]
async fn only_newer_frames_are_shown() {
    let bench = Bench::new().await;
    let put = async |frame: GatewayFrame| bench.store.put_frame(&event("e"), &session(), &frame, NOW).await.unwrap();
    assert_eq!(bench.store.gateway_event(&event("e")).await.unwrap(), None);
    assert_eq!(put(frame(7, 2)).await, FramePut::Shown);
    assert_eq!(put(frame(7, 1)).await, FramePut::Superseded);
    assert_eq!(put(frame(8, 0)).await, FramePut::Shown, "a successor's frame is newer");
    assert_eq!(put(frame(7, 9)).await, FramePut::Superseded, "a worker that lost its lock shows nothing");
    let seen = bench.store.gateway_event(&event("e")).await.unwrap().unwrap();
    assert_eq!((seen.frame, seen.final_, seen.version), (Some(frame(8, 0)), None, 2));
    assert_eq!((seen.event_id, seen.session), (event("e"), session()));
}

#[tokio::test]
async fn the_final_is_written_once() {
    let bench = Bench::new().await;
    let put = async |last: GatewayFinal| bench.store.put_final(&event("e"), &session(), &last).await.unwrap();
    bench.store.put_frame(&event("e"), &session(), &frame(7, 1), NOW).await.unwrap();
    assert_eq!(put(last("a")).await, FinalPut::Written);
    assert_eq!(put(last("a")).await, FinalPut::AlreadyThere);
    assert_eq!(put(last("b")).await, FinalPut::Different(last("a")));
    let late = bench.store.put_frame(&event("e"), &session(), &frame(9, 1), NOW).await.unwrap();
    assert_eq!(late, FramePut::Superseded);
    let seen = bench.store.gateway_event(&event("e")).await.unwrap().unwrap();
    assert_eq!((seen.frame, seen.final_, seen.version), (None, Some(last("a")), 2));
}

#[tokio::test]
async fn lost_answers_are_recognised() {
    let bench = Bench::new().await;
    bench.lose("UpdateItem");
    let shown = bench.store.put_frame(&event("e"), &session(), &frame(7, 1), NOW).await.unwrap();
    assert_eq!(shown, FramePut::Shown);
    bench.lose("UpdateItem");
    let put = bench.store.put_final(&event("e"), &session(), &last("a")).await.unwrap();
    assert_eq!(put, FinalPut::AlreadyThere, "the same to whoever delivers");
    assert_eq!(bench.store.gateway_event(&event("e")).await.unwrap().unwrap().version, 2);
}

/// TTL is garbage collection only: an item that is over is not there, whenever DynamoDB collects it.
#[tokio::test]
async fn what_is_over_is_not_there() {
    let bench = Bench::new().await;
    let old = GatewayFinal { at: NOW - turnlock_store::MARKER_LIFETIME, ..last("old") };
    bench.store.put_final(&event("e"), &session(), &old).await.unwrap();
    assert_eq!(bench.store.gateway_event(&event("e")).await.unwrap(), None);
    let shown = bench.store.put_frame(&event("e"), &session(), &frame(1, 1), NOW).await.unwrap();
    assert_eq!(shown, FramePut::Shown);
    let seen = bench.store.gateway_event(&event("e")).await.unwrap().unwrap();
    assert_eq!((seen.frame, seen.final_), (Some(frame(1, 1)), None));
}
