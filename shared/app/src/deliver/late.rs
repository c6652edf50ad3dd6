//! Late workers: what follows a call when its result is refused by the ledger, because another worker wrote meanwhile
//! (trace V11). Whoever is late repairs: it takes back the message that it posted, or puts the committed final back into
//! the message that it edited.

use std::time::Duration;

use turnlock_channels::SendError;
use turnlock_domain::event::{ContentBlock, OutboundEvent, Revision};
use turnlock_store::StoreError;
use turnlock_store::ledger::{Ledger, LedgerWrite};

use super::parts::Work;
use super::{DELIVERY, Stop};
use crate::turn::{final_of, stored_turn};

/// How often a result is written over another worker's. Each time somebody else wrote in between.
const ADOPTIONS: usize = 4;
/// How long the table, or the platform, is left alone when it did not take what must not be lost.
const PAUSE: Duration = Duration::from_secs(2);
/// How often a final is put back, and for how long at most the platform's "later" is waited for in between.
const RESTORES: usize = 3;
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

impl Work<'_, '_> {
    /// Writes that `part` stands as `message`, posted or edited. If another worker has shown it meanwhile, a post of ours
    /// is one too many and is taken back; if that worker is still at it or gave up, ours is the one that stands, and it
    /// will take back its own.
    pub(super) async fn confirm(
        &mut self,
        ledger: Ledger,
        part: usize,
        message: &str,
        was_edit: bool,
    ) -> Result<Ledger, Stop> {
        let shown = self.shown.get(part).map(|part| part.shown().into_owned()).unwrap_or_default();
        let mut next = ledger.sent(part, message, self.now()).showing(part, &shown);
        for attempt in 0..=ADOPTIONS {
            let current = match self.write_surely(next).await? {
                LedgerWrite::Written(written) if attempt == 0 => return Ok(written),
                LedgerWrite::Written(written) => {
                    self.hold.renew().await?;
                    return Ok(written);
                }
                LedgerWrite::Raced(current) => current,
            };
            if current.is_stale(self.event.revision) {
                return if was_edit {
                    self.repair(current, part, message).await
                } else {
                    self.take_back(current, part, message).await
                };
            }
            let known = current.parts().get(part).is_some_and(|part| part.message_ids().iter().any(|id| id == message));
            if self.stands(&current, part) || attempt == ADOPTIONS {
                let current = if known { current } else { self.take_back(current, part, message).await? };
                self.hold.renew().await?;
                return Ok(current);
            }
            next = current.sent(part, message, self.now());
            if !was_edit {
                next = next.showing(part, &shown);
            }
        }
        Err(Stop::Ended)
    }

    /// Writes that a message stands. Whoever cannot, sends it again in the next invocation: so it is tried for as long as
    /// the record is ours.
    async fn write_surely(&mut self, ledger: Ledger) -> Result<LedgerWrite, Stop> {
        loop {
            match self.write(ledger.clone()).await {
                Err(Stop::Store(StoreError::Unavailable { .. })) if self.hold.for_a_call().await.is_ok() => {
                    tokio::time::sleep(PAUSE).await;
                }
                written => return written,
            }
        }
    }

    /// Takes back our message beside the one that stands; with it the doubt about it is gone.
    async fn take_back(&self, current: Ledger, part: usize, message: &str) -> Result<Ledger, Stop> {
        let event_id = &self.event.event_id;
        if let Err(error) = self.delivery.channels.delete(&self.event, message).await {
            tracing::error!(target: DELIVERY, event_id, %error, "event {event_id} is shown twice");
            return Ok(current);
        }
        tracing::info!(target: DELIVERY, event_id, "event {event_id} was shown twice: one is taken back");
        match self.write(current.resolved(part, self.now())).await? {
            LedgerWrite::Written(ledger) | LedgerWrite::Raced(ledger) => Ok(ledger),
        }
    }

