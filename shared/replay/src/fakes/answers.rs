//! Scripted answers: what a platform says to the next calls that fit, instead of what its rules say; and the rate limits
//! that follow from a 429.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};
use turnlock_domain::event::Channel;
use turnlock_domain::time::Millis;

/// What a platform says to the next calls that fit. Absent conditions fit all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScriptedAnswer {
    /// Calls to this platform.
    pub channel: Option<Channel>,
    /// Calls of this account.
    pub account: Option<String>,
    /// Calls of this method.
    pub method: Option<String>,
    /// Calls for this chat.
    pub chat: Option<String>,
    /// Calls whose arguments hold these values at these JSON pointers.
    pub conditions: BTreeMap<String, Value>,
    /// How many calls it answers; none = all.
    pub times: Option<u64>,
    /// What it says.
    pub answer: Answer,
}

/// What is said. The defaults are the platform's own answer, at once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// How much later it arrives.
    pub delay: Duration,
    /// The HTTP status.
    pub status: Option<u16>,
    /// Headers beside the platform's own.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Option<Bytes>,
    /// Whether the call takes effect; by default with a status below 400 and an answer that arrives.
    pub applied: Option<bool>,
    /// Whether the answer never arrives.
    pub timeout: bool,
}

impl Answer {
    /// Whether the call takes effect.
    #[must_use]
    pub fn is_applied(&self) -> bool {
        self.applied.unwrap_or(!self.timeout && self.status.is_none_or(|status| status < 400))
    }
}

/// A call as the conditions of a scripted answer see it.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) channel: Channel,
    pub(super) account: String,
    pub(super) method: String,
    pub(super) chat: Option<String>,
    pub(super) arguments: Value,
}

/// An HTTP answer.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Bytes,
    /// Whether the call took effect.
    pub(super) applied: bool,
}

impl Reply {
    pub(super) fn json(status: u16, body: &Value, applied: bool) -> Self {
        let headers = [("content-type".to_owned(), "application/json".to_owned())].into();
        Self { status, headers, body: body.to_string().into(), applied }
    }

    pub(super) fn bytes(body: Bytes) -> Self {
        let headers = [("content-type".to_owned(), "application/octet-stream".to_owned())].into();
        Self { status: 200, headers, body, applied: true }
    }

    /// The headers as the HTTP client sees them; a name or value that is none is left out.
    pub(super) fn header_map(&self) -> HeaderMap {
        let parsed = self.headers.iter().filter_map(|(name, value)| Some((name.parse().ok()?, value.parse().ok()?)));
        parsed.collect()
    }

    fn retry_after(&self) -> Option<u64> {
        let body = serde_json::from_slice::<Value>(&self.body).unwrap_or_default();
        let header = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"));
        let from_header = header.and_then(|(_, value)| value.trim().parse().ok());
        body.pointer("/parameters/retry_after").and_then(Value::as_u64).or(from_header)
    }
}

/// The script of all platforms.
#[derive(Debug, Default)]
pub(super) struct Answers {
    lines: Vec<ScriptedAnswer>,
    /// Until when a platform refuses a chat; by channel, account, chat and where it counts the method.
    holds: BTreeMap<(Channel, String, String, String), Millis>,
}

impl Answers {
    pub(super) fn push(&mut self, line: ScriptedAnswer) {
        self.lines.push(line);
    }

    /// The answer of the first line that fits and has times left.
    pub(super) fn take(&mut self, call: &Call) -> Option<Answer> {
        let line = self.lines.iter_mut().find(|line| line.fits(call))?;
        line.times = line.times.map(|times| times - 1);
        let answer = line.answer.clone();
        self.lines.retain(|line| line.times != Some(0));
        Some(answer)
    }

    /// The platform's refusal while an earlier 429 to this chat still holds.
    pub(super) fn held(&mut self, call: &Call, now: Millis) -> Option<Reply> {
        self.holds.retain(|_, until| *until > now);
        let until = self.holds.get(&hold_key(call)?)?;
        Some(limited(call.channel, until.since(now)))
    }

    /// Remembers a 429.
    pub(super) fn hold(&mut self, call: &Call, reply: &Reply, now: Millis) {
        let (429, Some(seconds), Some(key)) = (reply.status, reply.retry_after(), hold_key(call)) else { return };
        self.holds.insert(key, now + Duration::from_secs(seconds));
    }
}

impl ScriptedAnswer {
    fn fits(&self, call: &Call) -> bool {
        self.channel.is_none_or(|channel| channel == call.channel)
            && self.account.as_ref().is_none_or(|account| *account == call.account)
            && self.method.as_ref().is_none_or(|method| method == "*" || *method == call.method)
            && self.chat.as_ref().is_none_or(|chat| call.chat.as_ref() == Some(chat))
            && self.conditions.iter().all(|(pointer, value)| call.arguments.pointer(pointer) == Some(value))
    }
}

