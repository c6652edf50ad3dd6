//! What is wrong with a configuration, for the person who wrote it. No message repeats a value that may be a secret.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The text says what cannot be.
    #[error("{}", lines(problems))]
    Invalid {
        /// Every mistake, in the order of the text.
        problems: Vec<Problem>,
    },
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file, where there is one.
    pub file: Option<PathBuf>,
    /// The line, where there is one.
    pub line: Option<usize>,
    /// The key, e.g. `telegram.main.bot_token`; empty where the text is no TOML.
    pub key: String,
    /// What is wrong with it, and what is allowed.
    pub message: String,
}

impl ConfigError {
    /// The same error, with the file it is in.
    #[must_use]
    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        if let Self::Invalid { problems } = &mut self {
            for problem in problems {
                problem.file.get_or_insert_with(|| path.to_owned());
            }
        }
        self
    }

    /// The mistakes; none where a file cannot be read.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Read { .. } => &[],
            Self::Invalid { problems } => problems,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}: ", file.display())?,
            (Some(file), None) => write!(f, "{}: ", file.display())?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
