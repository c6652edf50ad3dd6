//! A text that is still being written: marks that are open at its end are closed, so that half of a bold sentence is
//! bold and does not begin with asterisks.

use std::borrow::Cow;
use std::ops::Range;

use super::words::Words;

/// The most marks that are closed: whoever opens more writes no markup.
const DEEPEST: usize = 16;

/// A mark that is open.
#[derive(Clone, Copy)]
struct Open {
    mark: char,
    /// How often it stands there.
    times: usize,
    /// Whether it is likely to be closed one day. The others are not closed by us.
    plausible: bool,
}

/// `text` with what is open at its end closed; a mark that marks nothing yet, and the address of half a link, are left
/// out.
pub(crate) fn finished(text: &str) -> Cow<'_, str> {
    let (block, fence) = last_block(text);
    if let Some(mark) = fence {
        // Half of the line that closes a code block.
        let last = text.rfind('\n').map_or(text.len(), |line| line + 1);
        let half = !text[last..].is_empty() && text[last..].trim_start().chars().all(|c| c == mark);
        return Cow::Borrowed(if half { &text[..last] } else { text });
    }
    let tail = Tail::read(text, block);
    let closed = tail.open.iter().filter(|open| open.plausible);
    if closed.clone().next().is_none() && tail.bracket.is_none() && tail.end == text.len() {
        return Cow::Borrowed(text);
    }
    let shown = match tail.bracket {
        Some(bracket) => format!("{}{}", &text[..bracket.start], &text[bracket.end..tail.end]),
        None => text[..tail.end].to_owned(),
    };
    // A mark closes only what it touches.
    let mut shown = shown.trim_end().to_owned();
    for open in closed.rev() {
        shown.extend(std::iter::repeat_n(open.mark, open.times));
    }
    Cow::Owned(shown)
}

/// Where the last paragraph begins, and the mark of the code block that is open at the end.
fn last_block(text: &str) -> (usize, Option<char>) {
    let (mut block, mut at) = (0, 0);
    let mut fence: Option<(char, usize)> = None;
    for line in text.split_inclusive('\n') {
        let line_begin = line.trim_start_matches([' ', '\t', '>']);
        // An item may begin with a code block; in one there are no items.
        let bare = if fence.is_none() { content(line_begin) } else { line_begin }.trim_end();
        let mark = bare.chars().next().filter(|c| matches!(c, '`' | '~'));
        let times = mark.map_or(0, |mark| bare.chars().take_while(|c| *c == mark).count());
        at += line.len();
        match (fence, mark) {
            (Some((open, length)), Some(mark)) if mark == open && times >= length && times == bare.len() => {
                (fence, block) = (None, at);
            }
            (None, Some(mark)) if times >= 3 && !bare[times..].contains('`') => fence = Some((mark, times)),
            (None, None) if bare.is_empty() => block = at,
            _ => {}
        }
    }
    (block, fence.map(|(mark, _)| mark))
}

/// `line` without the marks of list items and quotes before it.
fn content(line: &str) -> &str {
    let mut line = line;
    loop {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let rest = match line[digits..].strip_prefix(if digits > 0 { ['.', ')'].as_slice() } else { &['-', '*', '+'] })
        {
            Some(rest) if rest.starts_with([' ', '\t']) => rest,
            _ => return line,
        };
        line = rest.trim_start_matches([' ', '\t', '>']);
    }
}

/// How a text ends.
struct Tail {
    /// How much of it is shown.
    end: usize,
    /// The mark before the label of a link without its address.
    bracket: Option<Range<usize>>,
    /// The marks that are open, the first one outermost.
    open: Vec<Open>,
}

