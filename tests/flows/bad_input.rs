//! Bad input at every way in: a clear status, one line in the log without the body, nothing lost, no panic.

mod mutation;

use http::{HeaderMap, Method};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tracing::Level;
use turnlock_channels::IngressRequest;
use turnlock_config::Verify;

use super::bench::{Bench, Line, Logs, Route, Setup, config};

/// What stands in every bad body: no line and no answer repeats it.
const CANARY: &str = "canary-of-the-body";

/// A request that does not come in, or starts nothing.
struct Case {
    name: &'static str,
    route: Route,
    request: IngressRequest,
    status: u16,
    outcome: &'static str,
    reason: &'static str,
}

/// The request that `route` takes, with `change` to it.
fn changed(bench: &Bench, route: Route, change: impl FnOnce(&mut IngressRequest)) -> IngressRequest {
    let mut request = route.delivery(bench.now(), 1, CANARY);
    change(&mut request);
    request
}

/// The line about the event, and that there is no other one that an operator sees.
fn only_line(lines: &[Line]) -> &Line {
    let seen: Vec<&Line> = lines.iter().filter(|line| line.level <= Level::INFO).collect();
    assert_eq!(seen.len(), 1, "{seen:#?}");
    seen[0]
}

/// After whatever came before, a valid delivery is taken and answered.
async fn still_answers(bench: &Bench, route: Route, n: i64) {
    let text = format!("good {n}");
    let answer = bench.deliver(route, n, &text).await;
    assert_eq!(answer.status, route.accepted(), "{route:?}: {answer:?}");
    bench.run(5).await;
    assert_eq!(bench.event(&route.event_id(n)).await, ("done".to_owned(), text), "{route:?}");
}

async fn check(bench: &Bench, cases: Vec<Case>) {
    let logs = Logs::start();
    for Case { name, route, request, status, outcome, reason } in cases {
        logs.take();
        let answer = bench.answer(request).await;
        let what = format!("{name} at {route:?}");
        assert_eq!(answer.status, status, "{what}: {answer:?}");
        let lines = logs.take();
        let line = only_line(&lines);
        assert_eq!((line.target.as_str(), line.field("outcome")), ("turnlock::event", outcome), "{what}: {line:?}");
        assert_eq!(line.field("reason"), reason, "{what}");
        assert!(!answer.shown().contains(CANARY), "{what}: {answer:?}");
        if status >= 400 {
            assert_eq!(answer.json()["error"].as_str().map(str::is_empty), Some(false), "{what}: {answer:?}");
        }
    }
    assert!(!logs.text().contains(CANARY), "{}", logs.text());
    assert!(bench.left().is_empty(), "nothing bad is in a queue: {:?}", bench.left());
}

#[tokio::test(start_paused = true)]
async fn what_breaks_the_rules_of_every_route_is_refused_by_status() {
    let bench = Bench::new().await;
    let mut cases = Vec::new();
    for route in Route::ALL {
        let refused = |name, status, reason, request| Case { name, route, request, status, outcome: "refused", reason };
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            let request = changed(&bench, route, |request| request.method = method);
            cases.push(refused("method", 405, "method_not_allowed", request));
        }
        let request = changed(&bench, route, |request| request.headers = HeaderMap::new());
        cases.push(refused("no signature", 401, "bad_signature", request));
        let request = changed(&bench, route, forge);
        cases.push(refused("forged signature", 401, "bad_signature", request));
        let large = route.signed(bench.now(), 1, CANARY.repeat((2 << 20) / CANARY.len()).into_bytes());
        cases.push(refused("2 MB", 413, "too_large", large));
        for (name, body) in broken_bodies() {
            cases.push(refused(name, 400, "malformed", route.signed(bench.now(), 1, body)));
        }
    }
    check(&bench, cases).await;
    for (n, route) in (100..).zip(Route::ALL) {
        still_answers(&bench, route, n).await;
    }
}

