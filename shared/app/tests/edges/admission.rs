//! The ways in: what is accepted, what is refused, and what whoever sent it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use turnlock_app::admit::{Admission, Admitted};
use turnlock_app::ingress::{FreshIds, Ingress, SlackRoute, TelegramRoute, WebhookRoute};
use turnlock_app::send;
use turnlock_channels::gateway::{self, ApiMessage};
use turnlock_channels::webhook::{Source, Verify, sign_standard};
use turnlock_channels::{Groups, IngressRequest, IngressResponse, slack, telegram};
use turnlock_config::Allow;
use turnlock_domain::envelope::{Command, Envelope};
use turnlock_domain::rate::Rate;
use turnlock_queue::Queue;
use turnlock_queue::local::LocalQueue;
use turnlock_store::admission::AdmissionState;

use crate::kit::Kit;

pub(crate) const FREE: Rate = Rate { rpm: 0, burst: 0 };
const STRICT: Rate = Rate { rpm: 20, burst: 2 };

pub(crate) fn secret() -> SecretString {
    SecretString::from("c2VjcmV0LXNlY3JldA==")
}

pub(crate) fn ingress(kit: &Kit, admission: Arc<Admission>, allow: &Allow) -> Ingress {
    let bot = telegram::Bot {
        account: "main".to_owned(),
        bot_id: 1,
        username: "echo_bot".to_owned(),
        groups: Groups::Mention,
    };
    let app = slack::App {
        account: "main".to_owned(),
        app_id: "A0APP".to_owned(),
        team_id: "T0TEAM".to_owned(),
        bot_user_id: "U0BOT".to_owned(),
        bot_id: "B0BOT".to_owned(),
        allowed_bots: Vec::new(),
        groups: Groups::Mention,
    };
    let source = Source {
        name: "main".to_owned(),
        verify: Verify::Standard { secret: secret() },
        template: None,
        session: None,
        reply_to: None,
        id_headers: Source::default_id_headers(),
    };
    let main = |route| BTreeMap::from([("main".to_owned(), route)]);
    Ingress {
        admission,
        clock: kit.clock.clone(),
        ids: Arc::new(FreshIds::new(kit.clock.clone(), 1)),
        telegram: main(TelegramRoute { bot, secret_token: Some(secret()), allow: allow.clone() }),
        slack: BTreeMap::from([(
            "main".to_owned(),
            SlackRoute { app, signing_secret: Some(secret()), allow: allow.clone() },
        )]),
        webhook: BTreeMap::from([("main".to_owned(), WebhookRoute { source })]),
    }
}

/// A private message to the bot.
pub(crate) fn update(id: i64, text: &str) -> Value {
    json!({ "update_id": id, "message": {
        "message_id": id, "date": 1_767_603_600, "chat": { "id": 7, "type": "private" },
        "from": { "id": 7, "is_bot": false, "first_name": "Ann" }, "text": text,
    } })
}

async fn tell(ingress: &Ingress, id: i64, text: &str) -> IngressResponse {
    deliver(ingress, &update(id, text)).await
}

pub(crate) async fn deliver(ingress: &Ingress, update: &Value) -> IngressResponse {
    let headers = telegram::sign_headers(&secret());
    ingress.telegram("main", IngressRequest::post("/telegram/main", headers, update.to_string())).await
}

/// A direct message to the app; `retry` is Slack's own count.
pub(crate) async fn slack_message(kit: &Kit, ingress: &Ingress, retry: Option<u32>) -> IngressResponse {
    let body = json!({ "type": "event_callback", "team_id": "T0TEAM", "api_app_id": "A0APP", "event_id": "Ev1",
        "event_time": 1_767_603_600, "event": { "type": "message", "channel": "D0DM", "channel_type": "im",
        "user": "U0USER", "ts": "1767603600.000100", "text": "hi" } })
    .to_string();
    let mut headers = slack::sign(&secret(), kit.clock.now(), body.as_bytes());
    if let Some(retry) = retry {
        headers.insert("x-slack-retry-num", retry.into());
    }
    headers.insert("content-type", "application/json".parse().unwrap());
    ingress.slack("main", IngressRequest::post("/slack/main", headers, body)).await
}

