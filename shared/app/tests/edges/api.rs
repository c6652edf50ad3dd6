//! The HTTP API: states, waiting, streams, pages, and who sees what.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use http::{HeaderMap, HeaderName, Method};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use turnlock_app::api::{Access, Api, ApiResponse, Caller, Polling};
use turnlock_app::ingress::FreshIds;
use turnlock_app::policy::Policy;
use turnlock_channels::{IngressRequest, IngressResponse};
use turnlock_config::Allow;
use turnlock_domain::commit::Draft;
use turnlock_domain::event::{MessageKind, OutboundEvent, Revision};
use turnlock_domain::ids::EventId;
use turnlock_domain::message::{Block, Message, Reasoning, Role};
use turnlock_domain::rate::Rate;
use turnlock_domain::session::SessionKey;
use turnlock_domain::turn::{Outcome, Owed, Usage};
use turnlock_store::gateway::GatewayFrame;

use crate::kit::Kit;

fn api(kit: &Kit) -> Api {
    let caller = |name: &str| Caller {
        name: name.to_owned(),
        key: SecretString::from(format!("key-of-{name}")),
        allow: Allow::Everybody,
    };
    Api {
        store: kit.store.clone(),
        admission: kit.admission(Rate { rpm: 60, burst: 3 }, 100),
        clock: kit.clock.clone(),
        ids: Arc::new(FreshIds::new(kit.clock.clone(), 1)),
        access: Access::Keys(vec![caller("ops"), caller("main")]),
        policy: Policy::default(),
        polling: Polling::default(),
        stream_limit: None,
    }
}

fn request(method: Method, path: &str, key: &str, body: &Value) -> IngressRequest {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut headers = HeaderMap::new();
    headers.insert("authorization", format!("Bearer {key}").parse().unwrap());
    headers.insert("idempotency-key", "k1".parse().unwrap());
    let body = if body.is_null() { String::new() } else { body.to_string() };
    IngressRequest { method, path: path.to_owned(), query: query.to_owned(), headers, body: body.into() }
}

async fn full(api: &Api, request: IngressRequest) -> IngressResponse {
    match api.route(request).await {
        ApiResponse::Full(response) => response,
        ApiResponse::Events(_) => panic!("a stream"),
    }
}

async fn get(api: &Api, path: &str) -> (u16, Value) {
    let response = full(api, request(Method::GET, path, "key-of-ops", &Value::Null)).await;
    (response.status, serde_json::from_slice(&response.body).unwrap_or_default())
}

async fn post(api: &Api, query: &str, text: &str) -> (u16, Value) {
    let path = format!("/v1/messages{query}");
    let response =
        full(api, request(Method::POST, &path, "key-of-ops", &json!({ "text": text, "session": "s" }))).await;
    (response.status, serde_json::from_slice(&response.body).unwrap_or_default())
}

const EVENT: &str = "gateway:ops:k1";
const SESSION: &str = "gateway:ops:s";

async fn frame(kit: &Kit, sequence: u32, text: &str) {
    let frame =
        GatewayFrame { revision: Revision { fence: 1, sequence }, text: text.to_owned(), kind: MessageKind::Streaming };
    let (event, session) = (EventId::from_stored(EVENT), SessionKey::from_text(SESSION));
    kit.store.put_frame(&event, &session, &frame, kit.clock.now_ms()).await.unwrap();
}

