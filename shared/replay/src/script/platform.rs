//! `platform`: a platform's answer to the next call that fits, or a file behind a reference.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;
use turnlock_domain::event::Channel;

use super::deliver::base64;
use super::{Problem, optional_id, read as read_value, seconds};
use crate::fakes::{Answer, ScriptedAnswer};

/// The method that stands for a file.
const FILE: &str = "file";

/// What the line says.
#[derive(Debug, Clone, PartialEq)]
pub enum PlatformLine {
    /// An answer.
    Answer(ScriptedAnswer),
    /// A file behind a reference.
    File {
        /// Whose platform it lies on.
        channel: Channel,
        /// The reference.
        file: String,
        /// Its content.
        content: Bytes,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    channel: Option<Channel>,
    account: Option<String>,
    method: Option<String>,
    #[serde(default, deserialize_with = "optional_id")]
    chat: Option<String>,
    #[serde(default, rename = "where")]
    conditions: BTreeMap<String, Value>,
    #[serde(default)]
    times: Times,
    #[serde(default, deserialize_with = "seconds")]
    delay: Duration,
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<Value>,
    body_base64: Option<String>,
    applied: Option<bool>,
    #[serde(default)]
    timeout: bool,
    file: Option<String>,
}

/// How many calls a line answers.
struct Times(Option<u64>);

impl Default for Times {
    fn default() -> Self {
        Self(Some(1))
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value == "all" {
            return Ok(Self(None));
        }
        let times = value.as_u64().filter(|times| *times > 0);
        let error = || D::Error::custom(format_args!("{value} is no number of calls; allowed: 1, 2, … or \"all\""));
        times.map(|times| Self(Some(times))).ok_or_else(error)
    }
}

/// Reads the line.
pub(super) fn read(key: &str, json: &str) -> Result<PlatformLine, Problem> {
    let fields: Fields = read_value(key, json)?;
    if fields.body.is_some() && fields.body_base64.is_some() {
        return Err(Problem::new(key, "allowed: one of `body` and `body_base64`"));
    }
    let body = match (&fields.body, &fields.body_base64) {
        (Some(value), _) => Some(Bytes::from(value.to_string())),
        (None, Some(encoded)) => Some(base64(encoded, &format!("{key}.body_base64"))?),
        (None, None) => None,
    };
    if let Some(pointer) = fields.conditions.keys().find(|pointer| !pointer.starts_with('/')) {
        let field = format!("{key}.where.{pointer}");
        return Err(Problem::new(field, "not a JSON pointer; allowed: a path that starts with `/`"));
    }
    if fields.status.is_some_and(|status| !(100..=599).contains(&status)) {
        return Err(Problem::new(format!("{key}.status"), "allowed: an HTTP status, 100 to 599"));
    }
    match (&fields.method, fields.file) {
        (Some(method), Some(file)) if method == FILE => {
            let content = body.ok_or_else(|| Problem::new(key, "a file needs `body` or `body_base64`"))?;
            let channel = fields.channel.unwrap_or(Channel::Telegram);
            Ok(PlatformLine::File { channel, file, content })
        }
        (_, Some(_)) => Err(Problem::new(format!("{key}.file"), "allowed only with the method `file`")),
        (_, None) => Ok(PlatformLine::Answer(ScriptedAnswer {
            channel: fields.channel,
            account: fields.account,
            method: fields.method,
            chat: fields.chat,
            conditions: fields.conditions,
            times: fields.times.0,
            answer: Answer {
                delay: fields.delay,
                status: fields.status,
                headers: fields.headers,
                body,
                applied: fields.applied,
                timeout: fields.timeout,
            },
        })),
    }
}
