//! Rust source with its comments and literals blanked out, so that a rule that looks for a word finds code and nothing
//! else. Lines and columns stay where they are. This is a scanner, not a parser: it knows where text begins and ends.

/// `source` with spaces in place of what stands in comments, strings and character literals.
pub(crate) fn code_only(source: &str) -> String {
    let mut scanner = Scanner { rest: source, code: String::with_capacity(source.len()) };
    while scanner.step() {}
    scanner.code
}

struct Scanner<'s> {
    rest: &'s str,
    code: String,
}

impl Scanner<'_> {
    /// Takes one piece; false at the end.
    fn step(&mut self) -> bool {
        let rest = self.rest;
        let Some(first) = rest.chars().next() else { return false };
        if rest.starts_with("//") {
            self.blank(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.blank(block_comment(rest));
        } else if let Some(length) = raw_string(rest).filter(|_| !self.inside_word()) {
            self.blank(length);
        } else if first == '"' {
            self.blank(quoted(rest, '"'));
        } else if first == '\'' && is_character(rest) {
            self.blank(quoted(rest, '\''));
        } else {
            self.code.push(first);
            self.rest = &rest[first.len_utf8()..];
        }
        true
    }

    fn blank(&mut self, length: usize) {
        let (blanked, rest) = self.rest.split_at(length);
        self.code.extend(blanked.chars().map(|character| if character == '\n' { '\n' } else { ' ' }));
        self.rest = rest;
    }

    /// Whether what was taken last belongs to the same word, as the `r` in `for"`.
    fn inside_word(&self) -> bool {
        self.code.chars().next_back().is_some_and(|last| last.is_alphanumeric() || last == '_')
    }
}

/// The length of the comment at the start of `text`; comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find("/*").into_iter().chain(text[at..].find("*/")).min() {
        at += found;
        depth = if text[at..].starts_with("/*") { depth + 1 } else { depth - 1 };
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The length of the raw string at the start of `text`, if there is one.
fn raw_string(text: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| text.starts_with(prefix))?;
    let hashes = text[prefix.len()..].bytes().take_while(|byte| *byte == b'#').count();
    let start = prefix.len() + hashes + 1;
    text[prefix.len() + hashes..].starts_with('"').then(|| {
        let end = format!("\"{}", "#".repeat(hashes));
        text[start..].find(&end).map_or(text.len(), |found| start + found + end.len())
    })
}

/// The length of the literal at the start of `text`, which ends at the next `quote` without a backslash.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Whether the `'` at the start of `text` begins a character and not a lifetime.
fn is_character(text: &str) -> bool {
    let mut characters = text.chars().skip(1);
    match characters.next() {
        Some('\\') => true,
        Some(_) => characters.next() == Some('\''),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        for (source, code) in [
            ("a(); // b()", "a();       "),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("b \" c") d"#, "f(        ) d"),
            (r##"f(r#"b " c"#, r"d") e"##, "f(          ,     ) e"),
            ("f(b\"x\", br\"y\")", "f(b   ,      )"),
            ("let a: &'static str = 'x';", "let a: &'static str =    ;"),
            (r"['\'', '\\', '\u{e9}', 'a', b'a'] b", "[    ,     ,         ,    , b   ] b"),
            ("for\"x\" a", "for    a"),
            ("\"never closed", "             "),
            ("\"a\nb\" c", "  \n   c"),
        ] {
            assert_eq!(code_only(source), code, "{source}");
        }
    }

    #[test]
    fn lines_and_columns_stay() {
        let source = "fn a() {\n    // ä comment\n    \"text\ntext\";\n}\n";
        let code = code_only(source);
        assert_eq!(code.lines().count(), source.lines().count());
        for (code, source) in code.lines().zip(source.lines()) {
            assert_eq!(code.chars().count(), source.chars().count());
        }
    }
}
