//! One process over real parts: embedded store, local queues, scripted model, fake platforms, every port under a fault
//! plan, and everything that is logged. A process can end and be followed by another one over the same data.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, HeaderName, Method};
use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{Layer, registry};
use turnlock_channels::{IngressRequest, slack, telegram, webhook};
use turnlock_clock::Clock;
use turnlock_config::{Config, DemoSecrets, Verify, Webhook};
use turnlock_domain::ids::digest;
use turnlock_embedded::EmbeddedDynamoDb;
use turnlock_host::{Host, Ports, Response, queues};
use turnlock_models::{Model, Router, Scripted, Wire};
use turnlock_queue::local::{LocalQueue, LocalQueues, Location};
use turnlock_replay::fakes::{Accounts, FakePlatforms, SlackApp, TelegramBot};
use turnlock_replay::faults::{FaultPlan, Life};
use turnlock_store::Store;
use turnlock_tools::{ToolHandler, ToolInfo};

/// When every bench begins.
pub(crate) const START: &str = "2026-01-05T09:00:00Z";
/// The same in seconds since the Unix epoch.
pub(crate) const START_SECONDS: i64 = 1_767_603_600;

/// Every secret of the bench's configuration: none of them may ever be seen outside of it.
pub(crate) const TELEGRAM_TOKEN: &str = "1:AAplantedTelegramBotToken0123456789";
pub(crate) const TELEGRAM_SECRET: &str = "planted-telegram-secret-token";
pub(crate) const SLACK_TOKEN: &str = "xoxb-planted-slack-bot-token";
pub(crate) const SLACK_SECRET: &str = "planted-slack-signing-secret";
pub(crate) const WEBHOOK_SECRET: &str = "whsec_cGxhbnRlZC13ZWJob29rLXNlY3JldC1vZi1vdXJz";
pub(crate) const PLAIN_SECRET: &str = "planted-plain-webhook-secret";
pub(crate) const GATEWAY_KEY: &str = "planted-gateway-key";

fn secret(text: &str) -> SecretString {
    SecretString::from(text.to_owned())
}

/// The demo's configuration with these secrets, one webhook source for each way to verify, and no rate.
pub(crate) fn config() -> Config {
    let mut config = Config::demo(DemoSecrets {
        telegram_bot_token: secret(TELEGRAM_TOKEN),
        telegram_secret_token: secret(TELEGRAM_SECRET),
        slack_bot_token: secret(SLACK_TOKEN),
        slack_signing_secret: secret(SLACK_SECRET),
        webhook_secret: secret(WEBHOOK_SECRET),
        gateway_key: secret(GATEWAY_KEY),
    });
    let hmac = |header: &str| Verify::Hmac { header: header.to_owned() };
    for (name, verify) in [
        ("github", hmac("x-hub-signature-256")),
        ("plain", hmac("x-signature")),
        ("slackish", Verify::Slack),
        ("bearer", Verify::Bearer),
    ] {
        let source = Webhook { verify, secret: Some(secret(PLAIN_SECRET)), ..Webhook::default() };
        config.webhook.insert(name.to_owned(), source);
    }
    config.agent.limits.rpm = 0;
    config
}

/// A way in, with a sender that keeps its rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Telegram,
    Slack,
    Standard,
    Github,
    Plain,
    Slackish,
    Bearer,
    Api,
}

