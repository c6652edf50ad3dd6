//! How a process ends, and what the next one makes of it.

use serde_json::{Value, json};

use crate::kit::{Place, Serving, until};

/// More than run at once, and no more than one message of a session: rates are no subject here.
const SESSIONS: usize = 8;

#[tokio::test]
async fn after_a_kill_every_message_is_answered_once() {
    let place = Place::new();
    let host = place.serve(&[]);
    let mut events = Vec::new();
    for n in 0..SESSIONS {
        events.push(host.say(&format!("s{n}"), &format!("message {n}"), "").await);
    }
    host.signal("KILL");
    host.ended().await;

    let host = place.serve(&[]);
    for (n, event) in events.iter().enumerate() {
        let done = host.done(event).await;
        assert!(done["message"]["text"].as_str().unwrap().contains(&format!("message {n}")), "{done}");
        assert_eq!(said(&host, n).await, ["user", "assistant"], "session {n}");
    }
}

async fn said(host: &Serving, n: usize) -> Vec<Value> {
    let session = host.get(&format!("/v1/sessions/gateway:s{n}/messages")).await;
    session["messages"].as_array().unwrap().iter().map(|message| message["role"].clone()).collect()
}

#[tokio::test]
async fn a_kill_in_the_middle_of_a_turn_delays_its_answer_by_no_lease() {
    let place = Place::new();
    // A model that takes its time: nothing listens at first, so the turn is running when the process dies.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}/v1", silent.local_addr().unwrap());
    let slow = format!("[[models]]\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{base_url}\"\n");
    place.write("turnlock.toml", &slow);
    let host = place.serve(&[]);
    let token = token(&place);
    let posted = post(&host, &token).await;
    let (_connection, _) = silent.accept().unwrap();
    host.signal("KILL");
    host.ended().await;
    drop(silent);

    place.write("turnlock.toml", "[agent]\nname = \"Echo\"\n");
    let host = place.serve(&[]);
    let token = self::token(&place);
    let link = posted["links"]["self"].as_str().unwrap().to_owned();
    let started = std::time::Instant::now();
    let done = until("the answer", async || {
        let event: Value =
            host.http.get(host.url(&link)).bearer_auth(&token).send().await.unwrap().json().await.unwrap();
        Some(event).filter(|event| event["status"] == "done")
    });
    assert!(done.await["message"]["text"].as_str().unwrap().contains("are you there"));
    assert!(started.elapsed().as_secs() < 20, "the dead process's lease (60 s) was not waited for");
}

fn token(place: &Place) -> String {
    let host: Value = serde_json::from_slice(&std::fs::read(place.path(".turnlock/host.json")).unwrap()).unwrap();
    host["token"].as_str().unwrap().to_owned()
}

async fn post(host: &Serving, token: &str) -> Value {
    let request = host.http.post(host.url("/v1/messages")).bearer_auth(token);
    let response = request.json(&json!({ "text": "are you there" })).send().await.unwrap();
    assert!(response.status().is_success(), "{}", response.status());
    response.json().await.unwrap()
}

#[tokio::test]
async fn a_polite_end_drains_and_leaves_nothing_behind() {
    let place = Place::new();
    let host = place.serve(&[]);
    // Its connection is open and its stream runs when the signal comes.
    let waiting = tokio::spawn(host.http.post(host.url("/v1/messages?wait=25")).json(&json!({ "text": "hi" })).send());
    let accepted = host.say("other", "hello", "").await;
    host.signal("TERM");
    let (status, said) = host.ended().await;
    assert_eq!(status.code(), Some(0));
    assert!(said.iter().any(|line| line.starts_with("Stopping")), "{said:?}");
    assert!(!place.path(".turnlock/host.json").exists());
    drop(waiting.await);

    let host = place.serve(&[]);
    assert_eq!(host.done(&accepted).await["status"], "done");
}
