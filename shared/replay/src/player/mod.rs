//! Plays a script against the real handlers in one process, on a virtual clock. The world (store, queues, platforms,
//! model, tools) outlives the processes; a `kill` drops one at the very request it names and starts the next over the
//! same world. Nothing runs on another thread, and nothing runs but what a line makes run.

mod gather;
mod parked;
mod process;
mod record;
mod requests;
mod taps;
mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tracing_subscriber::layer::SubscriberExt;
use turnlock_clock::Clock;
use turnlock_config::{Config, ConfigError, DemoSecrets};
use turnlock_domain::event::Channel;
use turnlock_domain::session::SessionKey;
use turnlock_domain::time::Millis;
use turnlock_embedded::EmbeddedDynamoDb;
use turnlock_host::{HostError, Response, queues};
use turnlock_models::Scripted;
use turnlock_queue::local::{LocalQueues, Location};

use self::parked::Parked;
use self::process::{Process, World};
use self::record::Record;
use self::requests::{Fresh, Unsigned, invented};
use self::tools::ScriptedTools;
use crate::fakes::{Accounts, ChatId, FakePlatforms};
use crate::faults::{Death, FaultPlan, in_turn};
use crate::output::{self, Delivery, Difference, Output, Seconds};
use crate::script::{Deliver, Feature, Line, Numbered, PlatformLine, Request, Script, Sign};

/// The features that this version plays.
pub const FEATURES: &[Feature] =
    &[Feature::Approvals, Feature::Tools, Feature::Sessions, Feature::Files, Feature::Media];

/// When a replay starts, unless its file says so.
const NOW: &str = "2026-01-05T09:00:00Z";
/// The longest that `run` lets pass.
const RUN_LIMIT: Duration = Duration::from_secs(3 * 3600);
/// The longest that a stream of events is followed.
const STREAM_LIMIT: Duration = Duration::from_secs(25);
/// How long a graceful stop waits for what is in work.
const DRAIN: Duration = Duration::from_secs(10);
/// How often tasks that are due at one instant are given their turn.
const ROUNDS: usize = 64;

/// What a script came to.
#[derive(Debug)]
pub struct Played {
    /// What there was to see at the end.
    pub output: Output,
    /// The expectations that did not hold. That every question to a model is a valid one is expected of every script.
    pub failures: Vec<Failed>,
    /// How many faults were never met: an enumeration is through when its fault is one of them.
    pub faults_left: usize,
}

/// An expectation that did not hold.
#[derive(Debug)]
pub struct Failed {
    /// Its line.
    pub line: usize,
    /// What was wanted and what there was.
    pub differences: Vec<Difference>,
}

/// Why a script could not be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// A line names something that does not exist.
    #[error("{file}:{line}: {message}")]
    Line {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// The world could not be set up.
    #[error("the replay could not be set up: {0}")]
    SetUp(String),
}

/// Plays `script`. Same script, seed and version: same output.
///
/// # Errors
/// [`PlayError`] for a line that cannot be played; an expectation that fails is no error.
pub fn play(script: &Script, seed: u64) -> Result<Played, PlayError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| PlayError::SetUp(error.to_string()))?;
    runtime.block_on(async {
        let player = Player::new(script, seed).await?;
        let subscriber = tracing_subscriber::registry().with(player.world.record.clone());
        let _guard = tracing::subscriber::set_default(subscriber);
        player.play(script).await
    })
}

/// How long the queues are worked.
enum Until {
    /// Until an instant.
    Instant(Instant),
    /// Until no handler runs, at most until an instant.
    Idle(Instant),
    /// Until what is due now has had its turn.
    Settled,
}

struct Player {
    world: World,
    process: Option<Process>,
    start: Millis,
    deliveries: Vec<(Delivery, Unsigned)>,
    /// Whether the last line was an `advance`: then an `expect` looks at just this moment.
    at_moment: bool,
}

fn demo() -> Config {
    let secret = |key: &str| invented(key);
    let mut config = Config::demo(DemoSecrets {
        telegram_bot_token: "1:replay-telegram-main-bot-token".into(),
        telegram_secret_token: secret("telegram.main.secret_token"),
        slack_bot_token: secret("slack.main.bot_token"),
        slack_signing_secret: secret("slack.main.signing_secret"),
        webhook_secret: secret("webhook.main.secret"),
        gateway_key: secret("gateway.keys.main.key"),
    });
    config.agent.limits.concurrency = 1;
    config
}

