//! From text to [`Config`]: one reader for the file and for a replay's JSON, which differ in where secrets come from.
//!
//! A reader starts from a whole configuration and overwrites what is named, so that merging is the same as reading.

mod accounts;
mod agent;
mod check;
mod document;
mod model;
mod table;
mod values;

use serde_json::Value;

use crate::Config;
use crate::error::{ConfigError, Problem};

pub(crate) use table::Source;
use table::{Context, Table};

/// Reads `turnlock.toml`.
pub(crate) fn from_toml(text: &str, source: Source<'_>) -> Result<Config, ConfigError> {
    let (value, lines) = document::parse(text).map_err(invalid)?;
    read(Config::default(), value, Context::new(source, lines))
}

/// Reads a JSON object over `base`.
pub(crate) fn from_json(base: Config, value: Value, source: Source<'_>) -> Result<Config, ConfigError> {
    read(base, value, Context::new(source, document::Lines::default()))
}

/// The names of the `secret:` references in a text.
pub(crate) fn secret_names(text: &str) -> Result<Vec<String>, ConfigError> {
    let (value, _) = document::parse(text).map_err(invalid)?;
    let mut names = Vec::new();
    collect_secret_names(&value, &mut names);
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

fn collect_secret_names(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::String(text) => names.extend(text.strip_prefix("secret:").map(str::to_owned)),
        Value::Array(items) => items.iter().for_each(|item| collect_secret_names(item, names)),
        Value::Object(fields) => fields.values().for_each(|field| collect_secret_names(field, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn read(mut config: Config, value: Value, mut context: Context<'_>) -> Result<Config, ConfigError> {
    match value {
        Value::Object(fields) => {
            let mut root = Table::new(String::new(), fields);
            root.table(&mut context, "agent", |table, context| agent::read(table, context, &mut config.agent));
            model::read_all(&mut root, &mut context, &mut config.models);
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
