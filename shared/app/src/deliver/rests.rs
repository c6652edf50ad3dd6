//! What stands in a chat beside an answer and is taken away: messages that were replaced, and the rest of a preview that was
//! longer than its final. Taking one away again is harmless, so a platform that wants to wait, or fails, is asked again in
//! the next delivery; what it refuses for good stays, and is marked.

use turnlock_channels::SendError;
use turnlock_domain::event::OutboundEvent;
use turnlock_store::ledger::{Ledger, LedgerPart};

use super::parts::Work;
use super::{DELIVERY, LONGEST_BLOCK, Stop, growing};

/// After how many receives of its record a platform that fails is not asked to take something away any more.
const MOST_RECEIVES: u32 = 6;

impl Work<'_, '_> {
    /// Whether something is to be taken away.
    pub(super) fn has_rests(&self, ledger: &Ledger) -> bool {
        let parts = ledger.parts();
        let extras = parts.iter().skip(self.shown.len()).any(|part| is_extra(part, &self.event));
        extras || parts.iter().any(|part| !part.replaced().is_empty())
    }

    /// Takes away the messages of `part` which took no more edits and are replaced by now.
    pub(super) async fn remove(&mut self, ledger: Ledger, part: usize) -> Result<Ledger, Stop> {
        let replaced = ledger.parts().get(part).map(|part| part.replaced().to_vec()).unwrap_or_default();
        if replaced.is_empty() || !self.stands(&ledger, part) {
            return Ok(ledger);
        }
        for message in replaced {
            if let Err(error) = self.take_away(&message).await? {
                let event_id = &self.event.event_id;
                tracing::warn!(target: DELIVERY, event_id, part, %error, "an old message of event {event_id} stays");
                return self.settle(ledger.doubled(part, self.now())).await;
            }
        }
        self.settle(ledger.removed(part, self.now())).await
    }

    /// Takes away the messages of a preview that was longer than the final, the last one first.
    pub(super) async fn tidy(&mut self, mut ledger: Ledger) -> Result<Ledger, Stop> {
        for part in (self.shown.len()..ledger.parts().len()).rev() {
            let Some(extra) = ledger.parts().get(part).filter(|part| is_extra(part, &self.event)) else { continue };
            let may_stand = extra.is_lost() || extra.stray();
            let next = match extra.message_id().map(str::to_owned) {
                None if may_stand => ledger.uncertain(part, "worker_lost", self.now()),
                None => ledger.without(part, self.now()),
                Some(message) => match self.take_away(&message).await? {
                    Ok(()) => ledger.without(part, self.now()),
                    Err(error) => {
                        let event_id = &self.event.event_id;
                        tracing::warn!(target: DELIVERY, event_id, part, %error,
                            "a rest of the preview of event {event_id} stays");
                        ledger.uncertain(part, "not_taken_away", self.now())
                    }
                },
            };
            ledger = self.settle(next).await?;
        }
        Ok(ledger)
    }

    /// Takes a message away; an error inside is a refusal for good.
    async fn take_away(&mut self, message: &str) -> Result<Result<(), SendError>, Stop> {
        self.hold.for_a_call().await?;
        match self.delivery.channels.delete(&self.event, message).await {
            Ok(()) | Err(SendError::EditGone) => Ok(Ok(())),
            Err(SendError::RetryAfter(wait)) => {
                self.leave_alone(wait, false).await?;
                Err(Stop::Wait(wait.min(LONGEST_BLOCK)))
            }
            // The answer stands: what follows it in its chat does not wait for ever.
            Err(SendError::Transient(_) | SendError::Unknown(_)) if self.hold.record.receive_count < MOST_RECEIVES => {
                Err(Stop::Wait(growing(self.hold.record.receive_count)))
            }
            Err(refused) => Ok(Err(refused)),
        }
    }
}

/// Whether a part behind the last is of a preview. What is not of a preview stays: an earlier version
/// may have cut the same final into more parts.
fn is_extra(part: &LedgerPart, event: &OutboundEvent) -> bool {
    part.revision() < event.revision
}
