//! The first run: no configuration file, no account, no network.

use reqwest::StatusCode;
use serde_json::json;

use crate::kit::Place;

#[tokio::test]
async fn a_message_is_answered_over_http() {
    let place = Place::new();
    let host = place.serve(&[]);
    assert_eq!(host.http.get(host.url("/healthz")).send().await.unwrap().text().await.unwrap(), "ok");
    let answer = host.say("s", "hello there", "?wait=25").await;
    assert_eq!(answer["status"], "done");
    let text = answer["message"]["text"].as_str().unwrap();
    assert!(text.contains("hello there") && text.contains("stand-in"), "{text}");
    let session = host.get("/v1/sessions/gateway:s/messages").await;
    assert_eq!(session["messages"].as_array().map(Vec::len), Some(2));
    let events = host.get("/demo/events").await;
    let ended = events["events"].as_array().unwrap().iter().find(|event| event["kind"] == "event").unwrap();
    assert_eq!(ended["outcome"], "committed");
    assert!(!events.to_string().contains("hello there"), "{events}");
}

#[tokio::test]
async fn an_answer_streams_as_server_sent_events() {
    let place = Place::new();
    let host = place.serve(&[]);
    let accepted = host.say("s", "hello", "").await;
    let response = host.http.get(host.url(accepted["links"]["stream"].as_str().unwrap())).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let stream = response.text().await.unwrap();
    let events: Vec<&str> = stream.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(events.last(), Some(&"final"), "{stream}");
    assert!(events[..events.len() - 1].iter().all(|event| *event == "frame"), "{stream}");
}

#[tokio::test]
async fn a_reply_shows_while_it_is_written_and_stops_when_told_to() {
    let place = Place::new();
    let host = place.serve(&[]);
    let accepted = host.say("s", "slowly tell me a story", "").await;
    let mut response = host.http.get(host.url(accepted["links"]["stream"].as_str().unwrap())).send().await.unwrap();
    let mut stream = String::new();
    while let Some(chunk) = response.chunk().await.unwrap() {
        let frames = stream.matches("event: frame").count();
        stream.push_str(std::str::from_utf8(&chunk).unwrap());
        if frames < 2 && stream.matches("event: frame").count() >= 2 {
            host.say("s", "/stop", "").await;
        }
    }
    assert!(stream.matches("event: frame").count() >= 2, "{stream}");
    let done = host.done(&accepted).await;
    let text = done["message"]["text"].as_str().unwrap();
    assert!(text.starts_with("You said") && text.ends_with("(stopped)"), "{text}");
}

#[tokio::test]
async fn the_page_loads_nothing_from_elsewhere() {
    let place = Place::new();
    let host = place.serve(&[]);
    for path in ["/", "/page.css", "/page.js"] {
        let response = host.http.get(host.url(path)).send().await.unwrap();
        let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        let text = response.text().await.unwrap();
        for foreign in ["http://", "https://", "innerHTML", "<style", "onclick="] {
            assert!(!text.contains(foreign), "{path} has {foreign}");
        }
    }
}

#[tokio::test]
async fn bodies_that_cannot_be_get_a_clear_status() {
    let place = Place::new();
    let host = place.serve(&[]);
    let post = |body: reqwest::Body| host.http.post(host.url("/v1/messages")).body(body).send();
    let malformed = post("{\"text\": ".into()).await.unwrap();
    assert_eq!(malformed.status(), StatusCode::BAD_REQUEST);
    assert!(malformed.json::<serde_json::Value>().await.unwrap()["message"].is_string());
    let announced = post(vec![b'x'; (2 << 20) + 1].into()).await.unwrap();
    assert_eq!(announced.status(), StatusCode::PAYLOAD_TOO_LARGE);
    // The same without a length in front: it is noticed on the way.
    let pieces = futures_util::stream::iter((0..100).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 32 << 10])));
    let unannounced = post(reqwest::Body::wrap_stream(pieces)).await.unwrap();
    assert_eq!(unannounced.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let unsigned = host.http.post(host.url("/telegram/main")).json(&json!({ "update_id": 1 })).send().await.unwrap();
    assert_eq!(unsigned.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(host.http.get(host.url("/nothing")).send().await.unwrap().status(), StatusCode::NOT_FOUND);
    assert_eq!(host.say("s", "still there?", "?wait=25").await["status"], "done");
}

#[tokio::test]
async fn log_lines_are_json_and_name_the_event() {
    let place = Place::new();
    let host = place.serve(&["--log", "json"]);
    host.say("s", "planted-text", "?wait=25").await;
    let log = place.log();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<_> = lines.iter().filter(|line| line["target"] == "turnlock::event").collect();
    assert_eq!(events.len(), 1, "{log}");
    assert_eq!((&events[0]["session"], &events[0]["channel"]), (&json!("gateway:s"), &json!("gateway")));
    assert_eq!(events[0]["turn"], events[0]["event_id"]);
    assert!(!log.contains("planted-text"), "{log}");
}
