//! Calls that wait for a person: parked, asleep, decided, used. V5 to V8 are traces of the protocol check.

use std::time::Duration;

use serde_json::Value;
use turnlock_domain::commit::{Draft, Written};
use turnlock_domain::envelope::Position;
use turnlock_domain::event::{Channel, Place};
use turnlock_domain::message::Block;
use turnlock_domain::time::Millis;
use turnlock_domain::turn::{Failure, Outcome};
use turnlock_store::approvals::{Approval, ApprovalState, Decided, Decision, Sleeper, Slept, Use, Verdict};
use turnlock_store::journal::{CallOutcome, CallResult, StepWritten};
use turnlock_store::sessions::{Acquire, Acquired, CommitRefused, Head, HeadChange, Lock, Release};
use turnlock_store::{MARKER_LIFETIME, Store, keys};

use crate::bench::{Bench, NOW, event, session};
use crate::sessions::{draft, place};

const EXPIRY: Duration = Duration::from_secs(3600);
const BY: &str = "telegram:1000001";

/// The session's lock for the event `id` at `position`.
pub(crate) async fn taken(store: &Store, id: &str, position: &Position) -> (Lock, Head) {
    let want = Acquire {
        session: &session(),
        event: &event(id),
        accepted_at: NOW,
        position,
        route: "{}",
        owner: &store.write_name(),
        lease: Duration::from_secs(60),
        dead_letter: false,
    };
    match store.acquire(&want).await.unwrap() {
        Acquired::Mine(lock, head) => (lock, *head),
        Acquired::Busy(head) => panic!("busy: {head:?}"),
    }
}

pub(crate) fn approval(id: &str, call: u32) -> Approval {
    Approval {
        id: id.to_owned(),
        session: session(),
        event_id: event("telegram:1:2"),
        step: 1,
        call,
        tool: "pay".to_owned(),
        input: r#"{"amount":3}"#.to_owned(),
        digest: "d1".to_owned(),
        asked_by: BY.to_owned(),
        place: Place {
            channel: Channel::Telegram,
            account: "main".to_owned(),
            chat_id: "1000001".to_owned(),
            thread_id: None,
        },
        asked_at: NOW,
        closes_at: NOW + EXPIRY,
        state: ApprovalState::Open,
        decided_by: None,
    }
}

pub(crate) fn decision(verdict: Verdict, at: Millis) -> Decision {
    Decision { verdict, by: BY.to_owned(), at, command: None }
}

pub(crate) fn sleeper(receives: u32) -> Sleeper<'static> {
    Sleeper { receipt: "receipt", receives }
}

/// A parked turn of the event at 5 that waits for `a1`.
async fn parked() -> Bench {
    let bench = Bench::new().await;
    let (lock, _) = taken(&bench.store, "telegram:1:2", &place(5)).await;
    let written = bench.store.park(&lock, &place(5), &approval("a1", 0), sleeper(1)).await.unwrap();
    assert_eq!(written, StepWritten::Written);
    bench
}

async fn again(bench: &Bench) -> (Lock, Head) {
    taken(&bench.other, "telegram:1:2", &place(5)).await
}

async fn head(bench: &Bench) -> Head {
    bench.store.head(&session()).await.unwrap().unwrap()
}

async fn state(bench: &Bench, id: &str) -> (ApprovalState, Option<String>) {
    let approval = bench.store.approval(id).await.unwrap().unwrap();
    (approval.state, approval.decided_by)
}

fn refusal() -> CallResult {
    CallResult { content: vec![Block::text("Not allowed.")], is_error: true, outcome: CallOutcome::Refused }
}

async fn commit(bench: &Bench, lock: &Lock, outcome: Outcome, state: ApprovalState) -> Written<CommitRefused> {
    let change = HeadChange { ask_ended: Some(("a1".to_owned(), state)), ..HeadChange::default() };
    let draft = Draft { outcome, ..draft(lock, 0) };
    bench.other.commit(&draft, lock, None, &change).await.unwrap()
}

