//! Updates and what becomes of them. The fixtures are read twice: as they are, and mutated (`src/mutation.rs`).

use serde_json::{Value, json};
use turnlock_domain::envelope::Command;
use turnlock_domain::event::{ContentType, EventType};

use super::*;
use crate::Groups;
use crate::ingress::Arrival;

macro_rules! fixtures {
    ($($name:literal),* $(,)?) => {
        /// Every fixture by name.
        const FIXTURES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../fixtures/", $name, ".json")))),*];
    };
}

fixtures!(
    "private_text",
    "private_command",
    "group_mention",
    "group_chatter",
    "group_reply_to_us",
    "group_command",
    "group_text_mention",
    "photo_caption",
    "album_part",
    "document",
    "voice",
    "animation",
    "sticker",
    "forum_topic",
    "forum_general_reply",
    "channel_post",
    "anonymous_admin",
    "business_message",
    "business_owner_message",
    "edited_message",
    "my_chat_member_kicked",
    "migrate_to",
    "new_chat_members",
    "callback_query",
    "message_reaction",
    "automatic_forward",
    "invisible_text",
    "reply_with_quote",
    "external_reply",
    "forwarded_hidden",
    "venue",
    "contact",
    "poll_message",
    "dice",
    "story",
    "my_chat_member_back",
    "migrate_from",
    "callback_inline",
    "callback_topic_inaccessible",
    "audio",
    "video",
    "video_note",
);

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_200).unwrap()
}

pub(crate) fn bot() -> Bot {
    Bot { account: "main".to_owned(), bot_id: 1, username: "echo_bot".to_owned(), groups: Groups::Mention }
}

fn fixture(name: &str) -> &'static str {
    FIXTURES.iter().find(|(fixture, _)| *fixture == name).map(|(_, text)| *text).unwrap()
}

fn of(name: &str) -> Normalised {
    normalise(&bot(), fixture(name).as_bytes(), now()).unwrap()
}

fn of_update(update: &Value) -> Normalised {
    normalise(&bot(), update.to_string().as_bytes(), now()).unwrap()
}

fn arrival(normalised: Normalised) -> Arrival {
    match normalised {
        Normalised::Event(arrival) => *arrival,
        Normalised::AlbumPart(part) => part.arrival,
        other => panic!("no event: {other:?}"),
    }
}

fn reason(normalised: &Normalised) -> &'static str {
    match normalised {
        Normalised::Event(_) => "event",
        Normalised::AlbumPart(_) => "album_part",
        Normalised::Unreadable { reason, .. } | Normalised::Ignored { reason, .. } => reason,
        Normalised::Chat { news, .. } => news.reason(),
        Normalised::Answer(_) => "answer",
    }
}

/// A message of Ann's in the group Lab or, without a title, in her private chat.
fn message(extra: &Value) -> Value {
    let chat = match extra.get("chat") {
        Some(chat) => chat.clone(),
        None => json!({ "id": -1001000000001_i64, "type": "supergroup", "title": "Lab" }),
    };
    let mut message = json!({
        "message_id": 7, "date": 1760000000, "chat": chat,
        "from": { "id": 1000001, "is_bot": false, "first_name": "Ann" },
    });
    for (key, value) in extra.as_object().unwrap() {
        message[key] = value.clone();
    }
    json!({ "update_id": 5, "message": message })
}

fn private(text: &str) -> Value {
    message(&json!({ "chat": { "id": 1000001, "type": "private" }, "text": text }))
}

