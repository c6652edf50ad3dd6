//! Every environment variable that is read, in one place. Besides these, the configuration file names variables of its
//! own (`env:NAME`) for its secrets.

/// The path of the configuration file, where the command line names none.
pub const CONFIG: &str = "TURNLOCK_CONFIG";
/// What is logged: a level, or targets with levels, e.g. `info` or `warn,turnlock_app=debug`.
pub const LOG: &str = "TURNLOCK_LOG";

/// The table, in a function on AWS.
pub const TABLE: &str = "TURNLOCK_TABLE";
/// The URL of the inbound queue, in a function on AWS.
pub const INBOUND_QUEUE: &str = "TURNLOCK_INBOUND_QUEUE";
/// The URL of the control queue, in a function on AWS.
pub const CONTROL_QUEUE: &str = "TURNLOCK_CONTROL_QUEUE";
/// The URL of the outbound queue, in a function on AWS.
pub const OUTBOUND_QUEUE: &str = "TURNLOCK_OUTBOUND_QUEUE";
/// The URL of the queue of consolidations, in a function on AWS.
pub const CONSOLIDATE_QUEUE: &str = "TURNLOCK_CONSOLIDATE_QUEUE";
/// The URL of the queue of memory reviews, in a function on AWS.
pub const REVIEW_QUEUE: &str = "TURNLOCK_REVIEW_QUEUE";
/// The URL of the dead letters of the FIFO queues, in a function on AWS.
pub const DEAD_LETTER_QUEUE: &str = "TURNLOCK_DEAD_LETTER_QUEUE";
/// The URL of the dead letters of the job queues, in a function on AWS.
pub const JOB_DEAD_LETTER_QUEUE: &str = "TURNLOCK_JOB_DEAD_LETTER_QUEUE";
/// The Secrets Manager secrets that a function on AWS may read, separated by commas; empty = none.
pub const SECRETS: &str = "TURNLOCK_SECRETS";
/// The EventBridge bus that gets a copy of every outbound event, in a function on AWS; empty = none.
pub const EVENT_BUS: &str = "TURNLOCK_EVENT_BUS";
/// The time of one invocation of the agent function, in seconds; stands for `agent.limits.turn_seconds` on AWS.
pub const TURN_SECONDS: &str = "TURNLOCK_TURN_SECONDS";

/// All of ours, for checks and for the reference page. The AWS SDK's own names ([`AWS`]) are read beside them.
pub const ALL: &[&str] = &[
    CONFIG,
    LOG,
    TABLE,
    INBOUND_QUEUE,
    CONTROL_QUEUE,
    OUTBOUND_QUEUE,
    CONSOLIDATE_QUEUE,
    REVIEW_QUEUE,
    DEAD_LETTER_QUEUE,
    JOB_DEAD_LETTER_QUEUE,
    SECRETS,
    EVENT_BUS,
    TURN_SECONDS,
];

/// What Lambda sets by itself, and the SDK's standard way to another endpoint (`AWS_ENDPOINT_URL_<SERVICE>`, see "SDKs and
/// Tools Reference Guide, Service-specific endpoints") and to other trusted roots.
pub const AWS: &[&str] = &[
    AWS_REGION,
    AWS_ACCESS_KEY_ID,
    AWS_SECRET_ACCESS_KEY,
    AWS_SESSION_TOKEN,
    AWS_ENDPOINT_URL,
    AWS_CA_BUNDLE,
    AWS_LAMBDA_FUNCTION_NAME,
];
/// The region.
pub const AWS_REGION: &str = "AWS_REGION";
/// Half of the role's credentials.
pub const AWS_ACCESS_KEY_ID: &str = "AWS_ACCESS_KEY_ID";
/// The other half.
pub const AWS_SECRET_ACCESS_KEY: &str = "AWS_SECRET_ACCESS_KEY";
/// What makes them temporary.
pub const AWS_SESSION_TOKEN: &str = "AWS_SESSION_TOKEN";
/// Where all services are, if not at AWS; followed by `_` and a service's name: where that one is.
pub const AWS_ENDPOINT_URL: &str = "AWS_ENDPOINT_URL";
/// A file of trusted roots (PEM), for endpoints that are not AWS's own.
pub const AWS_CA_BUNDLE: &str = "AWS_CA_BUNDLE";
/// The function's name.
pub const AWS_LAMBDA_FUNCTION_NAME: &str = "AWS_LAMBDA_FUNCTION_NAME";

/// The value of an environment variable; one that is not Unicode counts as absent.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the place")]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
