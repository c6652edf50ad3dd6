//! Deciding about a call that waits: by a button, a command, the API. The turn that waits is a real one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use http::{HeaderMap, Method};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::time::sleep;
use turnlock_app::admit::Admission;
use turnlock_app::api::{Access, Api, ApiResponse, Caller, Polling};
use turnlock_app::approvals::code;
use turnlock_app::control::Control;
use turnlock_app::ingress::FreshIds;
use turnlock_app::send;
use turnlock_app::turn::Handled;
use turnlock_channels::IngressRequest;
use turnlock_config::Allow;
use turnlock_domain::commit::Draft;
use turnlock_domain::envelope::{Command, Envelope, Position};
use turnlock_domain::event::{Channel, MessageKind, OutboundEvent};
use turnlock_domain::ids::EventId;
use turnlock_domain::rate::Rate;
use turnlock_domain::time::Millis;
use turnlock_domain::turn::{Outcome, Usage};
use turnlock_queue::Queue;
use turnlock_store::approvals::{Approval, ApprovalState, Verdict};

use crate::talk::{Talk, place, policy};

const SLEEP: Duration = Duration::from_secs(15 * 60);

/// A turn that waits for `pay 1`, and whoever may decide about it besides who asked: 8 on Telegram, and the key `ops`.
pub(crate) async fn parked() -> Talk {
    let mut talk = Talk::new().await;
    talk.set(|settings| settings.policy = policy("[approvals]\napprovers = [\"telegram:8\", \"gateway:ops\"]"));
    talk.model_calls(&[("pay", json!({ "n": 1 }))]);
    talk.hears("e1", "pay").await;
    assert_eq!(Box::pin(talk.take()).await, Some(Handled::GivenBack(SLEEP)));
    assert_eq!(talk.sent().len(), 1, "the card");
    sleep(Duration::from_secs(60)).await;
    talk
}

fn control(talk: &Talk) -> Control {
    Control { settings: Arc::clone(&talk.agent.settings), ..talk.kit.control(&talk.kit.store) }
}

/// Obeys what somebody sent now; what was said to chats.
async fn obey(talk: &Talk, mut command: Value) -> Vec<OutboundEvent> {
    command["event"]["timestamp"] = json!(talk.kit.clock.now());
    obey_earlier(talk, command).await
}

/// The same at the command's own time.
async fn obey_earlier(talk: &Talk, mut command: Value) -> Vec<OutboundEvent> {
    command["position"] = json!(Position::new(talk.kit.clock.now_ms(), "1"));
    let envelope: Envelope = serde_json::from_value(command).unwrap();
    send::control(&*talk.kit.control, &envelope).await.unwrap();
    let record = talk.kit.control.receive(1).unwrap().remove(0);
    assert_eq!(control(talk).handle(&record).await, Handled::Done);
    talk.kit.control.delete(&record.receipt).unwrap();
    talk.sent()
}

fn command(id: &str, sender: &str, chat: &str, command: &str, text: &str) -> Value {
    json!({ "event": { "event_id": id, "event_type": "control", "channel": "telegram", "chat_id": chat, "sender_id": sender,
        "content": [{ "type": "text", "text": text }] }, "accepted_at": 0, "command": command })
}

/// Somebody writes this in the chat of the turn that waits.
async fn writes(talk: &Talk, id: &str, sender: &str, text: &str) -> Vec<OutboundEvent> {
    let name = text.trim_start_matches('/').split(' ').next().unwrap();
    obey(talk, command(id, sender, "5", name, text)).await
}

/// Somebody presses a button with this data.
pub(crate) async fn presses(talk: &Talk, id: &str, sender: &str, data: &str) -> Vec<OutboundEvent> {
    let mut tap = command(id, sender, "5", "tap", "");
    tap["event"]["metadata"] = json!({ "tap": { "query_id": "q1", "message_id": 100, "data": data } });
    obey(talk, tap).await
}

pub(crate) fn texts(sent: &[OutboundEvent]) -> Vec<String> {
    sent.iter().map(OutboundEvent::text).collect()
}

async fn state(talk: &Talk, approval: &Approval) -> (ApprovalState, Option<String>) {
    let stored = talk.kit.store.approval(&approval.id).await.unwrap().unwrap();
    (stored.state, stored.decided_by)
}

