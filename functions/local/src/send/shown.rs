//! What a chat shows after a delivery, asked for until it shows something new and is quiet.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};
use turnlock_domain::session::encode_part;

use crate::client::Client;
use crate::console;

/// How long a reply may take to begin.
const WITHIN: Duration = Duration::from_secs(10);
/// How long after a message another one may still belong to the same reply.
const QUIET: Duration = Duration::from_millis(400);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

type Chats = BTreeMap<String, Vec<String>>;

/// The chats before a delivery.
pub(super) struct Before(Chats);

impl Before {
    /// The chats as they are now.
    pub(super) async fn look(client: &Client) -> anyhow::Result<Self> {
        Ok(Self(chats(client).await?))
    }

    /// Waits for something new in the chats and shows it.
    pub(super) async fn show_chats(self, client: &Client) -> anyhow::Result<()> {
        let until = Instant::now() + WITHIN;
        let mut shown = self.0;
        let mut last_news = None;
        while last_news.map_or(Instant::now() < until, |at: Instant| at.elapsed() < QUIET) {
            sleep(LOOK_AGAIN).await;
            let now = chats(client).await?;
            if show_new(&shown, &now) {
                last_news = Some(Instant::now());
            }
            shown = now;
        }
        if last_news.is_none() {
            console::line(
                "Nothing new in any chat. A delivery that came before changes nothing (--as-new makes it a new one), and \
                 not every kind of delivery is answered; the host's log says which it was.",
            );
        }
        Ok(())
    }
}

/// Shows the messages that were not there; whether there were any.
fn show_new(before: &Chats, now: &Chats) -> bool {
    let mut any = false;
    for (chat, messages) in now {
        let known = before.get(chat).map_or(0, Vec::len);
        for text in messages.iter().skip(known) {
            console::line(format_args!("\n{chat} shows:\n{}", indented(text)));
            any = true;
        }
    }
    any
}

async fn chats(client: &Client) -> anyhow::Result<Chats> {
    let answer = client.get("/demo/chats").await?.unwrap_or_default();
    let chats = answer["chats"].as_object().cloned().unwrap_or_default();
    let texts = |chat: &Value| -> Vec<String> {
        let messages = chat["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        messages.iter().map(|message| message["text"].as_str().unwrap_or_default().to_owned()).collect()
    };
    Ok(chats.iter().map(|(name, chat)| (name.clone(), texts(chat))).collect())
}

/// Waits for the answer to an event that its sender can ask for, and shows it.
pub(super) async fn event(client: &Client, answer: &str) -> anyhow::Result<()> {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    let Some(id) = answer["event_id"].as_str() else { return Ok(()) };
    let path = format!("/v1/events/{}", encode_part(id));
    let until = Instant::now() + WITHIN;
    loop {
        let event = client.get(&path).await?.unwrap_or_default();
        if event["status"] == "done" {
            let text = event["message"]["text"].as_str().unwrap_or_default();
            console::line(format_args!("\nGET {path} shows:\n{}", indented(text)));
            return Ok(());
        }
        if Instant::now() > until {
            console::line(format_args!("\nNo answer yet; GET {path} has it later."));
            return Ok(());
        }
        sleep(LOOK_AGAIN).await;
    }
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}
