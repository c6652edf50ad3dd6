//! An outbound event for a webhook's source: one part, whatever its length, as the model wrote it.

use turnlock_domain::event::OutboundEvent;
use turnlock_domain::text::{is_blank, utf16_len};

use crate::outbound::{INVISIBLE, Part};

/// The text as one part; none when there is no text.
#[must_use]
pub fn render(event: &OutboundEvent) -> Vec<Part> {
    let text = match event.text() {
        text if text.is_empty() => return Vec::new(),
        text if is_blank(&text) => INVISIBLE.to_owned(),
        text => text,
    };
    vec![Part { units: utf16_len(&text), plain: text.clone(), text, buttons: Vec::new() }]
}