fn expired() -> Outcome {
    Outcome::Failed { reason: Failure::ApprovalExpired }
}

#[tokio::test(start_paused = true)]
async fn parking_is_one_request_and_releases_the_lock() {
    let bench = parked().await;
    assert_eq!(bench.forget_requests(), ["UpdateItem", "TransactWriteItems"]);
    let head = head(&bench).await;
    assert_eq!((head.owner.clone(), head.unfinished.clone()), (None, Some(event("telegram:1:2"))));
    assert_eq!((head.ask.clone(), head.waits_for("a1")), (Some(approval("a1", 0).ask()), true));
    assert_eq!((head.receipt.as_deref(), head.receipt_receives, head.attempts), (Some("receipt"), 1, 0));
    assert_eq!(head.noted(&event("telegram:1:2")), 1);
    assert_eq!(bench.store.approval("a1").await.unwrap(), Some(approval("a1", 0)));
}

/// Trace V5: an approval is used once. The successor of whoever used it knows that the call may have run.
#[tokio::test(start_paused = true)]
async fn v5_a_decision_is_used_once_and_leaves_the_sign_that_the_call_was_started() {
    let bench = parked().await;
    bench.store.decide(&approval("a1", 0), &decision(Verdict::Allow, NOW)).await.unwrap();
    let (lock, head) = again(&bench).await;
    let ask = head.ask_of(&lock).unwrap().clone();
    assert_eq!(ask.decision, Some(decision(Verdict::Allow, NOW)));
    assert!(bench.store.journal(&session(), &lock.event).await.unwrap().started.is_empty());
    bench.lose("TransactWriteItems");
    let used = bench.other.use_decision(&lock, &place(5), &ask, Use::Start).await.unwrap();
    assert_eq!(used, StepWritten::Written);
    let journal = bench.store.journal(&session(), &lock.event).await.unwrap();
    assert_eq!(journal.started.into_iter().collect::<Vec<_>>(), [(1, 0)]);
    tokio::time::advance(Duration::from_secs(66)).await;
    let (successor, head) = again(&bench).await;
    assert_eq!((head.ask_of(&successor), head.waited_until), (None, Some(NOW)));
    bench.other.use_decision(&successor, &place(5), &ask, Use::Start).await.expect_err("it is used");
}

/// Trace V5: nothing starts without an allowance.
#[tokio::test(start_paused = true)]
async fn v5_no_call_is_started_without_an_allowance() {
    let bench = parked().await;
    let (lock, head) = again(&bench).await;
    let ask = head.ask_of(&lock).unwrap().clone();
    bench.other.use_decision(&lock, &place(5), &ask, Use::Start).await.unwrap_err();
    bench.store.decide(&approval("a1", 0), &decision(Verdict::Deny, NOW)).await.unwrap();
    // That the lock is held, and no stop there, is no lost lock.
    let error = bench.other.use_decision(&lock, &place(5), &ask, Use::Start).await.unwrap_err();
    assert!(error.to_string().contains("a1") && !error.is_transient(), "{error}");
    assert!(bench.store.journal(&session(), &lock.event).await.unwrap().started.is_empty());
}

/// A denial goes into the call's slot in the transaction that uses it.
#[tokio::test(start_paused = true)]
async fn v5_a_denial_is_the_calls_result() {
    let bench = parked().await;
    bench.store.decide(&approval("a1", 0), &decision(Verdict::Deny, NOW)).await.unwrap();
    let (lock, head) = again(&bench).await;
    let ask = head.ask_of(&lock).unwrap().clone();
    bench.lose("TransactWriteItems");
    let used = bench.other.use_decision(&lock, &place(5), &ask, Use::Refuse(&refusal())).await.unwrap();
    assert_eq!(used, StepWritten::Written);
    let journal = bench.store.journal(&session(), &lock.event).await.unwrap();
    assert_eq!((journal.results.get(&(1, 0)), journal.started.len()), (Some(&refusal()), 0));
    assert_eq!(state(&bench, "a1").await, (ApprovalState::Denied, Some(BY.to_owned())));
}

