//! The items of a session as version 1 wrote them: head, turn, part, marker, journal. They must load for ever, and the
//! writer must still produce them.

use std::time::Duration;

use turnlock_domain::message::{Block, Message};
use turnlock_domain::turn::{Job, JobTarget, Outcome, Owed, Usage};
use turnlock_store::journal::{CallOutcome, CallResult, Step};
use turnlock_store::keys;
use turnlock_store::sessions::{Acquire, Acquired, HeadChange, Lock, Release};

use crate::bench::{Bench, NOW, event, session};
use crate::golden::{is_written, with};
use crate::sessions::{draft, place};

const LEASE: Duration = Duration::from_secs(60);

async fn acquired(bench: &Bench) -> Lock {
    let want = Acquire {
        session: &session(),
        event: &event("telegram:1:2"),
        accepted_at: NOW,
        position: &place(2),
        route: r#"{"event_id":"telegram:1:2"}"#,
        owner: "owner-1",
        lease: LEASE,
        dead_letter: false,
    };
    match bench.store.acquire(&want).await.unwrap() {
        Acquired::Mine(lock, _) => lock,
        Acquired::Busy(head) => panic!("busy: {head:?}"),
    }
}

fn step() -> Step {
    let call = Block::ToolUse { id: "c1".to_owned(), name: "pay".to_owned(), input: serde_json::json!({"amount": 3}) };
    Step {
        step: 1,
        output: vec![Block::text("I pay."), call],
        usage: Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() },
        ..Step::default()
    }
}

fn result() -> CallResult {
    CallResult { content: vec![Block::text("paid")], is_error: false, outcome: CallOutcome::Ok }
}

/// A head in the middle of a turn that has a journal, with everything that may stand on it.
#[tokio::test(start_paused = true)]
async fn head() {
    let bench = Bench::new().await;
    bench.store.stop(&session(), &place(4)).await.unwrap();
    let lock = acquired(&bench).await;
    let target = JobTarget {
        session: session(),
        generation: 0,
        from: 0,
        scope: "chat:telegram:1000001".to_owned(),
        event_id: lock.event.clone(),
    };
    let job = Job::Consolidate(target);
    let change = HeadChange {
        claim: Some((job.id(), NOW + Duration::from_secs(900))),
        tool_calls: 3,
        introduced: true,
        ..HeadChange::default()
    };
    bench.store.commit(&draft(&lock, 0), &lock, Some(&place(5)), &change).await.unwrap();
    let lock = acquired(&bench).await;
    bench.store.write_step(&lock, &place(5), &step(), LEASE).await.unwrap();
    bench.store.note_receives(&session(), &lock.event, 9).await.unwrap();
    is_written(&bench, "head_placed", keys::head(&session())).await;
    let bench = with("head").await;
    let head = bench.store.head(&session()).await.unwrap().unwrap();
    assert_eq!((head.fence, head.step, head.attempts, head.message_count), (2, 1, 1, 2));
    assert_eq!((head.noted(&event("telegram:1:2")), head.tool_calls, head.introduced), (9, 3, true));
    assert_eq!((head.claim_job, head.stop_before), (Some(job.id()), Some(place(4))));
    bench.store.release(&lock, Release::default()).await.unwrap();
    assert_eq!(bench.store.head(&session()).await.unwrap().unwrap().owner, None);
}

#[tokio::test(start_paused = true)]
async fn turn_and_marker() {
    let bench = Bench::new().await;
    let lock = acquired(&bench).await;
    let target = JobTarget {
        session: session(),
        generation: 0,
        from: 0,
        scope: "chat:telegram:1000001".to_owned(),
        event_id: lock.event.clone(),
    };
    let mut draft = draft(&lock, 0);
    draft.owed = vec![Owed::Final, Owed::Job { job: Job::ReviewMemory(target) }];
    draft.usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
    bench.store.commit(&draft, &lock, Some(&place(5)), &HeadChange::default()).await.unwrap();
    is_written(&bench, "turn", keys::turn(&session(), 0, 0)).await;
    is_written(&bench, "marker", keys::marker(&lock.event)).await;
    let turn = with("turn").await.store.turn(&session(), 0, 0).await.unwrap().unwrap();
    assert_eq!((turn.messages, turn.outcome), (draft.messages.clone(), Outcome::Replied));
    let marker = with("marker").await.store.marker(&lock.event).await.unwrap().unwrap();
    assert_eq!(marker, draft.marker());
}

/// What a later version wrote loads: unknown attributes, outcomes and reasons do not fail it.
#[tokio::test(start_paused = true)]
async fn a_turn_of_a_later_version_loads() {
    let turn = with("turn_future").await.store.turn(&session(), 0, 0).await.unwrap().unwrap();
    assert_eq!(turn.outcome, Outcome::Unknown);
    assert_eq!(turn.messages[1].content, [Block::Unknown, Block::text("hello")]);
}

#[tokio::test(start_paused = true)]
async fn part() {
    let bench = Bench::new().await;
    let lock = acquired(&bench).await;
    let mut large = draft(&lock, 0);
    large.messages = vec![Message::user("x".repeat(310 * 1024)), Message::assistant("ok")];
    bench.store.commit(&large, &lock, Some(&place(5)), &HeadChange::default()).await.unwrap();
    is_written(&bench, "turn_of_parts", keys::turn(&session(), 0, 0)).await;
    let last = bench.item(keys::turn_part(&session(), &lock.event, 1, 1)).await.unwrap();
    assert!(last["json"].as_str().unwrap().ends_with(r#""ok"}]}]"#));
}

#[tokio::test(start_paused = true)]
async fn journal() {
    let bench = Bench::new().await;
    let lock = acquired(&bench).await;
    bench.store.write_step(&lock, &place(5), &step(), LEASE).await.unwrap();
    bench.store.write_result(&lock, 1, 0, &result()).await.unwrap();
    let (step_key, result_key) =
        (keys::journal_step(&session(), &lock.event, 1), keys::journal_result(&session(), &lock.event, 1, 0));
    is_written(&bench, "journal_step", step_key).await;
    is_written(&bench, "journal_result", result_key).await;
    let read = with("journal_step").await.store.journal(&session(), &lock.event).await.unwrap();
    assert_eq!((read.steps, read.results.len()), (vec![step()], 0));
    let read = with("journal_result").await.store.journal(&session(), &lock.event).await.unwrap();
    assert_eq!(read.results.get(&(1, 0)), Some(&result()));
}