    /// A frame's edit went to `message` after something later had begun. The ledger says first that nobody knows what the
    /// message shows; where it is a frame's, whatever comes next is shown, and a final is put back by us.
    pub(super) async fn repair(&mut self, ledger: Ledger, part: usize, message: &str) -> Result<Ledger, Stop> {
        let mut current = ledger;
        for _ in 0..ADOPTIONS {
            let is_over = current.revision().sequence == Revision::FINAL;
            let is_its_message = current.parts().get(part).is_some_and(|part| part.message_id() == Some(message));
            if is_over && !is_its_message {
                return self.restore(current, part, message, None).await;
            }
            let now = self.now();
            let next = if is_over { current.overwritten(part, now) } else { current.doubted(part, now) };
            match self.write_surely(next).await? {
                LedgerWrite::Written(written) if is_over => {
                    let last = self.committed_surely(&written).await?;
                    return self.restore(written, part, message, last).await;
                }
                LedgerWrite::Written(written) => return Ok(written),
                LedgerWrite::Raced(ledger) => current = ledger,
            }
        }
        Ok(current)
    }

    /// The committed final, asked for as long as the record is ours: nobody else will put it back.
    async fn committed_surely(&mut self, ledger: &Ledger) -> Result<Option<OutboundEvent>, Stop> {
        loop {
            match self.committed(ledger).await {
                Err(Stop::Store(StoreError::Unavailable { .. })) if self.hold.for_a_call().await.is_ok() => {
                    tokio::time::sleep(PAUSE).await;
                }
                committed => return committed,
            }
        }
    }

    /// Puts the committed final back into `message`, or takes the message away where the final has no such part. Where that
    /// fails the part stays open, for a redelivery, and the final is kept for an operator.
    async fn restore(
        &mut self,
        ledger: Ledger,
        part: usize,
        message: &str,
        last: Option<OutboundEvent>,
    ) -> Result<Ledger, Stop> {
        let event_id = self.event.event_id.clone();
        let shown = last.as_ref().map(|last| self.delivery.channels.render(last, &ledger.limits())).unwrap_or_default();
        let its_part = last.as_ref().zip(shown.get(part));
        for _ in 0..RESTORES {
            let restored = match its_part {
                Some((last, part)) => self.delivery.channels.send_part(last, part, Some(message)).await.map(|_| ()),
                None => self.delivery.channels.delete(&self.event, message).await,
            };
            let pause = match restored {
                // What is gone shows nothing old.
                Ok(()) | Err(SendError::EditGone) => {
                    tracing::info!(target: DELIVERY, event_id, "frame {event_id} came after its final, which is put back");
                    let Some((_, shown)) = its_part else { return Ok(ledger) };
                    let restored = ledger.sent(part, message, self.now()).showing(part, &shown.shown());
                    return match self.write_surely(restored).await? {
                        LedgerWrite::Written(ledger) | LedgerWrite::Raced(ledger) => Ok(ledger),
                    };
                }
                Err(SendError::RetryAfter(wait)) => wait.min(LONGEST_PAUSE),
                Err(_) => PAUSE,
            };
            if !self.hold.has_time() {
                break;
            }
            tokio::time::sleep(pause).await;
        }
        tracing::error!(target: DELIVERY, event_id, "frame {event_id} stands over its final");
        if let Some((last, _)) = its_part {
            let body = serde_json::to_string(last).unwrap_or_default();
            self.delivery.give_up(last, "overwritten", body, self.hold.record.receive_count).await?;
            return Ok(ledger);
        }
        match self.write(ledger.doubled(part, self.now())).await? {
            LedgerWrite::Written(ledger) | LedgerWrite::Raced(ledger) => Ok(ledger),
        }
    }

    /// The final of the frame's turn, as it is committed.
    async fn committed(&self, ledger: &Ledger) -> Result<Option<OutboundEvent>, Stop> {
        let store = &self.delivery.store;
        let Some(turn) = &self.event.turn else { return Ok(None) };
        let Some(marker) = store.marker(turn).await? else { return Ok(None) };
        let (message_kind, text) = final_of(&stored_turn(store, marker).await?, self.delivery.language);
        let content = vec![ContentBlock::text(text)];
        let (event_id, revision) = (ledger.event().to_owned(), ledger.revision());
        let frame = self.event.clone();
        Ok(Some(OutboundEvent {
            event_id,
            revision,
            message_kind,
            content,
            is_final: true,
            buttons: Vec::new(),
            ..frame
        }))
    }
}
