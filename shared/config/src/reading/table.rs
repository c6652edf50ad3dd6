//! A table as it is read: what is asked of it is known, what is left at the end is an error.

use secrecy::SecretString;
use serde_json::{Map, Value};

use super::document::{Lines, join};
use crate::error::{ConfigError, Problem};
use crate::{Account, Allow, Lookup};

/// Where secrets come from.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// The text refers to them; what `needs` does not name stays unset.
    References { lookup: &'a Lookup<'a>, needs: &'a dyn Fn(&str) -> bool },
    /// They stand in the text; those of a new account that it does not name are made up.
    Literal(&'a dyn Fn(&str) -> SecretString),
}

/// What goes with the reading of one document.
pub(super) struct Context<'a> {
    source: Source<'a>,
    lines: Lines,
    problems: Vec<Problem>,
}

impl<'a> Context<'a> {
    pub(super) fn new(source: Source<'a>, lines: Lines) -> Self {
        Self { source, lines, problems: Vec::new() }
    }

    /// Notes that the key at `path` is wrong.
    pub(super) fn problem(&mut self, path: &str, message: impl Into<String>) {
        let line = self.lines.of(path);
        self.problems.push(Problem { file: None, line, key: path.to_owned(), message: message.into() });
    }

    /// Whether this is our own code's JSON: it may leave out what only a deployment needs.
    pub(super) fn is_trusted(&self) -> bool {
        matches!(self.source, Source::Literal(_))
    }

    /// What an account has before anything of it is read: closed, but for a replay.
    pub(super) fn new_account(&self) -> Account {
        let allow = if self.is_trusted() { Allow::Everybody } else { Allow::default() };
        Account { allow, ..Account::default() }
    }

    /// Fails with what is wrong, if anything is.
    pub(super) fn finish(mut self) -> Result<(), ConfigError> {
        self.problems.sort_by_key(|problem| problem.line);
        if self.problems.is_empty() { Ok(()) } else { Err(ConfigError::Invalid { problems: self.problems }) }
    }

    fn secret(&mut self, path: &str, value: &Value) -> Option<SecretString> {
        let text = match value {
            Value::String(text) => text.as_str(),
            Value::Null if self.is_trusted() => return None,
            _ => {
                self.problem(path, REFER);
                return None;
            }
        };
        match self.source {
            Source::Literal(_) => (!text.is_empty()).then(|| SecretString::from(text)),
            Source::References { lookup, needs } => {
                let found = reference(text).and_then(|(name, place)| {
                    if needs(path) { resolve(lookup(name), &place).map(Some) } else { Ok(None) }
                });
                found.map_err(|message| self.problem(path, message)).ok().flatten()
            }
        }
    }
}

/// How a secret is written.
const REFER: &str = "a secret is never written out: keep it in an environment variable and write \"env:NAME\", or in the secret store \
     and write \"secret:name\"";

/// What `reference` asks a [`Lookup`] for, and how a person calls it. A text that is no reference may be the secret itself
/// and is not repeated.
fn reference(reference: &str) -> Result<(&str, String), String> {
    let word = |name: &str, more: &[u8]| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
    };
    if let Some(name) = reference.strip_prefix("env:").filter(|name| word(name, b"_")) {
        Ok((name, format!("the environment variable {name}")))
    } else if let Some(name) = reference.strip_prefix("secret:").filter(|name| word(name, b"_-./+=@")) {
        Ok((reference, format!("the secret {name}")))
    } else {
        Err(REFER.to_owned())
    }
}

/// The secret that was found at `place`.
fn resolve(found: Option<String>, place: &str) -> Result<SecretString, String> {
    match found {
        None => Err(format!("{place} is not there")),
        Some(value) if value.trim().is_empty() => Err(format!("{place} is empty")),
        // A line feed at its end is what `echo` and most editors leave behind.
        Some(value) => Ok(SecretString::from(value.trim())),
    }
}

/// A table, while it is read.
pub(super) struct Table {
    path: String,
    fields: Map<String, Value>,
    known: Vec<&'static str>,
}

impl Table {
    pub(super) fn new(path: String, fields: Map<String, Value>) -> Self {
        Self { path, fields, known: Vec::new() }
    }

    /// The path of the table itself.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The path of `key` here.
    pub(super) fn path_of(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// Takes the value of `key`, which is known from now on.
    pub(super) fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        self.fields.remove(key)
    }

    /// Whether there is a value of `key`.
    pub(super) fn has(&self, key: &str) -> bool {
        self.fields.contains_key(key)
    }

