//! What Telegram gets for what a model writes.

use proptest::prelude::*;
use turnlock_domain::text::is_blank;

use super::*;
use crate::markdown::samples::{LONG, any_markdown, assert_linear, event, letters};

fn parts(text: &str) -> Vec<Part> {
    render(&event(text), &[])
}

fn html(text: &str) -> Vec<String> {
    parts(text).into_iter().map(|part| part.text).collect()
}

/// What a reader sees of `html`, if it is what the server takes: known tags, each closed, none left.
fn read(html: &str) -> Result<String, String> {
    let mut open: Vec<&str> = Vec::new();
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        let (tag, tail) = after.split_once('>').ok_or("an unclosed tag")?;
        rest = tail;
        if let Some(name) = tag.strip_prefix('/') {
            (open.pop() == Some(name)).then_some(()).ok_or(format!("</{name}> closes nothing"))?;
        } else {
            let (name, attribute) = tag.split_once(' ').unwrap_or((tag, ""));
            let known = ["b", "i", "s", "code", "pre", "blockquote", "a"].contains(&name);
            let quoted = attribute.is_empty() || attribute.matches('"').count() == 2 && attribute.ends_with('"');
            (known && quoted).then_some(()).ok_or(format!("the tag {tag}"))?;
            (name != "blockquote" || open.is_empty()).then_some(()).ok_or("a quote in something")?;
            open.push(name);
        }
    }
    text.push_str(rest);
    open.is_empty().then_some(()).ok_or(format!("{open:?} open"))?;
    for (name, c) in [("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")] {
        text = text.replace(name, c);
    }
    Ok(text)
}

fn check(parts: &[Part], max: usize) {
    for part in parts {
        assert_eq!(read(&part.text).as_ref(), Ok(&part.plain), "{}", part.text);
        assert_eq!(part.units, utf16_len(&part.text));
        assert!(part.units <= max && !is_blank(&part.plain), "{} units: {}", part.units, part.text);
    }
}

fn plain(parts: &[Part]) -> String {
    parts.iter().map(|part| part.plain.as_str()).collect()
}

/// Cases tg-mdv2-dash and tg-mdv2-selfref: nothing that is special in another markup needs escaping.
#[test]
fn tg_mdv2_dash_and_tg_mdv2_selfref() {
    assert_eq!(html("Steps:\n- open v1.2\n- run it!"), ["Steps:\n• open v1.2\n• run it!"]);
    let text = "Use parse_mode and set MY_VAR";
    assert_eq!(
        parts(text),
        [Part { text: text.to_owned(), plain: text.to_owned(), units: text.len(), buttons: Vec::new() }]
    );
}

/// Cases tg-html-generic and tg-html-no-escape: exactly `&`, `<` and `>` are escaped, once.
#[test]
fn tg_html_generic_and_tg_html_no_escape() {
    assert_eq!(
        html("Call greet(<name>) with Vec<u8> & a < b"),
        ["Call greet(&lt;name&gt;) with Vec&lt;u8&gt; &amp; a &lt; b"]
    );
    assert_eq!(html("for i < len(s) && s[i] > 0"), ["for i &lt; len(s) &amp;&amp; s[i] &gt; 0"]);
    assert_eq!(html("\"quotes\" `a<b>\"` &amp;lt;"), ["\"quotes\" <code>a&lt;b&gt;\"</code> &amp;lt;"]);
}

/// Case tg-html-sniff: markup is what Markdown says, whatever looks like a tag.
#[test]
fn tg_html_sniff() {
    let sent = "<b>Result</b> for &lt;CoT&gt; token, see List&lt;int&gt;";
    assert_eq!(html("**Result** for <CoT> token, see List<int>"), [sent]);
}

