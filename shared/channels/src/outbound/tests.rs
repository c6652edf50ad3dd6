//! Rendering and sending, against a platform that answers from a list.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::{Value, json};
use turnlock_clock::Clock;
use turnlock_domain::event::{ASKED_BY, ContentBlock, EventType, InboundEvent, MessageKind};
use turnlock_domain::ids::EventId;

use super::*;

mod buttons;
/// Markup, its refusal, pressed buttons and typing.
mod markup;

use crate::http::{PlatformError, PlatformHttp, PlatformRequest, PlatformResponse};
use crate::webhook::{Source, Verify};

const TOKEN: &str = "1:planted-token";
const SECRET: &str = "whsec_cGxhbnRlZC1rZXk=";

/// What the platform does with the next request.
enum Next {
    Answer(u16, HeaderMap, Bytes),
    Unreachable,
    AnswerLost,
}

#[derive(Default)]
struct Scripted {
    next: Mutex<VecDeque<Next>>,
    seen: Mutex<Vec<PlatformRequest>>,
}

impl Scripted {
    fn json(status: u16, body: &Value) -> Next {
        Next::Answer(status, HeaderMap::new(), Bytes::from(body.to_string()))
    }
}

#[async_trait]
impl PlatformHttp for Scripted {
    async fn send(&self, request: PlatformRequest, _: Duration) -> Result<PlatformResponse, PlatformError> {
        self.seen.lock().unwrap().push(request);
        match self.next.lock().unwrap().pop_front().unwrap() {
            Next::Answer(status, headers, body) => Ok(PlatformResponse { status, headers, body }),
            Next::Unreachable => Err(PlatformError::Unreachable("refused".into())),
            Next::AnswerLost => Err(PlatformError::AnswerLost("reset".into())),
        }
    }
}

fn source() -> Source {
    Source {
        name: "main".to_owned(),
        verify: Verify::Standard { secret: SecretString::from(SECRET) },
        template: None,
        session: None,
        reply_to: Some("https://producer.example/planted-path?token=planted".parse().unwrap()),
        id_headers: Source::default_id_headers(),
    }
}

fn outbound(http: Arc<Scripted>) -> Outbound {
    let clock = Clock::system();
    Outbound::new()
        .with_telegram(telegram::Client::new(http.clone(), "main", SecretString::from(TOKEN), "https://bots.example/"))
        .with_slack(slack::Client::new(http.clone(), "main", SecretString::from(TOKEN), "https://slack.example/api"))
        .with_webhook(webhook::Client::new(http, clock, &source()).unwrap())
}

fn event(channel: Channel, chat: &str, text: &str) -> OutboundEvent {
    let inbound = InboundEvent {
        schema: 1,
        event_id: EventId::from_stored("e"),
        event_type: EventType::Message,
        channel,
        account: "main".to_owned(),
        sender_id: String::new(),
        chat_id: chat.to_owned(),
        content: Vec::new(),
        timestamp: Timestamp::UNIX_EPOCH,
        reply_to_id: None,
        thread_id: None,
        session_key_override: None,
        metadata: serde_json::Map::new(),
        gateway_metadata: serde_json::Map::new(),
        trace: None,
    };
    OutboundEvent::answering(&inbound, "final", MessageKind::Final, text)
}

/// Sends one part and returns what came of it and the request's arguments.
async fn send(event: &OutboundEvent, edit: Option<&str>, next: Next) -> (Result<String, SendError>, PlatformRequest) {
    let http = Arc::new(Scripted { next: Mutex::new([next].into()), ..Scripted::default() });
    let result = outbound(http.clone()).send_part(event, &part(&event.text()), edit).await;
    let seen = http.seen.lock().unwrap().remove(0);
    (result, seen)
}

fn part(text: &str) -> Part {
    Part { text: text.to_owned(), plain: text.to_owned(), units: text.len(), buttons: Vec::new() }
}

fn texts(parts: Vec<Part>) -> Vec<String> {
    parts.into_iter().map(|part| part.text).collect()
}

fn arguments(request: &PlatformRequest) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

async fn telegram_answer(edit: Option<&str>, status: u16, body: Value) -> Result<String, SendError> {
    send(&event(Channel::Telegram, "-100", "hi"), edit, Scripted::json(status, &body)).await.0
}