impl Route {
    pub(crate) const ALL: [Self; 8] = [
        Self::Telegram,
        Self::Slack,
        Self::Standard,
        Self::Github,
        Self::Plain,
        Self::Slackish,
        Self::Bearer,
        Self::Api,
    ];

    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Telegram => "/telegram/main",
            Self::Slack => "/slack/main",
            Self::Standard => "/webhook/main",
            Self::Github => "/webhook/github",
            Self::Plain => "/webhook/plain",
            Self::Slackish => "/webhook/slackish",
            Self::Bearer => "/webhook/bearer",
            Self::Api => "/v1/messages",
        }
    }

    /// Whether any body is an event there.
    pub(crate) fn is_webhook(self) -> bool {
        self.path().starts_with("/webhook/")
    }

    /// The headers of a delivery called `id` that proves itself at `at`.
    pub(crate) fn sign(self, at: Timestamp, id: &str, body: &[u8]) -> HeaderMap {
        let mut headers = match self {
            Self::Telegram => telegram::sign_headers(&secret(TELEGRAM_SECRET)),
            Self::Slack => slack::sign(&secret(SLACK_SECRET), at, body),
            Self::Standard => webhook::sign_standard(&secret(WEBHOOK_SECRET), id, at, body).unwrap(),
            Self::Github => one("x-hub-signature-256", &format!("sha256={}", hmac(PLAIN_SECRET, body))),
            Self::Plain => one("x-signature", &hmac(PLAIN_SECRET, body)),
            Self::Slackish => slack::sign(&secret(PLAIN_SECRET), at, body),
            Self::Bearer => one("authorization", &format!("Bearer {PLAIN_SECRET}")),
            Self::Api => one("authorization", &format!("Bearer {GATEWAY_KEY}")),
        };
        if self.is_webhook() || self == Self::Api {
            headers.insert("idempotency-key", id.parse().unwrap());
        }
        headers.insert("content-type", "application/json".parse().unwrap());
        headers
    }

    /// A valid body that says `text`; `n` is what it is recognised by.
    pub(crate) fn body(self, n: i64, text: &str) -> Value {
        match self {
            Self::Telegram => update(n, 1_000_001, text),
            Self::Slack => slack_message(n, "D0DM", text),
            Self::Standard | Self::Github | Self::Plain | Self::Slackish | Self::Bearer | Self::Api => {
                json!({ "text": text })
            }
        }
    }

    /// The id of the event that [`Route::body`] with `n` becomes.
    pub(crate) fn event_id(self, n: i64) -> String {
        match self {
            Self::Telegram => format!("telegram:1:{n}"),
            Self::Slack => format!("slack:A0APP:T0TEAM:D0DM:{}", stamp(n)),
            Self::Api => format!("gateway:main:d{n}"),
            webhook => format!("webhook:{}:d{n}", webhook.path().trim_start_matches("/webhook/")),
        }
    }

    /// The status of an event that is taken.
    pub(crate) fn accepted(self) -> u16 {
        if self == Self::Api { 202 } else { 200 }
    }

    /// A valid delivery at `at`.
    pub(crate) fn delivery(self, at: Timestamp, n: i64, text: &str) -> IngressRequest {
        self.signed(at, n, self.body(n, text).to_string().into_bytes())
    }

    /// A delivery of `body`, whatever it says, that proves itself at `at`.
    pub(crate) fn signed(self, at: Timestamp, n: i64, body: Vec<u8>) -> IngressRequest {
        let headers = self.sign(at, &format!("d{n}"), &body);
        IngressRequest::post(self.path(), headers, body)
    }
}

fn one(name: &'static str, value: &str) -> HeaderMap {
    HeaderMap::from_iter([(HeaderName::from_static(name), value.parse().unwrap())])
}

/// HMAC-SHA256 (RFC 2104) in hexadecimal, not by the code that verifies it; for keys of up to 64 bytes.
fn hmac(key: &str, body: &[u8]) -> String {
    let padded = |pad: u8| -> Vec<u8> {
        let mut block = [pad; 64];
        block.iter_mut().zip(key.bytes()).for_each(|(byte, key)| *byte ^= key);
        block.to_vec()
    };
    let inner = digest(&[padded(0x36), body.to_vec()].concat());
    let inner: Vec<u8> = (0..32).map(|at| u8::from_str_radix(&inner[2 * at..2 * at + 2], 16).unwrap()).collect();
    digest(&[padded(0x5c), inner].concat())
}

/// A private message to the bot.
pub(crate) fn update(id: i64, chat: i64, text: &str) -> Value {
    json!({ "update_id": id, "message": {
        "message_id": id, "date": START_SECONDS, "chat": { "id": chat, "type": "private" },
        "from": { "id": chat, "is_bot": false, "first_name": "Ann" }, "text": text,
    } })
}

/// A direct message to the app.
pub(crate) fn slack_message(n: i64, channel: &str, text: &str) -> Value {
    json!({ "type": "event_callback", "team_id": "T0TEAM", "api_app_id": "A0APP", "event_id": format!("Ev{n}"),
        "event": { "type": "message", "channel": channel, "channel_type": "im", "user": "U0USER", "ts": stamp(n),
        "text": text } })
}

fn stamp(n: i64) -> String {
    format!("{START_SECONDS}.{n:06}")
}

/// What a bench is made of.
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) tools: Vec<(ToolInfo, Arc<dyn ToolHandler>)>,
    /// Another model than the scripted one.
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) database: EmbeddedDynamoDb,
    pub(crate) queues: Location,
}

