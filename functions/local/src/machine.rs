//! Puts a host together: store and queues in the data directory, and what its caller chose.

use std::sync::Arc;

use anyhow::Context;
use turnlock_app::redrive::Redrive;
use turnlock_channels::http::PlatformHttp;
use turnlock_clock::Clock;
use turnlock_config::Config;
use turnlock_embedded::EmbeddedDynamoDb;
use turnlock_host::queues as names;
use turnlock_host::{Host, Ports, recovery};
use turnlock_models::Router;
use turnlock_queue::Queue;
use turnlock_queue::local::{LocalQueues, Location};
use turnlock_store::Store;

use crate::data::DataDirectory;

/// The name of the table in the store's file.
const TABLE: &str = "turnlock";

/// A host over the files in `data`. Whoever calls this holds the directory's lock: what a former process left in flight
/// is taken back. `open` = callers of the API need no key.
pub(crate) async fn host(
    data: &DataDirectory,
    config: Arc<Config>,
    platforms: Arc<dyn PlatformHttp>,
    models: Arc<Router>,
    open: bool,
) -> anyhow::Result<Host> {
    let clock = Clock::system();
    // A first start waits for the disk to create both files, so it waits for both at once.
    let queues = {
        let (data, clock, config) = (data.clone(), clock.clone(), Arc::clone(&config));
        tokio::task::spawn_blocking(move || queues(&data, &clock, &config))
    };
    let store = store(data, &clock).await?;
    let queues = queues.await.context("the queues cannot be opened")??;
    recover(&queues, &store).await?;
    let ports = Ports {
        tools: Arc::new(turnlock_app::tools::tools(&config, &store, None)?),
        models,
        store,
        queues,
        wrap: Box::new(|_, queue| queue),
        around: None,
        platforms,
        clock,
        config,
        open,
        seed: seed()?,
    };
    Ok(Host::new(ports)?)
}

/// What a redrive needs, over the files in `data`. Whoever calls this holds the directory's lock.
pub(crate) async fn redrive(data: &DataDirectory, config: &Config) -> anyhow::Result<Redrive> {
    let clock = Clock::system();
    let queues = queues(data, &clock, config)?;
    let queue = |name| -> anyhow::Result<Arc<dyn Queue>> { Ok(queues.queue(name)?) };
    Ok(Redrive {
        store: store(data, &clock).await?,
        inbound: queue(names::INBOUND)?,
        outbound: queue(names::OUTBOUND)?,
        consolidate: queue(names::CONSOLIDATE)?,
        review: queue(names::REVIEW)?,
    })
}

/// The store that has the pairings, over the file in `data`. Whoever calls this holds the directory's lock.
pub(crate) async fn pairings(data: &DataDirectory) -> anyhow::Result<Store> {
    store(data, &Clock::system()).await
}

async fn store(data: &DataDirectory, clock: &Clock) -> anyhow::Result<Store> {
    let problem = || format!("the store {} cannot be opened", data.file("store.db").display());
    let (path, known) = data.private_file("store.db").with_context(problem)?;
    if !known && data.file("queues.db").exists() {
        tracing::warn!("the queues have been used before and the store is new: conversations are missing");
    }
    let database = EmbeddedDynamoDb::file(&path).with_context(problem)?;
    let store = Store::embedded(database.http_client(), TABLE, clock.clone(), seed()?);
    store.create_table().await.with_context(problem)?;
    Ok(store)
}

fn queues(data: &DataDirectory, clock: &Clock, config: &Config) -> anyhow::Result<LocalQueues> {
    let problem = || format!("the queues {} cannot be opened", data.file("queues.db").display());
    let (path, _) = data.private_file("queues.db").with_context(problem)?;
    let settings = turnlock_host::queues::settings(config);
    LocalQueues::open(&Location::File(path), clock.clone(), settings).with_context(problem)
}

async fn recover(queues: &LocalQueues, store: &Store) -> anyhow::Result<()> {
    let recovered = recovery::take_back(queues, store).await.context("what the last process left cannot be read")?;
    if recovered.messages > 0 {
        let (messages, leases) = (recovered.messages, recovered.leases);
        tracing::info!(messages, leases, "the last process ended in the middle of its work, which goes on now");
    }
    Ok(())
}

fn seed() -> anyhow::Result<u64> {
    getrandom::u64().map_err(|error| anyhow::anyhow!("the system gives no randomness: {error}"))
}
