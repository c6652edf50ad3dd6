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
