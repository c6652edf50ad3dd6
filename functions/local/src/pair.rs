//! `turnlock pair`: a code that lets its first sender talk to a bot, and who came in by one; for a deployment on AWS, for
//! the host that runs here, or for the data directory of one that is stopped.

mod pairings;

use std::process::ExitCode;

use anyhow::bail;
use turnlock_config::{Allow, Config, names};
use turnlock_domain::event::Channel;
use turnlock_lambda::Start;
use turnlock_store::Store;

use crate::arguments::{self, Options, PairChannel};
use crate::client::Client;
use crate::data::{DirectoryLock, Taking};
use crate::failure::Misuse;
use crate::setup::Setup;
use crate::{console, logs, machine};

pub(crate) use pairings::{Asked, Pairings, REMOVED_WITHIN, answer};

/// One of our identities on a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) channel: Channel,
    pub(crate) name: String,
}

impl std::fmt::Display for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.channel.as_str(), self.name)
    }
}

/// Where the pairings are.
enum Place {
    /// In the table of a deployment.
    Deployed(Store),
    /// With the host that runs over the data directory.
    Running(Client),
    /// In the data directory, which nobody works in.
    Here(Store, DirectoryLock),
}

/// Exit code 0 = done, or there was nothing to do.
pub(crate) async fn run(options: &Options, wanted: &arguments::Pair) -> anyhow::Result<ExitCode> {
    logs::start(options, &crate::journal::Journal::default(), true)?;
    let channel = match wanted.channel {
        PairChannel::Telegram => Channel::Telegram,
        PairChannel::Slack => Channel::Slack,
    };
    let account = Account { channel, name: wanted.account.clone() };
    let asked = match &wanted.remove {
        Some(sender) => Asked::Remove(sender.clone()),
        None if wanted.list => Asked::List,
        None => Asked::Offer,
    };
    let is_deployment = names::environment(names::TABLE).is_some_and(|value| !value.is_empty());
    // What lies here by chance is another configuration than the deployment's.
    let setup = match (is_deployment, &options.config) {
        (true, None) => None,
        (true, Some(_)) | (false, _) => Some(Setup::read_without_secrets(options)?),
    };
    let config = setup.as_ref().and_then(Setup::configured);
    if let Some(config) = config
        && is_open(config, &account)?
        && asked == Asked::Offer
    {
        console::line(format_args!("Everybody may talk to {account} (allow = [\"*\"]): no pairing is needed."));
        return Ok(ExitCode::SUCCESS);
    }
    let place = match &setup {
        _ if is_deployment => deployed()?,
        Some(setup) if !setup.is_demo() => here(setup).await?,
        Some(_) | None => {
            console::line("There is no configuration file, and in the demo everybody may talk: no pairing is needed.");
            return Ok(ExitCode::SUCCESS);
        }
    };
    let pairings = match place {
        Place::Deployed(store) => answer(&store, &account, &asked).await?,
        Place::Running(client) => client.pairings(&account, &asked).await?,
        Place::Here(store, _lock) => answer(&store, &account, &asked).await?,
    };
    show(&account, pairings, config)?;
    Ok(ExitCode::SUCCESS)
}

/// Whether everybody may talk to the account.
fn is_open(config: &Config, account: &Account) -> anyhow::Result<bool> {
    let allow: Vec<(&str, &Allow)> = match account.channel {
        Channel::Slack => config.slack.iter().map(|(name, app)| (name.as_str(), &app.account.allow)).collect(),
        _ => config.telegram.iter().map(|(name, bot)| (name.as_str(), &bot.account.allow)).collect(),
    };
    match allow.iter().find(|(name, _)| *name == account.name) {
        Some((_, allow)) => Ok(**allow == Allow::Everybody),
        None => {
            let known: Vec<&str> = allow.into_iter().map(|(name, _)| name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let channel = account.channel.as_str();
            Err(Misuse(format!("there is no [{account}] in the configuration; accounts of {channel}: {known}")).into())
        }
    }
}

fn deployed() -> anyhow::Result<Place> {
    let start = Start::for_operator(&[names::TABLE]).map_err(|error| Misuse(error.to_string()))?;
    let setting = |name| names::environment(name).unwrap_or_default();
    console::aside(format_args!("The table {} in {}:", setting(names::TABLE), setting(names::AWS_REGION)));
    Ok(Place::Deployed(start.store()?))
}

async fn here(setup: &Setup) -> anyhow::Result<Place> {
    if let Some(client) = Client::find(&setup.data).await? {
        return Ok(Place::Running(client));
    }
    let Taking::Taken(lock) = setup.data.take()? else { return Err(setup.data.in_use().into()) };
    Ok(Place::Here(machine::pairings(&setup.data).await?, lock))
}

fn show(account: &Account, pairings: Pairings, config: Option<&Config>) -> anyhow::Result<()> {
    match pairings {
        Pairings::Code(code) => {
            console::line("Send this to the bot within 15 minutes, as a message of its own:\n");
            console::line(format_args!("    {code}\n"));
            let bot =
                config.filter(|_| account.channel == Channel::Telegram).and_then(|c| c.telegram.get(&account.name));
            if let Some(bot) = bot.filter(|bot| !bot.username.is_empty()) {
                console::line(format_args!("or open https://t.me/{}?start={code}\n", bot.username));
            }
            console::line(format_args!("Whoever sends it first may talk to {account} from then on."));
        }
        Pairings::Full => {
            bail!("so many people are paired with {account} that no more can be: `--remove` some, or allow a group")
        }
        Pairings::List(paired) if paired.is_empty() => {
            console::line(format_args!("Nobody is paired with {account}."));
        }
        Pairings::List(paired) => {
            for (sender, at) in paired {
                console::line(format_args!("{sender}  since {at}"));
            }
        }
        Pairings::Removed(sender) => console::line(format_args!(
            "{sender} may no longer talk to {account}; what runs notices within {} s.",
            REMOVED_WITHIN.as_secs()
        )),
        Pairings::Unknown(sender) => {
            return Err(Misuse(format!("{sender} is not paired with {account}; `--list` shows who is")).into());
        }
    }
    Ok(())
}