async fn webhook(kit: &Kit, ingress: &Ingress, id: &str) -> IngressResponse {
    let body = json!({ "text": "disk full" }).to_string();
    let mut headers = sign_standard(&secret(), id, kit.clock.now(), body.as_bytes()).unwrap();
    headers.insert("content-type", "application/json".parse().unwrap());
    ingress.webhook("main", IngressRequest::post("/webhook/main", headers, body)).await
}

/// What waits in a queue, in order.
pub(crate) fn waiting(queue: &LocalQueue) -> Vec<Envelope> {
    let records = queue.receive(10).unwrap().into_iter();
    records.map(|record| serde_json::from_str(&record.body).unwrap()).collect()
}

fn header<'a>(response: &'a IngressResponse, name: &str) -> Option<&'a str> {
    response.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
}

#[tokio::test(start_paused = true)]
async fn an_event_is_accepted_once_however_often_it_is_delivered() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(STRICT, 100), &Allow::Everybody);
    for _ in 0..6 {
        assert_eq!(tell(&ingress, 1003, "hello").await.status, 200);
    }
    let events = waiting(&kit.inbound);
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].event.text().as_str(), events[0].command), ("hello", None));
    assert!(kit.notices().is_empty(), "a redelivery is not counted against the rate");
}

/// Invariant 12: one notice a window on chat channels.
#[tokio::test(start_paused = true)]
async fn a_session_over_its_rate_is_told_so_once_a_window() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(STRICT, 100), &Allow::Everybody);
    for id in 1..=5 {
        assert_eq!(tell(&ingress, id, "hello").await.status, 200);
    }
    assert_eq!(waiting(&kit.inbound).len(), 2);
    assert_eq!(kit.notices(), ["That was a lot at once. Please try again in 3 seconds."]);
    sleep(Duration::from_secs(3)).await;
    tell(&ingress, 6, "later").await;
    assert_eq!(kit.inbound.waiting().await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn commands_are_exempt_from_rate_and_depth() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(Rate { rpm: 1, burst: 1 }, 0), &Allow::Everybody);
    for (id, text) in [(1, "/stop"), (2, "/status"), (3, "/help"), (4, "/new")] {
        assert_eq!(tell(&ingress, id, text).await.status, 200, "{text}");
    }
    let commands: Vec<_> = waiting(&kit.control).into_iter().filter_map(|envelope| envelope.command).collect();
    assert_eq!(commands, [Command::Stop, Command::Status, Command::Help, Command::New]);
    let queued: Vec<_> = waiting(&kit.inbound).into_iter().filter_map(|envelope| envelope.command).collect();
    assert_eq!(queued, [Command::New], "a new conversation has its place among the messages");
}

#[tokio::test(start_paused = true)]
async fn whoever_is_not_on_the_list_is_told_so_once_a_day() {
    let kit = Kit::new().await;
    for (allow, allowed) in [
        (Allow::Only(BTreeSet::new()), false),
        (Allow::Only(BTreeSet::from(["8".to_owned()])), false),
        (Allow::Only(BTreeSet::from(["7".to_owned()])), true),
    ] {
        let ingress = ingress(&kit, kit.admission(FREE, 100), &allow);
        for id in [1, 2] {
            assert_eq!(tell(&ingress, id, "hello").await.status, 200);
        }
        assert_eq!(kit.inbound.waiting().await.unwrap(), if allowed { 2 } else { 0 });
    }
    let notices = kit.notices();
    assert_eq!(notices.len(), 1);
    assert!(notices[0].ends_with("this id: 7"), "{}", notices[0]);
}

