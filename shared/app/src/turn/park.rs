//! A turn that waits for a person: nothing runs, nobody holds the lock, its message sleeps at the head of its group and
//! holds back the rest.
//!
//! What is asked is stored before the card is sent, and the card before the message goes to sleep. Between going to sleep
//! and being asleep somebody may decide or stop, and wake a message that does not sleep yet: so the head is read once
//! more, behind it all. A wake that is lost costs one sleep.

use std::time::Duration;

use turnlock_domain::time::Millis;
use turnlock_queue::SendError;
use turnlock_store::StoreError;
use turnlock_store::approvals::{Approval, Ask, Sleeper, Slept};
use turnlock_store::journal::StepWritten;
use turnlock_store::sessions::{Head, Lock};

use super::{Agent, Handled, LONGEST_BACKOFF, Receive, Unsettled, backoff};
use crate::admit::chain;
use crate::approvals;
use crate::send;

/// The longest that a message sleeps before it looks whether it was woken.
const LONGEST_SLEEP: Duration = Duration::from_secs(15 * 60);
/// The shortest: a queue counts in whole seconds, and just before the end it would come again at once.
const SHORTEST_SLEEP: Duration = Duration::from_secs(1);

impl Agent {
    /// Parks a turn at a call that a person must allow.
    pub(super) async fn park(
        &self,
        receive: &Receive<'_>,
        (lock, head): (&Lock, &Head),
        approval: &Approval,
    ) -> Result<Unsettled, StoreError> {
        let sleeper = sleeper(receive, head);
        match self.store.park(lock, &receive.envelope.position, approval, sleeper).await? {
            StepWritten::Written => {}
            StepWritten::Stopped => return Ok(Unsettled::at_once()),
            StepWritten::LockLost => return Ok(Unsettled::LockLost),
        }
        tracing::info!(event_id = %lock.event, session = %lock.session, tool = approval.tool,
            "event {} waits for a person", lock.event);
        let after = match self.show(receive, approval).await {
            Ok(()) => self.sleep_time(approval.closes_at),
            // The next look shows it.
            Err(_) => backoff(receive.record.receive_count),
        };
        Ok(Unsettled::Asleep { ask: approval.id.clone(), after })
    }

    /// A parked turn about which nobody has decided: back to sleep. The card is sent again, for whoever parked the turn may
    /// have died before it was.
    pub(super) async fn sleep_on(
        &self,
        receive: &Receive<'_>,
        (lock, head): (&Lock, &Head),
        ask: &Ask,
    ) -> Result<Unsettled, StoreError> {
        if let Some(approval) = self.store.approval(&ask.id).await?
            && self.show(receive, &approval).await.is_err()
        {
            let after = Some(backoff(receive.record.receive_count));
            return Ok(Unsettled::Back { after, reset: true, unstarted: None });
        }
        Ok(match self.store.sleep(lock, &receive.envelope.position, &ask.id, sleeper(receive, head)).await? {
            Slept::Asleep => Unsettled::Asleep { ask: ask.id.clone(), after: self.sleep_time(ask.expires_at) },
            Slept::Awake => Unsettled::at_once(),
            Slept::LockLost => Unsettled::LockLost,
        })
    }

    /// Hides the message of a parked turn, and looks whether it has to wake already.
    pub(super) async fn asleep(&self, receive: &Receive<'_>, ask: &str, after: Duration) -> Handled {
        let handled = self.back(receive, after).await;
        match self.store.head(&receive.session).await {
            Ok(Some(head)) if head.waits_for(ask) && !head.stops(&receive.envelope.position) => handled,
            Ok(_) => self.back(receive, Duration::ZERO).await,
            Err(error) => {
                tracing::warn!(event_id = %receive.envelope.event.event_id, cause = chain(&error),
                    "nobody knows whether a decision came before its turn was asleep");
                self.back(receive, after.min(LONGEST_BACKOFF)).await
            }
        }
    }

    async fn show(&self, receive: &Receive<'_>, approval: &Approval) -> Result<(), SendError> {
        let card = approvals::card(self.settings.language, &receive.envelope.event, approval);
        let sent = send::outbound(&*self.outbound, &card).await;
        if let Err(error) = &sent {
            let event_id = &approval.event_id;
            tracing::warn!(%event_id, cause = chain(error), "what a turn asks was not sent; it is sent again");
        }
        sent
    }

    fn sleep_time(&self, until: Millis) -> Duration {
        until.since(self.store.clock().now_ms()).clamp(SHORTEST_SLEEP, LONGEST_SLEEP)
    }
}

fn sleeper<'a>(receive: &'a Receive<'_>, head: &'a Head) -> Sleeper<'a> {
    Sleeper { receipt: &receive.record.receipt.0, receives: receive.record.receive_count }.or_later(head)
}
