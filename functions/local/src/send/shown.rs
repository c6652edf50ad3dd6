//! What a chat shows after a delivery, when nothing more is being written.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};
use turnlock_domain::session::encode_part;

use crate::client::Client;
use crate::console;

/// How long the stand-in's reply may take to begin.
const CHAT_WITHIN: Duration = Duration::from_secs(3);
/// How long a reply may take that can be asked for; a real model may give it.
const EVENT_WITHIN: Duration = Duration::from_secs(25);
/// How long after a reply another one may still come of the same delivery.
const QUIET: Duration = Duration::from_millis(400);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

type Chats = BTreeMap<String, Vec<String>>;

/// The demo before a delivery.
pub(super) struct Before {
    chats: Chats,
    last_event: u64,
}

impl Before {
    /// The demo as it is now.
    pub(super) async fn look(client: &Client) -> anyhow::Result<Self> {
        let (_, last_event) = events(client, 0).await?;
        Ok(Self { chats: chats(client).await?, last_event })
    }

    /// Waits for the end of what the delivery led to and shows it: messages in chats as they are then, and events that
    /// are not answered. A reply that grows in its chat is waited for.
    pub(super) async fn show_chats(self, client: &Client) -> anyhow::Result<()> {
        let started = Instant::now();
        let (mut until, mut last_event) = (started + CHAT_WITHIN, self.last_event);
        let (mut writing, mut any) = (false, false);
        while Instant::now() < until {
            sleep(LOOK_AGAIN).await;
            let (events, last) = events(client, last_event).await?;
            last_event = last;
            if show_unanswered(&events) {
                any = true;
                until = until.min(Instant::now() + QUIET);
            }
            for said in events.iter().filter(|event| event["kind"] == "outbound") {
                any = true;
                writing = said["is_final"] != true;
                until = if writing { started + EVENT_WITHIN } else { Instant::now() + QUIET };
            }
        }
        show_messages(&self.chats, &chats(client).await?);
        if writing {
            console::line("\n(It is still being written; the page shows how it goes on.)");
        } else if !any {
            console::line(
                "Nothing new in any chat. If this delivery has come before, a redelivery changes nothing, and --as-new \
                 makes it a new one; else it waits for an earlier message of its chat.",
            );
        }
        Ok(())
    }
}

/// Shows the messages that were not there, or not like that.
fn show_messages(before: &Chats, now: &Chats) {
    for (chat, messages) in now {
        let known = before.get(chat).map(Vec::as_slice).unwrap_or_default();
        for (index, text) in messages.iter().enumerate().filter(|(index, text)| known.get(*index) != Some(text)) {
            let verb = if index < known.len() { "now shows" } else { "shows" };
            console::line(format_args!("\n{chat} {verb}:\n{}", indented(text)));
        }
    }
}

/// Shows the events that have no turn; whether there were any.
fn show_unanswered(events: &[Value]) -> bool {
    let unanswered = events.iter().filter(|event| event["kind"] == "event" && event["outcome"] != "committed");
    let mut any = false;
    for event in unanswered {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        console::line(format_args!("\nEvent {} is {}: {}", text("event_id"), text("outcome"), text("reason")));
        any = true;
    }
    any
}

/// The events after a number, and the number of the last one.
async fn events(client: &Client, after: u64) -> anyhow::Result<(Vec<Value>, u64)> {
    let answer = client.get(&format!("/demo/events?after={after}")).await?.unwrap_or_default();
    Ok((answer["events"].as_array().cloned().unwrap_or_default(), answer["last"].as_u64().unwrap_or_default()))
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
    let until = Instant::now() + EVENT_WITHIN;
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