#[test]
fn every_fixture_becomes_what_it_is() {
    let wanted = [
        ("private_text", "event"),
        ("private_command", "event"),
        ("group_mention", "event"),
        ("group_chatter", "not_addressed"),
        ("group_reply_to_us", "event"),
        ("group_command", "event"),
        ("group_text_mention", "event"),
        ("photo_caption", "event"),
        ("album_part", "album_part"),
        ("document", "event"),
        ("voice", "event"),
        ("animation", "event"),
        ("sticker", "event"),
        ("forum_topic", "event"),
        ("forum_general_reply", "event"),
        ("channel_post", "event"),
        ("anonymous_admin", "event"),
        ("business_message", "event"),
        ("business_owner_message", "own"),
        ("edited_message", "edited_message"),
        ("my_chat_member_kicked", "membership"),
        ("migrate_to", "migration"),
        ("new_chat_members", "not_addressed"),
        ("callback_query", "event"),
        ("message_reaction", "reaction"),
        ("automatic_forward", "automatic_forward"),
        ("invisible_text", "blank"),
        ("reply_with_quote", "event"),
        ("external_reply", "event"),
        ("forwarded_hidden", "event"),
        ("venue", "event"),
        ("contact", "event"),
        ("poll_message", "event"),
        ("dice", "event"),
        ("story", "unsupported_content"),
        ("my_chat_member_back", "membership"),
        ("migrate_from", "migration"),
        ("callback_inline", "event"),
        ("callback_topic_inaccessible", "event"),
        ("audio", "event"),
        ("video", "event"),
        ("video_note", "event"),
    ];
    let got: Vec<_> = FIXTURES.iter().map(|(name, _)| (*name, reason(&of(name)))).collect();
    assert_eq!(got, wanted);
}

#[test]
fn a_private_message_is_the_whole_event() {
    let arrival = arrival(of("private_text"));
    assert_eq!(
        serde_json::to_value(&arrival.event).unwrap(),
        json!({
            "schema": 1,
            "event_id": "telegram:1:900001",
            "event_type": "message",
            "channel": "telegram",
            "account": "main",
            "sender_id": "1000001",
            "chat_id": "1000001",
            "content": [{ "type": "text", "text": "hello, what is 2+2?" }],
            "timestamp": "2025-10-09T08:53:20Z",
            "metadata": {
                "message_id": 101,
                "chat_type": "private",
                "username": "ann_ames",
                "first_name": "Ann",
                "last_name": "Ames",
                "language_code": "en",
            },
        })
    );
    assert_eq!(arrival.position.as_str(), "001760000000000#00000000000000000101");
    assert_eq!((arrival.command, arrival.unattended), (None, false));
    assert_eq!(arrival.event.session_key().as_str(), "telegram:1000001");
}

#[test]
fn in_a_group_the_answer_quotes_its_question() {
    assert_eq!(arrival(of("group_mention")).event.reply_to_id.as_deref(), Some("103"));
    assert_eq!(arrival(of("private_text")).event.reply_to_id, None);
}

#[test]
fn media_are_references_without_a_token() {
    let photo = arrival(of("photo_caption")).event;
    assert_eq!(
        (photo.text().as_str(), photo.media_urls()),
        ("what is this?", vec!["telegram-file:AgACAgIAAxkBAAIBlarge"])
    );
    let document = &arrival(of("document")).event.content[1];
    assert_eq!(
        (document.kind, document.mime_type.as_str(), document.name.as_deref(), document.size),
        (ContentType::File, "application/pdf", Some("report.pdf"), Some(48213))
    );
    assert_eq!(arrival(of("voice")).event.content[0].kind, ContentType::Voice);
    let last = |name| arrival(of(name)).event.content.pop().unwrap();
    for (name, kind, mime, file, bytes) in [
        ("audio", ContentType::Audio, "audio/mpeg", Some("morning.mp3"), 3_441_220),
        ("video", ContentType::Video, "video/mp4", Some("walk.mp4"), 2_201_140),
        ("video_note", ContentType::Video, "video/mp4", None, 511_203),
    ] {
        let block = last(name);
        assert_eq!(
            (block.kind, block.mime_type.as_str(), block.name.as_deref(), block.size),
            (kind, mime, file, Some(bytes)),
            "{name}"
        );
    }
    let animation = arrival(of("animation")).event.content;
    assert_eq!((animation.len(), animation[0].kind), (1, ContentType::Video));
}

