//! An outbound event as Telegram messages: plain text, no parse mode, so nothing in it can be taken for markup.

use turnlock_domain::event::OutboundEvent;
use turnlock_domain::text::utf16_len;

use crate::outbound::{self, Part};

/// The longest text of a message (Bot API, `sendMessage`). Whether the server counts UTF-16 units or characters is
/// disputed; units are safe under both readings.
pub const MAX_UNITS: usize = 4096;

/// The texts of the messages that show `event`.
#[must_use]
pub fn render(event: &OutboundEvent, _limits: &[usize]) -> Vec<Part> {
    outbound::parts(&event.text(), MAX_UNITS, utf16_len, str::to_owned)
}
