//! Reading, splitting and growing, whatever the markup.

use proptest::prelude::*;

use super::samples::any_markdown;
use super::*;

/// The styles of `text` in short: each stretch with the letters of its styles before it.
fn shown(text: &str) -> String {
    let styled = read(text, &|to| !to.contains("localhost"));
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
        "https://github.com/org/repo/blob/main/pkg/__init__.py and https://x.example/a*b*c, https://x.example/~~a~~b",
        "https://en.wikipedia.org/wiki/A_(b)_c and https://en.wikipedia.org/wiki/Go_(lang)",
        "C:\\_work\\x, .\\_y, ..\\*z, %TEMP%\\_t, src\\pkg\\_build",
        "\\\\server\\_share",
        "\\(x_1\\) and \\[y = \\frac{a}{b}\\]",
        "f(**kwargs) and g(**args), {**a,**b}",
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
        ("```SELECT 1;\n```", "[p=|SELECT 1;]"),
        ("```git push --force\nls\n```\nDone.", "[p=|git push --force\nls]\nDone."),
        ("~~~the key is 42\n~~~", "[p=|the key is 42]"),
        ("```rust,ignore title=\"a\" {1,3}\nx\n```", "[p=rust|x]"),
        ("```py\rx\n```", "[p=py|x]"),
        ("```js title=\"my file.js\"\nx\n```", "[p=js|x]"),
        ("```export TOKEN=abc\n```", "[p=|export TOKEN=abc]"),
        ("```x=5\ny\n```", "[p=|x=5\ny]"),
        ("Intro\n\n#1 Fix the bug\n---\nmore", "Intro\n\n[b|#1 Fix the bug]\nmore"),
        ("#hashtag\n===\nx", "[b|#hashtag]\nx"),
        (
            "**https://x.example** [*a*](https://y.example/_a_)**b** 见https://z.example，**粗**",
            "[b|https://x.example] [ia=https://y.example/_a_|a][b|b] 见https://z.example，[b|粗]",
        ),
        ("[d](http://localhost:3000) <http://localhost/>", "d (http://localhost:3000) http://localhost/"),
        ("<http://localhost|d> [](http://localhost)", "d (http://localhost) http://localhost"),
        ("\\[a\\](b) and [c]\\(d\\) snake\\_case", "[a](b) and [c](d) snake_case"),
        ("Key: value\nOther: value\n---\nfooter", "Key: value\nOther: value\n———\nfooter"),
        ("> **a**\n> b\n> ---\n> c", "[bq|a][q|\nb\n———\nc]"),
        ("one\ntwo\n===", "[b|one\ntwo]"),
        ("**注意：**请先备份。", "[b|注意：]请先备份。"),
        ("**\"quoted\"**then **Step:**do it", "[b|\"quoted\"]then [b|Step:]do it"),
        ("这是**“引用”**的，见**`代码`**后", "这是[b|“引用”]的，见[bc|代码]后"),
        ("这是**“引用”**的\n见**`代码`**后", "这是[b|“引用”]的\n见[bc|代码]后"),
        ("2 ** 3, a/**/b and **bold** and f(**k)", "2 ** 3, a/**/b and [b|bold] and f(**k)"),
        ("**a\nb** c **d **e** f**", "[b|a\nb] c [b|d e f]"),
        ("***注意：***请\n**不。\n**行", "[bi|注意：]请\n**不。\n**行"),
        ("\\*\\*注意：\\*\\*请", "**注意：**请"),
        ("| **注：**值 | b |\n|---|---|", "[p=|注：值 | b\n-------+--]"),
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
Name                 | Preis
---------------------+-------+--
北京                 |     5
l (http://u.example) |   a|b
x                    |     y | z
😀]\n\nafter";
    assert_eq!(shown(markdown), wanted);
}

#[test]
fn a_table_is_not_much_longer_than_what_it_says() {
    let head = format!("|{}\n|{}\n", "a very long head of a column|".repeat(60), "-|".repeat(60));
    let markdown = format!("{head}{}", format!("{}b|\n", "|".repeat(60)).repeat(100));
    let shown = shown(&markdown);
    assert!(shown.len() < 4 * markdown.len(), "{} of {}", shown.len(), markdown.len());
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
        ("1. ```py\n   x = 1\n", "1. [p=py|x = 1]\n"),
        ("- a\n\n  * ```\n    x\n    ```\n\n**b", "• a\n\n  • [p=|x]\n\n[b|b]"),
        ("```\n- ```\n*x", "[p=|- ```\n*x]"),
        ("**注意：**请", "[b|注意：]请"),
        ("**Step:**d **b", "[b|Step:]d [b|b]"),
        ("这是**“引", "这是[b|“引]"),
        ("5 *a and 3 _b", "5 *a and 3 _b"),
        ("2*x and f(**kw", "2*x and f(**kw"),
        ("in 2024 *Nature", "in 2024 *Nature"),
        ("see *this", "see [i|this]"),
        ("see *this\nthat", "see *this\nthat"),
        ("https://x.example/pkg/__init", "https://x.example/pkg/__init"),
        ("see [the docs", "see the docs"),
        ("see [the docs]", "see the docs"),
        ("see [the docs] ", "see [the docs] "),
        ("see ![the pic", "see the pic"),
        ("see ![the pic](https://exa", "see the pic"),
        ("a[i", "a[i"),
        ("see [1", "see [1"),
        ("- [x", "• [x"),
        ("[a\nb", "[a\nb"),
    ];
    for (prefix, wanted) in table {
        assert_eq!(shown(&finished(prefix)), wanted, "{prefix}");
    }
}

/// Words and marks on one line.
fn any_marks() -> impl Strategy<Value = String> {
    let piece =
        prop::sample::select(vec!["a", " ", "*", "**", "_", "__", "~~", "(", ")", "，", "https://e.example/_a_b"]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// An address outside of code stays one, whatever marks are in it and around it.
    #[test]
    fn an_address_survives(before in any_marks(), path in "([a-z_*~/]{0,6}(\\([a-z_*]{0,4}\\))?){0,3}[a-z]", after in any_marks()) {
        let address = format!("https://x.example/{path}");
        let text = format!("{before} {address} {after}");
        prop_assert!(read(&text, &|_| true).text.contains(&address), "{text}");
    }

    /// The line of a fence, the title and the address of a link may hold words, which vanish as marks do; nothing else may.
    #[test]
    fn no_word_is_lost(text in any_markdown()) {
        let text = text.replace(['`', '~', '"'], "").replace("a|b>c", "a");
        let shown = read(&text, &|_| true).text;
        for word in ["word", "你好", "😀"] {
            prop_assert_eq!(shown.matches(word).count(), text.matches(word).count(), "{}", word);
        }
    }
}
