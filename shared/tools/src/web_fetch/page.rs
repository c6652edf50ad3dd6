//! The readable text of a page. HTML is taken apart by a tokenizer that follows the standard; no tree is built of it, so
//! the time is in proportion to the page, whatever its author had in mind. What is never shown (scripts, styles,
//! templates) is left out; headings, lists, links and tables stay recognisable.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use html5gum::emitters::default::DefaultEmitter;
use html5gum::{HtmlString, StartTag, Token, Tokenizer};
use reqwest::Url;
use turnlock_domain::text::{cut, is_blank};

/// The most bytes of text that are made of a page; addresses of links can be longer than the page was.
const TEXT_BYTES: usize = 1024 * 1024;
/// The longest address of a link that is worth its room.
const LINK_MAX: usize = 300;
/// The longest title, in characters: what is longer fills the place of the page.
const TITLE_MAX: usize = 300;
/// As much of a title as is looked at, in bytes.
const TITLE_BYTES: usize = 16 * 1024;
/// Where a page may name its encoding (HTML Standard, "prescan a byte stream").
const PRESCAN: usize = 1024;

/// `body` as text, in the encoding that it or its `charset` names. Where neither does it is UTF-8, or else what browsers
/// take it for.
pub(super) fn decoded(body: &[u8], charset: Option<&str>, is_html: bool, is_cut: bool) -> String {
    let named = charset.and_then(|label| Encoding::for_label(label.as_bytes()));
    let named = named.or_else(|| if is_html { declared(&body[..body.len().min(PRESCAN)]) } else { None });
    let (text, _, is_broken) = named.unwrap_or(UTF_8).decode(body);
    // Where a body was cut, its last character may be half a one, which does not make it another encoding.
    let ends_early = || is_cut && std::str::from_utf8(body).is_err_and(|error| error.error_len().is_none());
    let is_other = named.is_none() && is_broken && !ends_early();
    if is_other { WINDOWS_1252.decode(body).0.into_owned() } else { text.into_owned() }
}

/// The encoding that a page itself names.
fn declared(start: &[u8]) -> Option<&'static Encoding> {
    let metas = Tokenizer::new(start).flatten().filter_map(|token| match token {
        Token::StartTag(tag) if tag.name.as_slice() == b"meta" => Some(tag),
        _ => None,
    });
    let mut labels = metas.filter_map(|tag| {
        if let Some(charset) = attribute(&tag, "charset") {
            return Some(charset);
        }
        let content = attribute(&tag, "content")?;
        let at = content.to_ascii_lowercase().find("charset=")?;
        Some(content[at + "charset=".len()..].trim_matches(['"', '\'', ' ']).to_owned())
    });
    // UTF-16 cannot be what its own name was read in.
    let encoding = labels.find_map(|label| Encoding::for_label(label.as_bytes()))?;
    Some(if encoding.is_ascii_compatible() { encoding } else { UTF_8 })
}

fn attribute(tag: &StartTag<()>, name: &str) -> Option<String> {
    let value = tag.attributes.get(&HtmlString(name.as_bytes().to_vec()))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// A page as text.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Page {
    /// Its title, if it has one.
    pub(super) title: String,
    /// What it says.
    pub(super) text: String,
    /// Whether there was more than [`TEXT_BYTES`].
    pub(super) is_cut: bool,
}

