//! The session head: the lock and its fence, stops, and the commit that either happened or did not.

use std::time::Duration;

use turnlock_domain::commit::{Draft, Written};
use turnlock_domain::envelope::Position;
use turnlock_domain::message::Message;
use turnlock_domain::time::Millis;
use turnlock_domain::turn::{Outcome, Owed, Usage};
use turnlock_store::Store;
use turnlock_store::journal::{CallOutcome, CallResult, ResultSlot, Step, StepWritten};
use turnlock_store::keys;
use turnlock_store::sessions::{Acquire, Acquired, CommitRefused, Head, HeadChange, Lock, Release, Renewed};

use crate::bench::{Bench, NOW, event, session};

const LEASE: Duration = Duration::from_secs(60);

async fn acquire(store: &Store, id: &str, owner: &str) -> Acquired {
    acquire_as(store, id, owner, false).await
}

async fn acquire_as(store: &Store, id: &str, owner: &str, dead_letter: bool) -> Acquired {
    let want = Acquire {
        session: &session(),
        event: &event(id),
        accepted_at: NOW,
        position: &Position::new(NOW, "1"),
        route: "{}",
        owner,
        lease: LEASE,
        dead_letter,
    };
    store.acquire(&want).await.unwrap()
}

async fn mine(store: &Store, id: &str, owner: &str) -> (Lock, Head) {
    match acquire(store, id, owner).await {
        Acquired::Mine(lock, head) => (lock, *head),
        Acquired::Busy(head) => panic!("busy: {head:?}"),
    }
}

pub(crate) fn draft(lock: &Lock, first: u64) -> Draft {
    Draft {
        event_id: lock.event.clone(),
        session: lock.session.clone(),
        generation: 0,
        fence: lock.fence,
        first,
        messages: vec![Message::user("hi"), Message::assistant("hello")],
        outcome: Outcome::Replied,
        usage: Usage::default(),
        calls: Vec::new(),
        owed: vec![Owed::Final],
        merged: Vec::new(),
        at: NOW,
    }
}

pub(crate) fn place(millis: i64) -> Position {
    Position::new(Millis(millis), "1")
}

