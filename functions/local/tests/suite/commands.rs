//! Recorded deliveries, and commands that cannot be obeyed.

use crate::kit::{Place, complaint, fixture, out};

#[tokio::test]
async fn a_recorded_telegram_update_is_answered_in_its_chat() {
    let place = Place::new();
    let host = place.serve(&[]);
    let file = fixture("telegram/fixtures/private_text.json");
    let send = ["send", file.to_str().unwrap(), "--channel", "telegram"];
    let sent = place.run(&send);
    assert_eq!(sent.status.code(), Some(0), "{sent:?}");
    let shown = out(&sent);
    assert!(shown.contains("200 OK") && shown.contains("telegram:main:1000001 shows:"), "{shown}");
    assert!(shown.contains("You said: hello, what is 2+2?"), "{shown}");
    assert!(!shown.contains("Nothing new"), "{shown}");

    let again = place.run(&send);
    assert!(out(&again).contains("--as-new"), "a redelivery changes nothing: {again:?}");
    let as_new = place.run(&[&send[..], &["--as-new"]].concat());
    assert!(out(&as_new).contains("You said"), "{as_new:?}");
    let chats = host.get("/demo/chats").await;
    assert_eq!(chats["chats"]["telegram:main:1000001"]["messages"].as_array().map(Vec::len), Some(2), "{chats}");
}

#[tokio::test]
async fn a_reply_that_grows_in_its_chat_is_shown_when_it_is_whole() {
    let place = Place::new();
    let _host = place.serve(&[]);
    let update = r#"{"update_id": 9, "message": {"message_id": 9, "date": 1760000000, "chat": {"id": 7, "type": "private"},
        "from": {"id": 7, "is_bot": false, "first_name": "Ann"}, "text": "slowly one two three four five"}}"#;
    place.write("slow.json", update);
    let sent = place.run(&["send", place.path("slow.json").to_str().unwrap(), "--channel", "telegram"]);
    let shown = out(&sent);
    assert_eq!(shown.matches("telegram:main:7 shows:").count(), 1, "{shown}");
    assert!(shown.contains("slowly one two three four five"), "{shown}");
}

#[tokio::test]
async fn recorded_deliveries_of_the_other_channels_are_answered() {
    let place = Place::new();
    let _host = place.serve(&[]);
    place.write("message.json", r#"{"text": "over the API"}"#);
    let message = place.path("message.json");
    for (file, channel, expected) in [
        (fixture("slack/fixtures/dm.json"), "slack", "slack:main:D0DM"),
        (fixture("telegram/fixtures/group_chatter.json"), "telegram", "ignored: not_addressed"),
        (fixture("webhook/fixtures/alert.json"), "webhook", "You said"),
        (message, "gateway", "You said: over the API"),
    ] {
        let sent = place.run(&["send", file.to_str().unwrap(), "--channel", channel]);
        assert!(sent.status.success() && out(&sent).contains(expected), "{channel}: {sent:?}");
    }
}

#[tokio::test]
async fn a_second_host_over_the_same_data_is_told_where_the_first_is() {
    let place = Place::new();
    let host = place.serve(&[]);
    let second = place.run(&["serve", "--port", "0"]);
    assert_eq!(second.status.code(), Some(2));
    let sentence = complaint(&second);
    assert!(sentence.contains(".turnlock is in use") && sentence.contains(&host.address), "{sentence}");
    let port = host.address.rsplit(':').next().unwrap();
    let other = place.run(&["serve", "--data", "elsewhere", "--port", port]);
    assert_eq!(other.status.code(), Some(2));
    assert!(complaint(&other).contains("--port"), "{other:?}");
}

#[test]
fn what_cannot_be_is_refused_with_the_key_and_the_fix() {
    let place = Place::new();
    let cases: [(&str, &[&str], &str); 4] = [
        ("[agent]\nnmae = \"Echo\"", &[], "agent.nmae"),
        ("[telegram.main]\nusername = \"b\"\nbot_token = \"123:planted\"", &[], "telegram.main.bot_token"),
        ("[[models]]\nprovider = \"bedrock\"\nmodel = \"m\"", &[], "openai"),
        ("", &["--log-level", "turnlock=loud"], "--log-level"),
    ];
    for (text, arguments, named) in cases {
        place.write("turnlock.toml", text);
        let refused = place.run(&[&["serve", "--port", "0"], arguments].concat());
        let sentence = complaint(&refused);
        assert_eq!(refused.status.code(), Some(2), "{sentence}");
        assert!(sentence.contains(named) && !sentence.contains("planted"), "{sentence}");
        assert!(!sentence.contains("panicked") && !sentence.contains("backtrace"), "{sentence}");
    }
    let absent = place.run(&["serve", "--config", "absent.toml"]);
    assert_eq!(absent.status.code(), Some(2));
    assert!(complaint(&absent).contains("absent.toml"), "{absent:?}");
}

#[test]
fn a_delivery_without_a_host_says_what_to_start() {
    let place = Place::new();
    let file = fixture("telegram/fixtures/private_text.json");
    let alone = place.run(&["send", file.to_str().unwrap(), "--channel", "telegram"]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(complaint(&alone).contains("cargo run"), "{alone:?}");
    let absent = place.run(&["send", "absent.json", "--channel", "telegram"]);
    assert!(complaint(&absent).contains("absent.json"), "{absent:?}");
}