/// Telegram limits a chat, Slack a method in a channel ("one method limited does not limit others").
fn hold_key(call: &Call) -> Option<(Channel, String, String, String)> {
    let method = if call.channel == Channel::Slack { call.method.clone() } else { String::new() };
    Some((call.channel, call.account.clone(), call.chat.clone()?, method))
}

/// A 429 in the platform's own words; a wait is named in whole seconds.
pub(super) fn limited(channel: Channel, wait: Duration) -> Reply {
    let seconds = u64::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u64::MAX);
    let body = match channel {
        Channel::Telegram => json!({
            "ok": false,
            "error_code": 429,
            "description": format!("Too Many Requests: retry after {seconds}"),
            "parameters": { "retry_after": seconds },
        }),
        Channel::Slack => json!({ "ok": false, "error": "ratelimited" }),
        Channel::Webhook | Channel::Gateway | Channel::Cron | Channel::Cli | Channel::Unknown => {
            json!({ "error": "too many requests" })
        }
    };
    let mut reply = Reply::json(429, &body, false);
    reply.headers.insert("retry-after".to_owned(), seconds.to_string());
    reply
}

/// What a status means where a script gives no body.
pub(super) fn failed(channel: Channel, status: u16) -> Reply {
    let reason = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let reason = reason.unwrap_or("Error");
    match channel {
        _ if status == 429 => limited(channel, Duration::from_secs(1)),
        Channel::Telegram => {
            Reply::json(status, &json!({ "ok": false, "error_code": status, "description": reason }), false)
        }
        Channel::Slack | Channel::Webhook | Channel::Gateway | Channel::Cron | Channel::Cli | Channel::Unknown => {
            let headers = [("content-type".to_owned(), "text/plain".to_owned())].into();
            Reply { status, headers, body: Bytes::from_static(reason.as_bytes()), applied: false }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: &str, chat: &str) -> Call {
        Call {
            channel: Channel::Telegram,
            account: "main".into(),
            method: method.into(),
            chat: Some(chat.into()),
            arguments: json!({ "chat_id": 1, "message_thread_id": 777 }),
        }
    }

    #[test]
    fn a_line_answers_what_fits_as_often_as_it_says() {
        let mut answers = Answers::default();
        let status = |status| Answer { status: Some(status), ..Answer::default() };
        answers.push(ScriptedAnswer {
            method: Some("sendMessage".into()),
            chat: Some("1".into()),
            times: Some(1),
            answer: status(500),
            ..ScriptedAnswer::default()
        });
        answers.push(ScriptedAnswer {
            method: Some("*".into()),
            conditions: [("/message_thread_id".to_owned(), json!(777))].into(),
            answer: status(400),
            ..ScriptedAnswer::default()
        });
        let mut said = |method: &str, chat: &str| answers.take(&call(method, chat)).and_then(|answer| answer.status);
        assert_eq!(said("sendMessage", "2"), Some(400));
        assert_eq!(said("sendMessage", "1"), Some(500));
        assert_eq!(said("sendMessage", "1"), Some(400));
        let mut other = call("sendMessage", "1");
        other.arguments = json!({});
        assert!(answers.take(&other).is_none());
    }

    #[test]
    fn a_429_holds_for_its_chat_until_it_is_over() {
        let mut answers = Answers::default();
        let reply = limited(Channel::Telegram, Duration::from_secs(30));
        answers.hold(&call("sendMessage", "1"), &reply, Millis(0));
        let left = |answers: &mut Answers, chat: &str, now: i64| {
            answers.held(&call("editMessageText", chat), Millis(now)).and_then(|reply| reply.retry_after())
        };
        assert_eq!(left(&mut answers, "1", 500), Some(30));
        assert_eq!(left(&mut answers, "2", 500), None);
        assert_eq!(left(&mut answers, "1", 29_001), Some(1));
        assert_eq!(left(&mut answers, "1", 30_000), None);
    }

    #[test]
    fn a_call_takes_effect_unless_it_fails() {
        let table = [
            (Answer::default(), true),
            (Answer { status: Some(500), ..Answer::default() }, false),
            (Answer { timeout: true, ..Answer::default() }, false),
            (Answer { timeout: true, applied: Some(true), ..Answer::default() }, true),
            (Answer { status: Some(502), applied: Some(true), ..Answer::default() }, true),
        ];
        for (answer, applied) in table {
            assert_eq!(answer.is_applied(), applied, "{answer:?}");
        }
    }
}
