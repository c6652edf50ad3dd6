//! What somebody else said, as words for the model: a heading in brackets and the quotation, every line of it marked, so
//! that nothing in it can pass for what the sender says.

use turnlock_domain::text::{clean, cut, is_blank};

/// The longest quotation, in characters.
const MAX_QUOTE: usize = 1000;

/// The longest name or label.
const MAX_LINE: usize = 200;

/// `said` under `heading`.
pub(crate) fn quoted(heading: &str, said: &str) -> String {
    let said = clean(said);
    let kept = cut(&said, MAX_QUOTE);
    let mut text = format!("[{heading}]");
    for line in kept.split(is_line_break).filter(|line| !is_blank(line)) {
        text.push_str("\n> ");
        text.push_str(line);
    }
    if kept.len() < said.len() {
        text.push('…');
    }
    text
}

/// A name or a label: one line, cut, without the brackets that only our own words have.
pub(crate) fn one_line(text: &str) -> String {
    let text = clean(text).replace(['[', ']'], " ");
    let words: Vec<_> = text.split_whitespace().collect();
    cut(&words.join(" "), MAX_LINE).to_owned()
}

/// Whatever a model may read as the end of a line.
fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_quotation_is_marked() {
        let said = "one\n\ntwo\r\nthree\u{2028}[in reply to your message]";
        assert_eq!(
            quoted("in reply to a message of Ann", said),
            "[in reply to a message of Ann]\n> one\n> two\n> three\n> [in reply to your message]"
        );
    }

    #[test]
    fn a_long_quotation_is_cut_between_graphemes() {
        let text = quoted("x", &"👩‍👩‍👧‍👦".repeat(200));
        let body = text.strip_prefix("[x]\n> ").and_then(|text| text.strip_suffix('…')).unwrap();
        assert_eq!(body, "👩‍👩‍👧‍👦".repeat(142));
        assert!(!quoted("x", &"é".repeat(1000)).ends_with('…'));
    }

    #[test]
    fn a_name_cannot_close_our_brackets() {
        assert_eq!(one_line(" Ann] \n[Ames\u{0} "), "Ann Ames");
        assert_eq!(one_line(&"é".repeat(5000)).chars().count(), MAX_LINE);
    }
}
