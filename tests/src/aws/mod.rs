//! A local AWS in one test: the real template, deployed; the real binaries, run; and the world around them.
//!
//! | module | stands for |
//! |---|---|
//! | [`cloud`] | ministack: CloudFormation, SQS, API Gateway, Secrets Manager |
//! | [`stack`] | the deployed template |
//! | [`lambda`], `worker` | Lambda's processes |
//! | `poller` | Lambda's event source mappings |
//! | [`front`] | the endpoint of the functions: what they asked for, and faults |
//! | [`platforms`] | Telegram, Slack and callbacks over HTTP |
//! | [`bedrock`] | the model |
//!
//! DynamoDB is dynoxide, served by this process. Everything listens on loopback at a port of the kernel's choice, writes
//! into one temporary folder, and ends with [`Aws`], or with this process, however it dies. Where all of this differs
//! from AWS: no eventual consistency, no throttling but by [`front::Front::fail`], no IAM (the calls are recorded, with
//! the actions that they need), no conflicts of transactions, no limits of memory or payload, no freezing of processes.

pub mod bedrock;
pub mod cloud;
pub mod front;
pub mod lambda;
pub mod platforms;
mod poller;
pub mod stack;
mod worker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dynoxide::Database;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use turnlock_clock::Clock;
use turnlock_replay::fakes::{Accounts, FakePlatforms};

use self::bedrock::ScriptedBedrock;
use self::cloud::{Cloud, REGION};
use self::front::{Front, Services};
use self::lambda::{Deployed, Lambda};
use self::poller::Mapping;
use self::stack::{FORWARD, Stack};
use crate::programs::{self, is_current};
use crate::template::binary;

/// What Lambda's account has for a function that reserves nothing.
const UNRESERVED: usize = 1000;

/// What is deployed.
pub struct Setup<'a> {
    /// The SAM template.
    pub template: &'a Path,
    /// Its parameters, where they differ from their defaults.
    pub parameters: &'a [(&'a str, &'a str)],
    /// The configuration file, for the address of the [`platforms`].
    pub configuration: &'a dyn Fn(&str) -> String,
}

/// A local AWS.
pub struct Aws {
    /// ministack.
    pub cloud: Arc<Cloud>,
    /// The deployed template.
    pub stack: Stack,
    /// The functions.
    pub lambda: Arc<Lambda>,
    /// Their endpoint.
    pub front: Arc<Front>,
    /// Telegram, Slack and who is behind webhooks. They know none of our accounts yet.
    pub platforms: Arc<FakePlatforms>,
    /// The model.
    pub bedrock: ScriptedBedrock,
    /// The configuration that was deployed.
    pub configuration: String,
    database: Database,
    http: reqwest::Client,
    servers: JoinSet<()>,
    folder: TempDir,
    versions: AtomicU64,
}

impl Aws {
    /// Brings everything up.
    pub async fn start(setup: Setup<'_>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut servers = JoinSet::new();
        let lambda = Arc::new(Lambda::default());
        let forward = lambda.serve(&mut servers).await;
        let platforms = Arc::new(FakePlatforms::new(Clock::system(), Accounts::default()));
        let world = platforms::serve(Arc::clone(&platforms), &mut servers).await;
        let configuration = (setup.configuration)(&world);
        let bedrock = ScriptedBedrock::serve(&mut servers).await;
        let database = Database::memory().unwrap();
        let dynamodb = dynamodb(database.clone(), &mut servers).await;
        let (cloud, template) = tokio::join!(Cloud::start(folder.path()), cloud::transformed(setup.template));
        let cloud = Arc::new(cloud);
        let stack = Stack::create(&cloud, template, setup.parameters, &forward).await;
        let services = Services { dynamodb, bedrock: bedrock.address().to_owned(), others: cloud.address().to_owned() };
        let front = Front::serve(services, &mut servers).await;
        let mut aws = Self {
            cloud,
            stack,
            lambda,
            front,
            platforms,
            bedrock,
            configuration,
            database,
            http: http_client(),
            servers,
            folder,
            versions: AtomicU64::new(0),
        };
        aws.create_tables();
        aws.deploy_functions().await;
        aws.poll().await;
        aws
    }

    /// Calls the HTTP API: the path behind the stage.
    pub fn request(&self, method: http::Method, path: &str) -> reqwest::RequestBuilder {
        let api = self.stack.of_type("AWS::ApiGatewayV2::Api").next().map(|(logical, _)| logical).unwrap();
        let (cloud, api) = (self.cloud.address(), self.stack.physical(api));
        self.http.request(method, format!("{cloud}/_aws/execute-api/{api}/$default{path}"))
    }

    /// The value of a secret of the stack.
    pub async fn secret(&self, logical: &str) -> Value {
        let request = json!({ "SecretId": self.stack.physical(logical) });
        let answer = self.cloud.json("secretsmanager.GetSecretValue", &request).await;
        serde_json::from_str(answer["SecretString"].as_str().unwrap()).unwrap()
    }

    /// Replaces the value of a secret of the stack.
    pub async fn put_secret(&self, logical: &str, value: &Value) {
        let request = json!({ "SecretId": self.stack.physical(logical), "SecretString": value.to_string() });
        self.cloud.json("secretsmanager.PutSecretValue", &request).await;
    }

    /// Puts the same binaries with another configuration in place of every function, one after the other, as a deployment
    /// does, with a pause after each.
    pub async fn replace_all(&self, configuration: &str, pause: Duration) {
        let version = self.versions.fetch_add(1, Ordering::Relaxed) + 1;
        for deployed in self.lambda.deployed() {
            let package = self.package(&deployed.id, version, configuration);
            self.lambda.replace(&deployed.id, package);
            tokio::time::sleep(pause).await;
        }
    }

