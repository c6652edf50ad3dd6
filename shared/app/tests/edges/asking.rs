//! Calls that wait for a person: the turn is parked, decided about, goes on, ends. V5 to V8 are traces of the protocol
//! check.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};
use turnlock_app::turn::{Handled, Settled};
use turnlock_domain::envelope::Envelope;
use turnlock_domain::event::MessageKind;
use turnlock_domain::turn::{Failure, Outcome};
use turnlock_queue::{NewMessage, Queue, QueueError, Receipt, ReceiptError, SendError};
use turnlock_store::Store;
use turnlock_store::approvals::{ApprovalState, Decided, Decision, Verdict};
use turnlock_store::sessions::{Acquire, Acquired, Lock, Release};

use crate::talk::{INVOCATION, Talk, policy, tools};

const SLEEP: Duration = Duration::from_secs(15 * 60);
const NOT_EXECUTED: &str = "This call was not executed: the turn ended before it was started.";

/// A turn that waits for `pay 1`.
async fn parked() -> Talk {
    let talk = Talk::new().await;
    talk.model_calls(&[("pay", json!({ "n": 1 }))]);
    talk.hears("e1", "pay").await;
    assert_eq!(talk.take().await, Some(Handled::GivenBack(SLEEP)));
    talk
}

fn failed(reason: Failure) -> Option<Outcome> {
    Some(Outcome::Failed { reason })
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_allowed_runs_and_the_turn_goes_on() {
    let talk = parked().await;
    let cards = talk.sent();
    assert_eq!((cards.len(), cards[0].message_kind), (1, MessageKind::ApprovalRequest));
    assert_eq!(talk.take().await, None, "it sleeps");
    assert_eq!((talk.ran.calls(), talk.head().await.owner), (vec![], None));
    let asked = talk.asked().await;
    assert_eq!((asked.tool.as_str(), asked.input.as_str()), ("pay", r#"{"n":1}"#));
    assert_eq!((asked.asked_by.as_str(), asked.closes_at.since(asked.asked_at)), ("telegram:7", 4 * SLEEP));
    sleep(Duration::from_secs(600)).await;
    talk.decide(Verdict::Allow).await;
    talk.model_says("Paid.");
    assert_eq!(talk.take().await, Some(Handled::Done), "it is woken");
    assert_eq!(talk.ran.calls(), ["pay 1"]);
    let sent = talk.sent();
    assert_eq!((sent.len(), sent[0].text().as_str(), sent[0].is_final), (1, "Paid.", true));
    assert_eq!(talk.outcome("e1").await, Some(Outcome::Replied));
    assert!(talk.request(1).contains("did pay 1"));
    assert_eq!(talk.kit.store.approval(&asked.id).await.unwrap().unwrap().state, ApprovalState::Allowed);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_denied_does_not_run_and_the_model_is_told() {
    let talk = parked().await;
    talk.decide(Verdict::Deny).await;
    talk.model_says("Then not.");
    assert_eq!(talk.take().await, Some(Handled::Done));
    assert!(talk.ran.calls().is_empty());
    assert_eq!(
        talk.results(0).await,
        [
            "A person was asked whether this call may run, and did not allow it: it was not executed. Do not try it again \
          or get around it; ask the user how to go on."
        ]
    );
}

/// Trace V5: the worker dies in the approved call. Its successor does not start it again, and says that it may have run.
#[tokio::test(start_paused = true)]
async fn v5_an_approved_call_is_not_started_twice() {
    let talk = parked().await;
    talk.decide(Verdict::Allow).await;
    talk.ran.during_the_next(sleep(Duration::from_secs(100)));
    assert!(timeout(Duration::from_secs(30), talk.take()).await.is_err(), "it died");
    talk.model_says("I do not know.");
    talk.settle().await;
    assert!(talk.ran.calls().is_empty(), "and nobody made the call again");
    let results = talk.results(0).await;
    assert!(results[0].starts_with("This call was started, then interrupted"), "{results:?}");
    assert_eq!((talk.head().await.ask, talk.outcome("e1").await), (None, Some(Outcome::Replied)));
}

/// Trace V5, the other half: a death before the decision is used takes nothing away.
#[tokio::test(start_paused = true)]
async fn v5_an_approved_call_is_started_by_the_successor_of_a_worker_that_died_before_it() {
    let talk = parked().await;
    talk.decide(Verdict::Allow).await;
    // It received the message, acquires the session and dies.
    talk.kit.inbound.receive(1).unwrap();
    let envelope = talk.envelope("e1", "pay");
    let want = Acquire {
        session: &talk.session(),
        event: &envelope.event.event_id,
        accepted_at: envelope.accepted_at,
        position: &envelope.position,
        route: "{}",
        owner: "dead",
        lease: Duration::from_secs(60),
        dead_letter: false,
    };
    assert!(matches!(talk.kit.store.acquire(&want).await.unwrap(), Acquired::Mine(..)));
    talk.model_says("Paid.");
    talk.settle().await;
    assert_eq!(talk.ran.calls(), ["pay 1"]);
}

/// An invocation that is too short for the call leaves the decision to the next one.
#[tokio::test(start_paused = true)]
async fn a_decision_is_not_used_without_the_time_for_its_call() {
    let talk = parked().await;
    talk.decide(Verdict::Allow).await;
    assert_eq!(talk.take_within(Duration::from_secs(100)).await, Some(Handled::GivenBack(Duration::from_secs(1))));
    assert!(talk.asked().await.decided_by.is_some() && talk.ran.calls().is_empty());
    talk.model_says("Paid.");
    talk.settle().await;
    assert_eq!(talk.ran.calls(), ["pay 1"]);
}

/// Trace V6: waiting kills neither the turn that waits nor the one behind it.
#[tokio::test(start_paused = true)]
async fn v6_neither_sleeps_nor_waiting_kill_a_turn_or_the_one_behind_it() {
    let mut talk = Talk::new().await;
    talk.set(|settings| {
        settings.policy = policy("[agent.limits]\napproval_expiry = \"2d\"");
        settings.limits.max_wait = Duration::from_secs(1800);
    });
    talk.model_calls(&[("pay", json!({ "n": 1 }))]);
    talk.hears("e1", "pay").await;
    talk.hears("e2", "hello?").await;
    for _ in 0..100 {
        assert_eq!(talk.take().await, Some(Handled::GivenBack(SLEEP)));
        assert_eq!(talk.head().await.attempts, 0);
        sleep(SLEEP + Duration::from_millis(1)).await;
    }
    talk.decide(Verdict::Allow).await;
    talk.model_says("Paid.");
    talk.model_says("Hello!");
    talk.settle().await;
    assert_eq!((talk.outcome("e1").await, talk.outcome("e2").await), (Some(Outcome::Replied), Some(Outcome::Replied)));
    assert_eq!(talk.ran.calls(), ["pay 1"]);
}

/// Trace V6: what a turn needs after the decision counts again.
#[tokio::test(start_paused = true)]
async fn v6_after_the_decision_a_turn_ages_again() {
    let talk = parked().await;
    sleep(Duration::from_secs(3000)).await;
    talk.decide(Verdict::Allow).await;
    // Nobody comes for an hour and a bit.
    let record = talk.kit.inbound.receive(1).unwrap().remove(0);
    talk.kit.inbound.set_visibility(&record.receipt, Duration::from_secs(3601)).await.unwrap();
    talk.settle().await;
    assert_eq!(talk.outcome("e1").await, failed(Failure::TooOld));
    assert_eq!(talk.results(0).await, [NOT_EXECUTED]);
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_nobody_decides_ends_the_turn_and_says_so() {
    let talk = parked().await;
    let asked = talk.asked().await;
    assert_eq!(talk.sent().len(), 1);
    assert_eq!(talk.settle().await, 4, "three sleeps more, and the end");
    assert_eq!(talk.outcome("e1").await, failed(Failure::ApprovalExpired));
    assert_eq!(talk.results(0).await, [NOT_EXECUTED]);
    let sent = talk.sent();
    let [.., last, settled] = &sent[..] else { panic!("{sent:?}") };
    assert!(last.is_final && last.text().starts_with("Nobody allowed what I wanted to do in time"), "{last:?}");
    assert_eq!(settled.edits.as_deref(), Some(format!("e1.approval.{}", asked.id).as_str()));
    assert!(settled.buttons.is_empty());
    assert_eq!(talk.kit.store.approval(&asked.id).await.unwrap().unwrap().state, ApprovalState::Expired);
    assert_eq!(talk.kit.clock.now_ms().since(asked.closes_at).as_secs(), 0, "not a sleep later");
}

/// Trace V7: the decision comes after the worker looked and before it commits the expiry.
#[tokio::test(start_paused = true)]
async fn v7_a_decision_in_the_last_moment_is_kept() {
    let talk = parked().await;
    let asked = talk.asked().await;
    sleep(4 * SLEEP - Duration::from_millis(10)).await;
    let record = talk.kit.inbound.receive(1).unwrap().remove(0);
    let at = talk.kit.clock.now_ms();
    sleep(Duration::from_millis(20)).await;
    talk.model_says("Paid.");
    let decision = Decision { verdict: Verdict::Allow, by: "telegram:7".to_owned(), at, command: None };
    // Both at once: whoever is first, what was decided in time counts, and what was refused was not told to be accepted.
    let (handled, decided) = tokio::join!(
        talk.agent.handle(&record, Instant::now() + INVOCATION),
        talk.kit.store.decide(&asked, &decision),
    );
    let accepted = matches!(decided.unwrap(), Decided::Stored(_));
    if handled == Handled::Done {
        talk.kit.inbound.delete(&record.receipt).unwrap();
    }
    talk.settle().await;
    let outcome = talk.outcome("e1").await;
    assert_eq!(accepted, outcome == Some(Outcome::Replied), "{outcome:?}");
    assert_eq!(accepted, talk.ran.calls() == ["pay 1"]);
}

/// Trace V8: a stop wakes a parked turn and ends it; nothing of it was started, and it says so.
#[tokio::test(start_paused = true)]
async fn v8_a_stop_ends_a_parked_turn_at_once() {
    let talk = Talk::new().await;
    talk.model_calls(&[
        ("note", json!({ "n": 1 })),
        ("pay", json!({ "n": 2 })),
        ("note", json!({ "n": 3 })),
        ("pay", json!({ "n": 4 })),
    ]);
    talk.hears("e1", "pay").await;
    talk.take().await;
    let asked = talk.asked().await;
    talk.stop(2).await;
    assert_eq!(talk.take().await, Some(Handled::Done));
    assert_eq!(talk.outcome("e1").await, Some(Outcome::Stopped));
    assert_eq!(talk.results(0).await, ["did note 1", NOT_EXECUTED, NOT_EXECUTED, NOT_EXECUTED]);
    assert_eq!(talk.kit.store.approval(&asked.id).await.unwrap().unwrap().state, ApprovalState::Stopped);
    assert_eq!(talk.ran.calls(), ["note 1"]);
}

/// The outbound queue; when the card passes it, somebody decides or stops: the turn's message does not sleep yet.
struct Quick {
    inner: Arc<dyn Queue>,
    store: Store,
    stops: bool,
}

#[async_trait]
impl Queue for Quick {
    async fn send(&self, message: NewMessage) -> Result<(), SendError> {
        if message.body.contains("approval_request") {
            let session = turnlock_domain::session::SessionKey::new("telegram", "main", "5", None);
            let head = self.store.head(&session).await.unwrap().unwrap();
            let approval = self.store.approval(&head.ask.unwrap().id).await.unwrap().unwrap();
            if self.stops {
                self.store.stop(&session, &crate::talk::place(2)).await.unwrap();
            } else {
                let decision = Decision {
                    verdict: Verdict::Allow,
                    by: "telegram:7".to_owned(),
                    at: approval.asked_at,
                    command: None,
                };
                self.store.decide(&approval, &decision).await.unwrap();
            }
        }
        self.inner.send(message).await
    }

    async fn set_visibility(&self, receipt: &Receipt, visibility: Duration) -> Result<(), ReceiptError> {
        self.inner.set_visibility(receipt, visibility).await
    }

    async fn waiting(&self) -> Result<u64, QueueError> {
        self.inner.waiting().await
    }
}

/// Trace V8: who wakes a message before it sleeps has not waked it in vain.
#[tokio::test(start_paused = true)]
async fn v8_what_comes_before_the_message_sleeps_is_seen_at_once() {
    for stops in [false, true] {
        let mut talk = Talk::new().await;
        talk.agent.outbound =
            Arc::new(Quick { inner: talk.kit.outbound.clone(), store: talk.kit.store.clone(), stops });
        talk.model_calls(&[("pay", json!({ "n": 1 }))]);
        talk.model_says("Paid.");
        talk.hears("e1", "pay").await;
        assert_eq!(talk.take().await, Some(Handled::GivenBack(Duration::ZERO)));
        talk.agent.outbound = talk.kit.outbound.clone();
        assert_eq!(talk.take().await, Some(Handled::Done));
        let outcome = if stops { Outcome::Stopped } else { Outcome::Replied };
        assert_eq!(talk.outcome("e1").await, Some(outcome));
    }
}

/// In one process a restart makes sleeping messages visible: the turn looks and sleeps again.
#[tokio::test(start_paused = true)]
async fn a_turn_that_is_waked_for_nothing_sleeps_again() {
    let talk = parked().await;
    for _ in 0..20 {
        let receipt = talk.head().await.receipt.unwrap();
        talk.kit.inbound.wake(&Receipt(receipt)).await.unwrap();
        assert_eq!(talk.take().await, Some(Handled::GivenBack(SLEEP)));
    }
    assert_eq!(talk.sent().len(), 1, "the card is recognised");
    assert_eq!((talk.ran.calls(), talk.head().await.attempts), (vec![], 0));
}

/// An outbound queue that takes nothing for now.
struct Out(Arc<dyn Queue>);

#[async_trait]
impl Queue for Out {
    async fn send(&self, _message: NewMessage) -> Result<(), SendError> {
        Err(SendError::Unreachable("out".into()))
    }

    async fn set_visibility(&self, receipt: &Receipt, visibility: Duration) -> Result<(), ReceiptError> {
        self.0.set_visibility(receipt, visibility).await
    }

    async fn waiting(&self) -> Result<u64, QueueError> {
        self.0.waiting().await
    }
}

/// A card that could not be sent is sent at the next look, which does not wait for a whole sleep.
#[tokio::test(start_paused = true)]
async fn a_card_that_was_not_sent_is_sent_soon() {
    let mut talk = Talk::new().await;
    talk.agent.outbound = Arc::new(Out(talk.kit.outbound.clone()));
    talk.model_calls(&[("pay", json!({ "n": 1 }))]);
    talk.hears("e1", "pay").await;
    assert_eq!(talk.take().await, Some(Handled::GivenBack(Duration::from_secs(1))));
    for _ in 0..20 {
        sleep(Duration::from_secs(61)).await;
        assert!(matches!(talk.take().await, Some(Handled::GivenBack(after)) if after <= Duration::from_secs(60)));
    }
    talk.agent.outbound = talk.kit.outbound.clone();
    sleep(Duration::from_secs(61)).await;
    assert_eq!(talk.take().await, Some(Handled::GivenBack(SLEEP)));
    assert_eq!(talk.sent().len(), 1);
}

/// Two calls of a step that are asked for wait one after the other; what stands behind them runs after them.
#[tokio::test(start_paused = true)]
async fn calls_are_asked_for_one_after_another() {
    let talk = Talk::new().await;
    talk.model_calls(&[
        ("look", json!({ "n": 0 })),
        ("pay", json!({ "n": 1 })),
        ("pay", json!({ "n": 2 })),
        ("note", json!({ "n": 3 })),
        ("look", json!({ "n": 4 })),
    ]);
    talk.hears("e1", "pay twice").await;
    talk.take().await;
    let first = talk.asked().await;
    talk.decide(Verdict::Allow).await;
    assert_eq!(talk.take().await, Some(Handled::GivenBack(SLEEP)));
    let second = talk.asked().await;
    assert_eq!((first.call, second.call), (1, 2));
    talk.decide(Verdict::Deny).await;
    talk.model_says("Done.");
    assert_eq!(talk.take().await, Some(Handled::Done));
    assert_eq!(talk.ran.calls(), ["look 0", "pay 1", "note 3", "look 4"]);
    assert_eq!(talk.sent().iter().filter(|event| event.message_kind == MessageKind::ApprovalRequest).count(), 2);
}

/// What was asked is asked: other rules after a deploy start nothing that waits, and ask for nothing that was denied.
#[tokio::test(start_paused = true)]
async fn rules_that_change_while_a_turn_waits_do_not_start_its_call() {
    let mut talk = parked().await;
    talk.set(|settings| settings.policy = policy("[[approvals.rules]]\naction = \"allow\""));
    sleep(SLEEP).await;
    assert_eq!(talk.take().await, Some(Handled::GivenBack(SLEEP)));
    assert!(talk.ran.calls().is_empty());
    talk.set(|settings| settings.policy = policy("[[approvals.rules]]\naction = \"deny\""));
    talk.decide(Verdict::Allow).await;
    talk.model_says("Paid.");
    assert_eq!(talk.take().await, Some(Handled::Done));
    assert_eq!(talk.ran.calls(), ["pay 1"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_policy_denies_does_not_run_and_the_model_is_told() {
    let mut talk = Talk::new().await;
    talk.set(|settings| settings.policy = policy("[[approvals.rules]]\ntool = \"note\"\naction = \"deny\""));
    talk.model_calls(&[("note", json!({ "n": 1 })), ("look", json!({ "n": 2 }))]);
    talk.model_says("I may not.");
    talk.hears("e1", "note it").await;
    assert_eq!(talk.take().await, Some(Handled::Done));
    assert_eq!(talk.ran.calls(), ["look 2"]);
    assert_eq!(
        talk.results(0).await[0],
        "This call is not allowed here and was not executed. Do not try it again: go on without it, or tell the user that \
         you may not do it."
    );
}

/// Nobody waits for the answer, so nobody is asked.
#[tokio::test(start_paused = true)]
async fn an_unattended_turn_never_asks() {
    let talk = Talk::new().await;
    talk.model_calls(&[("pay", json!({ "n": 1 }))]);
    talk.model_says("I may not.");
    let envelope = Envelope { unattended: true, ..talk.envelope("e1", "pay") };
    turnlock_app::send::inbound(&*talk.kit.inbound, &envelope).await.unwrap();
    assert_eq!(talk.take().await, Some(Handled::Done));
    assert!(talk.ran.calls().is_empty());
}

/// Numbers that are others when they were written and read once: what was asked is still what runs.
#[tokio::test(start_paused = true)]
async fn what_was_asked_is_recognised_whatever_its_numbers_are() {
    let talk = Talk::new().await;
    let numbers: Vec<f64> = (1..400u32).map(|n| f64::from(n).sqrt() * 1.1e-7 / 3.0).collect();
    talk.model_calls(&[("pay", json!({ "n": 1, "numbers": numbers }))]);
    talk.hears("e1", "pay").await;
    assert_eq!(talk.take().await, Some(Handled::GivenBack(SLEEP)));
    talk.decide(Verdict::Allow).await;
    talk.model_says("Paid.");
    assert_eq!(talk.take().await, Some(Handled::Done));
    assert_eq!(talk.ran.calls(), ["pay 1"]);
}

/// What a card cannot show whole is not asked for.
#[tokio::test(start_paused = true)]
async fn an_input_too_long_to_be_shown_is_not_asked_for() {
    let talk = Talk::new().await;
    talk.model_calls(&[("pay", json!({ "n": 1, "to": "x".repeat(17_000) }))]);
    talk.model_says("Too long.");
    talk.hears("e1", "pay").await;
    assert_eq!(talk.take().await, Some(Handled::Done));
    assert!(talk.results(0).await[0].contains("at most 12288 bytes, written as indented JSON"));
    assert!(talk.ran.calls().is_empty());
}

/// A parked turn that its queue gave up is settled: its approval is over.
#[tokio::test(start_paused = true)]
async fn a_dead_letter_of_a_parked_turn_ends_its_approval() {
    let talk = parked().await;
    let asked = talk.asked().await;
    let receipt = talk.head().await.receipt.unwrap();
    talk.kit.inbound.wake(&Receipt(receipt)).await.unwrap();
    let record = talk.kit.inbound.receive(1).unwrap().remove(0);
    let settled = talk.agent.settle_dead_letter(&*talk.kit.inbound, &record, Instant::now() + INVOCATION).await;
    assert!(matches!(settled, Settled::Done(_)), "{settled:?}");
    assert_eq!(talk.outcome("e1").await, failed(Failure::Dead));
    assert_eq!(talk.results(0).await, [NOT_EXECUTED]);
    assert_eq!(talk.kit.store.approval(&asked.id).await.unwrap().unwrap().state, ApprovalState::Stopped);
    assert_eq!(talk.head().await.unfinished, None);
}

/// The message of a parked turn is gone: whoever comes next waits until the approval is over and the turn is too old.
#[tokio::test(start_paused = true)]
async fn a_parked_turn_whose_message_is_gone_is_settled_in_the_end() {
    let talk = parked().await;
    let asked = talk.asked().await;
    talk.kit.inbound.delete(&Receipt(talk.head().await.receipt.unwrap())).unwrap();
    sleep(Duration::from_secs(60)).await;
    talk.model_says("Hello!");
    talk.hears("e2", "hello?").await;
    let receives = talk.settle().await;
    let waited = talk.kit.clock.now_ms().since(asked.asked_at);
    assert!(waited > Duration::from_secs(7200) && waited < Duration::from_secs(7300), "{waited:?}");
    assert!(receives < 140, "{receives} receives of a thousand");
    assert_eq!(talk.outcome("e1").await, failed(Failure::TooOld));
    assert_eq!(talk.outcome("e2").await, Some(Outcome::Replied));
    assert_eq!(talk.kit.store.approval(&asked.id).await.unwrap().unwrap().state, ApprovalState::Expired);
}

/// A worker that was late leaves the newer receipt where it is: a decision wakes the message at once.
#[tokio::test(start_paused = true)]
async fn a_late_worker_does_not_take_the_newer_receipt_away() {
    let talk = Talk::new().await;
    talk.model_calls(&[("pay", json!({ "n": 1 }))]);
    talk.hears("e1", "pay").await;
    let late = talk.kit.inbound.receive(1).unwrap().remove(0);
    talk.kit.inbound.set_visibility(&late.receipt, Duration::ZERO).await.unwrap();
    assert_eq!(talk.take().await, Some(Handled::GivenBack(SLEEP)));
    assert_eq!(talk.agent.handle(&late, Instant::now() + INVOCATION).await, Handled::GivenBack(SLEEP));
    assert_eq!(talk.head().await.receipt_receives, 2);
    talk.decide(Verdict::Allow).await;
    talk.model_says("Paid.");
    assert_eq!(talk.take().await, Some(Handled::Done));
}

/// A tool that another version of the fleet has, or the next deploy: nobody was asked about it, so it does not run.
#[tokio::test(start_paused = true)]
async fn a_tool_that_comes_after_the_step_does_not_run_unasked() {
    let mut talk = Talk::new().await;
    talk.agent.tools = tools(&talk.ran, &["note"]);
    talk.model_calls(&[("note", json!({ "n": 1, "seconds": 100 })), ("pay", json!({ "n": 2 }))]);
    talk.hears("e1", "note and pay").await;
    assert!(timeout(Duration::from_secs(30), talk.take()).await.is_err(), "it died in its first call");
    talk.agent.tools = tools(&talk.ran, &["note", "pay"]);
    // The next one believes that the second one was not started.
    unstarted_from(&talk, 1).await;
    talk.model_says("I cannot pay.");
    talk.settle().await;
    assert!(talk.ran.calls().is_empty(), "{:?}", talk.ran.calls());
    assert_eq!(talk.results(0).await[1], "There is no tool `pay`. The tools are: note.");
}

/// The worker that holds the lock hands the turn back: from this call of its last step on nothing was started.
async fn unstarted_from(talk: &Talk, call: u32) {
    let head = talk.head().await;
    let (owner, event) = (head.owner.unwrap(), head.unfinished.unwrap());
    let lock = Lock { session: talk.session(), event, owner, fence: head.fence };
    let how = Release { reset_attempts: true, unstarted: Some(call), ..Release::default() };
    talk.kit.store.release(&lock, how).await.unwrap();
}

/// However often a turn asks: what it waits for is a week at the most, for its queue does not keep it for ever.
#[tokio::test(start_paused = true)]
async fn all_that_a_turn_waits_for_is_a_week_together() {
    let mut talk = Talk::new().await;
    talk.set(|settings| settings.policy = policy("[agent.limits]\napproval_expiry = \"7d\""));
    talk.model_calls(&[("pay", json!({ "n": 1 })), ("pay", json!({ "n": 2 }))]);
    talk.hears("e1", "pay twice").await;
    assert_eq!(talk.take().await, Some(Handled::GivenBack(SLEEP)));
    let first = talk.asked().await;
    let nearly = first.closes_at.since(first.asked_at) - Duration::from_secs(5);
    assert_eq!(nearly, Duration::from_secs(7 * 24 * 3600 - 5));
    sleep(nearly).await;
    talk.decide(Verdict::Deny).await;
    talk.take().await;
    let second = talk.asked().await;
    assert_eq!((second.call, second.closes_at.since(second.asked_at)), (1, Duration::from_secs(60)));
}