async fn telegram_error(edit: Option<&str>, code: u16, description: &str) -> SendError {
    let body = json!({ "ok": false, "error_code": code, "description": description });
    telegram_answer(edit, code, body).await.unwrap_err()
}

async fn slack_error(edit: Option<&str>, error: &str) -> SendError {
    let body = json!({ "ok": false, "error": error });
    send(&event(Channel::Slack, "C0CHAN", "hi"), edit, Scripted::json(200, &body)).await.0.unwrap_err()
}

#[tokio::test]
async fn telegram_sends_and_edits() {
    let sent = json!({ "ok": true, "result": { "message_id": 42 } });
    let mut group = event(Channel::Telegram, "-1001000000001", "hi");
    group.reply_to_id = Some("7".to_owned());
    group.thread_id = Some("5".to_owned());
    let (result, request) = send(&group, None, Scripted::json(200, &sent)).await;
    assert_eq!(result.as_deref(), Ok("42"));
    assert_eq!(request.url, format!("https://bots.example/bot{TOKEN}/sendMessage"));
    assert_eq!((request.method.as_str(), request.account.as_str()), ("sendMessage", "main"));
    assert_eq!(
        arguments(&request),
        json!({
            "chat_id": -1_001_000_000_001_i64, "text": "hi", "message_thread_id": 5,
            "link_preview_options": { "is_disabled": true },
            "reply_parameters": { "message_id": 7, "allow_sending_without_reply": true },
        })
    );
    let (result, request) = send(&group, Some("42"), Scripted::json(200, &sent)).await;
    assert_eq!((result.as_deref(), request.method.as_str()), (Ok("42"), "editMessageText"));
    assert_eq!(
        arguments(&request),
        json!({ "chat_id": -1_001_000_000_001_i64, "message_id": 42, "text": "hi", "link_preview_options": { "is_disabled": true } })
    );
    let business = event(Channel::Telegram, "bc77/1000002", "hi");
    let (_, request) = send(&business, None, Scripted::json(200, &sent)).await;
    assert_eq!(
        arguments(&request),
        json!({ "business_connection_id": "bc77", "chat_id": 1_000_002, "text": "hi", "link_preview_options": { "is_disabled": true } })
    );
}

/// Case tg-topic-general (outbound half): the General topic has no thread id.
#[tokio::test]
async fn tg_topic_general() {
    let mut general = event(Channel::Telegram, "-100", "hi");
    general.thread_id = Some("1".to_owned());
    let sent = json!({ "ok": true, "result": { "message_id": 1 } });
    let (_, request) = send(&general, None, Scripted::json(200, &sent)).await;
    assert_eq!(arguments(&request).get("message_thread_id"), None);
}

/// Case tg-topic-dm-leak: a missing topic is told apart, so that the caller stays in the same chat.
#[tokio::test]
async fn tg_topic_dm_leak() {
    let error = telegram_error(None, 400, "Bad Request: message thread not found").await;
    assert_eq!(error, SendError::ThreadGone);
}

/// Case tg-migrate-send: the new id is read from the refusal.
#[tokio::test]
async fn tg_migrate_send() {
    let body = json!({
        "ok": false, "error_code": 400,
        "description": "Bad Request: group chat was upgraded to a supergroup chat",
        "parameters": { "migrate_to_chat_id": -1_001_000_000_055_i64 },
    });
    let error = telegram_answer(None, 400, body).await.unwrap_err();
    assert_eq!(error, SendError::Migrated { to: "-1001000000055".to_owned() });
}

/// Case tg-403-blocked: terminal, with the platform's words for the log.
#[tokio::test]
async fn tg_403_blocked() {
    let error = telegram_error(None, 403, "Forbidden: bot was blocked by the user").await;
    assert_eq!(error, SendError::ChatGone { reason: "bot was blocked by the user".to_owned() });
}

/// Case tg-not-modified-abort (the client's half): the message already shows it, so the edit has succeeded.
#[tokio::test]
async fn tg_not_modified_abort() {
    let description = "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message";
    let body = json!({ "ok": false, "error_code": 400, "description": description });
    assert_eq!(telegram_answer(Some("42"), 400, body).await.as_deref(), Ok("42"));
}

