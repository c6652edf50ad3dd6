//! The rules of the fake, as docs.slack.dev states them.

use http::{HeaderMap, HeaderValue};

use super::*;

struct Fixture {
    slack: Slack,
    chats: Chats,
    pings: Vec<Rung>,
}

impl Fixture {
    fn new() -> Self {
        let app = SlackApp {
            app_id: "A0APP".into(),
            team_id: "T0TEAM".into(),
            bot_user_id: "U0BOT".into(),
            bot_id: "B0BOT".into(),
            token: Some("xoxb-main".into()),
            other_teams: [("xoxb-other".to_owned(), "T0OTHER".to_owned())].into(),
        };
        let slack = Slack { apps: [("main".to_owned(), app)].into(), ..Slack::default() };
        Self { slack, chats: Chats::default(), pings: Vec::new() }
    }

    fn with_token(&mut self, token: &str, method: &str, body: &Value) -> Value {
        let request = request(token, method, body);
        let call = self.slack.call(&request);
        let reply = self.slack.apply(&call, &request, &mut self.chats, &mut self.pings, Millis(1_760_000_000_250));
        assert_eq!(reply.status, 200, "failures are 200 too");
        serde_json::from_slice(&reply.body).unwrap()
    }

    fn call(&mut self, method: &str, body: Value) -> Value {
        self.with_token("xoxb-main", method, &body)
    }

    fn shown(&self, key: &str) -> Value {
        serde_json::to_value(&self.chats.shown()[key]).unwrap()
    }
}

fn request(token: &str, method: &str, body: &Value) -> PlatformRequest {
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_str(&format!("Bearer {token}")) {
        headers.insert(http::header::AUTHORIZATION, value);
    }
    PlatformRequest {
        channel: Channel::Slack,
        account: "main".into(),
        method: method.into(),
        url: format!("https://slack.com/api/{method}"),
        headers,
        body: Bytes::from(body.to_string()),
    }
}

/// An update without blocks keeps those that are there, with their buttons; an empty list takes them away.
#[test]
fn blocks_stay_until_an_update_takes_them_away() {
    let mut fixture = Fixture::new();
    let label = json!({ "type": "plain_text", "text": "Stop" });
    let button = json!({ "type": "button", "text": label, "action_id": "stop", "value": "1" });
    let blocks = json!([
        { "type": "section", "text": { "type": "mrkdwn", "text": "a" } }, { "type": "actions", "elements": [button] },
    ]);
    let posted = fixture.call("chat.postMessage", json!({ "channel": "C1", "text": "a", "blocks": blocks }));
    for (blocks, text, buttons) in [(Value::Null, "a", json!(["Stop"])), (json!([]), "b", json!([]))] {
        let mut update = json!({ "channel": "C1", "ts": posted["ts"], "text": "b" });
        if !blocks.is_null() {
            update["blocks"] = blocks;
        }
        assert_eq!(fixture.call("chat.update", update)["ok"], true);
        let message = fixture.shown("slack:main:C1")["messages"][0].clone();
        assert_eq!((&message["text"], &message["buttons"]), (&json!(text), &buttons));
    }
}

#[test]
fn a_message_is_posted_updated_and_deleted() {
    let mut fixture = Fixture::new();
    let posted = fixture
        .call("chat.postMessage", json!({ "channel": "C1", "text": "a &lt; b", "thread_ts": "1760000000.000100" }));
    assert_eq!((&posted["ts"], &posted["message"]["text"]), (&json!("1760000000.250000"), &json!("a &lt; b")));
    let second =
        fixture.call("chat.postMessage", json!({ "channel": "C1", "text": "b", "thread_ts": "1760000000.000100" }));
    assert_eq!(second["ts"], "1760000000.250001");
    let update = json!({ "channel": "C1", "ts": "1760000000.250000", "text": "c" });
    assert_eq!(fixture.call("chat.update", update)["text"], "c");
    fixture.call("chat.delete", json!({ "channel": "C1", "ts": "1760000000.250001" }));
    assert_eq!(
        fixture.shown("slack:main:C1:1760000000.000100"),
        json!({
            "messages": [
                { "id": "1760000000.250000", "text": "c", "markup": null, "buttons": [], "edits": 1,
                  "reply_to": null, "deleted": false },
                { "id": "1760000000.250001", "text": "b", "markup": null, "buttons": [], "edits": 0,
                  "reply_to": null, "deleted": true },
            ],
            "actions": [],
        })
    );
}

