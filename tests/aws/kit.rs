//! What the flows share: a deployment with all channels, how the world writes to it, and what it must look like at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout, timeout_at};
use turnlock_channels::{slack, telegram, webhook};
use turnlock_config::Config;
use turnlock_replay::fakes::Accounts;
use turnlock_tests::aws::{Aws, Setup};
use turnlock_tests::template::{EVERYTHING, granted_actions};

/// How long anything may take that is waited for, on a busy machine.
pub(crate) const WITHIN: Duration = Duration::from_secs(60);

/// The model of the configuration, as in the template's defaults.
const MODEL: &str = "global.amazon.nova-2-lite-v1:0";
const BOT: &str = "900:telegram-bot-token";
const SIGNING: &str = "51ac";
/// `whsec_` and base64, as Standard Webhooks wants it.
const WEBHOOK: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// The trace context of every webhook (W3C Trace Context).
pub(crate) const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// What Telegram sends with every update.
pub(crate) const TELEGRAM: &str = "telegram-secret-token";
const GATEWAY: &str = "gateway-key-of-the-tests";

/// The stack's parameters besides: everything optional is there, and an invocation of the agent is short.
const PARAMETERS: &[(&str, &str)] = &[
    ("TelegramBotToken", BOT),
    ("SlackBotToken", "xoxb-1"),
    ("SlackSigningSecret", SIGNING),
    ("WebhookSecret", WEBHOOK),
    ("ModelApiKey", "k"),
    ("TurnSeconds", "90"),
];

/// A deployment.
pub(crate) struct Kit {
    pub(crate) aws: Aws,
    next: AtomicI64,
    /// What chats were seen to show.
    shown: Mutex<BTreeMap<String, Vec<String>>>,
}

impl Kit {
    /// The template with every channel, `limits` in `[agent.limits]`, and further `parameters`.
    pub(crate) async fn start(limits: &str, parameters: &[(&str, &str)]) -> Self {
        let known = |name: &&(&str, &str)| !parameters.iter().chain(PARAMETERS).any(|given| given.0 == name.0);
        let rest = EVERYTHING.iter().filter(known);
        let own = PARAMETERS.iter().filter(|own| !parameters.iter().any(|given| given.0 == own.0));
        let all: Vec<(&str, &str)> = parameters.iter().chain(own).chain(rest).copied().collect();
        let aws = Aws::start(Setup {
            template: Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../template.yaml")),
            parameters: &all,
            configuration: &|platforms| configuration(platforms, limits),
        })
        .await;
        let config = Config::parse(&aws.configuration, &secret).unwrap_or_else(|error| panic!("{error}"));
        aws.platforms.set_accounts(Accounts::from_config(&config));
        // What the stack drew at random; a person reads it from there.
        aws.put_secret("TelegramSecret", &json!({ "telegram-secret-token": TELEGRAM })).await;
        aws.put_secret("GatewaySecret", &json!({ "gateway-key": GATEWAY })).await;
        Self { aws, next: AtomicI64::new(1), shown: Mutex::default() }
    }

    /// A number that was not used before.
    pub(crate) fn number(&self) -> i64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Posts a signed body; the answer's status.
    pub(crate) async fn post(&self, path: &str, headers: HeaderMap, body: &Value) -> StatusCode {
        let request = self.aws.request(Method::POST, path).headers(headers);
        let request = request.header("content-type", "application/json").body(body.to_string());
        request.send().await.unwrap().status()
    }

    /// A Telegram update, delivered once.
    pub(crate) async fn update(&self, update: &Value) -> StatusCode {
        let secret = SecretString::from(TELEGRAM);
        self.post("/telegram/main", telegram::sign_headers(&secret), update).await
    }

    /// What somebody writes in a private chat, as an update.
    pub(crate) fn private(&self, chat: i64, text: &str) -> Value {
        let mut update = fixture(include_str!("../../shared/channels/src/telegram/fixtures/private_text.json"));
        for (pointer, value) in [("/message/from/id", json!(chat)), ("/message/chat/id", json!(chat))] {
            *update.pointer_mut(pointer).unwrap() = value;
        }
        self.renewed(update, text)
    }

    /// A message in a group that mentions us, as an update.
    pub(crate) fn group(&self, chat: i64, text: &str) -> Value {
        let mut update = fixture(include_str!("../../shared/channels/src/telegram/fixtures/group_mention.json"));
        update["message"]["chat"]["id"] = json!(chat);
        update["message"]["entities"] = json!([{ "offset": 0, "length": 9, "type": "mention" }]);
        self.renewed(update, &format!("@echo_bot {text}"))
    }

