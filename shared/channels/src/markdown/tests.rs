//! Reading, splitting and growing, whatever the markup.

use proptest::prelude::*;

use super::samples::any_markdown;
use super::*;

/// The styles of `text` in short: each stretch with the letters of its styles before it.
fn shown(text: &str) -> String {
    let styled = read(text);
    let stretch = |(range, style): (Range<usize>, &Style)| {
        let mut marks = String::new();
        for (mark, letter) in [(Mark::Bold, 'b'), (Mark::Italic, 'i'), (Mark::Strike, 's'), (Mark::Code, 'c')] {
            marks.extend(style.has(mark).then_some(letter));
        }
        marks.extend(style.quote.then_some('q'));
        marks.extend(style.link.as_deref().map(|to| format!("a={to}")));
        marks.extend(style.fence.as_ref().map(|fence| format!("p={}", fence.language.as_deref().unwrap_or_default())));
        let text = &styled.text[range];
        if marks.is_empty() { text.to_owned() } else { format!("[{marks}|{text}]") }
    };
    styled.runs(0..styled.text.len()).map(stretch).collect()
}

#[test]
fn text_without_markup_comes_out_as_it_is() {
    for text in [
        "MY_VAR and snake_case_name, 2 * 3 * 4, a < b && c > d",
        "Vec<u8> and <CoT> and greet(<name>)",
        "  indented\n\n\n\tand blank lines  \nand   spaces ",
        "    four spaces are no code\n    **here**",
        "~5 to ~6, 3~5 and 6~8",
        "C:\\temp\\new $HOME 100% #tag @channel",
        "a\r\nb\r\n\r\nc",
        "(1) one [2] two [three]: four",
        "<div>\n  **x**\n</div>\n\n<!-- y --> a <b>c</b>",
        "line\n-",
        "line\n--",
        "1. one\n1. two\n\n3. three",
        "a [link](javascript:alert(1)) or [two](/path) or ![p](x.png)",
        "note[^1]\n\n[^1]: the note",
        "see [r]\n\n[r]: ftp://nowhere.example",
        "你好，世界。👩‍👩‍👧‍👦",
    ] {
        assert_eq!(shown(text), text);
    }
}

