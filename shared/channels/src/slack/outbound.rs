//! An outbound event as Slack messages: text with `&`, `<` and `>` escaped (docs.slack.dev, "Formatting message text"),
//! so no mention, link or broadcast that a model wrote is live.

use turnlock_domain::event::OutboundEvent;

use crate::outbound::{self, Part};

/// The longest text of a message that we send. Slack documents 40,000 and recommends 4,000; workspaces refuse edits
/// from about 4,000, and the escaped text counts.
pub const MAX_UNITS: usize = 3500;

/// The texts of the messages that show `event`.
#[must_use]
pub fn render(event: &OutboundEvent, _limits: &[usize]) -> Vec<Part> {
    outbound::parts(&event.text(), MAX_UNITS, escaped_units, escape)
}

fn escaped_units(text: &str) -> usize {
    text.chars()
        .map(|c| match c {
            '&' => "&amp;".len(),
            '<' | '>' => "&lt;".len(),
            _ => c.len_utf16(),
        })
        .sum()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
