//! Fake platforms: what stands at the other end of [`PlatformHttp`] in a replay, in the demo and in tests.
//!
//! They keep the chats as their readers see them, enforce the platforms' documented rules with the platforms' own
//! errors, and say what a script tells them to ([`ScriptedAnswer`]). They learn of the users' side by
//! [`FakePlatforms::note`]. Nothing here assumes a replay: the clock may be the wall clock, memory is bounded
//! ([`chats::MAX_CHATS`], [`chats::MAX_MESSAGES`], [`MAX_CALLS`]).
//!
//! | module | holds |
//! |---|---|
//! | [`chats`] | what readers see |
//! | [`answers`] | scripted answers, and how long a 429 holds |
//! | `budgets` | how many calls a platform takes in how long |
//! | [`telegram`], [`slack`], [`webhook`] | a platform's rules each |

mod accounts;
pub mod answers;
mod budgets;
pub mod chats;
pub mod slack;
pub mod telegram;
pub mod webhook;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::sleep;
use turnlock_channels::http::{PlatformError, PlatformHttp, PlatformRequest, PlatformResponse};
use turnlock_clock::Clock;
use turnlock_domain::event::Channel;
use turnlock_domain::time::Millis;

pub use self::accounts::Accounts;
pub use self::answers::{Answer, ScriptedAnswer};
pub use self::chats::{Button, ChatId, ShownChat, ShownMessage};
pub use self::slack::SlackApp;
pub use self::telegram::TelegramBot;
pub use self::webhook::WebhookReceiver;

use self::answers::{Answers, Call, Reply, failed, limited};
use self::budgets::{Budgets, Limit};
use self::chats::Chats;
use self::slack::{Rung, Slack};
use self::telegram::Telegram;
use self::webhook::Webhook;

/// How many calls and mass mentions are kept.
pub const MAX_CALLS: usize = 10_000;

/// A call that a platform received.
#[derive(Debug, Clone, PartialEq)]
pub struct PlatformCall {
    /// When it arrived.
    pub at: Millis,
    /// Whose platform it was.
    pub channel: Channel,
    /// Which of our accounts it was for.
    pub account: String,
    /// The method.
    pub method: String,
    /// The arguments, as sent.
    pub arguments: Value,
    /// The status of the answer; none where no answer arrived.
    pub status: Option<u16>,
    /// The body of the answer: JSON, or text.
    pub result: Value,
    /// Whether it took effect.
    pub applied: bool,
}

/// A mass mention that rang.
#[derive(Debug, Clone, PartialEq)]
pub struct Ping {
    /// When.
    pub at: Millis,
    /// Where.
    pub chat: ChatId,
    /// Whom: `@channel`, `@here`, `@everyone`, a group.
    pub mention: String,
}

/// All platforms.
#[derive(Debug)]
pub struct FakePlatforms {
    clock: Clock,
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    telegram: Telegram,
    slack: Slack,
    webhook: Webhook,
    script: Script,
    chats: Chats,
    calls: VecDeque<PlatformCall>,
    pings: VecDeque<Ping>,
}

/// What is answered without looking at what is asked.
#[derive(Debug)]
struct Script {
    answers: Answers,
    /// None = calls are not counted.
    budgets: Option<Budgets>,
}

impl Default for Script {
    fn default() -> Self {
        Self { answers: Answers::default(), budgets: Some(Budgets::default()) }
    }
}

/// What a caller gets, and when.
struct Outcome {
    reply: Reply,
    delay: Duration,
    /// Whether the answer arrives at all.
    arrives: bool,
}

impl FakePlatforms {
    /// Platforms that know `accounts`.
    #[must_use]
    pub fn new(clock: Clock, accounts: Accounts) -> Self {
        let platforms = Self { clock, state: Mutex::default(), changes: watch::Sender::new(0) };
        platforms.set_accounts(accounts);
        platforms
    }

    /// The same without limits on how often they are called: to measure what else takes time.
    #[must_use]
    pub fn without_budgets(self) -> Self {
        self.state().script.budgets = None;
        self
    }

    /// Replaces what the platforms know of us; chats stay.
    pub fn set_accounts(&self, accounts: Accounts) {
        let mut state = self.state();
        state.telegram.bots = accounts.telegram;
        state.slack.apps = accounts.slack;
        state.webhook.receivers = accounts.webhook;
    }