#[test]
fn every_style_has_its_tag() {
    let table = [
        ("# A *b*", "<b>A </b><b><i>b</i></b>"),
        ("~~s~~ ***bi*** **a `c`**", "<s>s</s> <b><i>bi</i></b> <b>a </b><code>c</code>"),
        ("[a **b**](https://e.example/?q=\"&x)", "<a href=\"https://e.example/?q=&quot;&amp;x\">a <b>b</b></a>"),
        ("```rust\nVec<u8>\n```", "<pre><code class=\"language-rust\">Vec&lt;u8&gt;</code></pre>"),
        ("```\"><b>\nx\n```", "<pre>\"&gt;&lt;b&gt;\nx</pre>"),
        ("> q **b**\n> r", "<blockquote>q <b>b</b>\nr</blockquote>"),
        ("> ```\n> x\n> ```", "<blockquote><pre>x</pre></blockquote>"),
        ("[x](tg://user?id=1) [y](javascript:1)", "[x](tg://user?id=1) [y](javascript:1)"),
        ("[the **docs**](http://localhost:3000)", "the <b>docs</b> (http://localhost:3000)"),
        ("<http://db:5432/x> [m](mailto:a@b.example)", "http://db:5432/x m (mailto:a@b.example)"),
    ];
    for (markdown, wanted) in table {
        let wanted = wanted.replace("A </b><b><i>", "A <i>");
        assert_eq!(html(markdown), [wanted], "{markdown}");
    }
}

#[test]
fn a_link_that_telegram_does_not_take_is_no_link() {
    for to in [
        "https://docs.example",
        "HTTP://docs.example:8080/a?b#c",
        "http://127.0.0.1:3000/x",
        "http://[::1]:3000/",
        "https://bücher.example/ü",
    ] {
        assert!(takes_address(to), "{to}");
    }
    for to in [
        "http://localhost:3000",
        "http://db:5432/x.y",
        "http://localhost./",
        "https://",
        "http://a.example:0/",
        "http://a.example:http/",
        "http://user@a.example/",
        "http://[1.2]/",
        "http://a^.example/",
        "mailto:a@b.example",
        "tel:+49301234567",
    ] {
        assert!(!takes_address(to), "{to}");
    }
}

/// Cases tg-utf16-count and tg-utf16-disputed: UTF-16 units are counted, which both readings of the limit allow; a part
/// that is refused all the same is cut smaller, and no other one.
#[test]
fn tg_utf16_count_and_tg_utf16_disputed() {
    for (times, wanted) in [(2048, 1), (2049, 2), (4096, 2)] {
        let text = "😀".repeat(times);
        let parts = parts(&text);
        assert_eq!((parts.len(), plain(&parts)), (wanted, text), "{times}");
        check(&parts, MAX_UNITS);
    }
    let text = "😀".repeat(4096);
    let parts = render(&event(&text), &[0, 2048]);
    assert_eq!(parts.iter().map(|part| part.units).collect::<Vec<_>>(), [4096, 2048, 2048]);
    assert_eq!(plain(&parts), text);
}

/// Case tg-split-surrogate: no cut lands inside a character, and nothing is lost.
#[test]
fn tg_split_surrogate() {
    for before in 4090..4100 {
        let text = format!("{}🎩 tail", "x".repeat(before));
        let parts = parts(&text);
        check(&parts, MAX_UNITS);
        assert_eq!(letters(&plain(&parts)), letters(&text));
    }
}

/// Case tg-split-after-escape: what is measured is what is sent.
#[test]
fn tg_split_after_escape() {
    for text in ["!".repeat(4096), "<".repeat(4096), "a & b < c\n".repeat(900)] {
        let parts = parts(&text);
        check(&parts, MAX_UNITS);
        assert_eq!(letters(&plain(&parts)), letters(&text));
    }
    assert_eq!(parts(&"!".repeat(4096)).len(), 1);
}

/// Case tg-split-inside-tag: what is open at a cut is closed, and opened again behind it.
#[test]
fn tg_split_inside_tag() {
    let code = "k".repeat(5000);
    let parts = parts(&format!("`{code}`"));
    check(&parts, MAX_UNITS);
    assert!(parts.len() == 2 && parts.iter().all(|part| part.text.starts_with("<code>k")));
    assert_eq!(plain(&parts), code);
}

/// Case tg-split-marker: a code block goes on as one, with its language and whole lines; there are no page marks.
#[test]
fn tg_split_marker() {
    let rows = "row\n".repeat(1500);
    let parts = parts(&format!("```text\n{rows}```"));
    check(&parts, MAX_UNITS);
    assert!(parts.len() == 2);
    for part in &parts {
        let code = part.text.strip_prefix("<pre><code class=\"language-text\">").expect("opened");
        let code = code.strip_suffix("</code></pre>").expect("closed");
        assert!(code.lines().all(|line| line == "row") && !code.ends_with('\n'));
    }
    assert_eq!(parts.iter().map(|part| part.plain.lines().count()).sum::<usize>(), 1500);
}

