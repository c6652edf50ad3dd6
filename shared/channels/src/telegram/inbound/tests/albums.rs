//! Parts of albums: which album, which place, and whether the part is for us by itself.

use super::*;
use crate::ingress::AlbumPart;

const GROUP: i64 = -1_001_000_000_001;

fn photo(chat: i64, changes: &Value) -> Normalised {
    let mut update: Value = serde_json::from_str(fixture("album_part")).unwrap();
    let message = update["message"].as_object_mut().unwrap();
    message.insert("chat".to_owned(), json!({ "id": chat, "type": if chat > 0 { "private" } else { "supergroup" } }));
    message.extend(changes.as_object().unwrap().clone());
    of_update(&update)
}

fn part(normalised: Normalised) -> AlbumPart {
    match normalised {
        Normalised::AlbumPart(part) => *part,
        other => panic!("no part of an album: {other:?}"),
    }
}

#[test]
fn an_album_is_known_by_bot_chat_and_number() {
    let own = part(of("album_part"));
    assert_eq!(own.album.as_str(), "telegram:1:album:1000001:13370001");
    assert_eq!((own.number, own.addressed, own.arrival.event.event_id.as_str()), (109, true, "telegram:1:900009"));
    assert_eq!(own.arrival.event.content.len(), 1);
    let others = [
        part(photo(1_000_002, &json!({}))),
        part(photo(1_000_001, &json!({ "media_group_id": "13370002" }))),
        part(photo(1_000_001, &json!({ "business_connection_id": "biz" }))),
    ];
    for other in others {
        assert_ne!(other.album, own.album, "{other:?}");
    }
    for odd in [json!(5), json!(""), json!({}), json!("x y")] {
        assert_eq!(reason(&photo(1_000_001, &json!({ "media_group_id": odd }))), "event", "no album, and no loss");
    }
}

/// In a group one part has the caption that names us; the others say nothing, and are told apart from what people say to
/// each other by nobody but the album's item.
#[test]
fn a_part_in_a_group_is_for_us_by_its_caption() {
    let caption =
        json!({ "caption": "@echo_bot look", "caption_entities": [{ "type": "mention", "offset": 0, "length": 9 }] });
    assert!(part(photo(GROUP, &caption)).addressed);
    assert!(!part(photo(GROUP, &json!({}))).addressed);
    let mut bot = bot();
    let normalised = |bot: &Bot| {
        let mut update: Value = serde_json::from_str(fixture("album_part")).unwrap();
        update["message"]["chat"] = json!({ "id": GROUP, "type": "supergroup" });
        normalise(bot, update.to_string().as_bytes(), now()).unwrap()
    };
    bot.groups = Groups::Always;
    assert!(part(normalised(&bot)).addressed);
    bot.groups = Groups::Never;
    assert_eq!(reason(&normalised(&bot)), "groups_off");
}

/// A command needs no pictures, and waits for none.
#[test]
fn a_command_in_a_caption_is_no_part() {
    let stop = arrival(photo(1_000_001, &json!({ "caption": "/stop" })));
    assert_eq!(stop.command, Some(Command::Stop));
    assert_eq!(reason(&photo(1_000_001, &json!({ "caption": "/stop" }))), "event");
}