/// Bodies that are no JSON. Slack's begin with a brace, as what does not is taken for a form there.
fn broken_bodies() -> Vec<(&'static str, Vec<u8>)> {
    let deep = format!("{{\"{CANARY}\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    vec![
        ("cut", format!("{{\"update_id\": 1, \"{CANARY}\": ").into_bytes()),
        ("trailing", format!("{{\"text\": \"{CANARY}\"}} {CANARY}").into_bytes()),
        ("not UTF-8", [b"{\"text\": \"", CANARY.as_bytes(), b"\xff\"}"].concat()),
        ("single quotes", format!("{{'text': '{CANARY}'}}").into_bytes()),
        ("too deep", deep.into_bytes()),
        ("huge number", format!("{{\"text\": \"{CANARY}\", \"n\": 1e999}}").into_bytes()),
        ("control character", format!("{{\"text\": \"{CANARY}\n\"}}").into_bytes()),
    ]
}

/// Every header that proves something says something else.
fn forge(request: &mut IngressRequest) {
    for (name, value) in &mut request.headers {
        if name != "content-type" && name != "idempotency-key" && name != "webhook-id" {
            *value = format!("v1,{CANARY}").parse().unwrap();
        }
    }
}

/// Signed five minutes ago and a second: a second earlier it would have been taken.
#[tokio::test(start_paused = true)]
async fn a_stale_signature_is_refused_on_the_second() {
    let bench = Bench::new().await;
    let mut cases = Vec::new();
    for route in [Route::Slack, Route::Standard, Route::Slackish] {
        for age in [-301, 301, 86_400 * 365] {
            let at = jiff::Timestamp::from_second(bench.now().as_second() - age).unwrap();
            let request = route.delivery(at, 1, CANARY);
            cases.push(Case {
                name: "stale",
                route,
                request,
                status: 401,
                outcome: "refused",
                reason: "stale_signature",
            });
        }
    }
    check(&bench, cases).await;
    for (n, route) in (1..).zip([Route::Slack, Route::Standard, Route::Slackish]) {
        let at = jiff::Timestamp::from_second(bench.now().as_second() - 290).unwrap();
        let answer = bench.answer(route.delivery(at, n, "in time")).await;
        assert_eq!(answer.status, 200, "{route:?}");
    }
}

