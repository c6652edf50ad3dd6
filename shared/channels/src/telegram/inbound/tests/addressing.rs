//! Mentions: entities of the server's, in UTF-16 units.

use super::*;

/// Case tg-mention-substring: only entities of the server's count.
#[test]
fn tg_mention_substring() {
    let bot = Bot { username: "helper".to_owned(), ..bot() };
    for text in ["hey @helperbot2 can you look?", "write to someone@helperdesk.example", "@helper without an entity"] {
        let update = message(&json!({ "text": text })).to_string();
        assert_eq!(reason(&normalise(&bot, update.as_bytes(), now()).unwrap()), "not_addressed", "{text}");
    }
    let other =
        message(&json!({ "text": "hey @helperbot2", "entities": [{ "type": "mention", "offset": 4, "length": 11 }] }));
    assert_eq!(reason(&normalise(&bot, other.to_string().as_bytes(), now()).unwrap()), "not_addressed");
}

/// Case tg-mention-caption: a caption has its own entities.
#[test]
fn tg_mention_caption() {
    let update = message(&json!({
        "photo": [{ "file_id": "P", "file_unique_id": "p", "width": 1, "height": 1 }],
        "caption": "@echo_bot what is it",
        "caption_entities": [{ "type": "mention", "offset": 0, "length": 9 }],
    }));
    let event = arrival(of_update(&update)).event;
    assert_eq!((event.text().as_str(), event.media_urls()), ("@echo_bot what is it", vec!["telegram-file:P"]));
}

/// Case tg-mention-emoji-silent: offsets count UTF-16 units, names have no case.
#[test]
fn tg_mention_emoji_silent() {
    let update = message(&json!({
        "text": "🎉🎉 @Echo_Bot go",
        "entities": [{ "type": "mention", "offset": 5, "length": 9 }],
    }));
    assert_eq!(arrival(of_update(&update)).event.text(), "🎉🎉 @Echo_Bot go");
}

#[test]
fn entities_that_do_not_fit_the_text_are_no_mentions() {
    for (offset, length) in [(-1, 9), (0, -1), (0, 900), (i64::MAX, i64::MAX), (1, 9)] {
        let update = message(&json!({
            "text": "@echo_bot", "entities": [{ "type": "mention", "offset": offset, "length": length }],
        }));
        assert_eq!(reason(&of_update(&update)), "not_addressed");
    }
}

fn command_entity(length: usize) -> Value {
    json!([{ "type": "bot_command", "offset": 0, "length": length }])
}

/// In a group anybody can write a name behind a slash; a command there is what the server marked. In a channel posts by
/// programs carry no entities.
#[test]
fn a_command_in_a_group_is_marked() {
    let group = |text: &str| reason(&of_update(&message(&json!({ "text": text }))));
    for text in ["/help@echo_bot no entity", "/help@echo_bot", "/stop@other_bot", "/stop"] {
        assert_eq!(group(text), "not_addressed", "{text}");
    }
    let marked = message(&json!({ "text": "/help@echo_bot", "entities": command_entity(14) }));
    assert_eq!(arrival(of_update(&marked)).command, Some(Command::Help));
    let post = json!({ "update_id": 5, "channel_post": {
        "message_id": 3, "date": 1760000000, "text": "/help@echo_bot",
        "chat": { "id": -1001000000009_i64, "type": "channel", "title": "News" },
    } });
    assert_eq!(arrival(of_update(&post)).command, Some(Command::Help));
}

/// The card says `/approve CODE`, and that is taken without our name, too; what names no request may be meant for anybody.
#[test]
fn a_decision_by_code_needs_no_name_in_a_group() {
    for (text, length, wanted) in [
        ("/approve A6048B", 8, Some(Command::Approve)),
        ("/deny a6048b not now", 5, Some(Command::Deny)),
        ("/approve", 8, None),
        ("/deny please", 5, None),
        ("/stop A6048B", 5, None),
        ("/approve@other_bot A6048B", 18, None),
    ] {
        let update = of_update(&message(&json!({ "text": text, "entities": command_entity(length) })));
        match wanted {
            Some(_) => assert_eq!(arrival(update).command, wanted, "{text}"),
            None => assert!(["not_addressed", "for_another_bot"].contains(&reason(&update)), "{text}"),
        }
    }
    let forwarded =
        json!({ "text": "/approve A6048B", "entities": command_entity(8), "forward_origin": { "type": "user" } });
    assert_eq!(reason(&of_update(&message(&forwarded))), "not_addressed");
}

/// What the entity covers is the command, whatever stands next to it.
#[test]
fn the_command_is_what_the_entity_covers() {
    for (text, length, wanted) in [
        ("/stop, please", 5, Some(Command::Stop)),
        ("/stop。", 5, Some(Command::Stop)),
        ("/approve@echo_bot 12AB9F", 17, Some(Command::Approve)),
        ("/deny", 5, Some(Command::Deny)),
        ("/stop@echo_bot, please", 14, Some(Command::Stop)),
        ("/stop@echo_bot's", 14, Some(Command::Stop)),
        ("/stopwatch", 10, None),
        ("/stop, please", 900, None),
    ] {
        let extra = json!({
            "chat": { "id": 1000001, "type": "private" }, "text": text, "entities": command_entity(length),
        });
        assert_eq!(arrival(of_update(&message(&extra))).command, wanted, "{text}");
    }
}
