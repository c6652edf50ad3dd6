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
        "1. https://api.slack.com/apps, Create New App, From a manifest: choose the workspace, paste the JSON above."
            .to_owned(),
        "   The address stays unverified until step 5.".to_owned(),
        format!(
            "2. Basic Information shows the app id (slack.{account}.app_id) and the signing secret. Install App shows the bot"
        ),
        "   token (xoxb-…). `curl -H \"Authorization: Bearer $SLACK_BOT_TOKEN\" https://slack.com/api/auth.test` shows"
            .to_owned(),
        "   team_id, user_id (the bot_user_id) and bot_id.".to_owned(),
        "3. Write them into the configuration, the secrets as references only:".to_owned(),
        format!("   [slack.{account}]"),
        "   app_id = \"A…\"".to_owned(),
        "   team_id = \"T…\"".to_owned(),
        "   bot_user_id = \"U…\"".to_owned(),
        "   bot_token = \"env:SLACK_BOT_TOKEN\"".to_owned(),
        "   signing_secret = \"env:SLACK_SIGNING_SECRET\"".to_owned(),
        format!(
            "4. Start the host with both secrets in its environment, or deploy; slack.{account}.signing_secret verifies Slack."
        ),
        format!(
            "5. Event Subscriptions: Retry, until {} is verified. Then write to the app, or /invite it to a",
            manifest.url
        ),
        format!("   channel; {} new, {0} stop and {0} status are its commands.", manifest.command()),
    ]
}