    /// Adds a line to the script. The first line that fits a call, and has times left, answers it.
    pub fn script(&self, line: ScriptedAnswer) {
        self.state().script.answers.push(line);
    }

    /// Puts a file behind a reference: a Telegram `file_id`, a Slack file id.
    pub fn add_file(&self, channel: Channel, id: &str, content: Bytes) {
        let mut state = self.state();
        let files = match channel {
            Channel::Slack => &mut state.slack.files,
            _ => &mut state.telegram.files,
        };
        files.insert(id.to_owned(), content);
    }

    /// Takes notice of what a platform sends us: its chat and message exist from now on, a pressed button waits for its
    /// answer. Of other platforms than Telegram and Slack there is nothing to know.
    pub fn note(&self, channel: Channel, account: &str, payload: &Value) {
        let state = &mut *self.state();
        match channel {
            Channel::Telegram => state.telegram.note(account, payload, &mut state.chats),
            Channel::Slack => state.slack.note(account, payload, &mut state.chats),
            Channel::Webhook | Channel::Gateway | Channel::Cron | Channel::Cli | Channel::Unknown => {}
        }
    }

    /// A number that no message of a Telegram chat has had: for the next message of a user.
    #[must_use]
    pub fn next_message_number(&self, chat: &ChatId) -> i64 {
        self.state().chats.open(chat).next_number(1)
    }

    /// What users see of us, by `channel:account:chat[:thread]`.
    #[must_use]
    pub fn chats(&self) -> BTreeMap<String, ShownChat> {
        self.state().chats.shown()
    }

    /// The platform's word for the kind of a chat, if a message from there told.
    #[must_use]
    pub fn chat_type(&self, chat: &ChatId) -> Option<String> {
        self.state().chats.get(chat)?.kind.clone()
    }

    /// The newest button of that label in a chat, with the message that holds it.
    #[must_use]
    pub fn find_button(&self, chat: &ChatId, label: &str) -> Option<(chats::Message, Button)> {
        let state = self.state();
        let messages = state.chats.get(chat)?.messages().rev().filter(|message| !message.deleted);
        let mut found = messages.filter_map(|message| {
            let button = message.buttons.iter().find(|button| button.label == label)?;
            Some((message.clone(), button.clone()))
        });
        found.next()
    }

    /// The calls so far, in order of arrival.
    #[must_use]
    pub fn calls(&self) -> Vec<PlatformCall> {
        self.state().calls.iter().cloned().collect()
    }

    /// The mass mentions so far.
    #[must_use]
    pub fn pings(&self) -> Vec<Ping> {
        self.state().pings.iter().cloned().collect()
    }

    /// Changes with every call: what a page waits for.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing between lock and unlock leaves a half state behind, so a poisoned one is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl PlatformHttp for FakePlatforms {
    async fn send(&self, request: PlatformRequest, timeout: Duration) -> Result<PlatformResponse, PlatformError> {
        let outcome = self.state().receive(&request, timeout, self.clock.now_ms());
        self.changes.send_modify(|revision| *revision += 1);
        if !outcome.arrives {
            sleep(timeout).await;
            return Err(PlatformError::AnswerLost("the fake platform did not answer in time".into()));
        }
        sleep(outcome.delay).await;
        let headers = outcome.reply.header_map();
        Ok(PlatformResponse { status: outcome.reply.status, headers, body: outcome.reply.body })
    }
}

