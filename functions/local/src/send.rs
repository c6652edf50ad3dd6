//! `turnlock send FILE --channel …`: plays a recorded delivery to the running host, signed as its platform signs, and
//! shows what comes of it.

mod delivery;
mod shown;

use std::process::ExitCode;

use anyhow::Context;

use crate::arguments::{Options, Send, SendChannel};
use crate::client::{Client, sentence};
use crate::data::random_text;
use crate::failure::Misuse;
use crate::setup::Setup;
use crate::{console, logs};

/// Exit code 0 = the host took the delivery.
pub(crate) async fn run(options: &Options, send: &Send) -> anyhow::Result<ExitCode> {
    logs::start(options, &crate::journal::Journal::default(), true)?;
    let body = std::fs::read(&send.file).map_err(|error| {
        Misuse(format!(
            "{} cannot be read ({error}); recorded deliveries are in shared/channels/src/*/fixtures",
            send.file.display()
        ))
    })?;
    let setup = Setup::read(options)?;
    let Some(client) = Client::find(&setup.data).await? else {
        return Err(
            Misuse("no turnlock runs over this data directory: start one with `cargo run` first".to_owned()).into()
        );
    };
    let config = setup.config_of_running()?.context("the running host's configuration is not known here")?;
    let fresh = random_text(16)?;
    let body = if send.as_new { delivery::renewed(send.channel, &body, &fresh)? } else { body };
    let delivery = delivery::signed(send, &config, &client.host().token, &fresh, body)?;
    let before = shown::Before::look(&client).await?;
    let (status, answer) = client.deliver(&delivery.path, delivery.headers, delivery.body).await?;
    if !status.is_success() {
        console::line(format_args!("POST {} → {}", delivery.path, sentence(status, &answer)));
        return Ok(ExitCode::FAILURE);
    }
    console::line(format_args!("POST {} → {}", delivery.path, status));
    match send.channel {
        SendChannel::Telegram | SendChannel::Slack if client.host().demo => before.show_chats(&client).await?,
        SendChannel::Telegram | SendChannel::Slack => console::line("The reply goes to the real chat."),
        SendChannel::Webhook | SendChannel::Gateway => shown::event(&client, &answer).await?,
    }
    Ok(ExitCode::SUCCESS)
}
