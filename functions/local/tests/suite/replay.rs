//! `replay`: the exit codes and the two outputs. What a script can say is tested where it is read and played.

use crate::kit::{Place, complaint, out};

const HELLO: &str = r#"{"say": {"channel": "telegram", "chat": 1000001, "text": "hi"}}"#;

#[test]
fn expectations_decide_the_exit_code() {
    let place = Place::new();
    let expect = |text: &str| {
        format!("{HELLO}\n{{\"expect\": {{\"/chats/telegram:main:1000001/messages/0/text\": \"{text}\"}}}}\n")
    };
    place.write("holds.jsonl", &expect("hi"));
    place.write("fails.jsonl", &expect("something else"));
    let holds = place.run(&["replay", "holds.jsonl"]);
    assert_eq!(holds.status.code(), Some(0), "{holds:?}");
    assert!(out(&holds).contains("hi"), "{holds:?}");
    let fails = place.run(&["replay", "holds.jsonl", "fails.jsonl"]);
    assert_eq!(fails.status.code(), Some(1), "{fails:?}");
    let difference = complaint(&fails);
    assert!(difference.contains("fails.jsonl:2") && difference.contains("want \"something else\""), "{difference}");
    let both = out(&fails);
    assert!(both.starts_with("holds.jsonl\n") && both.contains("\nfails.jsonl\n"), "{both}");
}

#[test]
fn the_same_seed_gives_the_same_output() {
    let place = Place::new();
    place.write("hello.jsonl", HELLO);
    let play = |seed: &str| out(&place.run(&["replay", "hello.jsonl", "--json", "--seed", seed]));
    let once = play("7");
    let json: serde_json::Value = serde_json::from_str(&once).unwrap();
    assert_eq!(json["chats"]["telegram:main:1000001"]["messages"][0]["text"], "hi");
    assert_eq!(once, play("7"));

    let two = out(&place.run(&["replay", "hello.jsonl", "hello.jsonl", "--json"]));
    let files = two.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["file"].clone());
    assert_eq!(files.collect::<Vec<_>>(), ["hello.jsonl", "hello.jsonl"]);
}

#[test]
fn a_file_that_is_refused_is_named_with_its_line() {
    let place = Place::new();
    place.write("wrong.jsonl", &format!("{HELLO}\n{{\"sing\": true}}\n"));
    let refused = place.run(&["replay", "wrong.jsonl"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(complaint(&refused).contains("wrong.jsonl:2"), "{refused:?}");
    place.write("hello.jsonl", HELLO);
    let refused = place.run(&["replay", "hello.jsonl", "wrong.jsonl"]);
    assert_eq!(
        (refused.status.code(), out(&refused)),
        (Some(2), String::new()),
        "nothing is played before all is read"
    );
    assert_eq!(place.run(&["replay", "absent.jsonl"]).status.code(), Some(2));
}
