//! How many tokens a text is, at most.
//!
//! There is no one tokenizer: each family of models has its own, several are not public, and a count must cost neither a
//! request nor a vocabulary of megabytes. The estimate goes by what kinds of characters follow each other, with weights
//! above what byte-pair tokenizers make of texts in that script; the tests hold it to two real ones. Only a row of rare
//! ideographs, which is no text, can be more than is estimated.

/// What the weights are counted in: a hundredth of a token.
const TOKEN: usize = 100;

/// From how many letters on a word is probably none.
const LONG_WORD: usize = 12;

/// A kind of character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A small ASCII letter.
    Small,
    /// A capital ASCII letter.
    Capital,
    /// Several tokenizers give each digit a token of its own.
    Digit,
    /// A space: most are a part of the word behind them.
    Space,
    /// A line feed or tab.
    Break,
    /// ASCII that is none of these.
    Sign,
    /// Anything else, each character by itself.
    Other,
}

/// An estimate of the tokens of `text` that errs towards too many.
pub(super) fn tokens(text: &str) -> usize {
    let mut total = 0;
    let mut before = None;
    let mut letters = 0_usize;
    for c in text.chars() {
        let kind = kind(c);
        letters = if is_letter(kind) { letters + 1 } else { 0 };
        total += match kind {
            Kind::Small if letters == 1 => 95,
            Kind::Capital if letters == 1 => 110,
            // In a row of changing case, as base64 is, hardly two letters make a token.
            Kind::Capital if before == Some(Kind::Small) => 150,
            Kind::Capital => 70,
            Kind::Small if letters > LONG_WORD => 63,
            Kind::Small => 24,
            Kind::Digit => 100,
            Kind::Space if before == Some(Kind::Space) => 25,
            Kind::Space => 16,
            Kind::Break if before == Some(Kind::Break) => 60,
            Kind::Break => 100,
            Kind::Sign if before == Some(Kind::Sign) => 76,
            Kind::Sign => 100,
            Kind::Other => by_script(c),
        };
        before = Some(kind);
    }
    total.div_ceil(TOKEN)
}

fn is_letter(kind: Kind) -> bool {
    matches!(kind, Kind::Small | Kind::Capital)
}

fn kind(c: char) -> Kind {
    match c {
        'a'..='z' => Kind::Small,
        'A'..='Z' => Kind::Capital,
        '0'..='9' => Kind::Digit,
        ' ' => Kind::Space,
        '\n' | '\r' | '\t' => Kind::Break,
        c if c.is_ascii() => Kind::Sign,
        _ => Kind::Other,
    }
}

/// Scripts with many texts on the internet have merges of their own; what has none comes to a token a byte.
fn by_script(c: char) -> usize {
    match c {
        // Latin with accents, Greek, Cyrillic, Hebrew and Arabic, Devanagari, Thai, Vietnamese, punctuation, kana, common
        // ideographs, Hangul, full width.
        '\u{80}'..='\u{24f}' => 130,
        '\u{370}'..='\u{3ff}' => 140,
        '\u{400}'..='\u{4ff}' => 80,
        '\u{590}'..='\u{6ff}' => 145,
        '\u{900}'..='\u{97f}' => 170,
        '\u{e00}'..='\u{e7f}' => 140,
        '\u{1e00}'..='\u{1eff}' => 180,
        '\u{2000}'..='\u{206f}' => 180,
        '\u{3000}'..='\u{30ff}' => 150,
        '\u{4e00}'..='\u{9fff}' => 200,
        '\u{ac00}'..='\u{d7a3}' => 210,
        '\u{ff00}'..='\u{ffef}' => 200,
        c => c.len_utf8() * 112,
    }
}

#[cfg(test)]
mod samples;

#[cfg(test)]
mod tests {
    use tiktoken_rs::{cl100k_base_singleton, o200k_base_singleton};

    use super::*;

    /// Never fewer than two real tokenizers count, with a few in a hundred to spare; and of running text and code never
    /// more than three times as many as the older of them counts.
    #[test]
    fn an_estimate_is_never_too_low_and_not_absurdly_high() {
        let mut wrong = Vec::new();
        for (name, text, wasteful) in samples::samples() {
            let estimate = tokens(&text);
            let older = cl100k_base_singleton().encode_ordinary(&text).len();
            let newer = o200k_base_singleton().encode_ordinary(&text).len();
            if estimate * 100 < older.max(newer) * 105 || (estimate > older * 3 && !wasteful) {
                wrong.push(format!("{name}: estimated {estimate}, counted {older} and {newer}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn nothing_is_nothing_and_each_piece_counts() {
        assert_eq!((tokens(""), tokens("a"), tokens("word word")), (0, 1, 4));
    }
}
