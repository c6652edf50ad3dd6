//! SQS, DynamoDB and Secrets Manager on loopback: each at an address of its own, since a client shares no connection
//! between hosts, and over TLS 1.3 with a P-256 certificate, as at AWS. DynamoDB is the embedded one.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http::{Request, Response};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::NoServerSessionStorage;
use turnlock_clock::Clock;
use turnlock_embedded::EmbeddedDynamoDb;
use turnlock_store::Store;

use super::server::{self, Answer};
use super::targets;

/// The name of the table.
pub(super) const TABLE: &str = "turnlock";
/// The name that the certificate is for.
const HOST: &str = "localhost";

/// The endpoints; they end when dropped.
pub(super) struct Endpoints {
    services: Arc<Services>,
    numbers: AtomicU64,
    /// The ports of SQS, DynamoDB and Secrets Manager.
    ports: [u16; 3],
    roots: PathBuf,
    _servers: JoinSet<()>,
}

/// What answers at all of them: a request says which service it means.
struct Services {
    database: EmbeddedDynamoDb,
    /// The queues that messages were sent to.
    sent: Mutex<Vec<String>>,
}

impl Endpoints {
    /// Starts them. The certificate to trust is a file in `directory`.
    pub(super) async fn start(directory: &Path) -> anyhow::Result<Self> {
        let database = EmbeddedDynamoDb::memory()?;
        Store::embedded(database.http_client(), TABLE, Clock::system(), 1).create_table().await?;
        let services = Arc::new(Services { database, sent: Mutex::new(Vec::new()) });
        let roots = directory.join("roots.pem");
        let tls = certified(&roots)?;
        let (mut ports, mut servers) = ([0; 3], JoinSet::new());
        for port in &mut ports {
            let (listener, at) = server::listen().await?;
            *port = at;
            servers.spawn(server::serve(listener, Some(tls.clone()), Arc::clone(&services)));
        }
        Ok(Self { services, numbers: AtomicU64::new(1), ports, roots, _servers: servers })
    }

    /// Where a function finds them, in the environment.
    pub(super) fn environment(&self) -> [(&'static str, String); 4] {
        let [sqs, dynamodb, secrets] = self.ports.map(|port| format!("https://{HOST}:{port}"));
        [
            ("AWS_ENDPOINT_URL_SQS", sqs),
            ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb),
            ("AWS_ENDPOINT_URL_SECRETS_MANAGER", secrets),
            ("AWS_CA_BUNDLE", self.roots.display().to_string()),
        ]
    }

    /// One that was not there yet, for an event.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// The names of the queues to which messages were sent since this was last asked.
    pub(super) fn take_sent(&self) -> Vec<String> {
        std::mem::take(&mut *self.services.sent.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A certificate that signs itself, written to `roots`.
fn certified(roots: &Path) -> anyhow::Result<TlsAcceptor> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let certificate = CertificateParams::new([HOST.to_owned()])?.self_signed(&key)?;
    std::fs::write(roots, certificate.pem())?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    let mut config = ServerConfig::builder_with_protocol_versions(&[&tokio_rustls::rustls::version::TLS13])
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    // The endpoints have one name here. A client that could resume one's session at the next would shake hands only once.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(TlsAcceptor::from(Arc::new(config)))
}

impl Services {
    fn dynamodb(&self, request: Request<Bytes>) -> anyhow::Result<Response<Bytes>> {
        let request = HttpRequest::try_from(request.map(SdkBody::from)).context("no request of the SDK")?;
        let answer = self.database.answer(&request)?.try_into_http1x().context("no answer to the SDK")?;
        Ok(answer.map(|body| Bytes::copy_from_slice(body.bytes().unwrap_or_default())))
    }

    /// The SDK compares no checksum of what it sent with the one that SQS answers, so none is made up.
    fn send_message(&self, request: &Value) -> Value {
        let queue = request["QueueUrl"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).push(queue.to_owned());
        json!({ "MessageId": "219f8380-5770-4cc2-8c3e-5c715e145f5e", "SequenceNumber": "18849496460467696128" })
    }
}

impl Answer for Services {
    async fn answer(&self, request: Request<Bytes>) -> anyhow::Result<Response<Bytes>> {
        let target = request.headers().get("x-amz-target").and_then(|target| target.to_str().ok()).unwrap_or_default();
        let (service, operation) = target.split_once('.').unwrap_or_default();
        let answer = match (service, operation) {
            ("DynamoDB_20120810", _) => return self.dynamodb(request),
            ("AmazonSQS", "SendMessage") => self.send_message(&serde_json::from_slice(request.body())?),
            ("AmazonSQS", "GetQueueAttributes") => json!({ "Attributes": { "ApproximateNumberOfMessages": "0" } }),
            ("AmazonSQS", "ChangeMessageVisibility") => json!({}),
            ("secretsmanager", "GetSecretValue") => json!({
                "ARN": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:turnlock-Ab12Cd",
                "Name": "turnlock",
                "VersionId": "a1b2c3d4-5678-90ab-cdef-example11111",
                "SecretString": targets::secrets().to_string(),
            }),
            _ => bail!("nothing here answers `{target}`"),
        };
        let response = Response::builder().header("content-type", "application/x-amz-json-1.0");
        Ok(response.body(answer.to_string().into())?)
    }
}