/// Delivers the event's final, by delivery itself.
async fn finish(kit: &Kit, text: &str) {
    let last: OutboundEvent = serde_json::from_value(json!({
        "event_id": format!("{EVENT}.final"), "channel": "gateway", "account": "ops", "chat_id": "s",
        "caused_by": EVENT, "turn": EVENT, "content": [{ "type": "text", "text": text }],
    }))
    .unwrap();
    kit.send(&[&last]).await;
    assert_eq!(kit.deliver(&kit.delivery()).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_is_one_event_in_three_states() {
    let kit = Kit::new().await;
    let api = api(&kit);
    let (status, accepted) = post(&api, "", "hello").await;
    assert_eq!(status, 202);
    assert_eq!(
        (&accepted["event_id"], &accepted["session"], &accepted["status"]),
        (&json!(EVENT), &json!(SESSION), &json!("queued"))
    );
    let path = accepted["links"]["self"].as_str().unwrap().to_owned();
    assert_eq!(get(&api, &path).await.1["status"], "queued");
    frame(&kit, 1, "Hel").await;
    let (_, running) = get(&api, &path).await;
    assert_eq!((&running["status"], &running["message"]["text"]), (&json!("running"), &json!("Hel")));
    finish(&kit, "Hello.").await;
    let (status, done) = get(&api, &path).await;
    assert_eq!((status, &done["status"]), (200, &json!("done")));
    assert_eq!(done["message"], json!({ "text": "Hello.", "kind": "final" }));
    let (status, again) = post(&api, "", "hello").await;
    assert_eq!((status, &again["status"]), (200, &json!("done")), "the same key and body is the same event");
    assert_eq!(post(&api, "", "other").await.0, 409);
    assert_eq!(get(&api, "/v1/events/gateway:ops:none").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_the_final_or_with_its_time() {
    let kit = Kit::new().await;
    let api = api(&kit);
    let started = Instant::now();
    let waiting = post(&api, "?wait=20", "hello");
    let working = async {
        sleep(Duration::from_secs(7)).await;
        finish(&kit, "Hello.").await;
    };
    let ((status, answer), ()) = tokio::join!(waiting, working);
    assert_eq!((status, &answer["message"]["text"]), (200, &json!("Hello.")));
    assert!(started.elapsed() < Duration::from_millis(7600));
    for wrong in ["?wait=26", "?wait=-1", "?wait=soon", "?wait="] {
        assert_eq!(post(&api, wrong, "hello").await.0, 400, "{wrong}");
    }
    let other = Kit::new().await;
    let started = Instant::now();
    assert_eq!(post(&self::api(&other), "?wait=2", "hello").await.0, 202);
    assert_eq!(started.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn limits_and_refusals_are_statuses() {
    let kit = Kit::new().await;
    let api = api(&kit);
    let send = |key: &str, n: u32| {
        let mut request = request(Method::POST, "/v1/messages", key, &json!({ "text": "hello" }));
        request.headers.insert("idempotency-key", n.to_string().parse().unwrap());
        full(&api, request)
    };
    for n in 0..3 {
        assert_eq!(send("key-of-ops", n).await.status, 202);
    }
    let limited = send("key-of-ops", 3).await;
    assert_eq!(limited.status, 429);
    assert!(limited.headers.iter().any(|(name, value)| *name == "retry-after" && value == "1"));
    assert_eq!(send("key-of-nobody", 4).await.status, 401);
    assert!(kit.notices().is_empty());
    let delete = request(Method::DELETE, "/v1/events/x", "key-of-ops", &Value::Null);
    assert_eq!(full(&api, delete).await.status, 405);
    assert_eq!(get(&api, "/v1/other").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_caller_sees_its_own_account_and_the_operator_everything() {
    let kit = Kit::new().await;
    let api = api(&kit);
    post(&api, "", "hello").await;
    kit.store.seed_session(&SessionKey::from_text("telegram:7"), 0, 0, &[Message::user("hi")]).await.unwrap();
    kit.store.seed_session(&SessionKey::from_text("gateway:s"), 0, 0, &[Message::user("hi")]).await.unwrap();
    kit.store.seed_session(&SessionKey::from_text(SESSION), 0, 0, &[Message::user("hi")]).await.unwrap();
    let status = |key: &str, path: &str| {
        let asked = full(&api, request(Method::GET, path, key, &Value::Null));
        async move { asked.await.status }
    };
    for (path, ops, main) in [
        ("/v1/events/gateway%3Aops%3Ak1", 200, 404),
        ("/v1/sessions/gateway:ops:s/messages", 200, 404),
        ("/v1/sessions/gateway:s/messages", 404, 200),
        ("/v1/sessions/telegram:7/messages", 404, 404),
    ] {
        assert_eq!((status("key-of-ops", path).await, status("key-of-main", path).await), (ops, main), "{path}");
        let asked = request(Method::GET, path, "", &Value::Null);
        let ApiResponse::Full(answer) = api.route_as_operator(asked).await else { panic!("a stream") };
        assert_eq!(answer.status, 200, "{path}");
    }
}

async fn stream(api: &Api, last: Option<&str>) -> Result<Vec<String>, u16> {
    let mut request = request(Method::GET, &format!("/v1/events/{EVENT}/stream"), "key-of-ops", &Value::Null);
    if let Some(last) = last {
        request.headers.insert(HeaderName::from_static("last-event-id"), last.parse().unwrap());
    }
    match api.route(request).await {
        ApiResponse::Full(response) => Err(response.status),
        ApiResponse::Events(events) => {
            Ok(events.map(|event| String::from_utf8(event.to_vec()).unwrap()).collect().await)
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_shows_frames_and_the_final_and_resumes() {
    let kit = Kit::new().await;
    let api = api(&kit);
    assert_eq!(stream(&api, None).await, Err(404));
    post(&api, "", "hello").await;
    let working = async {
        sleep(Duration::from_secs(1)).await;
        frame(&kit, 1, "Hel").await;
        sleep(Duration::from_secs(1)).await;
        frame(&kit, 2, "Hello").await;
        sleep(Duration::from_secs(20)).await;
        finish(&kit, "Hello.").await;
    };
    let (events, ()) = tokio::join!(stream(&api, None), working);
    assert_eq!(
        events.unwrap(),
        [
            "retry: 1000\n\n",
            "id: 1.1\nevent: frame\ndata: {\"kind\":\"streaming\",\"text\":\"Hel\"}\n\n",
            "id: 1.2\nevent: frame\ndata: {\"kind\":\"streaming\",\"text\":\"Hello\"}\n\n",
            ": waiting\n\n",
            "id: final\nevent: final\ndata: {\"kind\":\"final\",\"text\":\"Hello.\"}\n\n",
        ]
    );
    assert_eq!(stream(&api, Some("1.2")).await.unwrap().len(), 2, "only what is newer");
    assert_eq!(stream(&api, Some("final")).await, Err(204), "a client that has seen all stops");
}

#[tokio::test(start_paused = true)]
async fn a_stream_resumes_behind_the_frame_its_client_has_and_ends_in_time() {
    let kit = Kit::new().await;
    let mut api = api(&kit);
    api.stream_limit = Some(Duration::from_secs(25));
    post(&api, "", "hello").await;
    frame(&kit, 2, "Hello").await;
    let started = Instant::now();
    let events = stream(&api, Some("1.2")).await.unwrap();
    assert_eq!(events, ["retry: 1000\n\n", ": waiting\n\n"]);
    assert!(started.elapsed() < Duration::from_millis(25_600));
    let events = stream(&api, Some("1.1")).await.unwrap();
    assert!(events[1].starts_with("id: 1.2\n"), "{}", events[1]);
}

/// Invariant 7: no reasoning, whoever asks.
#[tokio::test(start_paused = true)]
async fn a_sessions_messages_come_in_pages_without_reasoning() {
    let kit = Kit::new().await;
    let api = api(&kit);
    let reasoning = Block::Reasoning(Reasoning { text: "planted".to_owned(), ..Reasoning::default() });
    let mut messages = Vec::new();
    for n in 0..30 {
        messages.push(Message::user(format!("question {n}")));
        messages.push(Message::new(Role::Assistant, vec![reasoning.clone(), Block::text(format!("answer {n}"))]));
    }
    kit.store.seed_session(&SessionKey::from_text(SESSION), 0, 0, &messages).await.unwrap();
    let path = format!("/v1/sessions/{SESSION}/messages");
    let (status, newest) = get(&api, &path).await;
    assert_eq!((status, &newest["before"]), (200, &json!(40)));
    let page = newest["messages"].as_array().unwrap();
    assert_eq!((page.len(), &page[19]["content"]), (20, &json!([{ "type": "text", "text": "answer 29" }])));
    assert!(!newest.to_string().contains("planted"));
    let (_, older) = get(&api, &format!("{path}?limit=3&before=40")).await;
    let indexes: Vec<_> = older["messages"].as_array().unwrap().iter().map(|m| m["index"].as_u64().unwrap()).collect();
    assert_eq!(indexes, [37, 38, 39]);
    let (_, first) = get(&api, &format!("{path}?before=2")).await;
    assert_eq!((first["messages"].as_array().unwrap().len(), &first["before"]), (2, &Value::Null));
    assert_eq!(get(&api, &format!("{path}?limit=0")).await.0, 400);
    assert_eq!(get(&api, &format!("{path}?limit=101")).await.0, 400);
}

/// An event that another one's turn took up has no final of its own: it says which one, and its stream ends.
#[tokio::test(start_paused = true)]
async fn an_event_that_another_turn_took_up_says_so() {
    let kit = Kit::new().await;
    let api = api(&kit);
    post(&api, "", "in euros, please").await;
    let draft = Draft {
        event_id: EventId::from_stored(EVENT),
        session: SessionKey::from_text(SESSION),
        generation: 0,
        fence: 1,
        first: 0,
        messages: Vec::new(),
        outcome: Outcome::Merged { into: EventId::from_stored("gateway:ops:k0") },
        usage: Usage::default(),
        calls: Vec::new(),
        owed: Vec::new(),
        merged: Vec::new(),
        at: kit.clock.now_ms(),
    };
    kit.store.put_marker(&draft).await.unwrap();
    let (status, event) = get(&api, "/v1/events/gateway:ops:k1").await;
    assert_eq!((status, &event["status"], &event["merged_into"]), (200, &json!("done"), &json!("gateway:ops:k0")));
    assert_eq!(event.get("message"), None);
    let said = stream(&api, None).await.unwrap();
    let last = said.last().unwrap();
    assert_eq!(last, "id: final\nevent: merged\ndata: {\"merged_into\":\"gateway:ops:k0\"}\n\n");
    assert_eq!(stream(&api, Some("final")).await, Err(204));
}

/// What is committed is the truth while its final is still on its way.
#[tokio::test(start_paused = true)]
async fn a_committed_event_is_done_before_its_final_is_delivered() {
    let kit = Kit::new().await;
    let api = api(&kit);
    let session = SessionKey::from_text(SESSION);
    let messages = [Message::user("hello"), Message::assistant("Hi.")];
    kit.store.seed_session(&session, 0, 0, &messages).await.unwrap();
    let draft = Draft {
        event_id: EventId::from_stored(EVENT),
        session,
        generation: 0,
        fence: 1,
        first: 0,
        messages: messages.to_vec(),
        outcome: Outcome::Replied,
        usage: Usage::default(),
        calls: Vec::new(),
        owed: vec![Owed::Final],
        merged: Vec::new(),
        at: kit.clock.now_ms(),
    };
    kit.store.put_marker(&draft).await.unwrap();
    let (status, event) = get(&api, "/v1/events/gateway:ops:k1").await;
    assert_eq!((status, &event["status"], &event["message"]["text"]), (200, &json!("done"), &json!("Hi.")));
}

/// A key that may use some chats only: the sender that its caller names opens no other.
#[tokio::test(start_paused = true)]
async fn a_key_for_some_chats_opens_no_other() {
    let kit = Kit::new().await;
    let mut api = api(&kit);
    let Access::Keys(callers) = &mut api.access else { panic!("keys") };
    callers[0].allow = Allow::Only(BTreeSet::from(["s".to_owned()]));
    assert_eq!(post(&api, "", "hello").await.0, 202);
    let other = json!({ "text": "hello", "session": "other", "sender": "s" });
    let refused = full(&api, request(Method::POST, "/v1/messages", "key-of-ops", &other)).await;
    assert_eq!(refused.status, 403);
    kit.store.seed_session(&SessionKey::from_text("gateway:ops:other"), 0, 0, &[Message::user("hi")]).await.unwrap();
    assert_eq!(get(&api, "/v1/sessions/gateway:ops:other/messages").await.0, 404);
}
