//! The filter that keeps a model's reasoning out of what people see: one machine for whole texts and for streams.
//!
//! Only what a model wrote passes here. A user's own text is never stripped: whoever asks about `<think>` tags keeps them.
//!
//! # What is reasoning
//! - What stands between `<think>` and `</think>`; likewise `thinking`, `reasoning`, `thought` and `reasoning_scratchpad`,
//!   in any case, with attributes, and with a model's prefix (`<M2_7think>`, `<seed:think>`). Tags nest, and any closer
//!   closes the innermost opener. `<|channel>thought` … `<channel|>` is such a pair, too.
//! - Everything behind an opener that is never closed.
//! - Everything before a closer that nothing opened: some templates write the opener into the prompt, so the model's text
//!   begins inside. Frames shown before such a closer are replaced, as [`ThinkingFilter::visible`] starts again. For models
//!   known to begin that way (`starts_in_reasoning`) nothing is shown until the closer.
//! - Everything, if such a model never writes the closer. It may have answered without reasoning, but a text cut off in
//!   the middle of its reasoning looks the same, and a leak cannot be taken back; no visible answer can be asked for
//!   again.
//!
//! # What is not
//! Tags in code are text: in an inline code span, which ends on its line within [`SPAN_MAX`] bytes, and in a fenced block,
//! closed or not. A backtick that nothing closes is a backtick. Within reasoning the same tags are no tags, with one
//! exception: a closer counts although code is open around it, unless it is alone in its span, the fence ends right
//! behind it, or it closes a tag of the same code. Else reasoning that is cut off in the middle of some code (a thinking
//! budget does that) would swallow the answer.
//!
//! # Why chunks do not matter
//! The machine takes a piece of text only when nothing that may follow can change what the piece is; until then the piece
//! is held back. So what a text comes to does not depend on how it was cut. A piece held back is bounded: what is longer
//! than [`TAG_MAX`] is no tag, what is longer than [`SPAN_MAX`] no span.
//!
//! It cannot fail. Text that reasoning was taken out of is not read again: pieces that look like a tag when put together
//! stay text.

/// The longest tag, in bytes.
pub const TAG_MAX: usize = 256;

/// The longest text between the backticks of an inline code span, and the longest info line of a fence, in bytes.
pub const SPAN_MAX: usize = 1024;

/// The longest run of backticks or tildes that means anything.
const RUN_MAX: usize = 64;

const NAMES: [&str; 5] = ["think", "thinking", "reasoning", "thought", "reasoning_scratchpad"];
const CHANNEL_OPEN: &str = "<|channel>";
const CHANNEL_CLOSE: &str = "<channel|>";

/// Strips a whole text: what [`ThinkingFilter`] leaves of it, trimmed.
#[must_use]
pub fn strip(text: &str, starts_in_reasoning: bool) -> String {
    let mut filter = ThinkingFilter::new(starts_in_reasoning);
    filter.push(text);
    filter.finish()
}

/// The machine. One per model output.
#[derive(Debug, Clone)]
pub struct ThinkingFilter {
    visible: String,
    /// Text that may become something else by what follows.
    held: String,
    /// How many reasoning tags are open.
    depth: usize,
    /// The fenced block that is open.
    fence: Option<Fence>,
    /// How many tags are open in a fenced block within reasoning.
    fence_depth: usize,
    /// Whether only indentation stands before this place on its line.
    at_line_start: bool,
    /// The same, for the place at which the reasoning began.
    was_at_line_start: bool,
    /// Whether the next tag may be the opener that the template has written already.
    expects_opener: bool,
}

#[derive(Debug, Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
}

impl ThinkingFilter {
    /// A filter for one output; `starts_in_reasoning` for models whose template opens the reasoning for them.
    #[must_use]
    pub fn new(starts_in_reasoning: bool) -> Self {
        Self {
            visible: String::new(),
            held: String::new(),
            depth: usize::from(starts_in_reasoning),
            fence: None,
            fence_depth: 0,
            at_line_start: true,
            was_at_line_start: true,
            expects_opener: starts_in_reasoning,
        }
    }

    /// Takes the next piece of the output.
    pub fn push(&mut self, chunk: &str) {
        self.held.push_str(chunk);
        self.advance(false);
    }

    /// The whole visible text so far, safe to show as a frame. It only grows, except where an orphan closer hides what
    /// came before it. It may be blank.
    #[must_use]
    pub fn visible(&self) -> &str {
        self.visible.trim_start()
    }

