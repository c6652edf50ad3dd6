//! Texts for a turn that runs: who takes them, and when they go. V9 is a trace of the protocol check.

use std::time::Duration;

use turnlock_domain::commit::{Draft, Written};
use turnlock_domain::turn::Outcome;
use turnlock_store::journal::{Step, StepWritten};
use turnlock_store::sessions::{CommitRefused, Head, HeadChange, Lock, Release};
use turnlock_store::steer::{MAX_TEXT, MAX_TEXTS, SteerText, Steered};

use crate::approvals::taken;
use crate::bench::{Bench, event, session};
use crate::sessions::{draft, place};

/// Whose turns these are.
const WHO: &str = "telegram:7";

/// The text of the event `id`, sent as the `at`-th.
pub(crate) fn text(id: &str, at: i64) -> SteerText {
    SteerText { position: place(at), event_id: event(id), by: WHO.to_owned(), text: format!("{id} says \"hi\"") }
}

async fn steer(bench: &Bench, id: &str, at: i64) -> Steered {
    bench.store.steer(&session(), &text(id, at)).await.unwrap()
}

async fn head(bench: &Bench) -> Head {
    bench.store.head(&session()).await.unwrap().unwrap()
}

/// Commits the lock's event as one that used `used`.
async fn commit(bench: &Bench, (lock, at): (&Lock, i64), used: &[&str], outcome: Outcome) -> Written<CommitRefused> {
    let head = head(bench).await;
    let merged: Vec<_> = used.iter().map(|id| event(id)).collect();
    let change = HeadChange { steer_done: head.steer_done(&place(at), &merged), ..HeadChange::default() };
    let draft = Draft { merged, outcome, ..draft(lock, head.message_count) };
    bench.store.commit(&draft, lock, Some(&place(at)), &change).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_text_reaches_the_turn_that_runs_in_the_order_of_sending() {
    let bench = Bench::new().await;
    assert_eq!(steer(&bench, "m2", 2).await, Steered::NotNow, "nothing runs");
    let (lock, _) = taken(&bench.store, "m1", &place(1)).await;
    bench.forget_requests();
    assert_eq!(steer(&bench, "m3", 3).await, Steered::Added);
    assert_eq!(bench.forget_requests(), ["TransactWriteItems"]);
    bench.lose("TransactWriteItems");
    for _ in 0..2 {
        assert_eq!(steer(&bench, "m2", 2).await, Steered::Added);
    }
    assert_eq!(head(&bench).await.texts_for(&place(1), WHO), [text("m2", 2), text("m3", 3)]);
    // An API client's repetition has a place of its own, and is the same event.
    assert_eq!(steer(&bench, "m2", 4).await, Steered::Added);
    assert_eq!(head(&bench).await.texts_for(&place(1), WHO), [text("m2", 2), text("m3", 3)]);
    bench.lose("TransactWriteItems");
    let committed = commit(&bench, (&lock, 1), &["m2"], Outcome::Replied).await;
    assert!(matches!(committed, Written::Committed), "{committed:?}");
    let merged = bench.store.marker(&event("m2")).await.unwrap().unwrap();
    assert_eq!(*merged.outcome(), Outcome::Merged { into: event("m1") });
    assert!(merged.owed().is_empty());
    assert_eq!(bench.store.marker(&event("m3")).await.unwrap(), None);
    // What was not used waits for a turn before its own; its own takes it away.
    assert_eq!(head(&bench).await.texts_for(&place(2), WHO), [text("m3", 3)]);
    let (lock, head_of_3) = taken(&bench.store, "m3", &place(3)).await;
    assert!(head_of_3.texts_for(&place(3), WHO).is_empty(), "a turn never uses its own");
    commit(&bench, (&lock, 3), &[], Outcome::Replied).await;
    assert!(head(&bench).await.steer.is_empty());
}

/// Trace V9 (a): control is late, the text's own turn runs or has run.
#[tokio::test(start_paused = true)]
async fn v9_a_text_is_not_added_to_its_own_turn_nor_after_it() {
    let bench = Bench::new().await;
    let (lock, _) = taken(&bench.store, "m2", &place(2)).await;
    assert_eq!(steer(&bench, "m2", 2).await, Steered::NotNow);
    commit(&bench, (&lock, 2), &[], Outcome::Replied).await;
    assert_eq!(steer(&bench, "m2", 2).await, Steered::NotNow);
    let (_lock, _) = taken(&bench.store, "m3", &place(3)).await;
    assert_eq!(steer(&bench, "m2", 2).await, Steered::NotNow, "a later turn does not take it");
    assert!(head(&bench).await.steer.is_empty());
}

/// Trace V9 (b): no marker is overwritten; the commit goes without the text that was answered meanwhile.
#[tokio::test(start_paused = true)]
async fn v9_a_text_that_was_answered_meanwhile_is_left_out() {
    let bench = Bench::new().await;
    let (lock, _) = taken(&bench.store, "m1", &place(1)).await;
    for (id, at) in [("m2", 2), ("m3", 3)] {
        assert_eq!(steer(&bench, id, at).await, Steered::Added);
    }
    // m2 was given up and answered.
    let answered = Draft { event_id: event("m2"), outcome: Outcome::Answered, ..draft(&lock, 0) };
    bench.store.put_marker(&answered).await.unwrap();
    assert_eq!(steer(&bench, "m2", 2).await, Steered::NotNow);
    let refused = commit(&bench, (&lock, 1), &["m3", "m2"], Outcome::Replied).await;
    let Written::Refused(CommitRefused::MergedBefore(before)) = refused else { panic!("{refused:?}") };
    assert_eq!(before, event("m2"));
    assert_eq!(bench.store.marker(&event("m3")).await.unwrap(), None);
    let committed = commit(&bench, (&lock, 1), &["m3"], Outcome::Replied).await;
    assert!(matches!(committed, Written::Committed), "{committed:?}");
    assert_eq!(*bench.store.marker(&event("m2")).await.unwrap().unwrap().outcome(), Outcome::Answered);
}

/// Trace V9 (c): the journal says which texts a step used, so a successor commits their markers.
#[tokio::test(start_paused = true)]
async fn v9_a_step_says_which_texts_it_used() {
    let bench = Bench::new().await;
    let (lock, _) = taken(&bench.store, "m1", &place(1)).await;
    steer(&bench, "m2", 2).await;
    let step = Step { step: 1, steered: head(&bench).await.texts_for(&place(1), WHO), ..Step::default() };
    let written = bench.store.write_step(&lock, &place(1), &step, Duration::from_secs(60)).await.unwrap();
    assert_eq!(written, StepWritten::Written);
    tokio::time::advance(Duration::from_secs(66)).await;
    let (_, head) = taken(&bench.other, "m1", &place(1)).await;
    assert_eq!(head.step, 1);
    let journal = bench.other.journal(&session(), &event("m1")).await.unwrap();
    assert_eq!(journal.steps[0].steered, [text("m2", 2)]);
}

/// Trace V9 (d): what nobody used does not stay, also when its own turn went another way.
#[tokio::test(start_paused = true)]
async fn v9_no_text_stays_behind_its_turn() {
    let bench = Bench::new().await;
    let (lock, _) = taken(&bench.store, "m1", &place(1)).await;
    steer(&bench, "m2", 2).await;
    // m2 has a marker by another way, without a commit on this head.
    bench.store.put_marker(&Draft { event_id: event("m2"), ..draft(&lock, 0) }).await.unwrap();
    commit(&bench, (&lock, 1), &[], Outcome::Stopped).await;
    assert_eq!(head(&bench).await.steer.len(), 1);
    let (lock, head_of_3) = taken(&bench.store, "m3", &place(3)).await;
    assert!(head_of_3.texts_for(&place(3), WHO).is_empty(), "what was sent before it is not for it");
    commit(&bench, (&lock, 3), &[], Outcome::Replied).await;
    assert!(head(&bench).await.steer.is_empty());
}

/// A stop reaches texts as it reaches turns; what was sent after it is taken.
#[tokio::test(start_paused = true)]
async fn a_stopped_text_is_not_added() {
    let bench = Bench::new().await;
    let (lock, _) = taken(&bench.store, "m1", &place(1)).await;
    bench.store.stop(&session(), &place(3)).await.unwrap();
    assert_eq!(steer(&bench, "m2", 2).await, Steered::NotNow);
    assert_eq!(steer(&bench, "m4", 4).await, Steered::Added);
    bench.store.release(&lock, Release { finished: true, ..Release::default() }).await.unwrap();
    assert_eq!(steer(&bench, "m5", 5).await, Steered::NotNow);
}

#[tokio::test(start_paused = true)]
async fn texts_on_a_head_are_few_and_short() {
    let bench = Bench::new().await;
    let (_lock, _) = taken(&bench.store, "m1", &place(1)).await;
    let says = |said: String| SteerText { text: said, ..text("long", 9) };
    for (long, taken) in [
        ("x".repeat(MAX_TEXT), Steered::Added),
        ("x".repeat(MAX_TEXT + 1), Steered::NotNow),
        ("\u{1}".repeat(MAX_TEXT), Steered::NotNow),
    ] {
        assert_eq!(bench.store.steer(&session(), &says(long)).await.unwrap(), taken);
    }
    // The long ones are one place.
    for n in 2..MAX_TEXTS {
        assert_eq!(steer(&bench, &format!("t{n}"), 10).await, Steered::Added);
    }
    assert_eq!(steer(&bench, "more", 10).await, Steered::NotNow);
    assert_eq!(head(&bench).await.steer.len(), MAX_TEXTS);
}

/// What is done in a turn is judged by the rights of whose turn it is; and nothing overtakes what it cannot take.
#[tokio::test(start_paused = true)]
async fn a_turn_hears_its_own_person_and_nothing_behind_what_it_cannot_take() {
    let bench = Bench::new().await;
    let (_lock, _) = taken(&bench.store, "m1", &place(1)).await;
    let add = async |text: SteerText| bench.store.steer(&session(), &text).await.unwrap();
    let bob = |text: SteerText| SteerText { by: "telegram:8".to_owned(), ..text };
    assert_eq!(add(text("m2", 2)).await, Steered::Added);
    assert_eq!(add(bob(text("m3", 3))).await, Steered::Added);
    assert_eq!(add(text("m4", 4)).await, Steered::Added);
    let now = head(&bench).await;
    assert_eq!(now.texts_for(&place(1), WHO), [text("m2", 2)], "m4 waits behind m3");
    assert_eq!(now.texts_for(&place(1), "telegram:8"), []);
    assert_eq!(now.texts_for(&place(2), "telegram:8"), [bob(text("m3", 3))]);
    assert_eq!(now.texts_for(&place(1), ""), [], "whom nobody knows");
    // A picture, and a text that is too long: their places hold.
    assert_eq!(add(SteerText { text: String::new(), ..text("m5", 5) }).await, Steered::Added);
    assert_eq!(add(SteerText { text: "x".repeat(MAX_TEXT + 1), ..text("m7", 7) }).await, Steered::NotNow);
    for (id, at) in [("m6", 6), ("m8", 8)] {
        assert_eq!(add(text(id, at)).await, Steered::Added);
    }
    let heard = async |at| head(&bench).await.texts_for(&place(at), WHO);
    assert_eq!(heard(3).await, [text("m4", 4)]);
    assert_eq!(heard(5).await, [text("m6", 6)]);
    assert_eq!(heard(7).await, [text("m8", 8)]);
}

/// What no version here can read goes with the next commit; the rest of a full head stays small.
#[tokio::test(start_paused = true)]
async fn a_text_that_cannot_be_read_does_not_stay_and_a_full_head_is_small() {
    let bench = Bench::new().await;
    let (_lock, _) = taken(&bench.store, "m1", &place(1)).await;
    for n in 0..MAX_TEXTS {
        let long = SteerText { text: "\"".repeat(MAX_TEXT - 200), ..text(&format!("t{n}"), 10) };
        assert_eq!(bench.store.steer(&session(), &long).await.unwrap(), Steered::Added);
    }
    let mut head = head(&bench).await;
    assert!(head.steer.iter().map(String::len).sum::<usize>() < 48 * 1024);
    head.steer.insert("of a later version".to_owned());
    assert_eq!(head.steer_done(&place(1), &[]), ["of a later version"]);
}
