//! The items of a session as version 1 wrote them: head, turn, part, marker, journal. They must load for ever, and the
//! writer must still produce them.

use std::time::Duration;

use turnlock_domain::message::{Block, Message};
use turnlock_domain::turn::{Job, JobTarget, ModelCall, Outcome, Owed, Usage};
use turnlock_store::approvals::{ApprovalState, Ask, Use, Verdict};
use turnlock_store::journal::{CallOutcome, CallResult, Step};
use turnlock_store::keys;
use turnlock_store::sessions::{Acquire, Acquired, HeadChange, Lock, Release, Unstarted};

use crate::approvals::{approval, decision, sleeper};
use crate::bench::{Bench, NOW, event, session};
use crate::golden::{is_written, with};
use crate::sessions::{draft, place};
use crate::steer::text;

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

/// What each call used stands with the turn; one of a version that did not note it has none.
#[tokio::test(start_paused = true)]
async fn turn_with_its_calls() {
    let bench = Bench::new().await;
    let lock = acquired(&bench).await;
    let call = |model: &str, usage| ModelCall { model: model.to_owned(), usage };
    let first =
        Usage { input_tokens: 7, output_tokens: 3, cache_read_tokens: 900, cache_write_tokens: 100, cost: 4200 };
    let second = Usage { input_tokens: 3, output_tokens: 2, ..Usage::default() };
    let mut draft = draft(&lock, 0);
    draft.calls = vec![call("first", first), call("second", second)];
    draft.usage = first;
    draft.usage.add(second);
    bench.store.commit(&draft, &lock, Some(&place(5)), &HeadChange::default()).await.unwrap();
    is_written(&bench, "turn_calls", keys::turn(&session(), 0, 0)).await;
    let turn = with("turn_calls").await.store.turn(&session(), 0, 0).await.unwrap().unwrap();
    assert_eq!((turn.calls, turn.usage), (draft.calls, draft.usage));
    let turn = with("turn").await.store.turn(&session(), 0, 0).await.unwrap().unwrap();
    assert_eq!((turn.calls, turn.usage), (vec![], Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() }));
}