/// The page that `html` from `url` is.
pub(super) fn read(html: &str, url: &Url) -> Page {
    let mut emitter = DefaultEmitter::default();
    // Scripts, styles and titles end where a browser lets them end.
    emitter.naively_switch_states(true);
    let mut reader =
        Reader { url, page: Page::default(), hidden: None, in_title: false, pre: 0, gap: Gap::None, link: None };
    for token in Tokenizer::new_with_emitter(html, emitter).flatten() {
        if reader.page.text.len() > TEXT_BYTES {
            reader.page.is_cut = true;
            break;
        }
        match token {
            Token::StartTag(tag) => reader.start(&tag),
            Token::EndTag(tag) => reader.end(&tag.name),
            Token::String(text) => reader.text(&String::from_utf8_lossy(&text)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    let title = reader.page.title.split_whitespace().collect::<Vec<_>>().join(" ");
    reader.page.title = cut(&title, TITLE_MAX).to_owned();
    reader.page
}

/// What stands between what was written and what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Line,
    Paragraph,
}

struct Reader<'u> {
    url: &'u Url,
    page: Page,
    /// The element that is not shown, and how many of its name are open.
    hidden: Option<(Vec<u8>, usize)>,
    in_title: bool,
    /// How many elements are open whose line breaks are kept.
    pre: usize,
    gap: Gap,
    /// Where the link leads that is open, and where its text begins.
    link: Option<(String, usize)>,
}

impl Reader<'_> {
    fn start(&mut self, tag: &StartTag<()>) {
        let name = tag.name.as_slice();
        if let Some((hidden, open)) = &mut self.hidden {
            *open += usize::from(hidden == name && !tag.self_closing);
            return;
        }
        self.gap = self.gap.max(gap(name));
        match name {
            // Only foreign elements can be closed by their own slash.
            b"svg" if tag.self_closing => {}
            b"script" | b"style" | b"template" | b"svg" | b"iframe" | b"noembed" | b"noframes" | b"object" => {
                self.hidden = Some((name.to_vec(), 1));
            }
            b"title" => self.in_title = self.page.title.is_empty(),
            b"pre" | b"textarea" => self.pre += 1,
            b"h1" => self.write("# "),
            b"h2" => self.write("## "),
            b"h3" | b"h4" | b"h5" | b"h6" => self.write("### "),
            b"li" => self.write("- "),
            b"td" | b"th" if self.gap < Gap::Line && !self.page.text.is_empty() => self.write("| "),
            b"img" => {
                if let Some(alternative) = attribute(tag, "alt").filter(|alternative| !is_blank(alternative)) {
                    self.text(&format!(" [image: {alternative}] "));
                }
            }
            b"a" => {
                self.end_link();
                self.link = self.target(tag).map(|target| (target, self.page.text.len()));
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &[u8]) {
        if let Some((hidden, open)) = &mut self.hidden {
            *open -= usize::from(hidden == name);
            if *open == 0 {
                self.hidden = None;
            }
            return;
        }
        match name {
            b"title" => self.in_title = false,
            b"pre" | b"textarea" => self.pre = self.pre.saturating_sub(1),
            b"a" => self.end_link(),
            _ => {}
        }
        self.gap = self.gap.max(gap(name));
    }

    fn text(&mut self, text: &str) {
        if self.hidden.is_some() {
            return;
        }
        if self.in_title {
            let room = TITLE_BYTES.saturating_sub(self.page.title.len());
            self.page.title.push_str(&text[..text.floor_char_boundary(room)]);
            return;
        }
        if self.pre > 0 {
            return self.write(text);
        }
        if text.starts_with(char::is_whitespace) {
            self.gap = self.gap.max(Gap::Space);
        }
        for (index, word) in text.split_whitespace().enumerate() {
            if index > 0 {
                self.gap = Gap::Space;
            }
            self.write(word);
        }
        if text.ends_with(char::is_whitespace) {
            self.gap = self.gap.max(Gap::Space);
        }
    }

    /// Writes what stands in front, and `text`.
    fn write(&mut self, text: &str) {
        let page = &mut self.page.text;
        if !page.is_empty() {
            match self.gap {
                Gap::Space if page.ends_with([' ', '\n']) => {}
                Gap::None => {}
                Gap::Space => page.push(' '),
                Gap::Line => page.push('\n'),
                Gap::Paragraph => page.push_str("\n\n"),
            }
        }
        self.gap = Gap::None;
        page.push_str(text);
    }

    /// Where a link leads, if a reader could follow it to another page.
    fn target(&self, tag: &StartTag<()>) -> Option<String> {
        let href = attribute(tag, "href")?;
        // What is longer may still lead to a short address; but not without a detour, and it is work.
        let href = Some(href.trim()).filter(|href| href.len() <= LINK_MAX)?;
        let target = self.url.join(href).ok()?;
        let is_elsewhere = matches!(target.scheme(), "http" | "https") && target.fragment().is_none();
        (is_elsewhere && target.as_str().len() <= LINK_MAX).then(|| target.into())
    }

    fn end_link(&mut self) {
        if let Some((target, from)) = self.link.take()
            && self.page.text.get(from..).is_some_and(|text| !is_blank(text))
        {
            self.page.text.push_str(&format!(" <{target}>"));
        }
    }
}

/// What an element of this name puts before and behind itself.
fn gap(name: &[u8]) -> Gap {
    match name {
        b"p" | b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" | b"ul" | b"ol" | b"dl" | b"table" | b"blockquote"
        | b"pre" | b"article" | b"section" | b"main" | b"header" | b"footer" | b"nav" | b"aside" | b"figure"
        | b"form" => Gap::Paragraph,
        b"br" | b"hr" | b"div" | b"li" | b"tr" | b"dt" | b"dd" | b"option" | b"figcaption" | b"summary"
        | b"caption" | b"address" | b"fieldset" | b"body" | b"title" => Gap::Line,
        b"td" | b"th" => Gap::Space,
        _ => Gap::None,
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;

    fn page(html: &str) -> Page {
        read(html, &"https://example.org/docs/page?q=1".parse().expect("an address"))
    }

    #[test]
    fn a_page_is_read_as_people_read_it() {
        let page = page(
            r##"<!DOCTYPE html><html><head><title>Tides
            &amp; moons</title><style>p{color:red}</style><script>if (a < b) alert("</p>")</script></head>
            <body><nav><a href="/">Home</a> <a href="../about">About</a> <a href="#top">Top</a></nav>
            <h1>Tides</h1><p>They  come <b>twice</b> a day,<br>said 日本語 &mdash; caf&eacute;.
            <ul><li>high<li>low</ul>
            <table><tr><th>port</th><th>m</th></tr><tr><td>Brest<td>6.1</table>
            <pre>a
              b</pre><svg><text>hidden</text></svg><template><p>hidden</template><!-- hidden -->
            <img src=x alt="a moon"><a href="javascript:alert(1)">No link</a></body></html>"##,
        );
        assert_eq!(page.title, "Tides & moons");
        assert_snapshot!(page.text, @r"
        Home <https://example.org/> About <https://example.org/about> Top

        # Tides

        They come twice a day,
        said 日本語 — café.

        - high
        - low

        port | m
        Brest | 6.1

        a
                      b

        [image: a moon] No link
        ");
    }

    #[test]
    fn hostile_pages_end_and_are_bounded() {
        for piece in ["<div>", "<a href=x>", "<a href=x>y", "</b>", "<", "<p", "&", "<svg>", "<td>", "<!--", "<b a=1 "]
        {
            let html = piece.repeat(300_000 / piece.len());
            let page = page(&html);
            assert!(page.text.len() <= TEXT_BYTES + 2 * LINK_MAX, "{piece}: {}", page.text.len());
        }
        let attributes: String = (0..20_000).map(|n| format!(" a{n}=1")).collect();
        assert_eq!(page(&format!("<p{attributes}>text")).text, "text");
        assert!(page(&"<a href=x>y</a>".repeat(100_000)).is_cut);
        let titled = page(&format!("<title>{}</title>text", "日本 ".repeat(700_000)));
        assert_eq!((titled.title, titled.text), (["日本"; 100].join(" ") + " ", "text".to_owned()));
    }

    #[test]
    fn text_comes_in_the_encoding_that_is_named() {
        let table: [(&[u8], Option<&str>, &str); 6] = [
            ("日本".as_bytes(), None, "日本"),
            (b"\x93\xfa\x96\x7b", Some("Shift_JIS"), "日本"),
            (b"<meta charset=\"euc-kr\">\xc7\xd1", None, "<meta charset=\"euc-kr\">한"),
            (
                b"<meta content='text/html; charset=windows-1251'>\xc4\xe0",
                None,
                "<meta content='text/html; charset=windows-1251'>Да",
            ),
            (b"caf\xe9", None, "café"),
            (b"\xef\xbb\xbfa", Some("iso-8859-1"), "a"),
        ];
        for (body, charset, text) in table {
            assert_eq!(decoded(body, charset, true, false), text);
        }
        assert_eq!(decoded(b"caf\xc3\xa9 caf\xc3", None, true, true), "café caf\u{fffd}", "it was cut there");
        assert_eq!(
            decoded(b"<meta charset=euc-kr>\xc3\xa9", None, false, false),
            "<meta charset=euc-kr>é",
            "no page, no meta"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn no_page_is_too_strange(html in "(<[/!]?[a-z0-9]{0,6}[ /=a-z\"']{0,6}>?|&[#a-z0-9]{0,6};?|[\\PC\n]{0,6}){0,30}", cut in any::<usize>()) {
            let whole = html.as_bytes();
            let body = &whole[..cut % (whole.len() + 1)];
            let page = page(&decoded(body, None, true, true));
            prop_assert!(page.text.len() <= 20 * (body.len() + 20) * 4);
        }
    }
}
