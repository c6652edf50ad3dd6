//! `turnlock pair`: over the host that runs, and over the data of one that is stopped.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::kit::{Place, SECRET_TOKEN, Serving, complaint, out};

/// A bot that nobody may talk to; its platform is not reached.
const CLOSED: &str = "[telegram.main]\nbot_token = \"env:BOT_TOKEN\"\nsecret_token = \"env:SECRET_TOKEN\"\n\
    username = \"echo_bot\"\nbase_url = \"http://127.0.0.1:9\"\n";

fn done(place: &Place, arguments: &[&str]) -> String {
    let output = place.run(&[&["pair"], arguments].concat());
    assert!(output.status.success(), "{output:?}");
    out(&output)
}

fn code(text: &str) -> String {
    let code = text.lines().find_map(|line| line.strip_prefix("    ")).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(code.split('-').map(str::len).collect::<Vec<_>>(), [4, 4, 4], "{text}");
    assert!(text.contains(&format!("https://t.me/echo_bot?start={code}")), "{text}");
    code.to_owned()
}

async fn say(host: &Serving, sender: i64, text: &str) {
    let update = json!({ "update_id": sender, "message": {
        "message_id": sender, "date": 1_767_603_600, "chat": { "id": sender, "type": "private" },
        "from": { "id": sender, "is_bot": false, "first_name": "Ann" }, "text": text,
    } });
    let request = host.http.post(host.url("/telegram/main")).json(&update);
    let response = request.header("x-telegram-bot-api-secret-token", SECRET_TOKEN).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_code_of_the_running_host_lets_its_first_sender_in() {
    let place = Place::new();
    place.write("turnlock.toml", CLOSED);
    let host = place.serve(&[]);
    let code = code(&done(&place, &[]));
    assert_eq!(done(&place, &["--list"]), "Nobody is paired with telegram.main.\n");
    say(&host, 5, &code).await;
    say(&host, 6, &code).await;
    let list = done(&place, &["--list"]);
    assert!(list.starts_with("5  since 20") && list.lines().count() == 1, "{list}");
    let stranger = place.run(&["pair", "--remove", "6"]);
    assert_eq!(stranger.status.code(), Some(2));
    assert!(complaint(&stranger).contains("--list"), "{stranger:?}");
    assert!(done(&place, &["--remove", "5"]).contains("may no longer talk to telegram.main"));
    assert_eq!(done(&place, &["--list"]), "Nobody is paired with telegram.main.\n");
    assert!(!place.log().contains(&code), "the log has the code");
}

/// A web page, or anybody without the token of the data directory, gets no code.
#[tokio::test]
async fn only_the_operator_gets_a_code() {
    let place = Place::new();
    place.write("turnlock.toml", CLOSED);
    let host = place.serve(&[]);
    let question = json!({ "channel": "telegram", "account": "main", "asked": "offer" });
    let ask = || host.http.post(host.url("/operator/pairings")).json(&question);
    assert_eq!(ask().send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    assert_eq!(ask().bearer_auth("guess").send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    let announced: Value = serde_json::from_slice(&std::fs::read(place.path(".turnlock/host.json")).unwrap()).unwrap();
    let token = announced["token"].as_str().unwrap();
    let foreign = ask().bearer_auth(token).header("origin", "https://evil.example").send().await.unwrap();
    assert_eq!(foreign.status(), StatusCode::FORBIDDEN);
    let odd = host.http.post(host.url("/operator/pairings")).bearer_auth(token).body("?").send().await.unwrap();
    assert_eq!(odd.status(), StatusCode::BAD_REQUEST);
    let answer: Value = ask().bearer_auth(token).send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["code"].as_str().map(str::len), Some(14), "{answer}");
}

#[tokio::test]
async fn a_code_of_a_stopped_host_waits_for_its_start() {
    let place = Place::new();
    place.write("turnlock.toml", CLOSED);
    let code = code(&done(&place, &[]));
    let host = place.serve(&[]);
    say(&host, 7, &format!("/start {code}")).await;
    assert!(done(&place, &["--list"]).starts_with("7  since "));
    host.signal("TERM");
    host.ended().await;
    assert!(done(&place, &["--list"]).starts_with("7  since "));
}

#[test]
fn where_everybody_may_talk_the_command_says_so() {
    let place = Place::new();
    assert!(done(&place, &[]).contains("no pairing is needed"));
    place.write("turnlock.toml", &format!("{CLOSED}allow = [\"*\"]\n"));
    assert!(done(&place, &[]).contains("Everybody may talk to telegram.main"));
    for arguments in [&["pair", "--account", "other"][..], &["pair", "--channel", "slack"]] {
        let refused = place.run(arguments);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(complaint(&refused).contains("there is no ["), "{refused:?}");
    }
}
