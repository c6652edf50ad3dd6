//! Slack's requests and what becomes of them.

use secrecy::SecretString;
use turnlock_domain::envelope::Command;
use turnlock_domain::event::{ContentType, EventType};

use super::*;
use crate::Groups;
use crate::ingress::Arrival;
use crate::slack::sign;

macro_rules! fixtures {
    ($($name:literal),* $(,)?) => {
        /// Every fixture by name.
        const FIXTURES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../fixtures/", $name)))),*];
    };
}

fixtures!(
    "url_verification.json",
    "dm.json",
    "dm_thread.json",
    "dm_file.json",
    "app_mention.json",
    "channel_mention.json",
    "channel_chatter.json",
    "thread_mention.json",
    "own_post.json",
    "other_bot.json",
    "message_changed.json",
    "channel_join.json",
    "shared_channel_mention.json",
    "other_workspace_dm.json",
    "app_home_opened.json",
    "app_rate_limited.json",
    "slash_command.form",
    "block_actions.form",
    "forwarded_message.json",
    "reply_to_our_thread.json",
    "app_uninstalled.json",
    "tokens_revoked.json",
    "view_submission.form",
);

fn app() -> App {
    App {
        account: "main".to_owned(),
        app_id: "A0APP".to_owned(),
        team_id: "T0TEAM".to_owned(),
        bot_user_id: "U0BOT".to_owned(),
        bot_id: "B0BOT".to_owned(),
        allowed_bots: Vec::new(),
        groups: Groups::Mention,
    }
}

fn now() -> Timestamp {
    Timestamp::from_second(1_760_000_200).unwrap()
}

fn normalised(app: &App, body: &[u8]) -> Result<Normalised, Refusal> {
    normalise(app, &HeaderMap::new(), body, now())
}

fn fixture(name: &str) -> &'static str {
    FIXTURES.iter().find(|(fixture, _)| *fixture == name).map(|(_, text)| *text).unwrap()
}

fn of(name: &str) -> Normalised {
    normalised(&app(), fixture(name).as_bytes()).unwrap()
}

fn arrival(normalised: Normalised) -> Arrival {
    match normalised {
        Normalised::Event(arrival) => *arrival,
        other => panic!("no event: {other:?}"),
    }
}

fn reason(normalised: &Normalised) -> &'static str {
    match normalised {
        Normalised::Event(_) => "event",
        Normalised::AlbumPart(_) => "album_part",
        Normalised::Unreadable { reason, .. } | Normalised::Ignored { reason, .. } => reason,
        Normalised::Chat { news, .. } => news.reason(),
        Normalised::Answer(_) => "answer",
    }
}

/// An envelope around a message of U0USER's in C0CHAN, with `extra` in it.
fn envelope(extra: &Value) -> Value {
    let mut event = json!({
        "type": "message", "channel": "C0CHAN", "channel_type": "channel", "user": "U0USER",
        "ts": "1760000000.000100", "text": "<@U0BOT> hello",
    });
    for (key, value) in extra.as_object().unwrap() {
        event[key] = value.clone();
    }
    json!({ "type": "event_callback", "team_id": "T0TEAM", "api_app_id": "A0APP", "event_id": "Ev0001", "event": event })
}

fn of_event(extra: &Value) -> Normalised {
    normalised(&app(), envelope(extra).to_string().as_bytes()).unwrap()
}

