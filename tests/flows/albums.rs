//! Albums: several messages that a person sent as one are one turn, in whatever order they come, whoever dies meanwhile.

use serde_json::{Value, json};
use turnlock_replay::script::Script;
use turnlock_replay::{FEATURES, play};

const GROUP: i64 = -1_001_000_000_001;

/// Plays the lines; the whole output.
fn played(lines: &[Value]) -> Value {
    let source: Vec<String> = lines.iter().map(Value::to_string).collect();
    let script = Script::parse("albums", &source.join("\n"), FEATURES).unwrap();
    let played = play(&script, 5).unwrap();
    assert_eq!(played.faults_left, 0);
    assert!(played.failures.is_empty(), "{:?}", played.failures);
    let output = played.output.to_json().unwrap();
    assert_eq!(output["unsettled"], json!([]));
    assert_eq!(output["dead"], json!([]));
    output
}

/// Photo `n` of Ann's album; a caption that mentions us is for us in a group, too.
fn photo(chat: i64, n: i64, caption: &str) -> Value {
    let kind = if chat > 0 { "private" } else { "supergroup" };
    let mut message = json!({
        "message_id": 2100 + n, "date": 1_767_603_600, "chat": { "id": chat, "type": kind, "title": "Lab" },
        "from": { "id": 1_000_001, "is_bot": false, "first_name": "Ann" }, "media_group_id": "9001",
        "photo": [{ "file_id": format!("F{n}"), "file_unique_id": format!("u{n}"), "width": 90, "height": 90 }],
    });
    if !caption.is_empty() {
        message["caption"] = json!(caption);
    }
    if caption.starts_with("@echo_bot") {
        message["caption_entities"] = json!([{ "type": "mention", "offset": 0, "length": 9 }]);
    }
    json!({ "route": "/telegram/main", "body": { "update_id": 3000 + n, "message": message } })
}

fn deliver(chat: i64, n: i64, caption: &str) -> Value {
    json!({ "deliver": photo(chat, n, caption) })
}

fn advance(seconds: f64) -> Value {
    json!({ "advance": seconds })
}

/// What the user's messages of the only session hold: texts and references.
fn asked(output: &Value) -> Vec<Vec<String>> {
    assert!(output["sessions"].as_array().unwrap().len() <= 1, "{output:#}");
    let messages = output["sessions"][0]["messages"].as_array().cloned().unwrap_or_default();
    let part = |block: &Value| block["text"].as_str().or(block["url"].as_str()).unwrap().to_owned();
    let users = messages.iter().filter(|message| message["role"] == "user");
    users.map(|message| message["content"].as_array().unwrap().iter().map(part).collect()).collect()
}

fn statuses(output: &Value) -> Vec<i64> {
    output["deliveries"].as_array().unwrap().iter().map(|delivery| delivery["status"].as_i64().unwrap()).collect()
}

/// In a group only the caption says that the album is for us, and it may stand on any part.
#[test]
fn an_album_in_a_group_is_whole_wherever_its_caption_stands() {
    for order in [[1, 2, 3], [3, 1, 2], [2, 3, 1]] {
        let caption = |n| if n == 3 { "@echo_bot compare" } else { "" };
        let parts = order.iter().map(|n| deliver(GROUP, *n, caption(*n)));
        let output = played(&parts.collect::<Vec<_>>());
        let asked_for = "[Ann (1000001)]\n@echo_bot compare";
        let wanted = [asked_for, "telegram-file:F1", "telegram-file:F2", "telegram-file:F3"];
        assert_eq!(asked(&output), [wanted], "{order:?}");
        assert_eq!(statuses(&output), [200; 3]);
    }
}

/// What people send each other in a group stays between them.
#[test]
fn an_album_for_others_is_no_turn() {
    let output = played(&[deliver(GROUP, 1, "look"), deliver(GROUP, 2, "")]);
    assert!(asked(&output).is_empty());
    assert_eq!(output["chats"], json!({}));
    let outcomes: Vec<&Value> = output["events"].as_array().unwrap().iter().map(|event| &event["reason"]).collect();
    assert_eq!(outcomes, ["not_addressed", "not_addressed"]);
}

/// The turn began without it: it is a message of its own, and nothing is lost. Its second delivery is nothing new.
#[test]
fn a_part_that_comes_late_is_a_turn_of_its_own() {
    let in_group = "[Ann (1000001)]\n@echo_bot compare";
    let group_late = vec!["[Ann (1000001)]", "telegram-file:F2"];
    for (chat, caption, said, late_said) in [
        (1_000_001, "compare", "compare", vec!["telegram-file:F2"]),
        (GROUP, "@echo_bot compare", in_group, group_late),
    ] {
        let late = photo(chat, 2, "");
        let output = played(&[
            deliver(chat, 1, caption),
            advance(10.0),
            json!({ "deliver": late }),
            advance(10.0),
            json!({ "deliver": { "again": 0 } }),
            json!({ "deliver": { "again": 1 } }),
        ]);
        assert_eq!(asked(&output), [vec![said, "telegram-file:F1"], late_said]);
        assert_eq!(output["model_requests"].as_array().unwrap().len(), 2);
    }
}

