//! What is sent: markup, plain text where it cannot be read, typing, and answers to pressed buttons.

use turnlock_domain::event::TAP;

use super::*;

/// Renders and sends the text of `event`, one answer of the platform a request; returns the result and the requests.
async fn say(
    event: &OutboundEvent,
    edit: Option<&str>,
    next: impl IntoIterator<Item = Next>,
) -> (Result<String, SendError>, Vec<PlatformRequest>) {
    let http = Arc::new(Scripted { next: Mutex::new(next.into_iter().collect()), ..Scripted::default() });
    let outbound = outbound(http.clone());
    let part = outbound.render(event, &[]).remove(0);
    let result = outbound.send_part(event, &part, edit).await;
    let seen = std::mem::take(&mut *http.seen.lock().unwrap());
    (result, seen)
}

fn methods(requests: &[PlatformRequest]) -> Vec<&str> {
    requests.iter().map(|request| request.method.as_str()).collect()
}

fn sent() -> Next {
    Scripted::json(200, &json!({ "ok": true, "result": { "message_id": 42 } }))
}

fn refused(description: &str) -> Next {
    Scripted::json(
        400,
        &json!({ "ok": false, "error_code": 400, "description": format!("Bad Request: {description}") }),
    )
}

#[tokio::test]
async fn a_part_is_html_only_where_its_text_is_not_what_a_reader_sees() {
    for (text, mode) in [("plain \"text\"", Value::Null), ("**b**", json!("HTML")), ("a < b", json!("HTML"))] {
        for edit in [None, Some("42")] {
            let (result, requests) = say(&event(Channel::Telegram, "1", text), edit, [sent()]).await;
            assert_eq!((result.as_deref(), requests.len()), (Ok("42"), 1));
            assert_eq!(arguments(&requests[0])["parse_mode"], mode, "{text}");
        }
    }
}

/// Case tg-mdv2-visible-escapes: what Telegram cannot parse is sent once more, as the reader would have seen it, without
/// an escape; whatever it is that refused, and whatever the text is about.
#[tokio::test]
async fn tg_mdv2_visible_escapes() {
    let text = "Thanks. **We** can't parse entities < soon.";
    let refusal = "can't parse entities: Unsupported start tag \"x\" at byte offset 3";
    for edit in [None, Some("42")] {
        let (result, requests) = say(&event(Channel::Telegram, "1", text), edit, [refused(refusal), sent()]).await;
        assert_eq!((result.as_deref(), requests.len()), (Ok("42"), 2));
        let second = arguments(&requests[1]);
        assert_eq!(
            (second["text"].as_str(), second.get("parse_mode")),
            (Some("Thanks. We can't parse entities < soon."), None)
        );
        assert_eq!(requests[0].method, requests[1].method);
    }
    let (result, requests) =
        say(&event(Channel::Telegram, "1", text), None, [refused(refusal), refused(refusal)]).await;
    assert!(matches!(result, Err(SendError::Rejected { .. })) && requests.len() == 2);
    let (result, requests) =
        say(&event(Channel::Telegram, "1", text), None, [refused(refusal), Next::AnswerLost]).await;
    assert_eq!((result, requests.len()), (Err(SendError::Unknown("answer lost".to_owned())), 2));
}

#[tokio::test]
async fn typing_goes_to_the_thread_and_costs_nothing_where_there_is_none() {
    let mut topic = event(Channel::Telegram, "bc77/1000002", "");
    topic.thread_id = Some("5".to_owned());
    let http = Arc::new(Scripted {
        next: Mutex::new([Scripted::json(200, &json!({ "ok": true, "result": true })), Next::AnswerLost].into()),
        ..Scripted::default()
    });
    let outbound = outbound(http.clone());
    assert_eq!(outbound.typing(&topic).await, Ok(()));
    topic.thread_id = Some("1".to_owned());
    assert_eq!(outbound.typing(&topic).await, Err(SendError::Transient("answer lost".to_owned())));
    for channel in [Channel::Slack, Channel::Webhook, Channel::Gateway, Channel::Cli] {
        assert_eq!(outbound.typing(&event(channel, "1", "")).await, Ok(()));
    }
    let seen = http.seen.lock().unwrap();
    assert_eq!(methods(&seen), ["sendChatAction"; 2]);
    let wanted =
        json!({ "business_connection_id": "bc77", "chat_id": 1_000_002, "message_thread_id": 5, "action": "typing" });
    assert_eq!(arguments(&seen[0]), wanted);
    assert_eq!(arguments(&seen[1]).get("message_thread_id"), None);
}

fn tapped(channel: Channel, tap: Value) -> OutboundEvent {
    let mut answer = event(channel, "1000001", "This has **expired**.");
    answer.metadata.insert(TAP.to_owned(), tap);
    answer
}

fn done() -> Next {
    Scripted::json(200, &json!({ "ok": true, "result": true }))
}

/// Case tg-cbq-double-answer (the client's half): one answer, an alert; then the buttons go.
#[tokio::test]
async fn tg_cbq_double_answer() {
    let card = tapped(Channel::Telegram, json!({ "query_id": "q3", "message_id": 7, "data": "ap:gone:ok" }));
    let (result, requests) = say(&card, None, [done(), refused("message to edit not found")]).await;
    assert_eq!(result.as_deref(), Ok("q3"));
    assert_eq!(methods(&requests), ["answerCallbackQuery", "editMessageReplyMarkup"]);
    let answer = json!({ "callback_query_id": "q3", "text": "This has expired.", "show_alert": true });
    assert_eq!(arguments(&requests[0]), answer);
    let buttons = json!({ "chat_id": 1_000_001, "message_id": 7, "reply_markup": { "inline_keyboard": [] } });
    assert_eq!(arguments(&requests[1]), buttons);
    let inline = tapped(Channel::Telegram, json!({ "query_id": "q3", "inline_message_id": "in", "data": "x" }));
    let (_, requests) = say(&inline, None, [done(), done()]).await;
    assert_eq!(
        arguments(&requests[1]),
        json!({ "inline_message_id": "in", "reply_markup": { "inline_keyboard": [] } })
    );
}

/// Case tg-cbq-expired-loop (the client's half): a press that is too old to be answered is done with.
#[tokio::test]
async fn tg_cbq_expired_loop() {
    let card = tapped(Channel::Telegram, json!({ "query_id": "q2", "data": "ap:gone:ok" }));
    let old = "query is too old and response timeout expired or query ID is invalid";
    let (result, requests) = say(&card, None, [refused(old)]).await;
    assert_eq!((result.as_deref(), requests.len()), (Ok("q2"), 1));
    let (result, requests) = say(&card, None, [Next::Unreachable]).await;
    assert_eq!((result, requests.len()), (Err(SendError::Transient("unreachable".to_owned())), 1));
}

/// Only who pressed a button on Slack sees the answer.
#[tokio::test]
async fn an_answer_to_a_press_on_slack_is_ephemeral() {
    let mut card = tapped(Channel::Slack, json!({ "data": "x", "message_ts": "1.2", "user": "U0USER" }));
    card.thread_id = Some("1.1".to_owned());
    let ok = Scripted::json(200, &json!({ "ok": true, "message_ts": "1.3" }));
    let (result, requests) = say(&card, None, [ok]).await;
    assert_eq!((result.as_deref(), methods(&requests)), (Ok("1.3"), vec!["chat.postEphemeral"]));
    let wanted = json!({ "channel": "1000001", "user": "U0USER", "thread_ts": "1.1", "text": "This has *expired*." });
    assert_eq!(arguments(&requests[0]), wanted);
}
