//! The queues of one process: the names, settings and dead letters that the template gives them on AWS.

use std::sync::Arc;
use std::time::Duration;

use turnlock_config::Config;
use turnlock_queue::Queue;
use turnlock_queue::local::{LocalQueues, QueueSettings, UnknownQueue};

/// Events, in order within a session.
pub const INBOUND: &str = "inbound";
/// Commands, in order within a session.
pub const CONTROL: &str = "control";
/// Finals and frames, in order within a chat.
pub const OUTBOUND: &str = "outbound";
/// Consolidations.
pub const CONSOLIDATE: &str = "consolidate";
/// Memory reviews.
pub const REVIEW: &str = "review";
/// What the FIFO queues gave up.
pub const DEAD_LETTER: &str = "dead-letter";
/// Jobs that were given up.
pub const JOB_DEAD_LETTER: &str = "job-dead-letter";

/// How often a queue hands a message out before it gives it up. Inbound: the agent decides long before that.
const INBOUND_RECEIVES: u32 = 1000;
const CONTROL_RECEIVES: u32 = 20;
const OUTBOUND_RECEIVES: u32 = 50;
const JOB_RECEIVES: u32 = 10;
/// How long delivery, control and dead letters work on one batch.
const SHORT: Duration = Duration::from_secs(60);
/// AWS advises six times the function's time.
const VISIBILITY_FACTOR: u32 = 6;
/// What the queues behind the inbound one hold: they never refuse what an accepted event leads to in practice.
const CAPACITY: usize = 100_000;

/// The settings of every queue.
#[must_use]
pub fn settings(config: &Config) -> Vec<QueueSettings> {
    let turn = Duration::from_secs(u64::from(config.agent.limits.turn_seconds)) * VISIBILITY_FACTOR;
    let short = SHORT * VISIBILITY_FACTOR;
    let queue = |settings: QueueSettings, visibility, receives, dead: Option<&str>, capacity| QueueSettings {
        visibility,
        max_receive_count: receives,
        dead_letter: dead.map(str::to_owned),
        capacity,
        ..settings
    };
    let fifo = |name: &str| QueueSettings::fifo(name);
    let standard = |name: &str| QueueSettings::standard(name);
    let waiting = config.agent.limits.queue;
    vec![
        queue(fifo(INBOUND), turn, INBOUND_RECEIVES, Some(DEAD_LETTER), waiting),
        queue(fifo(CONTROL), short, CONTROL_RECEIVES, Some(DEAD_LETTER), CAPACITY),
        queue(fifo(OUTBOUND), short, OUTBOUND_RECEIVES, Some(DEAD_LETTER), CAPACITY),
        queue(standard(CONSOLIDATE), turn, JOB_RECEIVES, Some(JOB_DEAD_LETTER), CAPACITY),
        queue(standard(REVIEW), turn, JOB_RECEIVES, Some(JOB_DEAD_LETTER), CAPACITY),
        queue(fifo(DEAD_LETTER), short, u32::MAX, None, CAPACITY),
        queue(standard(JOB_DEAD_LETTER), short, u32::MAX, None, CAPACITY),
    ]
}

/// What stands between the use cases and the queues: nothing, or a replay's faults.
pub type Wrap = dyn Fn(&str, Arc<dyn Queue>) -> Arc<dyn Queue> + Send + Sync;

/// The sending side of the queues.
#[derive(Clone)]
pub(crate) struct Senders {
    pub(crate) inbound: Arc<dyn Queue>,
    pub(crate) control: Arc<dyn Queue>,
    pub(crate) outbound: Arc<dyn Queue>,
    pub(crate) consolidate: Arc<dyn Queue>,
    pub(crate) review: Arc<dyn Queue>,
    pub(crate) dead_letters: Arc<dyn Queue>,
    pub(crate) job_dead_letters: Arc<dyn Queue>,
}

impl Senders {
    pub(crate) fn new(queues: &LocalQueues, wrap: &Wrap) -> Result<Self, UnknownQueue> {
        let sender = |name: &str| Ok::<_, UnknownQueue>(wrap(name, queues.queue(name)?));
        Ok(Self {
            inbound: sender(INBOUND)?,
            control: sender(CONTROL)?,
            outbound: sender(OUTBOUND)?,
            consolidate: sender(CONSOLIDATE)?,
            review: sender(REVIEW)?,
            dead_letters: sender(DEAD_LETTER)?,
            job_dead_letters: sender(JOB_DEAD_LETTER)?,
        })
    }
}