/// Trace V6 (a): neither sleeping nor being woken is an attempt, however often.
#[tokio::test(start_paused = true)]
async fn v6_sleeping_is_no_attempt() {
    let bench = parked().await;
    for receives in 2..40 {
        let (lock, head) = again(&bench).await;
        assert_eq!(head.attempts, 1);
        if receives == 2 {
            bench.lose("UpdateItem");
        }
        let slept = bench.other.sleep(&lock, &place(5), "a1", sleeper(receives)).await.unwrap();
        assert_eq!(slept, Slept::Asleep);
    }
    let head = head(&bench).await;
    assert_eq!((head.owner.clone(), head.noted(&event("telegram:1:2")), head.receipt_receives), (None, 39, 39));
}

/// Trace V6 (a): what was tried before the decision does not count after it.
#[tokio::test(start_paused = true)]
async fn v6_attempts_begin_anew_with_a_decision() {
    let bench = parked().await;
    for attempts in 1..4 {
        let (lock, head) = again(&bench).await;
        assert_eq!(head.attempts, attempts);
        bench.other.release(&lock, Release::default()).await.unwrap();
    }
    bench.store.decide(&approval("a1", 0), &decision(Verdict::Allow, NOW)).await.unwrap();
    assert_eq!(again(&bench).await.1.attempts, 1);
}

/// Trace V6 (b): the time that a turn waits for a person is nobody's wait.
#[tokio::test(start_paused = true)]
async fn v6_an_age_counts_from_the_decision_or_the_expiry() {
    let bench = parked().await;
    let parked = head(&bench).await;
    assert_eq!(parked.waits_since(NOW), NOW + EXPIRY, "while it waits it cannot be too old");
    let at = NOW + Duration::from_secs(1800);
    bench.store.decide(&approval("a1", 0), &decision(Verdict::Allow, at)).await.unwrap();
    let (lock, decided) = again(&bench).await;
    assert_eq!(decided.waits_since(NOW), at);
    let ask = decided.ask_of(&lock).unwrap();
    bench.other.use_decision(&lock, &place(5), ask, Use::Start).await.unwrap();
    assert_eq!(head(&bench).await.waits_since(NOW), at, "and so it stays");
    bench.other.commit(&draft(&lock, 0), &lock, None, &HeadChange::default()).await.unwrap();
    let done = head(&bench).await;
    assert_eq!(
        (done.ask.clone(), done.waited_until, done.receipt.clone(), done.receipt_receives),
        (None, None, None, 0)
    );
}

/// A worker that is late does not take the place of the receive after it.
#[tokio::test(start_paused = true)]
async fn the_later_receipt_stays() {
    let bench = parked().await;
    let (lock, head) = again(&bench).await;
    let later = Sleeper { receipt: "later", receives: 3 }.or_later(&head);
    bench.other.sleep(&lock, &place(5), "a1", later).await.unwrap();
    let (lock, head) = again(&bench).await;
    let late = Sleeper { receipt: "earlier", receives: 2 }.or_later(&head);
    bench.other.sleep(&lock, &place(5), "a1", late).await.unwrap();
    let head = bench.store.head(&session()).await.unwrap().unwrap();
    assert_eq!((head.receipt.as_deref(), head.receipt_receives), (Some("later"), 3));
}

/// Trace V7: a decision that was stored is not answered with "expired", however late the worker commits.
#[tokio::test(start_paused = true)]
async fn v7_an_expiry_is_not_committed_over_a_decision() {
    let bench = parked().await;
    tokio::time::advance(EXPIRY).await;
    let (lock, head) = again(&bench).await;
    assert!(head.waits_for("a1"));
    let last = approval("a1", 0).closes_at - Duration::from_millis(1);
    let decided = bench.store.decide(&approval("a1", 0), &decision(Verdict::Allow, last)).await.unwrap();
    assert!(matches!(decided, Decided::Stored(_)), "{decided:?}");
    for (outcome, ended) in [(expired(), ApprovalState::Expired), (Outcome::Stopped, ApprovalState::Stopped)] {
        let refused = commit(&bench, &lock, outcome, ended).await;
        assert!(matches!(refused, Written::Refused(CommitRefused::Decided)), "{refused:?}");
    }
    assert_eq!(state(&bench, "a1").await, (ApprovalState::Allowed, Some(BY.to_owned())));
    let slept = bench.other.sleep(&lock, &place(5), "a1", sleeper(2)).await.unwrap();
    assert_eq!(slept, Slept::Awake, "the lock is still held: it looks again");
}

