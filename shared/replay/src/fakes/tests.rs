//! The platforms together: scripts, delays, rate limits and what is kept of the calls.

use http::HeaderMap;
use jiff::Timestamp;
use tokio::time::Instant;

use super::*;

const TEN_SECONDS: Duration = Duration::from_secs(10);

fn platforms() -> FakePlatforms {
    let bot = TelegramBot { bot_id: 1, username: "echo_bot".into(), token: Some("1:secret".into()) };
    let accounts = Accounts { telegram: [("main".to_owned(), bot)].into(), ..Accounts::default() };
    FakePlatforms::new(Clock::starting_at(Timestamp::UNIX_EPOCH), accounts)
}

fn send_message(chat: i64, text: &str) -> PlatformRequest {
    PlatformRequest {
        channel: Channel::Telegram,
        account: "main".into(),
        method: "sendMessage".into(),
        url: "https://api.telegram.org/bot1:secret/sendMessage".into(),
        headers: HeaderMap::new(),
        body: Bytes::from(json!({ "chat_id": chat, "text": text }).to_string()),
    }
}

async fn status(platforms: &FakePlatforms, chat: i64) -> Option<u16> {
    platforms.send(send_message(chat, "x"), TEN_SECONDS).await.ok().map(|response| response.status)
}

fn script(platforms: &FakePlatforms, times: Option<u64>, answer: Answer) {
    platforms.script(ScriptedAnswer { method: Some("sendMessage".into()), times, answer, ..ScriptedAnswer::default() });
}

