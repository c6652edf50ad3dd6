//! One process over a world that outlives it: dropped at any moment, it has died; built again, it is the next one.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use turnlock_app::model::{capabilities, route};
use turnlock_clock::Clock;
use turnlock_config::Config;
use turnlock_embedded::EmbeddedDynamoDb;
use turnlock_host::{Host, HostError, Ports};
use turnlock_models::{Capabilities, Model, ModelError, ModelRequest, ModelStream, Router, Scripted};
use turnlock_queue::local::LocalQueues;
use turnlock_store::Store;

use super::record::Record;
use super::tools::ScriptedTools;
use crate::fakes::FakePlatforms;
use crate::faults::{FaultPlan, Life, in_turn};

/// The name of the table.
pub(super) const TABLE: &str = "turnlock";

/// What outlives a process.
pub(super) struct World {
    pub(super) database: EmbeddedDynamoDb,
    pub(super) queues: LocalQueues,
    pub(super) fakes: Arc<FakePlatforms>,
    pub(super) model: Arc<Scripted>,
    pub(super) tools: Arc<ScriptedTools>,
    pub(super) plan: FaultPlan,
    pub(super) clock: Clock,
    pub(super) config: Arc<Config>,
    pub(super) record: Record,
    pub(super) seed: u64,
    /// How many processes there have been.
    pub(super) processes: u64,
}

/// One process.
pub(super) struct Process {
    pub(super) life: Life,
    pub(super) host: Host,
}

impl World {
    /// Starts the next process. Its leases and hidden messages are the dead one's: they run out by themselves.
    pub(super) fn start(&mut self) -> Result<Process, HostError> {
        self.processes += 1;
        let seed = self.seed.wrapping_mul(1_000).wrapping_add(self.processes);
        let life = self.plan.process();
        let store = Store::embedded(life.store(self.database.http_client()), TABLE, self.clock.clone(), seed);
        let (queue_life, record) = (life.clone(), self.record.clone());
        let ports = Ports {
            tools: Arc::new(self.tools.registry(&store, &self.clock, &life)),
            store,
            queues: self.queues.clone(),
            wrap: Box::new(move |_, queue| record.noting(queue_life.queue(queue))),
            around: Some(Arc::new(|event, work| {
                let event = event.to_owned();
                Box::pin(async move { in_turn(&event, work).await })
            })),
            platforms: life.platform(self.fakes.clone()),
            models: Arc::new(self.models(&life)),
            clock: self.clock.clone(),
            config: Arc::new(self.deployed()),
            open: false,
            seed,
        };
        Ok(Process { host: Host::new(ports)?, life })
    }

    /// The models of the configuration, in their order. All of them are played by the scripted one: the next line that fits
    /// answers whichever is asked.
    fn models(&self, life: &Life) -> Router {
        let routes = self.config.models.iter().map(|settings| {
            let model = Gated {
                name: settings.model.clone(),
                capabilities: capabilities(settings),
                inner: Arc::clone(&self.model),
                life: life.clone(),
            };
            route(settings, Arc::new(model))
        });
        let routes: Vec<_> = routes.collect();
        if !routes.is_empty() {
            return Router::new(routes);
        }
        Router::single(Arc::new(Gated {
            name: self.model.name().to_owned(),
            capabilities: self.model.capabilities().clone(),
            inner: Arc::clone(&self.model),
            life: life.clone(),
        }))
    }

    /// The configuration, with what the scripted tools may do.
    fn deployed(&self) -> Config {
        let mut config = Config::clone(&self.config);
        config.approvals.rules.extend(self.tools.rules());
        config
    }

    /// The table, as nobody's process: without faults and counts.
    pub(super) fn store(&self) -> Store {
        Store::embedded(self.database.http_client(), TABLE, self.clock.clone(), u64::MAX)
    }
}

/// A model as one process reaches it: called as the configuration calls it, and able to do what that says; a dead process
/// hears nothing of it any more.
struct Gated {
    name: String,
    inner: Arc<Scripted>,
    capabilities: Capabilities,
    life: Life,
}

#[async_trait]
impl Model for Gated {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn stream(&self, request: &ModelRequest) -> Result<ModelStream, ModelError> {
        self.life.gate().await;
        let life = self.life.clone();
        let stream = self.inner.stream_as(&self.name, request, &self.capabilities)?;
        Ok(Box::pin(stream.then(move |event| {
            let life = life.clone();
            async move {
                life.gate().await;
                event
            }
        })))
    }
}
