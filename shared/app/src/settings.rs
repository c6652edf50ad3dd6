//! What the use cases need of the configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use turnlock_domain::event::Channel;

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
}
