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
    serde_json::from_slice(body).map_err(|error| DynoxideError::SerializationException(error.to_string()))
}

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
    fn a_body_that_is_no_request_is_refused() {
        let database = Database::memory().unwrap();
        for body in [&b"{"[..], b"[]", b"{\"TableName\": 5}"] {
            let error = Operation::GetItem.run(&database, body).unwrap_err();
            assert!(matches!(error, DynoxideError::SerializationException(_)), "{error:?}");
        }
    }
}