#[tokio::test]
async fn the_wait_is_telegrams_for_an_edit_as_for_a_send() {
    let body = json!({
        "ok": false, "error_code": 429, "description": "Too Many Requests: retry after 33",
        "parameters": { "retry_after": 33 },
    });
    for edit in [None, Some("42")] {
        let error = telegram_answer(edit, 429, body.clone()).await.unwrap_err();
        assert_eq!(error, SendError::RetryAfter(Duration::from_secs(33)));
    }
}

#[tokio::test]
async fn telegrams_refusals_by_what_the_caller_must_do() {
    let gone = |reason: &str| SendError::ChatGone { reason: reason.to_owned() };
    let rejected = |code: &str| SendError::Rejected { code: code.to_owned() };
    let table = [
        (None, 400, "Bad Request: message is too long", SendError::TooLong),
        (None, 400, "Bad Request: MESSAGE_TOO_LONG", SendError::TooLong),
        (None, 413, "Request Entity Too Large", SendError::TooLong),
        (None, 400, "Bad Request: TOPIC_DELETED", SendError::ThreadGone),
        (None, 400, "Bad Request: chat not found", gone("chat not found")),
        (
            None,
            400,
            "Bad Request: not enough rights to send text messages to the chat",
            gone("not enough rights to send text messages to the chat"),
        ),
        (
            None,
            403,
            "Forbidden: bot was kicked from the supergroup chat",
            gone("bot was kicked from the supergroup chat"),
        ),
        (Some("1"), 400, "Bad Request: message to edit not found", SendError::EditGone),
        (Some("1"), 400, "Bad Request: message can't be edited", SendError::EditGone),
        (None, 400, "Bad Request: message text is empty", rejected("400 message text is empty")),
        (None, 401, "Unauthorized", SendError::Transient("the token is not accepted".to_owned())),
        (None, 404, "Not Found", rejected("404 Not Found")),
        (None, 400, "Bad Request: can't parse <b>x</b> of 1:AAtoken", rejected("400 can't parse … of …")),
        (None, 500, "Internal Server Error", SendError::Unknown("status 500".to_owned())),
        (Some("1"), 502, "Bad Gateway", SendError::Transient("status 502".to_owned())),
    ];
    for (edit, code, description, wanted) in table {
        assert_eq!(telegram_error(edit, code, description).await, wanted, "{description}");
    }
}

/// A platform may repeat what it was sent; a log must not.
#[tokio::test]
async fn what_was_sent_is_in_no_error() {
    let said = event(Channel::Telegram, "-100", "my secret diary, not found elsewhere");
    let body = json!({ "ok": false, "error_code": 400, "description": "Bad Request: \"my secret diary\" not found" });
    let (result, _) = send(&said, None, Scripted::json(400, &body)).await;
    assert_eq!(result, Err(SendError::Rejected { code: "400 … … … not …".to_owned() }));
}

#[tokio::test]
async fn an_answer_that_names_no_message_is_no_success() {
    for body in ["", "<html>", "{}", r#"{"ok":true}"#, r#"{"ok":true,"result":{"message_id":"x"}}"#] {
        for channel in [Channel::Telegram, Channel::Slack] {
            let next = Next::Answer(200, HeaderMap::new(), Bytes::from(body));
            let (result, _) = send(&event(channel, "1", "hi"), None, next).await;
            assert!(matches!(result, Err(SendError::Unknown(_))), "{channel:?} {body}: {result:?}");
        }
    }
}

#[tokio::test]
async fn what_was_not_sent_is_safe_to_repeat_and_what_may_have_been_is_not() {
    for channel in [Channel::Telegram, Channel::Slack] {
        let event = event(channel, "1", "hi");
        let unreachable = send(&event, None, Next::Unreachable).await.0;
        assert_eq!(unreachable, Err(SendError::Transient("unreachable".to_owned())));
        let lost = send(&event, None, Next::AnswerLost).await.0;
        assert_eq!(lost, Err(SendError::Unknown("answer lost".to_owned())));
        let lost_edit = send(&event, Some("1"), Next::AnswerLost).await.0;
        assert_eq!(lost_edit, Err(SendError::Transient("answer lost".to_owned())));
    }
}