#[test]
fn every_fixture_becomes_what_it_is() {
    let wanted = [
        ("url_verification.json", "answer"),
        ("dm.json", "event"),
        ("dm_thread.json", "event"),
        ("dm_file.json", "event"),
        ("app_mention.json", "event"),
        ("channel_mention.json", "event"),
        ("channel_chatter.json", "not_addressed"),
        ("thread_mention.json", "event"),
        ("own_post.json", "own"),
        ("other_bot.json", "other_bot"),
        ("message_changed.json", "subtype"),
        ("channel_join.json", "subtype"),
        ("shared_channel_mention.json", "event"),
        ("other_workspace_dm.json", "event"),
        ("app_home_opened.json", "app_home_opened"),
        ("app_rate_limited.json", "app_rate_limited"),
        ("slash_command.form", "event"),
        ("block_actions.form", "event"),
        ("forwarded_message.json", "event"),
        ("reply_to_our_thread.json", "event"),
        ("app_uninstalled.json", "uninstalled"),
        ("tokens_revoked.json", "uninstalled"),
        ("view_submission.form", "interaction"),
    ];
    let got: Vec<_> = FIXTURES.iter().map(|(name, _)| (*name, reason(&of(name)))).collect();
    assert_eq!(got, wanted);
}

#[test]
fn a_direct_message_is_the_whole_event() {
    let arrival = arrival(of("dm.json"));
    assert_eq!(
        serde_json::to_value(&arrival.event).unwrap(),
        json!({
            "schema": 1,
            "event_id": "slack:A0APP:T0TEAM:D0DM:1760000000.000100",
            "event_type": "message",
            "channel": "slack",
            "account": "main",
            "sender_id": "U0USER",
            "chat_id": "D0DM",
            "content": [{ "type": "text", "text": "what is 2 < 3 && 1?" }],
            "timestamp": "2025-10-09T08:53:20.0001Z",
            "metadata": {
                "ts": "1760000000.000100", "channel_type": "im", "user_team": "T0TEAM",
            },
        })
    );
    assert_eq!(arrival.position.as_str(), "001760000000000#00001760000000000100");
    assert_eq!((arrival.command, arrival.unattended), (None, false));
}

#[test]
fn a_thread_is_its_own_session_and_a_mention_opens_one() {
    let table = [
        ("dm.json", "slack:D0DM", None),
        ("dm_thread.json", "slack:D0DM:1760000000.000100", Some("1760000000.000100")),
        ("app_mention.json", "slack:C0CHAN:1760000020.000200", Some("1760000020.000200")),
        ("thread_mention.json", "slack:C0CHAN:1760000020.000200", Some("1760000020.000200")),
        ("shared_channel_mention.json", "slack:C0SHARED:1760000090.000100", Some("1760000090.000100")),
        ("other_workspace_dm.json", "slack:T0SECOND%2FD0DM", None),
        ("slash_command.form", "slack:C0CHAN", None),
    ];
    for (name, session, thread) in table {
        let event = arrival(of(name)).event;
        assert_eq!((event.session_key().as_str(), event.thread_id.as_deref()), (session, thread), "{name}");
    }
}

#[test]
fn text_is_readable_and_files_are_references() {
    assert_eq!(arrival(of("app_mention.json")).event.text(), "see docs (https://docs.example) in #ops");
    let file = arrival(of("dm_file.json")).event;
    assert_eq!(file.media_urls(), ["slack-file:F0IMG"]);
    assert_eq!((file.content[1].kind, file.content[1].name.as_deref()), (ContentType::Image, Some("chart.png")));
    assert!(!serde_json::to_string(&file).unwrap().contains("files.slack.com"));
}

