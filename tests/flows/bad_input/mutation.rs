//! Recorded deliveries as a broken or hostile sender would write them, thrown at every way in: never a panic, never a
//! 5xx, nothing of what is taken stays unanswered, and the host goes on.

use std::fs;
use std::path::PathBuf;

use http::{HeaderName, HeaderValue, Method};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use turnlock_channels::IngressRequest;

use super::super::bench::{Bench, Logs, Route, Setup, config};
use super::{CANARY, still_answers};

/// One way to break a body; the numbers pick the place.
#[derive(Debug, Clone)]
enum Mutation {
    None,
    Flip(Vec<(Index, u8)>),
    Cut(Index),
    Insert(Index, &'static str),
    Remove(Vec<Index>),
    Swap(Vec<(Index, Index)>),
    Nest(Index, usize),
    Rename(Index),
}

/// What is wrong beside the body.
#[derive(Debug, Clone)]
enum Front {
    Valid,
    /// Signed for another body.
    Unsigned,
    /// A header is gone, or says something else.
    Header(Index, Option<&'static [u8]>),
    Extra(&'static str, &'static [u8]),
    Method(Method),
    Path(String),
    Query(&'static str),
}

#[derive(Debug, Clone)]
struct Attempt {
    route: Route,
    fixture: Index,
    mutation: Mutation,
    front: Front,
}

fn index() -> impl Strategy<Value = Index> {
    any::<Index>()
}

fn mutations() -> impl Strategy<Value = Mutation> {
    let many = |most| proptest::collection::vec(index(), 1..most);
    let swaps = proptest::collection::vec((index(), index()), 1..5);
    let raw =
        ["\"", "{", "[", "\\", "\\ud800", "\\u0000", "1e999", "\u{feff}", "\0", ",", "%", "&", "=", "999999999999"];
    prop_oneof![
        1 => Just(Mutation::None),
        3 => proptest::collection::vec((index(), 0..8_u8), 1..5).prop_map(Mutation::Flip),
        1 => index().prop_map(Mutation::Cut),
        2 => (index(), select(raw.to_vec())).prop_map(|(at, text)| Mutation::Insert(at, text)),
        4 => many(4).prop_map(Mutation::Remove),
        8 => swaps.prop_map(Mutation::Swap),
        2 => (index(), select(vec![10_usize, 60, 100, 120, 124, 126, 200])).prop_map(|(at, levels)| Mutation::Nest(at, levels)),
        2 => index().prop_map(Mutation::Rename),
    ]
}

fn fronts() -> impl Strategy<Value = Front> {
    let values: Vec<&'static [u8]> = vec![
        b"",
        b" ",
        b"\xff\xfe",
        b"9223372036854775807",
        b"-9223372036854775808",
        b"1e9",
        b"v0=",
        b"v1,",
        b"Bearer ",
        b"sha256=zz",
    ];
    let headers: Vec<&'static str> =
        vec!["x-slack-retry-num", "x-github-event", "user-agent", "traceparent", "webhook-id", "idempotency-key"];
    let types: Vec<&'static [u8]> =
        vec![b"application/x-www-form-urlencoded", b"text/plain", b"application/json; charset=utf-16", b"\xff", b""];
    let paths = prop_oneof![
        "/[a-z%/.~]{0,20}",
        "/(telegram|slack|webhook|v1/events|v1/sessions)/[ -~]{0,40}",
        Just(format!("/v1/events/{}", "x".repeat(3000))),
        Just(format!("/v1/sessions/{}/messages", "%f0".repeat(1000))),
    ];
    prop_oneof![
        12 => Just(Front::Valid),
        1 => Just(Front::Unsigned),
        2 => (index(), proptest::option::of(select(values.clone()))).prop_map(|(at, value)| Front::Header(at, value)),
        1 => (select(headers), select(values)).prop_map(|(name, value)| Front::Extra(name, value)),
        2 => select(types).prop_map(|value| Front::Extra("content-type", value)),
        1 => select(vec![Method::GET, Method::PUT, Method::OPTIONS, Method::HEAD]).prop_map(Front::Method),
        1 => paths.prop_map(Front::Path),
        1 => select(vec!["ssl_check=1", "wait=25", "wait=\u{fffd}", "%%%", "limit=1&limit=2", "before=0"]).prop_map(Front::Query),
    ]
}

fn attempts() -> impl Strategy<Value = Attempt> {
    (select(Route::ALL.to_vec()), index(), mutations(), fronts())
        .prop_map(|(route, fixture, mutation, front)| Attempt { route, fixture, mutation, front })
}

/// A body as it was recorded, and its content type.
struct Fixture {
    bytes: Vec<u8>,
    is_form: bool,
}

/// The recorded deliveries of a route, and its own plain one.
fn fixtures(route: Route) -> Vec<Fixture> {
    let channel = match route {
        Route::Telegram => "telegram",
        Route::Slack => "slack",
        Route::Standard | Route::Github | Route::Plain | Route::Slackish | Route::Bearer | Route::Api => "webhook",
    };
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../shared/channels/src/{channel}/fixtures"));
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let recorded = paths.into_iter().filter(|path| path.extension().is_some_and(|it| it == "json" || it == "form"));
    let recorded = recorded.map(|path| Fixture {
        is_form: path.extension().is_some_and(|it| it == "form"),
        bytes: fs::read(path).unwrap(),
    });
    let content = json!({ "session": "s", "sender": "ann", "metadata": { "a": 1 }, "content": [
        { "type": "text", "text": "hi" }, { "type": "image", "url": "https://example.com/a.png", "size": 5 } ] });
    let own =
        [route.body(1, "hello"), content].map(|body| Fixture { bytes: body.to_string().into_bytes(), is_form: false });
    recorded.chain(own).collect()
}

impl Mutation {
    /// The broken body. What is no JSON can only be broken byte by byte.
    fn apply(&self, body: &[u8]) -> Vec<u8> {
        let mut bytes = body.to_vec();
        let mut document: Value = serde_json::from_slice(body).unwrap_or_default();
        match self {
            Self::None => return bytes,
            Self::Flip(flips) => {
                for (at, bit) in flips {
                    let at = at.index(bytes.len());
                    bytes[at] ^= 1 << bit;
                }
                return bytes;
            }
            Self::Cut(at) => {
                bytes.truncate(at.index(bytes.len()));
                return bytes;
            }
            Self::Insert(at, text) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, text.bytes());
                return bytes;
            }
            Self::Remove(_) | Self::Swap(_) | Self::Nest(..) | Self::Rename(_) if !document.is_object() => {
                return bytes;
            }
            Self::Remove(places) => {
                for place in places {
                    at(&mut document, *place, |object, key| drop(object.remove(key)));
                }
            }
            Self::Swap(swaps) => {
                for (place, with) in swaps {
                    let odd = odd_values();
                    let odd = odd[with.index(odd.len())].clone();
                    at(&mut document, *place, |object, key| object[key] = odd);
                }
            }
            Self::Nest(place, levels) => at(&mut document, *place, |object, key| {
                let inner = object[key].take();
                object[key] = (0..*levels)
                    .fold(inner, |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({ "in": inner }) });
            }),
            Self::Rename(place) => at(&mut document, *place, |object, key| {
                let value = object.remove(key).unwrap_or_default();
                object.insert(format!("_{key}\u{ffff}"), value);
            }),
        }
        document.to_string().into_bytes()
    }
}

