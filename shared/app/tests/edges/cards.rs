//! Cards in a chat: what they show, what becomes of them, and what stands above and below.

use serde_json::{Value, json};
use turnlock_domain::event::OutboundEvent;
use turnlock_store::ledger::LedgerState;

use crate::kit::{Answer, Kit, event, frame, says};
use crate::preview::{EDIT, POST, deliver};

const CARD: &str = "e1.approval.a1";

fn card(text: &str) -> OutboundEvent {
    event(json!({
        "event_id": CARD, "message_kind": "approval_request", "is_final": false, "turn": null, "revision": { "fence": 0, "sequence": 0 },
        "content": [{ "type": "text", "text": text }],
        "buttons": [{ "label": "Allow", "data": "approve:a1" }, { "label": "Deny", "data": "deny:a1" }],
    }))
}

fn settled(text: &str) -> OutboundEvent {
    event(json!({
        "event_id": format!("{CARD}.settled"), "edits": CARD, "message_kind": "approval_request", "is_final": false, "turn": null,
        "revision": { "fence": 0, "sequence": 1 }, "content": [{ "type": "text", "text": text }],
    }))
}

fn keyboards(kit: &Kit) -> Vec<(String, Value)> {
    let calls = kit.platform.calls().into_iter();
    calls.map(|call| (call.method, call.arguments["reply_markup"]["inline_keyboard"].clone())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_settled_card_takes_the_cards_message_and_its_buttons() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    // The second sending of each is recognised, whatever came in between.
    for event in [card("May I?"), card("May I?"), settled("Allowed."), settled("Allowed."), card("May I?")] {
        deliver(&kit, &delivery, &event).await;
    }
    let row = json!([[
        { "text": "Allow", "callback_data": "approve:a1" }, { "text": "Deny", "callback_data": "deny:a1" }
    ]]);
    assert_eq!(keyboards(&kit), [(POST.to_owned(), row), (EDIT.to_owned(), Value::Null)]);
    assert_eq!(kit.platform.chat("5"), ["Allowed."]);
    let ledger = kit.store.ledger(CARD).await.unwrap().unwrap();
    assert_eq!((ledger.state(), ledger.parts().len()), (LedgerState::Sent, 1));
    assert!(kit.store.ledger(&format!("{CARD}.settled")).await.unwrap().is_none(), "they have one ledger");
}

/// Of a long card only the last message changes: it has the buttons.
#[tokio::test(start_paused = true)]
async fn what_is_to_run_stays_as_it_was_shown() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    let code: String = (0..600).map(|line| format!("line {line}\n")).collect();
    deliver(&kit, &delivery, &card(&format!("```\n{code}```\nPress a button."))).await;
    let before = kit.platform.chat("5");
    assert!(before.len() > 1 && kit.platform.methods().iter().all(|method| method == POST));
    deliver(&kit, &delivery, &settled(&format!("```\n{code}```\nDenied."))).await;
    let after = kit.platform.chat("5");
    assert_eq!((&after[..before.len() - 1], after.len()), (&before[..before.len() - 1], before.len()));
    assert!(after[before.len() - 1].ends_with("Denied."));
    assert_eq!(kit.platform.methods().iter().filter(|method| *method == EDIT).count(), 1);
}

/// Where nobody knows which message shows the card, what became of it is said in a new one.
#[tokio::test(start_paused = true)]
async fn a_card_whose_message_is_unknown_is_settled_by_a_new_one() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    kit.platform.answers([Answer::Lost, Answer::Lost]);
    kit.send(&[&card("May I?")]).await;
    kit.drain(&delivery).await;
    assert_eq!(kit.platform.methods(), [POST, POST], "sent once more, and then unknown");
    deliver(&kit, &delivery, &settled("Allowed.")).await;
    assert_eq!(kit.platform.chat("5"), ["May I?", "May I?", "Allowed."]);
}

/// What the turn says once it goes on stands below the card, as a message that is seen; the preview above is taken away.
#[tokio::test(start_paused = true)]
async fn the_final_of_a_turn_that_asked_stands_below_its_card() {
    let kit = Kit::new().await;
    let delivery = kit.delivery();
    for event in [frame(1, "I will pay."), card("May I?"), settled("Allowed.")] {
        deliver(&kit, &delivery, &event).await;
    }
    assert_eq!(kit.platform.chat("5"), ["I will pay.", "Allowed."]);
    let mut later = frame(1, "I will pay. Paid");
    later.revision.fence = 2;
    later.event_id = "e1.frame.2.1".to_owned();
    deliver(&kit, &delivery, &later).await;
    assert_eq!(kit.platform.chat("5"), ["I will pay.", "Allowed."], "no frame is shown beside the card");
    let mut last = says("e1.final", "I will pay. Paid.");
    last.revision.fence = 2;
    deliver(&kit, &delivery, &last).await;
    assert_eq!(kit.platform.chat("5"), ["Allowed.", "I will pay. Paid."]);
    let ledger = kit.store.ledger("e1.final").await.unwrap().unwrap();
    assert_eq!(ledger.state(), LedgerState::Sent);
}
