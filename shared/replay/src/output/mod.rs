//! What a replay shows: one object, the same for `--json`, for `expect` and for the transcript.
//!
//! Everything in it is ordered: lists by time, maps by name. Fields whose feature this version does not have are absent.
//! Times are seconds since the start of the story.

mod pointer;
mod transcript;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::Value;
use turnlock_domain::time::Millis;
use turnlock_models::RecordedRequest;

pub use self::pointer::{Difference, compare, lookup};
pub use self::transcript::transcript;

use crate::fakes::{Ping, PlatformCall, ShownChat};
use crate::faults::{Count, Port};

/// Seconds since the start; a whole number where it is one.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Seconds(pub f64);

impl Seconds {
    /// The time from `start` to `at`, to the millisecond.
    #[must_use]
    pub fn between(start: Millis, at: Millis) -> Self {
        Self::of(at.since(start))
    }

    /// A duration, to the millisecond.
    #[must_use]
    pub fn of(duration: Duration) -> Self {
        Self(Duration::from_millis(duration.as_millis().try_into().unwrap_or(u64::MAX)).as_secs_f64())
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_possible_truncation, reason = "checked by the guard: a whole number of seconds")]
        match self.0 {
            seconds if seconds.fract() == 0.0 && seconds.abs() < 1e15 => serializer.serialize_i64(seconds as i64),
            seconds => serializer.serialize_f64(seconds),
        }
    }
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Output {
    /// The HTTP requests that came in.
    pub deliveries: Vec<Delivery>,
    /// The raw Lambda events that were handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invocations: Option<Vec<Invocation>>,
    /// What users see of us, by `channel:account:chat[:thread]`.
    pub chats: BTreeMap<String, ShownChat>,
    /// Mass mentions that rang.
    pub pings: Vec<PingRow>,
    /// The conversations in the store.
    pub sessions: Vec<Value>,
    /// The events that came in.
    pub events: Vec<EventRow>,
    /// What the model was asked.
    pub model_requests: Vec<RecordedRequest>,
    /// What the scripted tools were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_runs: Option<Vec<ToolRun>>,
    /// What people were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals: Option<Vec<ApprovalRow>>,
    /// The derived work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<JobRow>>,
    /// What the platforms were asked, by `channel.method`.
    pub platform_calls: BTreeMap<String, Vec<CallRow>>,
    /// What the delivery noted of each outbound event.
    pub ledger: Vec<Value>,
    /// What the observers saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<Vec<Value>>,
    /// The events that were given up.
    pub dead: Vec<DeadRow>,
    /// How often a worker that had lost its lock was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence_rejections: Option<u64>,
    /// What was logged.
    pub logs: Vec<LogRow>,
    /// How often the store, the queues and the platforms were asked.
    pub requests: BTreeMap<Port, Count>,
    /// How much time has passed.
    pub elapsed: Seconds,
    /// What was still in work or waiting when the last `run` gave up.
    pub unsettled: Vec<String>,
}

/// An HTTP request that came in, and its answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Delivery {
    /// When it arrived.
    pub at: Seconds,
    /// How long its answer took.
    pub took: Seconds,
    /// The answer's status; 0 where the process died before it.
    pub status: u16,
    /// The answer's headers.
    pub headers: BTreeMap<String, String>,
    /// The answer's body: JSON, or text.
    pub body: Value,
    /// What was asked, for the transcript: the route, and what was said.
    #[serde(skip)]
    pub asked: String,
}

/// A raw Lambda event, and what its handler answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Invocation {
    /// The function.
    pub function: String,
    /// When.
    pub at: Seconds,
    /// Its answer.
    pub answer: Value,
}

/// A mass mention that rang.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PingRow {
    /// When.
    pub at: Seconds,
    /// In which chat.
    pub chat: String,
    /// Whom.
    pub mention: String,
}

/// An event that came in, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventRow {
    /// Its id.
    pub id: String,
    /// Its session.
    pub session: String,
    /// Its text, as normalised.
    pub text: String,
    /// `committed`, `ignored`, `refused`, `limited`, `failed` or `dead`; none while it waits.
    pub outcome: Option<String>,
    /// Why, where that is not plain.
    pub reason: Option<String>,
    /// How often it was tried.
    pub attempts: u32,
}

