//! The ledger's transitions.

use turnlock_domain::event::{InboundEvent, MessageKind, OutboundEvent, Revision};
use turnlock_domain::time::Millis;

use super::{Ledger, LedgerPart, LedgerState, PartPlan};

const NOW: Millis = Millis(1_760_000_000_000);
const FRAME: Revision = Revision { fence: 7, sequence: 1 };
const NEXT_FRAME: Revision = Revision { fence: 7, sequence: 2 };
const FINAL: Revision = Revision { fence: 7, sequence: Revision::FINAL };

fn ledger() -> Ledger {
    let inbound: InboundEvent = serde_json::from_value(serde_json::json!({
        "event_id": "telegram:1:2", "channel": "telegram", "chat_id": "5", "timestamp": "2026-01-05T09:00:00Z",
    }))
    .expect("an event");
    let mut outbound = OutboundEvent::answering(&inbound, "final", MessageKind::Final, "hi");
    outbound.revision = Revision { fence: 7, sequence: 0 };
    let mut ledger = Ledger::new("telegram:1:2.final", &outbound, 1, NOW);
    ledger.version = 1;
    ledger
}

fn send(message: &str) -> PartPlan {
    PartPlan::Send { edit: (!message.is_empty()).then(|| message.to_owned()) }
}

/// Case dl-sent-flag-lies: three refused tries are no delivery, and an empty id confirms nothing.
#[test]
fn dl_sent_flag_lies() {
    let mut ledger = ledger();
    for _ in 0..3 {
        assert_eq!(ledger.plan(0, FINAL, true), send(""));
        ledger = ledger.sending(0, FINAL, NOW).postponed(0, "429", NOW);
        assert_eq!(ledger.state(), LedgerState::Pending);
    }
    assert_eq!(ledger.parts()[0].attempts(), 3);
    assert_eq!(ledger.clone().sending(0, FINAL, NOW).sent(0, "", NOW).state(), LedgerState::Uncertain);
    let claimed: LedgerPart = serde_json::from_value(serde_json::json!({"state": "sent"})).expect("a part");
    assert_eq!(claimed.state(), LedgerState::Uncertain);
    assert_eq!(ledger.sending(0, FINAL, NOW).sent(0, "10", NOW).state(), LedgerState::Sent);
}

#[test]
fn a_final_whose_answer_was_lost_is_sent_once_more_and_stays_marked() {
    let died = ledger().sending(0, FINAL, NOW);
    assert_eq!(died.state(), LedgerState::Sending);
    assert_eq!(died.plan(0, FINAL, true), PartPlan::SendAgain { edit: None });
    let again = died.uncertain(0, "timeout", NOW).sending(0, FINAL, NOW);
    assert!(again.parts()[0].resent());
    assert_eq!(again.plan(0, FINAL, true), PartPlan::Leave(LedgerState::Sending));
    let twice = again.clone().uncertain(0, "timeout", NOW);
    assert_eq!(twice.plan(0, FINAL, true), PartPlan::Leave(LedgerState::Uncertain));
    let sent = again.sent(0, "11", NOW);
    assert_eq!(sent.plan(0, FINAL, true), PartPlan::Leave(LedgerState::Uncertain));
    assert!(sent.parts()[0].resent() && sent.state() == LedgerState::Uncertain);
}

/// An edit of a known message can be repeated without harm; half a text must not count as the final.
#[test]
fn an_edit_whose_answer_was_lost_is_repeated_until_its_outcome_is_known() {
    let mut ledger = shown("half");
    for _ in 0..4 {
        ledger = ledger.sending(0, FINAL, NOW).uncertain(0, "answer_lost", NOW);
        assert_eq!(ledger.plan(0, FINAL, true), PartPlan::SendAgain { edit: Some("10".to_owned()) });
    }
    assert_eq!(ledger.sending(0, FINAL, NOW).sent(0, "10", NOW).state(), LedgerState::Sent);
}

