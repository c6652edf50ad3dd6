//! The connector: an HTTP request of the SDK becomes one call of the database, its outcome an HTTP response.

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use dynoxide::Database;
use http::StatusCode;

use crate::operation::Operation;

/// What DynamoDB answers to an operation that it does not know.
const UNKNOWN_OPERATION: &[u8] = br#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#;

/// Answers the SDK's requests from a database.
pub(crate) struct EmbeddedConnector {
    database: Database,
}

impl EmbeddedConnector {
    pub(crate) fn new(database: Database) -> Self {
        Self { database }
    }
}

impl std::fmt::Debug for EmbeddedConnector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("EmbeddedConnector")
    }
}

impl HttpConnector for EmbeddedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let database = self.database.clone();
        // Not before the first poll: a future that is dropped unpolled must not have written anything.
        HttpConnectorFuture::new(async move { answer(&database, &request) })
    }
}

/// Carries the request out and says what came of it.
pub(crate) fn answer(database: &Database, request: &HttpRequest) -> Result<HttpResponse, ConnectorError> {
    // Every DynamoDB request is one JSON document in memory; only a streamed body has no bytes.
    let body = request.body().bytes().ok_or_else(|| ConnectorError::user("a streamed request body".into()))?;
    let Some(operation) = request.headers().get("x-amz-target").and_then(Operation::from_target) else {
        return response(StatusCode::BAD_REQUEST, Bytes::from_static(UNKNOWN_OPERATION));
    };
    match operation.run(database, body) {
        Ok(json) => response(StatusCode::OK, json.into()),
        Err(error) => {
            let status = StatusCode::from_u16(error.status_code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            response(status, error.to_json().into())
        }
    }
}

fn response(status: StatusCode, body: Bytes) -> Result<HttpResponse, ConnectorError> {
    let mut response = HttpResponse::new(status.into(), SdkBody::from(body));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    Ok(response)
}
