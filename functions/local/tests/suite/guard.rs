//! Web pages elsewhere do not reach a host on loopback.

use reqwest::StatusCode;
use serde_json::json;

use crate::kit::Place;

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let place = Place::new();
    let host = place.serve(&[]);
    let own = host.address.as_str();
    for (name, value, expected) in [
        ("host", "rebound.example:80", StatusCode::FORBIDDEN),
        ("origin", "https://evil.example", StatusCode::FORBIDDEN),
        ("origin", "null", StatusCode::FORBIDDEN),
        ("sec-fetch-site", "cross-site", StatusCode::FORBIDDEN),
        ("origin", own, StatusCode::ACCEPTED),
    ] {
        let request = host.http.post(host.url("/v1/messages")).header(name, value);
        let response = request.json(&json!({ "text": "hi" })).send().await.unwrap();
        assert_eq!(response.status(), expected, "{name}: {value}");
    }
    for path in ["/", "/demo/chats", "/healthz"] {
        let response = host.http.get(host.url(path)).header("host", "rebound.example").send().await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{path}");
    }
}

#[tokio::test]
async fn a_configured_host_is_closed_and_known_by_its_names() {
    let place = Place::new();
    place.write("turnlock.toml", "[server]\nhosts = [\"bot.example.org\"]\n[agent]\nname = \"Echo\"\n");
    let host = place.serve(&[]);
    let get = |path: &str| host.http.get(host.url(path));
    assert_eq!(get("/healthz").header("host", "bot.example.org").send().await.unwrap().status(), StatusCode::OK);
    assert_eq!(get("/healthz").header("host", "other.example").send().await.unwrap().status(), StatusCode::FORBIDDEN);
    for path in ["/demo/chats", "/demo/events"] {
        assert_eq!(get(path).send().await.unwrap().status(), StatusCode::NOT_FOUND, "{path}");
    }
    let refused = host.http.post(host.url("/v1/messages")).json(&json!({ "text": "hi" })).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE, "no key is configured, so nobody may call");
    // The operator is known by the token in the data directory.
    let talked = place.run_with_input(&["chat"], "hello operator\n");
    assert!(crate::kit::out(&talked).contains("hello operator"), "{talked:?}");
}
