//! The transcript: what happened, for people. Everything in it is in the object too; nothing reads it back.

use std::fmt::{self, Write as _};

use serde_json::Value;

use super::{CallRow, Output, Seconds};
use crate::fakes::ShownMessage;

/// The most characters of a text that a line shows.
const MAX_TEXT: usize = 160;

/// What happened, in order of time, and what the chats show at the end.
#[must_use]
pub fn transcript(output: &Output) -> String {
    let mut lines = timeline(output);
    // Stable: at one instant the order is that of the sections.
    lines.sort_by(|one, two| one.0.0.total_cmp(&two.0.0));
    let mut text = String::new();
    for (at, line) in lines {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:>9}  {line}", time(at));
    }
    let _ = chats(output, &mut text);
    let _ = remarks(output, &mut text);
    text
}

fn time(at: Seconds) -> String {
    format!("{:.3}", at.0)
}

fn timeline(output: &Output) -> Vec<(Seconds, String)> {
    let mut lines = Vec::new();
    for delivery in &output.deliveries {
        let status = if delivery.status == 0 { "no answer".to_owned() } else { delivery.status.to_string() };
        lines.push((delivery.at, format!("in    {}  [{status}]", one_line(&delivery.asked))));
    }
    for invocation in output.invocations.iter().flatten() {
        lines.push((invocation.at, format!("in    {} was invoked", invocation.function)));
    }
    for run in output.tool_runs.iter().flatten() {
        lines.push((run.at, format!("tool  {} {}  [{}]", run.name, one_line(&run.input.to_string()), run.outcome)));
    }
    for (method, calls) in &output.platform_calls {
        lines.extend(calls.iter().map(|call| (call.at, call_line(method, call))));
    }
    for log in &output.logs {
        lines.push((log.at, format!("log   {}: {}", log.level, one_line(&log.message))));
    }
    lines
}

fn call_line(method: &str, call: &CallRow) -> String {
    let chat = call.arguments.get("chat_id").or_else(|| call.arguments.get("channel"));
    let chat = chat.map_or_else(String::new, |chat| format!(" {}", plain(chat)));
    let text = call.arguments.get("text").and_then(Value::as_str).map(one_line);
    let text = text.map_or_else(String::new, |text| format!(": {text}"));
    let status = call.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
    let seen = if call.applied { "" } else { ", not applied" };
    format!("out   {method} {}{chat}{text}  [{status}{seen}]", call.account)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A text on one line, cut where it is long.
fn one_line(text: &str) -> String {
    let flat: String = text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
    match flat.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}… ({} characters)", &flat[..end], flat.chars().count()),
        None => flat,
    }
}

fn chats(output: &Output, text: &mut String) -> fmt::Result {
    for (name, chat) in &output.chats {
        writeln!(text, "\n{name}")?;
        for message in &chat.messages {
            writeln!(text, "  {}", message_line(message))?;
        }
    }
    Ok(())
}

fn message_line(message: &ShownMessage) -> String {
    let mut notes = Vec::new();
    if let Some(id) = &message.reply_to {
        notes.push(format!("answers {}", plain(id)));
    }
    if message.edits > 0 {
        notes.push(format!("edited {}x", message.edits));
    }
    if message.deleted {
        notes.push("deleted".to_owned());
    }
    let notes = if notes.is_empty() { String::new() } else { format!("  ({})", notes.join(", ")) };
    let buttons: String = message.buttons.iter().fold(String::new(), |line, label| format!("{line} [{label}]"));
    // Continued lines stand below the first one's text.
    let body = message.text.replace('\n', "\n    ");
    format!("{}: {body}{buttons}{notes}", plain(&message.id))
}

fn remarks(output: &Output, text: &mut String) -> fmt::Result {
    writeln!(text)?;
    for ping in &output.pings {
        writeln!(text, "rang: {} in {} at {}", ping.mention, ping.chat, time(ping.at))?;
    }
    for asked in output.approvals.iter().flatten() {
        let by = asked.decided_by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
        writeln!(text, "asked: {} in {}: {}{by}", asked.tool, asked.session, asked.state)?;
    }
    for dead in &output.dead {
        writeln!(text, "dead: {}: {}", dead.event, one_line(&dead.reason))?;
    }
    for left in &output.unsettled {
        writeln!(text, "unsettled: {left}")?;
    }
    for (port, count) in &output.requests {
        writeln!(text, "{port}: {} requests, {} bytes", count.total, count.bytes)?;
    }
    writeln!(text, "{} s passed", time(output.elapsed))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::fakes::ShownChat;
    use crate::faults::{Count, Port};
    use crate::output::{DeadRow, Delivery, LogRow};

    #[test]
    fn a_story_is_told_in_order() {
        let message = ShownMessage {
            id: json!(1001),
            text: "Hello,\nworld".into(),
            markup: None,
            buttons: vec!["Allow".into(), "Deny".into()],
            edits: 2,
            reply_to: Some(json!(1)),
            deleted: false,
        };
        let call = |at: f64, status, applied| CallRow {
            at: Seconds(at),
            account: "main".into(),
            arguments: json!({ "chat_id": 1, "text": "Hello,\nworld" }),
            status,
            result: json!({}),
            applied,
        };
        let output = Output {
            deliveries: vec![
                Delivery {
                    at: Seconds(0.0),
                    took: Seconds(0.0),
                    status: 200,
                    headers: [].into(),
                    body: json!(null),
                    asked: "/telegram/main: hi".into(),
                },
                Delivery {
                    at: Seconds(2.0),
                    took: Seconds(0.0),
                    status: 0,
                    headers: [].into(),
                    body: json!(null),
                    asked: "x".repeat(200),
                },
            ],
            chats: [("telegram:main:1".to_owned(), ShownChat { messages: vec![message], actions: vec![] })].into(),
            platform_calls: [(
                "telegram.sendMessage".to_owned(),
                vec![call(0.25, None, true), call(3.0, Some(429), false)],
            )]
            .into(),
            dead: vec![DeadRow { event: "telegram:1:9".into(), reason: "too many receives".into() }],
            logs: vec![LogRow { at: Seconds(1.0), level: "WARN".into(), event_id: None, message: "lock lost".into() }],
            requests: [(Port::Store, Count { total: 4, bytes: 900, ..Count::default() })].into(),
            elapsed: Seconds(12.5),
            unsettled: vec!["inbound: 1 message".into()],
            ..Output::default()
        };
        assert_snapshot!(transcript(&output), @r#"
        0.000  in    /telegram/main: hi  [200]
        0.250  out   telegram.sendMessage main 1: Hello, world  [no answer]
        1.000  log   WARN: lock lost
        2.000  in    xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… (200 characters)  [no answer]
        3.000  out   telegram.sendMessage main 1: Hello, world  [429, not applied]

    telegram:main:1
      1001: Hello,
        world [Allow] [Deny]  (answers 1, edited 2x)

    dead: telegram:1:9: too many receives
    unsettled: inbound: 1 message
    store: 4 requests, 900 bytes
    12.500 s passed
    "#);
    }
}
