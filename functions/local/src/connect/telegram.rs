//! `turnlock setup telegram`: tells the Bot API where the bot's updates go and which commands it has, and the operator
//! what will arrive.

use anyhow::Context;
use turnlock_channels::command::COMMANDS;
use turnlock_channels::telegram::{Administration, AdministrationError, DEFAULT_BASE_URL, Identity, UPDATES};
use turnlock_config::{Config, Groups, Telegram};

use super::{address, language};
use crate::arguments::{Options, SetupTelegram};
use crate::failure::Misuse;
use crate::setup::Setup;
use crate::{console, logs, platforms};

/// Connects the bot.
pub(super) async fn run(options: &Options, wanted: &SetupTelegram) -> anyhow::Result<()> {
    logs::start(options, &crate::journal::Journal::default(), true)?;
    let account = &wanted.account;
    let route = format!("/telegram/{account}");
    let url = address::of_route(&wanted.url, &route)?;
    let setup = Setup::read_with_secrets_of(options, &format!("telegram.{account}"))?;
    let config = setup.configured().ok_or_else(|| {
        Misuse(format!("there is no configuration file: write one with [telegram.{account}], or name it by --config"))
    })?;
    let bot = config.telegram.get(account).ok_or_else(|| {
        Misuse(format!("the configuration has no [telegram.{account}]: add it, or choose another by --account"))
    })?;
    let missing =
        |key| Misuse(format!("telegram.{account}.{key} has no value: set what the configuration names there"));
    let token = bot.bot_token.clone().ok_or_else(|| missing("bot_token"))?;
    let secret = bot.secret_token.as_ref().ok_or_else(|| missing("secret_token"))?;
    let server = wanted.base_url.as_deref().or(bot.base_url.as_deref()).unwrap_or(DEFAULT_BASE_URL);

    let telegram = Administration::new(platforms::real()?, account, token, server);
    let identity = telegram.identity().await.map_err(|error| explained(error, account))?;
    check(&identity, bot, account)?;
    telegram.set_webhook(&url, secret).await.map_err(|error| explained(error, account))?;
    telegram.set_commands(&commands(config)).await.map_err(|error| explained(error, account))?;
    let webhook = telegram.webhook().await.context("the webhook is set, but cannot be read back")?;

    let name = &identity.username;
    console::line(format_args!("Telegram sends what is written to @{name} to {url} now: {}.", UPDATES.join(", ")));
    let names: Vec<String> = COMMANDS.iter().map(|(name, _)| format!("/{name}")).collect();
    console::line(format_args!("The bot's menu lists {}.", names.join(", ")));
    if !address::is_same(&webhook.url, &url) {
        anyhow::bail!(
            "somebody else set another webhook at the same moment: run this again, and stop the other program"
        );
    }
    if webhook.pending > 0 {
        console::line(format_args!("{} updates wait there and will come now.", webhook.pending));
    }
    if let Some(error) = &webhook.last_error {
        console::line(format_args!("The newest delivery that failed says: {error}"));
    }
    for line in privacy(&identity, bot.account.groups) {
        console::line(line);
    }
    Ok(())
}

/// The token must be that of the bot which the configuration describes: its id is in every event's identity, and its name
/// is what groups mention.
fn check(identity: &Identity, bot: &Telegram, account: &str) -> Result<(), Misuse> {
    if identity.id != bot.bot_id {
        let (is, says) = (identity.id, bot.bot_id);
        return Err(Misuse(format!(
            "the token is that of bot {is}, and telegram.{account}.bot_id says {says}: change one"
        )));
    }
    if !identity.username.eq_ignore_ascii_case(&bot.username) {
        let (is, says) = (&identity.username, &bot.username);
        return Err(Misuse(format!(
            "the bot is called @{is}, and telegram.{account}.username says {says}, so no mention would be recognised: write {is}"
        )));
    }
    Ok(())
}

fn commands(config: &Config) -> Vec<(&'static str, String)> {
    let language = language(config);
    COMMANDS.iter().filter_map(|(name, command)| Some((*name, language.command(*command)?))).collect()
}