/// Case sl-approval-not-forwarded: the decision is stored and the turn woken, then the card is settled, then the press is
/// answered.
#[tokio::test(start_paused = true)]
async fn sl_approval_not_forwarded() {
    let talk = parked().await;
    let asked = talk.asked().await;
    let sent = presses(&talk, "t1", "7", &format!("approve:{}", asked.id)).await;
    assert_eq!(state(&talk, &asked).await, (ApprovalState::Allowed, Some("telegram:7".to_owned())));
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0].edits, Some(format!("e1.approval.{}", asked.id)));
    assert!(sent[0].text().ends_with("\nAllowed by `telegram:7`.") && sent[0].buttons.is_empty());
    assert_eq!((sent[1].text().as_str(), sent[1].message_kind), ("Allowed. I go on.", MessageKind::Notice));
    talk.model_says("Paid.");
    assert_eq!(talk.take().await, Some(Handled::Done), "it was woken");
    assert_eq!((talk.ran.calls(), texts(&talk.sent())), (vec!["pay 1".to_owned()], vec!["Paid.".to_owned()]));
}

/// A press comes twice where its first worker died: whoever finds the decision stored wakes and says it all again.
#[tokio::test(start_paused = true)]
async fn a_decision_that_is_stored_already_wakes_the_turn_all_the_same() {
    let talk = parked().await;
    let asked = talk.asked().await;
    let decision = turnlock_store::approvals::Decision {
        verdict: Verdict::Allow,
        by: "telegram:7".to_owned(),
        at: talk.kit.clock.now_ms(),
        command: None,
    };
    talk.kit.store.decide(&asked, &decision).await.unwrap();
    assert_eq!(talk.take().await, None, "nobody woke it");
    let sent = presses(&talk, "t1", "7", &format!("approve:{}", asked.id)).await;
    assert_eq!(texts(&sent)[1], "Allowed. I go on.");
    talk.model_says("Paid.");
    assert_eq!(talk.take().await, Some(Handled::Done));
    // Another hand comes too late, and is told so.
    let sent = presses(&talk, "t2", "8", &format!("deny:{}", asked.id)).await;
    assert_eq!(texts(&sent)[1..], ["`telegram:7` has allowed this already."]);
    assert_eq!(talk.ran.calls(), ["pay 1"]);
}

/// Case se-approver-any: others are told, the buttons stay, and the request stays open.
#[tokio::test(start_paused = true)]
async fn se_approver_any() {
    let talk = parked().await;
    let asked = talk.asked().await;
    let sent = presses(&talk, "t1", "1000777", &format!("approve:{}", asked.id)).await;
    assert_eq!(texts(&sent), ["Only who asked for this, or an approver, can decide about it."]);
    assert_eq!(sent[0].metadata["tap"]["keeps_buttons"], true);
    let sent = writes(&talk, "c1", "1000777", "/approve").await;
    assert_eq!(texts(&sent), ["Only who asked for this, or an approver, can decide about it."]);
    assert_eq!((state(&talk, &asked).await.0, talk.take().await), (ApprovalState::Open, None));
    let sent = presses(&talk, "t2", "8", &format!("deny:{}", asked.id)).await;
    assert_eq!(texts(&sent)[1], "Denied. I will not do it.");
    assert!(sent[0].buttons.is_empty() && sent[0].edits.is_some(), "now they go");
    assert_eq!(state(&talk, &asked).await, (ApprovalState::Denied, Some("telegram:8".to_owned())));
}

