//! Words in which a mark or a backslash is no markup to whoever wrote it: addresses and paths.

use std::ops::Range;

/// What ends an address beside white space: what no address holds, and the punctuation of scripts without spaces.
const NO_ADDRESS: [char; 24] = [
    '<', '>', '"', '`', '|', '\\', '，', '。', '；', '：', '！', '？', '、', '（', '）', '「', '」', '『', '』', '《',
    '》', '“', '”', '…',
];

/// What belongs to the sentence where it ends an address.
const BEHIND_ADDRESS: [char; 14] = ['.', ',', ';', ':', '!', '?', '*', '_', '~', '\'', '(', ')', '[', ']'];

/// The words of a text, in order.
#[derive(Debug, Default)]
pub(super) struct Words {
    addresses: Vec<Range<usize>>,
    paths: Vec<Range<usize>>,
}

impl Words {
    /// Finds them in `text`; their places are counted from `offset`.
    pub(super) fn read(text: &str, offset: usize) -> Self {
        let mut words = Self::default();
        let mut start = 0;
        for word in text.split_inclusive(char::is_whitespace) {
            let at = offset + start;
            start += word.len();
            let word = word.trim_end();
            if is_path(word) {
                words.paths.push(at..at + word.len());
            }
            let mut from = 0;
            while let Some(found) = word[from..].find("://") {
                let colon = from + found;
                let scheme = word[from..colon].chars().rev().take_while(|c| c.is_ascii_alphanumeric()).count();
                let end = colon + "://".len() + length_behind_scheme(&word[colon + "://".len()..]);
                if scheme > 0 {
                    words.addresses.push(at + colon - scheme..at + end);
                }
                from = end;
            }
        }
        words
    }

    /// Whether an address holds the character at `at`.
    pub(super) fn in_address(&self, at: usize) -> bool {
        holds(&self.addresses, at)
    }

    /// Whether a path holds the character at `at`.
    pub(super) fn in_path(&self, at: usize) -> bool {
        holds(&self.paths, at)
    }
}

fn holds(words: &[Range<usize>], at: usize) -> bool {
    words.get(words.partition_point(|word| word.end <= at)).is_some_and(|word| word.start <= at)
}

/// How much of `text`, which has no white space, an address goes on for: to a bracket that it did not open, and without
/// the punctuation behind it.
fn length_behind_scheme(text: &str) -> usize {
    let (mut round, mut square) = (0_usize, 0_usize);
    let is_outside = |c: char| {
        let (open, opening) = match c {
            '(' | ')' => (&mut round, c == '('),
            '[' | ']' => (&mut square, c == '['),
            _ => return NO_ADDRESS.contains(&c),
        };
        if opening {
            *open += 1;
            return false;
        }
        let closes_another = *open == 0;
        *open = open.saturating_sub(1);
        closes_another
    };
    let whole = &text[..text.find(is_outside).unwrap_or(text.len())];
    whole.trim_end_matches(BEHIND_ADDRESS).len()
}

/// Whether `word` is a path with backslashes: one with a drive, of a share or a variable, from here or from home, or one
/// in which a backslash stands between two names.
fn is_path(word: &str) -> bool {
    let word = word.trim_start_matches(['(', '"', '\'', '*', '“', '（']);
    let Some(first) = word.find('\\') else { return false };
    let (before, after) = (&word[..first], &word[first + 1..]);
    let is_name = |c: char| c.is_alphanumeric();
    let share = before.is_empty()
        && after.strip_prefix('\\').is_some_and(|share| share.starts_with(is_name) && share.contains('\\'));
    let drive = before.len() == 2 && before.starts_with(|c: char| c.is_ascii_alphabetic()) && before.ends_with(':');
    let variable = before.len() > 2 && before.starts_with('%') && before.ends_with('%');
    share
        || drive && !after.starts_with('\\')
        || variable
        || [".", "..", "~"].contains(&before)
        || before.ends_with(is_name) && after.starts_with(is_name)
}