/// What to do about a refusal.
fn explained(error: AdministrationError, account: &str) -> anyhow::Error {
    let advice = match &error {
        AdministrationError::NotHttps | AdministrationError::Port(_) => {
            "give --url another address, e.g. https://bot.example.org".to_owned()
        }
        AdministrationError::Secret => format!(
            "give telegram.{account}.secret_token a value like that of `openssl rand -hex 32`, here and where the bot runs"
        ),
        AdministrationError::Token => {
            format!("copy the token that @BotFather shows into what telegram.{account}.bot_token names")
        }
        AdministrationError::Wait(_) => "then run this again".to_owned(),
        AdministrationError::NoAnswer => {
            format!("check the network, or telegram.{account}.base_url, and run this again")
        }
        AdministrationError::Refused { .. } => "nothing else was changed".to_owned(),
    };
    let sentence = format!("{error}: {advice}");
    match error {
        AdministrationError::Wait(_) | AdministrationError::NoAnswer | AdministrationError::Refused { .. } => {
            anyhow::anyhow!(sentence)
        }
        AdministrationError::NotHttps
        | AdministrationError::Port(_)
        | AdministrationError::Secret
        | AdministrationError::Token => Misuse(sentence).into(),
    }
}

/// What of a group's messages will arrive (Bot API, "Privacy mode"), and what the bot makes of them.
fn privacy(identity: &Identity, groups: Groups) -> Vec<String> {
    let name = &identity.username;
    if groups == Groups::Never {
        return vec!["In groups it stays silent (groups = \"never\").".to_owned()];
    }
    if !identity.joins_groups {
        return vec![format!("It cannot be added to groups: @BotFather, /setjoingroups, @{name}, Enable.")];
    }
    let answers = match groups {
        Groups::Always => "it answers every message there (groups = \"always\")",
        Groups::Mention | Groups::Never => "it answers those that mention it or reply to it (groups = \"mention\")",
    };
    if identity.reads_groups {
        return vec![format!("Privacy mode is off: every message of its groups arrives, and {answers}.")];
    }
    let missing = match groups {
        Groups::Always => "so groups = \"always\" does not do what it says",
        Groups::Mention | Groups::Never => "so a group may mention it and get no answer",
    };
    vec![
        format!("Privacy mode is on. From groups arrive: commands for it (/help@{name}) and replies to its messages."),
        format!("Not sure to arrive: messages that only mention @{name}. Never: all others; {missing}."),
        format!(
            "To change that: @BotFather, /setprivacy, @{name}, Disable; then remove the bot from each of its groups"
        ),
        "and add it again: groups that it is in already keep the old setting. An administrator gets everything."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(joins_groups: bool, reads_groups: bool) -> Identity {
        Identity { id: 1, username: "echo_bot".into(), joins_groups, reads_groups }
    }

    fn says(identity: &Identity, groups: Groups) -> String {
        privacy(identity, groups).join("\n")
    }

    /// Case tg-privacy-mode: with privacy mode on a mention may not arrive, and turning it off needs the bot to be added
    /// again.
    #[test]
    fn tg_privacy_mode() {
        let on = identity(true, false);
        let mention = says(&on, Groups::Mention);
        for part in
            ["Privacy mode is on", "replies to its messages", "only mention @echo_bot", "/setprivacy", "add it again"]
        {
            assert!(mention.contains(part), "{part}: {mention}");
        }
        assert!(says(&on, Groups::Always).contains("does not do what it says"));
        assert!(says(&identity(true, true), Groups::Mention).contains("every message of its groups arrives"));
        assert!(says(&identity(true, true), Groups::Always).contains("answers every message"));
        assert!(says(&identity(false, false), Groups::Mention).contains("/setjoingroups"));
        assert_eq!(privacy(&on, Groups::Never).len(), 1);
    }

    #[test]
    fn every_refusal_says_what_to_do() {
        let refused = AdministrationError::Refused { method: "setWebhook", description: "Bad Request: x".into() };
        let table = [
            (AdministrationError::NotHttps, "--url", true),
            (AdministrationError::Port(8080), "8443", true),
            (AdministrationError::Secret, "openssl rand", true),
            (AdministrationError::Token, "@BotFather", true),
            (AdministrationError::Wait(std::time::Duration::from_secs(7)), "wait 7 s", false),
            (AdministrationError::NoAnswer, "network", false),
            (refused, "Bad Request: x", false),
        ];
        for (error, part, is_misuse) in table {
            let error = explained(error, "main");
            assert!(error.to_string().contains(part), "{error}");
            assert_eq!(error.is::<Misuse>(), is_misuse, "{error}");
        }
    }
}
