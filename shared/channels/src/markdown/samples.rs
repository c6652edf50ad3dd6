//! Texts for tests.

use proptest::prelude::*;
use turnlock_domain::event::{ContentBlock, OutboundEvent};
use turnlock_domain::text::is_blank;

/// An answer with everything in it.
pub(crate) const LONG: &str = "# Überschrift with `code`\n\nSome **bold and *nested* text**, a [link](https://docs.example/a?b=1&c=2), \
MY_VAR, `Vec<u8>` and ~~old~~ <CoT> words. A sentence. Another one; with parts, and 😀 emoji.\n\n- one\n  - *two*\n- three `x`\n\n\
1. first\n2. second\n\n```rust\nfn main() {\n    println!(\"{}\", 1 < 2);\n}\n```\n\n> quoted **text**\n> goes on\n\n\
| a | b |\n|---|--:|\n| 北京 | 1 |\n| x | 22 |\n\nThe end of it. 最后一句话。\n\n";

pub(crate) fn event(text: &str) -> OutboundEvent {
    let mut event: OutboundEvent =
        serde_json::from_value(serde_json::json!({ "event_id": "e.final", "channel": "telegram" })).expect("an event");
    event.content = vec![ContentBlock::text(text)];
    event
}

/// What can be seen of `text`, without its white space.
pub(crate) fn letters(text: &str) -> String {
    text.chars().filter(|c| !is_blank(c.encode_utf8(&mut [0; 4]))).collect()
}

/// Texts of words, marks and line breaks in any order.
pub(crate) fn any_markdown() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "word",
        " ",
        "\n",
        "\n\n",
        "**",
        "*",
        "_",
        "~~",
        "`",
        "``",
        "```",
        "```rust\n",
        "\n```\n",
        "> ",
        "\n> ",
        "- ",
        "\n- ",
        "\n  - ",
        "1. ",
        "# ",
        "\n---\n",
        "[",
        "](",
        "](https://e.example/a|b>c)",
        ")",
        "![",
        "<b>",
        "</b>",
        "<div>\n",
        "&amp;",
        "&",
        "<",
        ">",
        "\"",
        "\\",
        "|",
        "\n| a | b |\n|---|---|\n| c | d |\n",
        "😀",
        "👩‍👩‍👧‍👦",
        "e\u{301}",
        "你好。",
        "\t",
        "    ",
        "- [x] ",
        "<!channel>",
        "<@U1>",
        "https://x.example/_a_",
        "\r\n",
        "\u{200b}",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}
