//! Text at the edges: cuts that no reader notices, characters that no reader sees, and JSON as the outside world writes it.
//!
//! One rule everywhere (webhooks, tool output, stored sessions): an escaped lone surrogate in JSON becomes U+FFFD, so
//! broken text costs one character and never the document. Only [`parse_json`] and [`from_json`] can fail; their error
//! names a position and never quotes the body.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

/// The longest start of `text` with at most `max_chars` characters that ends between two graphemes. A first grapheme that
/// is longer than that by itself is cut between characters, so that no letter with a thousand accents empties the text.
#[must_use]
pub fn cut(text: &str, max_chars: usize) -> &str {
    cut_by(text, max_chars, |piece| piece.chars().count())
}

/// [`cut`], counted in UTF-16 units, as Telegram counts.
#[must_use]
pub fn cut_utf16(text: &str, max_units: usize) -> &str {
    cut_by(text, max_units, utf16_len)
}

/// The length of `text` in UTF-16 units.
#[must_use]
pub fn utf16_len(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

fn cut_by(text: &str, max: usize, measure: impl Fn(&str) -> usize) -> &str {
    let by_grapheme = fitting(text.graphemes(true), max, &measure);
    let end = if by_grapheme > 0 { by_grapheme } else { fitting(chars(text), max, &measure) };
    &text[..end]
}

/// The number of bytes of those first `pieces` that together stay within `max`.
fn fitting<'a>(pieces: impl Iterator<Item = &'a str>, max: usize, measure: impl Fn(&str) -> usize) -> usize {
    let (mut end, mut used) = (0, 0);
    for piece in pieces {
        used += measure(piece);
        if used > max {
            break;
        }
        end += piece.len();
    }
    end
}

fn chars(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()])
}

/// Whether nothing of `text` can be seen: it is empty, or only white space, control characters, zero-width and other
/// invisible characters.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    text.chars().all(is_invisible)
}

/// Whether `c` is drawn as nothing, or only moves what stands beside it: white space, control characters, Unicode's
/// default-ignorable characters (joiners, direction marks, tags, variation selectors) and blanks.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}'..='\u{ffff}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// `text` as every boundary lets it pass. Removed are
///
/// - NUL and what else XML 1.0 has no place for (SQS refuses such a message): control characters other than tab, line
///   feed and carriage return, U+FFFE, U+FFFF;
/// - the invisible tag characters (U+E0000 to U+E007F), which spell whole sentences that only a model reads - except in
///   the flags of England, Scotland and Wales;
/// - a variation selector behind another one: a row of them carries hidden bytes, a single one picks a glyph;
/// - the bidirectional overrides U+202D and U+202E, which show a command or a file name as what it is not.
///
/// Joiners (ZWJ, ZWNJ), direction marks and isolates stay: emoji, Persian, Indic and right-to-left text need them. The
/// result may be blank where `text` was not; whoever needs visible text asks [`is_blank`] afterwards.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    let mut kept: Option<String> = None;
    let (mut at, mut before) = (0, None);
    loop {
        // Nearly all there is, and nothing in it depends on what stands beside it.
        let plain = text.as_bytes()[at..].iter().take_while(|byte| is_plain(**byte)).count();
        if plain > 0 {
            push(&mut kept, &text[at..at + plain]);
            before = None;
            at += plain;
        }
        let Some(c) = text[at..].chars().next() else { break };
        let len = c.len_utf8();
        let flag = if before == Some('\u{1f3f4}') { flag_tags(&text[at..]) } else { 0 };
        if flag > 0 {
            push(&mut kept, &text[at..at + flag]);
            before = Some('\u{e007f}');
            at += flag;
            continue;
        }
        if is_removed(c, before) {
            kept.get_or_insert_with(|| text[..at].to_owned());
        } else {
            push(&mut kept, &text[at..at + len]);
            before = Some(c);
        }
        at += len;
    }
    kept.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Adds to the copy, once there is one.
fn push(kept: &mut Option<String>, piece: &str) {
    if let Some(kept) = kept {
        kept.push_str(piece);
    }
}

/// Whether the byte is a whole character that always stays.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=0x7f)
}

fn is_removed(c: char, before: Option<char>) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' | '\u{202d}' | '\u{202e}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => is_variation_selector(c) && before.is_some_and(is_variation_selector),
    }
}

