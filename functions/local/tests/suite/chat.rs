//! `chat` from a pipe.

use crate::kit::{Place, out};

#[tokio::test]
async fn it_starts_a_host_and_answers_line_by_line() {
    let place = Place::new();
    let talked = place.run_with_input(&["chat", "--session", "mine"], "first line\n\nsecond line\n");
    let text = out(&talked);
    assert_eq!(talked.status.code(), Some(0), "{talked:?}");
    let (first, second) = (text.find("first line").unwrap(), text.find("second line").unwrap());
    assert!(first < second && text.matches("stand-in").count() == 2, "{text}");
    assert!(!place.path(".turnlock/host.json").exists(), "the host ended with the conversation");
}

#[tokio::test]
async fn it_talks_to_the_host_that_runs() {
    let place = Place::new();
    let host = place.serve(&[]);
    let talked = place.run_with_input(&["chat", "--session", "mine"], "/status\nhello\n/new\n/quit\nnever said\n");
    assert_eq!(talked.status.code(), Some(0), "{talked:?}");
    let text = out(&talked);
    assert!(text.contains("waiting for your next message") && text.contains("new conversation"), "{text}");
    assert!(!text.contains("never said"), "{text}");
    let session = host.get("/v1/sessions/cli:mine/messages").await;
    assert_eq!((&session["generation"], session["messages"].as_array().map(Vec::len)), (&1.into(), Some(0)));
}

#[tokio::test]
async fn a_host_that_is_pressed_is_waited_for() {
    let place = Place::new();
    place.write("turnlock.toml", "[agent.limits]\nrpm = 60\nburst = 1\n");
    let talked = place.run_with_input(&["chat"], "one\ntwo\n");
    assert_eq!(talked.status.code(), Some(0), "{talked:?}");
    assert!(out(&talked).contains("two"), "{talked:?}");
}
