//! A tool's input: the JSON Schema that a model is shown, and how what it sends is read. What does not fit becomes a
//! sentence that names the field and what belongs there, and repeats no value.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::ToolError;

/// The schema of `T`, without references: not every model follows them.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(schema) = schema.as_object_mut() {
        // The type's name and comment are ours; the tool's own name and description stand beside the schema.
        schema.remove("title");
        schema.remove("description");
        // An input without fields has no list of them, and some providers refuse a schema without one.
        schema.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// `input` as `T`. Models send `null` where there is nothing to say.
pub(crate) fn read<T: DeserializeOwned>(tool: &str, input: Value) -> Result<T, ToolError> {
    let input = if input.is_null() { json!({}) } else { input };
    serde_path_to_error::deserialize(input).map_err(|error| {
        let path = error.path().to_string();
        let wrong = without_values(&error.inner().to_string());
        let place = if path == "." { String::new() } else { format!("`{path}`: ") };
        ToolError::ForModel(format!(
            "The input does not fit the tool `{tool}`: {place}{wrong}. Correct it and call again."
        ))
    })
}

/// What serde says, as far as it holds none of the values it was given.
fn without_values(message: &str) -> String {
    if message.starts_with("missing field") {
        return message.to_owned();
    }
    match message.rsplit_once(", expected ") {
        Some((_, expected)) => format!("expected {expected}"),
        None => "the value cannot be used".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Input {
        /// How many.
        count: u8,
        place: Option<Place>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Place {
        floor: i32,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Nothing {}

    fn refusal(input: Value) -> String {
        read::<Input>("order", input).expect_err("does not fit").to_string()
    }

    #[test]
    fn what_does_not_fit_is_named_without_its_value() {
        let table = [
            (json!({}), "missing field `count`"),
            (json!(null), "missing field `count`"),
            (json!({"count": "secret"}), "`count`: expected u8"),
            (json!({"count": 999}), "`count`: expected u8"),
            (json!({"count": 1, "place": {"floor": "secret"}}), "`place.floor`: expected i32"),
            (json!(["secret"]), "expected u8"),
        ];
        for (input, expected) in table {
            let sentence = refusal(input.clone());
            assert!(sentence.contains(expected), "{input}: {sentence}");
            assert!(!sentence.contains("secret") && !sentence.contains("999"), "{sentence}");
        }
        let fits: Input = read("order", json!({"count": 2, "extra": true})).expect("fits");
        assert_eq!((fits.count, fits.place.map(|place| place.floor)), (2, None));
    }

    #[test]
    fn a_schema_is_an_object_without_references() {
        assert_eq!(schema::<Nothing>(), json!({"type": "object", "properties": {}}));
        let schema = schema::<Input>();
        assert_eq!(schema["properties"]["count"]["description"], "How many.");
        assert!(!schema.to_string().contains("$ref"), "{schema}");
    }
}
