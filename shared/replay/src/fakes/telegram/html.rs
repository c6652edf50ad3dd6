//! Telegram's HTML as its server reads it (tdlib, `MessageEntity.cpp`), with its very error messages: a message that
//! passes here is shown with its tags applied, one that does not is refused.
//!
//! Offsets of entities are in UTF-16 units, those of errors in bytes.

use serde_json::{Value, json};

/// The tags that there are; any other one is an error.
const TAGS: [&str; 16] = [
    "a",
    "b",
    "strong",
    "i",
    "em",
    "s",
    "strike",
    "del",
    "u",
    "ins",
    "tg-spoiler",
    "tg-emoji",
    "span",
    "pre",
    "code",
    "blockquote",
];

/// A text without its tags, and what they said.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Parsed {
    pub(super) text: String,
    pub(super) entities: Vec<Value>,
}

/// Reads `html`; the error is what follows `Bad Request: can't parse entities: `.
pub(super) fn parse(html: &str) -> Result<Parsed, String> {
    let mut reader =
        Reader { bytes: html.as_bytes(), html, at: 0, utf16: 0, open: Vec::new(), parsed: Parsed::default() };
    while reader.at < reader.bytes.len() {
        match reader.peek() {
            b'&' => reader.reference(),
            b'<' if reader.bytes.get(reader.at + 1) == Some(&b'/') => reader.end_tag()?,
            b'<' => reader.start_tag()?,
            _ => reader.character(),
        }
    }
    match reader.open.pop() {
        Some(tag) => Err(format!("Can't find end tag corresponding to start tag \"{}\"", tag.name)),
        None => Ok(reader.parsed),
    }
}

struct OpenTag {
    name: String,
    argument: String,
    offset: usize,
}

struct Reader<'a> {
    html: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// The length of the text so far.
    utf16: usize,
    open: Vec<OpenTag>,
    parsed: Parsed,
}

impl Reader<'_> {
    /// The current byte; zero at the end, as in the original.
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn push(&mut self, character: char) {
        self.utf16 += character.len_utf16();
        self.parsed.text.push(character);
    }

    fn character(&mut self) {
        if let Some(character) = self.html[self.at..].chars().next() {
            self.at += character.len_utf8();
            self.push(character);
        }
    }

    fn reference(&mut self) {
        match decode_reference(&self.html[self.at..]) {
            Some((character, length)) => {
                self.at += length;
                self.push(character);
            }
            None => self.character(),
        }
    }

    fn skip(&mut self, accept: impl Fn(u8) -> bool) {
        while self.at < self.bytes.len() && accept(self.peek()) {
            self.at += 1;
        }
    }

    fn skip_spaces(&mut self) {
        self.skip(is_space);
    }

    fn start_tag(&mut self) -> Result<(), String> {
        let begin = self.at;
        self.at += 1;
        self.skip(|byte| !is_space(byte) && byte != b'>');
        if self.at >= self.bytes.len() {
            return Err(format!("Unclosed start tag at byte offset {begin}"));
        }
        let name = self.html[begin + 1..self.at].to_ascii_lowercase();
        if !TAGS.contains(&name.as_str()) {
            return Err(format!("Unsupported start tag \"{name}\" at byte offset {begin}"));
        }
        let mut argument = String::new();
        loop {
            self.skip_spaces();
            if self.peek() == b'>' {
                break;
            }
            self.attribute(&name, begin, &mut argument)?;
        }
        self.at += 1;
        if name == "span" && argument != "spoiler" {
            return Err(format!("Tag \"span\" must have class \"tg-spoiler\" at byte offset {begin}"));
        }
        self.open.push(OpenTag { name, argument, offset: self.utf16 });
        Ok(())
    }

    fn attribute(&mut self, tag: &str, begin: usize, argument: &mut String) -> Result<(), String> {
        let name_begin = self.at;
        self.skip(|byte| !is_space(byte) && byte != b'=' && byte != b'>');
        let name = self.html[name_begin..self.at].to_ascii_lowercase();
        if name.is_empty() {
            return Err(format!("Empty attribute name in the tag \"{tag}\" at byte offset {begin}"));
        }
        self.skip_spaces();
        if tag == "blockquote" && name == "expandable" && self.peek() != b'=' {
            return Ok(());
        }
        if self.peek() != b'=' {
            return Err(format!(
                "Expected equal sign in declaration of an attribute of the tag \"{tag}\" at byte offset {begin}"
            ));
        }
        self.at += 1;
        self.skip_spaces();
        if self.at >= self.bytes.len() {
            return Err(format!("Unclosed start tag \"{tag}\" at byte offset {begin}"));
        }
        let value = self.attribute_value()?;
        if self.at >= self.bytes.len() {
            return Err(format!("Unclosed start tag at byte offset {begin}"));
        }
        let relevant = match (tag, name.as_str()) {
            ("a", "href") | ("tg-emoji", "emoji-id") => Some(value.as_str()),
            ("code", "class") => value.strip_prefix("language-"),
            ("span", "class") => value.strip_prefix("tg-"),
            _ => None,
        };
        if let Some(relevant) = relevant {
            relevant.clone_into(argument);
        }
        Ok(())
    }

    fn attribute_value(&mut self) -> Result<String, String> {
        let quote = self.peek();
        if quote != b'"' && quote != b'\'' {
            let begin = self.at;
            self.skip(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-');
            if self.at < self.bytes.len() && !is_space(self.peek()) && self.peek() != b'>' {
                return Err(format!("Unexpected end of name token at byte offset {begin}"));
            }
            return Ok(self.html[begin..self.at].to_ascii_lowercase());
        }
        self.at += 1;
        let mut value = String::new();
        while self.at < self.bytes.len() && self.peek() != quote {
            let rest = &self.html[self.at..];
            let (character, length) = decode_reference(rest).or_else(|| first_character(rest)).unwrap_or(('\0', 1));
            self.at += length;
            value.push(character);
        }
        if self.peek() == quote {
            self.at += 1;
        }
        Ok(value)
    }

    fn end_tag(&mut self) -> Result<(), String> {
        let begin = self.at;
        let Some(tag) = self.open.pop() else {
            return Err(format!("Unexpected end tag at byte offset {begin}"));
        };
        self.at += 2;
        self.skip(|byte| !is_space(byte) && byte != b'>');
        let name = self.html[begin + 2..self.at].to_ascii_lowercase();
        self.skip_spaces();
        if self.peek() != b'>' {
            return Err(format!("Unclosed end tag at byte offset {begin}"));
        }
        self.at += 1;
        if !name.is_empty() && name != tag.name {
            return Err(format!(
                "Unmatched end tag at byte offset {begin}, expected \"</{}>\", found \"</{name}>\"",
                tag.name
            ));
        }
        // A tag around nothing formats nothing.
        if self.utf16 > tag.offset && (tag.name != "a" || is_link(&tag.argument)) {
            self.parsed.entities.push(entity(&tag, self.utf16 - tag.offset));
        }
        Ok(())
    }
}

