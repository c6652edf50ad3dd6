//! Secrets Manager: each secret of ours is a JSON object of names and values, one for each function that reads it. Their
//! values are kept in this process and nowhere else.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_secretsmanager::operation::get_secret_value::GetSecretValueError;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::SdkConfig;
use futures_util::future::try_join_all;

use crate::logs;
use crate::start::StartError;

/// How long one request may take; a start that waits longer is started again by Lambda.
const WITHIN: Duration = Duration::from_secs(3);
const ATTEMPTS: u32 = 3;
/// How long after a first failure it is tried again; after the next one twice that.
const PAUSE: Duration = Duration::from_millis(200);

/// Where `secret:NAME` in the configuration is looked up.
#[derive(Clone)]
pub(crate) struct Secrets {
    client: Client,
    ids: Vec<String>,
}

/// The values by name. No `Debug`: there is nothing in it that may be shown.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Values(BTreeMap<String, String>);

impl Secrets {
    /// The secrets `ids`, separated by commas.
    pub(crate) fn new(sdk: &SdkConfig, ids: &str) -> Self {
        let timeouts = sdk.timeout_config().cloned().unwrap_or_else(TimeoutConfig::disabled);
        let timeouts = timeouts.to_builder().operation_attempt_timeout(WITHIN).build();
        let config = aws_sdk_secretsmanager::config::Builder::from(sdk).timeout_config(timeouts).build();
        let ids = ids.split(',').map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect();
        Self { client: Client::from_conf(config), ids }
    }

    /// All of them, as they are now.
    pub(crate) async fn read(&self) -> Result<Values, StartError> {
        let read = try_join_all(self.ids.iter().map(|id| self.one(id))).await?;
        Ok(Values(read.into_iter().flatten().collect()))
    }

    async fn one(&self, id: &str) -> Result<BTreeMap<String, String>, StartError> {
        let refused = |reason: String| StartError::Secret { id: id.to_owned(), reason };
        let mut attempt = 1;
        let answer = loop {
            match self.client.get_secret_value().secret_id(id).send().await {
                Ok(answer) => break answer,
                Err(error) if attempt < ATTEMPTS && is_passing(&error) => {
                    tokio::time::sleep(PAUSE * attempt).await;
                    attempt += 1;
                }
                // Not its `Debug`, which has the answer in it.
                Err(error) => return Err(refused(logs::chain(&error))),
            }
        };
        let object = || "its value has to be a JSON object of names and texts".to_owned();
        let text = answer.secret_string().ok_or_else(|| refused(object()))?;
        // The parser's own words could quote the value.
        serde_json::from_str(text).map_err(|_| refused(object()))
    }
}

/// Whether the same request may succeed a moment later: throttling, a fault of the service, no answer. Many processes that
/// start at once are when it throttles.
fn is_passing(error: &SdkError<GetSecretValueError>) -> bool {
    match error {
        SdkError::ServiceError(refusal) => {
            refusal.raw().status().as_u16() >= 500 || refusal.err().code().is_some_and(|code| code.contains("Throttl"))
        }
        _ => true,
    }
}

impl Values {
    #[cfg(test)]
    pub(crate) fn of<const N: usize>(values: [(&str, &str); N]) -> Self {
        Self(values.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }

    /// What a reference in the configuration (`secret:NAME`) stands for.
    pub(crate) fn lookup(&self, reference: &str) -> Option<String> {
        self.0.get(reference.strip_prefix("secret:")?).cloned()
    }
}
