//! Reading other people's JSON: only the fields that are needed, each on its own, so that a new, absent or odd field
//! never fails the rest.

use serde_json::{Map, Value};
use turnlock_domain::text;

use crate::ingress::Refusal;

/// The object that `body` is, with lone surrogates repaired by the one rule of `turnlock_domain::text`.
pub(crate) fn object(body: &[u8]) -> Result<Value, Refusal> {
    let value = text::parse_json(body)?;
    if value.is_object() { Ok(value) } else { Err(Refusal::Invalid { field: "body", expected: "a JSON object" }) }
}

/// The text at `pointer`; absent, empty or another type = none.
pub(crate) fn string<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str).filter(|string| !string.is_empty())
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
/// cleaned.
pub(crate) fn metadata(value: Option<&Value>) -> Map<String, Value> {
    let Some(Value::Object(object)) = value else { return Map::new() };
    object.iter().filter(|(key, _)| !key.starts_with('_')).map(|(key, value)| (key.clone(), cleaned(value))).collect()
}

fn cleaned(value: &Value) -> Value {
    match value {
        Value::Object(_) => Value::Object(metadata(Some(value))),
        Value::Array(items) => Value::Array(items.iter().map(cleaned).collect()),
        Value::String(string) => Value::String(text::clean(string).into_owned()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Facts for an event's metadata, those that are known.
pub(crate) fn facts<const N: usize>(facts: [(&str, Option<Value>); N]) -> Map<String, Value> {
    facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), cleaned(&value?)))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn private_keys_are_stripped_at_every_depth() {
        let given = json!({ "_drop": true, "a": { "_b": 1, "c": [{ "_d": 2, "e": 3 }] } });
        assert_eq!(Value::Object(metadata(Some(&given))), json!({ "a": { "c": [{ "e": 3 }] } }));
        assert_eq!(metadata(Some(&json!("text"))), Map::new());
    }
}