/// Trace V7, the other way round: after the expiry nobody decides, whoever is first to notice.
#[tokio::test(start_paused = true)]
async fn v7_nobody_decides_after_the_expiry() {
    let bench = parked().await;
    let closes = approval("a1", 0).closes_at;
    let late = bench.store.decide(&approval("a1", 0), &decision(Verdict::Allow, closes)).await.unwrap();
    assert_eq!(late, Decided::Expired);
    tokio::time::advance(EXPIRY).await;
    let (lock, _) = again(&bench).await;
    bench.lose("TransactWriteItems");
    let written = commit(&bench, &lock, expired(), ApprovalState::Expired).await;
    assert!(matches!(written, Written::Committed), "{written:?}");
    assert_eq!(state(&bench, "a1").await, (ApprovalState::Expired, None));
    let gone = bench.store.decide(&approval("a1", 0), &decision(Verdict::Allow, NOW)).await.unwrap();
    assert_eq!(gone, Decided::Gone);
    assert_eq!(state(&bench, "a1").await.0, ApprovalState::Expired);
}

/// Trace V8: after a stop nothing is decided, nothing is started, and nobody goes to sleep.
#[tokio::test(start_paused = true)]
async fn v8_after_a_stop_a_decision_is_refused_and_nobody_sleeps() {
    let bench = parked().await;
    bench.store.stop(&session(), &place(6)).await.unwrap();
    let decided = bench.store.decide(&approval("a1", 0), &decision(Verdict::Allow, NOW)).await.unwrap();
    assert_eq!(decided, Decided::Stopped);
    assert_eq!(state(&bench, "a1").await.0, ApprovalState::Open);
    let (lock, _) = again(&bench).await;
    let slept = bench.other.sleep(&lock, &place(5), "a1", sleeper(2)).await.unwrap();
    assert_eq!(slept, Slept::Awake);
    let written = commit(&bench, &lock, Outcome::Stopped, ApprovalState::Stopped).await;
    assert!(matches!(written, Written::Committed));
    assert_eq!(state(&bench, "a1").await.0, ApprovalState::Stopped);
}

/// Trace V8: a stop between the decision and its use; and one before the turn is parked.
#[tokio::test(start_paused = true)]
async fn v8_a_stop_refuses_the_use_of_a_decision_and_the_parking() {
    let bench = parked().await;
    bench.store.decide(&approval("a1", 0), &decision(Verdict::Allow, NOW)).await.unwrap();
    let (lock, head) = again(&bench).await;
    bench.store.stop(&session(), &place(6)).await.unwrap();
    let ask = head.ask_of(&lock).unwrap().clone();
    let used = bench.other.use_decision(&lock, &place(5), &ask, Use::Start).await.unwrap();
    assert_eq!(used, StepWritten::Stopped);

    let bench = Bench::new().await;
    let (lock, _) = taken(&bench.store, "telegram:1:2", &place(5)).await;
    bench.store.stop(&session(), &place(6)).await.unwrap();
    let parked = bench.store.park(&lock, &place(5), &approval("a1", 0), sleeper(1)).await.unwrap();
    assert_eq!(parked, StepWritten::Stopped);
    assert_eq!(bench.store.approval("a1").await.unwrap(), None);
}