#[tokio::test(start_paused = true)]
async fn a_message_without_text_is_answered_with_a_kind_sentence() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(FREE, 100), &Allow::Everybody);
    assert_eq!(tell(&ingress, 1, "\u{200b}\u{200b}").await.status, 200);
    assert_eq!(kit.notices(), ["I could not find any text in your message. Could you write it out?"]);
    assert_eq!(kit.inbound.waiting().await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_for_us_is_answered_200_and_forgotten() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(FREE, 100), &Allow::Everybody);
    for other in [json!({ "update_id": 2, "poll": {} }), json!({ "update_id": 3, "from_the_future": {} }), json!({})] {
        assert_eq!(deliver(&ingress, &other).await.status, 200, "{other}");
    }
    assert_eq!(kit.inbound.waiting().await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn too_much_waiting_is_said_by_status_and_asked_for_seldom() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(FREE, 2), &Allow::Everybody);
    tell(&ingress, 1, "one").await;
    tell(&ingress, 2, "two").await;
    // The number is ten seconds old at the most: until then events pass.
    assert_eq!(tell(&ingress, 3, "three").await.status, 200);
    sleep(Duration::from_secs(10)).await;
    let busy = tell(&ingress, 4, "four").await;
    assert_eq!((busy.status, header(&busy, "retry-after")), (503, Some("10")));
    assert_eq!(webhook(&kit, &ingress, "w1").await.status, 503);
    assert_eq!(kit.inbound.waiting().await.unwrap(), 3);
    assert!(kit.notices().is_empty(), "Telegram tries again");
}

/// Invariant 12: never pretend that an event was accepted.
#[tokio::test(start_paused = true)]
async fn a_full_queue_is_busy_after_the_publish_timeout() {
    let kit = Kit::with_capacity(1).await;
    let ingress = ingress(&kit, kit.admission(FREE, 100), &Allow::Everybody);
    tell(&ingress, 1, "one").await;
    let started = Instant::now();
    let busy = tell(&ingress, 2, "two").await;
    assert_eq!((busy.status, header(&busy, "retry-after")), (503, Some("5")));
    assert_eq!(started.elapsed().as_secs(), 5);
}

