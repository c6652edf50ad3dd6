//! What is measured: the functions that take events in, each with the session's rate and without one, the agent, and
//! `minimal`. Events are the recorded deliveries of the channels' tests, each with an identity and a chat of its own, as
//! API Gateway's HTTP APIs hand them over, and signed now.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::{Value, json};
use turnlock_channels::{Arrival, Groups, Normalised, slack, telegram, webhook};
use turnlock_config::names;
use turnlock_domain::envelope::Envelope;
use turnlock_domain::time::Millis;

use super::endpoints::{Endpoints, TABLE};

/// A function under one configuration.
pub(super) struct Target {
    /// What its figures are called.
    pub(super) name: &'static str,
    /// The name of its binary.
    pub(super) program: &'static str,
    settings: SettingsFile,
    /// Whether it reads a secret at its start.
    reads_secret: bool,
    event: fn(u64) -> anyhow::Result<Value>,
    /// Whether the answer is the one of an event that was taken.
    pub(super) is_well: fn(&Value) -> bool,
    /// The queue to which every event makes it send one message.
    pub(super) sends_to: &'static str,
}

/// Which configuration it gets.
#[derive(Clone, Copy)]
enum SettingsFile {
    /// The session's rate as it is by default.
    WithRate,
    /// No rate.
    WithoutRate,
}

const INBOUND: &str = "inbound.fifo";
const OUTBOUND: &str = "outbound.fifo";

/// The one that the others are compared with.
pub(super) const MINIMAL: &str = "minimal";

/// All of them.
pub(super) const TARGETS: [Target; 9] = [
    Target {
        name: MINIMAL,
        program: "minimal",
        settings: SettingsFile::WithoutRate,
        reads_secret: false,
        event: telegram_event,
        is_well: is_ok,
        sends_to: INBOUND,
    },
    ingress("ingress-telegram", "ingress-telegram", SettingsFile::WithRate, telegram_event),
    ingress("ingress-telegram-rpm0", "ingress-telegram", SettingsFile::WithoutRate, telegram_event),
    ingress("ingress-slack", "ingress-slack", SettingsFile::WithRate, slack_event),
    ingress("ingress-slack-rpm0", "ingress-slack", SettingsFile::WithoutRate, slack_event),
    ingress("ingress-webhook", "ingress-webhook", SettingsFile::WithRate, webhook_event),
    ingress("ingress-webhook-rpm0", "ingress-webhook", SettingsFile::WithoutRate, webhook_event),
    Target {
        name: "ingress-cron",
        program: "ingress-cron",
        settings: SettingsFile::WithRate,
        reads_secret: false,
        event: cron_event,
        is_well: Value::is_null,
        sends_to: INBOUND,
    },
    Target {
        name: "agent",
        program: "agent",
        settings: SettingsFile::WithRate,
        reads_secret: false,
        event: agent_event,
        is_well: |answer| answer["batchItemFailures"].as_array().is_some_and(Vec::is_empty),
        sends_to: OUTBOUND,
    },
];

const fn ingress(
    name: &'static str,
    program: &'static str,
    settings: SettingsFile,
    event: fn(u64) -> anyhow::Result<Value>,
) -> Target {
    Target { name, program, settings, reads_secret: true, event, is_well: is_accepted, sends_to: INBOUND }
}

fn is_ok(answer: &Value) -> bool {
    answer["statusCode"] == 200
}

/// Webhooks are answered with 202.
fn is_accepted(answer: &Value) -> bool {
    is_ok(answer) || answer["statusCode"] == 202
}

impl SettingsFile {
    fn name(self) -> &'static str {
        match self {
            Self::WithRate => "turnlock.toml",
            Self::WithoutRate => "turnlock-rpm0.toml",
        }
    }
}

/// Writes the configuration files to `directory`.
pub(super) fn write_settings(directory: &Path) -> anyhow::Result<()> {
    std::fs::write(directory.join(SettingsFile::WithRate.name()), SETTINGS)?;
    let without = format!("{SETTINGS}\n[agent.limits]\nrpm = 0\n");
    std::fs::write(directory.join(SettingsFile::WithoutRate.name()), without)?;
    Ok(())
}

/// One file for all functions, as they are deployed.
const SETTINGS: &str = r#"
[agent]
name = "Echo"
instructions = "You are {name}, a helpful colleague. Answer in the language you are asked in."

