//! A copy of every outbound event to an EventBridge bus ("PutEvents"): the source is `turnlock`, the detail type
//! `Outbound event`, the detail the event's JSON, with what it says. One request an event, without a retry: whoever shows
//! events to observers cuts it off after a moment and counts what did not arrive.

use async_trait::async_trait;
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::operation::put_events::PutEventsOutput;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use aws_types::SdkConfig;
use turnlock_app::deliver::observers::{Observer, ObserverError};
use turnlock_domain::event::OutboundEvent;

const SOURCE: &str = "turnlock";
const DETAIL_TYPE: &str = "Outbound event";
/// The largest entry that every region takes: its source, detail type and detail together.
const MAX_ENTRY: usize = 256 << 10;

/// Why the bus does not have an event.
#[derive(Debug, thiserror::Error)]
enum BusError {
    #[error("it has {0} bytes, more than an event bus takes")]
    TooLarge(usize),
    #[error("the event bus refused it: {0}")]
    Refused(String),
}

/// Copies events to a bus.
pub(crate) struct BusObserver {
    client: Client,
    bus: String,
}

impl BusObserver {
    /// An observer that writes to the bus called `bus`.
    pub(crate) fn new(sdk: &SdkConfig, bus: &str) -> Self {
        Self { client: Client::new(sdk), bus: bus.to_owned() }
    }

    fn entry(&self, event: &OutboundEvent) -> Result<PutEventsRequestEntry, ObserverError> {
        let detail = serde_json::to_string(event)?;
        let size = SOURCE.len() + DETAIL_TYPE.len() + detail.len();
        if size > MAX_ENTRY {
            return Err(BusError::TooLarge(size).into());
        }
        let entry = PutEventsRequestEntry::builder().event_bus_name(&self.bus).source(SOURCE).detail_type(DETAIL_TYPE);
        Ok(entry.detail(detail).build())
    }
}

#[async_trait]
impl Observer for BusObserver {
    fn name(&self) -> &'static str {
        "bus"
    }

    async fn observe(&self, event: &OutboundEvent) -> Result<(), ObserverError> {
        let entry = self.entry(event)?;
        let answer = self.client.put_events().entries(entry).send().await?;
        accepted(&answer).map_err(Into::into)
    }
}

/// A request that succeeds may have refused what it brought.
fn accepted(answer: &PutEventsOutput) -> Result<(), BusError> {
    if answer.failed_entry_count() == 0 {
        return Ok(());
    }
    let code = answer.entries().iter().find_map(|entry| entry.error_code());
    Err(BusError::Refused(code.unwrap_or("no reason given").to_owned()))
}

#[cfg(test)]
mod tests;
