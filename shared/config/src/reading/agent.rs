//! `[agent]`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::approvals::CHANNELS;
use super::table::{Context, Table};
use super::values::{amount, duration, one_of, text, whole, word};
use crate::{Agent, Instruction, Limits, WhileBusy, millionths};

const WHILE_BUSY: &[(&str, WhileBusy)] = &[("queue", WhileBusy::Queue), ("steer", WhileBusy::Steer)];

pub(super) fn read(table: &mut Table, context: &mut Context<'_>, agent: &mut Agent) {
    table.read(context, "name", &mut agent.name, word);
    table.read(context, "instructions", &mut agent.instructions, instructions);
    table.read(context, "language", &mut agent.language, language);
    read_intro(table, context, &mut agent.intro);
    read_while_busy(table, context, &mut agent.while_busy);
    table.table(context, "limits", |table, context| read_limits(table, context, &mut agent.limits));
}

fn read_limits(table: &mut Table, context: &mut Context<'_>, limits: &mut Limits) {
    let seconds = |from, to| Duration::from_secs(from)..=Duration::from_secs(to);
    table.read(context, "concurrency", &mut limits.concurrency, whole(1..=1000));
    // Below these no call of a model starts before the turn's time is over, and no time is left for a tool.
    table.read(context, "turn_seconds", &mut limits.turn_seconds, whole(90..=900));
    table.read(context, "max_wait", &mut limits.max_wait, duration(seconds(1, 7 * 86_400)));
    table.read(context, "attempts", &mut limits.attempts, whole(1..=100));
    table.read(context, "lease_seconds", &mut limits.lease_seconds, whole(45..=900));
    table.read(context, "approval_expiry", &mut limits.approval_expiry, duration(seconds(1, 7 * 86_400)));
    table.read(context, "rpm", &mut limits.rpm, whole(0..=100_000));
    table.read(context, "burst", &mut limits.burst, whole(1..=10_000));
    table.read(context, "queue", &mut limits.queue, whole(1..=1_000_000));
    table.read(context, "consolidate_after", &mut limits.consolidate_after, whole(1..=100_000));
    table.read(context, "frame_interval_ms", &mut limits.frame_interval_ms, whole(100..=60_000));
    table.read_optional(context, "daily_cost", &mut limits.daily_cost, cost);
}

/// An amount of the currency that prices are in.
fn cost(value: Value) -> Result<u64, String> {
    let cost = amount(value).map(millionths).unwrap_or_default();
    if cost > 0 { Ok(cost) } else { Err("must be a number above 0; leave it out for no cap".to_owned()) }
}

fn read_intro(table: &mut Table, context: &mut Context<'_>, intro: &mut BTreeMap<String, String>) {
    table.table(context, "intro", |table, context| {
        for channel in CHANNELS {
            let mut sentence = None;
            table.read(context, channel, &mut sentence, |value| match value {
                Value::Null => Ok(Some(String::new())),
                value => text(value).map(Some),
            });
            intro.extend(sentence.map(|sentence| ((*channel).to_owned(), sentence)));
        }
    });
}

fn read_while_busy(table: &mut Table, context: &mut Context<'_>, while_busy: &mut BTreeMap<String, WhileBusy>) {
    table.table(context, "while_busy", |table, context| {
        for channel in CHANNELS {
            let mut chosen = None;
            table.read_optional(context, channel, &mut chosen, one_of(WHILE_BUSY));
            while_busy.extend(chosen.map(|chosen| ((*channel).to_owned(), chosen)));
        }
    });
}

/// A path or the text itself, or a list of them.
fn instructions(value: Value) -> Result<Vec<Instruction>, String> {
    let items = match value {
        Value::Array(items) => items,
        one => vec![one],
    };
    items.into_iter().map(|item| word(item).map(instruction)).collect()
}

/// A single line that ends like a file of text, or is a pattern, is a path; everything else is the text itself.
fn instruction(text: String) -> Instruction {
    let is_line = !text.contains('\n');
    let is_file = text.ends_with(".md") || text.ends_with(".txt");
    let is_pattern = text.contains('*') && !text.contains(char::is_whitespace);
    if is_line && (is_file || is_pattern) { Instruction::Files(text) } else { Instruction::Text(text) }
}

fn language(value: Value) -> Result<String, String> {
    let code = text(value)?;
    let is_code = code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_lowercase());
    if is_code { Ok(code) } else { Err("must be a language code of two letters, e.g. \"en\"".to_owned()) }
}