/// Case tg-inline-cut: a short code span stands in one part.
#[test]
fn tg_inline_cut() {
    let span = "`parse_header_v2_strict_mode`";
    for words in 800..830 {
        let text =
            format!("{}there is a test for {span} and [the docs](https://docs.example/a) text", "word ".repeat(words));
        let parts = parts(&text);
        check(&parts, MAX_UNITS);
        assert!(parts.iter().any(|part| part.text.contains("<code>parse_header_v2_strict_mode</code>")), "{words}");
        assert!(parts.iter().any(|part| part.text.contains(">the docs</a>")), "{words}");
        assert_eq!(
            letters(&plain(&parts)),
            letters(&text.replace('`', "").replace("[the docs](https://docs.example/a)", "the docs"))
        );
    }
}

/// An answer to a pressed button is one, and short.
#[test]
fn an_alert_has_one_part() {
    let mut answer = event(&"It is **over**. ".repeat(50));
    answer.metadata.insert(TAP.to_owned(), serde_json::json!({ "query_id": "q" }));
    let parts = render(&answer, &[]);
    assert!(
        parts.len() == 1 && parts[0].plain.starts_with("It is over. It") && utf16_len(&parts[0].plain) <= LONGEST_ALERT
    );
}

#[test]
fn no_limit_is_too_small_and_no_link_too_long_to_go_on() {
    let link = format!("[label](https://e.example/{})", "x".repeat(900));
    for limit in [1, 2, 7, 50, 400] {
        let parts = render(&event(&format!("**bold** 👩‍👩‍👧‍👦 {link} `code`")), &[limit; 500]);
        for part in &parts {
            assert!(part.units <= limit.max(11), "{limit}: {}", part.text);
            assert_eq!(read(&part.text).as_ref(), Ok(&part.plain));
        }
        assert_eq!(letters(&plain(&parts)), letters("bold 👩‍👩‍👧‍👦 label code"), "{limit}");
    }
}

/// Parts that are shown already stay as they are while the text grows: only the last one changes.
#[test]
fn parts_of_a_growing_text_stay() {
    let whole = LONG.repeat(30);
    let whole: Vec<char> = whole.chars().collect();
    let mut before: Vec<Part> = Vec::new();
    for end in (0..whole.len()).step_by(97) {
        let mut frame = event(&whole[..end].iter().collect::<String>());
        frame.is_final = false;
        let parts = render(&frame, &[]);
        check(&parts, MAX_UNITS);
        // The last one may still give its end to the next one.
        let settled = before.len().saturating_sub(1);
        assert_eq!(before[..settled], parts[..settled], "{end}");
        if before.len() == parts.len() && !before.is_empty() {
            assert!(parts[settled].plain.len() + 200 >= before[settled].plain.len(), "{end}");
        }
        before = parts;
    }
    assert!(before.len() > 3);
}

#[test]
fn the_time_of_a_long_text_grows_with_its_length() {
    let pieces = [
        LONG,
        "x = 1\n",
        "|a|b|\n|-|-|\n",
        "a",
        " ",
        "*",
        "`a` ",
        "[a](https://e.example) ",
        "<",
        "[",
        "> ",
        "\n",
        "**a *b ",
        "| a ",
        "_a*b~",
        "- a\n",
        "e\u{301}",
        "](",
        "[](",
        "`",
        "<a",
        "\n> ",
        "[a]: b\n",
        "**a：**b",
        "**",
        "://",
        "https://x.example/_a_(",
        "\\[a\\)",
        "a\\_b",
        "5 *a ",
        "[b ",
        "- 1. ",
        "a\nb\n---\n",
    ];
    let render = |text: &str| {
        for is_final in [true, false] {
            let mut event = event(text);
            event.is_final = is_final;
            assert!(!render(&event, &[]).is_empty());
        }
    };
    pieces.into_iter().for_each(|piece| assert_linear(piece, render));
    assert_linear("x = 1\n", |code| render(&format!("```\n{code}")));
    assert_linear("|x|y|\n", |rows| render(&format!("|a|b|\n|-|-|\n{rows}")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn parts_are_valid_and_lose_nothing(text in any_markdown(), limit in 60usize..300, is_final: bool) {
        let mut event = event(&text);
        event.is_final = is_final;
        let parts = render(&event, &[limit; 200]);
        let at_once = render(&event, &[]);
        check(&parts, limit);
        check(&at_once, MAX_UNITS);
        prop_assert_eq!(letters(&plain(&parts)), letters(&plain(&at_once)));
    }
}