#[test]
fn refusals_are_slacks() {
    let mut fixture = Fixture::new();
    let table = [
        ("chat.postMessage", json!({ "channel": "C1", "text": "x".repeat(40_001) }), "msg_too_long"),
        ("chat.update", json!({ "channel": "C1", "ts": "1.2", "text": "x".repeat(4_001) }), "msg_too_long"),
        ("chat.postMessage", json!({ "channel": "C1", "markdown_text": "x".repeat(12_001) }), "msg_too_long"),
        ("chat.postMessage", json!({ "channel": "C1", "markdown_text": "x", "text": "x" }), "markdown_text_conflict"),
        ("chat.postMessage", json!({ "channel": "C1", "text": "" }), "no_text"),
        ("chat.postMessage", json!({ "channel": "nowhere", "text": "x" }), "channel_not_found"),
        ("chat.postMessage", json!({ "channel": "C1", "text": "x", "thread_ts": "soon" }), "invalid_thread_ts"),
        ("chat.postMessage", json!({ "channel": "C1", "blocks": "{" }), "invalid_blocks_format"),
        ("chat.update", json!({ "channel": "C1", "ts": "1.2", "text": "x" }), "message_not_found"),
        ("chat.delete", json!({ "channel": "C1", "ts": "1.2" }), "message_not_found"),
        ("chat.postEphemeral", json!({ "channel": "C1", "text": "x" }), "user_not_in_channel"),
        ("chat.teleport", json!({}), "unknown_method"),
    ];
    for (method, arguments, error) in table {
        let answer = fixture.call(method, arguments);
        assert_eq!((&answer["ok"], &answer["error"]), (&json!(false), &json!(error)), "{method}");
    }
    assert!(fixture.chats.shown().is_empty());
    fixture.call("chat.postMessage", json!({ "channel": "C1", "text": "x".repeat(40_000) }));
    assert_eq!(fixture.chats.shown().len(), 1);
}

#[test]
fn a_mass_mention_rings_when_it_is_posted() {
    let mut fixture = Fixture::new();
    let posted = fixture.call("chat.postMessage", json!({ "channel": "C1", "text": "Done <!channel> &lt;!here&gt;" }));
    assert_eq!(fixture.pings.iter().map(|ping| ping.mention.as_str()).collect::<Vec<_>>(), ["@channel"]);
    assert_eq!(fixture.shown("slack:main:C1")["messages"][0]["text"], "Done @channel <!here>");
    fixture.call("chat.postMessage", json!({ "channel": "C1", "text": "@channel" }));
    let update =
        |parse: Value| json!({ "channel": "C1", "ts": posted["ts"], "text": "<!here> @channel", "parse": parse });
    fixture.call("chat.update", update(json!("none")));
    assert_eq!(fixture.pings.len(), 1, "an edit that links no names calls nobody");
    fixture.call("chat.update", update(Value::Null));
    assert_eq!(fixture.pings.len(), 3, "one that does not say so links them");
}

#[test]
fn tokens_decide_who_and_where() {
    let mut fixture = Fixture::new();
    let post = json!({ "channel": "C1", "text": "x" });
    assert_eq!(fixture.with_token("", "chat.postMessage", &post)["error"], "not_authed");
    assert_eq!(fixture.with_token("xoxb-stolen", "chat.postMessage", &post)["error"], "invalid_auth");
    assert_eq!(fixture.with_token("xoxb-other", "auth.test", &json!({}))["team_id"], "T0OTHER");
    fixture.with_token("xoxb-other", "chat.postMessage", &post);
    assert_eq!(fixture.chats.shown().into_keys().collect::<Vec<_>>(), ["slack:main:T0OTHER/C1"]);
}

#[test]
fn a_posted_message_is_found_again_by_its_metadata() {
    let mut fixture = Fixture::new();
    let metadata = json!({ "event_type": "turnlock", "event_payload": { "id": "e1" } });
    fixture.call("chat.postMessage", json!({ "channel": "C1", "text": "x", "metadata": metadata }));
    let history = fixture.call("conversations.history", json!({ "channel": "C1", "include_all_metadata": true }));
    assert_eq!(history["messages"][0]["metadata"], metadata);
    assert!(fixture.call("conversations.history", json!({ "channel": "C1" }))["messages"][0]["metadata"].is_null());
}