/// Invariant 14: a route without a secret is closed, also to whoever signs with the empty one.
#[tokio::test(start_paused = true)]
async fn a_missing_or_blank_secret_closes_the_route() {
    let bench = Bench::new().await;
    let open: Vec<(Route, IngressRequest)> =
        Route::ALL.into_iter().map(|route| (route, route.delivery(bench.now(), 1, CANARY))).collect();
    for secret in [None, Some(""), Some(" \t"), Some("whsec_")] {
        let secret = secret.map(SecretString::from);
        let mut config = config();
        for bot in config.telegram.values_mut() {
            bot.secret_token.clone_from(&secret);
        }
        for app in config.slack.values_mut() {
            app.signing_secret.clone_from(&secret);
        }
        for source in config.webhook.values_mut() {
            source.secret.clone_from(&secret);
        }
        for key in config.gateway.keys.values_mut() {
            key.key.clone_from(&secret);
        }
        // The word alone is blank for Standard Webhooks only.
        let is_blank = secret.as_ref().is_none_or(|secret| secret.expose_secret() != "whsec_");
        let closed = |route: &Route| is_blank || *route == Route::Standard;
        let bench = Setup::new(config).start().await;
        let cases = open.iter().filter(|(route, _)| closed(route)).map(|(route, request)| Case {
            name: "no secret",
            route: *route,
            request: request.clone(),
            status: 503,
            outcome: "refused",
            reason: "secret_missing",
        });
        check(&bench, cases.collect()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_account_or_path_is_not_found() {
    let bench = Bench::new().await;
    let mut cases = Vec::new();
    for route in Route::ALL.into_iter().filter(|route| *route != Route::Api) {
        let base = route.path().rsplit_once('/').unwrap().0.to_owned();
        for account in ["nobody", "", "main/more", "%6dain", "MAIN", &CANARY.repeat(1000)] {
            let request = changed(&bench, route, |request| request.path = format!("{base}/{account}"));
            let (outcome, reason) = ("refused", "unknown_account");
            cases.push(Case { name: "account", route, request, status: 404, outcome, reason });
        }
    }
    check(&bench, cases).await;
    for path in ["", "/", "/telegram", "/nothing/here", "/v1", "/v1/", "/v1/nothing", "/v1/messages/more", "//"] {
        let request = changed(&bench, Route::Api, |request| request.path = path.to_owned());
        assert_eq!(bench.answer(request).await.status, 404, "{path}");
    }
}

/// What the API is asked for may be named anything.
#[tokio::test(start_paused = true)]
async fn whatever_is_looked_up_is_found_or_not() {
    let bench = Bench::new().await;
    let long = "x".repeat(5000);
    for id in ["a", "%00", "%ff%fe", "..%2f..", "%23%23", "e:1", &long, "%F0%9F%91%8D", "%EF%BF%BF"] {
        for path in
            [format!("/v1/events/{id}"), format!("/v1/events/{id}/stream"), format!("/v1/sessions/{id}/messages")]
        {
            let answer = bench.get(&path).await;
            assert_eq!(answer.status, 404, "{path}: {answer:?}");
        }
    }
    still_answers(&bench, Route::Api, 1).await;
    for query in ["limit=0", "limit=101", "limit=x", "limit=", "before=-1", "before=99999999999999999999999"] {
        let headers = Route::Api.sign(bench.now(), "get", b"");
        let request = IngressRequest {
            method: Method::GET,
            query: query.to_owned(),
            ..IngressRequest::post("/v1/sessions/gateway:default/messages", headers, "")
        };
        assert_eq!(bench.answer(request).await.status, 400, "{query}");
    }
    for wait in ["26", "-1", "x", "1.5"] {
        let request = changed(&bench, Route::Api, |request| request.query = format!("wait={wait}"));
        assert_eq!(bench.answer(request).await.status, 400, "{wait}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_message_for_us_is_answered_200_and_starts_nothing() {
    let bench = Bench::new().await;
    let telegram = |body: Value, reason| (Route::Telegram, body, reason);
    let message = |message: Value| json!({ "update_id": 5, "message": message });
    let slack = |event: Value, reason| {
        let body = json!({ "type": "event_callback", "team_id": "T0TEAM", "event": event });
        (Route::Slack, body, reason)
    };
    let table = [
        telegram(json!({ "text": CANARY }), "no_update_id"),
        telegram(json!({ "update_id": CANARY }), "no_update_id"),
        telegram(json!({ "update_id": 1.5e300, "message": {} }), "no_update_id"),
        telegram(json!({ "update_id": 5 }), "unknown_update"),
        telegram(json!({ "update_id": 5, "from_the_future": { "text": CANARY } }), "unknown_update"),
        telegram(json!({ "update_id": 5, "poll": { "question": CANARY } }), "poll"),
        telegram(message(json!(CANARY)), "incomplete"),
        telegram(message(json!({ "text": CANARY })), "incomplete"),
        telegram(message(json!({ "text": CANARY, "chat": { "id": "7" }, "date": 1, "message_id": 1 })), "incomplete"),
        telegram(message(json!({ "text": CANARY, "chat": { "id": 7 }, "message_id": 1 })), "incomplete"),
        telegram(
            message(json!({ "text": CANARY, "chat": { "id": 7 }, "date": i64::MAX, "message_id": 1 })),
            "incomplete",
        ),
        telegram(
            message(json!({ "text": [CANARY], "chat": { "id": 7 }, "date": 1, "message_id": 1 })),
            "service_message",
        ),
        (Route::Slack, json!({ "type": CANARY }), "unknown_envelope"),
        (Route::Slack, json!({ "type": { "of": CANARY } }), "unknown_envelope"),
        slack(json!({ "type": CANARY }), "unknown_event"),
        slack(json!({ "type": "message", "text": CANARY }), "incomplete"),
        slack(
            json!({ "type": "message", "channel": "D0DM", "ts": CANARY, "user": "U0USER", "text": "x" }),
            "incomplete",
        ),
        slack(
            json!({ "type": "message", "channel": "D0DM", "ts": "9999999999999999.1", "user": "U0USER" }),
            "incomplete",
        ),
        slack(json!({ "type": "message", "channel": "D0DM", "ts": "1767603600.1", "text": CANARY }), "incomplete"),
        slack(
            json!({ "type": "message", "channel": "D".repeat(5000), "ts": "1767603600.1", "user": "U0USER", "text": CANARY }),
            "incomplete",
        ),
        slack(
            json!({ "type": "message", "channel": "C0CHAN", "ts": "1767603600.1", "user": "U0USER", "text": CANARY }),
            "not_addressed",
        ),
    ];
    let cases = table.into_iter().map(|(route, body, reason)| {
        let request = route.signed(bench.now(), 5, body.to_string().into_bytes());
        Case { name: "no message", route, request, status: 200, outcome: "ignored", reason }
    });
    check(&bench, cases.collect()).await;
    // The same ids again, as what they should have been.
    still_answers(&bench, Route::Telegram, 5).await;
    still_answers(&bench, Route::Slack, 5).await;
}

#[tokio::test(start_paused = true)]
async fn a_body_of_the_wrong_shape_is_refused_where_the_shape_is_ours_to_say() {
    let bench = Bench::new().await;
    let mut cases = Vec::new();
    for route in [Route::Telegram, Route::Slack, Route::Api] {
        let list = if route == Route::Slack {
            json!({ "type": "url_verification", "challenge": [CANARY] })
        } else {
            json!([CANARY])
        };
        let request = route.signed(bench.now(), 1, list.to_string().into_bytes());
        cases.push(Case { name: "shape", route, request, status: 400, outcome: "refused", reason: "invalid" });
    }
    let deep = (0..100).fold(json!(CANARY), |inner, _| json!([inner]));
    for body in [
        json!({}),
        json!({ "text": "" }),
        json!({ "text": "\u{200b}\u{2060}" }),
        json!({ "text": 5 }),
        json!({ "text": null }),
        json!({ "text": "a", "content": [] }),
        json!({ "content": [] }),
        json!({ "content": CANARY }),
        json!({ "content": [{ "type": CANARY }] }),
        json!({ "content": [CANARY] }),
        json!({ "content": [{ "type": "image", "url": format!("telegram-file:{CANARY}") }] }),
        json!({ "text": "a", "session": "" }),
        json!({ "text": "a", "session": CANARY.repeat(100) }),
        json!({ "text": "a", "session": "a\nb" }),
        json!({ "text": "a", "sender": 5 }),
        json!({ "text": "a", "metadata": [CANARY] }),
        json!({ "text": "a", "metadata": { "deep": deep, "large": CANARY.repeat(2000) } }),
        json!({ "text": "a", CANARY: 1 }),
    ] {
        let request = Route::Api.signed(bench.now(), 1, body.to_string().into_bytes());
        let route = Route::Api;
        cases.push(Case { name: "API body", route, request, status: 400, outcome: "refused", reason: "invalid" });
    }
    let source = Route::Standard;
    for body in ["", "null", "\"\u{200b}\"", "\"\""] {
        let request = source.signed(bench.now(), 1, body.as_bytes().to_vec());
        let reason = if body.is_empty() { "malformed" } else { "invalid" };
        cases.push(Case { name: "webhook body", route: source, request, status: 400, outcome: "refused", reason });
    }
    for key in ["", "with space", "ü", &"k".repeat(256)] {
        let request = changed(&bench, Route::Api, |request| {
            request.headers.insert("idempotency-key", http::HeaderValue::from_bytes(key.as_bytes()).unwrap());
        });
        let route = Route::Api;
        cases.push(Case { name: "key", route, request, status: 400, outcome: "refused", reason: "invalid" });
    }
    check(&bench, cases).await;
}

/// The same key with another body is refused, and the event that has it is answered.
#[tokio::test(start_paused = true)]
async fn a_key_that_comes_with_another_body_is_a_conflict() {
    let bench = Bench::new().await;
    assert_eq!(bench.deliver(Route::Api, 1, "first").await.status, 202);
    let logs = Logs::start();
    assert_eq!(bench.deliver(Route::Api, 1, CANARY).await.status, 409);
    let lines = logs.take();
    assert_eq!(only_line(&lines).field("reason"), "conflict");
    assert!(!logs.text().contains(CANARY), "{}", logs.text());
    bench.run(5).await;
    assert_eq!(bench.event(&Route::Api.event_id(1)).await, ("done".to_owned(), "first".to_owned()));
}

/// Case by case what a person can see: half characters cost one character, invisible text gets a kind sentence.
#[tokio::test(start_paused = true)]
async fn odd_texts_are_answered_where_they_came_from() {
    let bench = Bench::new().await;
    let logs = Logs::start();
    for (n, route) in (1..).zip(Route::ALL) {
        let body = route.body(n, "LONE").to_string().replace("LONE", "a\\ud83d b\\udc97 \\u0000c");
        let answer = bench.answer(route.signed(bench.now(), n, body.into_bytes())).await;
        assert_eq!(answer.status, route.accepted(), "{route:?}: {answer:?}");
        bench.run(5).await;
        let (status, text) = bench.event(&route.event_id(n)).await;
        assert_eq!((status.as_str(), text.as_str()), ("done", "a\u{fffd} b\u{fffd} c"), "{route:?}");
    }
    for (route, chat) in [(Route::Telegram, "telegram:main:1000001"), (Route::Slack, "slack:main:D0DM")] {
        logs.take();
        assert_eq!(bench.deliver(route, 50, "\u{200b}\u{feff}\u{2060}").await.status, 200);
        let lines = logs.take();
        assert_eq!((only_line(&lines).field("outcome"), only_line(&lines).field("reason")), ("ignored", "blank"));
        bench.run(5).await;
        let said = "I could not find any text in your message. Could you write it out?";
        assert_eq!(bench.chat(chat).last().map(String::as_str), Some(said));
    }
    assert!(bench.left().is_empty(), "{:?}", bench.left());
}

/// What a queue or an item could not hold would be taken and never answered.
#[tokio::test(start_paused = true)]
async fn what_is_taken_is_answered_however_odd_it_is() {
    let bench = Bench::new().await;
    let nested = |levels: usize| (0..levels).fold(json!("end"), |inner, _| json!({ "in": inner }));
    // Each of these numbers is written out four times as long as it came.
    let numbers = format!("[{}]", vec!["1e15"; 40_000].join(","));
    let mut odd: Vec<String> = [30, 120, 124, 125, 126, 127].map(|levels| nested(levels).to_string()).into();
    odd.extend([json!({ "\u{ffff}\u{fffe}": "\u{ffff}" }).to_string(), format!("{{\"numbers\":{numbers}}}")]);
    let mut n = 0;
    for route in Route::ALL {
        for metadata in &odd {
            n += 1;
            let mut body = route.body(n, "hello");
            body["metadata"] = json!("METADATA");
            let body = body.to_string().replace("\"METADATA\"", metadata);
            let answer = bench.answer(route.signed(bench.now(), n, body.into_bytes())).await;
            // Refused at once is as good: nothing was promised.
            if answer.status == 400 && (route == Route::Api || metadata.starts_with("{\"in\"")) {
                continue;
            }
            assert_eq!(answer.status, route.accepted(), "{route:?} {n}: {answer:?}");
            bench.run(5).await;
            assert_eq!(bench.event(&route.event_id(n)).await, ("done".to_owned(), "hello".to_owned()), "{route:?} {n}");
        }
    }
    // Telegram's own fields, as long and odd as a body allows.
    for odd in [json!("x".repeat(450_000)), json!(vec![1e15; 20_000]), json!("\u{ffff}"), nested(110)] {
        n += 1;
        let mut body = Route::Telegram.body(n, "hello");
        body["message"]["from"]["first_name"] = odd.clone();
        body["message"]["chat"]["title"] = odd;
        let answer = bench.answer(Route::Telegram.signed(bench.now(), n, body.to_string().into_bytes())).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        bench.run(5).await;
        assert_eq!(bench.event(&Route::Telegram.event_id(n)).await.0, "done", "{n}");
    }
    let names = ["👍".repeat(128), "é:/#%".repeat(20), "a\u{ffff}b".to_owned()];
    for name in names {
        n += 1;
        let mut body = Route::Api.body(n, "hello");
        body["session"] = json!(name);
        body["sender"] = json!(name);
        let answer = bench.answer(Route::Api.signed(bench.now(), n, body.to_string().into_bytes())).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        bench.run(5).await;
        assert_eq!(bench.event(&Route::Api.event_id(n)).await.0, "done", "{name}");
    }
    assert!(bench.left().is_empty(), "{:?}", bench.left());
}

/// A source that verifies by nothing we know does not exist: every kind is in [`Route::ALL`].
#[test]
fn every_way_to_verify_is_tried() {
    for verify in config().webhook.into_values().map(|source| source.verify) {
        match verify {
            Verify::Standard | Verify::Hmac { .. } | Verify::Slack | Verify::Bearer => {}
        }
    }
    let mut paths: Vec<&str> = Route::ALL.into_iter().filter(|route| route.is_webhook()).map(Route::path).collect();
    paths.sort_unstable();
    let mut known: Vec<String> = config().webhook.into_keys().map(|name| format!("/webhook/{name}")).collect();
    known.sort_unstable();
    assert_eq!(paths, known);
}
