//! From text to [`Config`]: one reader for the file and for a replay's JSON, which differ in where secrets come from.
//!
//! A reader starts from a whole configuration and overwrites what is named, so that merging is the same as reading.

mod accounts;
mod agent;
mod approvals;
mod check;
mod document;
mod model;
mod table;
mod tools;
mod values;

use serde_json::Value;

use crate::Config;
use crate::error::{ConfigError, Problem};

pub(crate) use table::Source;
use table::{Context, Table};

/// Reads `turnlock.toml`, with the time of an invocation that a deployment sets in place of the file's.
pub(crate) fn from_toml(text: &str, turn_seconds: Option<u32>, source: Source<'_>) -> Result<Config, ConfigError> {
    let (mut value, lines) = document::parse(text).map_err(invalid)?;
    if let Some(seconds) = turn_seconds {
        set_turn_seconds(&mut value, seconds);
    }
    read(Config::default(), value, Context::new(source, lines))
}

/// Puts the value where the file would have it. A file that says something else than tables there is refused later.
fn set_turn_seconds(value: &mut Value, seconds: u32) {
    let mut table = value;
    for key in ["agent", "limits"] {
        let Some(fields) = table.as_object_mut() else { return };
        table = fields.entry(key).or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    if let Some(limits) = table.as_object_mut() {
        limits.insert("turn_seconds".to_owned(), seconds.into());
    }
}

/// Reads a JSON object over `base`.
pub(crate) fn from_json(base: Config, value: Value, source: Source<'_>) -> Result<Config, ConfigError> {
    read(base, value, Context::new(source, document::Lines::default()))
}

fn read(mut config: Config, value: Value, mut context: Context<'_>) -> Result<Config, ConfigError> {
    match value {
        Value::Object(fields) => {
            let mut root = Table::new(String::new(), fields);
            root.table(&mut context, "agent", |table, context| agent::read(table, context, &mut config.agent));
            root.table(&mut context, "approvals", |table, context| {
                approvals::read(table, context, &mut config.approvals);
            });
            model::read_all(&mut root, &mut context, &mut config.models);
            tools::read_all(&mut root, &mut context, &mut config.tools);
            accounts::read_all(&mut root, &mut context, &mut config);
            root.finish(&mut context);
        }
        _ => context.problem("", "a configuration is an object"),
    }
    check::check(&config, &mut context);
    context.finish().map(|()| config)
}

fn invalid(problem: Problem) -> ConfigError {
    ConfigError::Invalid { problems: vec![problem] }
}

#[cfg(test)]
mod tests;