/// A supergroup counts its messages anew: what an id named in the old chat is somebody else's in the new one.
#[test]
fn in_another_chat_no_known_id_is_used() {
    let shown = shown("half").sending(1, FINAL, NOW).sent(1, "11", NOW);
    let moved = shown.moved("telegram:-1005", FINAL, NOW);
    assert_eq!((moved.chat(), moved.plan(0, FINAL, true)), ("telegram:-1005", send("")));
    assert_eq!(moved.plan(1, FINAL, true), PartPlan::Leave(LedgerState::Sent), "what stands is not repeated");
    assert_eq!(moved.plan(0, NEXT_FRAME, false), PartPlan::Leave(LedgerState::Uncertain), "no more frames");
    let last = moved.sending(0, FINAL, NOW).sent(0, "3", NOW);
    assert_eq!((last.parts()[0].message_ids(), last.parts()[0].replaced().len()), (&["3".to_owned()][..], 0));
    assert_eq!(last.state(), LedgerState::Uncertain, "half a preview stands above it");
    let halved = last.limited(0, 2048, NOW);
    assert_eq!((halved.plan(1, FINAL, true), halved.parts()[1].message_ids().len()), (send(""), 0));
}

/// Taking a message back resolves the doubt about it, not that about a preview, or another worker's post, lost before.
#[test]
fn only_its_own_doubt_goes_with_a_message_that_is_taken_back() {
    let posts = |ledger: Ledger, times: usize| (0..times).fold(ledger, |ledger, _| ledger.sending(0, FINAL, NOW));
    let resolved = |ledger: Ledger| ledger.sent(0, "11", NOW).resolved(0, NOW).state();
    assert_eq!(resolved(posts(ledger(), 2)), LedgerState::Sent);
    assert_eq!(resolved(posts(ledger(), 3)), LedgerState::Uncertain);
    let preview = ledger().sending(0, FRAME, NOW);
    assert_eq!(resolved(posts(preview.clone(), 1)), LedgerState::Sent);
    assert_eq!(resolved(posts(preview, 2)), LedgerState::Uncertain);
}

#[test]
fn a_frame_is_never_repeated_and_a_lost_preview_gets_no_more_frames() {
    let lost = ledger().sending(0, FRAME, NOW);
    assert_eq!(lost.plan(0, FRAME, false), PartPlan::Leave(LedgerState::Sending));
    assert_eq!(lost.plan(0, NEXT_FRAME, false), PartPlan::Leave(LedgerState::Sending));
    assert_eq!(lost.plan(0, FINAL, true), send(""), "the final is a new message");
    let last = lost.sending(0, FINAL, NOW);
    assert!(last.parts()[0].stray(), "half a preview may stand above it");
    assert_eq!(last.plan(0, FINAL, true), PartPlan::SendAgain { edit: None }, "its own answer may be lost as well");
}

#[test]
fn the_final_goes_into_the_previews_message() {
    let shown = ledger().sending(0, FRAME, NOW).sent(0, "10", NOW);
    assert_eq!(shown.plan(0, FRAME, false), PartPlan::Leave(LedgerState::Sent));
    assert_eq!(shown.plan(0, NEXT_FRAME, false), send("10"));
    let doubtful = shown.sending(0, NEXT_FRAME, NOW).uncertain(0, "timeout", NOW);
    assert_eq!(doubtful.plan(0, FINAL, true), send("10"));
    let last = doubtful.sending(0, FINAL, NOW);
    assert!(!last.parts()[0].stray() && !last.parts()[0].resent());
    assert_eq!(last.plan(0, FINAL, true), PartPlan::SendAgain { edit: Some("10".to_owned()) });
}

/// Case dl-flood-two-bubbles: where the preview could not be edited, the ledger keeps both messages.
#[test]
fn dl_flood_two_bubbles() {
    let shown = ledger().sending(0, FRAME, NOW).sent(0, "10", NOW);
    let flooded = shown.sending(0, FINAL, NOW).postponed(0, "429", NOW);
    assert_eq!(flooded.plan(0, FINAL, true), send("10"), "wait, and edit the same message");
    let replaced = flooded.sending(0, FINAL, NOW).sent(0, "11", NOW);
    assert_eq!(replaced.parts()[0].message_ids(), ["10", "11"]);
    assert_eq!(replaced.parts()[0].message_id(), Some("11"));
}