/// A call of a scripted tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolRun {
    /// When.
    pub at: Seconds,
    /// For which session.
    pub session: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub input: Value,
    /// Its idempotency key.
    pub key: String,
    /// `ok`, `error`, `refused` or `unknown`.
    pub outcome: String,
}

/// What a person was asked, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApprovalRow {
    /// The session whose turn waits.
    pub session: String,
    /// The tool that is to run.
    pub tool: String,
    /// `open`, `allowed`, `denied`, `expired` or `stopped`.
    pub state: &'static str,
    /// Who decided, as `channel:sender`.
    pub decided_by: Option<String>,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobRow {
    /// What kind it is of.
    pub kind: String,
    /// For which session.
    pub session: String,
    /// For which generation of it.
    pub generation: u64,
    /// From which message on.
    pub from: u64,
    /// Up to which one; none before it was fixed.
    pub to: Option<u64>,
    /// `done`, `failed` or `superseded`; none while it waits.
    pub outcome: Option<String>,
    /// How often it was tried.
    pub attempts: u32,
}

/// A call that a platform received.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallRow {
    /// When it arrived.
    pub at: Seconds,
    /// Which of our accounts it was for.
    pub account: String,
    /// The arguments, as sent.
    pub arguments: Value,
    /// The status of the answer; none where no answer arrived.
    pub status: Option<u16>,
    /// The body of the answer: JSON, or text.
    pub result: Value,
    /// Whether the user sees what it asked for.
    pub applied: bool,
}

/// An event that was given up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeadRow {
    /// Its id.
    pub event: String,
    /// Why.
    pub reason: String,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogRow {
    /// When.
    pub at: Seconds,
    /// How serious.
    pub level: String,
    /// The event it belongs to.
    pub event_id: Option<String>,
    /// What it says.
    pub message: String,
}

impl Output {
    /// The object that `--json` prints and `expect` looks into.
    ///
    /// # Errors
    /// Never for what this type can hold; the serialiser's error otherwise.
    pub fn to_json(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    /// Takes in what the platforms were asked.
    pub fn set_calls(&mut self, start: Millis, calls: Vec<PlatformCall>) {
        self.platform_calls.clear();
        for call in calls {
            let name = format!("{}.{}", call.channel.as_str(), call.method);
            self.platform_calls.entry(name).or_default().push(CallRow {
                at: Seconds::between(start, call.at),
                account: call.account,
                arguments: call.arguments,
                status: call.status,
                result: call.result,
                applied: call.applied,
            });
        }
    }

    /// Takes in the mass mentions.
    pub fn set_pings(&mut self, start: Millis, pings: Vec<Ping>) {
        let row = |ping: Ping| PingRow {
            at: Seconds::between(start, ping.at),
            chat: ping.chat.key(None),
            mention: ping.mention,
        };
        self.pings = pings.into_iter().map(row).collect();
    }
}

/// A body as the output shows it: JSON, or text.
#[must_use]
pub fn body(bytes: &[u8]) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(bytes).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_whole_where_they_can_be() {
        let table =
            [(0, json!(0)), (1_000, json!(1)), (1_500, json!(1.5)), (1_234, json!(1.234)), (3_600_000, json!(3600))];
        for (milliseconds, expected) in table {
            assert_eq!(json!(Seconds::of(Duration::from_millis(milliseconds))), expected);
        }
    }

    #[test]
    fn what_does_not_exist_yet_is_absent() {
        let json = Output::default().to_json().unwrap();
        let keys: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        for absent in ["invocations", "tool_runs", "approvals", "jobs", "observed", "fence_rejections"] {
            assert!(!keys.contains(&absent), "{absent}");
        }
        for present in ["deliveries", "chats", "pings", "sessions", "events", "platform_calls", "requests", "unsettled"]
        {
            assert!(keys.contains(&present), "{present}");
        }
    }

    #[test]
    fn a_body_is_json_or_text() {
        assert_eq!(body(b""), Value::Null);
        assert_eq!(body(b"{\"ok\": true}"), json!({ "ok": true }));
        assert_eq!(body(b"ok"), json!("ok"));
    }
}