/// A stop that was sent before the event does not touch it.
#[tokio::test(start_paused = true)]
async fn v8_an_earlier_stop_keeps_nobody_from_deciding() {
    let bench = parked().await;
    bench.store.stop(&session(), &place(4)).await.unwrap();
    let (lock, _) = again(&bench).await;
    let slept = bench.other.sleep(&lock, &place(5), "a1", sleeper(2)).await.unwrap();
    assert_eq!(slept, Slept::Asleep);
    let decided = bench.store.decide(&approval("a1", 0), &decision(Verdict::Allow, NOW)).await.unwrap();
    assert!(matches!(decided, Decided::Stored(_)), "{decided:?}");
}

#[tokio::test(start_paused = true)]
async fn lost_answers_of_parking_and_deciding_are_recognised() {
    let bench = Bench::new().await;
    let (lock, _) = taken(&bench.store, "telegram:1:2", &place(5)).await;
    bench.lose("TransactWriteItems");
    for _ in 0..2 {
        let parked = bench.store.park(&lock, &place(5), &approval("a1", 0), sleeper(1)).await.unwrap();
        assert_eq!(parked, StepWritten::Written);
    }
    bench.lose("TransactWriteItems");
    for seconds in [0, 0, 9] {
        let at = NOW + Duration::from_secs(seconds);
        let decided = bench.store.decide(&approval("a1", 0), &decision(Verdict::Allow, at)).await.unwrap();
        let Decided::Stored(head) = decided else { panic!("{decided:?}") };
        assert_eq!(head.receipt.as_deref(), Some("receipt"), "by which the turn is woken");
        assert_eq!(head.ask.unwrap().decision, Some(decision(Verdict::Allow, NOW)), "the first one stands");
    }
}

/// A parked turn is only taken over by whoever holds its lock: who lost it neither parks nor sleeps.
#[tokio::test(start_paused = true)]
async fn who_lost_the_lock_neither_parks_nor_sleeps() {
    let bench = Bench::new().await;
    let (late, _) = taken(&bench.store, "telegram:1:2", &place(5)).await;
    tokio::time::advance(Duration::from_secs(66)).await;
    let (lock, _) = again(&bench).await;
    let parked = bench.store.park(&late, &place(5), &approval("late", 0), sleeper(1)).await.unwrap();
    assert_eq!(parked, StepWritten::LockLost);
    let parked = bench.other.park(&lock, &place(5), &approval("a1", 0), sleeper(2)).await.unwrap();
    assert_eq!(parked, StepWritten::Written);
    let slept = bench.store.sleep(&late, &place(5), "a1", sleeper(1)).await.unwrap();
    assert_eq!(slept, Slept::LockLost);
    assert_eq!(head(&bench).await.receipt_receives, 2);
}

/// Case se-approval-replay (the store's half): one decision, by whoever is first; what was shown is what is decided.
#[tokio::test(start_paused = true)]
async fn se_approval_replay_the_first_decision_stands() {
    let bench = parked().await;
    let other = Approval { digest: "d2".to_owned(), ..approval("a1", 0) };
    let allow = decision(Verdict::Allow, NOW);
    assert_eq!(bench.store.decide(&other, &allow).await.unwrap(), Decided::Gone);
    assert_eq!(bench.store.decide(&approval("a2", 0), &allow).await.unwrap(), Decided::Gone);
    bench.store.decide(&approval("a1", 0), &allow).await.unwrap();
    let before = Decided::Before { verdict: Verdict::Allow, by: BY.to_owned() };
    let deny = bench.store.decide(&approval("a1", 0), &decision(Verdict::Deny, NOW)).await.unwrap();
    assert_eq!(deny, before);
    let (lock, head) = again(&bench).await;
    let ask = head.ask_of(&lock).unwrap().clone();
    bench.other.use_decision(&lock, &place(5), &ask, Use::Start).await.unwrap();
    // Used or not, who decided is told the same again.
    let repeated = bench.store.decide(&approval("a1", 0), &allow).await.unwrap();
    assert!(matches!(repeated, Decided::Stored(_)), "{repeated:?}");
    let deny = bench.store.decide(&approval("a1", 0), &decision(Verdict::Deny, NOW)).await.unwrap();
    assert_eq!(deny, before);
    assert_eq!(state(&bench, "a1").await.0, ApprovalState::Allowed);
}

