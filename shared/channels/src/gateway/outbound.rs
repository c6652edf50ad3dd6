//! An outbound event for API callers: one part, whatever its length. The application stores it for them to read.

use turnlock_domain::event::OutboundEvent;

/// The text as one part; none when there is no text.
#[must_use]
pub fn render(event: &OutboundEvent) -> Vec<String> {
    crate::outbound::parts(&event.text(), usize::MAX, str::len, str::to_owned)
}
