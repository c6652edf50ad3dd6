//! What Turnlock remembers, in one DynamoDB table. The DynamoDB SDK and nothing else: in one process the same client
//! talks to an embedded DynamoDB through an in-process HTTP client that the caller hands in.
//!
//! Every write is conditional; races are answered by enums ([`sessions::Acquired`], [`sessions::CommitRefused`]), never
//! by errors. A failed condition is read from the old image, and a transaction's from the reason at the condition's own
//! index. Errors ([`StoreError`]) say whether the same call may be made again.
//!
//! | module | holds |
//! |---|---|
//! | [`keys`] | every key format |
//! | [`table`] | the table's definition, for the embedded DynamoDB and the tests |
//! | [`sessions`] | the session head: lock, fence, stop, and the commit |
//! | [`history`] | turn items |
//! | [`journal`] | the steps of a turn in progress |
//! | [`approvals`] | calls that wait for a person: asked, decided, used |
//! | [`steer`] | texts for the turn that runs |
//! | [`results`] | tool results that were too long to be shown whole |
//! | [`markers`] | the sign that an event is committed |
//! | [`ledger`] | delivery's record of each part |
//! | [`chats`] | a chat's next free moment, whether it is gone, where it went |
//! | [`albums`] | messages that were sent as one, until their turn begins |
//! | [`pairing`] | who may talk to an account by a code, and the code that waits |
//! | [`gateway`] | what API clients read: newest frame, final |
//! | [`admission`] | API events between acceptance and commit |
//! | [`buckets`] | the session rate |
//! | [`memory`] | memory scopes, facts, episodes |
//! | [`recall`] | the search in a scope |
//! | [`consolidation`] | the claim of a consolidation and its one transaction |
//! | [`reviews`] | the claim of a memory review and its one transaction |
//! | [`spend`] | what the models cost in a day |
//! | [`dead`] | what was given up, for the alarm and for redrive |

pub mod admission;
pub mod albums;
pub mod approvals;
pub mod buckets;
pub mod chats;
pub mod consolidation;
pub mod dead;
mod error;
pub mod gateway;
pub mod history;
mod item;
pub mod journal;
pub mod keys;
pub mod ledger;
pub mod markers;
pub mod memory;
pub mod pairing;
pub mod recall;
mod request;
pub mod results;
pub mod reviews;
pub mod sessions;
pub mod spend;
pub mod steer;
pub mod table;
mod write;

use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region, StalledStreamProtectionConfig};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_types::SdkConfig;
use turnlock_clock::Clock;

pub use error::StoreError;

/// How long markers and journals live: longer than any copy of their message (14 d in each queue).
pub const MARKER_LIFETIME: std::time::Duration = std::time::Duration::from_secs(35 * 24 * 3600);
/// How long ledgers and job claims live: longer than markers, so that a late relay is still recognised.
pub const LEDGER_LIFETIME: std::time::Duration = std::time::Duration::from_secs(40 * 24 * 3600);
/// How long a chat that only ever got frames is kept after the last one: longer than anything known of it matters.
const CHAT_LIFETIME: std::time::Duration = std::time::Duration::from_secs(7 * 24 * 3600);
/// How long one sending of a request may take on AWS.
const ATTEMPT_WITHIN: std::time::Duration = std::time::Duration::from_secs(3);
/// The layout of the items this code writes. Items of later layouts are read as far as this version knows them.
pub const LAYOUT: u32 = 1;

/// The table. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    client: Client,
    table: Arc<str>,
    clock: Clock,
    jitter: Arc<Mutex<fastrand::Rng>>,
    /// What this process knows of what today has cost.
    spent: Arc<Mutex<Option<spend::Spent>>>,
}

impl Store {
    /// The table `table` behind `client`, whose own retries must be off ([`Store::client_config`] sees to it).
    #[must_use]
    pub fn new(client: Client, table: &str, clock: Clock, seed: u64) -> Self {
        let jitter = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed)));
        Self { client, table: table.into(), clock, jitter, spent: Arc::default() }
    }

    /// The table `table` of an embedded DynamoDB behind an in-process HTTP client: no port, no credentials, and so no
    /// signature that nobody would look at.
    #[must_use]
    pub fn embedded(http_client: SharedHttpClient, table: &str, clock: Clock, seed: u64) -> Self {
        let config = Self::client_config()
            .http_client(http_client)
            .region(Region::new("local"))
            .endpoint_url("http://embedded.invalid")
            .allow_no_auth()
            .build();
        Self::new(Client::from_conf(config), table, clock, seed)
    }

    /// The table `table` of the account that `sdk` is for. A request that is not answered in time is sent again, like one
    /// that failed: several fit into a lease.
    #[must_use]
    pub fn on_aws(sdk: &SdkConfig, table: &str, clock: Clock, seed: u64) -> Self {
        let timeouts = sdk.timeout_config().cloned().unwrap_or_else(TimeoutConfig::disabled);
        let timeouts = timeouts.to_builder().operation_attempt_timeout(ATTEMPT_WITHIN).build();
        let config = aws_sdk_dynamodb::config::Builder::from(sdk)
            .retry_config(RetryConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .timeout_config(timeouts)
            .build();
        Self::new(Client::from_conf(config), table, clock, seed)
    }

    /// What every client of ours has in common: the SDK's own retries are off, so that request n means the same
    /// everywhere and `TransactionConflict`, which the SDK does not retry, is covered by our policy.
    #[must_use]
    pub fn client_config() -> aws_sdk_dynamodb::config::Builder {
        aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .retry_config(RetryConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
    }

    /// The clock that leases and expiries are compared with.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }
}