impl Player {
    async fn new(script: &Script, seed: u64) -> Result<Self, PlayError> {
        let set_up = |error: &dyn std::fmt::Display| PlayError::SetUp(error.to_string());
        let now = match script.header.now {
            Some(now) => now,
            None => NOW.parse::<Timestamp>().map_err(|error| set_up(&error))?,
        };
        let clock = Clock::starting_at(now);
        let config = Arc::new(demo());
        let queues = LocalQueues::open(&Location::Memory, clock.clone(), queues::settings(&config));
        let world = World {
            database: EmbeddedDynamoDb::memory().map_err(|error| set_up(&error))?,
            queues: queues.map_err(|error| set_up(&error))?,
            fakes: Arc::new(FakePlatforms::new(clock.clone(), Accounts::from_config(&config))),
            model: Arc::new(Scripted::new(script.header.wire)),
            tools: Arc::new(ScriptedTools::default()),
            plan: FaultPlan::new(),
            record: Record::new(clock.clone()),
            clock,
            config,
            seed,
            processes: 0,
        };
        world.store().create_table().await.map_err(|error| set_up(&error))?;
        let start = world.clock.now_ms();
        Ok(Self { world, process: None, start, deliveries: Vec::new(), at_moment: false })
    }

    async fn play(mut self, script: &Script) -> Result<Played, PlayError> {
        let mut failures = Vec::new();
        for Numbered { number, line } in &script.lines {
            let wrong = |message: String| PlayError::Line { file: script.name.clone(), line: *number, message };
            if let Line::Expect(wanted) = line {
                if !self.at_moment {
                    self.run().await.map_err(wrong)?;
                }
                let output = self.output().await.map_err(wrong)?;
                let differences = output::compare(&output.to_json().map_err(|error| wrong(error.to_string()))?, wanted);
                if !differences.is_empty() {
                    failures.push(Failed { line: *number, differences });
                }
                continue;
            }
            self.at_moment = matches!(line, Line::Advance(_));
            self.line(line).await.map_err(wrong)?;
        }
        self.run().await.map_err(PlayError::SetUp)?;
        let output = self.output().await.map_err(PlayError::SetUp)?;
        let last = script.lines.last().map_or(1, |line| line.number);
        failures.extend(invalid_questions(&output).map(|invalid| Failed { line: last, differences: vec![invalid] }));
        Ok(Played { output, failures, faults_left: self.world.plan.rules_left() })
    }

    async fn line(&mut self, line: &Line) -> Result<(), String> {
        match line {
            Line::Config(settings) => self.configure(Value::Object(settings.clone())).await?,
            Line::File(file) => {
                let config = Arc::make_mut(&mut self.world.config);
                config.agent.files.insert(file.path.clone(), file.text.0.clone());
                self.stop().await;
            }
            Line::Tool(tool) => {
                if self.world.tools.add(tool.clone()) {
                    self.stop().await;
                }
            }
            Line::Session(session) => {
                let key = SessionKey::from_text(session.key.clone());
                let generation = u32::try_from(session.generation).unwrap_or(u32::MAX);
                let store = self.world.store();
                let seeded = store.seed_session(&key, generation, session.boundary, &session.messages).await;
                seeded.map_err(|error| error.to_string())?;
            }
            Line::Deliver(requests) => {
                let requests: Result<Vec<_>, String> = requests.iter().map(|one| self.unsigned(one)).collect();
                self.deliver(requests?).await.map_err(|error| error.to_string())?;
            }
            Line::Say(say) => {
                let chat = ChatId { channel: say.channel, account: say.account.clone(), chat: say.chat.clone() };
                let message =
                    if say.channel == Channel::Telegram { self.world.fakes.next_message_number(&chat) } else { 0 };
                let fresh = Fresh { number: self.deliveries.len() as u64 + 1, message, now: self.world.clock.now() };
                let request = requests::say(say, &self.world.config, &fresh);
                self.deliver(vec![(request, Sign::Configured)]).await.map_err(|error| error.to_string())?;
            }
            Line::Model(line) => self.world.model.push(line.clone()),
            Line::Platform(PlatformLine::Answer(answer)) => self.world.fakes.script(answer.clone()),
            Line::Platform(PlatformLine::File { channel, file, content }) => {
                self.world.fakes.add_file(*channel, file, content.clone());
            }
            Line::Advance(duration) => self.advance(*duration).await.map_err(|error| error.to_string())?,
            Line::Run => self.run().await?,
            Line::Kill(rule) | Line::Fault(rule) | Line::Freeze(rule) => self.world.plan.arm(rule.clone()),
            Line::Restart => self.stop().await,
            Line::Replay(_) | Line::Expect(_) => {}
            Line::Tap(tap) => self.tap(tap).await?,
            Line::Invoke(_) => return Err("this version cannot play this line".to_owned()),
        }
        Ok(())
    }

