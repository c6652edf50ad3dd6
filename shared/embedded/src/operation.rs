//! The operations that are answered, one line each, and how a request's JSON becomes a call and its outcome JSON again.
//! The list is what this project's store uses; a new line is all that another operation needs.

use dynoxide::{Database, DynoxideError};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The part of `X-Amz-Target` before the operation's name.
const TARGET_PREFIX: &str = "DynamoDB_20120810.";

macro_rules! operations {
    ($($variant:ident => $method:ident,)+) => {
        /// An operation of DynamoDB that the embedded one carries out.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Operation {
            $(
                #[doc = concat!("`", stringify!($variant), "`.")]
                $variant,
            )+
        }

        impl Operation {
            /// Its name as DynamoDB spells it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)+
                }
            }

            /// The operation of that name, if it is one of those that are answered.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $(stringify!($variant) => Some(Self::$variant),)+
                    _ => None,
                }
            }

            /// Carries the request out; the answer is JSON.
            pub(crate) fn run(self, database: &Database, body: &[u8]) -> Result<Vec<u8>, DynoxideError> {
                match self {
                    $(Self::$variant => serialize(&database.$method(deserialize(body)?)?),)+
                }
            }
        }
    };
}

operations! {
    CreateTable => create_table,
    DescribeTable => describe_table,
    UpdateTimeToLive => update_time_to_live,
    PutItem => put_item,
    GetItem => get_item,
    UpdateItem => update_item,
    DeleteItem => delete_item,
    Query => query,
    Scan => scan,
    BatchGetItem => batch_get_item,
    BatchWriteItem => batch_write_item,
    TransactWriteItems => transact_write_items,
    TransactGetItems => transact_get_items,
}

impl Operation {
    /// The operation that an `X-Amz-Target` header names.
    #[must_use]
    pub fn from_target(target: &str) -> Option<Self> {
        target.strip_prefix(TARGET_PREFIX).and_then(Self::from_name)
    }
}

fn deserialize<Request: DeserializeOwned>(body: &[u8]) -> Result<Request, DynoxideError> {
    serde_json::from_slice(body).map_err(|error| refusal(&error.to_string()))
}

/// What DynamoDB says to a body that could not be read. The crate checks values while it reads them and marks by a prefix
/// which error a failed check is; only its own server, which needs a port, takes the mark off.
fn refusal(message: &str) -> DynoxideError {
    let (mark, text) = message.split_once(':').unwrap_or(("", message));
    let text = without_position(text);
    match mark {
        "VALIDATION" | "VALIDATION_REQUEST" | "VALIDATION_AS_READ" => DynoxideError::ValidationException(text),
        "SERIALIZATION" | "SERIALIZATION_AS_READ" => DynoxideError::SerializationException(text),
        _ if message.contains("empty AttributeValue") => DynoxideError::ValidationException(EMPTY_VALUE.to_owned()),
        _ if VALIDATIONS.iter().any(|part| message.contains(part)) => {
            DynoxideError::ValidationException(without_position(message))
        }
        _ => DynoxideError::SerializationException(message.to_owned()),
    }
}

fn without_position(text: &str) -> String {
    text.rsplit_once(" at line ").map_or(text, |(text, _)| text).to_owned()
}

/// What DynamoDB calls a failed validation although it is found while reading.
const VALIDATIONS: [&str; 4] = ["missing field", "unknown variant", "invalid type: null", "Supplied AttributeValue"];

const EMPTY_VALUE: &str = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes";

fn serialize(response: &impl Serialize) -> Result<Vec<u8>, DynoxideError> {
    serde_json::to_vec(response).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_names_its_operation() {
        let table = [
            ("DynamoDB_20120810.GetItem", Some(Operation::GetItem)),
            ("DynamoDB_20120810.TransactWriteItems", Some(Operation::TransactWriteItems)),
            ("DynamoDB_20120810.DeleteTable", None),
            ("DynamoDBStreams_20120810.GetRecords", None),
            ("GetItem", None),
            ("", None),
        ];
        for (target, expected) in table {
            assert_eq!(Operation::from_target(target), expected, "{target}");
        }
    }

    #[test]
    fn a_value_that_breaks_a_rule_is_a_validation_exception() {
        let database = Database::memory().unwrap();
        let table = [
            (
                Operation::GetItem,
                r#"{"TableName": "t", "Key": {"pk": {"S": "a"}}}"#,
                "length greater than or equal to 3",
            ),
            (Operation::GetItem, r#"{"TableName": "turnlock"}"#, "ey"),
            (
                Operation::PutItem,
                r#"{"TableName": "turnlock", "Item": {"pk": {}}}"#,
                "Supplied AttributeValue is empty",
            ),
            (Operation::TransactWriteItems, r#"{"TransactItems": []}"#, "length greater than or equal to 1"),
        ];
        for (operation, body, says) in table {
            let error = operation.run(&database, body.as_bytes()).unwrap_err();
            assert!(matches!(error, DynoxideError::ValidationException(_)), "{body}: {error:?}");
            let message = error.to_string();
            assert!(message.contains(says) && !message.starts_with("VALIDATION"), "{body}: {message}");
        }
    }

    #[test]
    fn a_body_that_is_no_request_is_refused() {
        let database = Database::memory().unwrap();
        for body in [&b"{"[..], b"{\"TableName\": 5}"] {
            let error = Operation::GetItem.run(&database, body).unwrap_err();
            assert!(matches!(error, DynoxideError::SerializationException(_)), "{error:?}");
        }
    }
}
