//! How each local queue behaves, and the combinations that SQS would refuse and this queue refuses too.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::{BoxError, MAX_BYTES, MAX_VISIBILITY};

/// Where the queues are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In memory: gone with the last [`super::LocalQueues`] that shares it.
    Memory,
    /// In this file (beside it SQLite keeps two more, `-wal` and `-shm`). Its directory must exist.
    File(PathBuf),
}

/// One queue's name and behaviour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSettings {
    /// What it is called; the key under which the file keeps its messages.
    pub name: String,
    /// Whether groups keep their order and deduplication ids count.
    pub fifo: bool,
    /// How long a received message stays out of sight unless its receiver says otherwise.
    pub visibility: Duration,
    /// After so many receives a further one sets the message aside, if there is a `dead_letter` queue.
    pub max_receive_count: u32,
    /// Where messages are set aside: a queue of the same kind that sets nothing aside itself.
    pub dead_letter: Option<String>,
    /// How many messages may wait (those in flight are not counted); a send beyond that waits for room. Messages that
    /// are set aside or given back come in regardless.
    pub capacity: usize,
    /// The most bytes of a message, attributes included.
    pub max_bytes: usize,
}

impl QueueSettings {
    /// A FIFO queue with SQS's defaults: 30 s of visibility, nothing set aside, 1 MiB.
    #[must_use]
    pub fn fifo(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            fifo: true,
            visibility: Duration::from_secs(30),
            max_receive_count: 10,
            dead_letter: None,
            capacity: 100_000,
            max_bytes: MAX_BYTES,
        }
    }

    /// A standard queue with the same defaults.
    #[must_use]
    pub fn standard(name: impl Into<String>) -> Self {
        Self { fifo: false, ..Self::fifo(name) }
    }
}

/// Why the queues could not be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// SQLite could not open or prepare the file.
    #[error("the queue file cannot be opened")]
    File(#[source] BoxError),
    /// A newer version of this program has written the file.
    #[error("the queue file has format {found}, this program knows formats up to {known}")]
    NewerFormat {
        /// The file's format.
        found: i64,
        /// The newest we know.
        known: i64,
    },
    /// The settings contradict each other.
    #[error("queue `{queue}`: {reason}")]
    Settings {
        /// The queue whose settings they are.
        queue: String,
        /// What is wrong with them.
        reason: &'static str,
    },
}

/// No settings were given for a queue of this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no queue `{0}`")]
pub struct UnknownQueue(pub String);

/// The settings by name, if they are consistent.
pub(super) fn checked(settings: Vec<QueueSettings>) -> Result<BTreeMap<String, QueueSettings>, OpenError> {
    let mut by_name = BTreeMap::new();
    for one in settings {
        let queue = one.name.clone();
        if by_name.insert(one.name.clone(), one).is_some() {
            return Err(OpenError::Settings { queue, reason: "is listed twice" });
        }
    }
    for one in by_name.values() {
        if let Some(reason) = contradiction(one, &by_name) {
            return Err(OpenError::Settings { queue: one.name.clone(), reason });
        }
    }
    Ok(by_name)
}

fn contradiction(one: &QueueSettings, all: &BTreeMap<String, QueueSettings>) -> Option<&'static str> {
    if one.name.is_empty() {
        return Some("a queue needs a name");
    }
    // Without any visibility a message would be received again within the same receive.
    if one.visibility < Duration::from_secs(1) || one.visibility > MAX_VISIBILITY {
        return Some("the visibility must be between 1 second and 12 hours");
    }
    if one.capacity == 0 {
        return Some("a capacity of 0 takes no message");
    }
    let dead_letter = one.dead_letter.as_ref()?;
    match all.get(dead_letter) {
        None => Some("its dead-letter queue does not exist"),
        Some(other) if other.name == one.name => Some("it cannot be its own dead-letter queue"),
        Some(other) if other.fifo != one.fifo => Some("its dead-letter queue must be of the same kind"),
        Some(other) if other.dead_letter.is_some() => Some("its dead-letter queue must not have one itself"),
        Some(_) if one.max_receive_count == 0 => Some("a maximum of 0 receives delivers nothing"),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(settings: Vec<QueueSettings>) -> Option<String> {
        checked(settings).err().map(|error| error.to_string())
    }

    #[test]
    fn contradictions_are_named() {
        let with_dead = |dead: &str| QueueSettings { dead_letter: Some(dead.into()), ..QueueSettings::fifo("a") };
        let cases = [
            (vec![QueueSettings::fifo("a"), QueueSettings::standard("a")], "queue `a`: is listed twice"),
            (vec![with_dead("b")], "queue `a`: its dead-letter queue does not exist"),
            (vec![with_dead("a")], "queue `a`: it cannot be its own dead-letter queue"),
            (
                vec![with_dead("b"), QueueSettings::standard("b")],
                "queue `a`: its dead-letter queue must be of the same kind",
            ),
            (
                vec![QueueSettings { visibility: Duration::ZERO, ..QueueSettings::fifo("a") }],
                "queue `a`: the visibility must be between 1 second and 12 hours",
            ),
        ];
        for (settings, expected) in cases {
            assert_eq!(refusal(settings).as_deref(), Some(expected));
        }
        assert_eq!(refusal(vec![with_dead("b"), QueueSettings::fifo("b")]), None);
    }
}
