//! A text that is still being written: marks that are open at its end are closed, so that half of a bold sentence is
//! bold and does not begin with asterisks.

use std::borrow::Cow;

/// The most marks that are closed: whoever opens more writes no markup.
const DEEPEST: usize = 16;

/// An inline mark: its character, and how often it stands there.
type Open = (char, usize);

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
    if tail.open.is_empty() && tail.bracket.is_none() && tail.end == text.len() {
        return Cow::Borrowed(text);
    }
    let shown = match tail.bracket {
        Some(bracket) => format!("{}{}", &text[..bracket], &text[bracket + 1..tail.end]),
        None => text[..tail.end].to_owned(),
    };
    // A mark closes only what it touches.
    let mut shown = shown.trim_end().to_owned();
    for (mark, times) in tail.open.iter().rev() {
        shown.extend(std::iter::repeat_n(*mark, *times));
    }
    Cow::Owned(shown)
}

/// Where the last paragraph begins, and the mark of the code block that is open at the end.
fn last_block(text: &str) -> (usize, Option<char>) {
    let (mut block, mut at) = (0, 0);
    let mut fence: Option<Open> = None;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start_matches([' ', '\t', '>']).trim_end();
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

/// How a text ends.
struct Tail {
    /// How much of it is shown.
    end: usize,
    /// The bracket before the label of a link without its address.
    bracket: Option<usize>,
    /// The marks that are open, the first one outermost.
    open: Vec<Open>,
}

impl Tail {
    /// Reads `text` from its last paragraph, `block`, on.
    fn read(text: &str, block: usize) -> Self {
        let mut tail = Self { end: text.len(), bracket: None, open: Vec::new() };
        let mut label = None;
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
                '`' if tail.open.last() == Some(&(c, times)) => _ = tail.open.pop(),
                _ if matches!(tail.open.last(), Some(('`', _))) => {}
                '`' if after.is_some() => tail.open.push((c, times)),
                '\\' if times % 2 == 1 => {
                    rest.next();
                }
                '*' | '_' | '~' if !tail.mark(c, times, before, after) && after.is_none() && before != '\n' => {
                    tail.end = at;
                }
                '[' => label = Some(at + times - 1),
                ']' if after == Some('(') && last_parenthesis < at => {
                    if let Some(label) = label {
                        (tail.end, tail.bracket) = (at, Some(label));
                    }
                    break;
                }
                _ => {}
            }
            if tail.open.len() > DEEPEST {
                return Self { end: text.len(), bracket: None, open: Vec::new() };
            }
            before = c;
        }
        tail
    }

    /// Takes in a row of marks between two characters; whether it opens or closes something.
    fn mark(&mut self, c: char, times: usize, before: char, after: Option<char>) -> bool {
        let in_word = c == '_' && before.is_alphanumeric();
        if !before.is_whitespace() && self.open.last() == Some(&(c, times)) {
            self.open.pop();
        } else if after.is_some_and(|after| !after.is_whitespace())
            && !in_word
            && times <= 3
            && (c != '~' || times == 2)
        {
            self.open.push((c, times));
        } else {
            // One that may still grow into the mark that closes.
            return !self.open.iter().any(|(open, _)| *open == c) && c != '*';
        }
        true
    }
}
