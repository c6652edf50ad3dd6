//! ministack: the process, and the few requests that a deployment and a poller make of it.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::programs;

/// The region that everything is in.
pub const REGION: &str = "us-east-1";

/// A running ministack; it ends with this value, and with this process.
#[derive(Debug)]
pub struct Cloud {
    address: String,
    http: reqwest::Client,
    _process: Child,
}

impl Cloud {
    /// Starts one that keeps what it writes in `folder`.
    pub async fn start(folder: &Path) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/aws/serve_ministack.py");
        let log = std::fs::File::create(folder.join("ministack.log")).unwrap();
        let mut command = Command::new(programs::python());
        command.arg(script).env_clear();
        command.envs([
            ("BIND_HOST", "127.0.0.1"),
            ("MINISTACK_HOST", "127.0.0.1"),
            ("IOT_MTLS_ENABLED", "0"),
            ("LAMBDA_EXECUTOR", "local"),
            ("LAMBDA_ACCOUNT_CONCURRENCY", "0"),
            ("AWS_DEFAULT_REGION", REGION),
            ("LOG_LEVEL", "WARNING"),
        ]);
        for name in ["HOME", "TMPDIR", "STATE_DIR", "S3_DATA_DIR"] {
            command.env(name, folder);
        }
        // Its standard input is the rope by which it hangs on this process.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let port = lines.next_line().await.unwrap().unwrap_or_else(|| panic!("ministack ended: see {folder:?}"));
        let address = format!("http://127.0.0.1:{port}");
        let http = super::http_client();
        // The listener takes connections from the beginning; the answer comes when the server is there.
        http.get(format!("{address}/_ministack/health")).send().await.unwrap();
        Self { address, http, _process: process }
    }

    /// Where it listens, as `http://host:port`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// An operation of a service with the JSON protocol: `AmazonSQS.SendMessage`.
    pub async fn json(&self, target: &str, body: &Value) -> Value {
        let service = target.split(['.', '_']).next().unwrap_or_default();
        let service = service.trim_start_matches("Amazon").to_lowercase();
        let request = self.http.post(&self.address).header("x-amz-target", target);
        let request = request.header("content-type", "application/x-amz-json-1.0").body(body.to_string());
        let answer = request.header("authorization", authorization(&service)).send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{target} {body}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// An operation of CloudFormation; its answer is XML.
    pub async fn cloudformation(&self, action: &str, parameters: &[(&str, &str)]) -> String {
        let fields = [("Action", action), ("Version", "2010-05-15")].into_iter().chain(parameters.iter().copied());
        let url = reqwest::Url::parse_with_params(&self.address, fields).unwrap();
        let body = url.query().unwrap_or_default().to_owned();
        let request = self.http.post(&self.address).header("authorization", authorization("cloudformation"));
        let request = request.header("content-type", "application/x-www-form-urlencoded").body(body);
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{action}: {status} {text}");
        text
    }

    /// A `GET` of Lambda's API.
    pub async fn lambda(&self, path: &str) -> Value {
        let request = self.http.get(format!("{}/2015-03-31/{path}", self.address));
        let answer = request.header("authorization", authorization("lambda")).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.unwrap()
    }

    /// Puts `body` into a bucket, which is made; its address.
    pub async fn object(&self, bucket: &str, key: &str, body: String) -> String {
        let bucket = format!("{}/{bucket}", self.address);
        let address = format!("{bucket}/{key}");
        for (address, body) in [(&bucket, String::new()), (&address, body)] {
            let request = self.http.put(address).header("authorization", authorization("s3")).body(body);
            let answer = request.send().await.unwrap();
            assert!(answer.status().is_success(), "PUT {address}: {}", answer.status());
        }
        address
    }

    /// How many messages a queue holds: waiting, in flight.
    pub async fn messages(&self, queue: &str) -> (u64, u64) {
        let names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"];
        let request = json!({ "QueueUrl": queue, "AttributeNames": names });
        let answer = self.json("AmazonSQS.GetQueueAttributes", &request).await;
        let [waiting, in_flight] = names.map(|name| answer["Attributes"][name].as_str().unwrap().parse().unwrap());
        (waiting, in_flight)
    }
}

/// What ministack finds the service by. It checks no signature.
fn authorization(service: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/{service}/aws4_request, SignedHeaders=host, Signature=0"
    )
}

/// What CloudFormation makes of the SAM template at `path`.
pub async fn transformed(path: &Path) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/aws/transform.py");
    let output = Command::new(programs::python()).arg(script).arg(path).env_clear().output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
