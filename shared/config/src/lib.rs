//! The configuration: `turnlock.toml`, read once at start into plain structs, or refused with every mistake named.
//!
//! A key that is not known, a value out of its range, a secret that is missing or written out: each is an error that
//! names the key, its line and what is allowed, and all of them are reported together. Nothing is mocked or defaulted
//! where a secret is missing. No error and no `Debug` shows a secret.
//!
//! | way in | for | secrets |
//! |---|---|---|
//! | [`Config::load`], [`Config::parse`] | `turnlock.toml` | `env:NAME` or `secret:name`, never the value |
//! | [`Config::demo`] | the first run without a file | random, passed in |
//! | [`Config::from_json_merge`] | replays | literal, passed by our own code |
//!
//! Not here: clients and channels (who reads this maps it to their own settings), and the reading of a secret store
//! (a [`Lookup`] is asked for values). The environment is read nowhere else: [`names`] lists it.

mod error;
pub mod names;
mod reading;
mod settings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde_json::Value;

use reading::Source;

pub use error::{ConfigError, Problem};
pub use settings::{
    Account, Agent, Allow, ApprovalAction, ApprovalRule, Approvals, Capability, Cron, DemoSecrets, Gateway, GatewayKey,
    Groups, Guardrail, Instruction, Limits, LocalTarget, ModelSettings, Price, Provider, ReplyTo, Server, Slack,
    Telegram, Thinking, ToolSettings, ToolTarget, Verify, Webhook, WhileBusy, millionths,
};

/// Where secrets come from: asked for `NAME` where the file says `env:NAME`, and for `secret:name` where it says that.
pub type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// What a function of a deployment reads of the file that all of them share.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// Whether it needs the secret at a key (`telegram.main.bot_token`). One that it does not need stays unset, and is
    /// not asked for: it may not be allowed to read it.
    pub needs: &'a dyn Fn(&str) -> bool,
    /// The time of one invocation, in seconds, where the deployment sets it; the file's value is for one process.
    pub turn_seconds: Option<u32>,
}

impl Part<'_> {
    /// The whole file, as it is.
    const WHOLE: Part<'static> = Part { needs: &|_| true, turn_seconds: None };
}

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Config {
    /// Who the agent is, and its limits.
    pub agent: Agent,
    /// What a tool may do without asking.
    pub approvals: Approvals,
    /// Models in order of preference; never empty.
    pub models: Vec<ModelSettings>,
    /// Tools of a team's own, by name.
    pub tools: BTreeMap<String, ToolSettings>,
    /// Telegram bots by account.
    pub telegram: BTreeMap<String, Telegram>,
    /// Slack apps by account.
    pub slack: BTreeMap<String, Slack>,
    /// Webhook sources by name.
    pub webhook: BTreeMap<String, Webhook>,
    /// What schedules tell the agent, by name.
    pub cron: BTreeMap<String, Cron>,
    /// The HTTP API.
    pub gateway: Gateway,
    /// The one-process host.
    pub server: Server,
}

impl Default for Config {
    /// What an empty file says: no channel, and the scripted model.
    fn default() -> Self {
        Self {
            agent: Agent::default(),
            approvals: Approvals::default(),
            models: vec![ModelSettings::default()],
            tools: BTreeMap::new(),
            telegram: BTreeMap::new(),
            slack: BTreeMap::new(),
            webhook: BTreeMap::new(),
            cron: BTreeMap::new(),
            gateway: Gateway::default(),
            server: Server::default(),
        }
    }
}

impl Config {
    /// Reads the file at `path`, and the instruction and schema files it names, which stand relative to it. Secrets come from the
    /// environment; a `secret:` reference is an error here ([`Config::load_with`] takes another source).
    ///
    /// # Errors
    /// [`ConfigError`]: the file cannot be read, is no TOML, or says what cannot be.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::load_with(path, &names::environment)
    }

    /// As [`Config::load`], with another source of secrets.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load_with(path: &Path, secrets: &Lookup<'_>) -> Result<Self, ConfigError> {
        Self::load_part(path, Part::WHOLE, secrets)
    }

    /// As [`Config::load_with`], but only with the secrets that `part` needs.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load_part(path: &Path, part: Part<'_>, secrets: &Lookup<'_>) -> Result<Self, ConfigError> {
        let text = read(path)?;
        let mut config = Self::parse_part(&text, part, secrets).map_err(|error| error.in_file(path))?;
        let root = path.parent().unwrap_or(Path::new(""));
        config.agent.read_files(root).map_err(|error| error.in_file(path))?;
        settings::read_schemas(&mut config.tools, root).map_err(|error| error.in_file(path))?;
        Ok(config)
    }

    /// Reads the text of a configuration file. Instruction and schema files are not read.
    ///
    /// # Errors
    /// [`ConfigError`] with every mistake in the text.
    pub fn parse(text: &str, secrets: &Lookup<'_>) -> Result<Self, ConfigError> {
        Self::parse_part(text, Part::WHOLE, secrets)
    }

    /// As [`Config::parse`], but only with the secrets that `part` needs.
    ///
    /// # Errors
    /// As [`Config::parse`].
    pub fn parse_part(text: &str, part: Part<'_>, secrets: &Lookup<'_>) -> Result<Self, ConfigError> {
        reading::from_toml(text, part.turn_seconds, Source::References { lookup: secrets, needs: part.needs })
    }

    /// The configuration of the first run: everybody is allowed, the model is the stand-in, the platforms are the
    /// built-in fakes, which know these identities.
    #[must_use]
    pub fn demo(secrets: DemoSecrets) -> Self {
        settings::demo(secrets)
    }

    /// Merges `json`, shaped like the file, over `base`. A trusted constructor for replays: secrets stand in it
    /// literally, `""` or `null` is "not configured", and `invent` gives an account that is new here the secrets it
    /// does not name, by their key (`telegram.other.bot_token`). Limits that only guard a deployment are not checked.
    ///
    /// # Errors
    /// [`ConfigError`] with every mistake in the object; there are no lines to name.
    pub fn from_json_merge(
        base: Self,
        json: Value,
        invent: &dyn Fn(&str) -> SecretString,
    ) -> Result<Self, ConfigError> {
        reading::from_json(base, json, Source::Literal(invent))
    }
}

fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: PathBuf::from(path), source })
}
