//! Messages with buttons, and what takes the buttons away again.

use turnlock_domain::event::{TAP, TAP_KEEPS_BUTTONS};

use super::*;

const ID: &str = "019a0b1c2d30123456789abcdef0123456789abcafe";

/// A card that shows `code`.
fn card(channel: Channel, code: &str) -> OutboundEvent {
    let button = |label: &str, data: String| Button { label: label.to_owned(), data };
    let text = format!("May I run this?\n\n```\ndeploy\n{code}\n```\n\nPress a button.");
    OutboundEvent {
        message_kind: MessageKind::ApprovalRequest,
        is_final: false,
        buttons: vec![button("Allow", format!("approve:{ID}")), button("Deny", format!("deny:{ID}"))],
        ..event(channel, "C0CHAN", &text)
    }
}

fn settled(channel: Channel, code: &str) -> OutboundEvent {
    OutboundEvent { edits: Some("e.final".to_owned()), buttons: Vec::new(), ..card(channel, code) }
}

/// Sends the last part of `event`; returns the arguments of the request.
async fn send_last(event: &OutboundEvent, edit: Option<&str>, answer: Value) -> (String, Value) {
    let http = Arc::new(Scripted { next: Mutex::new([Scripted::json(200, &answer)].into()), ..Scripted::default() });
    let outbound = outbound(http.clone());
    let part = outbound.render(event, &[]).pop().expect("a part");
    outbound.send_part(event, &part, edit).await.expect("shown");
    let request = http.seen.lock().unwrap().remove(0);
    (request.method.clone(), arguments(&request))
}

#[tokio::test]
async fn telegram_shows_buttons_as_a_keyboard_and_takes_them_away_with_an_edit() {
    let answer = json!({ "ok": true, "result": { "message_id": 42 } });
    let (method, sent) = send_last(&card(Channel::Telegram, "@here <b>x</b>"), None, answer.clone()).await;
    let (allow, deny) = (format!("approve:{ID}"), format!("deny:{ID}"));
    assert!(allow.len() <= 64, "Telegram takes 64 bytes");
    let row = json!([{ "text": "Allow", "callback_data": allow }, { "text": "Deny", "callback_data": deny }]);
    assert_eq!((method.as_str(), &sent["reply_markup"]), ("sendMessage", &json!({ "inline_keyboard": [row] })));
    let shown = "May I run this?\n\n<pre>deploy\n@here &lt;b&gt;x&lt;/b&gt;</pre>\n\nPress a button.";
    assert_eq!(sent["text"], shown);

    let (method, edited) = send_last(&settled(Channel::Telegram, "x"), Some("42"), answer).await;
    assert_eq!((method.as_str(), &edited["reply_markup"]), ("editMessageText", &json!({ "inline_keyboard": [] })));
}

#[tokio::test]
async fn slack_shows_buttons_as_a_block_and_takes_them_away_with_an_edit() {
    let answer = json!({ "ok": true, "ts": "1.2" });
    let (method, sent) = send_last(&card(Channel::Slack, "@here <!channel> *x*"), None, answer.clone()).await;
    let text = "May I run this?\n\n```\ndeploy\n@here &lt;!channel&gt; *x*\n```\n\nPress a button.";
    let section =
        |text: &str| json!({ "type": "section", "text": { "type": "mrkdwn", "text": text, "verbatim": true } });
    let button = |label: &str, action: &str| {
        let label = json!({ "type": "plain_text", "text": label });
        json!({ "type": "button", "text": label, "action_id": action, "value": ID })
    };
    let actions = json!({ "type": "actions", "elements": [button("Allow", "approve"), button("Deny", "deny")] });
    assert_eq!((method.as_str(), &sent["blocks"]), ("chat.postMessage", &json!([section(text), actions])));
    assert_eq!(sent["text"], text);

    let (method, edited) = send_last(&settled(Channel::Slack, "x"), Some("1.2"), answer).await;
    let text = "May I run this?\n\n```\ndeploy\nx\n```\n\nPress a button.";
    assert_eq!((method.as_str(), &edited["blocks"]), ("chat.update", &json!([section(text)])));
}

/// What is to run is shown whole: what does not fit stands in further messages, and the buttons under the last.
#[test]
fn a_long_card_is_whole_and_its_buttons_are_under_the_last_part() {
    for (channel, most) in [(Channel::Telegram, 4096), (Channel::Slack, 3000)] {
        let code: String = (0..2000).map(|line| format!("line {line} & <more>\n")).collect();
        let parts = Outbound::new().render(&card(channel, code.trim_end()), &[]);
        let (last, before) = parts.split_last().expect("parts");
        assert!(parts.len() > 10 && parts.iter().all(|part| part.units <= most), "{channel:?}");
        assert!(before.iter().all(|part| part.buttons.is_none()));
        assert_eq!(last.buttons.as_ref().map(Vec::len), Some(2));
        let shown: String = parts.iter().map(|part| format!("{}\n", part.plain)).collect();
        assert!((0..2000).all(|line| shown.contains(&format!("line {line} & <more>"))), "{channel:?}");
        // The settled card is cut in the same places: only its last part is another one.
        let again = Outbound::new().render(&settled(channel, code.trim_end()), &[]);
        assert_eq!((&again[..before.len()], again.len()), (before, parts.len()));
        assert_eq!(again[before.len()].buttons, Some(Vec::new()));
    }
}

/// Case se-approver-any: whoever may not decide is told so, and the buttons stay for those who may.
#[tokio::test]
async fn se_approver_any_an_answer_may_leave_the_buttons_where_they_are() {
    let tap = json!({ "query_id": "q9", "message_id": 5, TAP_KEEPS_BUTTONS: true });
    let mut notice = event(Channel::Telegram, "-100", "Others decide about this.");
    notice.metadata.insert(TAP.to_owned(), tap);
    let http = Arc::new(Scripted {
        next: Mutex::new([Scripted::json(200, &json!({ "ok": true, "result": true }))].into()),
        ..Scripted::default()
    });
    let outbound = outbound(http.clone());
    let part = outbound.render(&notice, &[]).remove(0);
    assert_eq!(outbound.send_part(&notice, &part, None).await.as_deref(), Ok("q9"));
    let methods: Vec<_> = http.seen.lock().unwrap().iter().map(|request| request.method.clone()).collect();
    assert_eq!(methods, ["answerCallbackQuery"]);
}
