//! What all clients of AWS share: one HTTP client, region and credentials from the environment, no retries of the SDK's
//! own (ours decide, so that request n means the same everywhere).
//!
//! This takes the place of the SDK's loader: in Lambda the credentials of the role stand in the environment for as long
//! as the process lives (Lambda Developer Guide, "Using Lambda environment variables"), so there is no chain to walk and
//! no profile to parse. Two parts of a cold start that are ours to save.

use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_async::rt::sleep::{SharedAsyncSleep, TokioSleep};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_runtime_api::client::behavior_version::BehaviorVersion;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_runtime_api::client::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use aws_types::SdkConfig;
use aws_types::region::Region;
use turnlock_config::names;

use crate::start::StartError;

/// The roots of AWS's own endpoints (Amazon Trust Services repository). Reading the machine's 145 takes longer than the rest
/// of a client's making.
const AMAZON_ROOTS: &[u8] = include_bytes!("amazon-roots.pem");

/// How long a connection may take: AWS is near.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// What the environment says about AWS.
pub(crate) struct Aws {
    region: String,
    credentials: Credentials,
    http_client: SharedHttpClient,
}

impl Aws {
    /// Reads the environment. Its names are those that Lambda sets; `missing` gets those that are not there.
    pub(crate) fn from_environment(missing: &mut Vec<&'static str>) -> Result<Option<Self>, StartError> {
        let mut read = |name: &'static str| {
            let value = names::environment(name).filter(|value| !value.is_empty());
            if value.is_none() {
                missing.push(name);
            }
            value
        };
        let region = read(names::AWS_REGION);
        let (key, secret) = (read(names::AWS_ACCESS_KEY_ID), read(names::AWS_SECRET_ACCESS_KEY));
        let (Some(region), Some(key), Some(secret)) = (region, key, secret) else { return Ok(None) };
        let token = names::environment(names::AWS_SESSION_TOKEN).filter(|token| !token.is_empty());
        let credentials = Credentials::new(key, secret, token, None, "environment");
        let http_client = http_client(&region)?;
        Ok(Some(Self { region, credentials, http_client }))
    }

    /// The settings of the client of `service`, by its name in the environment: `DYNAMODB`, `SQS`.
    pub(crate) fn for_service(&self, service: &str) -> SdkConfig {
        let own = names::environment(&format!("{}_{service}", names::AWS_ENDPOINT_URL));
        let endpoint = own.or_else(|| names::environment(names::AWS_ENDPOINT_URL)).filter(|url| !url.is_empty());
        let mut config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.region.clone()))
            .credentials_provider(SharedCredentialsProvider::new(self.credentials.clone()))
            .http_client(self.http_client.clone())
            .sleep_impl(SharedAsyncSleep::new(TokioSleep::new()))
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::builder().connect_timeout(CONNECT_WITHIN).build())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        config.set_endpoint_url(endpoint);
        config.build()
    }
}

fn http_client(region: &str) -> Result<SharedHttpClient, StartError> {
    let roots = match names::environment(names::AWS_CA_BUNDLE).filter(|path| !path.is_empty()) {
        Some(path) => {
            let pem = std::fs::read(&path).map_err(|source| StartError::Roots { path, source: source.into() })?;
            TrustStore::empty().with_pem_certificate(pem)
        }
        // The regions in China have roots of their own.
        None if region.starts_with("cn-") => TrustStore::default(),
        None => TrustStore::empty().with_pem_certificate(AMAZON_ROOTS),
    };
    let context = TlsContext::builder().with_trust_store(roots).build();
    let context =
        context.map_err(|source| StartError::Roots { path: names::AWS_CA_BUNDLE.to_owned(), source: source.into() })?;
    Ok(Builder::new().tls_provider(Provider::Rustls(CryptoMode::AwsLc)).tls_context(context).build_https())
}