/// Open approvals, those that close first in front; decided and expired ones are left out.
#[tokio::test(start_paused = true)]
async fn open_approvals_are_listed() {
    let bench = Bench::new().await;
    let mut ids = Vec::new();
    for minutes in [30, 10, 20, 40] {
        let closes_at = NOW + Duration::from_secs(minutes * 60);
        let id = bench.store.approval_id(closes_at);
        let own = format!("e{minutes}");
        let (lock, _) = taken(&bench.store, &own, &place(5)).await;
        let approval = Approval { closes_at, event_id: event(&own), ..approval(&id, 0) };
        bench.store.park(&lock, &place(5), &approval, sleeper(1)).await.unwrap();
        if minutes == 40 {
            bench.store.decide(&approval, &decision(Verdict::Deny, NOW)).await.unwrap();
        }
        let (lock, head) = taken(&bench.other, &own, &place(5)).await;
        let ask = head.ask_of(&lock).unwrap().clone();
        bench.other.use_decision(&lock, &place(5), &ask, Use::Refuse(&refusal())).await.unwrap();
        bench.other.commit(&draft(&lock, head.message_count), &lock, None, &HeadChange::default()).await.unwrap();
        ids.push(id);
    }
    let open = async |minutes: u64, limit| {
        let now = NOW + Duration::from_secs(minutes * 60);
        let open = bench.store.open_approvals(now, limit, |_| true).await.unwrap();
        open.into_iter().map(|approval| approval.id).collect::<Vec<_>>()
    };
    assert_eq!(open(0, 10).await, [ids[1].clone(), ids[2].clone(), ids[0].clone()]);
    assert_eq!(open(0, 1).await, [ids[1].clone()]);
    assert_eq!(open(10, 10).await, [ids[2].clone(), ids[0].clone()]);
    assert!(open(30, 10).await.is_empty());
    let second = bench.store.open_approvals(NOW, 1, |listed| listed.id == ids[2]).await.unwrap();
    assert_eq!((second.len(), &second[0].id), (1, &ids[2]), "what nobody wants takes nobody's place");
    assert_eq!(bench.item(keys::open_approval(&ids[3])).await, None, "what is decided is read no more");
}

/// Of a step that was handed back in the middle, only the next holder of the lock knows what was not started.
#[tokio::test(start_paused = true)]
async fn what_was_not_started_is_known_to_the_next_one_alone() {
    let bench = Bench::new().await;
    let (lock, _) = taken(&bench.store, "telegram:1:2", &place(5)).await;
    let how = Release { unstarted: Some(3), reset_attempts: true, ..Release::default() };
    bench.store.release(&lock, how).await.unwrap();
    let (next, head) = again(&bench).await;
    assert_eq!(head.unstarted_for(&next), Some(3));
    bench.other.release(&next, Release::default()).await.unwrap();
    let (third, head) = again(&bench).await;
    assert_eq!(head.unstarted_for(&third), None);
    let done = Release { finished: true, unstarted: Some(1), ..Release::default() };
    bench.other.release(&third, done).await.unwrap();
    let head = bench.store.head(&session()).await.unwrap().unwrap();
    assert_eq!((head.unfinished, head.unstarted), (None, None));
}

/// A dead letter that overtakes a parked turn leaves it parked.
#[tokio::test(start_paused = true)]
async fn v2_a_dead_letter_leaves_the_turn_that_waits_as_it_is() {
    let bench = parked().await;
    let (session, id, position) = (session(), event("telegram:1:1"), place(3));
    let want = Acquire {
        session: &session,
        event: &id,
        accepted_at: NOW,
        position: &position,
        route: "{}",
        owner: "dead",
        lease: Duration::from_secs(60),
        dead_letter: true,
    };
    let Acquired::Mine(lock, before) = bench.other.acquire(&want).await.unwrap() else { panic!("busy") };
    assert_eq!((before.ask_of(&lock), before.unstarted_for(&lock)), (None, None));
    let change = HeadChange { keep_unfinished: true, ..HeadChange::default() };
    bench.other.commit(&draft(&lock, 0), &lock, None, &change).await.unwrap();
    let after = head(&bench).await;
    assert_eq!((after.unfinished.clone(), after.waits_for("a1")), (Some(event("telegram:1:2")), true));
    assert_eq!(after.receipt.as_deref(), Some("receipt"));
}

