//! What a process that has just started, alone by its directory's lock, does for the dead one before it: messages in
//! flight become visible, the leases of their sessions and the claims of their jobs end, so that it answers at once and
//! not after a minute, and no job uses up its receives in waiting for a dead worker.
//!
//! A session's lock is held only by whoever has that session's message, so the messages of the two queues whose workers
//! take locks name every session that can be locked; the same goes for jobs. The table is not searched.

use std::collections::BTreeSet;

use turnlock_domain::envelope::Envelope;
use turnlock_domain::session::SessionKey;
use turnlock_domain::turn::Job;
use turnlock_queue::QueueError;
use turnlock_queue::local::{LocalQueues, UnknownQueue};
use turnlock_store::{Store, StoreError};

use crate::queues;

/// What was taken back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Messages that were in flight.
    pub messages: usize,
    /// Leases that were ended.
    pub leases: usize,
    /// Claims of jobs that were ended.
    pub claims: usize,
}

/// Why it failed.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The queues were opened with other settings.
    #[error(transparent)]
    Settings(#[from] UnknownQueue),
    /// The queues cannot be read or written.
    #[error("the queues cannot be read")]
    Queue(#[from] QueueError),
    /// The table cannot be read or written.
    #[error("the table cannot be read")]
    Store(#[from] StoreError),
}

/// Takes back what the dead process held. Only for whoever knows that it is dead.
///
/// # Errors
/// [`RecoveryError`]; doing it again is harmless.
pub async fn take_back(queues: &LocalQueues, store: &Store) -> Result<Recovered, RecoveryError> {
    let messages = queues.make_visible()?;
    let mut leases = 0;
    for session in waiting_sessions(queues)? {
        if store.end_lease(&session).await? {
            leases += 1;
        }
    }
    let mut claims = 0;
    for job in waiting_jobs(queues)? {
        let ended = match &job {
            Job::Consolidate(target) => store.end_consolidation_claim(&target.session).await?,
            Job::ReviewMemory(_) => store.end_review_claim(&job.id()).await?,
        };
        claims += usize::from(ended);
    }
    Ok(Recovered { messages, leases, claims })
}

fn waiting_jobs(queues: &LocalQueues) -> Result<Vec<Job>, RecoveryError> {
    let mut jobs = Vec::new();
    for name in [queues::CONSOLIDATE, queues::REVIEW] {
        let held = queues.queue(name)?.contents()?;
        jobs.extend(held.iter().filter_map(|held| serde_json::from_str::<Job>(&held.record.body).ok()));
    }
    Ok(jobs)
}

fn waiting_sessions(queues: &LocalQueues) -> Result<BTreeSet<SessionKey>, RecoveryError> {
    let mut sessions = BTreeSet::new();
    for name in [queues::INBOUND, queues::DEAD_LETTER] {
        let held = queues.queue(name)?.contents()?;
        // What cannot be read here cannot be read by a worker either, so it holds no lock.
        let envelopes = held.iter().filter_map(|held| serde_json::from_str::<Envelope>(&held.record.body).ok());
        sessions.extend(envelopes.map(|envelope| envelope.event.session_key()));
    }
    Ok(sessions)
}
