//! Markdown to styled text. What the parser calls text is taken from it; whatever stands between is taken from the
//! source, unless it is a mark that we know: so nothing is lost that the parser leaves out.

use std::ops::Range;
use std::rc::Rc;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd};
use turnlock_domain::text::{is_blank, utf16_len};

use super::table::Table;
use super::{Fence, Mark, Style, Styled};

/// The longest address of a link: a longer one would leave a part no room for text.
const LONGEST_LINK: usize = 1000;

/// The shortest underline of a heading. A single dash below a line is the start of a list that is still being written.
const SHORTEST_UNDERLINE: usize = 3;

/// Reads `text`. A text of nothing but marks is shown as it is.
pub(crate) fn read(text: &str) -> Styled {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut reader = Reader::new(text);
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        reader.event(event, range);
    }
    reader.gap(text.len());
    if is_blank(&reader.out.text) { Styled::plain(text) } else { reader.out }
}

struct Reader<'a> {
    source: &'a str,
    /// How much of the source is dealt with.
    at: usize,
    out: Styled,
    style: Style,
    /// What is open: the style before it, and how it ends.
    open: Vec<(Style, End)>,
    quotes: usize,
    fences: usize,
    /// The content of the code block that is being read.
    code: Option<String>,
    /// The table that is being read, and what was written before it.
    table: Option<(Table, Styled)>,
}

/// How something ends.
enum End {
    /// As the source says.
    Literal,
    /// With a mark of so many bytes.
    Mark(usize),
    /// With whatever stands behind its last text.
    Rest,
    /// A link or picture, whose label begins there.
    Link(usize),
    Quote,
    Fence,
    Cell,
    Row,
    Table,
}

impl<'a> Reader<'a> {
    fn new(source: &'a str) -> Self {
        Self {
            source,
            at: 0,
            out: Styled::default(),
            style: Style::default(),
            open: Vec::new(),
            quotes: 0,
            fences: 0,
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
            Event::Rule => self.replace(&range, "———"),
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
                self.style.fence = Some(Rc::new(Fence { number: self.fences, language: language(&info) }));
                self.code = Some(String::new());
                End::Fence
            }
            Tag::Table(alignments) => {
                self.indentation(range.start);
                let before = std::mem::take(&mut self.out);
                self.table = Some((Table::new(alignments), before));
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
            End::Literal => {}
            End::Mark(length) => {
                self.gap(range.end.saturating_sub(length));
                self.at = range.end;
            }
            End::Rest => self.at = range.start + whole.trim_end_matches(['\n', '\r']).len(),
            End::Link(label) => self.end_link(label, range),
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
                let cell = std::mem::take(&mut self.out);
                if let Some((table, _)) = &mut self.table {
                    table.cell(&cell.text);
                }
            }
            End::Row => {
                if let Some((table, _)) = &mut self.table {
                    let surplus = if tag == TagEnd::TableRow { self.source.get(self.at..range.end) } else { None };
                    table.end_row(surplus.unwrap_or_default());
                }
                self.at = range.end;
            }
            End::Table => {
                if let Some((table, before)) = self.table.take() {
                    self.out = before;
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
        self.gap(if escaped { range.start - 1 } else { range.start });
        self.out.push(text, &self.style);
        self.at = range.end;
    }

    fn replace(&mut self, range: &Range<usize>, by: &str) {
        self.gap(range.start);
        self.out.push(by, &self.style);
        self.at = range.start + self.source[range.clone()].trim_end().len();
    }

    fn mark(&mut self, range: &Range<usize>, length: usize, mark: Mark) -> End {
        self.gap(range.start);
        self.at = range.start + length;
        self.style = std::mem::take(&mut self.style).with(mark);
        End::Mark(length)
    }

    fn heading(&mut self, range: &Range<usize>) -> End {
        self.gap(range.start);
        let whole = &self.source[range.clone()];
        let unmarked = whole.trim_start().trim_start_matches('#');
        let marked = unmarked.len() < whole.trim_start().len();
        let underline = whole.trim_end().chars().rev().take_while(|c| matches!(c, '=' | '-')).count();
        if !marked && underline < SHORTEST_UNDERLINE {
            return End::Literal;
        }
        if marked {
            self.at = range.end - unmarked.trim_start_matches([' ', '\t']).len();
        }
        self.style = std::mem::take(&mut self.style).with(Mark::Bold);
        End::Rest
    }

    fn link(&mut self, range: &Range<usize>, mark: usize, kind: LinkType, to: &CowStr<'_>) -> End {
        let to = if kind == LinkType::Email { format!("mailto:{to}") } else { to.to_string() };
        // What people know from Slack; no address has that character.
        if let (LinkType::Autolink, Some((to, label))) = (kind, to.split_once('|')) {
            return self.labelled(range, to, label);
        }
        if !may_be_link(&to) {
            return End::Literal;
        }
        self.gap(range.start);
        self.at = range.start + mark;
        // A picture in a link leads where the link leads.
        if self.style.link.is_none() {
            self.style.link = Some(to.into());
        }
        End::Link(self.out.text.len())
    }

    /// `<address|label>`, whose text is one for the parser.
    fn labelled(&mut self, range: &Range<usize>, to: &str, label: &str) -> End {
        if may_be_link(to) && !is_blank(label) {
            self.gap(range.start);
            let mut style = self.style.clone();
            style.link.get_or_insert_with(|| to.into());
            self.out.push(label, &style);
            self.at = range.end;
        }
        End::Literal
    }

    fn end_link(&mut self, label: usize, range: &Range<usize>) {
        let to = self.style.link.clone().unwrap_or_default();
        let shown = self.out.text[label..].to_owned();
        if is_blank(&shown) {
            self.out.push(&to, &self.style);
        } else if self.table.is_some() && shown != *to {
            // A code block has no links.
            self.out.push(&format!(" ({to})"), &self.style);
        }
        self.at = range.end;
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

/// Whether `url` may be a link: one of the web, of mail or of a telephone, in one word, of bearable length.
fn may_be_link(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once(':') else { return false };
    let rest = match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => rest.strip_prefix("//").unwrap_or_default(),
        "mailto" | "tel" => rest,
        _ => return false,
    };
    !rest.is_empty() && !url.contains(|c: char| c.is_whitespace() || c.is_control()) && utf16_len(url) <= LONGEST_LINK
}

/// The language that the line of a fence names.
fn language(info: &str) -> Option<String> {
    let word = info.split(|c: char| c.is_whitespace() || c == ',' || c == '{').next().unwrap_or_default();
    let plain = word.len() <= 32 && word.chars().all(|c| c.is_ascii_alphanumeric() || "+-#._".contains(c));
    (plain && !word.is_empty()).then(|| word.to_owned())
}
