//! The operator's terminal chat: the gateway's body over loopback, on its own channel. Who may call it is decided by
//! the host (its lock file), so there is nothing to verify here.

use jiff::Timestamp;
use turnlock_domain::event::Channel;
use turnlock_domain::session::DEFAULT_ACCOUNT;

use crate::gateway::{self, ApiMessage};
use crate::ingress::{IngressRequest, Refusal};

/// Reads one message typed in the terminal. `fresh_id` (a UUIDv7) is its identity where no `Idempotency-Key` is given.
///
/// # Errors
/// As [`gateway::receive`].
pub fn receive(request: &IngressRequest, now: Timestamp, fresh_id: &str) -> Result<ApiMessage, Refusal> {
    request.check(gateway::MAX_BODY)?;
    gateway::normalise(Channel::Cli, DEFAULT_ACCOUNT, &request.headers, &request.body, now, fresh_id)
}
