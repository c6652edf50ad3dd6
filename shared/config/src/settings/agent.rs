//! Who the agent is, and its limits.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::error::{ConfigError, Problem};

/// Who the agent is.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Its instructions, in order.
    pub instructions: Vec<Instruction>,
    /// The language of what it says by itself, e.g. `en`.
    pub language: String,
    /// The first sentence of a session by channel, with `{name}` in it; [`Agent::intro`] fills it in.
    pub intro: BTreeMap<String, String>,
    /// What a message does that comes while a turn runs, by channel; [`WhileBusy::Queue`] where none is named.
    pub while_busy: BTreeMap<String, WhileBusy>,
    /// Its limits.
    pub limits: Limits,
    /// The instruction files by path, as they were read. A replay puts its own here.
    pub files: BTreeMap<String, String>,
}

/// A piece of the instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Instruction {
    /// The text itself.
    Text(String),
    /// Files, in order of their names: a path that may hold `*` in its last part.
    Files(String),
}

/// What a message does that comes while a turn of its session runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhileBusy {
    /// It waits for its own turn.
    #[default]
    Queue,
    /// It reaches the model at the running turn's next step.
    Steer,
}

/// The agent's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many turns run at once.
    pub concurrency: usize,
    /// The seconds of one invocation; a turn may span many.
    pub turn_seconds: u32,
    /// How long an event may wait before it gets an error as its answer.
    pub max_wait: Duration,
    /// How often a turn is tried without progress.
    pub attempts: u32,
    /// How long a worker's lock lasts without renewal.
    pub lease_seconds: u32,
    /// How long an approval may be given.
    pub approval_expiry: Duration,
    /// Messages a minute of one session; 0 = as many as come.
    pub rpm: u32,
    /// Messages of one session that may come at once.
    pub burst: u32,
    /// Events that may wait in all.
    pub queue: usize,
    /// Messages after which long-term memory takes them in.
    pub consolidate_after: u64,
    /// The least time between two frames of a stream.
    pub frame_interval_ms: u32,
    /// What all models together may cost in a day, UTC, by their prices, in millionths of the currency; `None` = no cap.
    pub daily_cost: Option<u64>,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            name: "Echo".to_owned(),
            instructions: Vec::new(),
            language: "en".to_owned(),
            intro: BTreeMap::new(),
            while_busy: BTreeMap::new(),
            limits: Limits::default(),
            files: BTreeMap::new(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrency: 4,
            turn_seconds: 300,
            max_wait: Duration::from_secs(3600),
            attempts: 5,
            lease_seconds: 60,
            approval_expiry: Duration::from_secs(3600),
            rpm: 20,
            burst: 5,
            queue: 1000,
            consolidate_after: 50,
            frame_interval_ms: 1500,
            daily_cost: None,
        }
    }
}

impl Agent {
    /// The first sentence of a session on `channel`, if one is configured.
    #[must_use]
    pub fn intro(&self, channel: &str) -> Option<String> {
        let intro = self.intro.get(channel)?.replace("{name}", &self.name);
        (!intro.trim().is_empty()).then_some(intro)
    }

    /// The whole instructions: texts and [`Agent::files`], with a blank line between two and `{name}` filled in.
    #[must_use]
    pub fn instruction_text(&self) -> String {
        let pieces = self.instructions.iter().flat_map(|instruction| match instruction {
            Instruction::Text(text) => vec![text.trim()],
            Instruction::Files(pattern) => {
                self.files.iter().filter(|(path, _)| matches(pattern, path)).map(|(_, text)| text.trim()).collect()
            }
        });
        let pieces: Vec<&str> = pieces.filter(|piece| !piece.is_empty()).collect();
        pieces.join("\n\n").replace("{name}", &self.name)
    }

