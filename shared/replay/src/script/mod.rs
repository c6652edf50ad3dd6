//! Replay files: one JSON object a line, whose first key says what it is. Blank lines and lines that start with `#` are
//! skipped.
//!
//! A file is read whole before anything of it is played. What it does not know it refuses: an unknown line, key or value
//! is a [`ScriptError`] with file, line, field and what is allowed there; so is a line whose feature this version does
//! not have. Reading has no effect and needs no clock.

mod deliver;
mod faults;
mod line;
mod platform;
mod session;
mod text;
mod tool;

use std::fmt;

use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

pub use self::deliver::{Body, Deliver, Request, Sign};
pub use self::line::{ChatType, Feature, FileLine, Header, Invoke, Line, Say, Tap};
pub use self::platform::PlatformLine;
pub use self::session::SessionLine;
pub use self::text::Text;
pub use self::tool::{Policy, Risk, ToolAnswer, ToolLine};

/// A replay file.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// The name it was read under, for messages.
    pub name: String,
    /// The first line, or its defaults.
    pub header: Header,
    /// The other lines, in order.
    pub lines: Vec<Numbered>,
}

/// A line and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbered {
    /// Its number in the file, from 1.
    pub number: usize,
    /// What it says.
    pub line: Line,
}

/// Why a file is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ScriptError {
    /// The file's name.
    pub file: String,
    /// The line's number, from 1.
    pub line: usize,
    /// The field, as a path from the line's first key; empty where it is the line itself.
    pub field: String,
    /// What is wrong with it, and what is allowed.
    pub message: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: ", self.file, self.line)?;
        if !self.field.is_empty() {
            write!(formatter, "{}: ", self.field)?;
        }
        formatter.write_str(&self.message)
    }
}

/// What is wrong with a line, before it is known where the line stands.
#[derive(Debug)]
struct Problem {
    field: String,
    message: String,
}

impl Problem {
    fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl Script {
    /// Reads the file called `name`; `features` are those that this version has.
    ///
    /// # Errors
    /// The first [`ScriptError`] in it.
    pub fn parse(name: &str, source: &str, features: &[Feature]) -> Result<Self, ScriptError> {
        let mut script = Self { name: name.to_owned(), header: Header::default(), lines: Vec::new() };
        let mut is_first = true;
        for (index, text) in source.lines().enumerate() {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let number = index + 1;
            let read = read_line(text).and_then(|line| available(line, features));
            let line = read.and_then(|line| match line {
                Line::Replay(_) if !is_first => Err(Problem::new("replay", "may only stand in the first line")),
                line => Ok(line),
            });
            is_first = false;
            match line {
                Ok(Line::Replay(header)) => script.header = header,
                Ok(line) => script.lines.push(Numbered { number, line }),
                Err(Problem { field, message }) => {
                    return Err(ScriptError { file: name.to_owned(), line: number, field, message });
                }
            }
        }
        Ok(script)
    }
}

fn available(line: Line, features: &[Feature]) -> Result<Line, Problem> {
    match line.feature().filter(|feature| !features.contains(feature)) {
        Some(feature) => {
            let message = format!("this version has no {} yet, which the line needs", feature.name());
            Err(Problem::new(line.key(), message))
        }
        None => Ok(line),
    }
}

/// The keys of a line, in order.
struct Entries(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;

        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("one JSON object a line")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries: Vec<(String, Box<RawValue>)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if entries.iter().any(|(known, _)| *known == key) {
                        return Err(A::Error::custom(format_args!("duplicate field `{key}`")));
                    }
                    entries.push((key, value));
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(EntriesVisitor)
    }
}

fn read_line(text: &str) -> Result<Line, Problem> {
    let Entries(entries) =
        serde_json::from_str(text).map_err(|error| Problem::new("", format!("not one JSON object: {error}")))?;
    let Some((key, value)) = entries.first() else {
        return Err(Problem::new("", format!("an empty object; the first key is one of {}", line::keys())));
    };
    // The header's values stand beside its key, every other line's inside it.
    if key == "replay" {
        return read::<Header>("", text)?.checked().map(Line::Replay);
    }
    let line = line::read(key, value)?;
    match entries.get(1) {
        Some((beside, _)) => Err(Problem::new(beside, format!("nothing may stand beside `{key}`"))),
        None => Ok(line),
    }
}

/// Reads `json` as the value of `key`.
fn read<Value: DeserializeOwned>(key: &str, json: &str) -> Result<Value, Problem> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let field = match path.as_str() {
            "." => key.to_owned(),
            _ if key.is_empty() => path,
            _ if path.starts_with('[') => format!("{key}{path}"),
            _ => format!("{key}.{path}"),
        };
        let message = error.inner().to_string();
        // The position is one in the value, not in the line.
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
        Problem::new(field, message)
    })
}

/// Seconds as a script writes them.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<std::time::Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    std::time::Duration::try_from_secs_f64(seconds)
        .map_err(|_| D::Error::custom(format_args!("{seconds} is no time; allowed: seconds from 0 on")))
}

/// The same where it may be absent.
fn optional_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<std::time::Duration>, D::Error> {
    seconds(deserializer).map(Some)
}

/// An id, written as a number or as a text.
fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::String(text) if !text.is_empty() => Ok(text),
        serde_json::Value::Number(number) if !number.is_f64() => Ok(number.to_string()),
        other => Err(D::Error::custom(format_args!("{other} is no id; allowed: a number or a text"))),
    }
}

/// The same where it may be absent.
fn optional_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    id(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
