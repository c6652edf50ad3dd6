//! Schedules: a timer's call becomes an event. The timer is ours (a role of the deployment may call it, nobody else), so
//! there is nothing to verify; its input names what the configuration says about it.
//!
//! A timer calls at least once, and again after an error: the schedule and the time that was planned are what an event is
//! recognised by. The id of the execution is not: it changes with every attempt.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Map;
use turnlock_domain::envelope::Position;
use turnlock_domain::event::{Channel, ContentBlock, EventType, InboundEvent, SCHEMA};
use turnlock_domain::ids::EventId;
use turnlock_domain::time::Millis;

use crate::ingress::Arrival;

/// One call of a timer: the input of an EventBridge Scheduler schedule, its context attributes filled in (EventBridge
/// Scheduler User Guide, "Adding context attributes"): `<aws.scheduler.schedule-arn>`, `<aws.scheduler.scheduled-time>`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Call {
    /// The name of the configuration's section.
    pub cron: String,
    /// The schedule.
    pub schedule: String,
    /// When the call was planned for.
    pub scheduled_time: Timestamp,
}

/// The event of a call: `text` is what the agent is told.
#[must_use]
pub fn arrival(call: &Call, text: &str) -> Arrival {
    let event = InboundEvent {
        schema: SCHEMA,
        event_id: EventId::derive("cron", &[&call.schedule, &call.scheduled_time.to_string()]),
        event_type: EventType::Cron,
        channel: Channel::Cron,
        account: call.cron.clone(),
        sender_id: call.cron.clone(),
        chat_id: call.cron.clone(),
        content: vec![ContentBlock::text(text)],
        timestamp: call.scheduled_time,
        reply_to_id: None,
        thread_id: None,
        session_key_override: None,
        metadata: Map::new(),
        gateway_metadata: Map::new(),
        trace: None,
    };
    let position = Position::new(Millis::from(call.scheduled_time), &call.schedule);
    Arrival { event, position, command: None, unattended: true, can_have_moved: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(execution: &str, scheduled: &str) -> Call {
        let schedule = "arn:aws:scheduler:eu-central-1:123456789012:schedule/default/morning";
        let input = serde_json::json!({
            "cron": "morning", "schedule": schedule, "scheduled_time": scheduled, "execution": execution,
        });
        serde_json::from_value(input).unwrap()
    }

    #[test]
    fn a_second_attempt_is_the_same_event_and_the_next_day_another() {
        let today = arrival(&call("e1", "2026-11-30T07:00:00Z"), "What is on today?");
        let again = arrival(&call("e2", "2026-11-30T07:00:00Z"), "What is on today?");
        let tomorrow = arrival(&call("e3", "2026-12-01T07:00:00Z"), "What is on today?");
        assert_eq!(today, again);
        assert_ne!(today.event.event_id, tomorrow.event.event_id);
        assert!(today.position < tomorrow.position && today.unattended);
        assert_eq!(today.event.session_key().as_str(), "cron:morning:morning");
        assert_eq!(today.event.text(), "What is on today?");
    }

    #[test]
    fn placeholders_that_nobody_filled_in_are_refused() {
        let input = r#"{"cron":"m","schedule":"<aws.scheduler.schedule-arn>","scheduled_time":"<aws.scheduler.scheduled-time>"}"#;
        assert!(serde_json::from_str::<Call>(input).is_err());
    }
}