    /// Reads the instruction files into [`Agent::files`]; their paths are relative to `root`.
    ///
    /// # Errors
    /// [`ConfigError`] for a pattern that names no file, since a typing error must not make an agent without
    /// instructions, and for a file that cannot be read.
    pub fn read_files(&mut self, root: &Path) -> Result<(), ConfigError> {
        let mut problems = Vec::new();
        for instruction in &self.instructions {
            let Instruction::Files(pattern) = instruction else { continue };
            let found = find(root, pattern);
            if found.is_empty() {
                problems.push(Problem {
                    file: None,
                    line: None,
                    key: "agent.instructions".to_owned(),
                    message: format!("no file fits `{pattern}` (a path, relative to this file, `*` in its last part)"),
                });
            }
            for name in found {
                let path = root.join(&name);
                let text = std::fs::read_to_string(&path).map_err(|source| ConfigError::Read { path, source })?;
                self.files.insert(name, text);
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(ConfigError::Invalid { problems }) }
    }
}

/// The files under `root` that fit `pattern`, as relative paths.
fn find(root: &Path, pattern: &str) -> Vec<String> {
    let (directory, _) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    let entries = std::fs::read_dir(root.join(directory)).into_iter().flatten().flatten();
    let names = entries.filter(|entry| entry.path().is_file()).filter_map(|entry| entry.file_name().into_string().ok());
    let paths = names.map(|name| if directory.is_empty() { name } else { format!("{directory}/{name}") });
    paths.filter(|path| matches(pattern, path)).collect()
}

/// Whether `path` fits `pattern`, in which every `*` of the last part stands for any characters but a slash.
fn matches(pattern: &str, path: &str) -> bool {
    let split = |text: &str| {
        text.rsplit_once('/').map_or((String::new(), text.to_owned()), |(d, n)| (d.to_owned(), n.to_owned()))
    };
    let (pattern_directory, pattern) = split(pattern.strip_prefix("./").unwrap_or(pattern));
    let (directory, name) = split(path.strip_prefix("./").unwrap_or(path));
    pattern_directory == directory && name_matches(&pattern, &name)
}

fn name_matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(start) else { return false };
    name.char_indices().map(|(at, _)| at).chain([name.len()]).any(|at| name_matches(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything_in_the_last_part() {
        let table = [
            ("agent/*.md", "agent/persona.md", true),
            ("./agent/*.md", "agent/.md", true),
            ("agent/*.md", "agent/more/persona.md", false),
            ("agent/*.md", "persona.md", false),
            ("*", "a", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXc", false),
            ("persona.md", "persona.md", true),
        ];
        for (pattern, path, want) in table {
            assert_eq!(matches(pattern, path), want, "{pattern} {path}");
        }
    }

    #[test]
    fn instructions_are_joined_in_order_of_names() {
        let files = [("agent/b.md", "second\n"), ("agent/a.md", " first"), ("other.md", "not named")];
        let agent = Agent {
            instructions: vec![Instruction::Text("Be kind, {name}.".into()), Instruction::Files("agent/*.md".into())],
            files: files.map(|(path, text)| (path.to_owned(), text.to_owned())).into(),
            ..Agent::default()
        };
        assert_eq!(agent.instruction_text(), "Be kind, Echo.\n\nfirst\n\nsecond");
    }

    #[test]
    fn files_are_read_relative_to_the_root_and_none_is_an_error() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(root.path().join("agent")).expect("a directory");
        std::fs::write(root.path().join("agent/persona.md"), "You are Echo.").expect("a file");
        let mut agent = Agent { instructions: vec![Instruction::Files("agent/*.md".into())], ..Agent::default() };
        agent.read_files(root.path()).expect("read");
        assert_eq!(agent.instruction_text(), "You are Echo.");
        agent.instructions = vec![Instruction::Files("agnet/*.md".into())];
        let error = agent.read_files(root.path()).expect_err("refused").to_string();
        assert!(error.starts_with("agent.instructions: no file fits `agnet/*.md`"), "{error}");
    }

    #[test]
    fn an_intro_names_the_agent() {
        let intro = [("telegram".to_owned(), "Hi, I am {name}.".to_owned()), ("slack".to_owned(), " ".to_owned())];
        let agent = Agent { intro: intro.into(), ..Agent::default() };
        assert_eq!(agent.intro("telegram").as_deref(), Some("Hi, I am Echo."));
        assert_eq!((agent.intro("slack"), agent.intro("cli")), (None, None));
    }
}
