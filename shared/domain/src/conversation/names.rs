//! Names and ids in the shape that every provider takes. Each function is a pure function of its text, so a name comes to
//! the same in the history, in the list of tools and in the model's next call.

use std::collections::HashSet;

use crate::ids::digest;

/// The longest name of a tool and the longest id of a call.
const NAME_MAX: usize = 64;

/// The longest name of a file (Bedrock API Reference, `DocumentBlock`).
const FILE_NAME_MAX: usize = 200;

/// How much of a digest makes a name its own.
const HASH_LENGTH: usize = 12;

/// Whether `name` can be the name of a tool or the id of a call as it is: `[a-zA-Z0-9_-]{1,64}`.
#[must_use]
pub fn is_name(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(is_allowed)
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// The name under which a model knows the tool `name`: the name itself if it fits, else its readable start and a hash of
/// the whole. Two names never share an alias unless one was made to look like the other's: whoever registers tools
/// refuses two with one alias.
#[must_use]
pub fn alias(name: &str) -> String {
    if is_name(name) { name.to_owned() } else { hashed(name, name) }
}

/// A free id for the call that came as `id`.
pub(super) fn fresh_id(id: &str, taken: &HashSet<String>) -> String {
    (0_u64..).map(|n| hashed(id, &format!("{id}\n{n}"))).find(|fresh| !taken.contains(fresh)).unwrap_or_default()
}

fn hashed(readable: &str, whole: &str) -> String {
    let start: String =
        readable.chars().map(|c| if is_allowed(c) { c } else { '_' }).take(NAME_MAX - HASH_LENGTH - 1).collect();
    format!("{start}_{}", &digest(whole.as_bytes())[..HASH_LENGTH])
}

/// `name` as the name of a document: ASCII letters and digits, single spaces and hyphens, parentheses, brackets, at most 200
/// characters; `document` where nothing of it is left. The media type, not the name, says what the file is.
#[must_use]
pub fn file_name(name: &str) -> String {
    let mut kept = String::new();
    for c in name.chars() {
        let c = match c {
            c if c.is_ascii_alphanumeric() || "-()[]".contains(c) => c,
            c if c.is_whitespace() => ' ',
            _ => '-',
        };
        let repeats = kept.ends_with(c) && matches!(c, ' ' | '-');
        if !repeats && kept.len() < FILE_NAME_MAX {
            kept.push(c);
        }
    }
    match kept.trim_matches([' ', '-']) {
        "" => "document".to_owned(),
        name => name.to_owned(),
    }
}

/// `name` with a number that makes it another one than all in `taken` (in lower case).
pub(super) fn free_file_name(name: &str, taken: &HashSet<String>) -> String {
    let start = &name[..name.floor_char_boundary(FILE_NAME_MAX - 20)];
    let numbered = (2_u64..).map(|n| format!("{}-{n}", start.trim_end_matches([' ', '-'])));
    std::iter::once(name.to_owned())
        .chain(numbered)
        .find(|free| !taken.contains(&free.to_ascii_lowercase()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Case br-tool-name-dot: names outside the allowed shape get a stable alias of their own.
    #[test]
    fn br_tool_name_dot() {
        let long = "a".repeat(80);
        let names = ["agent-block.describe", "debug.state.get_full", "debug_state_get_full", &long, "", "é"];
        let aliases: HashSet<String> = names.iter().map(|name| alias(name)).collect();
        assert_eq!(aliases.len(), names.len());
        assert!(aliases.iter().all(|alias| is_name(alias)));
        assert_eq!(alias("agent-block.describe"), "agent-block_describe_8576ae87aece");
        assert_eq!(alias("recall"), "recall");
    }

    #[test]
    fn br_doc_name_poison() {
        assert_eq!(file_name("slack-file://F0XXXX"), "slack-file-F0XXXX");
        assert_eq!(file_name("Report  (final) [2].pdf"), "Report (final) [2]-pdf");
        assert_eq!(file_name("отчёт"), "document");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn names_settle_at_once(name in "\\PC{0,80}") {
            prop_assert!(is_name(&alias(&name)));
            prop_assert_eq!(alias(&alias(&name)), alias(&name));
            prop_assert_eq!(file_name(&file_name(&name)), file_name(&name));
        }

        #[test]
        fn similar_names_have_different_aliases(one in "[a-c._]{0,3}", two in "[a-c._]{0,3}") {
            prop_assert_eq!(one == two, alias(&one) == alias(&two));
        }
    }
}