#[tokio::test]
async fn slack_posts_and_updates() {
    let ok = json!({ "ok": true, "channel": "C0CHAN", "ts": "1760000000.000200" });
    let mut thread = event(Channel::Slack, "T0SECOND/C0CHAN", "hi");
    thread.thread_id = Some("1760000000.000100".to_owned());
    let (result, request) = send(&thread, None, Scripted::json(200, &ok)).await;
    assert_eq!(result.as_deref(), Ok("1760000000.000200"));
    assert_eq!(request.url, "https://slack.example/api/chat.postMessage");
    assert_eq!(request.headers["authorization"], format!("Bearer {TOKEN}"));
    assert_eq!(
        arguments(&request),
        json!({
            "channel": "C0CHAN", "text": "hi", "thread_ts": "1760000000.000100",
            "unfurl_links": false, "unfurl_media": false,
        })
    );
    let (result, request) = send(&thread, Some("1760000000.000200"), Scripted::json(200, &ok)).await;
    assert_eq!((result.as_deref(), request.method.as_str()), (Ok("1760000000.000200"), "chat.update"));
    assert_eq!(
        arguments(&request),
        json!({
            "channel": "C0CHAN", "ts": "1760000000.000200", "text": "hi", "parse": "none", "link_names": false, "blocks": [],
        })
    );
}

/// A slash command works where the app is no member: the chat is not gone, and who asked can be told.
#[tokio::test]
async fn where_the_app_is_no_member_the_asker_can_be_told() {
    let mut asked = event(Channel::Slack, "C0CHAN", "hi");
    let answer = async |event: &OutboundEvent, error: &str| {
        send(event, None, Scripted::json(200, &json!({ "ok": false, "error": error }))).await.0.unwrap_err()
    };
    assert_eq!(
        answer(&asked, "not_in_channel").await,
        SendError::ChatGone { reason: "not_in_channel".to_owned() },
        "nobody asked by a command"
    );
    asked.metadata.insert(ASKED_BY.to_owned(), json!("U0USER"));
    for error in ["not_in_channel", "channel_not_found"] {
        assert_eq!(answer(&asked, error).await, SendError::NotMember { instead: "U0USER".to_owned() });
    }
    assert_eq!(answer(&asked, "is_archived").await, SendError::ChatGone { reason: "is_archived".to_owned() });
    asked.chat_id = "T0SECOND/C0CHAN".to_owned();
    assert_eq!(answer(&asked, "not_in_channel").await, SendError::NotMember { instead: "T0SECOND/U0USER".to_owned() });
}

/// Case sl-ok-false-200: success is `ok: true` alone, and each failure has its meaning.
#[tokio::test]
async fn sl_ok_false_200() {
    let gone = |reason: &str| SendError::ChatGone { reason: reason.to_owned() };
    let table = [
        (None, "ratelimited", SendError::RetryAfter(Duration::from_secs(1))),
        (None, "rate_limited", SendError::RetryAfter(Duration::from_secs(1))),
        (None, "msg_too_long", SendError::TooLong),
        (None, "msg_blocks_too_long", SendError::TooLong),
        (None, "channel_not_found", gone("channel_not_found")),
        (None, "is_archived", gone("is_archived")),
        (None, "not_in_channel", gone("not_in_channel")),
        (None, "invalid_thread_ts", SendError::ThreadGone),
        (None, "service_unavailable", SendError::Transient("service_unavailable".to_owned())),
        (None, "internal_error", SendError::Unknown("internal_error".to_owned())),
        (None, "invalid_auth", SendError::Transient("invalid_auth".to_owned())),
        (None, "no_permission", SendError::Rejected { code: "no_permission".to_owned() }),
        (None, "xoxb-Token!", SendError::Rejected { code: "an error without a name".to_owned() }),
        (Some("1.2"), "message_not_found", SendError::EditGone),
        (Some("1.2"), "edit_window_closed", SendError::EditGone),
    ];
    for (edit, error, wanted) in table {
        assert_eq!(slack_error(edit, error).await, wanted, "{error}");
    }
}

/// Case sl-edit-ghost: a failed update is not a missing message: it is tried again, nothing is posted anew.
#[tokio::test]
async fn sl_edit_ghost() {
    assert_eq!(slack_error(Some("1.2"), "internal_error").await, SendError::Transient("internal_error".to_owned()));
    assert_eq!(slack_error(Some("1.2"), "message_not_found").await, SendError::EditGone);
}