#[test]
fn markup_becomes_styles() {
    let table = [
        ("a **b** *i* ~~s~~ `c` __d__ _e_", "a [b|b] [i|i] [s|s] [c|c] [b|d] [i|e]"),
        ("***bi*** **b *bi* b**", "[bi|bi] [b|b ][bi|bi][b| b]"),
        ("`**a**` ``b`c``", "[c|**a**] [c|b`c]"),
        ("**a `c` b**", "[b|a ][bc|c][b| b]"),
        ("\\*a\\* \\\\ &amp; &lt;b&gt;", "*a* \\ & <b>"),
        ("a\\\nb  \nc\nd", "a\nb  \nc\nd"),
        ("# One #\ntext\n\n## *Two*\nThree\n===\nFour\n---", "[b|One]\ntext\n\n[bi|Two]\n[b|Three]\n[b|Four]"),
        ("a\n\n---\n\nb", "a\n\n———\n\nb"),
        ("- a\n  - b\n* c\n+ d\n\n1. e\n   2) f", "• a\n  • b\n• c\n• d\n\n1. e\n   2) f"),
        ("- [ ] a\n- [x] b", "• ☐ a\n• ☑ b"),
        ("[l](https://e.example/?a=1&b=2 \"t\")", "[a=https://e.example/?a=1&b=2|l]"),
        (
            "[**l**](http://e.example) <https://f.example> <a@b.example>",
            "[ba=http://e.example|l] [a=https://f.example|https://f.example] [a=mailto:a@b.example|a@b.example]",
        ),
        (
            "![alt](https://e.example/p.png) ![](https://e.example/q.png)",
            "[a=https://e.example/p.png|alt] [a=https://e.example/q.png|https://e.example/q.png]",
        ),
        (
            "<https://e.example|docs> <https://e.example|> <tg://x|y>",
            "[a=https://e.example|docs] <https://e.example|> <tg://x|y>",
        ),
        ("[![alt](https://i.example)](https://l.example)", "[a=https://l.example|alt]"),
        ("[two\nlines](https://e.example)", "[a=https://e.example|two lines]"),
        ("[r]\n\n[r]: https://e.example", "[a=https://e.example|r]\n\n[r]: https://e.example"),
        ("[`code`](https://e.example)", "[a=https://e.example|code]"),
        ("> a\n> **b**\n>\n> c\n\nd", "[q|a\n][bq|b][q|\n\nc]\n\nd"),
        ("> a\n> > b\n> c\nlazy\n\nd", "[q|a\nb\nc\nlazy]\n\nd"),
        ("> - a\n>   b\n", "[q|• a\n  b]\n"),
        ("x\n```rust,ignore\nfn f() {\n    1\n}\n```\ny", "x\n[p=rust|fn f() {\n    1\n}]\ny"),
        ("~~~\n```\n~~~", "[p=|```]"),
        ("> ```\n> a\n>  b\n> ```\n> t", "[qp=|a\n b][q|\nt]"),
        ("1. a\n\n   ```\n   x\n     y\n   ```\n2. b", "1. a\n\n[p=|x\n  y]\n2. b"),
        ("```\na\n```\n```\nb\n```", "[p=|a]\n[p=|b]"),
        ("#", "#"),
        ("```", "```"),
        ("**", "**"),
    ];
    for (markdown, wanted) in table {
        assert_eq!(shown(markdown), wanted, "{markdown}");
    }
}

#[test]
fn tables_are_aligned_in_columns_of_the_screen() {
    let markdown = "before\n| Name | Preis |\n|---|--:|\n| **北京** | 5 |\n| [l](http://u.example) | `a\\|b` |\n| x | y | z |\n|😀|\n\nafter";
    let wanted = "before\n[p=|\
Name                 | Preis |
---------------------+-------+--
北京                 |     5 |
l (http://u.example) |   a|b |
x                    |     y | z
😀                   |       |]\n\nafter";
    assert_eq!(shown(markdown), wanted);
}

#[test]
fn unfinished_text_looks_as_it_will() {
    let table = [
        ("**bold te", "[b|bold te]"),
        ("a **bold", "a [b|bold]"),
        ("a **", "a"),
        ("a *b **c d ", "a [i|b ][bi|c d]"),
        ("**bold*", "[b|bold]"),
        ("see [the docs](https://exa", "see the docs"),
        ("see [the **docs**](", "see the [b|docs]"),
        ("run `cargo te", "run [c|cargo te]"),
        ("```rust\nfn a() {\n``", "[p=rust|fn a() {]\n"),
        ("```rust\nfn a() {", "[p=rust|fn a() {]"),
        ("~~gone", "[s|gone]"),
        ("snake_ca", "snake_ca"),
        ("2 * 3", "2 * 3"),
        ("done **b** and `c`.\n\nnext", "done [b|b] and [c|c].\n\nnext"),
        ("> **q", "[bq|q]"),
        ("- **item", "• [b|item]"),
        ("\\*lit", "*lit"),
    ];
    for (prefix, wanted) in table {
        assert_eq!(shown(&finished(prefix)), wanted, "{prefix}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// The line of a fence, the title and the address of a link may hold words, which vanish as marks do; nothing else may.
    #[test]
    fn no_word_is_lost(text in any_markdown()) {
        let text = text.replace(['`', '~', '"'], "").replace("a|b>c", "a");
        let shown = read(&text).text;
        for word in ["word", "你好", "😀"] {
            prop_assert_eq!(shown.matches(word).count(), text.matches(word).count(), "{}", word);
        }
    }
}