#[test]
fn commands_are_control_and_say_whose_they_are() {
    let table = [
        (private("/stop"), Some(Command::Stop)),
        (private("/NEW tell me more"), Some(Command::New)),
        (private("/status@Echo_Bot"), Some(Command::Status)),
        (private("/stop@other_bot"), None),
        (private("/weather Berlin"), None),
        (private("please /stop"), None),
        (private("stop"), None),
    ];
    for (update, wanted) in table {
        let arrival = arrival(of_update(&update));
        assert_eq!(arrival.command, wanted, "{update}");
        assert_eq!(arrival.event.event_type == EventType::Control, wanted.is_some());
    }
    assert_eq!(arrival(of("private_command")).command, Some(Command::Help));
    assert_eq!(arrival(of("group_command")).command, Some(Command::Stop));
    assert_eq!(arrival(of("anonymous_admin")).command, Some(Command::Status));
    let other = message(
        &json!({ "text": "/stop@other_bot", "entities": [{ "type": "bot_command", "offset": 0, "length": 15 }] }),
    );
    assert_eq!(reason(&of_update(&other)), "for_another_bot");
}

#[test]
fn the_group_policy_holds_for_groups_only() {
    let chatter = message(&json!({ "text": "lunch?" }));
    let story = message(&json!({ "story": { "id": 3 } }));
    for (groups, of_chatter, of_story) in [
        (Groups::Mention, "not_addressed", "not_addressed"),
        (Groups::Always, "event", "unsupported_content"),
        (Groups::Never, "groups_off", "groups_off"),
    ] {
        let bot = Bot { groups, ..bot() };
        let of = |update: &Value| normalise(&bot, update.to_string().as_bytes(), now()).unwrap();
        assert_eq!((reason(&of(&chatter)), reason(&of(&story))), (of_chatter, of_story));
        assert!(matches!(of(&story), Normalised::Ignored { .. }), "nobody asked us about the story");
        assert_eq!(reason(&of(&private("hi"))), "event");
    }
}

/// Case tg-channel-post-dropped: a channel post has no `from`; the channel itself is the sender.
#[test]
fn tg_channel_post_dropped() {
    let update = json!({ "update_id": 4001, "channel_post": {
        "message_id": 3, "date": 1760000000,
        "chat": { "id": -1001000000009_i64, "type": "channel", "title": "News" },
        "sender_chat": { "id": -1001000000009_i64, "type": "channel", "title": "News" },
        "text": "@echo_bot summarise",
    }});
    let event = arrival(of_update(&update)).event;
    assert_eq!((event.sender_id.as_str(), event.chat_id.as_str()), ("-1001000000009", "-1001000000009"));
    let mut other = update;
    other["channel_post"]["text"] = json!("@echo_bot2 summarise");
    assert_eq!(reason(&of_update(&other)), "not_addressed");
}

#[test]
fn an_anonymous_admin_speaks_as_the_group() {
    assert_eq!(arrival(of("anonymous_admin")).event.sender_id, "-1001000000001");
}

/// Case tg-edit-crash: kinds that are not for us are typed, never errors - also those that nobody has invented yet.
#[test]
fn tg_edit_crash() {
    assert_eq!(reason(&of("edited_message")), "edited_message");
    let unknown = json!({ "update_id": 1, "hologram": { "id": 3 } });
    assert_eq!(reason(&of_update(&unknown)), "unknown_update");
    for odd in [json!({}), json!({ "update_id": "x" }), json!({ "message": {} })] {
        assert_eq!(of_update(&odd), Normalised::Ignored { reason: "no_update_id", event_id: None });
    }
    for odd in [json!(null), json!([]), json!({}), json!({ "chat": { "id": 1 } })] {
        assert_eq!(reason(&of_update(&json!({ "update_id": 1, "message": odd }))), "incomplete");
    }
}

/// Case tg-edit-invisible: an edit starts no second turn, whether anybody can see it or not.
#[test]
fn tg_edit_invisible() {
    let edit = json!({ "update_id": 1006, "edited_message": {
        "message_id": 105, "date": 1760000000, "edit_date": 1760000050, "text": "ping the admin",
        "chat": { "id": 1000001, "type": "private" }, "from": { "id": 1000001, "is_bot": false, "first_name": "Ann" },
    }});
    assert_eq!(of_update(&edit), Normalised::ignored("edited_message", &EventId::from_stored("telegram:1:1006")));
}