/// The markers of a turn that ended before anybody decided, and of an event whose text another turn used.
#[tokio::test(start_paused = true)]
async fn markers_of_turns_that_asked_and_heard() {
    let bench = Bench::new().await;
    let lock = acquired(&bench).await;
    let mut draft = draft(&lock, 0);
    draft.owed = vec![Owed::Final, Owed::Card { approval: "a1".to_owned() }];
    draft.merged = vec![event("telegram:1:3")];
    bench.store.commit(&draft, &lock, Some(&place(5)), &HeadChange::default()).await.unwrap();
    is_written(&bench, "marker_card", keys::marker(&lock.event)).await;
    is_written(&bench, "marker_merged", keys::marker(&event("telegram:1:3"))).await;
    let marker = with("marker_card").await.store.marker(&lock.event).await.unwrap().unwrap();
    assert_eq!(marker, draft.marker());
    let merged = with("marker_merged").await.store.marker(&event("telegram:1:3")).await.unwrap().unwrap();
    assert_eq!(Some(merged), draft.merged_markers().next());
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

/// A step with everything that it may say since calls can be asked for and texts can come meanwhile.
fn asking() -> Step {
    let usage = Usage { input_tokens: 10, output_tokens: 5, cache_read_tokens: 4, cost: 3, ..Usage::default() };
    let calls = vec![ModelCall { model: "m".to_owned(), usage }];
    Step { usage, asks: vec![0, 2], denied: vec![1], steered: vec![text("telegram:1:3", 3)], calls, ..step() }
}

#[tokio::test(start_paused = true)]
async fn journal_of_a_turn_that_asks() {
    let bench = Bench::new().await;
    let lock = acquired(&bench).await;
    bench.store.write_step(&lock, &place(5), &asking(), LEASE).await.unwrap();
    bench.store.park(&lock, &place(5), &approval("a1", 0), sleeper(1)).await.unwrap();
    bench.store.decide(&approval("a1", 0), &decision(Verdict::Allow, NOW)).await.unwrap();
    let lock = acquired(&bench).await;
    let ask = Ask { decision: Some(decision(Verdict::Allow, NOW)), ..approval("a1", 0).ask() };
    bench.store.use_decision(&lock, &place(5), &ask, Use::Start).await.unwrap();
    is_written(&bench, "journal_step_asking", keys::journal_step(&session(), &lock.event, 1)).await;
    is_written(&bench, "journal_started", keys::journal_started(&session(), &lock.event, 1, 0)).await;
    is_written(&bench, "approval", keys::approval("a1")).await;
    let read = with("journal_step_asking").await.store.journal(&session(), &lock.event).await.unwrap();
    assert_eq!(read.steps, [asking()]);
    let read = with("journal_started").await.store.journal(&session(), &lock.event).await.unwrap();
    assert!(read.started.contains(&(1, 0)));
    let read = with("approval").await.store.approval("a1").await.unwrap().unwrap();
    assert_eq!((read.state, read.decided_by.as_deref()), (ApprovalState::Allowed, Some("telegram:1000001")));
    assert_eq!((read.closes_at, read.place), (approval("a1", 0).closes_at, approval("a1", 0).place));
}

/// A head in the middle of a turn that waits for its second call, the first one having been allowed.
#[tokio::test(start_paused = true)]
async fn head_of_a_turn_that_asks() {
    let bench = Bench::new().await;
    let lock = acquired(&bench).await;
    bench.store.write_step(&lock, &place(5), &asking(), LEASE).await.unwrap();
    bench.store.steer(&session(), &text("telegram:1:3", 3)).await.unwrap();
    bench.store.park(&lock, &place(5), &approval("a1", 0), sleeper(1)).await.unwrap();
    bench.store.decide(&approval("a1", 0), &decision(Verdict::Allow, NOW)).await.unwrap();
    let lock = acquired(&bench).await;
    let ask = Ask { decision: Some(decision(Verdict::Allow, NOW)), ..approval("a1", 0).ask() };
    bench.store.use_decision(&lock, &place(5), &ask, Use::Start).await.unwrap();
    let how = Release { reset_attempts: true, receives: Some(2), unstarted: Some(1), ..Release::default() };
    bench.store.release(&lock, how).await.unwrap();
    let lock = acquired(&bench).await;
    bench.store.park(&lock, &place(5), &approval("a2", 2), sleeper(3)).await.unwrap();
    bench.store.decide(&approval("a2", 2), &decision(Verdict::Deny, NOW)).await.unwrap();
    is_written(&bench, "head_asking_event", keys::head(&session())).await;
    let head = with("head_asking_event").await.store.head(&session()).await.unwrap().unwrap();
    assert_eq!(head.open_ask().unwrap().event_id, Some(event("telegram:1:2")));
    let head = with("head_asking").await.store.head(&session()).await.unwrap().unwrap();
    assert_eq!(head.open_ask().unwrap().decision, Some(decision(Verdict::Deny, NOW)));
    assert_eq!((head.waited_until, head.unstarted), (Some(NOW), Some(Unstarted { fence: 2, call: 1 })));
    assert_eq!((head.receipt.as_deref(), head.receipt_receives, head.steer.len()), (Some("receipt"), 3, 1));
}

/// What a later version keeps in a journal besides, and what it owes: both are passed over here.
#[tokio::test(start_paused = true)]
async fn a_journal_and_a_marker_of_a_later_version_load() {
    let bench = with("journal_step").await;
    let (pk, sk) = keys::journal_step(&session(), &event("telegram:1:2"), 1);
    bench.put(&serde_json::json!({ "pk": pk, "sk": format!("{sk}#X#000"), "what": 1 })).await;
    let journal = bench.store.journal(&session(), &event("telegram:1:2")).await.unwrap();
    assert_eq!((journal.steps.len(), journal.results.len()), (1, 0));
    let mut marker = with("marker_card").await.item(keys::marker(&event("telegram:1:2"))).await.unwrap();
    marker["owed"][1] = serde_json::json!({ "kind": "later", "what": 1 });
    bench.put(&marker).await;
    let marker = bench.store.marker(&event("telegram:1:2")).await.unwrap().unwrap();
    assert_eq!(marker.owed(), [Owed::Final, Owed::Unknown]);
}