/// Slack waits three seconds: refused by status while Slack tries again, then in the chat.
#[tokio::test(start_paused = true)]
async fn slack_is_answered_in_time_and_told_in_the_chat_at_the_end() {
    let kit = Kit::with_capacity(1).await;
    let ingress = ingress(&kit, kit.admission(FREE, 100), &Allow::Everybody);
    tell(&ingress, 1, "the only place").await;
    for retry in [None, Some(1), Some(2)] {
        let started = Instant::now();
        assert_eq!(slack_message(&kit, &ingress, retry).await.status, 503, "{retry:?}");
        assert!(started.elapsed() <= Duration::from_millis(2501));
    }
    assert!(kit.notices().is_empty());
    assert_eq!(slack_message(&kit, &ingress, Some(3)).await.status, 200);
    assert_eq!(kit.notices().len(), 1);
    // Case sl-drop-retries: a retry is taken like any other delivery.
    waiting(&kit.inbound);
    assert_eq!(slack_message(&kit, &ingress, Some(3)).await.status, 200);
    assert_eq!(waiting(&kit.inbound).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_reads_every_decision_from_the_status() {
    let kit = Kit::new().await;
    let ingress = ingress(&kit, kit.admission(Rate { rpm: 20, burst: 1 }, 100), &Allow::Everybody);
    assert_eq!(webhook(&kit, &ingress, "w1").await.status, 200);
    assert_eq!(webhook(&kit, &ingress, "w1").await.status, 200, "a repetition");
    let limited = webhook(&kit, &ingress, "w2").await;
    assert_eq!((limited.status, header(&limited, "retry-after")), (429, Some("3")));
    assert_eq!(waiting(&kit.inbound).len(), 1);
    assert!(kit.notices().is_empty());
}

/// Invariant 14: refused by status, without the expected value.
#[tokio::test(start_paused = true)]
async fn refusals_name_the_rule_and_no_secret() {
    let kit = Kit::new().await;
    let mut ingress = ingress(&kit, kit.admission(FREE, 100), &Allow::Everybody);
    let forged = || IngressRequest::post("/telegram/main", HeaderMap::new(), update(1, "hi").to_string());
    let refused = ingress.telegram("main", forged()).await;
    assert_eq!(refused.status, 401);
    assert!(!String::from_utf8_lossy(&refused.body).contains("c2Vj"));
    assert_eq!(ingress.telegram("nobody", forged()).await.status, 404);
    assert_eq!(ingress.slack("nobody", forged()).await.status, 404);
    assert_eq!(ingress.webhook("main", forged()).await.status, 401);
    let mut get = forged();
    get.method = http::Method::GET;
    assert_eq!(ingress.telegram("main", get).await.status, 405);
    let large = IngressRequest::post("/telegram/main", telegram::sign_headers(&secret()), vec![b' '; (1 << 20) + 1]);
    assert_eq!(ingress.telegram("main", large).await.status, 413);
    ingress.telegram.get_mut("main").unwrap().secret_token = None;
    assert_eq!(ingress.telegram("main", forged()).await.status, 503);
    assert_eq!(kit.inbound.waiting().await.unwrap(), 0);
}

/// A message of an API client with this key.
fn api_message(kit: &Kit, key: &str, text: &str) -> ApiMessage {
    let headers = HeaderMap::from_iter([(gateway::IDEMPOTENCY_HEADER, key.parse().unwrap())]);
    let request = IngressRequest::post("/v1/messages", headers, json!({ "text": text }).to_string());
    gateway::receive("ops", &request, kit.clock.now(), "fresh").unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_api_key_is_one_event_and_another_body_a_conflict() {
    let kit = Kit::new().await;
    let admission = kit.admission(Rate { rpm: 20, burst: 1 }, 100);
    let admit = |key: &str, text: &str| {
        let (admission, message) = (Arc::clone(&admission), api_message(&kit, key, text));
        async move { admission.admit_api(&message, &Allow::Everybody).await }
    };
    assert_eq!(admit("a", "hello").await, Admitted::Accepted);
    assert_eq!(admit("a", "hello").await, Admitted::AlreadyAccepted);
    assert_eq!(admit("a", "other").await, Admitted::Conflict);
    assert!(matches!(admit("b", "hello").await, Admitted::Limited { .. }));
    // Also when the rate has forgotten the event.
    sleep(Duration::from_secs(10)).await;
    assert_eq!(admit("c", "hello").await, Admitted::Accepted);
    assert_eq!(admit("a", "hello").await, Admitted::AlreadyAccepted);
    assert_eq!(admit("a", "other").await, Admitted::Conflict);
    assert_eq!(waiting(&kit.inbound).len(), 2);
}

/// Who died between the admission item and the send left an event that is not queued: the repetition sends it.
#[tokio::test(start_paused = true)]
async fn an_admitted_event_that_was_not_queued_is_sent_by_its_repetition() {
    let kit = Kit::new().await;
    let message = api_message(&kit, "a", "hello");
    let event = &message.arrival.event;
    let now = kit.clock.now_ms();
    kit.store.admit(&event.event_id, &message.digest, &event.session_key(), now).await.unwrap();
    let admission = kit.admission(FREE, 100);
    assert_eq!(admission.admit_api(&message, &Allow::Everybody).await, Admitted::Accepted);
    assert_eq!(waiting(&kit.inbound).len(), 1);
    let stored = kit.store.admission(&event.event_id).await.unwrap().unwrap();
    assert_eq!(stored.state, AdmissionState::Queued);
}

/// Cases sqs-size, ag-async-size: the size is checked before anything is accepted.
#[tokio::test(start_paused = true)]
async fn an_event_that_no_queue_takes_is_refused_before_it_is_admitted() {
    let kit = Kit::new().await;
    let mut message = api_message(&kit, "a", "hello");
    message.arrival.event.content[0].text = "x".repeat(turnlock_queue::MAX_BYTES);
    let admission = kit.admission(FREE, 100);
    assert!(matches!(admission.admit_api(&message, &Allow::Everybody).await, Admitted::TooLarge { .. }));
    assert_eq!(kit.store.admission(&message.arrival.event.event_id).await.unwrap(), None);
    let mut chat = message.arrival.clone();
    chat.event.channel = turnlock_domain::event::Channel::Telegram;
    assert!(matches!(admission.admit(*chat, &Allow::Everybody).await, Admitted::TooLarge { .. }));
    assert_eq!(kit.notices(), ["That message is too large for me. Could you send a shorter one?"]);
    let fits = Envelope {
        event: message.arrival.event.clone(),
        accepted_at: kit.clock.now_ms(),
        position: message.arrival.position.clone(),
        command: None,
        unattended: false,
        redrive: 0,
        former_chat: None,
        album: false,
    };
    assert!(send::inbound(&*kit.inbound, &fits).await.is_err(), "the queue says the same");
}
