//! What is said when a host has started: where it is, what stands in for what, what to try.

use turnlock_config::{Allow, Config, Provider};

use crate::console;
use crate::data::Announcement;
use crate::unhurried::WORD;

/// A delivery that anybody who has the sources can play.
const EXAMPLE: &str = "shared/channels/src/telegram/fixtures/private_text.json";

/// What answers where no language model is named.
const STAND_IN: &str = "a stand-in, not a language model: name a real one under [[models]]";

/// Between values that stand in lines of their own.
const BELOW: &str = "\n                      ";

/// Says it; `config` is the file's, if there is one.
pub(crate) fn show(host: &Announcement, config: Option<&Config>) {
    console::line(match config {
        None => demo(&host.address),
        Some(config) => configured(&host.address, config),
    });
}

fn demo(address: &str) -> String {
    format!(
        "\
Turnlock runs at {address}

This is a demo: a stand-in answers in place of a language model, and stand-ins take the place of Telegram
and Slack. Nothing leaves this machine, and no account is needed.

Try:
  open the page               {address}   (begin with \"{WORD}\" to see a reply grow)
  talk in another terminal    cargo run -- chat
  play a Telegram message     cargo run -- send {EXAMPLE} --channel telegram

For a real model and real channels write a turnlock.toml (shared/config/turnlock.example.toml has every key).
"
    )
}

fn configured(address: &str, config: &Config) -> String {
    let routes = (config.telegram.keys().map(|name| format!("/telegram/{name}")))
        .chain(config.slack.keys().map(|name| format!("/slack/{name}")))
        .chain(config.webhook.keys().map(|name| format!("/webhook/{name}")));
    let routes: Vec<String> = routes.collect();
    let routes = if routes.is_empty() { "none".to_owned() } else { routes.join(", ") };
    let keys: Vec<&str> = config.gateway.keys.keys().map(String::as_str).collect();
    let page = match keys.as_slice() {
        [] => "closed; a [gateway.keys.NAME] opens them".to_owned(),
        keys => format!("with the key of {}", keys.join(" or ")),
    };
    let (models, tools) = (models(config), tools(config));
    format!(
        "\
Turnlock runs at {address}

  models, in order    {models}
  tools               {tools}
  channels            {routes}
  page and /v1        {page}
  in this terminal    turnlock chat
{}",
        closed(config)
    )
}

/// Every model in the order in which they are asked, each in a line of its own.
fn models(config: &Config) -> String {
    let models = config.models.iter().map(|model| match model.provider {
        Provider::Scripted => STAND_IN.to_owned(),
        Provider::Bedrock => format!("{} on Bedrock", model.model),
        Provider::Openai => format!("{} at {}", model.model, model.base_url),
    });
    let models: Vec<String> = models.collect();
    if models.is_empty() { STAND_IN.to_owned() } else { models.join(BELOW) }
}

fn tools(config: &Config) -> String {
    let configured: Vec<&str> = config.tools.keys().map(String::as_str).collect();
    match configured.as_slice() {
        [] => "the built-in ones; a [tools.NAME] adds one".to_owned(),
        names => format!("the built-in ones, {}", names.join(", ")),
    }
}

/// What to do about accounts that let nobody in.
fn closed(config: &Config) -> String {
    let telegram = config.telegram.iter().map(|(name, bot)| ("telegram", name, &bot.account.allow));
    let slack = config.slack.iter().map(|(name, app)| ("slack", name, &app.account.allow));
    let closed = telegram.chain(slack).filter(|(.., allow)| matches!(allow, Allow::Only(ids) if ids.is_empty()));
    let lines = closed.map(|(channel, account, _)| {
        format!("\nOn {channel}.{account} nobody is let in who is not paired: turnlock pair --channel {channel} --account {account}, or set allow.\n")
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use turnlock_config::Telegram;

    use super::*;

    #[test]
    fn a_configured_host_says_what_is_open_and_what_opens_the_rest() {
        let text = configured("http://127.0.0.1:1", &Config::default());
        assert!(text.contains("a stand-in") && text.contains("channels            none"), "{text}");
        assert!(text.contains("a [gateway.keys.NAME] opens them") && !text.contains("turnlock pair"), "{text}");
        let mut config = Config::default();
        assert!(text.contains("tools               the built-in ones; a [tools.NAME] adds one\n"), "{text}");
        config.telegram.insert("main".to_owned(), Telegram::default());
        config.telegram.entry("open".to_owned()).or_default().account.allow = Allow::Everybody;
        let text = configured("http://127.0.0.1:1", &config);
        assert!(text.contains("On telegram.main nobody is let in") && !text.contains("On telegram.open"), "{text}");
    }

    #[test]
    fn every_model_is_named_in_its_order_and_every_configured_tool() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("turnlock.toml");
        let text = r#"
            [[models]]
            provider = "openai"
            model = "first"
            base_url = "http://127.0.0.1:9/v1"
            [[models]]
            provider = "bedrock"
            model = "second"
            [tools.orders]
            description = "d"
            url = "http://127.0.0.1:9/orders"
            risk = "read"
            schema = { type = "object" }
            [tools.backup]
            description = "d"
            command = ["true"]
            risk = "execute"
            schema = { type = "object" }
        "#;
        std::fs::write(&file, text).unwrap();
        let text = configured("http://127.0.0.1:1", &Config::load(&file).unwrap());
        let models = "  models, in order    first at http://127.0.0.1:9/v1\n                      second on Bedrock\n";
        assert!(text.contains(models), "{text}");
        assert!(text.contains("  tools               the built-in ones, backup, orders\n"), "{text}");
    }
}
