//! What Slack gets for what a model writes.

use proptest::prelude::*;
use turnlock_domain::text::is_blank;

use super::*;
use crate::markdown::samples::{LONG, any_markdown, assert_linear, event, letters};

fn parts(text: &str) -> Vec<Part> {
    render(&event(text), &[])
}

fn mrkdwn(text: &str) -> String {
    let parts = parts(text);
    assert_eq!(parts.len(), 1, "{text}");
    parts[0].text.replace(BREAK, "|")
}

fn check(parts: &[Part], max: usize) {
    for part in parts {
        assert_eq!(part.units, utf16_len(&part.text));
        assert!(part.units <= max && !is_blank(&part.plain), "{} units: {}", part.units, part.text);
        // Every bracket is a link of ours, and every `&` an escape.
        for token in part.text.split('<').skip(1) {
            let token = token.split_once('>').map(|(token, _)| token).unwrap_or_default();
            assert!(
                ["http://", "https://", "mailto:", "tel:"].iter().any(|scheme| token.starts_with(scheme)),
                "{}",
                part.text
            );
        }
        for escape in part.text.split('&').skip(1) {
            assert!(["amp;", "lt;", "gt;"].iter().any(|name| escape.starts_with(name)), "{}", part.text);
        }
        assert!(part.text.matches("```").count() % 2 == 0, "{}", part.text);
    }
}

fn plain(parts: &[Part]) -> String {
    parts.iter().map(|part| part.plain.as_str()).collect()
}

/// Case sl-mass-ping-stream: what a model writes is text, so no broadcast, mention or channel in it is live, whole or in
/// a frame that ends within it; links that the renderer makes are.
#[test]
fn sl_mass_ping_stream() {
    assert_eq!(
        mrkdwn(
            "Done <!channel> <@U1> <#C1> <!subteam^S1|x> @here a & b, [d](https://docs.example) <https://e.example|e>"
        ),
        "Done &lt;!channel&gt; &lt;@U1&gt; &lt;#C1&gt; &lt;!subteam^S1|x&gt; @here a &amp; b, <https://docs.example|d> <https://e.example|e>"
    );
    let text = "Done <!channel> see [<!here>](https://docs.example/a|b>c) `<!everyone>` **<@U1>**";
    for end in (1..=text.len()).rev() {
        let mut frame = event(&text[..end]);
        frame.is_final = false;
        let parts = render(&frame, &[]);
        check(&parts, MAX_UNITS);
        assert!(parts.iter().all(|part| !part.text.contains("<!") && !part.text.contains("<@")), "{end}");
    }
}

#[test]
fn every_style_has_its_mark() {
    let table = [
        ("a **b** *i* ~~s~~ `c`", "a *b* _i_ ~s~ `c`"),
        ("***bi*** **b *i* b**", "*_bi_* *b _i_ b*"),
        ("# Head `c`\n\ntext", "*Head `c`*\n\ntext"),
        ("**two\nlines**", "*two*\n*lines*"),
        ("mid**word**s, **bold**ly and `f`s", "midwords, boldly and fs"),
        ("中文**粗体**中文", "中文粗体中文"),
        ("(**b**), \"*i*\"!", "(*b*), \"_i_\"!"),
        ("```rust\na < b\n```", "```\na &lt; b\n```"),
        ("x\n```\na\n```\ny", "x\n```\na\n```\ny"),
        ("> q **b**\n> r\n>\n> s\n\nt", "> q *b*\n> r\n> \n> s\n\nt"),
        ("[a|b](https://e.example/a|b?x=1&y=<2>) t", "<https://e.example/a%7Cb?x=1&amp;y=%3C2%3E|a|b> t"),
        ("**[a](https://e.example)** [**b** c](https://e.example)", "*<https://e.example|a>* <https://e.example|b c>"),
        ("[x](javascript:1)", "[x](javascript:1)"),
        ("- [x] a\n  - b", "• ☑ a\n  • b"),
        ("- a\n  > quote in list\n  > two\n- b", "• a\n> quote in list\n> two\n• b"),
        ("- > **q**\n  > r", "> • *q*\n> r"),
        ("> a\n> ```\n> x\n>\n> y\n> ```\n> t", "> a\n> ```\n> x\n> \n> y\n> ```\n> t"),
        ("> ```\n> x\n> ```\n\nt", "> ```\n> x\n> ```\n\nt"),
        ("> | a |\n> |---|\n> | b |", "> ```\n> a\n> -\n> b\n> ```"),
        ("[x](http://localhost:3000)", "<http://localhost:3000|x>"),
    ];
    for (markdown, wanted) in table {
        assert_eq!(mrkdwn(markdown), wanted, "{markdown}");
    }
}

