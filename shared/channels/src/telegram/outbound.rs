//! An outbound event as Telegram messages, in the Bot API's HTML ("Formatting options"): `&`, `<` and `>` are escaped, in
//! attributes `"` too, and the tags are ours alone.

use turnlock_domain::event::{OutboundEvent, TAP};
use turnlock_domain::text::utf16_len;

use super::client::LONGEST_ALERT;
use crate::markdown::{Fence, Mark, Markup, Style, Styled};
use crate::outbound::{self, Part};

/// The longest text of a message (Bot API, `sendMessage`). Whether the server counts UTF-16 units or characters is
/// disputed; units are safe under both readings. It counts without the tags; we count with them, which is safe too.
pub const MAX_UNITS: usize = 4096;

/// The texts of the messages that show `event`.
#[must_use]
pub fn render(event: &OutboundEvent, limits: &[usize]) -> Vec<Part> {
    if event.metadata.contains_key(TAP) {
        // One press has one answer, a short one.
        return outbound::parts(event, &Html, &[LONGEST_ALERT], MAX_UNITS).into_iter().take(1).collect();
    }
    outbound::parts(event, &Html, limits, MAX_UNITS)
}

/// Telegram's HTML.
struct Html;

impl Markup for Html {
    fn length_of(&self, c: char, _: &Style) -> usize {
        escape(c).map_or(c.len_utf16(), str::len)
    }

    fn length_between(&self, from: &Style, to: &Style) -> usize {
        let (closing, opening) = turn(from, to);
        closing.iter().flatten().map(|tag| end(tag).len()).sum::<usize>()
            + opening.iter().flatten().map(start_length).sum::<usize>()
    }

    fn takes(&self, to: &str) -> bool {
        takes_address(to)
    }

    fn write(&self, styled: &Styled) -> String {
        let mut html = String::with_capacity(styled.text.len());
        let none = Style::default();
        let mut before = &none;
        for (stretch, style) in styled.runs(0..styled.text.len()) {
            push_turn(&mut html, before, style);
            push_escaped(&mut html, &styled.text[stretch]);
            before = style;
        }
        push_turn(&mut html, before, &none);
        html
    }
}

/// Whether the server makes a link of `to`; of any other it shows the label alone and says nothing (tdlib,
/// `LinkManager::check_link_impl` and `parse_url`). It takes the web's addresses whose host has a dot or is IPv6; what it
/// makes of a user before the host is no address that anybody meant.
fn takes_address(to: &str) -> bool {
    let Some((scheme, rest)) = to.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (host, port, is_host) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address, port, address.contains(':')),
        None => {
            let end = authority.find(':').unwrap_or(authority.len());
            (&authority[..end], &authority[end..], authority[..end].trim_matches('.').contains('.'))
        }
    };
    let is_port = port.is_empty()
        || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok_and(|number| number > 0));
    let is_plain = host.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:".contains(c) || !c.is_ascii());
    ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web)) && is_host && is_port && is_plain
}

/// What a style is made of, the outermost first. A quote cannot stand in anything, nothing can stand in code.
#[derive(PartialEq)]
enum Tag<'a> {
    Quote,
    Link(&'a str),
    Bold,
    Italic,
    Strike,
    Code,
    Fence(&'a Fence),
}

type Tags<'a> = [Option<Tag<'a>>; 7];

fn tags(style: &Style) -> Tags<'_> {
    // No other mark may be on code.
    let mark = |mark: Mark, tag: Tag<'static>| (style.has(mark) && !style.has(Mark::Code)).then_some(tag);
    [
        style.quote.then_some(Tag::Quote),
        style.link.as_deref().map(Tag::Link),
        mark(Mark::Bold, Tag::Bold),
        mark(Mark::Italic, Tag::Italic),
        mark(Mark::Strike, Tag::Strike),
        style.has(Mark::Code).then_some(Tag::Code),
        style.fence.as_deref().map(Tag::Fence),
    ]
}

/// What ends between two styles, and what begins: all from the first difference on.
fn turn<'a>(from: &'a Style, to: &'a Style) -> (Tags<'a>, Tags<'a>) {
    let (mut closing, mut opening) = (tags(from), tags(to));
    for (closing, opening) in closing.iter_mut().zip(&mut opening) {
        if closing != opening {
            break;
        }
        (*closing, *opening) = (None, None);
    }
    (closing, opening)
}

fn push_turn(html: &mut String, from: &Style, to: &Style) {
    let (closing, opening) = turn(from, to);
    html.extend(closing.iter().rev().flatten().map(end));
    for tag in opening.iter().flatten() {
        push_start(html, tag);
    }
}

fn end(tag: &Tag<'_>) -> &'static str {
    match tag {
        Tag::Quote => "</blockquote>",
        Tag::Link(_) => "</a>",
        Tag::Bold => "</b>",
        Tag::Italic => "</i>",
        Tag::Strike => "</s>",
        Tag::Code => "</code>",
        Tag::Fence(Fence { language: Some(_), .. }) => "</code></pre>",
        Tag::Fence(_) => "</pre>",
    }
}

fn push_start(html: &mut String, tag: &Tag<'_>) {
    match tag {
        Tag::Quote => html.push_str("<blockquote>"),
        Tag::Link(to) => push_attribute(html, "<a href", to),
        Tag::Bold => html.push_str("<b>"),
        Tag::Italic => html.push_str("<i>"),
        Tag::Strike => html.push_str("<s>"),
        Tag::Code => html.push_str("<code>"),
        Tag::Fence(Fence { language: Some(language), .. }) => {
            push_attribute(html, "<pre><code class", &format!("language-{language}"));
        }
        Tag::Fence(_) => html.push_str("<pre>"),
    }
}

fn start_length(tag: &Tag<'_>) -> usize {
    let mut html = String::new();
    push_start(&mut html, tag);
    utf16_len(&html)
}

fn push_escaped(html: &mut String, text: &str) {
    for c in text.chars() {
        match escape(c) {
            Some(escaped) => html.push_str(escaped),
            None => html.push(c),
        }
    }
}

fn escape(c: char) -> Option<&'static str> {
    Some(match c {
        '&' => "&amp;",
        '<' => "&lt;",
        '>' => "&gt;",
        _ => return None,
    })
}

fn push_attribute(html: &mut String, name: &str, value: &str) {
    html.push_str(name);
    html.push_str("=\"");
    for (index, unquoted) in value.split('"').enumerate() {
        html.push_str(if index > 0 { "&quot;" } else { "" });
        push_escaped(html, unquoted);
    }
    html.push_str("\">");
}

#[cfg(test)]
mod tests;