#[test]
fn nothing_stale_is_shown() {
    let committed = ledger().sending(0, FINAL, NOW).sent(0, "10", NOW);
    assert!(committed.is_stale(FRAME));
    assert!(committed.is_stale(Revision { fence: 8, sequence: 1 }), "a frame never follows the final");
    assert!(!committed.is_stale(FINAL));
    assert_eq!(committed.plan(0, NEXT_FRAME, false), PartPlan::Leave(LedgerState::Sent));
    let successor = ledger().sending(0, Revision { fence: 8, sequence: 0 }, NOW);
    assert!(successor.is_stale(NEXT_FRAME), "frames of a lost lock");
}

#[test]
fn the_whole_is_as_far_as_its_last_part() {
    let mut ledger = ledger().sending(0, FINAL, NOW).sent(0, "10", NOW);
    assert_eq!(ledger.state(), LedgerState::Sent);
    assert_eq!(ledger.plan(2, FINAL, true), send(""), "a part that nobody tried");
    ledger = ledger.sending(2, FINAL, NOW);
    assert_eq!((ledger.parts().len(), ledger.state()), (3, LedgerState::Sending));
    ledger = ledger.failed(2, "400", NOW);
    assert_eq!(ledger.state(), LedgerState::Pending, "part 1 is open");
    ledger = ledger.sending(1, FINAL, NOW).sent(1, "11", NOW);
    assert_eq!(ledger.state(), LedgerState::Failed);
    assert_eq!(ledger.plan(2, FINAL, true), PartPlan::Leave(LedgerState::Failed));
}

#[test]
fn a_state_of_a_later_version_is_uncertain() {
    let part: LedgerPart = serde_json::from_value(serde_json::json!({"state": "teleported"})).expect("a part");
    assert_eq!(part.state(), LedgerState::Uncertain);
}

/// The first part of the preview stands, with what the digest says of it.
fn shown(text: &str) -> Ledger {
    ledger().sending(0, FRAME, NOW).sent(0, "10", NOW).showing(0, text)
}

/// Case tg-not-modified-abort: what a message shows already needs no call.
#[test]
fn tg_not_modified_abort() {
    let ledger = shown("Analysis");
    assert!(ledger.parts()[0].shows("Analysis") && !ledger.parts()[0].shows("Analysis done"));
    let last = ledger.kept(0, FINAL, NOW);
    assert_eq!((last.state(), last.plan(0, FINAL, true)), (LedgerState::Sent, PartPlan::Leave(LedgerState::Sent)));
    assert!(last.is_stale(NEXT_FRAME), "the final is known");
}

#[test]
fn what_a_message_shows_is_unknown_while_an_edit_runs_and_after_its_answer_was_lost() {
    let editing = shown("half").sending(0, NEXT_FRAME, NOW);
    assert!(!editing.parts()[0].shows("half"));
    // A refusal says that nothing has changed.
    assert!(editing.clone().postponed(0, "retry_after", NOW).parts()[0].shows("half"));
    // A lost answer does not, and neither does a worker that died.
    let lost = editing.clone().doubted(0, NOW).postponed(0, "unavailable", NOW);
    assert!(!lost.parts()[0].shows("half") && lost.parts()[0].message_id() == Some("10"));
    let died = editing.sending(0, FINAL, NOW).postponed(0, "retry_after", NOW);
    assert!(!died.parts()[0].shows("half"));
}

#[test]
fn a_preview_alone_is_no_delivery() {
    let mut frame = shown("half");
    frame.kind = MessageKind::Streaming;
    assert_eq!(frame.state(), LedgerState::Pending);
    frame.kind = MessageKind::Final;
    let two = frame.sending(1, FINAL, NOW).sent(1, "11", NOW);
    assert_eq!(two.state(), LedgerState::Pending, "the first part still shows the preview");
    assert_eq!(two.kept(0, FINAL, NOW).state(), LedgerState::Sent);
}

