//! What is said when a host has started: where it is, what stands in for what, what to try.

use crate::console;
use crate::data::Announcement;
use crate::unhurried::WORD;

/// A delivery that anybody who has the sources can play.
const EXAMPLE: &str = "shared/channels/src/telegram/fixtures/private_text.json";

/// Says it.
pub(crate) fn show(host: &Announcement) {
    console::line(if host.demo { demo(&host.address) } else { configured(&host.address) });
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

fn configured(address: &str) -> String {
    format!(
        "\
Turnlock runs at {address}
Platforms deliver to /telegram/<bot>, /slack/<app> and /webhook/<source>; the API is under /v1.
Talk to it: open {address} or `turnlock chat`.
"
    )
}
