//! The start of a function: everything that can be wrong is found here, before the first request, and named all at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::timeout;
use turnlock_app::admit::{Admission, Depth};
use turnlock_app::ingress::{ConfigMismatch, FreshIds};
use turnlock_app::media;
use turnlock_app::model::{self, ModelError};
use turnlock_app::pairing::Pairings;
use turnlock_app::settings::{AgentSettings, rate, steered};
use turnlock_channels::files::Files;
use turnlock_channels::http::{PlatformHttp, ReqwestHttp};
use turnlock_clock::Clock;
use turnlock_config::{Capability, Config, ConfigError, ModelSettings, Part, names};
use turnlock_models::{Model, Router};
use turnlock_queue::sqs::SqsQueue;
use turnlock_queue::{MAX_BYTES, Queue};
use turnlock_store::Store;

use crate::aws::Aws;
use crate::logs;
use crate::secrets::{Secrets, Values};

/// How long a start waits for the number of waiting events.
const DEPTH_WITHIN: Duration = Duration::from_secs(1);

/// What may be empty, which is a choice; everything else has to say something.
const MAY_BE_EMPTY: [&str; 2] = [names::SECRETS, names::EVENT_BUS];

/// What a function reads at its start.
#[derive(Clone, Copy)]
pub struct Function {
    /// The environment variables that it cannot do without, besides those that every function reads.
    pub settings: &'static [&'static str],
    /// The configuration's secrets that it needs, as keys with `*` for a name: `telegram.*.bot_token`.
    pub needs: &'static [&'static str],
    /// Those that it needs beyond that where the model sees images: without them its start asks for nothing more.
    pub for_images: &'static [&'static str],
}

