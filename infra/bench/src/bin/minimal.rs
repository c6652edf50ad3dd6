//! What cold starts are compared with: a handler that sends the body of its request to a queue, and nothing else. It has
//! what a careful engineer would give it, which is what the functions have, too: a runtime of one thread, one client, made
//! before the first request, with the credentials of the environment and only the roots that it needs. It reads no
//! configuration, checks no signature and writes no log.

use anyhow::Context;
use aws_credential_types::Credentials;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::{
    BehaviorVersion, Region, SharedAsyncSleep, SharedCredentialsProvider, StalledStreamProtectionConfig,
};
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_types::SdkConfig;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::{Value, json};
use turnlock_config::names;

fn main() -> Result<(), Error> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve())
}

async fn serve() -> Result<(), Error> {
    let (client, url) = (client()?, setting(names::INBOUND_QUEUE)?);
    let (client, url) = (&client, url.as_str());
    lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| async move {
        let body = event.payload["body"].as_str().unwrap_or_default();
        client.send_message().queue_url(url).message_group_id("minimal").message_body(body).send().await?;
        Ok::<_, Error>(json!({ "statusCode": 200 }))
    }))
    .await
}

fn client() -> anyhow::Result<Client> {
    let roots = TrustStore::empty().with_pem_certificate(std::fs::read(setting(names::AWS_CA_BUNDLE)?)?);
    let context = TlsContext::builder().with_trust_store(roots).build()?;
    let http = Builder::new().tls_provider(Provider::Rustls(CryptoMode::AwsLc)).tls_context(context).build_https();
    let (key, secret) = (setting(names::AWS_ACCESS_KEY_ID)?, setting(names::AWS_SECRET_ACCESS_KEY)?);
    let credentials = Credentials::new(key, secret, names::environment(names::AWS_SESSION_TOKEN), None, "environment");
    let config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(setting(names::AWS_REGION)?))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(http)
        .sleep_impl(SharedAsyncSleep::new(TokioSleep::new()))
        .retry_config(RetryConfig::disabled())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .endpoint_url(setting("AWS_ENDPOINT_URL_SQS")?)
        .build();
    Ok(Client::new(&config))
}

fn setting(name: &str) -> anyhow::Result<String> {
    names::environment(name).with_context(|| format!("{name} is not set"))
}
