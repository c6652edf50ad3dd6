//! Those who write: half of them over Telegram, half over the HTTP API, each in a session of its own and in order. A
//! message is sent until it is accepted, whatever dies meanwhile, and some are sent twice.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use turnlock_domain::ids::EventId;
use turnlock_domain::session::{SessionKey, encode_part};

use super::outside::Outside;
use super::{LOOK_AGAIN, WITHIN, until};

/// The bot's token; it begins with the bot's id.
pub(super) const BOT_TOKEN: &str = "7000001:token-of-the-bot";
/// What Telegram sends with every update.
pub(super) const SECRET_TOKEN: &str = "secret-of-the-updates";
/// The name of the API's caller.
pub(super) const CALLER: &str = "load";
/// The caller's key.
pub(super) const API_KEY: &str = "key-of-the-caller";

const BOT_ID: &str = "7000001";
/// The pause before something is sent again.
const RETRY: Duration = Duration::from_millis(30);
/// How many messages are sent before their answers are waited for.
const MOST_AT_ONCE: usize = 3;
/// The longest pause between two answers and the next message.
const LONGEST_PAUSE_MS: u64 = 50;
/// Of a hundred messages, those that are sent twice at the same time, and those that are sent again afterwards.
const TWICE_AT_ONCE: u8 = 10;
const TWICE: u8 = 25;
/// Of a hundred messages to the API, those whose sender waits for the answer in the same request.
const WAITING: u8 = 30;
/// How long a person waits for a reply in a chat before writing on: a reply can be missing for good (see `verdict`).
const PATIENCE: Duration = Duration::from_secs(10);

/// What all of them share.
pub(super) struct World {
    http: reqwest::Client,
    /// Where the process listens, or did.
    address: watch::Receiver<String>,
    outside: Arc<Outside>,
}

/// Somebody with a session.
pub(super) struct Person {
    pub(super) number: usize,
    rng: Rng,
    /// What was accepted, in this order.
    pub(super) said: Vec<Said>,
}

/// An accepted message.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) event: EventId,
    pub(super) text: String,
}

/// How a message is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// At once.
    Plain,
    /// In pieces, over some time.
    Slow,
    /// In pieces, over so long a time that a chat is shown a preview.
    Long,
    /// After the call of a tool.
    Tool,
}

impl Kind {
    /// The kind that a text asks for.
    pub(super) fn of(text: &str) -> Self {
        match text.rsplit(' ').next() {
            Some("slowly") => Self::Slow,
            Some("long") => Self::Long,
            Some("tool") => Self::Tool,
            _ => Self::Plain,
        }
    }
}

/// The one right reply to a text. Every text is another one, and so is the beginning of every reply.
pub(super) fn reply(text: &str) -> String {
    format!("{text} was said, and this is the reply")
}

impl World {
    /// A world in which the process is where `address` says.
    pub(super) fn new(address: watch::Receiver<String>, outside: Arc<Outside>) -> Self {
        // Longer than the longest wait of the API.
        let http = reqwest::Client::builder().no_proxy().timeout(WITHIN).build().unwrap();
        Self { http, address, outside }
    }

    /// Asks the API, with a key; `None` = there was no answer, or none that counts.
    pub(super) async fn get(&self, path: &str, key: &str) -> Option<Value> {
        let address = self.address.borrow().clone();
        let answer = self.http.get(format!("{address}{path}")).bearer_auth(key).send().await.ok()?;
        let answer = answer.error_for_status().ok()?;
        answer.json().await.ok()
    }
}

impl Person {
    /// The person of this number.
    pub(super) fn new(number: usize, rng: Rng) -> Self {
        Self { number, rng, said: Vec::new() }
    }

    /// The chat, for those who write over Telegram.
    pub(super) fn chat(&self) -> Option<i64> {
        self.number.is_multiple_of(2).then(|| 1_000_001 + i64::try_from(self.number).unwrap())
    }

    /// The session.
    pub(super) fn session(&self) -> SessionKey {
        match self.chat() {
            Some(chat) => SessionKey::new("telegram", "main", &chat.to_string(), None),
            None => SessionKey::new("gateway", CALLER, &self.name(), None),
        }
    }

    fn name(&self) -> String {
        format!("s{:02}", self.number)
    }

    /// Writes, and waits for answers, until it is over.
    pub(super) async fn talk(mut self, world: &World, over: &watch::Receiver<bool>) -> Self {
        while !*over.borrow() {
            let first = self.said.len();
            for _ in 0..self.rng.usize(1..=MOST_AT_ONCE) {
                self.say(world).await;
            }
            for said in &self.said[first..] {
                self.answered(world, said, PATIENCE).await;
            }
            sleep(Duration::from_millis(self.rng.u64(0..=LONGEST_PAUSE_MS))).await;
        }
        self
    }

