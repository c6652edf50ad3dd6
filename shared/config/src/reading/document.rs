//! TOML as a plain value, and the line of every key in it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::Problem;

/// The line of every key, by its path.
#[derive(Debug, Default)]
pub(super) struct Lines(BTreeMap<String, usize>);

impl Lines {
    /// The line of `path`, or of the nearest table around it.
    pub(super) fn of(&self, path: &str) -> Option<usize> {
        let mut path = path;
        loop {
            if let Some(line) = self.0.get(path) {
                return Some(*line);
            }
            path = path.rsplit_once('.')?.0;
        }
    }
}

/// Parses `text`. The parser's own rendering of an error is not used: it quotes the line, which may hold a secret.
pub(super) fn parse(text: &str) -> Result<(Value, Lines), Problem> {
    let table = DeTable::parse(text).map_err(|error| Problem {
        file: None,
        line: error.span().map(|span| line_at(text, span.start)),
        key: String::new(),
        message: format!("this is not TOML: {}", error.message().lines().next().unwrap_or_default()),
    })?;
    let mut document = Document { text, lines: Lines::default() };
    let value = document.table(String::new(), table.get_ref());
    Ok((value, document.lines))
}

/// The path of `key` in the table at `path`.
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

struct Document<'a> {
    text: &'a str,
    lines: Lines,
}

impl Document<'_> {
    fn table(&mut self, path: String, table: &DeTable<'_>) -> Value {
        let fields = table.iter().map(|(key, value)| {
            let path = join(&path, key.get_ref());
            self.lines.0.insert(path.clone(), line_at(self.text, key.span().start));
            (key.get_ref().to_string(), self.value(path, value))
        });
        Value::Object(fields.collect::<Map<_, _>>())
    }

    fn value(&mut self, path: String, value: &Spanned<DeValue<'_>>) -> Value {
        match value.get_ref() {
            DeValue::String(text) => Value::from(text.as_ref()),
            DeValue::Integer(number) => {
                i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from)
            }
            DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Value::Null, Value::from),
            DeValue::Boolean(flag) => Value::from(*flag),
            DeValue::Datetime(time) => Value::from(time.to_string()),
            DeValue::Array(items) => (0..)
                .zip(items.iter())
                .map(|(index, item): (usize, _)| {
                    let path = format!("{path}[{index}]");
                    self.lines.0.insert(path.clone(), line_at(self.text, item.span().start));
                    self.value(path, item)
                })
                .collect(),
            DeValue::Table(table) => self.table(path, table),
        }
    }
}

fn line_at(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}
