//! Values of one kind each: what is allowed is said where something else stands.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::Value;

use crate::Allow;

/// Any text.
pub(super) fn text(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err("must be a text".to_owned()),
    }
}

/// A text that is not blank.
pub(super) fn word(value: Value) -> Result<String, String> {
    let text = text(value)?;
    if text.trim().is_empty() { Err("must not be empty".to_owned()) } else { Ok(text) }
}

/// A list of texts.
pub(super) fn texts(value: Value) -> Result<Vec<String>, String> {
    let Value::Array(items) = value else { return Err("must be a list of texts, e.g. [\"one\", \"two\"]".to_owned()) };
    items.into_iter().map(word).collect()
}

/// `true` or `false`.
pub(super) fn flag(value: Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "must be true or false".to_owned())
}

/// A whole number of `range`.
pub(super) fn whole<T>(range: RangeInclusive<T>) -> impl FnOnce(Value) -> Result<T, String>
where
    T: TryFrom<u64> + PartialOrd + std::fmt::Display,
{
    move |value| {
        let number = value.as_u64().and_then(|number| T::try_from(number).ok());
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| format!("must be a whole number from {} to {}", range.start(), range.end()))
    }
}

/// A number that is not negative.
pub(super) fn amount(value: Value) -> Result<f64, String> {
    value.as_f64().filter(|number| *number >= 0.0).ok_or_else(|| "must be a number, 0 or more".to_owned())
}

/// An address of an HTTP server.
pub(super) fn address(value: Value) -> Result<String, String> {
    let text = text(value)?;
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') && !text.contains(char::is_whitespace) => {
            Ok(text.trim_end_matches('/').to_owned())
        }
        _ => Err("must be an address that begins with https:// or http://".to_owned()),
    }
}

/// One of a few words.
pub(super) fn one_of<T: Copy>(choices: &[(&'static str, T)]) -> impl Fn(Value) -> Result<T, String> {
    move |value| {
        let chosen = value.as_str().and_then(|text| choices.iter().find(|(name, _)| *name == text));
        chosen.map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<String> = choices.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            format!("must be one of {}", names.join(", "))
        })
    }
}

/// A duration of `range`, e.g. `"1h"`, `"90s"` or `"1h 30m"`.
pub(super) fn duration(range: RangeInclusive<Duration>) -> impl FnOnce(Value) -> Result<Duration, String> {
    move |value| {
        let duration = value.as_str().and_then(parse_duration);
        duration.filter(|duration| range.contains(duration)).ok_or_else(|| {
            let (least, most) = (range.start().as_secs(), range.end().as_secs());
            format!("must be a duration such as \"1h\", \"15m\" or \"90s\", from {least} s to {most} s")
        })
    }
}

fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..digits].parse().ok()?;
        let unit_end = rest[digits..].find(|c: char| !c.is_ascii_alphabetic()).map_or(rest.len(), |at| digits + at);
        let seconds = match &rest[digits..unit_end] {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return None,
        };
        total = total.checked_add(Duration::from_secs(number.checked_mul(seconds)?))?;
        rest = rest[unit_end..].trim_start();
    }
    Some(total)
}

/// Who is allowed, by ids that fit `is_id`.
pub(super) fn allow(is_id: fn(&str) -> bool, example: &'static str) -> impl FnOnce(Value) -> Result<Allow, String> {
    move |value| {
        let wrong = || format!("must be a list of ids, e.g. [{example}], or [\"*\"] for everybody");
        let Value::Array(items) = value else { return Err(wrong()) };
        let mut ids = BTreeSet::new();
        for item in items {
            let id = match item {
                Value::String(id) => id,
                Value::Number(id) => id.to_string(),
                _ => return Err(wrong()),
            };
            if id != "*" && !is_id(&id) {
                return Err(wrong());
            }
            ids.insert(id);
        }
        Ok(if ids.contains("*") { Allow::Everybody } else { Allow::Only(ids) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        let table = [
            ("1h", Some(3600)),
            ("90s", Some(90)),
            ("1h30m", Some(5400)),
            (" 1d 2h ", Some(93_600)),
            ("", None),
            ("90", None),
            ("h", None),
            ("-1s", None),
            ("1.5h", None),
            ("1 h", None),
            ("1w", None),
            ("99999999999999999999s", None),
            ("9999999999999999999d", None),
        ];
        for (text, want) in table {
            assert_eq!(parse_duration(text), want.map(Duration::from_secs), "{text:?}");
        }
    }
}