/// Ingress dies before or after the part is stored, before or after its event is sent: the platform delivers again.
#[test]
fn ingress_dies_anywhere_and_the_album_is_whole() {
    let whole = [["compare", "telegram-file:F1", "telegram-file:F2"]];
    for kill in [
        json!({ "store": "UpdateItem", "nth": 1 }),
        json!({ "store": "UpdateItem", "nth": 1, "after": true }),
        json!({ "queue": "send", "nth": 1 }),
        json!({ "queue": "send", "nth": 1, "after": true }),
    ] {
        let output = played(&[
            json!({ "kill": kill }),
            deliver(1_000_001, 1, "compare"),
            json!({ "deliver": { "again": 0 } }),
            deliver(1_000_001, 2, ""),
        ]);
        assert_eq!(statuses(&output), [0, 200, 200], "{kill}");
        assert_eq!(asked(&output), whole, "{kill}");
        assert_eq!(output["model_requests"].as_array().unwrap().len(), 1, "{kill}");
    }
}

/// The send fails and says so: 503, and the second delivery sends what is stored.
#[test]
fn a_send_that_fails_is_made_up_for() {
    let output = played(&[
        json!({ "fault": { "queue": "send", "nth": 1, "error": "unreachable" } }),
        deliver(1_000_001, 1, "compare"),
        json!({ "deliver": { "again": 0 } }),
    ]);
    assert_eq!(statuses(&output), [503, 200]);
    assert_eq!(asked(&output), [["compare", "telegram-file:F1"]]);
}

/// The agent is restarted while the album is gathered, and dies around closing it: one turn with the same parts.
#[test]
fn the_agent_dies_while_it_gathers() {
    let whole = [["compare", "telegram-file:F1", "telegram-file:F2"]];
    let parts = [deliver(1_000_001, 1, "compare"), advance(0.5), deliver(1_000_001, 2, "")];
    let restarted = [&parts[..], &[json!({ "restart": true })]].concat();
    assert_eq!(asked(&played(&restarted)), whole);
    for after in [false, true] {
        let killed = [&parts[..], &[json!({ "kill": { "store": "UpdateItem", "nth": 1, "after": after } })]].concat();
        let output = played(&killed);
        assert_eq!(asked(&output), whole, "after: {after}");
        assert_eq!(output["model_requests"].as_array().unwrap().len(), 1, "after: {after}");
    }
}

/// Waiting for parts is no attempt and no death, however often it happens; the turn begins when nothing more comes.
#[test]
fn an_album_that_comes_slowly_is_waited_for() {
    let parts = (1..=18).flat_map(|n| [deliver(1_000_001, n, ""), advance(1.2)]);
    let output = played(&[&parts.collect::<Vec<_>>()[..], &[json!({ "run": true })]].concat());
    assert_eq!(asked(&output).iter().map(Vec::len).collect::<Vec<_>>(), [18]);
    assert_eq!(output["events"][0]["attempts"], json!(1));
}

/// Receives that only gathered the album are no outage: a table that is away for a moment delays it for a moment.
#[test]
fn one_error_of_the_table_delays_an_album_for_seconds() {
    let parts = (1..=10).flat_map(|n| [deliver(1_000_001, n, ""), advance(1.2)]);
    let error = [
        json!({ "fault": { "store": "*", "error": "unreachable", "for": 1 } }),
        advance(20.0),
        json!({ "expect": { "/chats/telegram:main:1000001/messages/#": 1 } }),
    ];
    let output = played(&[&parts.collect::<Vec<_>>()[..], &error].concat());
    assert_eq!(asked(&output).iter().map(Vec::len).collect::<Vec<_>>(), [10]);
}

/// A table that is away for long gives up no album either.
#[test]
fn an_outage_of_the_table_gives_up_no_album() {
    let outage = json!({ "fault": { "store": "*", "error": "unreachable", "for": 900 } });
    let output = played(&[deliver(1_000_001, 1, ""), outage, json!({ "run": true })]);
    assert_eq!(asked(&output).iter().map(Vec::len).collect::<Vec<_>>(), [1]);
}

/// More than any platform sends: what has no room is a message of its own.
#[test]
fn what_an_album_has_no_room_for_is_not_lost() {
    let parts: Vec<Value> = (1..=22).map(|n| deliver(1_000_001, n, "")).collect();
    let output = played(&[&[json!({ "config": { "agent": { "limits": { "rpm": 0 } } } })], &parts[..]].concat());
    assert_eq!(asked(&output).iter().map(Vec::len).collect::<Vec<_>>(), [20, 1, 1]);
}

/// Whoever may not talk has nothing stored, and is refused once.
#[test]
fn an_album_of_a_stranger_is_refused_once() {
    let output = played(&[
        json!({ "config": { "telegram": { "main": { "allow": [5] } } } }),
        deliver(1_000_001, 1, "compare"),
        deliver(1_000_001, 2, ""),
        json!({ "config": { "telegram": { "main": { "allow": [1_000_001] } } } }),
        deliver(1_000_001, 3, ""),
    ]);
    assert_eq!(asked(&output), [["telegram-file:F3"]]);
    let messages = output["chats"]["telegram:main:1000001"]["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2, "a refusal and an answer: {messages:?}");
}