/// Case tg-cbq-expired-loop: a press that names nothing, or nothing any more, is answered once and never tried again.
#[tokio::test(start_paused = true)]
async fn tg_cbq_expired_loop() {
    let talk = parked().await;
    let asked = talk.asked().await;
    for (id, data) in [("t1", "ap:gone:ok"), ("t2", "approve:gone"), ("t3", "approve:"), ("t4", "approve:../x y")] {
        let sent = presses(&talk, id, "7", data).await;
        assert_eq!(texts(&sent), ["This button has expired. Please send me a message instead."], "{data}");
        assert_eq!(sent[0].metadata["tap"].get("keeps_buttons"), None, "the answer takes them away");
    }
    assert_eq!(talk.kit.control.next_due().unwrap(), None, "nothing comes again");
    sleep(Duration::from_secs(3600)).await;
    let sent = presses(&talk, "t5", "7", &format!("approve:{}", asked.id)).await;
    let over = "This request has expired. Please ask me again if it is still wanted.";
    assert_eq!(texts(&sent), [over], "the card is the turn's to settle");
    talk.settle().await;
    assert!(texts(&talk.sent()).iter().any(|text| text.ends_with("Nobody decided in time, so I did not do it.")));
    assert!(talk.ran.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_typed_decision_is_about_what_was_asked_before_it() {
    let talk = parked().await;
    let asked = talk.asked().await;
    // It was typed before the card was there.
    let mut early = command("c1", "7", "5", "approve", "/approve");
    early["event"]["timestamp"] = json!("2026-01-05T09:00:00Z");
    let sent = obey_earlier(&talk, early).await;
    let name = code(&asked.id);
    let newer = format!("There is a newer request than yours. Please name it: `/approve {name}` or `/deny {name}`.");
    assert_eq!(texts(&sent), [newer]);
    let none = "There is no such request waiting for a decision.";
    assert_eq!(texts(&writes(&talk, "c2", "7", "/approve 000000").await), [none]);
    for (id, text) in [("c5", "/approve but only a half".to_owned()), ("c6", format!("/approve {name} with care"))] {
        let alone =
            format!("I have not taken that as a yes. To allow it, write `/approve {name}` with nothing behind it.");
        assert_eq!(texts(&writes(&talk, id, "7", &text).await), [alone], "{text}");
    }
    assert_eq!(state(&talk, &asked).await.0, ApprovalState::Open);
    let sent = writes(&talk, "c3", "7", &format!("/deny {}", name.to_lowercase())).await;
    assert_eq!(texts(&sent)[1], "Denied. I will not do it.");
    talk.model_says("Then not.");
    assert_eq!(talk.take().await, Some(Handled::Done));
    assert_eq!(texts(&talk.sent()), ["Then not."]);
    assert_eq!(texts(&writes(&talk, "c4", "7", "/approve").await), [none]);
}

/// What stands behind a denial is its reason, and no name of a request.
#[tokio::test(start_paused = true)]
async fn a_denial_may_have_a_reason() {
    let talk = parked().await;
    let asked = talk.asked().await;
    let sent = writes(&talk, "c1", "7", "/deny please not now").await;
    assert_eq!(texts(&sent)[1], "Denied. I will not do it.");
    assert_eq!(state(&talk, &asked).await.0, ApprovalState::Denied);
}

/// An approver decides in a chat of their own; the answer goes to where the question stands.
#[tokio::test(start_paused = true)]
async fn an_approver_names_a_request_of_another_chat() {
    let talk = parked().await;
    let asked = talk.asked().await;
    let named = format!("/approve {}", code(&asked.id));
    let sent = obey(&talk, command("c1", "9", "99", "approve", &named)).await;
    assert_eq!(texts(&sent), ["There is no such request waiting for a decision."], "it is not theirs to see");
    let sent = obey(&talk, command("c2", "8", "99", "approve", &named)).await;
    let chats: Vec<_> = sent.iter().map(|event| event.chat_id.as_str()).collect();
    assert_eq!((chats, texts(&sent)[1].as_str()), (vec!["5", "99"], "Allowed. I go on."));
    talk.model_says("Paid.");
    assert_eq!(talk.take().await, Some(Handled::Done));
    let answer = talk.sent().remove(0);
    assert_eq!((answer.chat_id.as_str(), answer.text().as_str()), ("5", "Paid."));
}

/// Trace V8: a stop wakes who sleeps, also where it is found stored already, and nothing is decided after it.
#[tokio::test(start_paused = true)]
async fn v8_a_stop_wakes_a_turn_that_sleeps() {
    let talk = parked().await;
    let asked = talk.asked().await;
    let sent = writes(&talk, "c1", "8", "/status").await;
    let name = code(&asked.id);
    let waits = format!(
        "I am waiting for somebody to decide: `/approve {name}` or `/deny {name}`. This conversation has 0 messages."
    );
    assert_eq!(texts(&sent), [waits]);
    talk.kit.store.stop(&talk.session(), &Position::new(talk.kit.clock.now_ms(), "9")).await.unwrap();
    assert_eq!(talk.take().await, None, "whoever stored it died before the wake");
    assert_eq!(texts(&writes(&talk, "c2", "7", "/stop").await), ["Stopping."]);
    let sent = presses(&talk, "t1", "7", &format!("approve:{}", asked.id)).await;
    let over = "This request has expired. Please ask me again if it is still wanted.";
    assert_eq!(texts(&sent), [over], "the card is the turn's to settle: by its commit it is over");
    assert_eq!(talk.take().await, Some(Handled::Done), "it was woken");
    assert_eq!((talk.outcome("e1").await, talk.ran.calls()), (Some(Outcome::Stopped), vec![]));
}

/// A text steers through control: it is left for the turn that runs, and nothing is said about it, also where none runs.
#[tokio::test(start_paused = true)]
async fn a_text_for_the_turn_that_waits_is_left_on_its_head() {
    let talk = parked().await;
    let later = talk.kit.clock.now_ms();
    let sent = obey(&talk, command("m2", "7", "5", "steer", "in euros, please")).await;
    assert!(sent.is_empty());
    let texts = talk.head().await.texts_for(&Position::new(Millis(later.0 - 60_000), "1"), "telegram:7");
    assert_eq!(texts.iter().map(|text| text.text.as_str()).collect::<Vec<_>>(), ["in euros, please"]);
    let sent = obey(&talk, command("m3", "7", "99", "steer", "nobody works here")).await;
    assert!(sent.is_empty() && talk.outcome("m3").await.is_none());
}

fn api(talk: &Talk) -> Api {
    let caller = |name: &str| Caller {
        name: name.to_owned(),
        key: SecretString::from(format!("key-of-{name}")),
        allow: Allow::Everybody,
    };
    Api {
        store: talk.kit.store.clone(),
        admission: talk.kit.admission(Rate { rpm: 60, burst: 60 }, 100),
        clock: talk.kit.clock.clone(),
        ids: Arc::new(FreshIds::new(talk.kit.clock.clone(), 1)),
        access: Access::Keys(vec![caller("ops"), caller("shop"), caller("other")]),
        policy: talk.agent.settings.policy.clone(),
        polling: Polling::default(),
        stream_limit: Some(Duration::from_secs(60)),
    }
}

async fn ask(api: &Api, method: Method, path: &str, key: &str, body: &Value) -> (u16, Value) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut headers = HeaderMap::new();
    headers.insert("authorization", format!("Bearer key-of-{key}").parse().unwrap());
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = IngressRequest { method, path: path.to_owned(), query: query.to_owned(), headers, body: body.into() };
    // Boxed, as a test holds all of its futures on its stack.
    let ApiResponse::Full(answer) = Box::pin(api.route(request)).await else { panic!("a stream") };
    (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
}

/// What a stream says until its time is over.
async fn stream(api: &Api, path: &str, key: &str) -> Vec<String> {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", format!("Bearer key-of-{key}").parse().unwrap());
    let (path, query) = (path.to_owned(), String::new());
    let request = IngressRequest { method: Method::GET, path, query, headers, body: String::new().into() };
    let ApiResponse::Events(events) = Box::pin(api.route(request)).await else { panic!("no stream") };
    events.map(|event| String::from_utf8(event.to_vec()).unwrap()).collect().await
}

/// Case sl-approval-dead-end: a decision by the API answers in the chat where the question stands, and settles its card.
#[tokio::test(start_paused = true)]
async fn sl_approval_dead_end() {
    let talk = parked().await;
    let (api, asked) = (api(&talk), talk.asked().await);
    let path = format!("/v1/approvals/{}", asked.id);
    let (status, open) = ask(&api, Method::GET, "/v1/approvals", "ops", &Value::Null).await;
    let shown = &open["approvals"][0];
    assert_eq!((status, &shown["id"], &shown["tool"]), (200, &json!(asked.id), &json!("pay")));
    assert_eq!((&shown["input"], &shown["asked_by"]), (&json!({ "n": 1 }), &json!("telegram:7")));
    assert_eq!((&shown["session"], &shown["code"]), (&json!("telegram:5"), &json!(code(&asked.id))));
    assert_eq!(ask(&api, Method::GET, "/v1/approvals", "shop", &Value::Null).await.1, json!({ "approvals": [] }));

    let allow = json!({ "decision": "allow" });
    for (key, path, body, status) in [
        ("shop", path.as_str(), &allow, 404),
        ("ops", "/v1/approvals/none", &allow, 404),
        ("ops", path.as_str(), &json!({ "decision": "yes" }), 400),
        ("ops", path.as_str(), &json!({ "decision": "allow", "also": 1 }), 400),
        ("ops", path.as_str(), &Value::Null, 400),
    ] {
        assert_eq!(ask(&api, Method::POST, path, key, body).await.0, status, "{key} {path} {body}");
    }
    assert_eq!(ask(&api, Method::GET, &path, "ops", &Value::Null).await.0, 405);
    for _ in 0..2 {
        let (status, answer) = ask(&api, Method::POST, &path, "ops", &allow).await;
        assert_eq!((status, answer), (200, json!({ "id": asked.id, "state": "allowed", "decided_by": "gateway:ops" })));
    }
    let deny = json!({ "decision": "deny" });
    let (status, answer) = ask(&api, Method::POST, &path, "ops", &deny).await;
    assert_eq!((status, &answer["state"]), (409, &json!("allowed")));
    let sent = talk.sent();
    assert_eq!((sent.len(), sent[0].chat_id.as_str()), (1, "5"), "the card, once");
    assert!(sent[0].text().ends_with("Allowed by `gateway:ops`."));
    talk.model_says("Paid.");
    assert_eq!(talk.take().await, Some(Handled::Done), "it was woken");
    let answer = talk.sent().remove(0);
    assert_eq!((answer.chat_id.as_str(), answer.text().as_str()), ("5", "Paid."));
    assert_eq!(ask(&api, Method::POST, &path, "ops", &allow).await.0, 200, "and the same again");
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_is_over_is_gone_for_the_api_too() {
    let talk = parked().await;
    let (api, asked) = (api(&talk), talk.asked().await);
    let path = format!("/v1/approvals/{}", asked.id);
    sleep(Duration::from_secs(3600)).await;
    let (status, _) = ask(&api, Method::POST, &path, "ops", &json!({ "decision": "allow" })).await;
    assert_eq!(status, 410);
    assert_eq!(ask(&api, Method::GET, "/v1/approvals", "ops", &Value::Null).await.1, json!({ "approvals": [] }));
    talk.settle().await;
    assert_eq!(ask(&api, Method::POST, &path, "ops", &json!({ "decision": "deny" })).await.0, 410);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_stopped_by_its_caller_or_an_approver() {
    let talk = parked().await;
    let api = api(&talk);
    for (key, path, status) in [
        ("shop", "/v1/sessions/telegram%3A5/stop", 404),
        ("ops", "/v1/sessions/telegram%3A6/stop", 404),
        ("ops", "/v1/sessions/telegram%3A5/stop", 202),
    ] {
        assert_eq!(ask(&api, Method::POST, path, key, &Value::Null).await.0, status, "{key} {path}");
    }
    assert_eq!(ask(&api, Method::GET, "/v1/sessions/telegram%3A5/stop", "ops", &Value::Null).await.0, 405);
    assert_eq!(talk.take().await, Some(Handled::Done), "it was woken");
    assert_eq!(talk.outcome("e1").await, Some(Outcome::Stopped));
}

/// A caller of the API reads that its event waits, and answers for whomever it named.
#[tokio::test(start_paused = true)]
async fn an_api_event_waits_for_its_caller() {
    let talk = Talk::new().await;
    let api = api(&talk);
    talk.model_calls(&[("pay", json!({ "n": 1 }))]);
    let body = json!({ "text": "pay", "session": "s", "sender": "alice" });
    let (status, accepted) = ask(&api, Method::POST, "/v1/messages", "shop", &body).await;
    assert_eq!(status, 202);
    let event = accepted["links"]["self"].as_str().unwrap().to_owned();
    assert_eq!(Box::pin(talk.take()).await, Some(Handled::GivenBack(SLEEP)));
    let (_, waiting) = ask(&api, Method::GET, &event, "shop", &Value::Null).await;
    let kind = &waiting["message"]["kind"];
    assert_eq!((&waiting["status"], kind), (&json!("waiting_for_approval"), &json!("approval_request")));
    let delivery = talk.kit.delivery();
    Box::pin(talk.kit.drain(&delivery)).await;
    let (_, waiting) = ask(&api, Method::GET, &event, "shop", &Value::Null).await;
    let id = waiting["approval"].as_str().unwrap().to_owned();
    assert_eq!(waiting["message"]["kind"], "approval_request");
    let card = waiting["message"]["text"].as_str().unwrap();
    assert!(card.contains(&format!("Please write `/approve {0}` or `/deny {0}`", code(&id))), "{card}");
    assert!(card.contains("Asked for by `gateway:shop:alice`."), "{card}");

    let said = stream(&api, &format!("{event}/stream"), "shop").await;
    let announced: Vec<_> = said.iter().filter(|piece| piece.contains("event: approval")).collect();
    assert_eq!(announced.len(), 1, "a card is announced once: {said:?}");
    assert!(announced[0].contains(&format!("\"approval\":\"{id}\"")), "{announced:?}");
    let waited = ask(&api, Method::POST, "/v1/messages?wait=20", "shop", &body).await;
    assert_eq!(waited.0, 202, "another message waits behind it");

    let (_, open) = ask(&api, Method::GET, "/v1/approvals", "other", &Value::Null).await;
    assert_eq!(open, json!({ "approvals": [] }), "other callers see nothing of it");
    let path = format!("/v1/approvals/{id}");
    let (status, answer) = ask(&api, Method::POST, &path, "shop", &json!({ "decision": "deny" })).await;
    assert_eq!((status, &answer["decided_by"]), (200, &json!("gateway:shop")));
    assert_eq!(ask(&api, Method::GET, &event, "shop", &Value::Null).await.1["status"], "running");
    talk.model_says("Then not.");
    talk.model_says("Hello again.");
    Box::pin(talk.settle()).await;
    Box::pin(talk.kit.drain(&delivery)).await;
    let (_, done) = ask(&api, Method::GET, &event, "shop", &Value::Null).await;
    assert_eq!((&done["status"], &done["message"]["text"]), (&json!("done"), &json!("Then not.")));
}

/// Two calls of a turn are asked for one after the other: under an id stands the call that it is about, and each is
/// announced once, also to a stream that comes back.
#[tokio::test(start_paused = true)]
async fn an_api_event_shows_the_call_that_it_waits_for() {
    let talk = Talk::new().await;
    let (api, delivery) = (api(&talk), talk.kit.delivery());
    talk.model_calls(&[("pay", json!({ "n": 1 })), ("pay", json!({ "n": 2 }))]);
    let body = json!({ "text": "pay twice", "session": "s" });
    let (_, accepted) = ask(&api, Method::POST, "/v1/messages", "shop", &body).await;
    let event = accepted["links"]["self"].as_str().unwrap().to_owned();
    Box::pin(talk.take()).await;
    Box::pin(talk.kit.drain(&delivery)).await;
    let (_, first) = ask(&api, Method::GET, &event, "shop", &Value::Null).await;
    assert!(first["message"]["text"].as_str().unwrap().contains("\"n\": 1"), "{first}");
    let goes_on = async {
        sleep(Duration::from_secs(20)).await;
        let path = format!("/v1/approvals/{}", first["approval"].as_str().unwrap());
        assert_eq!(ask(&api, Method::POST, &path, "shop", &json!({ "decision": "allow" })).await.0, 200);
        Box::pin(talk.take()).await;
        Box::pin(talk.kit.drain(&delivery)).await;
    };
    let path = format!("{event}/stream");
    let (said, ()) = tokio::join!(stream(&api, &path, "shop"), goes_on);
    let (_, second) = ask(&api, Method::GET, &event, "shop", &Value::Null).await;
    assert!(second["message"]["text"].as_str().unwrap().contains("\"n\": 2"), "{second}");
    assert_ne!(first["approval"], second["approval"]);
    let announced: Vec<_> = said.iter().filter(|piece| piece.contains("event: approval")).collect();
    assert_eq!(announced.len(), 2, "{said:?}");
    for (piece, (view, n)) in announced.iter().zip([(&first, 1), (&second, 2)]) {
        assert!(piece.contains(view["approval"].as_str().unwrap()), "{piece}");
        assert!(piece.contains(&format!("\\\"n\\\": {n}")), "{piece}");
    }
}

/// A message that another turn took up is over for whoever waits, at once.
#[tokio::test(start_paused = true)]
async fn whoever_waits_is_told_at_once_that_another_turn_took_the_message_up() {
    let talk = Talk::new().await;
    let api = api(&talk);
    let body = json!({ "text": "in euros", "session": "s" });
    let (_, accepted) = ask(&api, Method::POST, "/v1/messages", "shop", &body).await;
    let event = accepted["links"]["self"].as_str().unwrap().to_owned();
    let id = EventId::from_stored(accepted["event_id"].as_str().unwrap());
    let began = tokio::time::Instant::now();
    let path = format!("{event}/stream");
    let merges = async {
        sleep(Duration::from_secs(3)).await;
        let into = Outcome::Merged { into: EventId::from_stored("e0") };
        let draft = Draft { event_id: id, outcome: into, ..settled(&talk) };
        talk.kit.store.put_marker(&draft).await.unwrap();
    };
    let (said, ()) = tokio::join!(stream(&api, &path, "shop"), merges);
    assert!(said.last().unwrap().contains("event: merged"), "{said:?}");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

fn settled(talk: &Talk) -> Draft {
    Draft {
        event_id: EventId::from_stored("none"),
        session: talk.session(),
        generation: 0,
        fence: 0,
        first: 0,
        messages: Vec::new(),
        outcome: Outcome::Answered,
        usage: Usage::default(),
        calls: Vec::new(),
        owed: Vec::new(),
        merged: Vec::new(),
        at: talk.kit.clock.now_ms(),
    }
}

/// Where a channel steers, a message is sent twice: for its own turn, and as a copy for the turn that runs, with the text
/// that this one may take up.
#[tokio::test(start_paused = true)]
async fn only_messages_on_a_steering_channel_have_a_copy() {
    let talk = Talk::new().await;
    let admission = Arc::into_inner(talk.kit.admission(Rate { rpm: 60, burst: 60 }, 100)).unwrap();
    let admission = Admission { steered: [Channel::Telegram].into(), ..admission };
    let arrival = |channel: &str, id: &str, content: Value, unattended: bool| {
        let event = json!({ "event_id": id, "channel": channel, "chat_id": "5", "sender_id": "7",
            "timestamp": "2026-01-05T09:00:00Z", "content": content });
        turnlock_channels::Arrival {
            event: serde_json::from_value(event).unwrap(),
            position: place(1),
            command: None,
            unattended,
            can_have_moved: false,
        }
    };
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    let picture = json!([{ "type": "text", "text": "look" }, { "type": "image", "url": "telegram-file:1" }]);
    for (channel, id, content, unattended) in [
        ("telegram", "a", text("in euros"), false),
        ("slack", "b", text("in euros"), false),
        ("telegram", "c", picture, false),
        ("telegram", "d", text("in euros"), true),
        ("telegram", "e", text(&"x".repeat(5000)), false),
        ("telegram", "f", text("yes"), false),
    ] {
        let admitted = admission.admit(arrival(channel, id, content, unattended), &Allow::Everybody).await;
        assert_eq!(admitted, turnlock_app::admit::Admitted::Accepted, "{id}");
    }
    assert_eq!(talk.kit.inbound.waiting().await.unwrap(), 6, "everything has a turn of its own");
    let mut copies = Vec::new();
    while let Some(record) = talk.kit.control.receive(1).unwrap().pop() {
        let copy: Envelope = serde_json::from_str(&record.body).unwrap();
        assert_eq!(copy.command, Some(Command::Steer));
        copies.push((copy.event.event_id.to_string(), copy.event.text()));
        talk.kit.control.delete(&record.receipt).unwrap();
    }
    let copies: Vec<_> = copies.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
    assert_eq!(copies, [("a", "in euros"), ("c", ""), ("d", ""), ("e", ""), ("f", "yes")], "a plain yes is a message");
}
