//! The table's definition, for the embedded DynamoDB and the tests; on AWS the template makes it.

use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType};

use crate::error::StoreError;
use crate::{Store, keys};

impl Store {
    /// Creates the table unless it is there.
    ///
    /// # Errors
    /// [`StoreError`] when DynamoDB cannot be reached or refuses.
    pub async fn create_table(&self) -> Result<(), StoreError> {
        let refused =
            |source: Box<dyn std::error::Error + Send + Sync>| StoreError::Refused { operation: "CreateTable", source };
        let mut request = self.client.create_table().table_name(&*self.table).billing_mode(BillingMode::PayPerRequest);
        for (name, kind) in [(keys::PK, KeyType::Hash), (keys::SK, KeyType::Range)] {
            let attribute = AttributeDefinition::builder()
                .attribute_name(name)
                .attribute_type(ScalarAttributeType::S)
                .build()
                .map_err(|error| refused(error.into()))?;
            let key = KeySchemaElement::builder()
                .attribute_name(name)
                .key_type(kind)
                .build()
                .map_err(|error| refused(error.into()))?;
            request = request.attribute_definitions(attribute).key_schema(key);
        }
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error() {
                Some(CreateTableError::ResourceInUseException(_)) => Ok(()),
                _ => Err(refused(error.into())),
            },
        }
    }
}
