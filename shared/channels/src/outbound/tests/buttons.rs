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
    // An edit that has no keyboard takes the old one away (Bot API, `editMessageText`).
    assert_eq!((method.as_str(), &edited["reply_markup"]), ("editMessageText", &Value::Null));
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
    assert_eq!((method.as_str(), &edited["blocks"]), ("chat.update", &json!([])));
    assert_eq!(edited["text"], "May I run this?\n\n```\ndeploy\nx\n```\n\nPress a button.");
}

/// What is to run is shown whole: what does not fit stands in further messages, and the buttons under the last.
#[test]
fn a_long_card_is_whole_and_its_buttons_are_under_the_last_part() {
    for (channel, most) in [(Channel::Telegram, 4096), (Channel::Slack, 3000)] {
        let code: String = (0..2000).map(|line| format!("line {line} & <more>\n")).collect();
        let parts = Outbound::new().render(&card(channel, code.trim_end()), &[]);
        let (last, before) = parts.split_last().expect("parts");
        assert!(parts.len() > 10 && parts.iter().all(|part| part.units <= most), "{channel:?}");
        assert!(before.iter().all(|part| part.buttons.is_empty()));
        assert_eq!(last.buttons.len(), 2);
        let shown: String = parts.iter().map(|part| format!("{}\n", part.plain)).collect();
        assert!((0..2000).all(|line| shown.contains(&format!("line {line} & <more>"))), "{channel:?}");
        // The settled card is cut in the same places: only its last part is another one.
        let again = Outbound::new().render(&settled(channel, code.trim_end()), &[]);
        assert_eq!((&again[..before.len()], again.len()), (before, parts.len()));
        assert_eq!(again[before.len()].buttons, []);
    }
}

/// A frame of a reply, with the button that stops it.
fn frame(channel: Channel, text: &str) -> OutboundEvent {
    let data = "stop:001760000000000#00000000000000000100~".to_owned();
    OutboundEvent {
        message_kind: MessageKind::Streaming,
        is_final: false,
        buttons: vec![Button { label: "Stop".to_owned(), data }],
        ..event(channel, "C0CHAN", text)
    }
}

/// The button stands under the last message of a reply, and goes where the text grows past it, or ends: a final is cut as
/// its frames were.
#[test]
fn the_last_part_of_a_frame_has_its_button_and_a_final_none() {
    for (channel, lines) in [(Channel::Telegram, 4000), (Channel::Slack, 3400)] {
        let long: Vec<String> = ["a", "b", "c"].map(|letter| letter.repeat(lines)).into();
        let text = long.join("\n\n");
        let (writing, last) = (frame(channel, &text), event(channel, "C0CHAN", &text));
        let (frame, last) = (Outbound::new().render(&writing, &[]), Outbound::new().render(&last, &[]));
        let count = |part: &Part| part.buttons.len();
        assert_eq!(frame.iter().map(count).collect::<Vec<_>>(), [0, 0, 1], "{channel:?}");
        assert_eq!(last.iter().map(count).collect::<Vec<_>>(), [0, 0, 0], "{channel:?}");
        let shown = |parts: &[Part]| parts.iter().map(|part| part.shown().into_owned()).collect::<Vec<_>>();
        assert_eq!(shown(&frame)[..2], shown(&last)[..2], "{channel:?}");
        assert_ne!(shown(&frame)[2], shown(&last)[2], "the same text without the button is something else");
        assert_eq!((&frame[2].text, last[2].shown().as_ref()), (&last[2].text, last[2].text.as_str()));
    }
}

#[tokio::test]
async fn a_frame_has_its_button_posted_or_edited_and_its_final_takes_it_away() {
    let answer = json!({ "ok": true, "result": { "message_id": 42 }, "ts": "1.2" });
    for (channel, edit, field) in [(Channel::Telegram, "42", "reply_markup"), (Channel::Slack, "1.2", "blocks")] {
        for edit in [None, Some(edit)] {
            let (_, sent) = send_last(&frame(channel, "So far"), edit, answer.clone()).await;
            let shown = sent[field].to_string();
            assert!(shown.contains("\"Stop\"") && shown.contains("001760000000000#00000000000000000100~"), "{sent}");
        }
        let (_, edited) = send_last(&event(channel, "C0CHAN", "So far"), Some(edit), answer.clone()).await;
        let none = if channel == Channel::Slack { json!([]) } else { Value::Null };
        assert_eq!(edited[field], none);
    }
}

/// A section takes 3,000 characters, a message of ours 3,500: a longer one has two, cut between lines and in no code block.
#[tokio::test]
async fn slack_shows_a_button_under_every_text_that_can_be_cut_into_sections() {
    let line = "word ".repeat(20);
    let lines = |count: usize| vec![line.trim(); count].join("\n");
    let code = |count: usize| format!("```\n{}\n```", lines(count));
    for (text, sections) in [
        (lines(20), vec![lines(20)]),
        (lines(34), vec![lines(30), lines(4)]),
        (format!("{}\n\n{}", lines(20), code(12)), vec![format!("{}\n", lines(20)), code(12)]),
        (code(34), Vec::new()),
        ("x".repeat(3400), Vec::new()),
    ] {
        let (_, sent) = send_last(&frame(Channel::Slack, &text), Some("1.2"), json!({ "ok": true, "ts": "1.2" })).await;
        let blocks = sent["blocks"].as_array().expect("blocks");
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"]["text"].as_str()).collect();
        assert_eq!(texts, sections);
        assert_eq!(blocks.len(), if sections.is_empty() { 0 } else { sections.len() + 1 });
        assert_eq!(sent["text"].as_str().map(str::len), Some(text.len()), "the whole text is there in any case");
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