[[models]]
provider = "scripted"

[gateway.keys.ops]
key = "secret:gateway-key"

[telegram.main]
bot_token = "secret:telegram-bot-token"
secret_token = "secret:telegram-secret-token"
bot_id = 7000000001
username = "echo_bot"
allow = ["*"]

[slack.main]
bot_token = "secret:slack-bot-token"
signing_secret = "secret:slack-signing-secret"
app_id = "A0APP"
team_id = "T0TEAM"
bot_user_id = "U0BOT"
allow = ["*"]

[webhook.main]
secret = "secret:webhook-secret"
session = "{labels.host}"
reply_to = "https://alerts.example.org/answers"

[cron.daily]
text = "Summarise what happened since yesterday."
reply_to = "telegram:1000001"
"#;

const BOT_ID: i64 = 7_000_000_001;
const SECRET_TOKEN: &str = "telegram-secret-token-of-32-chars";
const SIGNING_SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
const WEBHOOK_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// What Secrets Manager keeps.
pub(super) fn secrets() -> Value {
    json!({
        "telegram-secret-token": SECRET_TOKEN,
        "slack-signing-secret": SIGNING_SECRET,
        "webhook-secret": WEBHOOK_SECRET,
    })
}

impl Target {
    /// Its environment; Lambda's own variables stand in it as Lambda sets them.
    pub(super) fn environment(&self, endpoints: &Endpoints, directory: &Path) -> BTreeMap<&'static str, String> {
        let queue = |name: &str| format!("https://sqs.eu-central-1.amazonaws.com/123456789012/{name}");
        let settings = directory.join(self.settings.name()).display().to_string();
        let mut environment = BTreeMap::from([
            (names::CONFIG, settings),
            (names::TABLE, TABLE.to_owned()),
            (names::INBOUND_QUEUE, queue(INBOUND)),
            (names::CONTROL_QUEUE, queue("control.fifo")),
            (names::OUTBOUND_QUEUE, queue(OUTBOUND)),
            (names::CONSOLIDATE_QUEUE, queue("consolidate")),
            (names::REVIEW_QUEUE, queue("review")),
            (names::DEAD_LETTER_QUEUE, queue("dead-letter.fifo")),
            (names::SECRETS, if self.reads_secret { "turnlock" } else { "" }.to_owned()),
            (names::TURN_SECONDS, "300".to_owned()),
            (names::AWS_REGION, "eu-central-1".to_owned()),
            (names::AWS_ACCESS_KEY_ID, "ASIAIOSFODNN7EXAMPLE".to_owned()),
            (names::AWS_SECRET_ACCESS_KEY, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned()),
            // As long as those of a role are.
            (names::AWS_SESSION_TOKEN, "IQoJb3JpZ2luX2Vj".repeat(50)),
        ]);
        environment.extend(endpoints.environment());
        environment
    }

    /// The event of this number.
    pub(super) fn event(&self, number: u64) -> anyhow::Result<Bytes> {
        Ok((self.event)(number)?.to_string().into())
    }
}

/// A recorded delivery with other values at some places.
fn recorded<const PLACES: usize>(text: &str, changes: [(&str, Value); PLACES]) -> anyhow::Result<Value> {
    let mut body = serde_json::from_str(text)?;
    for (pointer, value) in changes {
        let place = Value::pointer_mut(&mut body, pointer);
        *place.with_context(|| format!("the recorded delivery has no {pointer}"))? = value;
    }
    Ok(body)
}

fn update(number: u64) -> anyhow::Result<Value> {
    let chat = json!(1_000_000 + number);
    recorded(
        include_str!("../../../../shared/channels/src/telegram/fixtures/private_text.json"),
        [
            ("/update_id", json!(900_000 + number)),
            ("/message/message_id", json!(100 + number)),
            ("/message/date", json!(Timestamp::now().as_second())),
            ("/message/from/id", chat.clone()),
            ("/message/chat/id", chat),
        ],
    )
}

fn telegram_event(number: u64) -> anyhow::Result<Value> {
    let headers = telegram::sign_headers(&SecretString::from(SECRET_TOKEN));
    Ok(request("/telegram/main", &headers, update(number)?.to_string()))
}