/// Works on the `place`-th value of the document, by the object that holds it and its key there.
fn at(document: &mut Value, place: Index, work: impl FnOnce(&mut serde_json::Map<String, Value>, &str)) {
    let mut places = Vec::new();
    collect(document, "", &mut places);
    if places.is_empty() {
        return;
    }
    let (pointer, key) = &places[place.index(places.len())];
    work(document.pointer_mut(pointer).unwrap().as_object_mut().unwrap(), key);
}

fn collect(value: &Value, pointer: &str, places: &mut Vec<(String, String)>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                places.push((pointer.to_owned(), key.clone()));
                collect(value, &format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")), places);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, value)| collect(value, &format!("{pointer}/{at}"), places));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn odd_values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1.5e300),
        json!(""),
        json!(" "),
        json!("\u{200b}"),
        json!("\u{ffff}\u{fffe}\0"),
        json!(CANARY),
        json!("/stop"),
        json!("😀".repeat(2000)),
        json!("é".repeat(60_000)),
        json!([]),
        json!([CANARY, { "_x": 1 }]),
        json!({}),
        json!({ "id": CANARY, "_drop": true, "unattended": false }),
        json!(vec![1e15; 2000]),
    ]
}

fn request(bench: &Bench, attempt: &Attempt, n: i64) -> IngressRequest {
    let fixtures = fixtures(attempt.route);
    let fixture = &fixtures[attempt.fixture.index(fixtures.len())];
    let body = attempt.mutation.apply(&fixture.bytes);
    let mut request = attempt.route.signed(bench.now(), n, body);
    if fixture.is_form {
        request.headers.insert("content-type", HeaderValue::from_static("application/x-www-form-urlencoded"));
    }
    match &attempt.front {
        Front::Valid => {}
        Front::Unsigned => request.headers = attempt.route.sign(bench.now(), "d", b"another body"),
        Front::Header(which, value) => {
            let names: Vec<HeaderName> = request.headers.keys().cloned().collect();
            let name = &names[which.index(names.len())];
            match value {
                Some(value) => drop(request.headers.insert(name, HeaderValue::from_bytes(value).unwrap())),
                None => drop(request.headers.remove(name)),
            }
        }
        Front::Extra(name, value) => {
            request.headers.insert(*name, HeaderValue::from_bytes(value).unwrap());
        }
        Front::Method(method) => request.method = method.clone(),
        Front::Path(path) => request.path.clone_from(path),
        Front::Query(query) => (*query).clone_into(&mut request.query),
    }
    request
}

/// Everything of one case is thrown at a host of its own, which then works off what it has taken.
async fn throw(attempts: &[Attempt]) -> Result<(), TestCaseError> {
    let bench = Setup::new(config()).start().await;
    let logs = Logs::start();
    for (n, attempt) in (1000..).zip(attempts) {
        let answer = bench.answer(request(&bench, attempt, n)).await;
        prop_assert!((200..500).contains(&answer.status), "{answer:?}");
        // What is accepted names the session that its caller chose.
        prop_assert!(answer.status < 300 || !answer.shown().contains(CANARY), "{answer:?}");
    }
    bench.run(600).await;
    prop_assert!(bench.left().is_empty(), "taken and not dealt with: {:?}", bench.left());
    let text = logs.text();
    prop_assert!(!text.contains("panicked"), "{text}");
    prop_assert!(!text.contains("dead item"), "{text}");
    for (n, route) in (700_000..).zip(Route::ALL) {
        still_answers(&bench, route, n).await;
    }
    Ok(())
}

#[test]
fn whatever_is_thrown_at_a_way_in_the_host_goes_on() {
    let config =
        ProptestConfig { cases: 16, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() };
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let thrown = proptest::collection::vec(attempts(), 1..40);
    let outcome = TestRunner::new(config).run(&thrown, |attempts| runtime().block_on(throw(&attempts)));
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
