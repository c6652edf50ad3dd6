//! Markdown to styled text. What the parser calls text is taken from it; whatever stands between is taken from the
//! source, unless it is a mark that we know: so nothing is lost that the parser leaves out.

mod brackets;

use std::ops::Range;
use std::rc::Rc;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use turnlock_domain::text::is_blank;

use super::pairs::Stars;
use super::table::Table;
use super::words::Words;
use super::{Fence, Mark, Style, Styled};

/// The shortest underline of a heading. A single dash below a line is the start of a list that is still being written.
const SHORTEST_UNDERLINE: usize = 3;

/// How a rule is shown.
const RULE: &str = "———";

/// Reads `text`; an address that is not one of those that are `taken` is written behind its label. A text of nothing but
/// marks is shown as it is.
pub(crate) fn read(text: &str, taken: &dyn Fn(&str) -> bool) -> Styled {
    // A carriage return alone ends a line for one half of the parser and not for the other.
    let lone = text.contains('\r').then(|| text.replace("\r\n", "\n")).filter(|text| text.contains('\r'));
    let lines = lone.map(|text| text.replace('\r', "\n"));
    let text = lines.as_deref().unwrap_or(text);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut reader = Reader::new(text, taken);
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        reader.event(event, range);
    }
    reader.gap(text.len());
    let read = reader.stars.applied(reader.out);
    if is_blank(&read.text) { Styled::plain(text) } else { read }
}

struct Reader<'a> {
    source: &'a str,
    /// The addresses that become links.
    taken: &'a dyn Fn(&str) -> bool,
    words: Words,
    /// How much of the source is dealt with.
    at: usize,
    out: Styled,
    /// The asterisks in it that may be marks of bold.
    stars: Stars,
    style: Style,
    /// What is open: the style before it, and how it ends.
    open: Vec<(Style, End)>,
    quotes: usize,
    fences: usize,
    /// Whether it is indented code that is being read, which is text.
    indented: bool,
    /// The content of the code block that is being read.
    code: Option<String>,
    /// The table that is being read, and what was written before it.
    table: Option<(Table, Styled, Stars)>,
}

/// How something ends.
enum End {
    /// As the source says.
    Literal,
    /// With a mark of so many bytes.
    Mark(usize),
    /// With two asterisks, which close what this one of [`Stars`] opened.
    Strong(usize),
    /// With whatever stands behind its last text.
    Rest,
    /// A link or picture to an address, whose label begins there.
    Link(Rc<str>, usize),
    /// A paragraph with a rule as its last line.
    Rule,
    Quote,
    Fence,
    Cell,
    Row,
    Table,
}