#[tokio::test]
async fn a_rate_limit_says_how_long() {
    let headers = HeaderMap::from_iter([(http::header::RETRY_AFTER, HeaderValue::from_static("41"))]);
    for channel in [Channel::Telegram, Channel::Slack, Channel::Webhook] {
        let next = Next::Answer(429, headers.clone(), Bytes::from_static(b"slow down"));
        let (result, _) = send(&event(channel, "1", "hi"), None, next).await;
        assert_eq!(result, Err(SendError::RetryAfter(Duration::from_secs(41))), "{channel:?}");
    }
}

#[tokio::test]
async fn a_webhooks_reply_is_signed_and_recognised_when_repeated() {
    let reply = event(Channel::Webhook, "main", "done");
    let (result, request) = send(&reply, None, Next::Answer(202, HeaderMap::new(), Bytes::new())).await;
    assert_eq!(result.as_deref(), Ok("e.final"));
    assert_eq!(request.headers["webhook-id"], "e.final");
    assert!(webhook::verify(&source(), &request.headers, &request.body, Timestamp::now()).is_ok());
    let received: OutboundEvent = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(received, reply);
    for (next, wanted) in [
        (Next::AnswerLost, SendError::Transient("the platform's answer was lost".to_owned())),
        (Scripted::json(503, &json!({})), SendError::Transient("status 503".to_owned())),
        (Scripted::json(410, &json!({})), SendError::ChatGone { reason: "410 gone".to_owned() }),
        (Scripted::json(302, &json!({})), SendError::Rejected { code: "status 302".to_owned() }),
        (Scripted::json(401, &json!({})), SendError::Rejected { code: "status 401".to_owned() }),
    ] {
        assert_eq!(send(&reply, None, next).await.0, Err(wanted));
    }
}

#[test]
fn a_text_always_has_a_part_that_can_be_seen() {
    let outbound = Outbound::new();
    for channel in [Channel::Telegram, Channel::Slack, Channel::Webhook] {
        assert_eq!(texts(outbound.render(&event(channel, "1", "hi"), &[])), ["hi"]);
        assert_eq!(texts(outbound.render(&event(channel, "1", "\u{200b}\n"), &[])), ["…"]);
        let mut empty = event(channel, "1", "");
        empty.content = vec![ContentBlock::default()];
        assert_eq!(outbound.render(&empty, &[]), Vec::new());
    }
    let padded = format!("hello{}", "\n".repeat(9000));
    assert!(texts(outbound.render(&event(Channel::Telegram, "1", &padded), &[])).iter().all(|part| !is_blank(part)));
}

#[tokio::test]
async fn handlers_are_by_channel_and_account() {
    let outbound = outbound(Arc::default());
    assert_eq!(outbound.handler(Channel::Telegram, "main"), Handler::Platform);
    assert_eq!(outbound.handler(Channel::Telegram, "other"), Handler::None);
    assert_eq!(outbound.handler(Channel::Gateway, "ops"), Handler::Store);
    assert_eq!(outbound.handler(Channel::Cli, "main"), Handler::Store);
    assert_eq!(outbound.handler(Channel::Cron, "main"), Handler::None);
    let mut other = event(Channel::Slack, "C", "hi");
    other.account = "other".to_owned();
    assert_eq!(outbound.send_part(&other, &part("hi"), None).await, Err(SendError::NoHandler));
    let nowhere = Source { reply_to: None, ..source() };
    assert!(webhook::Client::new(Arc::new(Scripted::default()), Clock::system(), &nowhere).is_none());
}

#[test]
fn nothing_that_holds_a_secret_shows_it() {
    let shown = format!("{:?} {:?}", outbound(Arc::default()), source());
    for secret in [TOKEN, SECRET, "planted"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    for verify in [
        Verify::Hmac {
            header: http::HeaderName::from_static("x-sig"),
            secret: SecretString::from("planted"),
            prefix: String::new(),
        },
        Verify::Slack { secret: SecretString::from("planted") },
        Verify::Bearer { token: SecretString::from("planted") },
    ] {
        assert!(!format!("{verify:?}").contains("planted"));
    }
}
