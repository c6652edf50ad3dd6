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
    if is_typing(event) && event.channel != Channel::Telegram {
        return Decision::Drop("typing");
    }
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

/// Whether the event says nothing but that its turn is at work.
#[must_use]
pub fn is_typing(event: &OutboundEvent) -> bool {
    is_frame(event) && event.message_kind == MessageKind::Progress && event.text().is_empty()
}

/// Whether `later` makes the frame `event` needless: both are in hand, and `later` says all that it says.
#[must_use]
pub fn supersedes(later: &OutboundEvent, event: &OutboundEvent) -> bool {
    let same_turn = later.turn.is_some() && later.turn == event.turn;
    same_turn && (later.is_final || (!is_typing(later) && later.revision > event.revision))
}

/// Under which key an event's ledger stands: a turn's frames and its final have one, so that the preview's messages
/// become the final; and so have an event and what replaces it.
#[must_use]
pub fn ledger_key(event: &OutboundEvent) -> String {
    match (&event.edits, &event.turn) {
        (Some(edited), _) => edited.clone(),
        (None, Some(turn)) if is_frame(event) => turn.caused("final"),
        (None, Some(_) | None) => event.event_id.clone(),
    }
}

/// Whether the channel shows a text while it is written.
fn shows_frames(channel: Channel) -> bool {
    match channel {
        Channel::Telegram | Channel::Slack | Channel::Gateway | Channel::Cli => true,
        Channel::Webhook | Channel::Cron | Channel::Unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(channel: &str, kind: &str, is_final: bool) -> OutboundEvent {
        let metadata = json!({ "_drop": true, "drop": true });
        let event = json!({ "event_id": "e", "channel": channel, "message_kind": kind, "is_final": is_final,
            "metadata": metadata, "content": [{ "type": "text", "text": "so far" }] });
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn only_frames_are_dropped_and_only_where_nobody_sees_them() {
        for channel in ["telegram", "slack", "webhook", "cron", "gateway", "cli", "matrix"] {
            for kind in ["final", "error", "notice", "approval_request"] {
                assert_eq!(decide(&event(channel, kind, true)), Decision::Deliver, "{channel} {kind}");
            }
            let unseen = matches!(channel, "webhook" | "cron" | "matrix");
            let expected = if unseen { Decision::Drop("frame") } else { Decision::Deliver };
            for kind in ["progress", "tool_hint", "streaming"] {
                assert_eq!(decide(&event(channel, kind, false)), expected, "{channel} {kind}");
            }
        }
    }

    #[test]
    fn a_card_is_no_frame_and_shares_a_ledger_with_what_replaces_it() {
        let card = event("telegram", "approval_request", false);
        let settled = OutboundEvent { event_id: "e.settled".to_owned(), edits: Some("e".to_owned()), ..card.clone() };
        for event in [&card, &settled] {
            assert!(!is_frame(event) && decide(event) == Decision::Deliver);
            assert_eq!(ledger_key(event), "e");
        }
    }

    #[test]
    fn that_a_turn_works_is_shown_by_telegram_alone() {
        for channel in ["telegram", "slack", "webhook", "cron", "gateway", "cli", "matrix"] {
            let mut typing = event(channel, "progress", false);
            typing.content.clear();
            let expected = if channel == "telegram" { Decision::Deliver } else { Decision::Drop("typing") };
            assert_eq!(decide(&typing), expected, "{channel}");
        }
    }

    #[test]
    fn a_kind_of_a_later_version_that_ends_its_turn_is_delivered() {
        assert_eq!(decide(&event("webhook", "hologram", true)), Decision::Deliver);
        assert_eq!(decide(&event("webhook", "hologram", false)), Decision::Drop("frame"));
    }

    #[test]
    fn a_frame_gives_way_to_what_says_more_of_its_turn() {
        let of = |turn: &str, kind: &str, sequence: u32| {
            let mut event = event("telegram", kind, kind == "final");
            event.turn = Some(turnlock_domain::ids::EventId::from_stored(turn));
            event.revision.sequence = sequence;
            event
        };
        let frame = of("a", "streaming", 2);
        assert!(supersedes(&of("a", "streaming", 3), &frame) && supersedes(&of("a", "final", u32::MAX), &frame));
        assert!(!supersedes(&of("a", "streaming", 1), &frame) && !supersedes(&of("b", "final", u32::MAX), &frame));
        let mut typing = of("a", "progress", 3);
        typing.content.clear();
        assert!(!supersedes(&typing, &frame) && supersedes(&of("a", "streaming", 4), &typing));
        assert_eq!((ledger_key(&frame), ledger_key(&of("a", "final", 1))), ("a.final".to_owned(), "e".to_owned()));
    }
}
