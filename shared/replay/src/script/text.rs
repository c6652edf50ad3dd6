//! A text as a script may write it: plain, repeated, or in pieces.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The most bytes that a generated text may have: a slip of the pen must not eat the machine's memory.
const MAX_BYTES: usize = 64 << 20;

/// A text: `"x"`, `{"repeat": "x", "times": 3}` or a list of texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text(pub String);

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        generate(&value).map(Self).ok_or_else(|| {
            D::Error::custom(format_args!(
                "{value} is no text; allowed: a text, {{\"repeat\": text, \"times\": n}} (up to 64 MiB), or a list of texts"
            ))
        })
    }
}

/// The text that `value` describes, if it describes one.
pub(super) fn generate(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(pieces) => pieces.iter().map(generate).collect(),
        Value::Object(fields) if fields.len() == 2 => {
            let times = usize::try_from(fields.get("times")?.as_u64()?).ok()?;
            let piece = generate(fields.get("repeat")?)?;
            (piece.len().checked_mul(times)? <= MAX_BYTES).then(|| piece.repeat(times))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_generated() {
        let table = [
            (json!("x"), Some("x")),
            (json!({ "repeat": "ab", "times": 3 }), Some("ababab")),
            (json!(["a", { "repeat": ["b", "c"], "times": 2 }, []]), Some("abcbc")),
            (json!({ "repeat": "x", "times": 0 }), Some("")),
            (json!({ "repeat": "x", "times": -1 }), None),
            (json!({ "repeat": "x", "times": 1_u64 << 40 }), None),
            (json!({ "repeat": "x" }), None),
            (json!({ "repeat": "x", "times": 1, "then": "y" }), None),
            (json!(["a", 1]), None),
            (json!(null), None),
        ];
        for (value, expected) in table {
            assert_eq!(generate(&value).as_deref(), expected, "{value}");
        }
    }
}