impl Setup {
    pub(crate) fn new(config: Config) -> Self {
        let database = EmbeddedDynamoDb::memory().unwrap();
        Self { config, tools: Vec::new(), model: None, database, queues: Location::Memory }
    }

    /// With its data in files of `directory`, to be looked through.
    pub(crate) fn in_directory(config: Config, directory: &Path) -> Self {
        let database = EmbeddedDynamoDb::file(&directory.join("store")).unwrap();
        Self { database, queues: Location::File(directory.join("queues")), ..Self::new(config) }
    }

    pub(crate) async fn start(self) -> Bench {
        keep_callsites_open();
        let clock = Clock::starting_at(START.parse().unwrap());
        let queues = LocalQueues::open(&self.queues, clock.clone(), queues::settings(&self.config)).unwrap();
        let bot = TelegramBot { bot_id: 1, username: "echo_bot".to_owned(), token: Some(TELEGRAM_TOKEN.to_owned()) };
        let app = SlackApp {
            app_id: "A0APP".to_owned(),
            team_id: "T0TEAM".to_owned(),
            bot_user_id: "U0BOT".to_owned(),
            bot_id: "B0BOT".to_owned(),
            token: Some(SLACK_TOKEN.to_owned()),
            other_teams: BTreeMap::new(),
        };
        let main = || "main".to_owned();
        let accounts =
            Accounts { telegram: [(main(), bot)].into(), slack: [(main(), app)].into(), webhook: BTreeMap::new() };
        let platform = Arc::new(FakePlatforms::new(clock.clone(), accounts));
        let (plan, model) = (FaultPlan::new(), Arc::new(Scripted::new(Wire::Neutral)));
        store(&plan.process(), &self.database, &clock).create_table().await.unwrap();
        let world = World { setup: self, clock, queues, platform, model, plan, starts: 0 };
        let mut world = world;
        let host = world.host();
        Bench { host, world }
    }
}

fn store(life: &Life, database: &EmbeddedDynamoDb, clock: &Clock) -> Store {
    Store::embedded(life.store(database.http_client()), "turnlock", clock.clone(), 1)
}

/// What outlives a process.
pub(crate) struct World {
    setup: Setup,
    pub(crate) clock: Clock,
    queues: LocalQueues,
    pub(crate) platform: Arc<FakePlatforms>,
    pub(crate) model: Arc<Scripted>,
    pub(crate) plan: FaultPlan,
    starts: u64,
}

impl World {
    fn host(&mut self) -> Host {
        self.starts += 1;
        let life = self.plan.process();
        let store = store(&life, &self.setup.database, &self.clock);
        let mut tools = turnlock_tools::builtin(&store);
        for (info, handler) in &self.setup.tools {
            tools.register_handler(info.clone(), Arc::clone(handler));
        }
        let wrapped = life.clone();
        let ports = Ports {
            store,
            queues: self.queues.reopen(queues::settings(&self.setup.config)).unwrap(),
            wrap: Box::new(move |_, queue| wrapped.queue(queue)),
            around: None,
            platforms: life.platform(self.platform.clone()),
            models: Arc::new(Router::single(self.setup.model.clone().unwrap_or_else(|| self.model.clone()))),
            tools: Arc::new(tools),
            clock: self.clock.clone(),
            config: Arc::new(self.setup.config.clone()),
            open: false,
            seed: self.starts,
        };
        Host::new(ports).unwrap()
    }
}