    /// Whether the value of `key` is `null`.
    pub(super) fn is_null(&self, key: &str) -> bool {
        self.fields.get(key).is_some_and(Value::is_null)
    }

    /// Puts a value where the text has it under another key.
    pub(super) fn put(&mut self, key: &str, value: Value) {
        self.fields.insert(key.to_owned(), value);
    }

    /// Takes the value of `key` through `convert`, which says what is allowed where it refuses.
    pub(super) fn read<T>(
        &mut self,
        context: &mut Context<'_>,
        key: &'static str,
        into: &mut T,
        convert: impl FnOnce(Value) -> Result<T, String>,
    ) {
        if let Some(value) = self.take(key) {
            match convert(value) {
                Ok(value) => *into = value,
                Err(allowed) => context.problem(&self.path_of(key), allowed),
            }
        }
    }

    /// As [`Table::read`], where `null` in our own JSON unsets the value.
    pub(super) fn read_optional<T>(
        &mut self,
        context: &mut Context<'_>,
        key: &'static str,
        into: &mut Option<T>,
        convert: impl FnOnce(Value) -> Result<T, String>,
    ) {
        let trusted = context.is_trusted();
        self.read(
            context,
            key,
            into,
            |value| if trusted && value.is_null() { Ok(None) } else { convert(value).map(Some) },
        );
    }

    /// Reads a secret that is not needed.
    pub(super) fn optional_secret(
        &mut self,
        context: &mut Context<'_>,
        key: &'static str,
        into: &mut Option<SecretString>,
    ) {
        if let Some(value) = self.take(key) {
            *into = context.secret(&self.path_of(key), &value);
        }
    }

    /// Reads a secret without which `route` cannot be served. `is_new` = nothing has been read for it before.
    pub(super) fn secret(
        &mut self,
        context: &mut Context<'_>,
        key: &'static str,
        route: &str,
        is_new: bool,
        into: &mut Option<SecretString>,
    ) {
        let path = self.path_of(key);
        let Some(value) = self.take(key) else {
            match context.source {
                Source::Literal(invent) if is_new => *into = Some(invent(&path)),
                Source::References { needs, .. } if is_new && needs(&path) => context.problem(
                    &path,
                    format!(
                        "is missing; without it {route} cannot be served: write {key} = \"env:NAME\" or \"secret:name\""
                    ),
                ),
                Source::Literal(_) | Source::References { .. } => {}
            }
            return;
        };
        let before = context.problems.len();
        *into = context.secret(&path, &value);
        if let [problem] = &mut context.problems[before..] {
            problem.message.push_str(&format!("; without it {route} cannot be served"));
        }
    }

    /// Reads the table at `key`, if there is one.
    pub(super) fn table(
        &mut self,
        context: &mut Context<'_>,
        key: &'static str,
        read: impl FnOnce(&mut Self, &mut Context<'_>),
    ) {
        let path = self.path_of(key);
        match self.take(key) {
            None => {}
            Some(Value::Object(fields)) => {
                let mut table = Self::new(path, fields);
                read(&mut table, context);
                table.finish(context);
            }
            Some(_) => context.problem(&path, "is a table of keys, not a single value"),
        }
    }

    /// The fields that are left, where any name is allowed.
    pub(super) fn take_all(&mut self) -> Map<String, Value> {
        std::mem::take(&mut self.fields)
    }

    /// Reports what nobody asked for.
    pub(super) fn finish(&mut self, context: &mut Context<'_>) {
        for key in self.take_all().keys() {
            let nearest = nearest(key, &self.known);
            let hint = nearest.map_or(String::new(), |nearest| format!("; did you mean `{nearest}`?"));
            let allowed = format!("is not a known key{hint} Allowed here: {}", self.known.join(", "));
            let allowed = if hint.is_empty() { allowed.replacen(" Allowed", "; allowed", 1) } else { allowed };
            context.problem(&self.path_of(key), allowed);
        }
    }
}

/// The known key that `key` was probably meant to be.
fn nearest(key: &str, known: &[&'static str]) -> Option<&'static str> {
    let distances = known.iter().map(|name| (distance(key, name), *name));
    let (distance, name) = distances.min()?;
    (distance <= 2.max(key.len() / 3) && distance < name.len()).then_some(name)
}

/// How many letters have to be put in, left out or changed.
fn distance(one: &str, two: &str) -> usize {
    let two: Vec<char> = two.chars().collect();
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (above, letter) in (1..).zip(one.chars()) {
        let mut diagonal = row[0];
        row[0] = above;
        for (at, other) in two.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[two.len()]
}