/// Whether the server makes a link of `url`; it drops any other one without a word and shows the text alone (tdlib,
/// `LinkManager::check_link_impl`: a host needs a dot, unless it is IPv6; `parse_url`: no scheme but the web's, a port in
/// digits). It takes what stands before an `@` for a user, so `mailto:` would lead to a web site: here that is none.
fn is_link(url: &str) -> bool {
    let lower = url.to_ascii_lowercase();
    if ["tg:", "ton:", "tonsite:"].iter().any(|scheme| lower.starts_with(scheme)) {
        return true;
    }
    let rest = match lower.split_once("://") {
        Some(("http" | "https", rest)) => rest,
        Some(_) => return false,
        None => lower.as_str(),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.starts_with('[') {
        return authority.contains(']');
    }
    let (host, port) = authority.split_once(':').unwrap_or((authority, "1"));
    host.contains('.') && !authority.contains('@') && port.parse::<u16>().is_ok_and(|port| port > 0)
}

fn entity(tag: &OpenTag, length: usize) -> Value {
    let kind = match tag.name.as_str() {
        "b" | "strong" => "bold",
        "i" | "em" => "italic",
        "s" | "strike" | "del" => "strikethrough",
        "u" | "ins" => "underline",
        "a" => "text_link",
        "tg-emoji" => "custom_emoji",
        "pre" => "pre",
        "code" => "code",
        "blockquote" => "blockquote",
        _ => "spoiler",
    };
    let mut entity = json!({ "type": kind, "offset": tag.offset, "length": length });
    let argument = match kind {
        "text_link" => "url",
        "custom_emoji" => "custom_emoji_id",
        "code" => "language",
        _ => return entity,
    };
    if !tag.argument.is_empty() {
        entity[argument] = json!(tag.argument);
    }
    entity
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0)
}

fn first_character(text: &str) -> Option<(char, usize)> {
    text.chars().next().map(|character| (character, character.len_utf8()))
}

