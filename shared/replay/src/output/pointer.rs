//! `expect`: values at JSON pointers, and how they differ.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

/// The end of a pointer that means the length of what stands before it.
const LENGTH: &str = "/#";

/// The most characters of a value that a difference shows.
const MAX_SHOWN: usize = 400;

/// What was wanted at a pointer, and what is there.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The pointer.
    pub pointer: String,
    /// What was wanted.
    pub want: Value,
    /// What is there; nothing where the pointer leads nowhere.
    pub got: Option<Value>,
    /// Where the pointer leads nowhere: what the last place on its way holds.
    pub nearest: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", self.pointer)?;
        writeln!(formatter, "  want {}", shown(&self.want))?;
        match (&self.got, &self.nearest) {
            (Some(got), _) => write!(formatter, "  got  {}", shown(got)),
            (None, Some(nearest)) => write!(formatter, "  got  nothing: {nearest}"),
            (None, None) => write!(formatter, "  got  nothing"),
        }
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
        None => text,
    }
}

/// The value at a pointer; one that ends in `/#` means the length of a list, map or text.
#[must_use]
pub fn lookup<'a>(root: &'a Value, pointer: &str) -> Option<Cow<'a, Value>> {
    let Some(parent) = pointer.strip_suffix(LENGTH) else {
        return root.pointer(pointer).map(Cow::Borrowed);
    };
    let length = match root.pointer(parent)? {
        Value::Array(list) => list.len(),
        Value::Object(map) => map.len(),
        Value::String(text) => text.chars().count(),
        Value::Null | Value::Bool(_) | Value::Number(_) => return None,
    };
    Some(Cow::Owned(json!(length)))
}

/// What differs from what is wanted. A wanted `null` is also met by nothing at all.
#[must_use]
pub fn compare(root: &Value, wanted: &BTreeMap<String, Value>) -> Vec<Difference> {
    let differs = wanted.iter().filter_map(|(pointer, want)| {
        let got = lookup(root, pointer);
        let holds = got.as_ref().map_or(want.is_null(), |got| same(want, got));
        (!holds).then(|| Difference {
            pointer: pointer.clone(),
            want: want.clone(),
            nearest: if got.is_none() { nearest(root, pointer) } else { None },
            got: got.map(Cow::into_owned),
        })
    });
    differs.collect()
}

/// Equality in which 1 and 1.0 are one number, as they are one number in JSON.
fn same(want: &Value, got: &Value) -> bool {
    match (want, got) {
        (Value::Number(want), Value::Number(got)) => want == got || want.as_f64() == got.as_f64(),
        (Value::Array(want), Value::Array(got)) => {
            want.len() == got.len() && want.iter().zip(got).all(|(want, got)| same(want, got))
        }
        (Value::Object(want), Value::Object(got)) => {
            want.len() == got.len() && want.iter().all(|(key, want)| got.get(key).is_some_and(|got| same(want, got)))
        }
        _ => want == got,
    }
}

/// How far a pointer leads, and what is there.
fn nearest(root: &Value, pointer: &str) -> Option<String> {
    let mut known = pointer;
    while let Some((parent, _)) = known.rsplit_once('/') {
        known = parent;
        let Some(value) = root.pointer(known) else { continue };
        let place = if known.is_empty() { "the output" } else { known };
        let content = match value {
            Value::Array(list) => format!("has {} entries", list.len()),
            Value::Object(map) if map.is_empty() => "is empty".to_owned(),
            Value::Object(map) => {
                let keys: Vec<_> = map.keys().map(String::as_str).collect();
                format!("has {}", keys.join(", "))
            }
            other => format!("is {}", shown(other)),
        };
        return Some(format!("{place} {content}"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output() -> Value {
        json!({
            "chats": { "telegram:main:1": { "messages": [{ "text": "hü", "edits": 1 }] }, "slack:main:T2/C1": {} },
            "elapsed": 1.0,
        })
    }

    #[test]
    fn pointers_lead_to_values_and_lengths() {
        let table = [
            ("/chats/telegram:main:1/messages/0/text", Some(json!("hü"))),
            ("/chats/slack:main:T2~1C1", Some(json!({}))),
            ("/chats/#", Some(json!(2))),
            ("/chats/telegram:main:1/messages/#", Some(json!(1))),
            ("/chats/telegram:main:1/messages/0/text/#", Some(json!(2))),
            ("/elapsed/#", None),
            ("/nothing/#", None),
            ("/chats/telegram:main:1/messages/1", None),
        ];
        for (pointer, expected) in table {
            assert_eq!(lookup(&output(), pointer).map(Cow::into_owned), expected, "{pointer}");
        }
    }

    #[test]
    fn differences_say_what_was_wanted_and_what_is_there() {
        let wanted = json!({
            "/chats/telegram:main:1/messages/0": { "edits": 1.0, "text": "hü" },
            "/elapsed": 1,
            "/chats/telegram:main:1/messages/1": null,
            "/chats/telegram:main:1/messages/0/edits": 2,
            "/chats/telegram:main:1/messages/3/text": "x",
            "/chats/telegram:main:2": {},
            "/jobs/#": 0,
        });
        let wanted: BTreeMap<String, Value> = serde_json::from_value(wanted).unwrap();
        let differences: Vec<_> = compare(&output(), &wanted).iter().map(Difference::to_string).collect();
        assert_eq!(
            differences,
            [
                "/chats/telegram:main:1/messages/0/edits\n  want 2\n  got  1",
                "/chats/telegram:main:1/messages/3/text\n  want \"x\"\n  got  nothing: /chats/telegram:main:1/messages has 1 entries",
                "/chats/telegram:main:2\n  want {}\n  got  nothing: /chats has slack:main:T2/C1, telegram:main:1",
                "/jobs/#\n  want 0\n  got  nothing: the output has chats, elapsed",
            ]
        );
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let text = shown(&json!("ü".repeat(1_000)));
        assert!(text.ends_with("… (1002 characters)") && text.chars().count() < 450, "{text}");
    }
}