async fn commit(store: &Store, draft: &Draft, lock: &Lock) -> Written<CommitRefused> {
    store.commit(draft, lock, Some(&place(5)), &HeadChange::default()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_plain_turn_is_acquired_and_committed_in_two_requests() {
    let bench = Bench::new().await;
    let (lock, head) = mine(&bench.store, "e1", "a").await;
    assert_eq!((lock.fence, head.attempts, head.message_count), (1, 1, 0));
    assert!(matches!(commit(&bench.store, &draft(&lock, 0), &lock).await, Written::Committed));
    assert_eq!(bench.forget_requests(), ["UpdateItem", "TransactWriteItems"]);
    let head = bench.store.head(&session()).await.unwrap().unwrap();
    assert_eq!((head.owner, head.unfinished, head.attempts, head.message_count), (None, None, 0, 2));
    let turns = bench.store.history(&session(), 0, 0).await.unwrap();
    assert_eq!(turns[0].messages, draft(&lock, 0).messages);
    let marker = bench.store.marker(&event("e1")).await.unwrap().unwrap();
    assert_eq!((marker.fence(), marker.range()), (1, (0, 0, 2)));
}

/// Case ddb-session-overlap: the second worker finds the lock.
#[tokio::test(start_paused = true)]
async fn ddb_session_overlap() {
    let bench = Bench::new().await;
    mine(&bench.store, "e1", "a").await;
    let Acquired::Busy(head) = acquire(&bench.other, "e2", "b").await else { panic!("two writers") };
    assert_eq!(head.owner.as_deref(), Some("a"));
    let Acquired::Busy(_) = acquire(&bench.other, "e1", "b").await else { panic!("two writers") };
}

/// Cases ddb-lock-never-stolen, ddb-lock-wait-lease, ddb-lock-doc-lease: the end of a lease is absolute in the item; a
/// dead holder's lock is taken 5 s after it, by the first who tries, whenever that is.
#[tokio::test(start_paused = true)]
async fn ddb_lock_never_stolen_and_ddb_lock_wait_lease_and_ddb_lock_doc_lease() {
    let bench = Bench::new().await;
    mine(&bench.store, "e1", "dead").await;
    tokio::time::advance(Duration::from_secs(64)).await;
    assert!(matches!(acquire(&bench.other, "e1", "b").await, Acquired::Busy(_)));
    tokio::time::advance(Duration::from_millis(1001)).await;
    let (lock, head) = mine(&bench.other, "e1", "b").await;
    assert_eq!((lock.fence, head.attempts), (2, 2));
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert_eq!(mine(&bench.store, "e1", "c").await.0.fence, 3);
}

/// Case ddb-lock-no-fence: a holder that wakes after its lease was taken writes nothing.
#[tokio::test(start_paused = true)]
async fn ddb_lock_no_fence() {
    let bench = Bench::new().await;
    let (late, _) = mine(&bench.store, "e1", "a").await;
    tokio::time::advance(Duration::from_secs(300)).await;
    let (lock, _) = mine(&bench.other, "e1", "b").await;
    assert!(matches!(commit(&bench.store, &draft(&late, 0), &late).await, Written::Refused(CommitRefused::LockLost)));
    assert!(matches!(bench.store.renew(&late, LEASE).await.unwrap(), Renewed::Lost));
    let step = Step { step: 1, ..Step::default() };
    assert_eq!(bench.store.write_step(&late, &place(5), &step, LEASE).await.unwrap(), StepWritten::LockLost);
    assert!(matches!(commit(&bench.other, &draft(&lock, 0), &lock).await, Written::Committed));
    let refused = commit(&bench.store, &draft(&late, 0), &late).await;
    let Written::Refused(CommitRefused::AlreadyCommitted(marker)) = refused else { panic!("{refused:?}") };
    assert_eq!(marker.fence(), 2);
    assert_eq!(bench.store.history(&session(), 0, 0).await.unwrap().len(), 1);
}

/// Case ddb-own-retry: a repetition after a lost answer finds its own write, in every write under the lock.
#[tokio::test(start_paused = true)]
async fn ddb_own_retry() {
    let bench = Bench::new().await;
    bench.lose("UpdateItem");
    let (lock, head) = mine(&bench.store, "e1", "a").await;
    assert_eq!((lock.fence, head.attempts), (1, 1), "acquired once");
    let step = Step { step: 1, ..Step::default() };
    bench.lose("TransactWriteItems");
    assert_eq!(bench.store.write_step(&lock, &place(5), &step, LEASE).await.unwrap(), StepWritten::Written);
    let result = CallResult { content: Vec::new(), is_error: false, outcome: CallOutcome::Ok };
    bench.lose("PutItem");
    assert_eq!(bench.store.write_result(&lock, 1, 0, &result).await.unwrap(), ResultSlot::Mine);
    bench.lose("TransactWriteItems");
    assert!(matches!(commit(&bench.store, &draft(&lock, 0), &lock).await, Written::Committed));
    // Ten minutes later DynamoDB no longer knows the token, and a new process has the same draft.
    assert!(matches!(commit(&bench.other, &draft(&lock, 0), &lock).await, Written::Committed));
    assert_eq!(bench.store.head(&session()).await.unwrap().unwrap().message_count, 2);
}

/// Case ddb-timeout-repeat (the store's half): a result's slot is written once, whoever comes first.
#[tokio::test(start_paused = true)]
async fn ddb_timeout_repeat_and_a_slot_is_written_once() {
    let bench = Bench::new().await;
    let (late, _) = mine(&bench.store, "e1", "a").await;
    tokio::time::advance(Duration::from_secs(300)).await;
    let (lock, _) = mine(&bench.other, "e1", "b").await;
    let unknown = CallResult { content: Vec::new(), is_error: true, outcome: CallOutcome::Unknown };
    assert_eq!(bench.other.write_result(&lock, 1, 0, &unknown).await.unwrap(), ResultSlot::Mine);
    let ran = CallResult { content: Vec::new(), is_error: false, outcome: CallOutcome::Ok };
    assert_eq!(bench.store.write_result(&late, 1, 0, &ran).await.unwrap(), ResultSlot::Taken(unknown));
}

/// Trace V4, the store's half: a stop that is stored is not overtaken by a step or a commit.
#[tokio::test(start_paused = true)]
async fn v4_a_stored_stop_refuses_the_step_and_the_commit() {
    let bench = Bench::new().await;
    let (lock, _) = mine(&bench.store, "e1", "a").await;
    bench.other.stop(&session(), &place(6)).await.unwrap();
    let step = Step { step: 1, ..Step::default() };
    assert_eq!(bench.store.write_step(&lock, &place(5), &step, LEASE).await.unwrap(), StepWritten::Stopped);
    let refused = commit(&bench.store, &draft(&lock, 0), &lock).await;
    assert!(matches!(refused, Written::Refused(CommitRefused::Stopped)), "{refused:?}");
    let stopped = Draft { outcome: Outcome::Stopped, ..draft(&lock, 0) };
    let written = bench.store.commit(&stopped, &lock, None, &HeadChange::default()).await.unwrap();
    assert!(matches!(written, Written::Committed));
    // What is sent later is not touched, and an earlier stop does not move the stored one back.
    let (lock, _) = mine(&bench.store, "e2", "a").await;
    bench.other.stop(&session(), &place(4)).await.unwrap();
    assert_eq!(bench.store.head(&session()).await.unwrap().unwrap().stop_before, Some(place(6)));
    let written = bench.store.commit(&draft(&lock, 2), &lock, Some(&place(6)), &HeadChange::default()).await.unwrap();
    assert!(matches!(written, Written::Committed));
}

/// Trace V1, the store's half: what a late acquire of a committed event leaves behind is cleared.
#[tokio::test(start_paused = true)]
async fn v1_a_leftover_unfinished_event_is_cleared_when_the_lock_is_free() {
    let bench = Bench::new().await;
    mine(&bench.store, "e1", "dead").await;
    assert!(matches!(acquire(&bench.other, "e2", "b").await, Acquired::Busy(_)));
    bench.other.clear_unfinished(&session(), &event("e1")).await.unwrap();
    assert!(matches!(acquire(&bench.other, "e2", "b").await, Acquired::Busy(_)), "the lease still holds");
    tokio::time::advance(Duration::from_secs(66)).await;
    let Acquired::Busy(head) = acquire(&bench.other, "e2", "b").await else { panic!("e1 is unfinished") };
    assert_eq!(head.unfinished, Some(event("e1")));
    bench.other.clear_unfinished(&session(), &event("e1")).await.unwrap();
    mine(&bench.other, "e2", "b").await;
}

/// Trace V2, the store's half: a dead letter takes the lock whatever is unfinished, and leaves it unfinished.
#[tokio::test(start_paused = true)]
async fn v2_a_dead_letter_is_not_blocked_by_another_unfinished_event() {
    let bench = Bench::new().await;
    mine(&bench.store, "e2", "dead").await;
    tokio::time::advance(Duration::from_secs(66)).await;
    let Acquired::Mine(lock, head) = acquire_as(&bench.other, "e1", "b", true).await else { panic!("blocked") };
    assert_eq!(head.unfinished, Some(event("e2")));
    let change = HeadChange { keep_unfinished: true, ..HeadChange::default() };
    let written = bench.other.commit(&draft(&lock, 0), &lock, None, &change).await.unwrap();
    assert!(matches!(written, Written::Committed));
    let head = bench.store.head(&session()).await.unwrap().unwrap();
    assert_eq!((head.unfinished, head.owner), (Some(event("e2")), None));
}

/// Trace V3, the store's half: busy receives are noted without the lock.
#[tokio::test(start_paused = true)]
async fn v3_busy_receives_are_noted_on_the_head() {
    let bench = Bench::new().await;
    mine(&bench.store, "e1", "a").await;
    bench.other.note_receives(&session(), &event("e2"), 9).await.unwrap();
    let Acquired::Busy(head) = acquire(&bench.other, "e2", "b").await else { panic!("two writers") };
    assert_eq!((head.noted(&event("e2")), head.noted(&event("e1"))), (9, 0));
}

/// Trace V3: what is noted of an event that waits outlives the one in front of it, however that one is finished.
#[tokio::test(start_paused = true)]
async fn v3_what_is_noted_of_an_event_that_waits_outlives_the_one_in_its_way() {
    for finished in ["cleared", "released", "committed"] {
        let bench = Bench::new().await;
        let (lock, _) = mine(&bench.store, "e1", "a").await;
        bench.other.note_receives(&session(), &event("e2"), 12).await.unwrap();
        match finished {
            "cleared" => {
                tokio::time::advance(Duration::from_secs(66)).await;
                bench.other.clear_unfinished(&session(), &event("e1")).await.unwrap();
            }
            "released" => {
                bench.store.release(&lock, Release { finished: true, ..Release::default() }).await.unwrap();
            }
            _ => assert!(matches!(commit(&bench.store, &draft(&lock, 0), &lock).await, Written::Committed)),
        }
        let (_, head) = mine(&bench.other, "e2", "b").await;
        assert_eq!(head.noted(&event("e2")), 12, "{finished}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hand_back_keeps_the_event_and_counts_unless_there_was_progress() {
    let bench = Bench::new().await;
    for (owner, attempts, reset) in [("a", 1, false), ("b", 2, true), ("c", 1, false)] {
        let (lock, head) = mine(&bench.store, "e1", owner).await;
        assert_eq!(head.attempts, attempts);
        let how = Release { finished: false, reset_attempts: reset, receives: Some(3), unstarted: None };
        bench.store.release(&lock, how).await.unwrap();
    }
    let head = bench.store.head(&session()).await.unwrap().unwrap();
    assert_eq!((head.owner.clone(), head.unfinished.clone()), (None, Some(event("e1"))));
    assert_eq!(head.noted(&event("e1")), 3);
    let (lock, _) = mine(&bench.store, "e1", "d").await;
    bench.store.release(&lock, Release { finished: true, ..Release::default() }).await.unwrap();
    let head = bench.store.head(&session()).await.unwrap().unwrap();
    assert_eq!((head.unfinished, head.attempts), (None, 0));
}

/// The lease begins anew with a renewal and with a step.
#[tokio::test(start_paused = true)]
async fn a_renewal_and_a_step_keep_the_lock_for_a_whole_lease() {
    let bench = Bench::new().await;
    let (lock, _) = mine(&bench.store, "e1", "a").await;
    tokio::time::advance(Duration::from_secs(40)).await;
    assert!(matches!(bench.store.renew(&lock, LEASE).await.unwrap(), Renewed::Kept(_)));
    tokio::time::advance(Duration::from_secs(59)).await;
    assert!(matches!(acquire(&bench.other, "e1", "b").await, Acquired::Busy(_)));
    let step = Step { step: 1, ..Step::default() };
    assert_eq!(bench.store.write_step(&lock, &place(5), &step, LEASE).await.unwrap(), StepWritten::Written);
    tokio::time::advance(Duration::from_secs(59)).await;
    assert!(matches!(acquire(&bench.other, "e1", "b").await, Acquired::Busy(_)));
    tokio::time::advance(Duration::from_secs(7)).await;
    mine(&bench.other, "e1", "b").await;
}

/// Traces V1 and V2, the store's half: whoever finishes one event leaves another one unfinished that came meanwhile.
#[tokio::test(start_paused = true)]
async fn v2_only_the_event_that_is_named_is_finished() {
    let bench = Bench::new().await;
    mine(&bench.store, "e2", "dead").await;
    tokio::time::advance(Duration::from_secs(66)).await;
    bench.other.clear_unfinished(&session(), &event("e1")).await.unwrap();
    assert_eq!(bench.store.head(&session()).await.unwrap().unwrap().unfinished, Some(event("e2")));
    let Acquired::Mine(lock, _) = acquire_as(&bench.other, "e1", "b", true).await else { panic!("blocked") };
    bench.other.release_dead_letter(&lock).await.unwrap();
    let head = bench.store.head(&session()).await.unwrap().unwrap();
    assert_eq!((head.unfinished, head.owner), (Some(event("e2")), None));
}

/// Case ddb-400k-image: text above an item's limit is cut into parts and read back whole.
#[tokio::test(start_paused = true)]
async fn ddb_400k_image_a_turn_above_400_kb_is_stored_in_parts() {
    let bench = Bench::new().await;
    let (lock, _) = mine(&bench.store, "e1", "a").await;
    let long = "grüße 你好 🎩 ".repeat(60_000);
    let draft = Draft { messages: vec![Message::user(&long), Message::assistant("ok")], ..draft(&lock, 0) };
    assert!(matches!(commit(&bench.store, &draft, &lock).await, Written::Committed));
    assert_eq!(bench.store.history(&session(), 0, 0).await.unwrap()[0].messages, draft.messages);
}

/// Case ddb-empty-key: an absent part of a key is no part, and no key attribute is ever empty.
#[test]
fn ddb_empty_key() {
    use turnlock_domain::session::SessionKey;
    let session = SessionKey::new("telegram", "main", "1000001", Some(""));
    for (pk, sk) in [keys::head(&session), keys::bucket(&session), keys::fact("chat:x", "k"), keys::chat("telegram:1")]
    {
        assert!(!pk.is_empty() && !sk.is_empty());
    }
    assert_eq!(keys::head(&session).0, "S#telegram:1000001");
}

/// A journal larger than a page of DynamoDB is read whole.
#[tokio::test(start_paused = true)]
async fn a_journal_above_one_megabyte_is_read_whole() {
    let bench = Bench::new().await;
    let (lock, _) = mine(&bench.store, "e1", "a").await;
    let content = vec![turnlock_domain::message::Block::text("x".repeat(16_000))];
    let result = CallResult { content, is_error: false, outcome: CallOutcome::Ok };
    for call in 0..80 {
        bench.store.write_result(&lock, 1, call, &result).await.unwrap();
    }
    assert_eq!(bench.store.journal(&session(), &event("e1")).await.unwrap().results.len(), 80);
}

/// A process that was stopped in the middle is no attempt of its turns; its successor goes on at once.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_ended_at_start_is_no_attempt() {
    let bench = Bench::new().await;
    for _ in 0..8 {
        let (_, head) = mine(&bench.store, "e1", "a").await;
        assert_eq!(head.attempts, 1);
        assert!(bench.other.end_lease(&session()).await.unwrap());
        assert!(!bench.other.end_lease(&session()).await.unwrap());
    }
}

/// Without messages there is no turn's item between the event's marker and those of the texts.
#[tokio::test(start_paused = true)]
async fn a_text_that_was_answered_is_named_whether_the_turn_has_messages_or_not() {
    let bench = Bench::new().await;
    let (lock, _) = crate::approvals::taken(&bench.store, "telegram:1:2", &place(5)).await;
    let answered = Draft { event_id: event("telegram:1:3"), ..draft(&lock, 0) };
    bench.store.put_marker(&answered).await.unwrap();
    for messages in [Vec::new(), draft(&lock, 0).messages] {
        let draft = Draft { merged: vec![event("telegram:1:3")], messages, ..draft(&lock, 0) };
        let refused = bench.store.commit(&draft, &lock, None, &HeadChange::default()).await.unwrap();
        let Written::Refused(CommitRefused::MergedBefore(before)) = refused else { panic!("{refused:?}") };
        assert_eq!(before, event("telegram:1:3"));
    }
}