impl<'a> Reader<'a> {
    fn new(source: &'a str, taken: &'a dyn Fn(&str) -> bool) -> Self {
        Self {
            source,
            taken,
            words: Words::read(source, 0),
            at: 0,
            out: Styled::default(),
            stars: Stars::default(),
            style: Style::default(),
            open: Vec::new(),
            quotes: 0,
            fences: 0,
            indented: false,
            code: None,
            table: None,
        }
    }

    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => {
                let before = self.style.clone();
                let end = self.start(tag, &range);
                self.open.push((before, end));
            }
            Event::End(tag) => {
                if let Some((before, end)) = self.open.pop() {
                    self.end(end, tag, &range);
                    self.style = before;
                }
            }
            Event::Text(text) => self.text(&text, &range),
            Event::Code(code) => {
                self.gap(range.start);
                let style = self.style.clone().with(Mark::Code);
                self.out.push(&code, &style);
                self.at = range.end;
            }
            Event::Rule => self.replace(&range, RULE),
            Event::TaskListMarker(done) => self.replace(&range, if done { "☑" } else { "☐" }),
            Event::HardBreak => {
                self.gap(range.start);
                if self.source[range.start..].starts_with('\\') {
                    self.at = range.start + 1;
                }
            }
            // The line break is in the source. Raw HTML is text, and the rest is not enabled.
            Event::SoftBreak => {}
            Event::Html(text)
            | Event::InlineHtml(text)
            | Event::FootnoteReference(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => {
                self.gap(range.start);
                self.out.push(&text, &self.style);
                self.at = range.end;
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: &Range<usize>) -> End {
        match tag {
            Tag::Strong if self.source[range.start..].starts_with("**") => self.strong(range),
            Tag::Strong => self.mark(range, 2, Mark::Bold),
            Tag::Emphasis => self.mark(range, 1, Mark::Italic),
            // One tilde is how people write "about" and "from - to".
            Tag::Strikethrough if self.source[range.start..].starts_with("~~") => self.mark(range, 2, Mark::Strike),
            Tag::Link { link_type, dest_url, .. } => self.link(range, 1, link_type, &dest_url),
            Tag::Image { link_type, dest_url, .. } => self.link(range, 2, link_type, &dest_url),
            Tag::Heading { .. } => self.heading(range),
            Tag::BlockQuote(_) => {
                self.gap(range.start);
                self.at = range.start + quote_mark(&self.source[range.start..]);
                self.quotes += 1;
                self.style.quote = true;
                End::Quote
            }
            Tag::Item => {
                self.gap(range.start);
                let rest = &self.source[range.start..];
                let bullet = range.start + (rest.len() - rest.trim_start().len());
                self.gap(bullet);
                if self.source[bullet..].starts_with(['-', '*', '+']) {
                    self.out.push("•", &self.style);
                    self.at = bullet + 1;
                }
                End::Literal
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(info)) => {
                self.indentation(range.start);
                self.fences += 1;
                let (language, first_line) = opening(&info);
                self.style.fence = Some(Rc::new(Fence { number: self.fences, language }));
                self.code = Some(first_line);
                End::Fence
            }
            Tag::CodeBlock(CodeBlockKind::Indented) => {
                self.indented = true;
                End::Literal
            }
            Tag::Table(alignments) => {
                self.indentation(range.start);
                let (before, stars) = (std::mem::take(&mut self.out), std::mem::take(&mut self.stars));
                self.table = Some((Table::new(alignments), before, stars));
                End::Table
            }
            Tag::TableHead | Tag::TableRow => End::Row,
            Tag::TableCell => {
                let cell = &self.source[range.clone()];
                self.at = range.start + (cell.len() - cell.trim_start().len());
                self.out = Styled::default();
                End::Cell
            }
            _ => End::Literal,
        }
    }

    fn end(&mut self, end: End, tag: TagEnd, range: &Range<usize>) {
        let whole = &self.source[range.clone()];
        match end {
            End::Literal => self.indented &= tag != TagEnd::CodeBlock,
            End::Mark(length) => {
                self.gap(range.end.saturating_sub(length));
                self.at = range.end;
            }
            End::Strong(opened) => {
                self.gap(range.end.saturating_sub(2));
                self.stars.closed(self.out.text.len(), opened);
                self.gap(range.end);
            }
            End::Rest => self.at = range.start + whole.trim_end_matches(['\n', '\r']).len(),
            End::Link(to, label) => self.end_link(&to, label, range),
            End::Rule => {
                let whole = whole.trim_end();
                let rule = range.start + whole.trim_end_matches('-').len();
                self.replace(&(rule..range.start + whole.len()), RULE);
            }
            End::Quote => {
                // A blank quoted line at its end is no text of the quote; the line break is not even in it.
                self.style.quote = self.quotes > 1;
                self.gap(range.start + whole.trim_end().len());
                self.quotes -= 1;
            }
            End::Fence => {
                let code = self.code.take().unwrap_or_default();
                let code = code.strip_suffix('\n').unwrap_or(&code);
                self.out.push(code, &self.style);
                self.at = range.start + whole.trim_end().len();
            }
            End::Cell => {
                self.gap(range.start + whole.trim_end().len());
                self.at = self.at.max(range.end);
                let cell = std::mem::take(&mut self.stars).applied(std::mem::take(&mut self.out));
                if let Some((table, ..)) = &mut self.table {
                    table.cell(&cell.text);
                }
            }
            End::Row => {
                if let Some((table, ..)) = &mut self.table {
                    let surplus = if tag == TagEnd::TableRow { self.source.get(self.at..range.end) } else { None };
                    table.end_row(surplus.unwrap_or_default());
                }
                self.at = range.end;
            }
            End::Table => {
                if let Some((table, before, stars)) = self.table.take() {
                    (self.out, self.stars) = (before, stars);
                    self.fences += 1;
                    self.style.fence = Some(Rc::new(Fence { number: self.fences, language: None }));
                    self.out.push(&table.written(), &self.style);
                }
                self.at = range.start + whole.trim_end().len();
            }
        }
    }

    fn text(&mut self, text: &str, range: &Range<usize>) {
        if let Some(code) = &mut self.code {
            code.push_str(text);
            return;
        }
        if range.start < self.at {
            return;
        }
        // The backslash before an escaped character is in no event; in indented code there is no escape, and it is text.
        let escaped = self.source[..range.start].ends_with('\\') && self.at < range.start;
        self.gap(if escaped && !self.keeps_backslash(range.start) { range.start - 1 } else { range.start });
        if !self.indented && text == &self.source[range.clone()] {
            let stars = text.match_indices('*').filter(|(at, _)| !(escaped && *at == 0));
            let stars = stars.filter(|(at, _)| !self.words.in_address(range.start + at));
            self.stars.left(stars.map(|(at, _)| self.out.text.len() + at));
        }
        self.out.push(text, &self.style);
        self.at = range.end;
    }

    fn replace(&mut self, range: &Range<usize>, by: &str) {
        self.gap(range.start);
        self.out.push(by, &self.style);
        self.at = range.start + self.source[range.clone()].trim_end().len();
    }

    fn mark(&mut self, range: &Range<usize>, length: usize, mark: Mark) -> End {
        if self.is_in_address(range) {
            return End::Literal;
        }
        self.gap(range.start);
        self.at = range.start + length;
        self.style = std::mem::take(&mut self.style).with(mark);
        End::Mark(length)
    }

    fn strong(&mut self, range: &Range<usize>) -> End {
        if self.is_in_address(range) {
            return End::Literal;
        }
        self.gap(range.start);
        let opened = self.stars.opened(self.out.text.len());
        self.gap(range.start + 2);
        End::Strong(opened)
    }

    /// Whether a mark at an end of `range` stands in an address.
    fn is_in_address(&self, range: &Range<usize>) -> bool {
        self.words.in_address(range.start) || self.words.in_address(range.end.saturating_sub(1))
    }

    fn heading(&mut self, range: &Range<usize>) -> End {
        self.gap(range.start);
        let whole = &self.source[range.clone()];
        let unmarked = whole.trim_start().trim_start_matches('#');
        let marks = whole.trim_start().len() - unmarked.len();
        let marked = (1..=6).contains(&marks) && unmarked.chars().next().is_none_or(char::is_whitespace);
        let underline = whole.trim_end().chars().rev().take_while(|c| matches!(c, '=' | '-')).count();
        if !marked && underline < SHORTEST_UNDERLINE {
            return End::Literal;
        }
        // People write a rule below their lines and mean no heading of several lines.
        if !marked && whole.trim_end().ends_with('-') && whole.trim_end().matches('\n').count() > 1 {
            return End::Rule;
        }
        if marked {
            self.at = range.end - unmarked.trim_start_matches([' ', '\t']).len();
        }
        self.style = std::mem::take(&mut self.style).with(Mark::Bold);
        End::Rest
    }

    /// Takes the source up to `to` as it is, without the marks of quoted lines.
    fn gap(&mut self, to: usize) {
        if self.at >= to || self.code.is_some() {
            return;
        }
        let gap = &self.source[self.at..to];
        let begins_line = self.source[..self.at].ends_with('\n');
        self.at = to;
        for (index, line) in gap.split_inclusive('\n').enumerate() {
            let line = if index > 0 || begins_line { unquoted(line, self.quotes) } else { line };
            // A label is one line: Slack ends a link there.
            if self.style.link.is_some() {
                self.out.push(&line.replace('\n', " "), &self.style);
            } else {
                self.out.push(line, &self.style);
            }
        }
    }

    /// The source before a block, without the block's own indentation.
    fn indentation(&mut self, to: usize) {
        let gap = self.source.get(self.at..to).unwrap_or_default();
        if gap.contains('\n') {
            self.gap(self.at + gap.trim_end_matches([' ', '\t']).len());
        } else {
            self.gap(to);
        }
        self.at = self.at.max(to);
    }
}

/// `line` without the marks of `quotes` quotes.
fn unquoted(line: &str, quotes: usize) -> &str {
    (0..quotes).fold(line, |line, _| &line[quote_mark(line)..])
}

/// The length of the mark of a quote at the start of `line`, with its indentation and the space behind it.
fn quote_mark(line: &str) -> usize {
    let bare = line.trim_start_matches([' ', '\t']);
    bare.strip_prefix('>').map_or(0, |rest| line.len() - rest.strip_prefix(' ').unwrap_or(rest).len())
}

/// What the line of a fence names: a language, with attributes perhaps; or, where it says more than that, nothing, and it
/// is the first line of the code.
fn opening(info: &str) -> (Option<String>, String) {
    let language = language(info);
    let behind = info.trim_start().split_once(char::is_whitespace).map_or("", |(_, behind)| behind);
    if are_attributes(info) || (language.is_some() && are_attributes(behind)) {
        (language, String::new())
    } else {
        (None, format!("{}\n", info.trim()))
    }
}

/// Whether this is nothing but `{…}` and `name="…"`. `name=value` is as likely a line of code.
fn are_attributes(text: &str) -> bool {
    let mut rest = text.trim();
    while !rest.is_empty() {
        let quoted = || {
            let (name, value) = rest.split_once('=')?;
            let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
            let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
            value[1..].split_once(quote).filter(|_| is_name && !name.is_empty())
        };
        let braced = || rest.strip_prefix('{')?.split_once('}');
        let Some((_, behind)) = braced().or_else(quoted) else { return false };
        rest = behind.trim_start();
    }
    true
}

/// The language at the start of what the line of a fence says.
fn language(info: &str) -> Option<String> {
    let word = info.split(|c: char| c.is_whitespace() || c == ',' || c == '{').next().unwrap_or_default();
    let plain = word.len() <= 32 && word.chars().all(|c| c.is_ascii_alphanumeric() || "+-#._".contains(c));
    (plain && !word.is_empty()).then(|| word.to_owned())
}
