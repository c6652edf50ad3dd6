//! What a message says without text, whom it answers, and from whom it was passed on.

use super::*;

/// The texts of a message's blocks, in order.
fn said(update: &Value) -> Vec<String> {
    let content = arrival(of_update(update)).event.content;
    content.into_iter().filter(|block| block.kind == ContentType::Text).map(|block| block.text).collect()
}

fn fixture_said(name: &str) -> Vec<String> {
    said(&serde_json::from_str(fixture(name)).unwrap())
}

#[test]
fn what_is_no_file_is_told_in_words() {
    for (name, wanted) in [
        ("sticker", "[sticker 😀 of the set Invented]"),
        ("venue", "[venue: Television Tower, Panoramastr. 1A, 52.520008, 13.404954]"),
        ("contact", "[contact: Ben, Bell, +15550100]"),
        ("poll_message", "[poll: Lunch? Soup; Salad]"),
        ("dice", "[dice 🎲: 4]"),
    ] {
        assert_eq!(fixture_said(name), [wanted], "{name}");
    }
    let mut place = private("");
    place["message"]["location"] = json!({ "latitude": -33.5, "longitude": 151 });
    assert_eq!(said(&place), ["[location: -33.500000, 151.000000]"]);
    for odd in ["sticker", "venue", "location", "contact", "poll", "dice"] {
        let mut update = private("");
        update["message"][odd] = json!({ "emoji": 5, "options": "none", "title": "]\n[" });
        assert_eq!(said(&update).len(), 1, "{odd}");
    }
}

#[test]
fn a_reply_brings_what_it_answers() {
    assert_eq!(
        fixture_said("reply_with_quote"),
        ["[in reply to a message of Ben]\n> since Monday", "@echo_bot is that so?"]
    );
    assert_eq!(fixture_said("group_reply_to_us"), ["[in reply to your message]\n> Ben is on call.", "and tomorrow?"]);
    assert_eq!(fixture_said("external_reply"), ["[in reply to a message of News]\n> [photo]", "what do you think?"]);
    let block = &arrival(of("group_reply_to_us")).event.content[0];
    assert_eq!(block.metadata["context"], "reply");
}

#[test]
fn a_quotation_is_a_text_a_caption_or_a_word() {
    let reply = |replied: Value| {
        let mut update = private("and this?");
        update["message"]["reply_to_message"] = replied;
        said(&update)
    };
    let from = json!({ "id": 1000002, "is_bot": false, "first_name": "Ben", "last_name": "Bell" });
    for (field, value, wanted) in [
        ("text", json!("one\ntwo"), "[in reply to a message of Ben Bell]\n> one\n> two"),
        ("caption", json!("the chart"), "[in reply to a message of Ben Bell]\n> the chart"),
        ("voice", json!({ "file_id": "V" }), "[in reply to a message of Ben Bell]\n> [voice]"),
        ("video_note", json!({ "file_id": "V" }), "[in reply to a message of Ben Bell]\n> [video note]"),
        ("sticker", json!({ "emoji": "😀" }), "[in reply to a message of Ben Bell]\n> [sticker 😀]"),
        ("story", json!({}), "[in reply to a message of Ben Bell]\n> [story]"),
    ] {
        assert_eq!(reply(json!({ "from": from, field: value })), [wanted, "and this?"], "{field}");
    }
    // A notice of the platform's, and what nobody is known to have said.
    assert_eq!(reply(json!({ "from": from, "pinned_message": {} })), ["and this?"]);
    assert_eq!(reply(json!({ "text": "old" })), ["[in reply to a message]\n> old", "and this?"]);
    // What holds nothing of its own stays unreadable, whatever it answers.
    let mut blank = private("\u{200b}");
    blank["message"]["reply_to_message"] = json!({ "text": "old" });
    assert_eq!(reason(&of_update(&blank)), "blank");
}

/// In a topic every message formally answers the one that opened it.
#[test]
fn a_topic_is_no_quotation() {
    assert_eq!(fixture_said("forum_topic"), ["@echo_bot status of the build?"]);
}

#[test]
fn what_was_passed_on_says_from_whom() {
    let forward = |origin: Value| {
        let mut update = private("look");
        update["message"]["forward_origin"] = origin;
        said(&update)
    };
    for (origin, wanted) in [
        (json!({ "type": "user", "sender_user": { "id": 5, "first_name": "Ben" } }), "a message of Ben"),
        (json!({ "type": "user", "sender_user": { "id": 1, "first_name": "Echo" } }), "your message"),
        (json!({ "type": "hidden_user", "sender_user_name": "Cleo" }), "a message of Cleo"),
        (json!({ "type": "chat", "sender_chat": { "id": -5, "title": "Lab" } }), "a message of Lab"),
        (json!({ "type": "channel", "chat": { "id": -6, "title": "News" }, "message_id": 3 }), "a message of News"),
        (json!({ "type": "something_new" }), "a message"),
        (json!(5), "a message"),
    ] {
        assert_eq!(forward(origin), [format!("[forwarded: {wanted} follows]"), "look".to_owned()]);
    }
}

/// What somebody else wrote commands nothing.
#[test]
fn a_forwarded_command_is_a_message() {
    let forwarded = arrival(of("forwarded_hidden"));
    assert_eq!((forwarded.command, forwarded.event.event_type), (None, EventType::Message));
}

/// `/start` may bring a payload (a deep link): it stays for whoever asks for it, and answers like `/start`.
#[test]
fn a_deep_link_is_a_start() {
    let arrival = arrival(of_update(&private("/start code-123")));
    assert_eq!((arrival.command, arrival.event.text().as_str()), (Some(Command::Help), "/start code-123"));
}

/// A command is what the person typed, whatever it answers.
#[test]
fn a_command_brings_no_quotation() {
    let mut update = private("/stop");
    update["message"]["reply_to_message"] = json!({ "text": "old" });
    assert_eq!((said(&update), arrival(of_update(&update)).command), (vec!["/stop".to_owned()], Some(Command::Stop)));
}
