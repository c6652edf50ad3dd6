//! Schedules: a timer's call is one event however often it comes, and its answer goes to the configured chat.

use std::collections::BTreeMap;

use serde_json::json;
use turnlock_app::ingress::{CronError, cron};
use turnlock_channels::cron::Call;
use turnlock_config::Cron;
use turnlock_domain::envelope::Envelope;
use turnlock_domain::event::Channel;

use crate::kit::Kit;

fn call(name: &str) -> Call {
    let schedule = "arn:aws:scheduler:eu-central-1:123456789012:schedule/default/morning";
    serde_json::from_value(json!({
        "cron": name, "schedule": schedule, "scheduled_time": "2026-11-30T07:00:00Z",
    }))
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_that_comes_twice_is_one_event() {
    let kit = Kit::new().await;
    let entries = BTreeMap::from([("morning".to_owned(), Cron { text: "What is on?".to_owned(), reply_to: None })]);
    for _ in 0..2 {
        cron(&*kit.inbound, &entries, &call("morning"), &kit.clock).await.unwrap();
    }
    let records = kit.inbound.receive(10).unwrap();
    assert_eq!(records.len(), 1);
    let envelope: Envelope = serde_json::from_str(&records[0].body).unwrap();
    assert_eq!((envelope.event.channel, envelope.event.text().as_str()), (Channel::Cron, "What is on?"));
    assert!(envelope.unattended && envelope.command.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_name_that_nobody_configured_is_refused() {
    let kit = Kit::new().await;
    let refused = cron(&*kit.inbound, &BTreeMap::new(), &call("evening"), &kit.clock).await.unwrap_err();
    assert!(matches!(&refused, CronError::Unknown(name) if name == "evening"), "{refused}");
    assert!(kit.inbound.receive(10).unwrap().is_empty());
}