    /// A redeploy with new settings.
    async fn configure(&mut self, settings: Value) -> Result<(), String> {
        let base = Config::clone(&self.world.config);
        let config: Result<Config, ConfigError> = Config::from_json_merge(base, settings, &invented);
        let config = config.map_err(|error| error.to_string())?;
        self.stop().await;
        self.world.fakes.set_accounts(Accounts::from_config(&config));
        self.world.queues = self.world.queues.reopen(queues::settings(&config)).map_err(|error| error.to_string())?;
        self.world.config = Arc::new(config);
        Ok(())
    }

    /// A graceful stop; the next line that needs a process starts one.
    async fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            process.host.stop(DRAIN).await;
        }
    }

    fn unsigned(&self, deliver: &Deliver) -> Result<(Unsigned, Sign), String> {
        let mut headers = HeaderMap::new();
        for (name, value) in &deliver.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is no header name"))?;
            headers
                .insert(name, HeaderValue::from_str(value).map_err(|_| "a header's value cannot be sent".to_owned())?);
        }
        let unsigned = match &deliver.request {
            Request::New { route, method, body } => Unsigned {
                route: route.clone(),
                method: Method::from_bytes(method.as_bytes()).map_err(|_| format!("`{method}` is no HTTP method"))?,
                headers,
                body: body.bytes(),
                id: format!("msg_{}", self.deliveries.len() + 1),
            },
            Request::Again(index) => {
                let known = self.deliveries.get(*index).map(|(_, request)| request.clone());
                let mut request = known.ok_or_else(|| format!("there is no delivery {index} yet"))?;
                request.headers.extend(headers.into_iter().filter_map(|(name, value)| Some((name?, value))));
                request
            }
        };
        Ok((unsigned, deliver.sign.clone()))
    }

    /// Sends requests at the same moment and waits for their answers. Queues are not worked meanwhile.
    async fn deliver(&mut self, requests: Vec<(Unsigned, Sign)>) -> Result<(), HostError> {
        let at = self.world.clock.now();
        let first = self.deliveries.len();
        for (request, _) in &requests {
            self.note(request);
            let arrived = Seconds::between(self.start, at.into());
            let asked = requests::asked(request);
            let none = Delivery {
                at: arrived,
                took: Seconds::of(Duration::ZERO),
                status: 0,
                headers: BTreeMap::new(),
                body: Value::Null,
                asked,
            };
            self.deliveries.push((none, request.clone()));
        }
        let process = self.ensure()?;
        let (life, config, clock) = (process.life.clone(), self.world.config.clone(), self.world.clock.clone());
        let asked = requests.iter().enumerate().map(|(index, (request, sign))| {
            let signed = request.signed(&config, sign, at);
            let clock = clock.clone();
            let process = &process;
            async move {
                let name = format!("delivery {}", first + index);
                let answer = in_turn(&name, process.host.answer(signed)).await;
                (index, answered(answer).await, clock.now())
            }
        });
        let mut asked: futures_util::stream::FuturesUnordered<_> = asked.collect();
        let mut answers = Vec::new();
        let died = loop {
            tokio::select! { biased;
                death = life.over() => break Some(death),
                answer = asked.next() => match answer {
                    Some(answer) => answers.push(answer),
                    None => break None,
                },
            }
        };
        drop(asked);
        for (index, (status, headers, body), done) in answers {
            if let Some((delivery, _)) = self.deliveries.get_mut(first + index) {
                delivery.took = Seconds::of(Millis::from(done).since(at.into()));
                (delivery.status, delivery.headers, delivery.body) = (status, headers, body);
            }
        }
        match died {
            Some(death) => self.bury(process, &death),
            None => self.process = Some(process),
        }
        Ok(())
    }

    fn note(&self, request: &Unsigned) {
        let (channel, account) = request.place();
        if let Ok(payload) = serde_json::from_slice(&request.body) {
            self.world.fakes.note(channel, account, &payload);
        }
    }

    /// The process, taken out; a new one if there is none.
    fn ensure(&mut self) -> Result<Process, HostError> {
        match self.process.take() {
            Some(process) => Ok(process),
            None => self.world.start(),
        }
    }

    /// Ends a process whose death a rule played: its tasks take no further step.
    fn bury(&mut self, process: Process, death: &Death) {
        process.life.end(death.clone());
        drop(process);
    }

    /// Lets exactly so much time pass, and works the queues meanwhile.
    async fn advance(&mut self, duration: Duration) -> Result<(), HostError> {
        let end = Instant::now() + duration;
        while self.until(Until::Instant(end)).await? {}
        // What falls due at this very instant is still done.
        self.until(Until::Settled).await.map(|_| ())
    }

    /// Works the queues until `end` or the process dies; true if it died, and the next one has to go on.
    async fn until(&mut self, end: Until) -> Result<bool, HostError> {
        let process = self.ensure()?;
        let life = process.life.clone();
        let ended = async {
            match end {
                Until::Instant(instant) => sleep_until(instant).await,
                Until::Idle(limit) => {
                    let _ = timeout_at(limit, process.host.idle()).await;
                }
                Until::Settled => {
                    for _ in 0..ROUNDS {
                        tokio::task::yield_now().await;
                    }
                }
            }
        };
        let death = tokio::select! { biased;
            death = life.over() => Some(death),
            () = process.host.run() => None,
            () = ended => None,
        };
        match death {
            Some(death) => {
                self.bury(process, &death);
                Ok(true)
            }
            None => {
                self.process = Some(process);
                Ok(false)
            }
        }
    }

    /// Works the queues until nothing is left in them but what waits for a person, time passing as needed.
    async fn run(&mut self) -> Result<(), String> {
        let limit = Instant::now() + RUN_LIMIT;
        while Instant::now() < limit {
            let running = self.process.as_ref().map_or(0, |process| process.host.running());
            let parked = if running == 0 { Parked::look(&self.world).await } else { Ok(Parked::default()) };
            let due = parked.map_err(|error| error.to_string())?.next_due(&self.world);
            let end = match (running, due) {
                (0, None) => return Ok(()),
                (0, Some(due)) => {
                    let wait = due.since(self.world.clock.now_ms()).max(Duration::from_millis(1));
                    Until::Instant(limit.min(Instant::now() + wait))
                }
                (_, _) => Until::Idle(limit),
            };
            self.until(end).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    async fn output(&self) -> Result<Output, String> {
        let mut output = gather::gather(&self.world, self.start).await.map_err(|error| error.to_string())?;
        output.deliveries = self.deliveries.iter().map(|(delivery, _)| delivery.clone()).collect();
        Ok(output)
    }
}

/// The questions to models that no provider would take, as expectations that did not hold.
fn invalid_questions(output: &Output) -> impl Iterator<Item = Difference> + '_ {
    let numbered = output.model_requests.iter().enumerate();
    numbered.filter(|(_, request)| !request.problems.is_empty()).map(|(index, request)| Difference {
        pointer: format!("/model_requests/{index}/problems"),
        want: Value::Array(Vec::new()),
        got: Some(request.problems.iter().cloned().map(Value::String).collect()),
        nearest: None,
    })
}

/// An answer as the output shows it; a stream is followed to its end.
async fn answered(response: Response) -> (u16, BTreeMap<String, String>, Value) {
    match response {
        Response::Full(response) => {
            let headers = response.headers.iter().map(|(name, value)| ((*name).to_lowercase(), value.clone()));
            (response.status, headers.collect(), output::body(&response.body))
        }
        Response::Events(mut events) => {
            let mut text = String::new();
            let follow = async {
                while let Some(bytes) = events.next().await {
                    text.push_str(&String::from_utf8_lossy(&bytes));
                }
            };
            let _ = timeout(STREAM_LIMIT, follow).await;
            let headers = [("content-type".to_owned(), "text/event-stream".to_owned())];
            (200, headers.into(), Value::String(text))
        }
    }
}

#[cfg(test)]
mod tests;
