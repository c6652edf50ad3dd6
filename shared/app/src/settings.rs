//! What the use cases need of the configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use turnlock_config::{Config, WhileBusy};
use turnlock_domain::event::Channel;
use turnlock_domain::rate::Rate;

use crate::policy::Policy;
use crate::words::Language;

/// Who the agent is and how far it may go.
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// Its name.
    pub name: String,
    /// The language of the sentences that no model writes.
    pub language: Language,
    /// The system prompt.
    pub instructions: String,
    /// The first sentence of a session, by channel; joined to its first reply.
    pub intro: BTreeMap<Channel, String>,
    /// The accounts whose chats see a reply only when it is finished.
    pub unstreamed: BTreeSet<(Channel, String)>,
    /// What a tool may do without asking.
    pub policy: Policy,
    /// How far it may go.
    pub limits: Limits,
}

/// How far the agent may go.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// How long one invocation works on a turn.
    pub turn: Duration,
    /// How old an event may become before it is answered with an error.
    pub max_wait: Duration,
    /// How many receives of an event may end without progress.
    pub attempts: u32,
    /// How long the session's lock holds unless renewed.
    pub lease: Duration,
    /// How many events may wait.
    pub queue: u64,
    /// How many messages behind the boundary make a consolidation due.
    pub consolidate_after: u64,
    /// The shortest time between two frames of a turn.
    pub frame_interval: Duration,
    /// What all models together may cost in a day, in millionths of the currency.
    pub daily_cost: Option<u64>,
}

/// Every channel that a message can come from.
const CHANNELS: [Channel; 6] =
    [Channel::Telegram, Channel::Slack, Channel::Webhook, Channel::Gateway, Channel::Cron, Channel::Cli];

impl AgentSettings {
    /// What the agent needs of the configuration.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        let agent = &config.agent;
        let intro = CHANNELS.into_iter().filter_map(|channel| Some((channel, agent.intro(channel.as_str())?)));
        Self {
            name: agent.name.clone(),
            language: Language::from_code(&agent.language).unwrap_or_default(),
            instructions: agent.instruction_text(),
            unstreamed: unstreamed(config),
            policy: Policy::from_config(config),
            intro: intro.collect::<BTreeMap<_, _>>(),
            limits: Limits::from_config(config),
        }
    }
}

impl AgentSettings {
    /// Whether a reply on this channel and account is shown while it is written.
    #[must_use]
    pub fn streams(&self, channel: Channel, account: &str) -> bool {
        match channel {
            Channel::Gateway | Channel::Cli => true,
            Channel::Telegram | Channel::Slack => !self.unstreamed.contains(&(channel, account.to_owned())),
            Channel::Webhook | Channel::Cron | Channel::Unknown => false,
        }
    }
}

/// The channels whose messages reach the turn that runs.
#[must_use]
pub fn steered(config: &Config) -> BTreeSet<Channel> {
    let steers = |channel: &Channel| config.agent.while_busy.get(channel.as_str()) == Some(&WhileBusy::Steer);
    CHANNELS.into_iter().filter(steers).collect()
}

fn unstreamed(config: &Config) -> BTreeSet<(Channel, String)> {
    let telegram = config.telegram.iter().map(|(name, bot)| (Channel::Telegram, name, &bot.account));
    let slack = config.slack.iter().map(|(name, app)| (Channel::Slack, name, &app.account));
    let quiet = telegram.chain(slack).filter(|(_, _, account)| !account.stream);
    quiet.map(|(channel, name, _)| (channel, name.clone())).collect()
}

impl Limits {
    fn from_config(config: &Config) -> Self {
        let limits = &config.agent.limits;
        Self {
            turn: Duration::from_secs(u64::from(limits.turn_seconds)),
            max_wait: limits.max_wait,
            attempts: limits.attempts,
            lease: Duration::from_secs(u64::from(limits.lease_seconds)),
            queue: limits.queue as u64,
            consolidate_after: limits.consolidate_after,
            frame_interval: Duration::from_millis(u64::from(limits.frame_interval_ms)),
            daily_cost: limits.daily_cost,
        }
    }
}

/// The session rate.
#[must_use]
pub fn rate(config: &Config) -> Rate {
    Rate { rpm: config.agent.limits.rpm, burst: config.agent.limits.burst }
}
