//! What the command line, the environment and the configuration file come to.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnlock_config::{Config, ConfigError, DemoSecrets, Part, names};

use crate::arguments::Options;
use crate::data::DataDirectory;
use crate::failure::Misuse;

/// The file that is used where none is named.
const DEFAULT_FILE: &str = "turnlock.toml";
/// Where the demo listens.
const DEFAULT_PORT: u16 = 8787;
/// How often the demo shows a reply that grows: nobody pays for the frames there.
const DEMO_FRAME_INTERVAL_MS: u32 = 150;
const DEFAULT_DATA: &str = ".turnlock";

/// What a command works with.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// What the file says; `None` = the demo, whose configuration needs the secrets in its data directory.
    configured: Option<Arc<Config>>,
    /// Where everything is kept.
    pub(crate) data: DataDirectory,
    /// Where to listen.
    pub(crate) listen: SocketAddr,
    /// Whether the command line names the port.
    pub(crate) port_is_chosen: bool,
}

impl Setup {
    /// What the file says, if there is one.
    pub(crate) fn configured(&self) -> Option<&Config> {
        self.configured.as_deref()
    }

    /// Reads what there is to read. Without a configuration file it is a demo.
    pub(crate) fn read(options: &Options) -> anyhow::Result<Self> {
        Self::read_as(options, Config::load)
    }

    /// The same for a command that needs no secret of the file: its terminal may not have them.
    pub(crate) fn read_without_secrets(options: &Options) -> anyhow::Result<Self> {
        let part = Part { needs: &|_| false, turn_seconds: None };
        Self::read_as(options, |path| Config::load_part(path, part, &names::environment))
    }

    /// The same for a command that works for one account, also of a deployment: only what stands below `table`
    /// (`telegram.main`) has its secrets, and what a secret store holds elsewhere (`secret:bot-token`) is in the environment
    /// here (`BOT_TOKEN`).
    pub(crate) fn read_with_secrets_of(options: &Options, table: &str) -> anyhow::Result<Self> {
        let below = |key: &str| key.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
        let part = Part { needs: &below, turn_seconds: None };
        Self::read_as(options, |path| Config::load_part(path, part, &|name| names::environment(&variable(name))))
    }

    fn read_as(options: &Options, load: impl Fn(&Path) -> Result<Config, ConfigError>) -> anyhow::Result<Self> {
        let file = configuration_file(options);
        let configured = file.map(|path| load(&path)).transpose()?.map(Arc::new);
        let server = configured.as_ref().map(|config| &config.server);
        let directory = options.data.clone().or_else(|| server.map(|server| server.directory.clone()));
        let mut listen = match server {
            Some(server) => server.listen.parse().map_err(|_| {
                Misuse(format!("server.listen: `{}` is not an address like 127.0.0.1:8787", server.listen))
            })?,
            None => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT),
        };
        if let Some(port) = options.port {
            listen.set_port(port);
        }
        let data = DataDirectory::new(directory.unwrap_or_else(|| PathBuf::from(DEFAULT_DATA)));
        Ok(Self { configured, data, listen, port_is_chosen: options.port.is_some() })
    }

    /// Whether it is the demo: everybody is allowed, and stand-ins answer.
    pub(crate) fn is_demo(&self) -> bool {
        self.configured.is_none()
    }

    /// The configuration of a host that starts here; the demo's secrets are made if there are none.
    pub(crate) fn config(&self) -> anyhow::Result<Arc<Config>> {
        match &self.configured {
            Some(config) => Ok(Arc::clone(config)),
            None => Ok(demo(self.data.demo_secrets()?)),
        }
    }

    /// The configuration of the host that runs here; `None` if a demo has never been started here.
    pub(crate) fn config_of_running(&self) -> anyhow::Result<Option<Arc<Config>>> {
        match &self.configured {
            Some(config) => Ok(Some(Arc::clone(config))),
            None => Ok(self.data.stored_demo_secrets()?.map(demo)),
        }
    }
}

/// The environment variable that stands for a secret of a store.
fn variable(name: &str) -> String {
    match name.strip_prefix("secret:") {
        Some(secret) => secret.to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_"),
        None => name.to_owned(),
    }
}

fn demo(secrets: DemoSecrets) -> Arc<Config> {
    let mut config = Config::demo(secrets);
    config.agent.limits.frame_interval_ms = DEMO_FRAME_INTERVAL_MS;
    Arc::new(config)
}

fn configuration_file(options: &Options) -> Option<PathBuf> {
    let named = options.config.clone().or_else(|| names::environment(names::CONFIG).map(PathBuf::from));
    named.or_else(|| Path::new(DEFAULT_FILE).exists().then(|| PathBuf::from(DEFAULT_FILE)))
}
