//! Turns that wait for a person: their messages sleep in the inbound queue, and hold back those behind them. `run` leaves
//! them alone, as time passes there for no expiry.

use std::collections::BTreeSet;
use std::time::Duration;

use turnlock_domain::ids::queue_id;
use turnlock_domain::time::Millis;
use turnlock_host::queues::INBOUND;
use turnlock_queue::local::{HeldMessage, LocalQueue, MessageState};
use turnlock_store::StoreError;
use turnlock_store::sessions::Head;

use super::process::World;

/// How many sessions are looked at.
const LIMIT: usize = 10_000;

/// A message that is hidden for longer sleeps; for as long or less a worker holds it, or held it when it died.
const WORK: Duration = Duration::from_secs(90);

/// How far the end of a sleep and the expiry may lie apart.
const SLACK: Duration = Duration::from_secs(1);

/// The groups of the inbound queue whose first message sleeps until a person decides.
#[derive(Debug, Default)]
pub(super) struct Parked(BTreeSet<String>);

impl Parked {
    /// Looks for them.
    pub(super) async fn look(world: &World) -> Result<Self, StoreError> {
        let mut parked = Self::default();
        let Some(inbound) = inbound(world) else { return Ok(parked) };
        // Nobody is asked where nothing is hidden.
        if inbound.in_flight().unwrap_or(0) == 0 {
            return Ok(parked);
        }
        let now = world.clock.now_ms();
        let waiting: Vec<(String, Millis)> = world
            .store()
            .sessions(LIMIT)
            .await?
            .into_iter()
            .filter_map(|(session, head)| Some((queue_id(session.as_str()), waits_until(&head, now)?)))
            .collect();
        for message in inbound.contents().unwrap_or_default() {
            let MessageState::InFlight { until } = message.state else { continue };
            let group = message.record.group.unwrap_or_default();
            let expiry = waiting.iter().find(|(waiting, _)| *waiting == group).map(|(_, expiry)| *expiry);
            if expiry.is_some_and(|expiry| until > now + WORK || until + SLACK >= expiry) {
                parked.0.insert(group);
            }
        }
        Ok(parked)
    }

    /// Whether it waits for a person, itself or behind one that does.
    pub(super) fn holds(&self, queue: &LocalQueue, message: &HeldMessage) -> bool {
        queue.settings().name == INBOUND && message.record.group.as_ref().is_some_and(|group| self.0.contains(group))
    }

    /// When the next message of any queue can be received; none if every queue is empty, or holds only what waits for a
    /// person.
    pub(super) fn next_due(&self, world: &World) -> Option<Millis> {
        world.queues.all().filter_map(|queue| self.next_due_of(queue)).min()
    }

    fn next_due_of(&self, queue: &LocalQueue) -> Option<Millis> {
        if self.0.is_empty() || queue.settings().name != INBOUND {
            return queue.next_due().ok().flatten();
        }
        let mut groups = BTreeSet::new();
        let contents = queue.contents().unwrap_or_default();
        let free = contents.iter().filter(|message| !self.holds(queue, message));
        // A group's first message holds back the others.
        let firsts = free.filter(|message| groups.insert(message.record.group.clone()));
        let due = firsts.map(|message| match message.state {
            MessageState::Waiting => queue.now(),
            MessageState::Delayed { until } | MessageState::InFlight { until } => until,
        });
        due.min()
    }
}

fn inbound(world: &World) -> Option<&LocalQueue> {
    world.queues.all().map(AsRef::as_ref).find(|queue: &&LocalQueue| queue.settings().name == INBOUND)
}

/// Until when the session's turn waits for a person, if it does.
fn waits_until(head: &Head, now: Millis) -> Option<Millis> {
    let ask = head.open_ask().filter(|ask| ask.decision.is_none() && ask.expires_at > now)?;
    let stopped = head.unfinished_position.as_ref().is_some_and(|position| head.stops(position));
    (!stopped && head.owner.is_none()).then_some(ask.expires_at)
}
