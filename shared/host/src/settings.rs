//! The configuration as the use cases need it.

use std::collections::BTreeMap;
use std::time::Duration;

use turnlock_app::settings::{AgentSettings, Limits};
use turnlock_app::words::Language;
use turnlock_config::Config;
use turnlock_domain::event::Channel;
use turnlock_domain::rate::Rate;

/// Every channel that may have an intro.
const CHANNELS: [Channel; 6] =
    [Channel::Telegram, Channel::Slack, Channel::Webhook, Channel::Gateway, Channel::Cron, Channel::Cli];

/// What the agent needs of the configuration.
#[must_use]
pub fn agent(config: &Config) -> AgentSettings {
    let agent = &config.agent;
    let intro = CHANNELS.into_iter().filter_map(|channel| Some((channel, agent.intro(channel.as_str())?)));
    AgentSettings {
        name: agent.name.clone(),
        language: Language::from_code(&agent.language).unwrap_or_default(),
        instructions: agent.instruction_text(),
        intro: intro.collect::<BTreeMap<_, _>>(),
        limits: limits(config),
    }
}

/// The session rate.
#[must_use]
pub fn rate(config: &Config) -> Rate {
    Rate { rpm: config.agent.limits.rpm, burst: config.agent.limits.burst }
}

fn limits(config: &Config) -> Limits {
    let limits = &config.agent.limits;
    Limits {
        turn: Duration::from_secs(u64::from(limits.turn_seconds)),
        max_wait: limits.max_wait,
        attempts: limits.attempts,
        lease: Duration::from_secs(u64::from(limits.lease_seconds)),
        queue: limits.queue as u64,
        consolidate_after: limits.consolidate_after,
        frame_interval: Duration::from_millis(u64::from(limits.frame_interval_ms)),
    }
}