    /// Writes one message that is accepted in the end.
    async fn say(&mut self, world: &World) {
        let kind = self.rng.choice(["plainly", "plainly", "plainly", "slowly", "long", "tool"]).unwrap();
        let waits = self.rng.u8(0..100) < WAITING;
        let times = self.rng.u8(0..100);
        let said = self.next(kind);
        let deliver = || self.deliver(world, &said, waits);
        match times {
            0..TWICE_AT_ONCE => drop(tokio::join!(deliver(), deliver())),
            TWICE_AT_ONCE..TWICE => {
                deliver().await;
                deliver().await;
            }
            _ => deliver().await,
        }
        self.said.push(said);
    }

    fn next(&self, kind: &str) -> Said {
        let text = format!("{} m{:04} {kind}", self.name(), self.said.len());
        let event = match self.chat() {
            Some(_) => EventId::derive("telegram", &[BOT_ID, &self.update_id().to_string()]),
            None => EventId::derive("gateway", &[CALLER, &text.replace(' ', "-")]),
        };
        Said { event, text }
    }

    fn update_id(&self) -> usize {
        self.number * 1_000_000 + self.said.len() + 1
    }

    /// Sends a message until it is accepted.
    async fn deliver(&self, world: &World, said: &Said, waits: bool) {
        let end = Instant::now() + WITHIN;
        while !self.attempt(world, said, waits).await {
            assert!(Instant::now() < end, "`{}` was not accepted within {WITHIN:?}", said.text);
            sleep(RETRY).await;
        }
    }

    /// Sends a message once; whether it was accepted.
    async fn attempt(&self, world: &World, said: &Said, waits: bool) -> bool {
        let address = world.address.borrow().clone();
        let Ok(answer) = self.request(world, &address, said, waits).send().await else { return false };
        let status = answer.status();
        let Ok(body) = answer.text().await else { return false };
        if !status.is_success() {
            assert!(status.is_server_error(), "`{}` was refused: {status} {body}", said.text);
            return false;
        }
        if self.chat().is_none() {
            let event: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(event["event_id"], said.event.as_str(), "{event}");
            assert!(event["status"] != "done" || event["message"]["text"] == reply(&said.text), "{event}");
        }
        true
    }

    fn request(&self, world: &World, address: &str, said: &Said, waits: bool) -> RequestBuilder {
        match self.chat() {
            Some(chat) => {
                let message = json!({
                    "message_id": self.said.len() + 1,
                    "date": Timestamp::now().as_second(),
                    "chat": { "id": chat, "type": "private" },
                    "from": { "id": chat, "is_bot": false, "first_name": self.name() },
                    "text": said.text,
                });
                let update = json!({ "update_id": self.update_id(), "message": message });
                let request = world.http.post(format!("{address}/telegram/main"));
                request.header("x-telegram-bot-api-secret-token", SECRET_TOKEN).json(&update)
            }
            None => {
                let query = if waits { "?wait=20" } else { "" };
                let request = world.http.post(format!("{address}/v1/messages{query}"));
                let request = request.bearer_auth(API_KEY).header("idempotency-key", said.text.replace(' ', "-"));
                request.json(&json!({ "session": self.name(), "text": said.text }))
            }
        }
    }

    /// Waits for the reply where its reader sees it; false when the time is over.
    pub(super) async fn answered(&self, world: &World, said: &Said, within: Duration) -> bool {
        let reply = reply(&said.text);
        let path = format!("/v1/events/{}", encode_part(said.event.as_str()));
        let look = async || match self.chat() {
            Some(chat) => world.outside.shows(chat, &reply).then_some(()),
            None => {
                let event = world.get(&path, API_KEY).await.filter(|event| event["status"] == "done");
                if event.is_none() {
                    sleep(LOOK_AGAIN * 4).await;
                }
                event.map(|event| assert_eq!(event["message"]["text"], reply.as_str(), "{event}"))
            }
        };
        until(within, look).await.is_some()
    }

    /// Writes one more message, plainly; how long its answer took, if it came.
    pub(super) async fn probe(&mut self, world: &World) -> Option<Duration> {
        let started = Instant::now();
        let said = self.next("plainly");
        self.deliver(world, &said, false).await;
        self.said.push(said.clone());
        self.answered(world, &said, WITHIN).await.then(|| started.elapsed())
    }
}