    /// The visible text of the whole output, trimmed. Blank text means that the model gave no visible answer.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.advance(true);
        self.visible.trim().to_owned()
    }

    /// Takes as much of the held text as is certain.
    fn advance(&mut self, at_end: bool) {
        let held = std::mem::take(&mut self.held);
        let mut rest = held.as_str();
        while !rest.is_empty() {
            match self.step(rest, at_end) {
                Some(taken) => rest = &rest[taken..],
                None => break,
            }
        }
        self.held = if rest.len() == held.len() { held } else { rest.to_owned() };
    }

    /// Takes the first piece of `rest` and returns its length; `None` if that depends on what follows.
    fn step(&mut self, rest: &str, at_end: bool) -> Option<usize> {
        if let Some(fence) = self.fence {
            return self.step_in_fence(rest, fence, at_end);
        }
        match rest.as_bytes().first() {
            Some(b'<') => self.step_at_angle(rest, at_end),
            Some(b'`') => self.step_at_mark(rest, '`', at_end),
            Some(b'~') if self.at_line_start => self.step_at_mark(rest, '~', at_end),
            Some(b'\\') => self.step_at_backslash(rest, at_end),
            _ => {
                let first = rest.chars().next().map_or(0, char::len_utf8);
                Some(self.take(rest, rest[first..].find(['<', '`', '~', '\\']).map_or(rest.len(), |at| first + at)))
            }
        }
    }

    fn step_at_angle(&mut self, rest: &str, at_end: bool) -> Option<usize> {
        match read_tag(rest, at_end) {
            Tag::Unclear => None,
            Tag::None => Some(self.take(rest, 1)),
            Tag::Some(kind, length) => {
                match kind {
                    Kind::Open => self.open(),
                    Kind::Close => self.close(),
                    Kind::Empty => {}
                }
                Some(length)
            }
        }
    }

    fn open(&mut self) {
        if std::mem::take(&mut self.expects_opener) {
            return;
        }
        if self.depth == 0 {
            self.was_at_line_start = self.at_line_start;
        }
        self.depth += 1;
        self.at_line_start = true;
    }

    fn close(&mut self) {
        self.expects_opener = false;
        if self.depth == 0 {
            self.visible.clear();
            self.at_line_start = true;
        } else {
            self.depth -= 1;
            if self.depth == 0 {
                self.at_line_start = self.was_at_line_start;
            }
        }
    }

    /// A backslash takes the meaning from a backtick behind it.
    fn step_at_backslash(&mut self, rest: &str, at_end: bool) -> Option<usize> {
        match rest.as_bytes().get(1) {
            Some(b'`' | b'\\') => Some(self.take(rest, 2)),
            Some(_) => Some(self.take(rest, 1)),
            None => at_end.then(|| self.take(rest, 1)),
        }
    }

    /// A run of `mark` opens a fence or a code span, or is text.
    fn step_at_mark(&mut self, rest: &str, mark: char, at_end: bool) -> Option<usize> {
        let length = run(rest, mark);
        if length >= RUN_MAX {
            return Some(self.take(rest, RUN_MAX));
        }
        if length == rest.len() && !at_end {
            return None;
        }
        if self.at_line_start && length >= 3 {
            match info_line(&rest[length..], mark, at_end) {
                Found::Unclear => return None,
                Found::At(end) => {
                    self.take(rest, length + end);
                    self.fence = Some(Fence { mark, length });
                    self.fence_depth = 0;
                    return Some(length + end);
                }
                Found::No => {}
            }
        }
        if mark != '`' {
            return Some(self.take(rest, length));
        }
        match span_end(&rest[length..], length, at_end) {
            Found::Unclear => None,
            Found::At(end) if self.depth == 0 || !swallows_closer(&rest[length..length + end]) => {
                Some(self.take(rest, length + end + length))
            }
            Found::At(_) | Found::No => Some(self.take(rest, length)),
        }
    }

    /// Within a fenced block: line by line, as a line may be its end.
    fn step_in_fence(&mut self, rest: &str, fence: Fence, at_end: bool) -> Option<usize> {
        if self.at_line_start {
            match closing_line(rest, fence, at_end) {
                Found::Unclear => return None,
                Found::At(end) => {
                    self.fence = None;
                    self.take(rest, end);
                    self.at_line_start = true;
                    return Some(end);
                }
                Found::No => self.at_line_start = false,
            }
        }
        let stops: &[char] = if self.depth > 0 { &['\n', '<'] } else { &['\n'] };
        match rest.find(stops) {
            None => Some(self.take(rest, rest.len())),
            Some(at) if rest[at..].starts_with('\n') => {
                self.take(rest, at + 1);
                self.at_line_start = true;
                Some(at + 1)
            }
            Some(0) => self.step_at_angle_in_fence(rest, fence, at_end),
            Some(at) => Some(self.take(rest, at)),
        }
    }

    /// A tag in a fenced block within reasoning.
    fn step_at_angle_in_fence(&mut self, rest: &str, fence: Fence, at_end: bool) -> Option<usize> {
        let (kind, length) = match read_tag(rest, at_end) {
            Tag::Unclear => return None,
            Tag::None => return Some(1),
            Tag::Some(kind, length) => (kind, length),
        };
        match kind {
            Kind::Empty => {}
            Kind::Open => self.fence_depth += 1,
            Kind::Close if self.fence_depth > 0 => self.fence_depth -= 1,
            Kind::Close => match ends_behind(&rest[length..], fence, at_end) {
                Found::Unclear => return None,
                Found::At(_) => {}
                Found::No => {
                    self.fence = None;
                    self.close();
                }
            },
        }
        Some(length)
    }

    /// Takes the first `length` bytes of `rest` as text.
    fn take(&mut self, rest: &str, length: usize) -> usize {
        let text = &rest[..length];
        if self.depth == 0 {
            self.visible.push_str(text);
        }
        self.expects_opener &= text.trim_start().is_empty();
        let line = text.rsplit('\n').next().unwrap_or(text);
        self.at_line_start = (self.at_line_start || line.len() < text.len()) && line.chars().all(is_indentation);
        length
    }
}