fn is_variation_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// How many bytes of tag characters at the start of `text` complete the flag of a part of Britain; 0 if they do not.
fn flag_tags(text: &str) -> usize {
    for region in ["gbeng", "gbsct", "gbwls"] {
        let tags = region.chars().filter_map(|c| char::from_u32(0xe_0000 + u32::from(c))).chain(['\u{e007f}']);
        if text.chars().take(region.len() + 1).eq(tags) {
            return 4 * (region.len() + 1);
        }
    }
    0
}

/// Why a body is not what it should be. Trying again does not help. The text of the body is in none of its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The bytes are not UTF-8.
    #[error("the body is not UTF-8 (byte {at})")]
    Utf8 {
        /// The first byte that is not.
        at: usize,
    },
    /// The text is not JSON, or nested too deeply.
    #[error("the body is not valid JSON (line {line}, column {column})")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The text ends too early.
    #[error("the body ends in the middle (line {line}, column {column})")]
    Truncated {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The JSON is not of the expected shape.
    #[error("the body has an unexpected shape (line {line}, column {column})")]
    Shape {
        /// The line, from 1; 0 where it is not known.
        line: usize,
        /// The column, from 1; 0 where it is not known.
        column: usize,
    },
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        match error.classify() {
            serde_json::error::Category::Eof => Self::Truncated { line, column },
            serde_json::error::Category::Data => Self::Shape { line, column },
            serde_json::error::Category::Syntax | serde_json::error::Category::Io => Self::Syntax { line, column },
        }
    }
}

/// Reads any JSON from outside by the rule for lone surrogates.
///
/// # Errors
/// [`JsonError`] where the bytes are not UTF-8, not JSON, or nested deeper than 128 levels.
pub fn parse_json(bytes: &[u8]) -> Result<Value, JsonError> {
    from_json(bytes)
}

/// Reads JSON of a known shape by the rule for lone surrogates.
///
/// # Errors
/// As [`parse_json`], and [`JsonError::Shape`] where it is JSON of another shape.
pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, JsonError> {
    let text = std::str::from_utf8(bytes).map_err(|error| JsonError::Utf8 { at: error.valid_up_to() })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Ok(serde_json::from_str(&mend_surrogates(text))?)
}

