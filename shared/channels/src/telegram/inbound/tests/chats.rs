//! What is said about a chat, and pressed buttons.

use turnlock_domain::event::TAP;
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;

use super::*;
use crate::ingress::ChatNews;

fn news(normalised: Normalised) -> ChatNews {
    match normalised {
        Normalised::Chat { news, .. } => news,
        other => panic!("no news: {other:?}"),
    }
}

fn chat(id: i64) -> SessionKey {
    SessionKey::new("telegram", "main", &id.to_string(), None)
}

/// Case tg-removed-from-group: known by name, time and identity, and no turn.
#[test]
fn tg_removed_from_group() {
    let at = Millis(1_760_000_000_000);
    let news = ChatNews::Gone { chat: chat(-1_001_000_000_001), reason: "kicked", at };
    let wanted = Normalised::Chat { event_id: EventId::from_stored("telegram:1:900021"), news };
    assert_eq!(of("my_chat_member_kicked"), wanted);
}

#[test]
fn every_change_of_our_membership_says_whether_the_chat_is_there() {
    let at = Millis(1_760_000_100_000);
    assert_eq!(news(of("my_chat_member_back")), ChatNews::Back { chat: chat(1_000_001), at });
    let member = |kind: &str, status: Value| {
        let mut update: Value = serde_json::from_str(fixture("my_chat_member_back")).unwrap();
        update["my_chat_member"]["chat"]["type"] = json!(kind);
        update["my_chat_member"]["new_chat_member"] = status;
        of_update(&update)
    };
    for (kind, status, wanted) in [
        ("private", json!({ "status": "kicked" }), Some("blocked")),
        ("group", json!({ "status": "left" }), Some("left")),
        ("channel", json!({ "status": "kicked" }), Some("kicked")),
        ("supergroup", json!({ "status": "restricted", "is_member": false }), Some("left")),
        ("supergroup", json!({ "status": "restricted", "is_member": true }), None),
        ("channel", json!({ "status": "administrator" }), None),
    ] {
        let wanted = match wanted {
            Some(reason) => ChatNews::Gone { chat: chat(1_000_001), reason, at },
            None => ChatNews::Back { chat: chat(1_000_001), at },
        };
        assert_eq!(news(member(kind, status)), wanted, "{kind}");
    }
    for odd in [json!({ "status": "something_new" }), json!({}), json!(null)] {
        assert!(matches!(member("group", odd), Normalised::Ignored { reason: "membership", .. }));
    }
}

/// Case tg-migrate-send (inbound half): both sides of a move say the same.
#[test]
fn tg_migrate_send() {
    let moved = ChatNews::Moved { from: chat(-4_000_001), to: chat(-1_001_000_000_055) };
    assert_eq!((news(of("migrate_to")), news(of("migrate_from"))), (moved.clone(), moved));
    let table = [("private_text", false), ("group_mention", true), ("forum_topic", true), ("channel_post", false)];
    for (name, wanted) in table {
        assert_eq!(arrival(of(name)).can_have_moved, wanted, "{name}");
    }
}

/// A press of a button names the button, its message and the one who pressed; nothing of it is text.
#[test]
fn a_pressed_button_is_a_command_with_its_own_identity() {
    let tapped = arrival(of("callback_query"));
    assert_eq!((tapped.command, tapped.event.event_type), (Some(Command::Tap), EventType::Control));
    assert_eq!(tapped.event.event_id.as_str(), "telegram:1:900024");
    assert_eq!((tapped.event.sender_id.as_str(), tapped.event.chat_id.as_str()), ("1000001", "1000001"));
    assert_eq!((tapped.event.timestamp, tapped.event.content.len()), (now(), 0));
    assert_eq!(
        tapped.event.metadata[TAP],
        json!({ "query_id": "4382bfdwdsb323b2d9", "message_id": 90, "data": "ap:1:ok" })
    );
}

/// An inline message stands in a chat that we do not see; one that is too old is only an id.
#[test]
fn a_button_may_stand_under_a_message_that_we_do_not_see() {
    let inline = arrival(of("callback_inline")).event;
    assert_eq!(inline.chat_id, "1000001");
    assert_eq!(
        inline.metadata[TAP],
        json!({ "query_id": "4382bfdwdsb323b2da", "inline_message_id": "AAAAAAinvented", "data": "ap:1:no" })
    );
    let old = arrival(of("callback_topic_inaccessible"));
    assert_eq!((old.event.chat_id.as_str(), old.can_have_moved), ("-1001000000001", true));
    assert_eq!(old.event.metadata[TAP]["message_id"], 44);
    assert_eq!(reason(&of_update(&json!({ "update_id": 1, "callback_query": { "id": "q" } }))), "callback_query");
    for odd in [json!({ "data": "x" }), json!({ "data": "x", "id": "q", "from": { "id": 5 } })] {
        assert_eq!(reason(&of_update(&json!({ "update_id": 1, "callback_query": odd }))), "incomplete");
    }
}
