//! Slash commands, pressed buttons and the certificate check.

use turnlock_domain::event::TAP;

use super::*;

#[test]
fn commands_come_as_slash_commands_and_as_text() {
    let slash = |command: &str, text: &str| {
        let form = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("command", command), ("text", text), ("channel_id", "D0DM"), ("user_id", "U0USER")])
            .append_pair("trigger_id", "1.2.3")
            .finish();
        arrival(normalised(&app(), form.as_bytes()).unwrap())
    };
    let table = [
        ("/stop", "", Some(Command::Stop), "/stop"),
        ("/new", "now", Some(Command::New), "now"),
        ("/echo", "stop", Some(Command::Stop), "stop"),
        ("/echo", " Status ", Some(Command::Status), "Status"),
        ("/echo", "", Some(Command::Help), "/echo"),
        ("/echo", "stop the music", None, "stop the music"),
        ("/approve", "12AB9F", Some(Command::Approve), "12AB9F"),
        ("/echo", "deny 12AB9F", Some(Command::Deny), "deny 12AB9F"),
        ("/echo", "approve of this", None, "approve of this"),
    ];
    for (command, text, wanted, said) in table {
        let arrival = slash(command, text);
        assert_eq!((arrival.command, arrival.event.text().as_str()), (wanted, said), "{command} {text}");
        assert_eq!(arrival.event.event_type == EventType::Control, wanted.is_some());
    }
    for (extra, wanted) in [
        (json!({ "channel": "D0DM", "channel_type": "im", "text": "/stop" }), Some(Command::Stop)),
        (json!({ "text": "<@U0BOT> /new" }), Some(Command::New)),
        (json!({ "text": "<@U0BOT> help" }), None),
        (json!({ "text": "<@U0BOT> /approve 12AB9F" }), Some(Command::Approve)),
        (json!({ "channel": "D0DM", "channel_type": "im", "text": "yes" }), None),
    ] {
        assert_eq!(arrival(of_event(&extra)).command, wanted, "{extra}");
    }
    assert_eq!(arrival(of("slash_command.form")).event.text(), "what is 2 < 3?");
}

#[test]
fn the_certificate_check_needs_no_signature_and_reveals_nothing() {
    let mut probe = IngressRequest::post("/slack/main", HeaderMap::new(), "");
    probe.method = Method::GET;
    probe.query = "ssl_check=1&token=x".to_owned();
    assert_eq!(receive(&app(), None, &probe, now()), Ok(Normalised::Answer(IngressResponse::empty(200))));
    let posted = IngressRequest::post("/slack/main", HeaderMap::new(), "ssl_check=1&token=x&command=%2Fstop");
    assert_eq!(receive(&app(), None, &posted, now()), Ok(Normalised::Answer(IngressResponse::empty(200))));
    let padded = IngressRequest::post("/slack/main", HeaderMap::new(), "ssl_check=1&".repeat(100));
    assert_eq!(receive(&app(), None, &padded, now()), Err(Refusal::SecretMissing));
    probe.query.clear();
    assert_eq!(receive(&app(), None, &probe, now()), Err(Refusal::MethodNotAllowed));
}

/// A press names the button, its message and who pressed; the address for answers, which is as good as a token, is not
/// kept.
#[test]
fn a_pressed_button_is_a_command_with_its_own_identity() {
    let tapped = arrival(of("block_actions.form"));
    assert_eq!((tapped.command, tapped.event.event_type), (Some(Command::Tap), EventType::Control));
    assert_eq!(tapped.event.event_id, EventId::derive("slack", &["A0APP", "T0TEAM", "action", "1760000120.123456"]));
    assert_eq!((tapped.event.sender_id.as_str(), tapped.event.chat_id.as_str()), ("U0USER", "C0CHAN"));
    assert_eq!(tapped.event.content, []);
    assert_eq!(
        tapped.event.metadata[TAP],
        json!({ "data": "ap_1", "action": "approve", "message_ts": "1760000000.000200", "user": "U0USER" })
    );
    let whole = serde_json::to_string(&tapped.event).unwrap();
    assert!(!whole.contains("hooks.slack.com") && !whole.contains("ZZZZZZWSxiZZZ2yIvs3peJ"), "{whole}");
}

/// Every form of a press: another workspace, a thread, a menu; and what lacks its parts.
#[test]
fn a_press_goes_back_to_where_its_message_stands() {
    let press = |payload: Value| {
        let form =
            form_urlencoded::Serializer::new(String::new()).append_pair("payload", &payload.to_string()).finish();
        normalised(&app(), form.as_bytes()).unwrap()
    };
    let elsewhere = arrival(press(json!({
        "type": "block_actions", "user": { "id": "U0USER", "team_id": "T0AUTHOR" }, "team": { "id": "T0SECOND" },
        "trigger_id": "1.2.3", "container": { "channel_id": "C0CHAN", "message_ts": "5.1", "thread_ts": "4.1" },
        "actions": [{ "action_id": "menu", "selected_option": { "value": "two" } }],
    })));
    let event = elsewhere.event;
    assert_eq!((event.chat_id.as_str(), event.thread_id.as_deref()), ("T0SECOND/C0CHAN", Some("4.1")));
    assert_eq!(event.session_key().as_str(), "slack:T0SECOND%2FC0CHAN:4.1");
    assert_eq!(event.metadata[TAP], json!({ "data": "two", "action": "menu", "message_ts": "5.1", "user": "U0USER" }));
    for (odd, wanted) in [
        (json!({ "type": "block_actions" }), "incomplete"),
        (json!({ "type": "block_actions", "trigger_id": "1.2.3", "user": { "id": "U0USER" } }), "incomplete"),
        (json!({ "type": "shortcut", "trigger_id": "1.2.3" }), "interaction"),
        (json!({}), "interaction"),
    ] {
        assert_eq!(reason(&press(odd.clone())), wanted, "{odd}");
    }
}