/// Why a function cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Settings are not there.
    #[error("set these in the function's environment: {}", .0.join(", "))]
    Missing(Vec<&'static str>),
    /// A setting says what cannot be.
    #[error("{name}: {allowed}")]
    Invalid {
        /// The environment variable.
        name: &'static str,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The configuration file cannot be read, or says what cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A value of the configuration is none that its channel could work with.
    #[error(transparent)]
    Mismatch(#[from] ConfigMismatch),
    /// The configured tools cannot be used.
    #[error(transparent)]
    Tools(#[from] turnlock_app::tools::ToolsError),
    /// The configured model cannot be used.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A secret cannot be read.
    #[error("the secret {id} cannot be read: {reason}")]
    Secret {
        /// Its id in Secrets Manager.
        id: String,
        /// Why; never its value.
        reason: String,
    },
    /// The secrets were not read in time; the next look may succeed.
    #[error("Secrets Manager did not answer in time")]
    Slow,
    /// The trusted roots cannot be read.
    #[error("the trusted roots in {path} cannot be read")]
    Roots {
        /// The file.
        path: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An HTTP client cannot be made, or there is no source of chance.
    #[error("this machine does not let the function start")]
    Machine(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Lambda's runtime interface cannot be reached.
    #[error("the runtime interface of Lambda cannot be reached")]
    Runtime(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What every function has once it has started.
#[derive(Clone)]
pub struct Start(Arc<Inner>);

struct Inner {
    function: Function,
    values: BTreeMap<&'static str, String>,
    aws: Aws,
    path: PathBuf,
    secrets: Option<Secrets>,
    sqs: aws_sdk_sqs::Client,
    store: OnceLock<Store>,
    depth: Depth,
    pairings: Pairings,
    clock: Clock,
}

/// The part of a start that a rotation of secrets changes.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) config: Arc<Config>,
    pub(crate) secrets: Values,
}

/// Runs a function: reads its settings, and hands them to `serve`, which returns when Lambda ends the process. Ends it
/// with a line that says what is wrong if it cannot start.
pub fn main(function: Function, serve: impl AsyncFnOnce(Start) -> Result<(), StartError>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(async {
            logs::start()?;
            serve(Start::new(function, &[names::CONFIG])?).await
        }),
        Err(error) => Err(StartError::Machine(error.into())),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            logs::cannot_start(&error);
            ExitCode::FAILURE
        }
    }
}

impl Start {
    /// What an operator's command needs of a deployment: the environment that its functions have, as far as `settings`
    /// name it. It reads no configuration.
    ///
    /// # Errors
    /// [`StartError::Missing`] names all that is not there.
    pub fn for_operator(settings: &'static [&'static str]) -> Result<Self, StartError> {
        Self::new(Function { settings, needs: &[], for_images: &[] }, &[])
    }

    fn new(function: Function, besides: &[&'static str]) -> Result<Self, StartError> {
        let mut missing = Vec::new();
        let mut values = BTreeMap::new();
        for name in besides.iter().chain(function.settings) {
            match names::environment(name) {
                Some(value) if !value.is_empty() || MAY_BE_EMPTY.contains(name) => drop(values.insert(*name, value)),
                Some(_) | None => missing.push(*name),
            }
        }
        let aws = Aws::from_environment(&mut missing)?;
        let Some(aws) = aws.filter(|_| missing.is_empty()) else { return Err(StartError::Missing(missing)) };
        let secrets = values.get(names::SECRETS).map(|ids| Secrets::new(&aws.for_service("SECRETS_MANAGER"), ids));
        let path = PathBuf::from(values.get(names::CONFIG).map(String::as_str).unwrap_or_default());
        let sqs = SqsQueue::client(&aws.for_service("SQS"));
        let (depth, pairings) = (Depth::default(), Pairings::default());
        let (store, clock) = (OnceLock::new(), Clock::system());
        Ok(Self(Arc::new(Inner { function, values, aws, path, secrets, sqs, store, depth, pairings, clock })))
    }

    /// Reads the secrets and the configuration.
    pub(crate) async fn load(&self) -> Result<Loaded, StartError> {
        let secrets = match &self.0.secrets {
            Some(secrets) => secrets.read().await?,
            None => Values::default(),
        };
        let turn_seconds = self.0.values.get(names::TURN_SECONDS).map(|text| {
            let allowed = "must be a whole number of seconds";
            text.parse().map_err(|_| StartError::Invalid { name: names::TURN_SECONDS, allowed })
        });
        let turn_seconds = turn_seconds.transpose()?;
        let Function { needs, for_images, .. } = self.0.function;
        let load = |besides: &'static [&'static str]| {
            let needs = |key: &str| needs.iter().chain(besides).any(|pattern| matches(pattern, key));
            let lookup = |reference: &str| secrets.lookup(reference);
            Config::load_part(Path::new(&self.0.path), Part { needs: &needs, turn_seconds }, &lookup)
        };
        let mut config = load(&[])?;
        if !for_images.is_empty() && takes_files(&config) {
            config = load(for_images)?;
        }
        Ok(Loaded { config: Arc::new(config), secrets })
    }

    /// The configuration, for a function whose use case needs no secrets.
    ///
    /// # Errors
    /// [`StartError`]: the file cannot be read, or says what cannot be.
    pub async fn config(&self) -> Result<Arc<Config>, StartError> {
        Ok(self.load().await?.config)
    }

    /// Whether anything can change while the function runs.
    pub(crate) fn rotates(&self) -> bool {
        self.0.secrets.is_some()
    }

    fn value(&self, name: &'static str) -> Result<&str, StartError> {
        // Only a name that the function did not ask for is not there.
        self.0.values.get(name).map(String::as_str).ok_or_else(|| StartError::Missing(vec![name]))
    }

    /// The table.
    ///
    /// # Errors
    /// [`StartError::Missing`] if the function did not ask for its name; or there is no source of chance.
    pub fn store(&self) -> Result<Store, StartError> {
        if let Some(store) = self.0.store.get() {
            return Ok(store.clone());
        }
        let sdk = self.0.aws.for_service("DYNAMODB");
        let store = Store::on_aws(&sdk, self.value(names::TABLE)?, self.0.clock.clone(), seed()?);
        Ok(self.0.store.get_or_init(|| store).clone())
    }

    /// The queue whose URL stands in the environment variable `name`.
    ///
    /// # Errors
    /// As [`Start::store`].
    pub fn queue(&self, name: &'static str) -> Result<Arc<dyn Queue>, StartError> {
        Ok(Arc::new(SqsQueue::new(self.0.sqs.clone(), self.value(name)?, MAX_BYTES, seed()?)))
    }

    /// The time.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.0.clock.clone()
    }

    /// Identities for what brings none.
    ///
    /// # Errors
    /// There is no source of chance.
    pub fn fresh_ids(&self) -> Result<Arc<FreshIds>, StartError> {
        Ok(Arc::new(FreshIds::new(self.clock(), seed()?)))
    }

    /// Admission, for the functions that take events in.
    ///
    /// # Errors
    /// As [`Start::store`].
    pub fn admission(&self, config: &Config) -> Result<Arc<Admission>, StartError> {
        let settings = AgentSettings::from_config(config);
        Ok(Arc::new(Admission {
            store: self.store()?,
            inbound: self.queue(names::INBOUND_QUEUE)?,
            control: self.queue(names::CONTROL_QUEUE)?,
            outbound: self.queue(names::OUTBOUND_QUEUE)?,
            rate: rate(config),
            queue_limit: settings.limits.queue,
            steered: steered(config),
            language: settings.language,
            clock: self.clock(),
            depth: self.0.depth.clone(),
            pairings: self.0.pairings.clone(),
        }))
    }

    /// What admission needs besides the secrets, in the time in which they are read: the number of waiting events, so that
    /// the first event finds an answer and a connection, and the table's client.
    pub(crate) async fn prepare_admission(&self) {
        let depth = async {
            if let Ok(inbound) = self.queue(names::INBOUND_QUEUE) {
                // A queue that does not answer is seen when there is something to send.
                drop(timeout(DEPTH_WITHIN, self.0.depth.ask(&*inbound, &self.0.clock)).await);
            }
        };
        // A table without a name is seen when admission is made.
        tokio::join!(depth, async { drop(self.store()) });
    }

    /// The configured models.
    ///
    /// # Errors
    /// [`StartError::Model`] says which and what to do.
    pub fn models(&self, config: &Config) -> Result<Arc<Router>, StartError> {
        Ok(Arc::new(model::models(&config.models, |model| self.bedrock(model))?))
    }

    /// The tools of the agent: functions on AWS are invoked with this function's role.
    ///
    /// # Errors
    /// [`StartError::Tools`] says which cannot be and what to do.
    #[cfg(feature = "tools")]
    pub fn tools(&self, config: &Config, store: &Store) -> Result<turnlock_tools::Registry, StartError> {
        let function = |name: &str, function: &str| -> Arc<dyn turnlock_tools::ToolHandler> {
            let sdk = self.0.aws.for_service("LAMBDA");
            Arc::new(turnlock_tools::configured::Function::new(name, function, &sdk))
        };
        Ok(turnlock_app::tools::tools(config, store, Some(&function))?)
    }

    /// The observer that copies events to the event bus, if there is one.
    ///
    /// # Errors
    /// [`StartError::Missing`] if the function did not ask for its name.
    #[cfg(feature = "eventbridge")]
    pub fn event_bus(&self) -> Result<Option<Arc<dyn turnlock_app::deliver::observers::Observer>>, StartError> {
        let name = self.value(names::EVENT_BUS)?;
        let bus = || crate::bus::BusObserver::new(&self.0.aws.for_service("EVENTBRIDGE"), name);
        Ok((!name.is_empty()).then(|| Arc::new(bus()) as _))
    }

    /// Where the files of events are, for a model that takes any.
    ///
    /// # Errors
    /// An HTTP client cannot be made.
    pub fn files(&self, config: &Config) -> Result<Arc<Files>, StartError> {
        if !takes_files(config) {
            return Ok(Arc::default());
        }
        let http = ReqwestHttp::new().map_err(|error| StartError::Machine(error.into()))?;
        let http: Arc<dyn PlatformHttp> = Arc::new(http);
        Ok(Arc::new(media::files(config, &http)))
    }

    #[cfg(not(feature = "bedrock"))]
    #[expect(clippy::unused_self, reason = "a function without the client has nobody to ask")]
    fn bedrock(&self, _: &ModelSettings) -> Option<Arc<dyn Model>> {
        None
    }

    #[cfg(feature = "bedrock")]
    fn bedrock(&self, model: &ModelSettings) -> Option<Arc<dyn Model>> {
        let mut sdk = self.0.aws.for_service("BEDROCK_RUNTIME").into_builder();
        if let Some(region) = &model.region {
            sdk.set_region(aws_types::region::Region::new(region.clone()));
        }
        let settings = turnlock_models::bedrock::BedrockSettings {
            model: model.model.clone(),
            streams: model.streams,
            capabilities: model::capabilities(model),
            max_tokens: model.max_tokens,
            guardrail: model
                .guardrail
                .clone()
                .map(|guardrail| turnlock_models::Guardrail { id: guardrail.id, version: guardrail.version }),
            thinking: model.thinking.map(|thinking| match thinking {
                turnlock_config::Thinking::Budget(tokens) => turnlock_models::Thinking::Budget(tokens),
                turnlock_config::Thinking::Adaptive => turnlock_models::Thinking::Adaptive,
            }),
            timeouts: turnlock_models::Timeouts::default(),
        };
        Some(Arc::new(turnlock_models::bedrock::Bedrock::new(&sdk.build(), settings)))
    }
}

fn takes_files(config: &Config) -> bool {
    config.models.iter().any(|model| model.can(Capability::Images) || model.can(Capability::Documents))
}

/// Another one for every process.
fn seed() -> Result<u64, StartError> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| StartError::Machine(error.into()))?;
    Ok(u64::from_le_bytes(seed))
}

/// Whether `key` is one of those that `pattern` means: `*` stands for one part.
fn matches(pattern: &str, key: &str) -> bool {
    let (mut wanted, mut given) = (pattern.split('.'), key.split('.'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some("*"), Some(_)) => {}
            (Some(wanted), Some(given)) if wanted == given => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_one_part() {
        assert!(matches("telegram.*.bot_token", "telegram.main.bot_token"));
        assert!(!matches("telegram.*.bot_token", "telegram.main.secret_token"));
        assert!(!matches("telegram.*.bot_token", "slack.main.bot_token"));
        assert!(!matches("telegram.*", "telegram.main.bot_token"));
        assert!(matches("*.api_key", "models[0].api_key"));
    }
}
