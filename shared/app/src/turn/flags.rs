//! What control has stored for a running turn, read before each step and while a stream runs.

use turnlock_store::StoreError;
use turnlock_store::sessions::Head;

use super::inference::Inference;

/// What control has stored for a running turn.
pub(super) enum Flags {
    /// Nothing ends it; the head as it is.
    GoOn(Box<Head>),
    /// A stop reaches it.
    Stopped,
    /// The lock is somebody else's.
    LockLost,
}

impl Inference<'_> {
    /// Reads what control has stored for this turn.
    pub(super) async fn flags(&self) -> Result<Flags, StoreError> {
        let Some(head) = self.store.head(&self.lock.session).await? else { return Ok(Flags::LockLost) };
        if !head.is_held(self.lock) {
            return Ok(Flags::LockLost);
        }
        Ok(if head.stops(&self.envelope.position) { Flags::Stopped } else { Flags::GoOn(Box::new(head)) })
    }
}