impl Tail {
    /// Reads `text` from its last paragraph, `block`, on.
    fn read(text: &str, block: usize) -> Self {
        let mut tail = Self { end: text.len(), bracket: None, open: Vec::new() };
        let words = Words::read(&text[block..], block);
        // The mark of the last link, and whether its label is still being written.
        let (mut label, mut pending) = (None, false);
        let last_parenthesis = text.rfind(')').unwrap_or_default();
        let mut before = '\n';
        let mut rest = text[block..].char_indices().map(|(at, c)| (block + at, c)).peekable();
        while let Some((at, c)) = rest.next() {
            let mut times = 1;
            while rest.next_if(|(_, next)| *next == c).is_some() {
                times += 1;
            }
            let after = rest.peek().map(|(_, after)| *after);
            match c {
                '`' if tail.open.last().is_some_and(|open| (open.mark, open.times) == (c, times)) => {
                    _ = tail.open.pop();
                }
                _ if tail.open.last().is_some_and(|open| open.mark == '`') => {}
                '`' if after.is_some() => tail.open.push(Open { mark: c, times, plausible: true }),
                '\\' if times % 2 == 1 => {
                    rest.next();
                }
                '*' | '_' | '~' if words.in_address(at) => {}
                '*' | '_' | '~' if !tail.mark(c, times, &text[..at], after) && after.is_none() && before != '\n' => {
                    tail.end = at;
                }
                // A word or two may be emphasised, and that ends on its line.
                '\n' => {
                    pending = false;
                    tail.open.retain(|open| open.times > 1 || open.mark == '`');
                }
                '[' => {
                    let end = at + times;
                    label = Some(end - if times == 1 && before == '!' { 2 } else { 1 }..end);
                    pending = times == 1 && begins_label(before, &text[end..]);
                }
                ']' if after == Some('(') && last_parenthesis < at => {
                    if label.is_some() {
                        (tail.end, tail.bracket) = (at, label.take());
                    }
                    pending = false;
                    break;
                }
                // Whether it is a link is decided by what comes.
                ']' if after.is_none() && times == 1 && pending => tail.end = at,
                ']' => pending = false,
                _ => {}
            }
            if tail.open.len() > DEEPEST {
                return Self { end: text.len(), bracket: None, open: Vec::new() };
            }
            before = c;
        }
        if pending {
            tail.bracket = label;
        }
        tail
    }

    /// Takes in a row of marks between what stands before it and a character; whether it opens or closes something.
    fn mark(&mut self, mark: char, times: usize, head: &str, after: Option<char>) -> bool {
        let before = head.chars().next_back().unwrap_or('\n');
        let in_word = mark == '_' && before.is_alphanumeric();
        let same = |open: &Open| (open.mark, open.times) == (mark, times);
        if let Some(open) = self.open.iter().rposition(same).filter(|_| !before.is_whitespace()) {
            self.open.truncate(open);
        } else if let Some(after) = after.filter(|after| !after.is_whitespace())
            && !in_word
            && times <= 3
            && (mark != '~' || times == 2)
        {
            self.open.push(Open { mark, times, plausible: is_plausible(times, head, after) });
        } else {
            // One that may still grow into the mark that closes.
            return !self.open.iter().any(|open| open.mark == mark) && mark != '*';
        }
        true
    }
}

/// Whether a row of marks between `head` and `after` is likely to be one that opens, and none of a calculation (`5 *a`,
/// `2*x`, `x**2`) or of arguments (`f(**kwargs`).
fn is_plausible(times: usize, head: &str, after: char) -> bool {
    let word = head.trim_end_matches(' ');
    let letter_before = head.ends_with(|c: char| c.is_ascii_alphanumeric());
    let is_argument = head.strip_suffix('(').is_some_and(|head| head.ends_with(|c: char| c.is_ascii_alphanumeric()));
    let is_factor = if times == 1 {
        letter_before || word.ends_with(|c: char| c.is_ascii_digit())
    } else {
        letter_before && after.is_ascii_digit()
    };
    !is_argument && !is_factor
}

/// Whether the bracket between `before` and `label` is likely to be that of a link: most others stand behind a word, hold a
/// number or a box.
fn begins_label(before: char, label: &str) -> bool {
    let is_box = matches!(label, "x" | "X") || label.starts_with("x]") || label.starts_with("X]");
    (before.is_whitespace() || "(*_~!:".contains(before) || !before.is_ascii())
        && !is_box
        && label.chars().next().is_none_or(|c| c.is_alphabetic() || "*_`!".contains(c))
}