#[test]
fn a_url_is_verified_by_its_challenge() {
    let Normalised::Answer(answer) = of("url_verification.json") else { panic!("no answer") };
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        (answer.status, &body["challenge"]),
        (200, &json!("3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"))
    );
    assert_eq!(normalised(&app(), br#"{"type":"url_verification"}"#).unwrap_err().status(), 400);
}

/// Case sl-cold-start-dup: the retry is the same event, whatever its headers say.
#[test]
fn sl_cold_start_dup() {
    let body = envelope(&json!({ "text": "<@U0BOT> help" })).to_string();
    let first = arrival(normalised(&app(), body.as_bytes()).unwrap());
    let retry = HeaderMap::from_iter([
        (http::HeaderName::from_static("x-slack-retry-num"), http::HeaderValue::from_static("1")),
        (http::HeaderName::from_static("x-slack-retry-reason"), http::HeaderValue::from_static("http_timeout")),
    ]);
    let second = arrival(normalise(&app(), &retry, body.as_bytes(), now()).unwrap());
    assert_eq!(first.event.event_id, second.event.event_id);
    assert_eq!(second.event.gateway_metadata["retry_num"], "1");
}

/// Case sl-drop-retries: a retry that is the only copy is an event like any other.
#[test]
fn sl_drop_retries() {
    let body = envelope(&json!({ "text": "<@U0BOT> deploy now" })).to_string();
    let retry = HeaderMap::from_iter([(
        http::HeaderName::from_static("x-slack-retry-num"),
        http::HeaderValue::from_static("1"),
    )]);
    assert_eq!(arrival(normalise(&app(), &retry, body.as_bytes(), now()).unwrap()).event.text(), "deploy now");
}

/// Case sl-dup-new-event-id: one message under three envelopes is one event.
#[test]
fn sl_dup_new_event_id() {
    let ids: std::collections::BTreeSet<_> = ["EvA", "EvB", "EvC"]
        .into_iter()
        .map(|id| {
            let mut envelope = envelope(&json!({ "text": "<@U0BOT> status?" }));
            envelope["event_id"] = json!(id);
            arrival(normalised(&app(), envelope.to_string().as_bytes()).unwrap()).event.event_id
        })
        .collect();
    assert_eq!(ids.len(), 1);
}

/// Case sl-mention-twice: `message` and `app_mention` of one `ts` are one event, in every field that counts.
#[test]
fn sl_mention_twice() {
    let (message, mention) = (arrival(of("channel_mention.json")), arrival(of("app_mention.json")));
    assert_eq!(message.event.event_id, mention.event.event_id);
    assert_eq!(message.event.session_key(), mention.event.session_key());
    assert_eq!(message.event.content, mention.event.content);
    assert_eq!(message.position, mention.position);
}

/// Cases sl-mention-twice-rust and sl-prod-only-dup: the same in a direct message and for a retried mention.
#[test]
fn sl_mention_twice_rust_and_sl_prod_only_dup() {
    let message =
        json!({ "channel": "D0DM", "channel_type": "im", "ts": "1760000000.000400", "text": "<@U0BOT> what next" });
    let mut mention = envelope(&message);
    mention["event"]["type"] = json!("app_mention");
    mention["event"].as_object_mut().unwrap().remove("channel_type");
    mention["event_id"] = json!("Ev2");
    let message = arrival(of_event(&message)).event;
    let mention = arrival(normalised(&app(), mention.to_string().as_bytes()).unwrap()).event;
    assert_eq!((&message.event_id, message.session_key()), (&mention.event_id, mention.session_key()));
}

/// Case sl-self-loop: our own words come back by user, bot and app id, with or without a subtype.
#[test]
fn sl_self_loop() {
    for ours in [
        json!({ "user": "U0BOT", "bot_id": "B0BOT", "text": "I will not help" }),
        json!({ "user": "U0BOT" }),
        json!({ "bot_id": "B0BOT" }),
        json!({ "subtype": "bot_message", "bot_id": "B0BOT" }),
        json!({ "bot_id": "B0NEW", "app_id": "A0APP" }),
        json!({ "bot_id": "B0NEW", "bot_profile": { "app_id": "A0APP" } }),
    ] {
        assert_eq!(reason(&of_event(&ours)), "own", "{ours}");
    }
}

/// Case sl-bot-to-bot: other bots are ignored unless they are allowed.
#[test]
fn sl_bot_to_bot() {
    let other = json!({ "bot_id": "B0OTHER", "text": "<@U0BOT> thanks!" });
    assert_eq!(reason(&of_event(&other)), "other_bot");
    let friendly = App { allowed_bots: vec!["B0OTHER".to_owned()], ..app() };
    assert!(matches!(normalised(&friendly, envelope(&other).to_string().as_bytes()), Ok(Normalised::Event(_))));
    let event = arrival(normalised(&friendly, fixture("other_bot.json").as_bytes()).unwrap()).event;
    assert_eq!(event.sender_id, "B0OTHER");
    assert_eq!(reason(&of_event(&json!({ "user": "USLACKBOT" }))), "other_bot");
}

/// Case sl-sig-base64: the front door decodes, the signature holds for the decoded bytes, then form, then JSON.
#[test]
fn sl_sig_base64() {
    let secret = SecretString::from("test");
    let body = "payload=%7B%22type%22%3A%22block_actions%22%7D";
    let mut headers = sign(&secret, now(), body.as_bytes());
    headers.insert("content-type", "application/x-www-form-urlencoded".parse().unwrap());
    let request = IngressRequest::post("/slack/main", headers, body);
    assert_eq!(reason(&receive(&app(), Some(&secret), &request, now()).unwrap()), "incomplete");
    let encoded = IngressRequest { body: "cGF5bG9hZD0".into(), ..request };
    assert_eq!(receive(&app(), Some(&secret), &encoded, now()), Err(Refusal::BadSignature));
}

/// Case sl-sig-authorizer: what is verified is the body, so it is verified where the body is: `receive` takes the whole
/// request and nothing less.
#[test]
fn sl_sig_authorizer() {
    let secret = SecretString::from("test");
    let headers = sign(&secret, now(), b"{}");
    let request = IngressRequest::post("/slack/main", headers, fixture("dm.json"));
    assert_eq!(receive(&app(), Some(&secret), &request, now()), Err(Refusal::BadSignature));
}

#[test]
fn the_group_policy_holds_for_channels_only() {
    for (groups, of_chatter, of_mention) in [
        (Groups::Mention, "not_addressed", "event"),
        (Groups::Always, "event", "event"),
        (Groups::Never, "groups_off", "groups_off"),
    ] {
        let app = App { groups, ..app() };
        let of = |name| reason(&normalised(&app, fixture(name).as_bytes()).unwrap());
        assert_eq!((of("channel_chatter.json"), of("app_mention.json")), (of_chatter, of_mention));
        assert_eq!(of("dm.json"), "event");
    }
}

#[test]
fn a_bare_mention_is_answered_by_a_sentence() {
    assert!(matches!(of_event(&json!({ "text": "<@U0BOT>" })), Normalised::Unreadable { reason: "blank", .. }));
}

#[test]
fn odd_requests_are_typed() {
    for (body, wanted) in [
        (r#"{"type":"something_new"}"#, "unknown_envelope"),
        (r#"{"type":"event_callback"}"#, "unknown_event"),
        (r#"{"type":"event_callback","event":{"type":"message"}}"#, "incomplete"),
        (r#"{"type":"event_callback","event":{"type":"message","channel":"C","ts":"soon"}}"#, "incomplete"),
        ("ssl_check=1&token=x", "answer"),
    ] {
        assert_eq!(reason(&normalised(&app(), body.as_bytes()).unwrap()), wanted, "{body}");
    }
    for body in ["", "hunter2", "{hunter2", "payload=hunter2", "command=%2Fx"] {
        let refusal = normalised(&app(), body.as_bytes()).unwrap_err();
        assert_eq!(refusal.status(), 400, "{body}");
        assert!(!format!("{refusal} {refusal:?}").contains("hunter2"), "{refusal}");
    }
}

proptest::proptest! {
    #[test]
    fn no_mutation_panics_or_is_quoted(
        which in 0..FIXTURES.len(), mutation in crate::mutation::strategy(),
    ) {
        let body = mutation.apply(FIXTURES[which].1.as_bytes());
        crate::mutation::check(&body, normalised(&app(), &body));
    }
}

mod forms;
mod shared;