/// A process and its world.
pub(crate) struct Bench {
    pub(crate) host: Host,
    pub(crate) world: World,
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl Answered {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Everything that whoever asked can see.
    pub(crate) fn shown(&self) -> String {
        format!("{} {:?} {}", self.status, self.headers, self.body)
    }
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Setup::new(config()).start().await
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    pub(crate) async fn answer(&self, request: IngressRequest) -> Answered {
        read(self.host.answer(request).await).await
    }

    /// A valid delivery of `text`; its status.
    pub(crate) async fn deliver(&self, route: Route, n: i64, text: &str) -> Answered {
        self.answer(route.delivery(self.now(), n, text)).await
    }

    /// What an event has come to, as the operator reads it: status and text.
    pub(crate) async fn event(&self, id: &str) -> (String, String) {
        let request =
            IngressRequest { method: Method::GET, ..IngressRequest::post(event_path(id), HeaderMap::new(), "") };
        let event = read(self.host.answer_operator(request).await).await.json();
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        (text("/status"), text("/message/text"))
    }

    /// A request of an API caller without a body.
    pub(crate) async fn get(&self, path: &str) -> Answered {
        let headers = Route::Api.sign(self.now(), "get", b"");
        self.answer(IngressRequest { method: Method::GET, ..IngressRequest::post(path, headers, "") }).await
    }

    /// Works for so many seconds of virtual time.
    pub(crate) async fn run(&self, seconds: u64) {
        let _ = tokio::time::timeout(Duration::from_secs(seconds), self.host.run()).await;
    }

    /// The process dies and another one starts over the same data.
    pub(crate) fn restart(&mut self) {
        self.host = self.world.host();
    }

    pub(crate) fn queue(&self, name: &str) -> Arc<LocalQueue> {
        self.world.queues.queue(name).unwrap()
    }

    /// Queues in which anything is left, and how much.
    pub(crate) fn left(&self) -> BTreeMap<String, usize> {
        let queues = self.world.queues.all();
        let left = queues.map(|queue| (queue.settings().name.clone(), queue.contents().unwrap().len()));
        left.filter(|(_, count)| *count > 0).collect()
    }

    /// What the reader of a chat sees of us, e.g. of `telegram:main:7`.
    pub(crate) fn chat(&self, key: &str) -> Vec<String> {
        let chats = self.world.platform.chats();
        let messages = chats.get(key).map(|chat| chat.messages.as_slice()).unwrap_or_default();
        messages.iter().filter(|message| !message.deleted).map(|message| message.text.clone()).collect()
    }
}

fn event_path(id: &str) -> String {
    format!("/v1/events/{}", turnlock_domain::session::encode_part(id))
}

async fn read(response: Response) -> Answered {
    match response {
        Response::Full(full) => Answered {
            status: full.status,
            headers: full.headers,
            body: String::from_utf8_lossy(&full.body).into_owned(),
        },
        Response::Events(events) => {
            let pieces: Vec<Bytes> = events.collect().await;
            Answered { status: 200, headers: Vec::new(), body: String::from_utf8_lossy(&pieces.concat()).into_owned() }
        }
    }
}

/// One logged line.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) level: Level,
    pub(crate) target: String,
    pub(crate) fields: BTreeMap<String, String>,
}

impl Line {
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map(String::as_str).unwrap_or_default()
    }
}

/// What our crates log.
fn ours() -> Targets {
    Targets::new().with_target("turnlock", Level::TRACE)
}

/// A callsite that is first met while no subscriber is there may stay closed to one that another thread installs at that
/// moment. So there is always one, which throws everything away.
fn keep_callsites_open() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(registry().with(ours())).expect("no other one"));
}

/// Everything that our crates log on this thread, at every level, as lines and as the two formats in which it is written.
pub(crate) struct Logs {
    lines: Arc<Mutex<Vec<Line>>>,
    written: Written,
    _guard: DefaultGuard,
}

impl Logs {
    /// From now on, until this is dropped.
    pub(crate) fn start() -> Self {
        keep_callsites_open();
        let (lines, written) = (Arc::default(), Written::default());
        let text = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(written.clone());
        let json = tracing_subscriber::fmt::layer().json().flatten_event(true).with_writer(written.clone());
        let subscriber = registry()
            .with(Recorder(Arc::clone(&lines)).with_filter(ours()))
            .with(text.with_filter(ours()))
            .with(json.with_filter(ours()));
        Self { lines, written, _guard: tracing::subscriber::set_default(subscriber) }
    }

    /// The lines so far.
    pub(crate) fn lines(&self) -> Vec<Line> {
        self.lines.lock().unwrap().clone()
    }

    /// The lines since the last call.
    pub(crate) fn take(&self) -> Vec<Line> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }

    /// All that was written, in both formats.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.written.0.lock().unwrap()).into_owned()
    }
}

struct Recorder(Arc<Mutex<Vec<Line>>>);

impl<S: Subscriber> Layer<S> for Recorder {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields(BTreeMap::new());
        event.record(&mut fields);
        let metadata = event.metadata();
        let line = Line { level: *metadata.level(), target: metadata.target().to_owned(), fields: fields.0 };
        self.0.lock().unwrap().push(line);
    }
}

struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = String::new();
        write!(text, "{value:?}").unwrap();
        self.0.insert(field.name().to_owned(), text);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for Written {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}
