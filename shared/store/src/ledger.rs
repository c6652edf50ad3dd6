//! The delivery ledger: for each outbound event and each part of it, what was tried and what came of it.
//!
//! `sending` is written, with the revision, before the platform is called, and the result after the call. Every write
//! compares the version that was read ([`LedgerWrite::Raced`] returns what stands there instead), so that of two workers
//! that hold the same record only one calls the platform, and a worker that wakes late learns that its result is no
//! longer wanted and repairs what it posted (trace V11).
//!
//! A turn's frames and its final share one ledger, under the final's id: the final goes into the messages that the preview
//! made. Each part keeps a digest of what its message shows, so that a call that would change nothing is not made.
//!
//! What a crash leaves is `sending`: whether the platform has the message is unknown, as after a lost answer. One policy
//! decides what follows ([`Ledger::plan`]): a final's part is sent once more and stays marked; where its message is known,
//! by edit, which is repeated until its outcome is known; a frame is never repeated. "Sent" is derived from a confirmed platform message id and from nothing else.

mod part;
#[cfg(test)]
mod tests;
mod value;

use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure;

use crate::error::StoreError;
use crate::item::{from_item, n, to_item};
use crate::request::{Conditional, Item};
use crate::write::{self, ABSENT, SECOND};
use crate::{LEDGER_LIFETIME, Store, keys};

pub use part::{LedgerPart, LedgerState};
pub use value::{Ledger, PartPlan};

/// How often a ledger is read anew to be reopened. Each time somebody else wrote in between.
const REOPENINGS: usize = 4;

/// What writing a ledger came to.
#[derive(Debug, Clone, PartialEq)]
pub enum LedgerWrite {
    /// It stands as written; its version is what the next write compares.
    Written(Ledger),
    /// Somebody else wrote first; the ledger as it is now.
    Raced(Ledger),
}

impl Store {
    /// The ledger under `event`, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ledger(&self, event: &str) -> Result<Option<Ledger>, StoreError> {
        let (pk, sk) = keys::ledger(event);
        let item = self.get(self.get_item(pk, sk)).await?;
        write::live(item, self.clock().now_ms()).map(from_stored).transpose()
    }

    /// Writes `next`, which was made from the ledger that was read (or from none): only if that is still the last one.
    ///
    /// # Errors
    /// [`StoreError`]; on a transient one it is unknown whether it was written: read it again.
    pub async fn write_ledger(&self, mut next: Ledger) -> Result<LedgerWrite, StoreError> {
        let before = next.version;
        next.version += 1;
        next.writer = self.write_name();
        let request = self
            .put_item(to_stored(&next)?)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let request = if before == 0 {
            request.condition_expression(ABSENT).expression_attribute_values(SECOND, write::second(next.at))
        } else {
            request.condition_expression("version = :before").expression_attribute_values(":before", n(before))
        };
        match self.put(request).await? {
            Conditional::Met(_) => Ok(LedgerWrite::Written(next)),
            Conditional::Failed(Some(old)) => {
                let old = from_stored(old)?;
                let ours = old.writer == next.writer;
                Ok(if ours { LedgerWrite::Written(next) } else { LedgerWrite::Raced(old) })
            }
            Conditional::Failed(None) => {
                Err(StoreError::corrupt("delivery ledger", &next.event, "gone between two writes"))
            }
        }
    }

    /// Opens what was given up under `event` once more: what is failed, or uncertain for good, is tried anew; what is sent
    /// is not repeated.
    ///
    /// # Errors
    /// [`StoreError`]; opening it again is harmless.
    pub async fn reopen_ledger(&self, event: &str) -> Result<(), StoreError> {
        for _ in 0..REOPENINGS {
            let Some(ledger) = self.ledger(event).await? else { return Ok(()) };
            let Some(next) = ledger.reopened(self.clock().now_ms()) else { return Ok(()) };
            match self.write_ledger(next).await? {
                LedgerWrite::Written(_) => return Ok(()),
                LedgerWrite::Raced(_) => {}
            }
        }
        // Whoever writes it all the time is at work on it.
        Ok(())
    }

    /// At most `limit` ledgers, in no order: for the replay's output.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn ledgers(&self, limit: usize) -> Result<Vec<Ledger>, StoreError> {
        self.scan("sk = :sk", "LEDGER", limit).await?.into_iter().map(from_stored).collect()
    }
}

fn from_stored(item: Item) -> Result<Ledger, StoreError> {
    from_item("delivery ledger", item)
}

fn to_stored(ledger: &Ledger) -> Result<Item, StoreError> {
    to_item("delivery ledger", keys::ledger(&ledger.event), ledger, Some(ledger.at.ttl(LEDGER_LIFETIME)))
}
