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
    let mut item: Item = serde_dynamo::to_item(value).map_err(|error| StoreError::corrupt(kind, &key.0, error))?;
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
    serde_dynamo::from_item(item).map_err(|error| StoreError::corrupt(kind, id, error))
}

/// The text of an attribute.
pub(crate) fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name).and_then(|value| value.as_s().ok()).map(String::as_str)
}
