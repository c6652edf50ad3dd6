//! Reading other people's JSON: only the fields that are needed, each on its own, so that a new, absent or odd field
//! never fails the rest.

use serde_json::{Map, Value};
use turnlock_domain::text;

use crate::ingress::Refusal;

/// The longest name of a chat, a sender or a thread that a platform may give, in bytes: theirs have some twenty.
const MAX_ID: usize = 128;

/// The most bytes of JSON that metadata from outside may have.
pub(crate) const MAX_METADATA: usize = 16 << 10;

/// The most levels that metadata from outside may have. Around it stand an event and its envelope, and a parser's limit.
const MAX_DEPTH: usize = 32;

/// The longest text of one fact, in characters.
const MAX_FACT: usize = 1000;

/// The object that `body` is, with lone surrogates repaired by the one rule of `turnlock_domain::text`.
pub(crate) fn object(body: &[u8]) -> Result<Value, Refusal> {
    let value = text::parse_json(body)?;
    if value.is_object() { Ok(value) } else { Err(Refusal::Invalid { field: "body", expected: "a JSON object" }) }
}

/// The text at `pointer`; absent, empty or another type = none.
pub(crate) fn string<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str).filter(|string| !string.is_empty())
}

/// The platform's own name for something at `pointer`. What no platform would name it is none: it could not stand in a
/// key or in a queue.
pub(crate) fn id<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    string(value, pointer).filter(|id| is_id(id))
}

/// Whether `text` may be a platform's name for something.
pub(crate) fn is_id(text: &str) -> bool {
    (1..=MAX_ID).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

/// The whole number at `pointer`.
pub(crate) fn integer(value: &Value, pointer: &str) -> Option<i64> {
    value.pointer(pointer).and_then(Value::as_i64)
}

/// Whether `true` stands at `pointer`.
pub(crate) fn flag(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer).and_then(Value::as_bool).unwrap_or(false)
}

/// The elements of the list at `pointer`.
pub(crate) fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// An object from outside as metadata: keys that start with `_` are ours, at every depth, and are taken out; texts are
/// cleaned, keys too. None where it is larger or deeper than an event should carry: what does not parse inside of an
/// event would be taken and never answered.
pub(crate) fn metadata(value: Option<&Value>) -> Option<Map<String, Value>> {
    if value.is_some_and(|value| depth(value) > MAX_DEPTH) {
        return None;
    }
    let metadata = own_keys_out(value);
    (Value::Object(metadata.clone()).to_string().len() <= MAX_METADATA).then_some(metadata)
}

fn own_keys_out(value: Option<&Value>) -> Map<String, Value> {
    let Some(Value::Object(object)) = value else { return Map::new() };
    let named = object.iter().map(|(key, value)| (text::clean(key), value));
    named.filter(|(key, _)| !key.starts_with('_')).map(|(key, value)| (key.into_owned(), cleaned(value))).collect()
}

/// How many levels of lists and objects `value` has. What was parsed has 128 at most.
fn depth(value: &Value) -> usize {
    match value {
        Value::Object(object) => 1 + object.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn cleaned(value: &Value) -> Value {
    match value {
        Value::Object(_) => Value::Object(own_keys_out(Some(value))),
        Value::Array(items) => Value::Array(items.iter().map(cleaned).collect()),
        Value::String(string) => Value::String(text::clean(string).into_owned()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Facts for an event's metadata, those that are known: single values, a long text cut.
pub(crate) fn facts<const N: usize>(facts: [(&str, Option<Value>); N]) -> Map<String, Value> {
    facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), fact(value?)?))).collect()
}

fn fact(value: Value) -> Option<Value> {
    match value {
        Value::String(string) => Some(Value::String(text::cut(&text::clean(&string), MAX_FACT).to_owned())),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn private_keys_are_stripped_at_every_depth() {
        let given = json!({ "_drop": true, "a": { "_b": 1, "c": [{ "_d": 2, "e": 3 }] } });
        assert_eq!(metadata(Some(&given)).map(Value::Object), Some(json!({ "a": { "c": [{ "e": 3 }] } })));
        assert_eq!(metadata(Some(&json!("text"))), Some(Map::new()));
        // A character that is cleaned away does not hide what the key begins with.
        assert_eq!(metadata(Some(&json!({ "\u{ffff}_drop": true }))), Some(Map::new()));
    }

    #[test]
    fn metadata_is_bounded_in_size_and_depth() {
        let nested = |levels| json!({ "in": (1..levels).fold(json!(1), |inner, _| json!([inner])) });
        assert!(metadata(Some(&nested(MAX_DEPTH))).is_some());
        assert_eq!(metadata(Some(&nested(MAX_DEPTH + 1))), None);
        assert_eq!(metadata(Some(&json!({ "a": "x".repeat(MAX_METADATA) }))), None);
        // Shorter than what it is written out as.
        assert_eq!(metadata(Some(&json!({ "a": vec![1e15; 1000] }))), None);
    }

    #[test]
    fn a_fact_is_a_single_value_of_bounded_length() {
        let facts = facts([
            ("long", Some(json!("é".repeat(5000)))),
            ("list", Some(json!([1]))),
            ("number", Some(json!(5))),
            ("absent", None),
        ]);
        assert_eq!(Value::Object(facts), json!({ "long": "é".repeat(MAX_FACT), "number": 5 }));
    }

    #[test]
    fn an_id_is_what_a_platform_would_give() {
        let value = json!({ "a": "C0CHAN", "b": "", "c": "a b", "d": "é", "e": "x".repeat(MAX_ID + 1), "f": 5 });
        let ids: Vec<_> = ["/a", "/b", "/c", "/d", "/e", "/f"].map(|pointer| id(&value, pointer)).into();
        assert_eq!(ids, [Some("C0CHAN"), None, None, None, None, None]);
    }
}