fn slack_event(number: u64) -> anyhow::Result<Value> {
    let at = Timestamp::now();
    let sent = json!(format!("{}.{:06}", at.as_second(), number % 1_000_000));
    let body = recorded(
        include_str!("../../../../shared/channels/src/slack/fixtures/dm.json"),
        [
            ("/event_id", json!(format!("Ev{number:08}"))),
            ("/event_time", json!(at.as_second())),
            ("/event/ts", sent.clone()),
            ("/event/event_ts", sent),
            ("/event/channel", json!(format!("D{number:08}"))),
        ],
    )?;
    let body = body.to_string();
    let mut headers = slack::sign(&SecretString::from(SIGNING_SECRET), at, body.as_bytes());
    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    Ok(request("/slack/main", &headers, body))
}

fn webhook_event(number: u64) -> anyhow::Result<Value> {
    let body = recorded(
        include_str!("../../../../shared/channels/src/webhook/fixtures/alert.json"),
        [("/labels/host", json!(format!("db-{number}")))],
    )?;
    let (body, id) = (body.to_string(), format!("msg_{number}"));
    let secret = SecretString::from(WEBHOOK_SECRET);
    let headers = webhook::sign_standard(&secret, &id, Timestamp::now(), body.as_bytes());
    let mut headers = headers.ok().context("the webhook's secret cannot sign")?;
    headers.insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    Ok(request("/webhook/main", &headers, body))
}

/// A schedule's call, planned for another day each.
fn cron_event(number: u64) -> anyhow::Result<Value> {
    let planned = Timestamp::from_second(1_760_000_000 + i64::try_from(number)? * 86_400)?;
    let schedule = "arn:aws:scheduler:eu-central-1:123456789012:schedule/default/turnlock-daily";
    Ok(json!({ "cron": "daily", "schedule": schedule, "scheduled_time": planned.to_string() }))
}

/// What the agent receives of such an update.
fn agent_event(number: u64) -> anyhow::Result<Value> {
    let bot = telegram::Bot {
        account: "main".to_owned(),
        bot_id: BOT_ID,
        username: "echo_bot".to_owned(),
        groups: Groups::Mention,
    };
    let normalised = telegram::normalise(&bot, update(number)?.to_string().as_bytes(), Timestamp::now());
    let Ok(Normalised::Event(arrival)) = normalised else { bail!("the recorded update is no event: {normalised:?}") };
    let now = Millis::from(Timestamp::now());
    let Arrival { event, position, command, unattended, .. } = *arrival;
    let group = event.session_key().to_string();
    let envelope = Envelope {
        event,
        accepted_at: now,
        position,
        command,
        unattended,
        redrive: 0,
        former_chat: None,
        album: false,
    };
    let record = json!({
        "messageId": format!("059f36b4-87a3-44ab-83d2-{number:012}"),
        "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
        "body": serde_json::to_string(&envelope)?,
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": now.0.to_string(),
            "MessageGroupId": group,
        },
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:inbound.fifo",
        "awsRegion": "eu-central-1",
    });
    Ok(json!({ "Records": [record] }))
}

/// A request as API Gateway's HTTP APIs hand it over (API Gateway Developer Guide, "AWS Lambda proxy integrations", payload
/// format version 2.0).
fn request(path: &str, headers: &HeaderMap, body: String) -> Value {
    let host = "a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com";
    let mut all = BTreeMap::from([
        ("accept-encoding", "gzip, deflate"),
        ("host", host),
        ("user-agent", "bench"),
        ("x-amzn-trace-id", "Root=1-5e6722a7-cc56xmpl46db7ae02d4da47e"),
        ("x-forwarded-for", "205.255.255.176"),
        ("x-forwarded-port", "443"),
        ("x-forwarded-proto", "https"),
    ]);
    let visible = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    all.extend(visible);
    json!({
        "version": "2.0",
        "routeKey": format!("POST {path}"),
        "rawPath": path,
        "rawQueryString": "",
        "headers": all,
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "a1b2c3d4e5",
            "domainName": host,
            "http": { "method": "POST", "path": path, "protocol": "HTTP/1.1", "sourceIp": "205.255.255.176" },
            "requestId": "JKJaXmPLvHcESHA=",
            "stage": "$default",
            "timeEpoch": 1_583_348_638_390_u64,
        },
        "body": body,
        "isBase64Encoded": false,
    })
}
