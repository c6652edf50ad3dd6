//! The rules. A check returns a sentence for everything that is wrong.

mod alarms;
mod functions;
mod queues;
mod rest;
mod rights;

use serde_json::Value;
use turnlock_tests::template::Template;

type Check = fn(&Template) -> Vec<String>;

pub(super) const ALL: &[Check] = &[
    queues::settings,
    queues::dead_letters,
    queues::lifetimes,
    queues::visibility,
    queues::consumers,
    functions::runtime,
    functions::jobs,
    functions::concurrency,
    functions::routes,
    functions::logs,
    rights::actions,
    rights::resources,
    rights::roles,
    rights::environment_and_rights,
    rights::secrets,
    rest::table,
    alarms::alarms,
    rest::schedule,
    rest::outputs,
];

/// `message` unless `holds`.
fn unless(holds: bool, message: impl FnOnce() -> String) -> Option<String> {
    (!holds).then(message)
}

fn seconds(value: &Value) -> i64 {
    value.as_i64().unwrap_or(-1)
}