    fn renewed(&self, mut update: Value, text: &str) -> Value {
        let number = self.number();
        update["update_id"] = json!(number);
        update["message"]["message_id"] = json!(number);
        update["message"]["date"] = json!(Timestamp::now().as_second());
        update["message"]["text"] = json!(text);
        update
    }

    /// Writes in a private Telegram chat, and expects that it is accepted.
    pub(crate) async fn say(&self, chat: i64, text: &str) {
        assert_eq!(self.update(&self.private(chat, text)).await, StatusCode::OK, "{text}");
    }

    /// A Slack event: `fixture`, with `fields` over its event.
    pub(crate) async fn slack(&self, fixture_text: &str, fields: &Value) -> StatusCode {
        let now = Timestamp::now();
        let mut event = fixture(fixture_text);
        event["event_id"] = json!(format!("Ev{}", self.number()));
        event["event_time"] = json!(now.as_second());
        for (name, value) in fields.as_object().unwrap() {
            event["event"][name] = value.clone();
        }
        event["event"]["event_ts"] = event["event"]["ts"].clone();
        let body = event.to_string();
        let headers = slack::sign(&SecretString::from(SIGNING), now, body.as_bytes());
        self.post("/slack/main", headers, &event).await
    }

    /// A webhook's delivery with the id `id`.
    pub(crate) async fn webhook(&self, id: &str, body: &Value) -> StatusCode {
        let secret = SecretString::from(WEBHOOK);
        let mut headers = webhook::sign_standard(&secret, id, Timestamp::now(), body.to_string().as_bytes()).unwrap();
        headers.insert("traceparent", TRACE.parse().unwrap());
        self.post("/webhook/main", headers, body).await
    }

