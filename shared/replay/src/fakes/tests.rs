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
