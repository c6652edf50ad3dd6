//! The way in of schedules. There is no rate and nobody to answer: whoever calls reads success or an error, and calls
//! again after an error.

use std::collections::BTreeMap;

use turnlock_channels::cron::{Call, arrival};
use turnlock_clock::Clock;
use turnlock_config::Cron;
use turnlock_domain::envelope::Envelope;
use turnlock_domain::event::Channel;
use turnlock_queue::{Queue, SendError};

use crate::journal_line::{self, EventOutcome};
use crate::send;

/// Why a call came to no event.
#[derive(Debug, thiserror::Error)]
pub enum CronError {
    /// The configuration has no such section; calling again does not help.
    #[error("there is no [cron.{0}] in the configuration of this deployment")]
    Unknown(String),
    /// The event was not sent; calling again helps if [`SendError::is_retryable`].
    #[error("the event of a schedule was not sent")]
    Send(#[from] SendError),
}

/// Sends the event of a timer's call.
///
/// # Errors
/// [`CronError`]; then no event was accepted as far as anybody knows, and a second call is recognised.
pub async fn cron(
    inbound: &dyn Queue,
    entries: &BTreeMap<String, Cron>,
    call: &Call,
    clock: &Clock,
) -> Result<(), CronError> {
    let Some(entry) = entries.get(&call.cron) else {
        super::unnamed(Channel::Cron, "", EventOutcome::Refused, "unknown_cron");
        return Err(CronError::Unknown(call.cron.clone()));
    };
    let arrival = arrival(call, &entry.text);
    let envelope = Envelope {
        event: arrival.event,
        accepted_at: clock.now_ms(),
        position: arrival.position,
        command: arrival.command,
        unattended: arrival.unattended,
        redrive: 0,
        former_chat: None,
        album: false,
    };
    let sent = send::inbound(inbound, &envelope).await;
    if let Err(error) = &sent {
        let (event, outcome) = (&envelope.event, EventOutcome::Refused);
        let reason = if error.is_retryable() { "not_sent" } else { "unsendable" };
        journal_line::event(&event.event_id, Some(&event.session_key()), event.channel, outcome, reason, 1);
    }
    Ok(sent?)
}
