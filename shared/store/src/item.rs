//! Items to and from attribute values.

use aws_sdk_dynamodb::types::AttributeValue;
use serde::Serialize;
use serde::de::DeserializeOwned;
use turnlock_domain::time::{Millis, Seconds};

use crate::error::StoreError;
use crate::keys::{self, Key};
use crate::request::Item;

/// A text attribute.
pub(crate) fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

/// A number attribute.
pub(crate) fn n(number: impl std::fmt::Display) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// A time attribute.
pub(crate) fn ms(at: Millis) -> AttributeValue {
    n(at.0)
}

/// `value` as an item under `key`, with a TTL if it may be collected. `kind` names it in errors.
pub(crate) fn to_item(
    kind: &'static str,
    key: Key,
    value: &impl Serialize,
    ttl: Option<Seconds>,
) -> Result<Item, StoreError> {
    let mut item: Item =
        serde_dynamo::to_item(value).map_err(|_| StoreError::corrupt(kind, &key.0, "it cannot be written"))?;
    item.insert(keys::PK.to_owned(), s(key.0));
    item.insert(keys::SK.to_owned(), s(key.1));
    if let Some(Seconds(at)) = ttl {
        item.insert(keys::TTL.to_owned(), n(at));
    }
    Ok(item)
}

/// An item as the value it was made from. Attributes that this version does not know are passed over.
pub(crate) fn from_item<T: DeserializeOwned>(kind: &'static str, item: Item) -> Result<T, StoreError> {
    let id = text(&item, keys::PK).unwrap_or_default().to_owned();
    // The parser's own words repeat values, which may be what somebody said.
    serde_dynamo::from_item(item)
        .map_err(|_| StoreError::corrupt(kind, id, "an attribute is missing or of another type"))
}

/// The text of an attribute.
pub(crate) fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name).and_then(|value| value.as_s().ok()).map(String::as_str)
}

/// What is wrong with JSON, and where: never its text, which serde's own message repeats.
pub(crate) fn json_fault(error: &serde_json::Error) -> String {
    format!("its JSON is wrong at line {} column {} ({:?})", error.line(), error.column(), error.classify())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Number {
        #[expect(dead_code, reason = "only the type matters")]
        number: u32,
    }

    #[test]
    fn an_item_that_does_not_parse_is_named_and_not_quoted() {
        let item = Item::from([("pk".to_owned(), s("S#x")), ("number".to_owned(), s("what somebody said"))]);
        let error = from_item::<Number>("turn", item).unwrap_err().to_string();
        assert!(error.contains("S#x") && !error.contains("somebody"), "{error}");
        let error = serde_json::from_str::<Number>(r#"{"number": "what somebody said"}"#).unwrap_err();
        assert!(!json_fault(&error).contains("somebody"), "{}", json_fault(&error));
    }
}