fn shown(platforms: &FakePlatforms) -> usize {
    platforms.chats().values().map(|chat| chat.messages.len()).sum()
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_be_late_lost_or_another() {
    let table = [
        (Answer { delay: Duration::from_secs(2), ..Answer::default() }, Some(200), 2, 1),
        (Answer { delay: Duration::from_secs(11), ..Answer::default() }, None, 10, 1),
        (Answer { timeout: true, ..Answer::default() }, None, 10, 0),
        (Answer { timeout: true, applied: Some(true), ..Answer::default() }, None, 10, 1),
        (Answer { status: Some(502), ..Answer::default() }, Some(502), 0, 0),
        (Answer { status: Some(502), applied: Some(true), ..Answer::default() }, Some(502), 0, 1),
        (Answer { applied: Some(false), status: Some(200), ..Answer::default() }, Some(200), 0, 0),
    ];
    for (answer, expected, seconds, messages) in table {
        let platforms = platforms();
        script(&platforms, Some(1), answer.clone());
        let start = Instant::now();
        assert_eq!(status(&platforms, 1).await, expected, "{answer:?}");
        assert_eq!((start.elapsed().as_secs(), shown(&platforms)), (seconds, messages), "{answer:?}");
        let call = platforms.calls().remove(0);
        assert_eq!((call.status, call.applied), (expected, messages == 1), "{answer:?}");
        assert_eq!(status(&platforms, 1).await, Some(200), "the line was for one call");
    }
}

#[tokio::test(start_paused = true)]
async fn a_429_holds_for_its_chat_alone() {
    let platforms = platforms();
    let body = json!({ "ok": false, "error_code": 429, "parameters": { "retry_after": 33 } }).to_string();
    script(&platforms, Some(1), Answer { status: Some(429), body: Some(body.into()), ..Answer::default() });
    assert_eq!(status(&platforms, 1).await, Some(429));
    sleep(Duration::from_millis(3_500)).await;
    assert_eq!((status(&platforms, 1).await, status(&platforms, 2).await), (Some(429), Some(200)));
    assert_eq!(platforms.calls()[1].result["parameters"]["retry_after"], 30);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(status(&platforms, 1).await, Some(200));
}

#[tokio::test(start_paused = true)]
async fn a_chat_takes_a_burst_and_then_one_a_second() {
    let platforms = platforms();
    for _ in 0..5 {
        assert_eq!(status(&platforms, 1).await, Some(200));
    }
    assert_eq!((status(&platforms, 1).await, status(&platforms, 2).await), (Some(429), Some(200)));
    let refused = platforms.calls()[5].result.clone();
    assert_eq!(refused["description"], "Too Many Requests: retry after 5");
    assert_eq!(refused["parameters"]["retry_after"], 5);
    sleep(Duration::from_secs(5)).await;
    for _ in 0..60 {
        assert_eq!(status(&platforms, 1).await, Some(200));
        sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_takes_twenty_a_minute_in_all_its_topics() {
    let platforms = platforms();
    let mut answers = Vec::new();
    for _ in 0..22 {
        answers.push(status(&platforms, -100).await);
        sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(answers.iter().filter(|status| **status == Some(200)).count(), 20);
    assert_eq!(platforms.calls()[20].result["parameters"]["retry_after"], 20);
    sleep(Duration::from_secs(16)).await;
    assert_eq!(status(&platforms, -100).await, Some(200));
}

#[tokio::test(start_paused = true)]
async fn a_bot_takes_thirty_a_second_over_all_chats() {
    let platforms = platforms();
    for chat in 1..=30 {
        assert_eq!(status(&platforms, chat).await, Some(200));
    }
    assert_eq!(status(&platforms, 31).await, Some(429));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(status(&platforms, 31).await, Some(200));
    let platforms = self::platforms().without_budgets();
    for _ in 0..100 {
        assert_eq!(status(&platforms, 1).await, Some(200));
    }
}

#[tokio::test(start_paused = true)]
async fn a_scripted_answer_comes_whatever_was_spent_and_counts() {
    let platforms = platforms();
    script(&platforms, Some(6), Answer { delay: Duration::from_millis(1), ..Answer::default() });
    for _ in 0..6 {
        assert_eq!(status(&platforms, 1).await, Some(200));
    }
    assert_eq!(status(&platforms, 1).await, Some(429));
    script(&platforms, None, Answer { status: Some(500), ..Answer::default() });
    for _ in 0..9 {
        assert_eq!(status(&platforms, 2).await, Some(500));
    }
}

#[tokio::test(start_paused = true)]
async fn slack_limits_a_method_in_a_workspace() {
    let app = SlackApp {
        app_id: "A0APP".into(),
        team_id: "T0TEAM".into(),
        bot_user_id: "U0BOT".into(),
        bot_id: "B0BOT".into(),
        token: None,
        other_teams: BTreeMap::new(),
    };
    let accounts = Accounts { slack: [("main".to_owned(), app)].into(), ..Accounts::default() };
    let platforms = FakePlatforms::new(Clock::starting_at(Timestamp::UNIX_EPOCH), accounts);
    let call = |method: &str, channel: &str, ts: &Value| {
        let body = json!({ "channel": channel, "text": format!("at {:?}", Instant::now()), "ts": ts });
        let request = PlatformRequest {
            channel: Channel::Slack,
            url: format!("https://slack.com/api/{method}"),
            body: Bytes::from(body.to_string()),
            headers: [(http::header::AUTHORIZATION, http::HeaderValue::from_static("Bearer x"))].into_iter().collect(),
            ..send_message(1, "")
        };
        platforms.send(request, TEN_SECONDS)
    };
    for _ in 0..5 {
        assert_eq!(call("chat.postMessage", "C1", &Value::Null).await.unwrap().status, 200);
    }
    let refused = call("chat.postMessage", "C1", &Value::Null).await.unwrap();
    assert_eq!((refused.status, &refused.headers["retry-after"]), (429, &http::HeaderValue::from_static("5")));
    let name: Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!(name, json!({ "ok": false, "error": "ratelimited" }));
    let posted: Value =
        serde_json::from_slice(&call("chat.postMessage", "C2", &Value::Null).await.unwrap().body).unwrap();
    for _ in 0..50 {
        assert_eq!(call("chat.update", "C2", &posted["ts"]).await.unwrap().status, 200);
    }
    for channel in ["C1", "C2"] {
        assert_eq!(
            call("chat.update", channel, &posted["ts"]).await.unwrap().status,
            429,
            "one budget for all channels"
        );
    }
    assert_eq!(call("conversations.history", "C2", &Value::Null).await.unwrap().status, 200, "a method has its own");
}

#[tokio::test(start_paused = true)]
async fn a_scripted_body_is_what_is_answered_while_the_call_takes_effect() {
    let platforms = platforms();
    let body = Bytes::from_static(b"<html>bad gateway</html>");
    script(&platforms, None, Answer { body: Some(body.clone()), ..Answer::default() });
    let response = platforms.send(send_message(1, "x"), TEN_SECONDS).await.unwrap();
    assert_eq!((response.status, response.body, shown(&platforms)), (200, body, 1));
    assert_eq!(platforms.calls()[0].result, "<html>bad gateway</html>");
}

#[tokio::test(start_paused = true)]
async fn calls_are_kept_without_tokens_and_bounded() {
    let platforms = platforms();
    let changes = platforms.changes();
    for _ in 0..=MAX_CALLS {
        sleep(Duration::from_secs(1)).await;
        platforms.send(send_message(1, "x"), TEN_SECONDS).await.unwrap();
    }
    let calls = platforms.calls();
    assert_eq!((calls.len(), changes.has_changed().unwrap()), (MAX_CALLS, true));
    assert_eq!(calls[0].arguments, json!({ "chat_id": 1, "text": "x" }));
    assert!(!format!("{calls:?}").contains("secret"));
}

#[tokio::test(start_paused = true)]
async fn a_button_is_found_where_it_was_shown_last() {
    let platforms = platforms();
    for data in ["old", "new"] {
        let mut request = send_message(1, "Run pay?");
        let keyboard = json!({ "inline_keyboard": [[{ "text": "Allow", "callback_data": data }]] });
        request.body = json!({ "chat_id": 1, "text": "Run pay?", "reply_markup": keyboard }).to_string().into();
        platforms.send(request, TEN_SECONDS).await.unwrap();
    }
    let chat = ChatId { channel: Channel::Telegram, account: "main".into(), chat: "1".into() };
    let (message, button) = platforms.find_button(&chat, "Allow").unwrap();
    assert_eq!((message.id, button.data.as_str()), (json!(1002), "new"));
    assert!(platforms.find_button(&chat, "Deny").is_none());
    assert_eq!(platforms.next_message_number(&chat), 1003);
}
