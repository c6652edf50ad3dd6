//! SPDX licence expressions, as far as crates use them: `OR`, `AND`, `WITH`, parentheses, and the old `/`.

use anyhow::bail;

/// Whether a work under `expression` may be used by somebody who accepts the licences in `allowed`.
///
/// # Errors
/// The expression cannot be read.
pub(crate) fn is_allowed(expression: &str, allowed: &[&str]) -> anyhow::Result<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, allowed };
    let answer = reader.alternatives();
    match (answer, reader.words) {
        (Some(answer), []) => Ok(answer),
        _ => bail!("`{expression}` is no licence expression"),
    }
}

struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a [&'a str],
}

impl Reader<'_> {
    fn alternatives(&mut self) -> Option<bool> {
        let mut answer = self.requirements()?;
        while self.take("OR") {
            answer |= self.requirements()?;
        }
        Some(answer)
    }

    fn requirements(&mut self) -> Option<bool> {
        let mut answer = self.licence()?;
        while self.take("AND") {
            answer &= self.licence()?;
        }
        Some(answer)
    }

    fn licence(&mut self) -> Option<bool> {
        if self.take("(") {
            let answer = self.alternatives()?;
            return self.take(")").then_some(answer);
        }
        let mut name = self.next().filter(|name| !matches!(*name, "OR" | "AND" | "WITH" | ")"))?.to_owned();
        if self.take("WITH") {
            name = format!("{name} WITH {}", self.next()?);
        }
        Some(self.allowed.contains(&name.as_str()))
    }

    fn take(&mut self, word: &str) -> bool {
        let taken = self.words.first() == Some(&word);
        if taken {
            self.next();
        }
        taken
    }

    fn next(&mut self) -> Option<&str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &[&str] = &["MIT", "Apache-2.0", "ISC", "Unicode-3.0"];

    #[test]
    fn expressions() {
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("MIT OR GPL-3.0-only", true),
            ("GPL-3.0-only OR MIT", true),
            ("MIT/GPL-3.0-only", true),
            ("GPL-3.0-only / MPL-2.0", false),
            ("MIT AND GPL-3.0-only", false),
            ("(MIT OR GPL-3.0-only) AND Unicode-3.0", true),
            ("GPL-3.0-only OR MIT AND ISC", true),
            ("(GPL-3.0-only OR MIT) AND (ISC AND (Apache-2.0 OR BSL-1.0))", true),
            ("Apache-2.0 WITH LLVM-exception", false),
            ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true),
        ] {
            assert_eq!(is_allowed(expression, ALLOWED).ok(), Some(expected), "{expression}");
        }
        assert!(is_allowed("Apache-2.0 WITH LLVM-exception", &["Apache-2.0 WITH LLVM-exception"]).is_ok_and(|yes| yes));
    }

    #[test]
    fn what_is_no_expression_is_an_error() {
        for expression in ["", "MIT OR", "OR MIT", "(MIT", "MIT)", "MIT ISC", "MIT WITH"] {
            assert!(is_allowed(expression, ALLOWED).is_err(), "{expression}");
        }
    }
}
