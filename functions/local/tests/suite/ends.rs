//! How a process ends, and what the next one makes of it.

use serde_json::Value;

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
    let host = place.serve(&[]);
    let event = host.say("s", "slowly are you there", "").await;
    let link = event["links"]["self"].as_str().unwrap().to_owned();
    until("the turn runs", async || Some(host.get(&link).await).filter(|event| event["message"].is_object())).await;
    host.signal("KILL");
    host.ended().await;

    let started = std::time::Instant::now();
    let host = place.serve(&[]);
    let done = host.done(&event).await;
    assert!(done["message"]["text"].as_str().unwrap().contains("are you there"), "{done}");
    assert!(started.elapsed().as_secs() < 20, "the dead process's lease (60 s) was not waited for");
}

#[tokio::test]
async fn a_polite_end_lets_a_turn_finish_and_leaves_nothing_behind() {
    let place = Place::new();
    let host = place.serve(&[]);
    let event = host.say("s", "slowly hello", "").await;
    let link = event["links"]["self"].as_str().unwrap().to_owned();
    until("the turn runs", async || Some(host.get(&link).await).filter(|event| event["message"].is_object())).await;
    host.signal("TERM");
    let (status, said) = host.ended().await;
    assert_eq!(status.code(), Some(0));
    assert!(said.iter().any(|line| line.starts_with("Stopping")), "{said:?}");
    assert!(!place.path(".turnlock/host.json").exists());
    assert!(place.log().contains("committed"), "the turn was over before the process: {}", place.log());

    let host = place.serve(&[]);
    assert!(host.done(&event).await["message"]["text"].as_str().unwrap().contains("slowly hello"));
}

#[tokio::test]
async fn a_second_signal_does_not_wait_and_loses_nothing() {
    let place = Place::new();
    let host = place.serve(&[]);
    let words = "word ".repeat(200);
    let event = host.say("s", &format!("slowly {words}"), "").await;
    let link = event["links"]["self"].as_str().unwrap().to_owned();
    until("the turn runs", async || Some(host.get(&link).await).filter(|event| event["message"].is_object())).await;
    let asked = std::time::Instant::now();
    host.signal("INT");
    let listens = async || host.http.get(host.url("/healthz")).send().await.is_ok();
    until("it listens no more", async || (!listens().await).then_some(())).await;
    host.signal("INT");
    let (status, _) = host.ended().await;
    assert_eq!(status.code(), Some(0));
    assert!(asked.elapsed().as_secs() < 8, "the drain time was not waited for");
    assert!(!place.log().contains("committed"), "{}", place.log());
}
