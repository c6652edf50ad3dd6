//! `turnlock setup slack`: prints the manifest of an app, ready to paste, and says where.

use turnlock_channels::slack::Manifest;
use turnlock_config::{Config, Groups};

use super::{address, language};
use crate::arguments::{Options, SetupSlack};
use crate::failure::Misuse;
use crate::setup::Setup;
use crate::{console, logs};

/// Prints the manifest to stdout and the next steps to stderr. The app does not exist yet, so nothing of its account has
/// to be configured.
pub(super) fn run(options: &Options, wanted: &SetupSlack) -> anyhow::Result<()> {
    logs::start(options, &crate::journal::Journal::default(), true)?;
    let account = &wanted.account;
    let setup = Setup::read_without_secrets(options)?;
    let default = Config::default();
    let config = setup.configured().unwrap_or(&default);
    let groups = config.slack.get(account).map_or(Groups::default(), |app| app.account.groups);
    let manifest = manifest(config, wanted, groups)?;
    let json = manifest.json().map_err(|error| Misuse(format!("{error}: choose another by --name")))?;
    console::line(serde_json::to_string_pretty(&json)?);
    for step in steps(account, &manifest) {
        console::aside(step);
    }
    Ok(())
}

fn manifest(config: &Config, wanted: &SetupSlack, groups: Groups) -> anyhow::Result<Manifest> {
    let url = address::of_route(&wanted.url, &format!("/slack/{}", wanted.account))?;
    let name = wanted.name.as_deref().unwrap_or(&config.agent.name).trim().to_owned();
    let language = language(config);
    let groups = match groups {
        Groups::Mention => turnlock_channels::Groups::Mention,
        Groups::Always => turnlock_channels::Groups::Always,
        Groups::Never => turnlock_channels::Groups::Never,
    };
    Ok(Manifest { description: language.app(&name), hint: language.command_hint(), name, url, groups })
}

fn steps(account: &str, manifest: &Manifest) -> Vec<String> {
    vec![
        "Next:".to_owned(),
        format!("1. Start the host with slack.{account}.signing_secret set, or Slack cannot verify {}.", manifest.url),
        "   A new app shows its secret under Basic Information; until then the address stays unverified.".to_owned(),
        "2. https://api.slack.com/apps, Create New App, From a manifest: choose the workspace, paste the JSON above.".to_owned(),
        format!("3. Basic Information: the signing secret is slack.{account}.signing_secret, the app id slack.{account}.app_id."),
        format!("4. Install App: the bot token (xoxb-…) is slack.{account}.bot_token. Secrets go to the environment or a secret"),
        "   store, never into the file: signing_secret = \"env:SLACK_SIGNING_SECRET\".".to_owned(),
        format!("5. `curl -H \"Authorization: Bearer $SLACK_BOT_TOKEN\" https://slack.com/api/auth.test` shows team_id, user_id"),
        format!("   (slack.{account}.bot_user_id) and bot_id."),
        "6. Event Subscriptions: Retry, until the address is verified. Then write to the app, or /invite it to a channel;".to_owned(),
        format!("   {} new, {0} stop and {0} status are its commands.", manifest.command()),
    ]
}