#[test]
fn blocks_are_shown_instead_of_the_text() {
    let mut fixture = Fixture::new();
    let blocks = json!([
        { "type": "section", "text": { "type": "mrkdwn", "text": "Run pay?" } },
        { "type": "actions", "elements": [
            { "type": "button", "text": { "type": "plain_text", "text": "Allow" }, "action_id": "approve", "value": "ap_1" } ] },
    ]);
    fixture.call("chat.postMessage", json!({ "channel": "U7", "text": "approval", "blocks": blocks }));
    let message = fixture.shown("slack:main:D7")["messages"][0].clone();
    assert_eq!(
        (&message["text"], &message["buttons"], &message["markup"]),
        (&json!("Run pay?"), &json!(["Allow"]), &blocks)
    );
}

#[test]
fn only_our_own_messages_are_changed() {
    let mut fixture = Fixture::new();
    let event = json!({ "type": "message", "channel": "C1", "user": "U1", "ts": "1760000000.000100", "text": "hi" });
    fixture.slack.note("main", &json!({ "team_id": "T0TEAM", "event": event }), &mut fixture.chats);
    let theirs = json!({ "channel": "C1", "ts": "1760000000.000100", "text": "x" });
    assert_eq!(fixture.call("chat.update", theirs.clone())["error"], "cant_update_message");
    assert_eq!(fixture.call("chat.delete", theirs.clone())["error"], "cant_delete_message");
    assert_eq!(fixture.with_token("xoxb-other", "chat.update", &theirs)["error"], "message_not_found");
    let posted = fixture.call("chat.postMessage", json!({ "channel": "C1", "text": "a" }));
    let echo = json!({ "channel": "C1", "ts": posted["ts"], "bot_id": "B0BOT" });
    fixture.slack.note("main", &json!({ "event": echo }), &mut fixture.chats);
    assert_eq!(fixture.call("chat.update", json!({ "channel": "C1", "ts": posted["ts"], "text": "b" }))["ok"], true);
}

#[test]
fn what_one_person_sees_is_shown_and_cannot_be_changed() {
    let mut fixture = Fixture::new();
    let shown = fixture.call("chat.postEphemeral", json!({ "channel": "C1", "user": "U1", "text": "a &lt; b" }));
    let ts = shown["message_ts"].clone();
    assert_eq!(fixture.shown("slack:main:C1")["messages"][0]["text"], "a < b");
    let update = json!({ "channel": "C1", "ts": ts, "text": "x" });
    assert_eq!(fixture.call("chat.update", update)["error"], "message_not_found");
    assert_eq!(fixture.call("conversations.history", json!({ "channel": "C1" }))["messages"], json!([]));
}

#[test]
fn budgets_are_slacks() {
    let fixture = Fixture::new();
    let names = |token: &str, method: &str, channel: &str| -> Vec<(String, usize)> {
        let request = request(token, method, &json!({ "channel": channel }));
        let limits = fixture.slack.limits(&fixture.slack.call(&request), &request);
        limits.into_iter().map(|limit| (limit.name, limit.budget.calls)).collect()
    };
    let one = |name: &str, calls: usize| vec![(name.to_owned(), calls)];
    assert_eq!(names("xoxb-main", "chat.postMessage", "C1"), one("main C1", 5));
    assert_eq!(names("xoxb-other", "chat.postMessage", "C1"), one("main T0OTHER/C1", 5));
    assert_eq!(names("xoxb-main", "chat.update", "C1"), names("xoxb-main", "chat.update", "C2"));
    assert_eq!(names("xoxb-main", "chat.update", "C1"), one("main T0TEAM chat.update", 50));
    assert_eq!(names("xoxb-other", "chat.update", "C1"), one("main T0OTHER chat.update", 50));
    assert_eq!(names("xoxb-main", "chat.postEphemeral", "C1"), one("main T0TEAM chat.postEphemeral", 100));
    assert_eq!(names("xoxb-main", "auth.test", "C1"), []);
}