/// Case tg-dup-slow: a redelivery has the same identity; two bots never share one.
#[test]
fn tg_dup_slow() {
    let first = arrival(of("private_text"));
    assert_eq!(first, arrival(of("private_text")));
    let other = Bot { bot_id: 2, ..bot() };
    let second = arrival(normalise(&other, fixture("private_text").as_bytes(), now()).unwrap());
    assert_ne!(first.event.event_id, second.event.event_id);
}

/// A person who sends only invisible characters, or a story, waits for an answer and gets one without a turn.
#[test]
fn what_cannot_be_read_is_answered_by_a_sentence() {
    for name in ["invisible_text", "story"] {
        match of(name) {
            Normalised::Unreadable { arrival, .. } => {
                assert_eq!((arrival.event.content.len(), arrival.event.chat_id.as_str()), (0, "1000001"));
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// Case un-lone-surrogate-json: repaired to U+FFFD and accepted, also without `from`.
#[test]
fn un_lone_surrogate_json() {
    let body = br#"{"update_id":7001,"message":{"message_id":1,"date":1760000000,"chat":{"id":1,"type":"private"},"text":"hi \ud83d"}}"#;
    let event = arrival(normalise(&bot(), body, now()).unwrap()).event;
    assert_eq!((event.text().as_str(), event.sender_id.as_str()), ("hi \u{fffd}", "1"));
}

/// Case un-pair-decoded-apart: a legal pair is one character.
#[test]
fn un_pair_decoded_apart() {
    let body = br#"{"update_id":7001,"message":{"message_id":1,"date":1760000000,"chat":{"id":1,"type":"private"},"text":"\ud83c\udf78"}}"#;
    assert_eq!(arrival(normalise(&bot(), body, now()).unwrap()).event.text(), "\u{1f378}");
}

#[test]
fn a_body_that_is_no_json_object_is_refused_without_being_quoted() {
    for body in ["", "hunter2", "{\"update_id\": hunter2}", "[\"hunter2\"]", "\"hunter2\""] {
        let refusal = normalise(&bot(), body.as_bytes(), now()).unwrap_err();
        assert_eq!(refusal.status(), 400);
        assert!(!format!("{refusal} {refusal:?}").contains("hunter2"), "{refusal}");
    }
}

/// Case se-tg-forged-chat: without the token nothing is parsed, so nothing per chat can come into being.
#[test]
fn se_tg_forged_chat() {
    let body = json!({ "update_id": 2, "message": {
        "message_id": 1, "date": 1760000000, "chat": { "id": 999999, "type": "private" }, "text": "hi",
    }});
    let secret = SecretString::from("hook-token");
    let unsigned = IngressRequest::post("/telegram/main", http::HeaderMap::new(), body.to_string());
    assert_eq!(receive(&bot(), Some(&secret), &unsigned, now()), Err(Refusal::BadSignature));
    let signed = IngressRequest::post("/telegram/main", crate::telegram::sign_headers(&secret), body.to_string());
    assert!(matches!(receive(&bot(), Some(&secret), &signed, now()), Ok(Normalised::Event(_))));
}

#[test]
fn keys_and_names_cannot_smuggle_anything_in() {
    let update = message(&json!({
        "chat": { "id": 1000001, "type": "private" }, "text": "hi\u{0}\u{e0041}",
        "from": { "id": 1000001, "is_bot": false, "first_name": "A\u{fffe}nn" }, "_drop": true,
    }));
    let event = arrival(of_update(&update)).event;
    assert_eq!(event.text(), "hi");
    assert_eq!(event.metadata["first_name"], "Ann");
    assert!(event.metadata.keys().all(|key| !key.starts_with('_')));
}

proptest::proptest! {
    #[test]
    fn no_mutation_panics_or_is_quoted(
        which in 0..FIXTURES.len(), mutation in crate::mutation::strategy(),
    ) {
        let body = mutation.apply(FIXTURES[which].1.as_bytes());
        crate::mutation::check(&body, normalise(&bot(), &body, now()));
    }
}

mod addressing;
mod albums;
mod chats;
mod context;
mod topics;