/// Case sl-edit-ghost: only a message that is gone is posted anew, once; both ids are kept.
#[test]
fn sl_edit_ghost() {
    let ledger = shown("half").sending(0, FINAL, NOW).closed(0, NOW);
    assert_eq!(ledger.plan(0, FINAL, true), send(""));
    assert_eq!((ledger.parts()[0].message_id(), ledger.parts()[0].message_ids()), (None, &["10".to_owned()][..]));
    // The answer to the new message is lost: it may stand, and nobody knows as what.
    let lost = ledger.clone().sending(0, FINAL, NOW).uncertain(0, "answer_lost", NOW);
    assert_eq!(lost.plan(0, FINAL, true), PartPlan::SendAgain { edit: None });
    assert!(lost.sending(0, FINAL, NOW).parts()[0].stray());
    let replaced = ledger.sending(0, FINAL, NOW).sent(0, "11", NOW);
    assert_eq!(replaced.parts()[0].message_ids(), ["10", "11"]);
    assert_eq!((replaced.state(), replaced.parts()[0].message_id()), (LedgerState::Uncertain, Some("11")));
    assert_eq!(replaced.parts()[0].replaced(), ["10"], "a death here leaves it to the next delivery");
    assert_eq!(replaced.clone().removed(0, NOW).state(), LedgerState::Sent);
    let doubled = replaced.doubled(0, NOW);
    assert_eq!((doubled.state(), doubled.parts()[0].replaced().len()), (LedgerState::Uncertain, 0), "it cannot be");
}

/// Cases tg-utf16-disputed and sl-too-long-limit: the part that was too long has a limit, and what comes after it changes.
#[test]
fn tg_utf16_disputed_and_sl_too_long_limit() {
    let ledger = shown("a").sending(1, FRAME, NOW).sent(1, "11", NOW).sending(2, FINAL, NOW).sent(2, "12", NOW);
    let halved = ledger.kept(0, FINAL, NOW).sending(1, FINAL, NOW).limited(1, 2048, NOW);
    assert_eq!(halved.limits(), [0, 2048, 0]);
    assert_eq!(halved.plan(0, FINAL, true), PartPlan::Leave(LedgerState::Sent), "it keeps its text");
    assert_eq!((halved.plan(1, FINAL, true), halved.plan(2, FINAL, true)), (send("11"), send("12")));
}

#[test]
fn what_was_given_up_is_opened_once_more_and_what_is_sent_is_not() {
    let ledger = ledger()
        .sending(0, FINAL, NOW)
        .sent(0, "10", NOW)
        .sending(1, FINAL, NOW)
        .failed(1, "rejected", NOW)
        .sending(2, FINAL, NOW)
        .sending(2, FINAL, NOW)
        .uncertain(2, "answer_lost", NOW);
    let opened = ledger.reopened(NOW).expect("there is something to open");
    assert_eq!(opened.plan(0, FINAL, true), PartPlan::Leave(LedgerState::Sent));
    assert_eq!((opened.plan(1, FINAL, true), opened.plan(2, FINAL, true)), (send(""), send("")));
    assert!(!opened.parts()[1].stray() && opened.parts()[2].stray(), "what may stand stays marked");
    let sent = opened.sending(1, FINAL, NOW).sent(1, "11", NOW).sending(2, FINAL, NOW).sent(2, "12", NOW);
    assert_eq!((sent.state(), sent.reopened(NOW)), (LedgerState::Uncertain, None), "what stands is not repeated");
}

#[test]
fn what_a_longer_preview_had_is_gone_with_its_message() {
    let ledger = shown("a").sending(1, FRAME, NOW).sent(1, "11", NOW).kept(0, FINAL, NOW);
    assert_eq!(ledger.state(), LedgerState::Pending);
    let without = ledger.without(1, NOW);
    assert_eq!((without.state(), without.parts().len()), (LedgerState::Sent, 1));
}

/// A part of an earlier version has no digest, no limit, and an open message.
#[test]
fn a_part_of_an_earlier_version_loads() {
    let old = serde_json::json!({"state": "sent", "revision": {"fence": 7, "sequence": 1}, "message_ids": ["10"]});
    let part: LedgerPart = serde_json::from_value(old).expect("a part");
    assert_eq!((part.state(), part.message_id()), (LedgerState::Sent, Some("10")));
    assert!(!part.shows("") && !part.is_closed());
}