/// Where something ends, if it is there.
enum Found {
    At(usize),
    No,
    Unclear,
}

impl Found {
    /// The answer where the text at hand ends too early.
    fn none_yet(at_end: bool) -> Self {
        if at_end { Self::No } else { Self::Unclear }
    }
}

/// What may stand before a fence on its line: lists and quotes indent theirs.
fn is_indentation(c: char) -> bool {
    matches!(c, ' ' | '\t' | '>')
}

/// How long the run of `mark` at the start of `text` is.
fn run(text: &str, mark: char) -> usize {
    text.len() - text.trim_start_matches(mark).len()
}

/// The end of the line behind an opening fence. A backtick there makes backticks a code span instead, and no info line
/// has a tag.
fn info_line(after: &str, mark: char, at_end: bool) -> Found {
    let stops = |c: char| c == '\n' || c == '<' || (c == '`' && mark == '`');
    match after.find(stops) {
        Some(at) if at <= SPAN_MAX && after[at..].starts_with('\n') => Found::At(at + 1),
        Some(_) => Found::No,
        None if after.len() > SPAN_MAX => Found::No,
        None if at_end => Found::At(after.len()),
        None => Found::Unclear,
    }
}

/// Where the code span ends whose opening run has `length` backticks: at the next run of that length on the line.
fn span_end(after: &str, length: usize, at_end: bool) -> Found {
    let mut at = 0;
    loop {
        let Some(next) = after[at..].find(['`', '\n']).map(|found| at + found) else {
            return if after.len() > SPAN_MAX { Found::No } else { Found::none_yet(at_end) };
        };
        if next > SPAN_MAX || after[next..].starts_with('\n') {
            return Found::No;
        }
        let closing = run(&after[next..], '`');
        let is_whole = next + closing < after.len() || at_end;
        if closing == length && is_whole {
            return Found::At(next);
        }
        if closing <= length && !is_whole {
            return Found::Unclear;
        }
        at = next + closing;
    }
}

/// Whether a code span within reasoning holds a closer that is neither alone in it nor opened in it.
fn swallows_closer(code: &str) -> bool {
    let alone = code.trim();
    if matches!(read_tag(alone, true), Tag::Some(Kind::Close, length) if length == alone.len()) {
        return false;
    }
    let mut depth = 0_usize;
    for (at, _) in code.match_indices('<') {
        match read_tag(&code[at..], true) {
            Tag::Some(Kind::Open, _) => depth += 1,
            Tag::Some(Kind::Close, _) if depth == 0 => return true,
            Tag::Some(Kind::Close, _) => depth -= 1,
            Tag::Some(Kind::Empty, _) | Tag::None | Tag::Unclear => {}
        }
    }
    false
}