/// `json` with every escaped lone surrogate replaced by `\ufffd`. It keeps its length, so positions stay right.
fn mend_surrogates(json: &str) -> Cow<'_, str> {
    let mut mended: Option<String> = None;
    // A backslash has a meaning only in strings, and outside of them JSON has none: strings need not be told apart.
    let mut at = 0;
    while let Some(escape) = json[at..].find('\\').map(|found| at + found) {
        at = match unit(json, escape) {
            Some(0xd800..=0xdbff) if matches!(unit(json, escape + 6), Some(0xdc00..=0xdfff)) => escape + 12,
            Some(0xd800..=0xdfff) => {
                mended.get_or_insert_with(|| json.to_owned()).replace_range(escape..escape + 6, "\\ufffd");
                escape + 6
            }
            Some(_) => escape + 6,
            // Some other escape: its second character may be a backslash and must not be read as the start of one.
            None => escape + 1 + json[escape + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    mended.map_or(Cow::Borrowed(json), Cow::Owned)
}

/// The UTF-16 unit that the escape at `at` stands for, if a `\uXXXX` stands there.
fn unit(json: &str, at: usize) -> Option<u16> {
    let hex = json.get(at..at + 6)?.strip_prefix("\\u")?;
    if !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(hex, 16).ok()
}

/// The places a text may be parted at, the better the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pause {
    /// Behind a word.
    Space,
    /// Behind a comma.
    Comma,
    /// Behind a semicolon.
    Semicolon,
    /// Behind a sentence.
    Sentence,
    /// Behind a line.
    Line,
    /// Behind a blank line.
    Paragraph,
}

/// The pause between `before` and `after`. Western marks count only with a space behind them: `3.14` is one number.
#[must_use]
pub fn pause(before: &str, after: &str) -> Option<Pause> {
    if let Some(line) = before.strip_suffix('\n') {
        let blank = line.trim_end_matches([' ', '\t', '\r']).ends_with('\n');
        return Some(if blank { Pause::Paragraph } else { Pause::Line });
    }
    let word = before.trim_end_matches(' ');
    let spaced = word.len() < before.len() || after.starts_with(char::is_whitespace);
    match word.chars().next_back() {
        Some('。' | '！' | '？') => Some(Pause::Sentence),
        Some('；') => Some(Pause::Semicolon),
        Some('，' | '、') => Some(Pause::Comma),
        Some('.' | '!' | '?') if spaced => Some(Pause::Sentence),
        Some(';') if spaced => Some(Pause::Semicolon),
        Some(',') if spaced => Some(Pause::Comma),
        _ if word.len() < before.len() => Some(Pause::Space),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    const FAMILY: &str = "👨‍👩‍👧";
    const SCOTLAND: &str = "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}";

    fn count(text: &str) -> usize {
        text.chars().count()
    }

    #[test]
    fn cuts_fall_between_graphemes() {
        assert_eq!(cut("héllo", 3), "hél");
        assert_eq!(cut("he\u{301}llo", 2), "h");
        assert_eq!(cut(&format!("a{FAMILY}b"), 5), "a");
        assert_eq!(cut(&format!("a{FAMILY}b"), 6), format!("a{FAMILY}"));
        assert_eq!(cut("abc", 0), "");
        assert_eq!(cut("abc", 9), "abc");
        assert_eq!(cut_utf16("😀", 1), "");
        assert_eq!(utf16_len("a😀"), 3);
    }

    #[test]
    fn a_letter_with_endless_accents_does_not_empty_the_text() {
        let tower = format!("a{}", "\u{301}".repeat(100));
        assert_eq!(cut(&tower, 10).chars().count(), 10);
    }

    /// Case un-session-bricked: seven units of ten emoji are three emoji.
    #[test]
    fn un_session_bricked() {
        assert_eq!(cut_utf16(&"😀".repeat(10), 7), "😀😀😀");
    }

    /// Case un-error-snowball: an error text is capped without a half character that could spread.
    #[test]
    fn un_error_snowball() {
        let error: Value = parse_json(br#""...'\udc97'...""#).expect("parses");
        assert_eq!(cut(error.as_str().expect("a text"), 5), "...'\u{fffd}");
    }

    #[test]
    fn blank_is_what_nobody_sees() {
        for blank in
            ["", " \n\t", "\u{200b}\u{feff}", "\u{2060}\u{ad}", "\u{3164}", "\u{e0041}", "\0\u{7f}", "\u{fe0f}"]
        {
            assert!(is_blank(blank), "{blank:?}");
        }
        for visible in ["a", "\u{200b}.", "\u{fffd}", "👍", "‏א"] {
            assert!(!is_blank(visible), "{visible:?}");
        }
    }

    #[test]
    fn cleaning_removes_what_no_one_sees_and_keeps_what_scripts_need() {
        for (text, clean_text) in [
            ("a\0b\u{b}c\u{ffff}", "abc"),
            ("line\r\n\tindented", "line\r\n\tindented"),
            ("hi\u{e0049}\u{e0047}\u{e007f}", "hi"),
            ("rm \u{202e}fdp.exe", "rm fdp.exe"),
            ("❤\u{fe0f}\u{fe0f}\u{e0101}!", "❤\u{fe0f}!"),
            ("🏴\u{e0061}\u{e0062}\u{e007f}", "🏴"),
        ] {
            assert_eq!(clean(text), clean_text, "{text:?}");
        }
        for kept in
            [FAMILY, SCOTLAND, "می\u{200c}خواهم", "שלום\u{200f}!", "葛\u{e0100}", "\u{2068}name\u{2069}", "\u{fffd}"]
        {
            assert!(matches!(clean(kept), Cow::Borrowed(_)), "{kept:?}");
        }
    }

    #[test]
    fn un_lone_surrogate_json() {
        let update =
            parse_json(br#"{"update_id":7001,"message":{"message_id":1,"text":"hi \ud83d"}}"#).expect("parses");
        assert_eq!(update["message"]["text"], "hi \u{fffd}");
    }

    /// Case un-lone-surrogate-validator: one rule for values and for typed shapes.
    #[test]
    fn un_lone_surrogate_validator() {
        #[derive(Deserialize)]
        struct Shape {
            test: String,
        }
        let raw = br#"{"test":"a\udce2b","ignored":"\uD800"}"#;
        assert_eq!(parse_json(raw).expect("parses")["test"], "a\u{fffd}b");
        assert_eq!(from_json::<Shape>(raw).expect("parses").test, "a\u{fffd}b");
    }

    #[test]
    fn un_pair_decoded_apart() {
        assert_eq!(parse_json(br#"{"text":"\ud83c\udf78"}"#).expect("parses"), json!({"text": "\u{1f378}"}));
    }

    #[test]
    fn only_lone_surrogates_are_replaced() {
        for (raw, text) in [
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\ud83dA""#, "\u{fffd}A"),
            (r#""\\ud83d""#, "\\ud83d"),
            (r#""\\\ud83d""#, "\\\u{fffd}"),
            (r#""\ud83d\n\"\uDE00""#, "\u{fffd}\n\"\u{fffd}"),
            (r#""é\ud83dé""#, "é\u{fffd}é"),
        ] {
            assert_eq!(parse_json(raw.as_bytes()), Ok(json!(text)), "{raw}");
        }
        assert_eq!(parse_json("\u{feff}{\"\\ud800\": 1}".as_bytes()), Ok(json!({"\u{fffd}": 1})));
    }

    #[test]
    fn errors_name_a_place_and_quote_nothing() {
        let deep = "[".repeat(1000);
        let cases: [(&[u8], JsonError); 6] = [
            (b"{\"secret\": \xff}", JsonError::Utf8 { at: 11 }),
            (b"{secret}", JsonError::Syntax { line: 1, column: 2 }),
            (b"{\n\"secret\": ", JsonError::Truncated { line: 2, column: 10 }),
            (b"\"\\ud83", JsonError::Truncated { line: 1, column: 6 }),
            (deep.as_bytes(), JsonError::Syntax { line: 1, column: 128 }),
            (b"", JsonError::Truncated { line: 1, column: 0 }),
        ];
        for (raw, error) in cases {
            assert_eq!(parse_json(raw), Err(error));
        }
        let error = from_json::<u64>(b"\"secret\"").expect_err("another shape");
        assert_eq!(error, JsonError::Shape { line: 1, column: 8 });
        assert!(!format!("{error} {error:?}").contains("secret"));
    }

    #[test]
    fn a_reader_pauses_behind_lines_sentences_and_words() {
        for (before, after, wanted) in [
            ("a\n\n", "b", Some(Pause::Paragraph)),
            ("a\n \t\r\n", "b", Some(Pause::Paragraph)),
            ("a\n", "b", Some(Pause::Line)),
            ("a。", "b", Some(Pause::Sentence)),
            ("a! ", "b", Some(Pause::Sentence)),
            ("a.", " b", Some(Pause::Sentence)),
            ("a；", "b", Some(Pause::Semicolon)),
            ("a; ", "b", Some(Pause::Semicolon)),
            ("a、", "b", Some(Pause::Comma)),
            ("a, ", "b", Some(Pause::Comma)),
            ("a ", "b", Some(Pause::Space)),
            ("3.", "14", None),
            ("a", " b", None),
            ("", "b", None),
        ] {
            assert_eq!(pause(before, after), wanted, "{before:?} {after:?}");
        }
    }

    fn any_text() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "word",
            " ",
            "\n",
            "\n\n",
            "\r\n",
            ". ",
            "。",
            ", ",
            ";",
            "😀",
            FAMILY,
            SCOTLAND,
            "e\u{301}",
            "\u{301}",
            "你好",
            "\0",
            "\u{e0061}",
            "🏴",
            "\u{fe0f}",
            "\u{202e}",
            "\u{200d}",
            "🇩🇪",
        ]);
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_cut_is_the_longest_start_that_fits(text in any_text(), max in 0usize..30) {
            let start = cut(&text, max);
            prop_assert!(text.starts_with(start) && count(start) <= max);
            let next = text[start.len()..].graphemes(true).next().map_or(0, count);
            prop_assert!(next == 0 || count(start) + next > max || start.is_empty() || text.graphemes(true).next().map(count) > Some(max));
        }

        #[test]
        fn cleaning_settles_at_once(text in any_text()) {
            let once = clean(&text);
            prop_assert!(matches!(clean(&once), Cow::Borrowed(_)));
        }

        #[test]
        fn any_string_survives_json(text in "\\PC{0,20}", units in prop::collection::vec(0xd000u16..0xe100, 0..8)) {
            let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let raw = format!("[{}, \"{escaped}\"]", json!(text));
            let parsed = parse_json(raw.as_bytes()).expect("parses");
            prop_assert_eq!(&parsed[0], &json!(text));
            prop_assert_eq!(&parsed[1], &json!(String::from_utf16_lossy(&units)));
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse_json(&bytes);
        }
    }
}