/// `|` stands for the break.
#[test]
fn what_is_no_mark_does_not_become_one() {
    let table = [
        ("2 * 3 * 4, MY_VAR_2 and a~b~c", "2 * 3 * 4, MY_VAR_2 and a~b~c"),
        ("*args only, ~5 to 6", "*args only, ~5 to 6"),
        ("\\*not bold\\*", "*|not bold|*"),
        ("~about~ \\_x\\_ \\`y\\`", "~|about|~ _|x|_ `|y|`"),
        ("**a** \\*b", "*a* *|b"),
        ("**a \\*b\\* c**", "*a *|b|* c*"),
        ("https://e.example/~a/~b/_c_/ \\*d\\*", "https://e.example/~a/~b/_c_/ *|d|*"),
        ("\\> no quote", "|&gt; no quote"),
        ("``a`b`` and `c`", "a`b and `c`"),
        ("````\n```\n````", "```\n`|``\n```"),
        ("\\`\\`\\`x\\`\\`\\`", "`||`|`|x|`|`||`"),
    ];
    for (markdown, wanted) in table {
        assert_eq!(mrkdwn(markdown), wanted, "{markdown}");
    }
}

/// Cases sl-too-long-limit, sl-too-long-freeze and sl-markdown-12k: parts stay below the smallest limit that was seen,
/// escaped, and together they are the whole text; one that is refused all the same is cut smaller.
#[test]
fn sl_too_long_limit_sl_too_long_freeze_and_sl_markdown_12k() {
    for text in ["a".repeat(6000), "word ".repeat(1200), "a".repeat(13_000), "<".repeat(5000), "😀&".repeat(3000)] {
        let parts = parts(&text);
        assert!(parts.len() > 1);
        check(&parts, MAX_UNITS);
        assert_eq!(letters(&plain(&parts)), letters(&text));
    }
    let parts = render(&event(&"a".repeat(6000)), &[1750]);
    assert_eq!(parts.iter().map(|part| part.units).collect::<Vec<_>>(), [1750, 1750, 1750, 750]);
}

#[test]
fn a_code_block_goes_on_in_the_next_part() {
    let parts = parts(&format!("> intro\n\n```sh\n{}```\nend", "row | x\n".repeat(800)));
    check(&parts, MAX_UNITS);
    assert!(parts.len() == 2 && parts[0].text.ends_with("row | x\n```") && parts[1].text.starts_with("```\nrow"));
}

#[test]
fn parts_of_a_growing_text_stay() {
    let whole: Vec<char> = LONG.repeat(20).chars().collect();
    let mut before: Vec<Part> = Vec::new();
    for end in (0..whole.len()).step_by(89) {
        let mut frame = event(&whole[..end].iter().collect::<String>());
        frame.is_final = false;
        let parts = render(&frame, &[]);
        check(&parts, MAX_UNITS);
        let settled = before.len().saturating_sub(1);
        assert_eq!(before[..settled], parts[..settled], "{end}");
        before = parts;
    }
    assert!(before.len() > 2);
}

#[test]
fn the_time_of_a_long_text_grows_with_its_length() {
    for piece in [LONG, "_a*b~", "`a` ", "\\*a\\* ", "\\*", ">"] {
        assert_linear(piece, |text| assert!(!parts(text).is_empty()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn parts_are_valid_and_lose_nothing(text in any_markdown(), limit in 80usize..300, is_final: bool) {
        let mut event = event(&text);
        event.is_final = is_final;
        let parts = render(&event, &[limit; 200]);
        let at_once = render(&event, &[]);
        check(&parts, limit);
        check(&at_once, MAX_UNITS);
        prop_assert_eq!(letters(&plain(&parts)), letters(&plain(&at_once)));
        for part in &at_once {
            let sent = part.text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
            let mut left = sent.chars();
            prop_assert!(letters(&part.plain).chars().all(|c| left.any(|sent| sent == c)), "{}", part.text);
        }
    }
}