/// The end of the line at the start of `line`, if that closes `fence`.
fn closing_line(line: &str, fence: Fence, at_end: bool) -> Found {
    let marks = line.trim_start_matches(is_indentation);
    let length = run(marks, fence.mark);
    let behind = marks[length..].trim_start_matches([' ', '\t', '\r']);
    let end = line.len() - behind.len();
    if end > SPAN_MAX {
        return Found::No;
    }
    match behind.chars().next() {
        None if length < fence.length && at_end => Found::No,
        None if at_end => Found::At(end),
        // Indentation, or a run that may still grow; a run too short with something behind it does not.
        None if length >= fence.length || marks.len() == length => Found::Unclear,
        Some('\n') if length >= fence.length => Found::At(end + 1),
        _ => Found::No,
    }
}

/// Whether nothing but the end of `fence` follows.
fn ends_behind(after: &str, fence: Fence, at_end: bool) -> Found {
    let line = after.trim_start_matches([' ', '\t', '\r']);
    if after.len() - line.len() > TAG_MAX {
        return Found::No;
    }
    match line.strip_prefix('\n') {
        Some(next) => closing_line(next, fence, at_end),
        None if line.is_empty() => Found::none_yet(at_end),
        None => Found::No,
    }
}

/// What a tag does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Open,
    Close,
    /// It opens and closes at once.
    Empty,
}

/// What stands at a `<`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Some(Kind, usize),
    None,
    Unclear,
}

/// Reads the tag at the start of `text`, which begins with `<`.
fn read_tag(text: &str, at_end: bool) -> Tag {
    let marker = read_channel_marker(text, at_end);
    if marker != Tag::None {
        return marker;
    }
    let early = if at_end || text.len() > TAG_MAX { Tag::None } else { Tag::Unclear };
    let body = text.get(1..).unwrap_or_default();
    let (closes, name_on) = match body.strip_prefix('/') {
        Some(name) => (true, name.trim_start_matches(is_tag_space)),
        None => (false, body),
    };
    let rest = name_on.trim_start_matches(is_name);
    let Some(next) = rest.chars().next() else { return early };
    let name = &name_on[..name_on.len() - rest.len()];
    if !(next == '>' || next == '/' || is_tag_space(next)) || !is_reasoning(name) {
        return Tag::None;
    }
    let start = text.len() - rest.len();
    match rest.find(['<', '>']).map(|at| start + at) {
        Some(end) if end >= TAG_MAX || text[end..].starts_with('<') => Tag::None,
        Some(end) if closes => Tag::Some(Kind::Close, end + 1),
        Some(end) if text[..end].ends_with('/') => Tag::Some(Kind::Empty, end + 1),
        Some(end) => Tag::Some(Kind::Open, end + 1),
        None => early,
    }
}

/// `<|channel>thought` or `<channel|>`.
fn read_channel_marker(text: &str, at_end: bool) -> Tag {
    if text.starts_with(CHANNEL_CLOSE) {
        return Tag::Some(Kind::Close, CHANNEL_CLOSE.len());
    }
    let Some(after) = text.strip_prefix(CHANNEL_OPEN) else {
        let begins = CHANNEL_OPEN.starts_with(text) || CHANNEL_CLOSE.starts_with(text);
        return if begins && !at_end { Tag::Unclear } else { Tag::None };
    };
    let rest = after.trim_start_matches(is_name);
    let length = after.len() - rest.len();
    if length > TAG_MAX {
        Tag::None
    } else if rest.is_empty() && !at_end {
        Tag::Unclear
    } else if is_reasoning(&after[..length]) {
        Tag::Some(Kind::Open, CHANNEL_OPEN.len() + length)
    } else {
        Tag::None
    }
}

fn is_tag_space(c: char) -> bool {
    c.is_ascii_whitespace()
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':')
}

/// Whether `name` is one of [`NAMES`], with or without a prefix that does not end in a letter (`rethink` is a word).
fn is_reasoning(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|known| {
        name.strip_suffix(known).is_some_and(|prefix| !prefix.ends_with(|last: char| last.is_ascii_alphabetic()))
    })
}

#[cfg(test)]
mod tests;