impl State {
    /// A call takes effect when it arrives, and is answered later or never.
    fn receive(&mut self, request: &PlatformRequest, timeout: Duration, now: Millis) -> Outcome {
        let mut rung: Vec<Rung> = Vec::new();
        let (call, mut outcome) = match request.channel {
            Channel::Telegram => {
                let (call, address) = self.telegram.call(request);
                let (telegram, chats) = (&mut self.telegram, &mut self.chats);
                let limits = telegram::limits(&call, chats);
                let outcome = self.script.said(&call, &limits, now, |call| telegram.apply(call, &address, chats, now));
                (call, outcome)
            }
            Channel::Slack => {
                let call = self.slack.call(request);
                let (slack, chats, rung) = (&mut self.slack, &mut self.chats, &mut rung);
                let limits = slack.limits(&call, request);
                let outcome =
                    self.script.said(&call, &limits, now, |call| slack.apply(call, request, chats, rung, now));
                (call, outcome)
            }
            Channel::Webhook | Channel::Gateway | Channel::Cron | Channel::Cli | Channel::Unknown => {
                let call = self.webhook.call(request);
                let (webhook, chats) = (&self.webhook, &mut self.chats);
                let outcome = self.script.said(&call, &[], now, |call| webhook.apply(call, request, chats, now));
                (call, outcome)
            }
        };
        for Rung { chat, mention } in rung {
            bounded(&mut self.pings, Ping { at: now, chat, mention });
        }
        outcome.arrives &= outcome.delay <= timeout;
        bounded(&mut self.calls, record(call, &outcome, now));
        outcome
    }
}

impl Script {
    /// What is answered: a 429 that still holds, a line of the script, a 429 for a budget that is spent, or what the
    /// platform itself says. Who scripts an answer gets it; it is counted all the same, if the call takes effect.
    fn said(&mut self, call: &Call, limits: &[Limit], now: Millis, apply: impl FnOnce(&Call) -> Reply) -> Outcome {
        let at_once = |reply| Outcome { reply, delay: Duration::ZERO, arrives: true };
        if let Some(reply) = self.answers.held(call, now) {
            return at_once(reply);
        }
        let scripted = self.answers.take(call);
        let wait = self.budgets.as_ref().and_then(|budgets| budgets.wait(call.channel, limits, now));
        if let (None, Some(wait)) = (&scripted, wait) {
            let reply = limited(call.channel, wait);
            self.answers.hold(call, &reply, now);
            return at_once(reply);
        }
        let answer = scripted.unwrap_or_default();
        let mut reply = if answer.is_applied() {
            if let Some(budgets) = &mut self.budgets {
                budgets.spend(call.channel, limits, now);
            }
            let own = apply(call);
            match answer.status {
                Some(status) if status != own.status => Reply { applied: own.applied, ..failed(call.channel, status) },
                _ => own,
            }
        } else {
            failed(call.channel, answer.status.unwrap_or(500))
        };
        if let Some(body) = answer.body {
            // A body of its own means what it says, also about how long to wait.
            reply.headers.remove("retry-after");
            reply.body = body;
        }
        reply.headers.extend(answer.headers);
        self.answers.hold(call, &reply, now);
        Outcome { reply, delay: answer.delay, arrives: !answer.timeout }
    }
}

fn record(call: Call, outcome: &Outcome, now: Millis) -> PlatformCall {
    let body = &outcome.reply.body;
    let result = match serde_json::from_slice(body) {
        _ if !outcome.arrives => Value::Null,
        Ok(json) => json,
        Err(_) => json!(String::from_utf8_lossy(body)),
    };
    PlatformCall {
        at: now,
        channel: call.channel,
        account: call.account,
        method: call.method,
        arguments: call.arguments,
        status: outcome.arrives.then_some(outcome.reply.status),
        result,
        applied: outcome.reply.applied,
    }
}

fn bounded<Item>(queue: &mut VecDeque<Item>, item: Item) {
    if queue.len() == MAX_CALLS {
        queue.pop_front();
    }
    queue.push_back(item);
}

/// The arguments of a call: a JSON body, a form, or the query.
fn arguments(request: &PlatformRequest) -> Value {
    let query = request.url.split_once('?').map_or("", |(_, query)| query);
    let content_type = request.headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_form = content_type.is_some_and(|it| it.starts_with("application/x-www-form-urlencoded"));
    let fields = |bytes: &[u8]| -> Value {
        let pairs = form_urlencoded::parse(bytes).map(|(name, value)| (name.into_owned(), json!(value)));
        Value::Object(pairs.collect::<Map<String, Value>>())
    };
    if request.body.is_empty() {
        return fields(query.as_bytes());
    }
    if is_form {
        return fields(&request.body);
    }
    serde_json::from_slice(&request.body).unwrap_or_else(|_| json!({}))
}

#[cfg(test)]
mod tests;
