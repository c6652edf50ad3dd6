//! `[approvals]`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::table::{Context, Table};
use super::values::{one_of, text, texts, word};
use crate::{ApprovalAction, ApprovalRule, Approvals};

/// The channels that a message can come from.
pub(super) const CHANNELS: &[&str] = &["telegram", "slack", "webhook", "gateway", "cron", "cli"];
pub(super) const RISKS: &[(&str, &str)] =
    &[("read", "read"), ("write", "write"), ("execute", "execute"), ("dangerous", "dangerous")];
const ACTIONS: &[(&str, ApprovalAction)] =
    &[("allow", ApprovalAction::Allow), ("ask", ApprovalAction::Ask), ("deny", ApprovalAction::Deny)];

pub(super) fn read(table: &mut Table, context: &mut Context<'_>, approvals: &mut Approvals) {
    table.read(context, "approvers", &mut approvals.approvers, people);
    let items = match table.take("rules") {
        None => return,
        Some(Value::Array(items)) => items,
        Some(_) => {
            let path = table.path_of("rules");
            return context.problem(&path, "must be a list of rules, each under [[approvals.rules]]");
        }
    };
    // The order decides: a list replaces the one before as a whole.
    approvals.rules.clear();
    for (index, item) in items.into_iter().enumerate() {
        let path = table.path_of(&format!("rules[{index}]"));
        match item {
            Value::Object(fields) => approvals.rules.extend(read_rule(Table::new(path, fields), context)),
            _ => context.problem(&path, "must be a table with an action, and with what it is about"),
        }
    }
}

fn read_rule(mut table: Table, context: &mut Context<'_>) -> Option<ApprovalRule> {
    let (mut tool, mut risk, mut channel, mut sender, mut action) = (None, None, None, None, None);
    table.read_optional(context, "tool", &mut tool, word);
    table.read_optional(context, "risk", &mut risk, |value| one_of(RISKS)(value).map(str::to_owned));
    table.read_optional(context, "channel", &mut channel, known_channel);
    table.read_optional(context, "sender", &mut sender, person);
    if !table.has("action") {
        context.problem(&table.path_of("action"), "is missing: \"allow\", \"ask\" or \"deny\"");
    }
    table.read_optional(context, "action", &mut action, one_of(ACTIONS));
    table.finish(context);
    action.map(|action| ApprovalRule { tool, risk, channel, sender, action })
}

fn known_channel(value: Value) -> Result<String, String> {
    let channel = text(value)?;
    if CHANNELS.contains(&channel.as_str()) {
        Ok(channel)
    } else {
        let names: Vec<String> = CHANNELS.iter().map(|name| format!("\"{name}\"")).collect();
        Err(format!("must be one of {}", names.join(", ")))
    }
}

fn people(value: Value) -> Result<BTreeSet<String>, String> {
    texts(value)?.into_iter().map(|text| person(Value::String(text))).collect()
}

/// `channel:sender`, as the application writes it.
fn person(value: Value) -> Result<String, String> {
    let text = text(value)?;
    let (channel, who) = text.split_once(':').unwrap_or_default();
    if CHANNELS.contains(&channel) && who.split(':').all(|part| !part.trim().is_empty()) {
        Ok(text)
    } else {
        Err("names people as \"telegram:1000001\", \"slack:U0123\" or \"gateway:ops\"".to_owned())
    }
}
