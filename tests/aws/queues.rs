//! What a queue promises, asked of SQS as far as ministack plays it. Its rules of size and its windows of minutes are shown
//! on the wire, beside the adapter.

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_types::SdkConfig;
use aws_types::region::Region;
use turnlock_queue::conformance;
use turnlock_tests::aws::cloud::{Cloud, REGION};

#[tokio::test(flavor = "multi_thread")]
async fn sqs_keeps_the_promises_of_a_queue() {
    let folder = tempfile::tempdir().unwrap();
    let cloud = Cloud::start(folder.path()).await;
    let config = SdkConfig::builder()
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .region(Region::new(REGION))
        .endpoint_url(cloud.address())
        .credentials_provider(SharedCredentialsProvider::new(Credentials::new("test", "test", None, None, "test")))
        .build();
    conformance::sqs::hold(&config, "once").await;
}
