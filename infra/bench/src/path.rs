//! The whole path: from an update at the ingress handler to the message in the fake platform's chat, in one process with
//! every worker at work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::json;
use tokio::time::timeout;
use turnlock_bench::figures::rounded;
use turnlock_channels::http::PlatformHttp;
use turnlock_channels::{IngressRequest, telegram};
use turnlock_clock::Clock;
use turnlock_config::{Config, DemoSecrets};
use turnlock_domain::event::Channel;
use turnlock_embedded::EmbeddedDynamoDb;
use turnlock_host::{Host, Ports, Response, Wrap, queues};
use turnlock_models::{Model, Router, Scripted};
use turnlock_queue::local::{LocalQueues, Location};
use turnlock_replay::fakes::{Accounts, FakePlatforms};
use turnlock_store::Store;

use crate::report::Path;

/// How many chats write at once.
const CHATS: u64 = 8;
/// The first one's id; the others' follow.
const FIRST_CHAT: u64 = 1_000_001;
/// How many messages each of them sends; the first is not measured.
const MESSAGES: u64 = 41;
/// How many turns run at once.
const CONCURRENCY: usize = 8;
/// When to give up.
const LONGEST: Duration = Duration::from_secs(30);

/// Telegram's secret token.
pub(crate) const SECRET: &str = "telegram-secret";
/// Slack's signing secret.
pub(crate) const SLACK_SECRET: &str = "slack-secret";
const TOKEN: &str = "1:token";

/// Measures it: every chat sends its next message as soon as the last one was accepted.
pub(crate) async fn measure() -> anyhow::Result<Path> {
    let directory = tempfile::tempdir()?;
    let config = config();
    let platforms = Arc::new(platforms(&config));
    let model = Arc::new(Scripted::stand_in());
    let host = host(directory.path(), config, platforms.clone(), model, Box::new(|_, queue| queue)).await?;
    let work = async {
        post(&host, &platforms, 0..1).await?;
        delivered(&platforms, CHATS).await?;
        let started = Instant::now();
        post(&host, &platforms, 1..MESSAGES).await?;
        let accepted = started.elapsed();
        delivered(&platforms, CHATS * MESSAGES).await?;
        Ok::<_, anyhow::Error>((accepted, started.elapsed()))
    };
    let (accepted, delivered) = tokio::select! {
        () = host.run() => bail!("the workers ended"),
        measured = timeout(LONGEST, work) => measured.context("the messages were not delivered in time")??,
    };
    host.stop(Duration::ZERO).await;
    let messages = CHATS * (MESSAGES - 1);
    let per_second = |time: Duration| rounded(messages as f64 / time.as_secs_f64(), 10.0);
    Ok(Path { messages, accepted_per_s: per_second(accepted), delivered_per_s: per_second(delivered) })
}

async fn post(host: &Host, platforms: &FakePlatforms, messages: std::ops::Range<u64>) -> anyhow::Result<()> {
    for message in messages {
        for chat in FIRST_CHAT..FIRST_CHAT + CHATS {
            let number = chat * MESSAGES + message;
            let update = json!({"update_id": number, "message": {"message_id": number, "date": Timestamp::now().as_second(),
                "chat": {"id": chat, "type": "private"}, "from": {"id": chat, "is_bot": false, "first_name": "Ann"},
                "text": "Could you move the meeting with the Berlin office to Thursday at ten?"}});
            platforms.note(Channel::Telegram, "main", &update);
            let headers = telegram::sign_headers(&SecretString::from(SECRET));
            let request = IngressRequest::post("/telegram/main", headers, update.to_string());
            let Response::Full(response) = host.answer(request).await else {
                bail!("an update is not answered by a stream")
            };
            ensure!(response.status == 200, "an update was answered with {}", response.status);
        }
    }
    Ok(())
}

/// Waits until the platforms have been called so many times.
async fn delivered(platforms: &FakePlatforms, calls: u64) -> anyhow::Result<()> {
    platforms.changes().wait_for(|made| *made >= calls).await.context("the platforms are gone")?;
    Ok(())
}

/// Platforms in memory that know the accounts of `config`.
pub(crate) fn platforms(config: &Config) -> FakePlatforms {
    FakePlatforms::new(Clock::system(), Accounts::from_config(config)).without_budgets()
}

/// Every function over files in `directory`.
pub(crate) async fn host(
    directory: &std::path::Path,
    config: Config,
    platforms: Arc<dyn PlatformHttp>,
    model: Arc<dyn Model>,
    wrap: Box<Wrap>,
) -> anyhow::Result<Host> {
    let (clock, config) = (Clock::system(), Arc::new(config));
    let database = EmbeddedDynamoDb::file(&directory.join("store.db"))?;
    let store = Store::embedded(database.http_client(), "turnlock", clock.clone(), 1);
    store.create_table().await?;
    let location = Location::File(directory.join("queues.db"));
    let ports = Ports {
        tools: Arc::new(turnlock_tools::builtin(&store)),
        store,
        queues: LocalQueues::open(&location, clock.clone(), queues::settings(&config))?,
        wrap,
        around: None,
        platforms,
        models: Arc::new(Router::single(model)),
        clock,
        config,
        open: true,
        seed: 1,
    };
    Ok(Host::new(ports)?)
}

/// The demo's, without a rate: what is measured is the path, not the brake.
pub(crate) fn config() -> Config {
    let secret = |text: &str| SecretString::from(text);
    let mut config = Config::demo(DemoSecrets {
        telegram_bot_token: secret(TOKEN),
        telegram_secret_token: secret(SECRET),
        slack_bot_token: secret("xoxb-token"),
        slack_signing_secret: secret(SLACK_SECRET),
        webhook_secret: secret("whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"),
        gateway_key: secret("gateway-key"),
    });
    config.agent.limits.rpm = 0;
    config.agent.limits.concurrency = CONCURRENCY;
    config
}
