//! What happens to an outbound event before any channel is asked. Our own rules alone decide; nothing is read from the
//! event's metadata, and a dropped event is still seen by the observers.

use turnlock_domain::event::{Channel, MessageKind, OutboundEvent};

/// Whether an event goes to its channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It does.
    Deliver,
    /// It does not, for this reason.
    Drop(&'static str),
}

/// Decides about one event.
#[must_use]
pub fn decide(event: &OutboundEvent) -> Decision {
    if is_frame(event) && !shows_frames(event.channel) {
        return Decision::Drop("frame");
    }
    Decision::Deliver
}

/// Whether the event carries what a later one repeats: it may be dropped and is never sent twice.
#[must_use]
pub fn is_frame(event: &OutboundEvent) -> bool {
    match event.message_kind {
        MessageKind::Progress | MessageKind::ToolHint | MessageKind::Streaming | MessageKind::Unknown => {
            !event.is_final
        }
        MessageKind::Final | MessageKind::Error | MessageKind::Notice | MessageKind::ApprovalRequest => false,
    }
}

/// Whether the channel shows a text while it is written. On the platforms a frame would be an edit of a preview, which
/// this version does not make.
fn shows_frames(channel: Channel) -> bool {
    match channel {
        Channel::Gateway | Channel::Cli => true,
        Channel::Telegram | Channel::Slack | Channel::Webhook | Channel::Cron | Channel::Unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(channel: &str, kind: &str, is_final: bool) -> OutboundEvent {
        let metadata = json!({ "_drop": true, "drop": true });
        let event = json!({ "event_id": "e", "channel": channel, "message_kind": kind, "is_final": is_final, "metadata": metadata });
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn only_frames_are_dropped_and_only_where_nobody_sees_them() {
        for channel in ["telegram", "slack", "webhook", "cron", "gateway", "cli", "matrix"] {
            for kind in ["final", "error", "notice", "approval_request"] {
                assert_eq!(decide(&event(channel, kind, true)), Decision::Deliver, "{channel} {kind}");
            }
            let seen = matches!(channel, "gateway" | "cli");
            let expected = if seen { Decision::Deliver } else { Decision::Drop("frame") };
            for kind in ["progress", "tool_hint", "streaming"] {
                assert_eq!(decide(&event(channel, kind, false)), expected, "{channel} {kind}");
            }
        }
    }

    #[test]
    fn a_kind_of_a_later_version_that_ends_its_turn_is_delivered() {
        assert_eq!(decide(&event("telegram", "hologram", true)), Decision::Deliver);
        assert_eq!(decide(&event("telegram", "hologram", false)), Decision::Drop("frame"));
    }
}
