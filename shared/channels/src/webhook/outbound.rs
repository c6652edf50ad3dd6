//! An outbound event for a webhook's source: one part, whatever its length.

use turnlock_domain::event::OutboundEvent;

use crate::outbound::{self, Part};

/// The text as one part; none when there is no text.
#[must_use]
pub fn render(event: &OutboundEvent) -> Vec<Part> {
    outbound::parts(&event.text(), usize::MAX, str::len, str::to_owned)
}
