//! An embedded DynamoDB under the AWS SDK, without a port: the SDK's client sends its requests to an HTTP connector,
//! and this connector answers them in the same task, from SQLite (in memory or in one file).
//!
//! What it is for: the one-process host, replays and tests run the very code that talks to DynamoDB on AWS. There is no
//! address that a web page or another program could reach, and nothing that could arrive in another order twice.
//! What it is not: a server (credentials and signatures are not looked at) and not all of DynamoDB, see
//! [`Operation`]; an operation outside that list is refused as DynamoDB refuses an unknown one.
//!
//! A request is carried out when its future is first polled, at once and to its end: SQLite is called synchronously, a
//! dropped future has either happened in full or not at all. Files are in WAL mode with SQLite's default
//! `synchronous = FULL`: what was answered survives a power cut. Several processes may open one file (a second writer
//! waits up to 5 s, then gets an internal server error), but request tokens are remembered in memory alone: keep one
//! [`EmbeddedDynamoDb`] for as long as a token must be recognised.
//!
//! How it fails: what DynamoDB would refuse comes back as DynamoDB's own error, what SQLite cannot do as
//! `InternalServerError` (500), and a request that no SDK would send as a `ConnectorError`.

mod connector;
mod operation;

use std::path::Path;

use aws_smithy_runtime_api::client::http::{SharedHttpClient, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use dynoxide::Database;

pub use crate::operation::Operation;

/// An embedded DynamoDB; clones share its tables.
#[derive(Clone)]
pub struct EmbeddedDynamoDb {
    database: Database,
}

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// SQLite takes paths in UTF-8 only.
    #[error("the path of the database is not UTF-8: {0}")]
    Path(String),
    /// The file is not a database, was written by a newer version, or cannot be created.
    #[error("the embedded database cannot be opened")]
    Open(#[source] dynoxide::DynoxideError),
}

impl EmbeddedDynamoDb {
    /// An empty database that lives as long as its last clone.
    ///
    /// # Errors
    /// [`OpenError::Open`] when SQLite cannot set up its tables.
    pub fn memory() -> Result<Self, OpenError> {
        Database::memory().map(|database| Self { database }).map_err(OpenError::Open)
    }

    /// The database in the file at `path`, created when it is not there.
    ///
    /// # Errors
    /// [`OpenError`], which says what is wrong with the path or the file.
    pub fn file(path: &Path) -> Result<Self, OpenError> {
        let name = path.to_str().ok_or_else(|| OpenError::Path(path.display().to_string()))?;
        Database::new(name).map(|database| Self { database }).map_err(OpenError::Open)
    }

    /// The HTTP client that an `aws_sdk_dynamodb::Config` takes; whatever its endpoint says, this database answers.
    #[must_use]
    pub fn http_client(&self) -> SharedHttpClient {
        let connector = SharedHttpConnector::new(connector::EmbeddedConnector::new(self.database.clone()));
        http_client_fn(move |_, _| connector.clone())
    }

    /// Answers one request, as that client does: for a server that stands before it.
    ///
    /// # Errors
    /// [`ConnectorError`] for a request that no SDK would send.
    pub fn answer(&self, request: &HttpRequest) -> Result<HttpResponse, ConnectorError> {
        connector::answer(&self.database, request)
    }
}

impl std::fmt::Debug for EmbeddedDynamoDb {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("EmbeddedDynamoDb")
    }
}