    /// What the functions have written so far.
    #[must_use]
    pub fn log(&self, id: &str) -> String {
        std::fs::read_to_string(self.log_file(id)).unwrap_or_default()
    }

    fn log_file(&self, id: &str) -> PathBuf {
        self.folder.path().join(format!("{id}.log"))
    }

    /// Creates the stack's tables in dynoxide, under the names that they have in the stack.
    fn create_tables(&self) {
        for (logical, properties) in self.stack.of_type("AWS::DynamoDB::Table") {
            let mut request = json!({ "TableName": self.stack.physical(logical) });
            for name in ["AttributeDefinitions", "KeySchema", "BillingMode"] {
                request[name] = properties[name].clone();
            }
            self.database.create_table(serde_json::from_value(request).unwrap()).unwrap();
        }
    }

    async fn deploy_functions(&self) {
        let listed = self.cloud.lambda("functions/").await;
        for (id, properties) in self.stack.of_type("AWS::Lambda::Function") {
            let name = self.stack.physical(id);
            let mut functions = listed["Functions"].as_array().unwrap().iter();
            let function = functions.find(|function| function["FunctionName"] == name).unwrap();
            let variables = function["Environment"]["Variables"].as_object().unwrap();
            let own = variables.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
            let mut environment: BTreeMap<String, String> = own.filter(|(name, _)| name != FORWARD).collect();
            let package = self.package(id, 0, &self.configuration);
            let lambdas = [
                ("AWS_REGION", REGION),
                ("AWS_DEFAULT_REGION", REGION),
                ("AWS_ACCESS_KEY_ID", id),
                ("AWS_SECRET_ACCESS_KEY", "secret"),
                ("AWS_SESSION_TOKEN", "token"),
                ("AWS_ENDPOINT_URL", self.front.address()),
                ("AWS_LAMBDA_FUNCTION_NAME", name),
                ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
                ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
                ("AWS_LAMBDA_LOG_GROUP_NAME", "group"),
                ("AWS_LAMBDA_LOG_STREAM_NAME", "stream"),
                ("_HANDLER", "bootstrap"),
                ("TZ", ":UTC"),
            ];
            environment.extend(lambdas.map(|(name, value)| (name.to_owned(), value.to_owned())));
            self.lambda.deploy(Deployed {
                name: name.to_owned(),
                id: id.to_owned(),
                package,
                environment,
                timeout: Duration::from_secs(function["Timeout"].as_u64().unwrap()),
                concurrency: reserved(properties).unwrap_or(UNRESERVED),
                log: self.log_file(id),
            });
        }
    }

    /// A folder as a function's zip file makes one: `bootstrap` and the configuration.
    fn package(&self, id: &str, version: u64, configuration: &str) -> PathBuf {
        let package = self.folder.path().join(format!("{id}-{version}"));
        std::fs::create_dir_all(&package).unwrap();
        let program = programs::folder().join(binary(id));
        let name = program.display();
        assert!(is_current(&program), "{name} is missing or older than its sources: `cargo build --workspace --bins`");
        std::os::unix::fs::symlink(program, package.join("bootstrap")).unwrap();
        std::fs::write(package.join("turnlock.toml"), configuration).unwrap();
        package
    }

    /// Polls every event source mapping of the stack.
    async fn poll(&mut self) {
        let listed = self.cloud.lambda("event-source-mappings/").await;
        for mapping in listed["EventSourceMappings"].as_array().unwrap() {
            let queue_arn = mapping["EventSourceArn"].as_str().unwrap();
            let queue_name = queue_arn.rsplit(':').next().unwrap();
            let url = json!({ "QueueName": queue_name });
            let url = self.cloud.json("AmazonSQS.GetQueueUrl", &url).await;
            let function = mapping["FunctionArn"].as_str().unwrap().rsplit(':').next().unwrap();
            let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
            let concurrency = number(&mapping["ScalingConfig"]["MaximumConcurrency"]).unwrap_or(UNRESERVED as u64);
            let types = mapping["FunctionResponseTypes"].as_array().map(Vec::as_slice).unwrap_or_default();
            let mapping = Mapping {
                function: function.to_owned(),
                queue_url: url["QueueUrl"].as_str().unwrap().to_owned(),
                queue_arn: queue_arn.to_owned(),
                batch_size: number(&mapping["BatchSize"]).unwrap(),
                concurrency: usize::try_from(concurrency).unwrap(),
                reports_failures: types.iter().any(|kind| kind == "ReportBatchItemFailures"),
            };
            self.servers.spawn(poller::poll(mapping, Arc::clone(&self.cloud), Arc::clone(&self.lambda)));
        }
    }
}

impl Drop for Aws {
    fn drop(&mut self) {
        if std::thread::panicking() {
            show_logs(self.folder.path());
        }
    }
}

/// How many lines of each log a failure shows.
const LAST_LINES: usize = 20;

/// The last lines of what every process wrote, and of none that went well.
#[expect(clippy::print_stderr, reason = "whoever runs the test reads it there")]
fn show_logs(folder: &Path) {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "log")) {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| !line.contains("\"INFO\"")).collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        if !last.is_empty() {
            eprintln!("--- {}\n{last}", file.display());
        }
    }
}

/// Serves `database` for as long as `servers` lives; the address.
async fn dynamodb(database: Database, servers: &mut JoinSet<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    servers.spawn(dynoxide::server::serve_on(listener, database));
    address
}

/// A client that asks nobody on the way.
fn http_client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// What a function reserves, where that is a plain number.
fn reserved(properties: &Value) -> Option<usize> {
    properties["ReservedConcurrentExecutions"].as_u64()?.try_into().ok()
}