/// The character that a reference at the start of `text` stands for, and its length; anything else is plain text.
fn decode_reference(text: &str) -> Option<(char, usize)> {
    let rest = text.strip_prefix('&')?;
    let (character, length) = match rest.strip_prefix('#') {
        Some(number) => {
            let (digits, radix, prefix) = match number.strip_prefix('x') {
                Some(digits) => (digits, 16, 3),
                None => (number, 10, 2),
            };
            let length = digits.chars().take_while(|character| character.is_digit(radix)).count();
            let code = u32::from_str_radix(digits.get(..length)?, radix).ok()?;
            let end = prefix + length;
            (char::from_u32(code).filter(|_| code != 0 && code < 0x10_ffff && end < 10)?, end)
        }
        None => {
            let length = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
            let character = match &rest[..length] {
                "lt" => '<',
                "gt" => '>',
                "amp" => '&',
                "quot" => '"',
                _ => return None,
            };
            (character, length + 1)
        }
    };
    // The semicolon may be missing.
    let length = if text.as_bytes().get(length) == Some(&b';') { length + 1 } else { length };
    Some((character, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_and_references_are_applied() {
        let table = [
            ("plain", "plain", json!([])),
            ("a &lt;b&gt; &amp;amp; &quot;c&quot; &copy; & d", "a <b> &amp; \"c\" &copy; & d", json!([])),
            ("&#128512;&#x1F600;&lt", "😀😀<", json!([])),
            (
                "😀<b>x<i>y</i></b>",
                "😀xy",
                json!([
                    { "type": "italic", "offset": 3, "length": 1 },
                    { "type": "bold", "offset": 2, "length": 2 },
                ]),
            ),
            (
                "<A HREF='https://e.example/?a=1&amp;b=2'>l</a>",
                "l",
                json!([
                    { "type": "text_link", "offset": 0, "length": 1, "url": "https://e.example/?a=1&b=2" },
                ]),
            ),
            (
                "<pre><code class=\"language-rust\">fn</code></pre>",
                "fn",
                json!([
                    { "type": "code", "offset": 0, "length": 2, "language": "rust" },
                    { "type": "pre", "offset": 0, "length": 2 },
                ]),
            ),
            (
                "<span class=\"tg-spoiler\">s</span><b></>",
                "s",
                json!([{ "type": "spoiler", "offset": 0, "length": 1 }]),
            ),
            ("<blockquote expandable>q</blockquote>", "q", json!([{ "type": "blockquote", "offset": 0, "length": 1 }])),
        ];
        for (html, text, entities) in table {
            let parsed = parse(html).unwrap();
            assert_eq!((parsed.text.as_str(), &json!(parsed.entities)), (text, &entities), "{html}");
        }
    }

    #[test]
    fn links_to_nowhere_are_dropped() {
        for url in ["https://e.example/a", "http://127.0.0.1:3000", "http://[::1]/", "e.example", "tg://user?id=1"] {
            assert_eq!(parse(&format!("<a href=\"{url}\">l</a>")).unwrap().entities.len(), 1, "{url}");
        }
        for url in
            ["http://localhost:3000", "http://db:5432/x.y", "ftp://e.example", "mailto:a@b.example", "tel:+49", ""]
        {
            let parsed = parse(&format!("<a href=\"{url}\">l</a>")).unwrap();
            assert_eq!((parsed.text.as_str(), parsed.entities.len()), ("l", 0), "{url}");
        }
    }

    #[test]
    fn errors_are_telegrams() {
        let table = [
            ("Call greet(<name>)", "Unsupported start tag \"name\" at byte offset 11"),
            ("for i < len(s)", "Unsupported start tag \"\" at byte offset 6"),
            ("ü<b", "Unclosed start tag at byte offset 2"),
            ("<b>x", "Can't find end tag corresponding to start tag \"b\""),
            ("x</b>", "Unexpected end tag at byte offset 1"),
            ("<b>x</i>", "Unmatched end tag at byte offset 4, expected \"</b>\", found \"</i>\""),
            ("<b>x</b", "Unclosed end tag at byte offset 4"),
            ("<span>x</span>", "Tag \"span\" must have class \"tg-spoiler\" at byte offset 0"),
            ("<a href>x</a>", "Expected equal sign in declaration of an attribute of the tag \"a\" at byte offset 0"),
            ("<a =x>", "Empty attribute name in the tag \"a\" at byte offset 0"),
            ("<a href=", "Unclosed start tag \"a\" at byte offset 0"),
            ("<a href=\"x", "Unclosed start tag at byte offset 0"),
            ("<a href=x_y>", "Unexpected end of name token at byte offset 8"),
        ];
        for (html, error) in table {
            assert_eq!(parse(html).unwrap_err(), error, "{html}");
        }
    }
}
