//! Every function in one process: the same handlers that are Lambda functions on AWS, wired to queues and a store that
//! the caller brings. The laptop's host and the replay both are a [`Host`]; neither knows a handler of its own.
//!
//! A host can be dropped at any moment: its tasks end where they are, as at the death of a process.

pub mod queues;
pub mod recovery;
mod routes;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use turnlock_app::admit::{Admission, Depth};
use turnlock_app::api::{Api, Polling};
use turnlock_app::control::Control;
use turnlock_app::deliver::Delivery;
use turnlock_app::deliver::observers::{ItemObserver, LogObserver, Observer};
use turnlock_app::ingress::{ConfigMismatch, FreshIds, Ingress};
use turnlock_app::jobs::Jobs;
use turnlock_app::media;
use turnlock_app::pairing::Pairings;
use turnlock_app::settings::{AgentSettings, rate, steered};
use turnlock_app::turn::Agent;
use turnlock_app::words::Language;
use turnlock_channels::http::PlatformHttp;
use turnlock_clock::Clock;
use turnlock_config::Config;
use turnlock_models::Router;
use turnlock_queue::local::{LocalQueues, UnknownQueue};
use turnlock_queue::pool::WorkerPool;
use turnlock_store::Store;
use turnlock_tools::Registry;

pub use queues::Wrap;
pub use routes::Response;
pub use workers::Around;

/// How waits and streams ask for news: a question to the file beside us costs next to nothing, so that the first reply of a
/// process does not wait for its reader.
const POLLING: Polling = Polling { shortest: Duration::from_millis(10), longest: Duration::from_millis(250) };

/// What a host is made of.
pub struct Ports {
    /// The table, created already.
    pub store: Store,
    /// The queues, opened with [`queues::settings`].
    pub queues: LocalQueues,
    /// What stands between the use cases and the queues.
    pub wrap: Box<Wrap>,
    /// What stands around the work on an event.
    pub around: Option<Arc<Around>>,
    /// The way to the platforms.
    pub platforms: Arc<dyn PlatformHttp>,
    /// The models.
    pub models: Arc<Router>,
    /// The tools.
    pub tools: Arc<Registry>,
    /// The time.
    pub clock: Clock,
    /// The configuration.
    pub config: Arc<Config>,
    /// Whether callers of the API need no key: the demo on loopback.
    pub open: bool,
    /// What ids that nothing outside determines are made from: another one for every start of a process.
    pub seed: u64,
}

/// Every function in one process.
pub struct Host {
    ingress: Ingress,
    api: Api,
    pools: Vec<WorkerPool>,
    store: Store,
}

/// Why a host could not be put together.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The queues were opened with other settings.
    #[error(transparent)]
    Queue(#[from] UnknownQueue),
    /// The configuration names something that a channel cannot work with.
    #[error(transparent)]
    Config(#[from] ConfigMismatch),
}

impl Host {
    /// Wires every function. Nothing runs yet.
    ///
    /// # Errors
    /// [`HostError`] names the queue or the account.
    pub fn new(ports: Ports) -> Result<Self, HostError> {
        let senders = queues::Senders::new(&ports.queues, &ports.wrap)?;
        let settings = Arc::new(AgentSettings::from_config(&ports.config));
        let admission = Arc::new(Admission {
            store: ports.store.clone(),
            inbound: Arc::clone(&senders.inbound),
            control: Arc::clone(&senders.control),
            outbound: Arc::clone(&senders.outbound),
            rate: rate(&ports.config),
            queue_limit: settings.limits.queue,
            steered: steered(&ports.config),
            language: settings.language,
            clock: ports.clock.clone(),
            depth: Depth::default(),
            pairings: Pairings::default(),
        });
        let ids = Arc::new(FreshIds::new(ports.clock.clone(), ports.seed));
        let ingress =
            Ingress::from_config(&ports.config, Arc::clone(&admission), ports.clock.clone(), Arc::clone(&ids))?;
        let (store, clock) = (ports.store.clone(), ports.clock.clone());
        let api = Api::from_config(&ports.config, store, admission, clock, ids, ports.open);
        let api = Api { polling: POLLING, ..api };
        let handlers = workers::Handlers {
            agent: Arc::new(Agent {
                store: ports.store.clone(),
                inbound: Arc::clone(&senders.inbound),
                dead_letters: Arc::clone(&senders.dead_letters),
                outbound: Arc::clone(&senders.outbound),
                consolidate: Arc::clone(&senders.consolidate),
                review: Arc::clone(&senders.review),
                models: Arc::clone(&ports.models),
                tools: Arc::clone(&ports.tools),
                files: Arc::new(media::files(&ports.config, &ports.platforms)),
                settings: Arc::clone(&settings),
            }),
            control: Arc::new(Control {
                store: ports.store.clone(),
                control: Arc::clone(&senders.control),
                inbound: Arc::clone(&senders.inbound),
                dead_letters: Arc::clone(&senders.dead_letters),
                outbound: Arc::clone(&senders.outbound),
                settings,
            }),
            delivery: Arc::new(delivery(&ports, &senders)?),
            jobs: Arc::new(Jobs {
                store: ports.store.clone(),
                models: ports.models,
                dead_letters: Arc::clone(&senders.job_dead_letters),
                daily_cost: ports.config.agent.limits.daily_cost,
            }),
        };
        let concurrency = ports.config.agent.limits.concurrency;
        let pools = workers::pools(&ports.queues, &senders, &handlers, concurrency, ports.around.as_ref())?;
        Ok(Self { ingress, api, pools, store: ports.store })
    }

    /// Works the queues for as long as it is polled.
    pub async fn run(&self) {
        futures_util::future::join_all(self.pools.iter().map(WorkerPool::run)).await;
    }

    /// How many handlers run now.
    #[must_use]
    pub fn running(&self) -> usize {
        self.pools.iter().map(WorkerPool::running).sum()
    }

    /// Waits until no handler runs.
    pub async fn idle(&self) {
        futures_util::future::join_all(self.pools.iter().map(WorkerPool::idle)).await;
    }

    /// Stops receiving and gives the running handlers `drain` to finish; what does not finish comes again later.
    pub async fn stop(&self, drain: Duration) {
        futures_util::future::join_all(self.pools.iter().map(|pool| pool.stop(drain))).await;
    }

    /// The table.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }
}

fn delivery(ports: &Ports, senders: &queues::Senders) -> Result<Delivery, ConfigMismatch> {
    let language = Language::from_code(&ports.config.agent.language).unwrap_or_default();
    let observers: Vec<Arc<dyn Observer>> =
        vec![Arc::new(LogObserver), Arc::new(ItemObserver::new(ports.store.clone(), language))];
    let ours = (ports.store.clone(), Arc::clone(&senders.outbound));
    Delivery::from_config(&ports.config, ours, &ports.platforms, &ports.clock, observers)
}