    /// A request of the HTTP API; its status and JSON.
    pub(crate) async fn api(&self, method: Method, path: &str, key: Option<&str>, body: &Value) -> (StatusCode, Value) {
        let mut request = self.aws.request(method, path).bearer_auth(GATEWAY);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        if !body.is_null() {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// The messages of a chat, or of a thread in it, as a reader sees them: `telegram:main:5`.
    pub(crate) fn texts(&self, chat: &str) -> Vec<String> {
        let chat = self.aws.platforms.chats().remove(chat);
        chat.into_iter().flat_map(|chat| chat.messages).map(|message| message.text).collect()
    }

    /// Waits until a chat shows exactly these messages. They are all that it shows in the end, too.
    pub(crate) async fn shows(&self, chat: &str, texts: &[&str]) {
        self.shows_within(chat, texts, WITHIN).await;
    }

    /// The same, with another patience.
    pub(crate) async fn shows_within(&self, chat: &str, texts: &[&str], within: Duration) {
        let mut changes = self.aws.platforms.changes();
        let end = Instant::now() + within;
        while self.texts(chat) != texts {
            let next = timeout_at(end, changes.changed()).await;
            assert!(next.is_ok(), "{chat} shows {:?} after {within:?}, not {texts:?}", self.texts(chat));
        }
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        self.shown.lock().unwrap().insert(chat.to_owned(), texts);
    }

    /// Lets the time pass that a record of a dead function's queue is out of sight for: it is visible at once.
    pub(crate) async fn reappear(&self, function: &str, queue: &str) {
        let received = self.aws.lambda.received(function);
        let event: Value = serde_json::from_slice(received.last().unwrap()).unwrap();
        let request = json!({
            "QueueUrl": self.aws.stack.physical(queue),
            "ReceiptHandle": event["Records"][0]["receiptHandle"],
            "VisibilityTimeout": 0,
        });
        self.aws.cloud.json("AmazonSQS.ChangeMessageVisibility", &request).await;
    }

    /// Waits until no queue holds a message.
    pub(crate) async fn settle(&self) {
        let settled = async {
            // A message may move on between two looks: twice nothing, and nothing received in between, is nothing.
            let mut before = None;
            loop {
                let invocations = self.invocations();
                let mut left = 0;
                for (logical, _) in self.aws.stack.of_type("AWS::SQS::Queue") {
                    let (waiting, in_flight) = self.aws.cloud.messages(self.aws.stack.physical(logical)).await;
                    left += waiting + in_flight;
                }
                match left {
                    0 if before == Some(invocations) => return,
                    0 => before = Some(invocations),
                    _ => {
                        before = None;
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            }
        };
        timeout(WITHIN, settled).await.expect("queues become empty");
    }

    /// Puts a message that nothing of ours made into a FIFO queue of the stack.
    pub(crate) async fn put(&self, queue: &str, group: &str, body: &str) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let request = json!({
            "QueueUrl": self.aws.stack.physical(queue),
            "MessageBody": body,
            "MessageGroupId": group,
            "MessageDeduplicationId": format!("put-{number}"),
        });
        self.aws.cloud.json("AmazonSQS.SendMessage", &request).await;
    }

    /// Waits until so many dead letters were handed to their function and no queue holds a message.
    pub(crate) async fn dead_letters(&self, expected: usize) {
        let received = async {
            while self.aws.lambda.received("DeadLetter").len() < expected {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(WITHIN, received).await.expect("dead letters come");
        self.settle().await;
    }

    /// How many invocations there were.
    pub(crate) fn invocations(&self) -> usize {
        self.aws.lambda.deployed().iter().map(|deployed| self.aws.lambda.received(&deployed.id).len()).sum()
    }

    /// What every flow promises at its end: nothing is left in a queue, nothing became a dead letter.
    pub(crate) async fn end(&self) {
        self.end_with_dead_letters(0).await;
    }

    /// The same with so many dead letters. Beside that nobody asked for what its role does not allow, every scripted
    /// answer and fault was used, and chats show what they showed.
    pub(crate) async fn end_with_dead_letters(&self, expected: usize) {
        self.settle().await;
        let dead = self.aws.lambda.received("DeadLetter").len();
        assert_eq!(dead, expected, "{}", self.aws.log("DeadLetter"));
        for (chat, texts) in &*self.shown.lock().unwrap() {
            assert_eq!(self.texts(chat), *texts, "{chat}");
        }
        assert_eq!((self.aws.front.faults_left(), self.aws.bedrock.left()), (0, 0));
        for deployed in self.aws.lambda.deployed() {
            let granted = granted_actions(&deployed.id);
            let beyond: BTreeSet<String> = self.asked_for(&deployed.id).difference(&granted).cloned().collect();
            assert!(beyond.is_empty(), "{} is not allowed to {beyond:?}", deployed.id);
        }
    }

    /// The IAM actions that a function needed so far.
    pub(crate) fn asked_for(&self, id: &str) -> BTreeSet<String> {
        let calls = self.aws.front.calls();
        calls.into_iter().filter(|call| call.caller == id).flat_map(|call| call.actions).collect()
    }
}

fn fixture(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn secret(name: &str) -> Option<String> {
    let value = match name.trim_start_matches("secret:") {
        "telegram-bot-token" => BOT,
        "telegram-secret-token" => TELEGRAM,
        "slack-bot-token" => "xoxb-1",
        "slack-signing-secret" => SIGNING,
        "webhook-secret" => WEBHOOK,
        "gateway-key" => GATEWAY,
        _ => return None,
    };
    Some(value.to_owned())
}

/// Every channel, open to everybody; replies go to the fake platforms.
fn configuration(platforms: &str, limits: &str) -> String {
    format!(
        r#"
[agent]
name = "Echo"

[agent.limits]
lease_seconds = 45
{limits}

[[models]]
provider = "bedrock"
model = "{MODEL}"
capabilities = ["tools"]
guardrail = {{ id = "g1", version = "1" }}
price = {{ input = 0.3, output = 2.5 }}

[approvals]
approvers = ["gateway:ops", "telegram:28"]

[tools.orders]
description = "Tells what somebody ordered."
schema = {{ type = "object", properties = {{ of = {{ type = "string" }} }} }}
function = "orders"
risk = "read"

[tools.refund]
description = "Pays for an order back."
schema = {{ type = "object", properties = {{ order = {{ type = "string" }} }} }}
function = "refund"
risk = "dangerous"

[telegram.main]
bot_token = "secret:telegram-bot-token"
secret_token = "secret:telegram-secret-token"
bot_id = 900
username = "echo_bot"
base_url = "{platforms}/telegram"
allow = ["*"]

[slack.main]
bot_token = "secret:slack-bot-token"
signing_secret = "secret:slack-signing-secret"
app_id = "A0APP"
team_id = "T0TEAM"
bot_user_id = "U0BOT"
base_url = "{platforms}/slack"
allow = ["*"]

[webhook.main]
verify = "standard"
secret = "secret:webhook-secret"
reply_to = "{platforms}/webhook/main"

[gateway.keys.ops]
key = "secret:gateway-key"

[cron.daily]
text = "What is new?"
reply_to = "telegram:77"
"#
    )
}
