//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// A chat agent in one process. Without a command it serves; without a configuration file it is a demo that needs no
/// account and no network.
#[derive(Debug, Parser)]
#[command(name = "turnlock", version)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What every command understands.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// The configuration file [default: turnlock.toml if it is there; also TURNLOCK_CONFIG]
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// Where sessions, queues and secrets are kept [default: .turnlock, or what the configuration says]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// The port to listen at; 0 = any [default: 8787, or what the configuration says]
    #[arg(long, global = true, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// How log lines look; they go to stderr
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    pub(crate) log: LogFormat,
    /// What is logged: error, warn, info, debug, trace, or targets with levels [also TURNLOCK_LOG]
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What to do.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Command {
    /// Run every function and the page (the default)
    Serve,
    /// Talk to the agent here, through the running host or one that is started for it
    Chat {
        /// The conversation
        #[arg(long, default_value = "default", value_name = "NAME")]
        session: String,
    },
    /// Play a recorded delivery, signed, to the running host and show what the chat would show
    Send(Send),
    /// Print a code: who sends it to the bot first may talk to it from then on
    ///
    /// The code is valid for 15 minutes and once; a new one takes the place of the last. For a deployment on AWS, set
    /// what the stack's output RedriveEnvironment says, the region and the credentials (`aws configure
    /// export-credentials --format env`). Without that it is about the host here, running or stopped.
    Pair(Pair),
    /// Connect an account with its platform: webhook and commands of a Telegram bot, the manifest of a Slack app
    #[command(subcommand)]
    Setup(SetupPlatform),
    /// Send what was given up again, once its cause is gone
    ///
    /// Without a choice, what was given up is listed and nothing is sent. For a deployment on AWS, set what the stack's
    /// output RedriveEnvironment says, the region and the credentials (`aws configure export-credentials --format env`).
    /// Without that it is about the data directory here.
    Redrive(Redrive),
    /// Play scripts offline, on a virtual clock, and check what they expect
    Replay(Replay),
}

/// Who may talk to a bot.
#[derive(Debug, Clone, Args)]
pub(crate) struct Pair {
    /// Where people write
    #[arg(long, value_enum, default_value_t = PairChannel::Telegram)]
    pub(crate) channel: PairChannel,
    /// Which of our identities they write to
    #[arg(long, default_value = "main", value_name = "NAME")]
    pub(crate) account: String,
    /// Show who came in by a code
    #[arg(long, conflicts_with = "remove")]
    pub(crate) list: bool,
    /// Let the person with this id in no longer (who is on the list `allow` stays there)
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub(crate) remove: Option<String>,
}

/// A channel on which people write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PairChannel {
    /// A bot.
    Telegram,
    /// An app.
    Slack,
}

/// A platform to connect with.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum SetupPlatform {
    /// Tell Telegram where the bot's updates go and which commands it has, and say what will arrive from groups
    Telegram(SetupTelegram),
    /// Print the manifest of a Slack app, ready to paste; the next steps go to stderr
    Slack(SetupSlack),
}

/// A bot to connect.
#[derive(Debug, Clone, Args)]
pub(crate) struct SetupTelegram {
    /// Where this deployment is reached from outside, by https
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) url: String,
    /// Which of the configured bots
    #[arg(long, default_value = "main", value_name = "NAME")]
    pub(crate) account: String,
    /// The Bot API server [default: what the configuration says, or Telegram's own]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) base_url: Option<String>,
}

/// An app to make.
#[derive(Debug, Clone, Args)]
pub(crate) struct SetupSlack {
    /// Where this deployment is reached from outside, by https
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) url: String,
    /// What the app is called in the configuration
    #[arg(long, default_value = "main", value_name = "NAME")]
    pub(crate) account: String,
    /// What it is called in Slack, up to 35 characters [default: agent.name]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// Scripts to play.
#[derive(Debug, Clone, Args)]
pub(crate) struct Replay {
    /// Replay files: one JSON object a line
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print everything there was to see, one JSON object a file (which names it where there are several)
    #[arg(long)]
    pub(crate) json: bool,
    /// What chance is made from: the same file, seed and version give the same output
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) seed: u64,
}

/// What to send again.
#[derive(Debug, Clone, Args)]
pub(crate) struct Redrive {
    /// The events, by the ids that the list shows
    #[arg(value_name = "ID", conflicts_with = "all")]
    pub(crate) ids: Vec<String>,
    /// Everything that the list shows
    #[arg(long)]
    pub(crate) all: bool,
    /// How many of the newest are looked at
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) newest: u16,
}

/// A delivery to play.
#[derive(Debug, Clone, Args)]
pub(crate) struct Send {
    /// The body as the platform sends it (examples: shared/channels/src/*/fixtures)
    pub(crate) file: PathBuf,
    /// Whose delivery it is
    #[arg(long, value_enum)]
    pub(crate) channel: SendChannel,
    /// Which of our identities it is for
    #[arg(long, default_value = "main", value_name = "NAME")]
    pub(crate) account: String,
    /// Give it a new identity, so that it is no redelivery of the last one
    #[arg(long)]
    pub(crate) as_new: bool,
}

/// A channel whose deliveries can be played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SendChannel {
    /// An update of the Bot API.
    Telegram,
    /// A request of the Events API, or a form of a command.
    Slack,
    /// Any producer's body.
    Webhook,
    /// A body of `POST /v1/messages`.
    Gateway,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn options_may_stand_before_and_behind_the_command() {
        for line in [["turnlock", "--port", "0", "serve"], ["turnlock", "serve", "--port", "0"]] {
            assert_eq!(Arguments::try_parse_from(line).unwrap().options.port, Some(0));
        }
        assert!(Arguments::try_parse_from(["turnlock"]).unwrap().command.is_none());
    }
}