/// A version that knows of no asking has committed the turn that asked: what it left on the head is nobody's.
#[tokio::test(start_paused = true)]
async fn what_another_events_turn_asked_is_not_this_ones() {
    let bench = parked().await;
    let mut left = bench.item(keys::head(&session())).await.unwrap();
    for gone in ["unfinished", "unfinished_position", "unfinished_accepted_at", "unfinished_route", "attempts", "step"]
    {
        left.as_object_mut().unwrap().remove(gone);
    }
    left["receipt"] = Value::from("of telegram:1:2");
    left["receipt_receives"] = Value::from(9);
    bench.put(&left).await;
    let (lock, head) = taken(&bench.other, "telegram:1:3", &place(6)).await;
    assert_eq!((head.ask_of(&lock), head.waits_for("a1"), head.waits_since(NOW)), (None, false, NOW));
    assert_eq!(sleeper(1).or_later(&head), sleeper(1));
    let decided = bench.store.decide(&approval("a1", 0), &decision(Verdict::Allow, NOW)).await.unwrap();
    assert_eq!(decided, Decided::Gone);
    let own = Approval { event_id: event("telegram:1:3"), ..approval("a2", 0) };
    let parked = bench.other.park(&lock, &place(6), &own, sleeper(1)).await.unwrap();
    assert_eq!(parked, StepWritten::Written);
    assert!(self::head(&bench).await.waits_for("a2"));
}

/// A turn asks for one call at a time: that it asks for another one is no lost lock.
#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_does_not_wait_for_a_second_call() {
    let bench = parked().await;
    let (lock, _) = again(&bench).await;
    let error = bench.other.park(&lock, &place(5), &approval("a2", 1), sleeper(2)).await.unwrap_err();
    assert!(error.to_string().contains("a2: a1") && !error.is_transient(), "{error}");
}

/// An approval whose item is gone: its end is noted all the same, and what is noted breaks no list and does not stay.
#[tokio::test(start_paused = true)]
async fn the_end_of_an_approval_that_is_gone_is_read_as_none() {
    let bench = parked().await;
    let head = bench.item(keys::head(&session())).await.unwrap();
    let bench = Bench::new().await;
    bench.put(&head).await;
    let decided = bench.store.decide(&approval("a1", 0), &decision(Verdict::Allow, NOW)).await.unwrap();
    assert!(matches!(decided, Decided::Stored(_)), "{decided:?}");
    assert_eq!((bench.store.approval("a1").await.unwrap(), bench.store.approvals(10).await.unwrap()), (None, vec![]));
    let noted = bench.item(keys::approval("a1")).await.unwrap();
    assert_eq!(noted["expires_at"], Value::from(NOW.ttl(MARKER_LIFETIME).0));
}

/// What a later version may write besides: never an allowance.
#[test]
fn a_verdict_of_a_later_version_allows_nothing() {
    let read = |word: &str| serde_json::from_value::<Verdict>(Value::from(word)).unwrap();
    assert_eq!((read("allow"), read("allow_always")), (Verdict::Allow, Verdict::Deny));
}

/// Ids derive from the seed, for replays, and show nothing of what was drawn.
#[tokio::test(start_paused = true)]
async fn an_id_does_not_show_what_was_drawn_for_it() {
    let (first, second, drawn) = (Bench::new().await, Bench::new().await, Bench::new().await);
    let id = first.store.approval_id(NOW);
    assert_eq!((id.len(), second.store.approval_id(NOW)), (11 + 32, id.clone()));
    let drawn = [drawn.store.write_name(), drawn.store.write_name()];
    assert!(drawn.iter().all(|name| !id.ends_with(name)), "{id}");
}
