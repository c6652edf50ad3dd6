//! Texts for tests.

use std::time::Duration;

use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};
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

/// Fails where four times as much of `piece` takes far more than four times the processor time of this thread: what else
/// runs on the machine does not matter.
pub(crate) fn assert_linear(piece: &str, render: impl Fn(&str)) {
    let took = |length: usize| {
        let text = piece.repeat(length / piece.len());
        let before = processor_time();
        render(&text);
        processor_time().saturating_sub(before)
    };
    let (some, more) = (took(LENGTH), took(4 * LENGTH));
    // Times 16 is what is not linear; less than the least is noise.
    assert!(more < 9 * some.max(LEAST), "{some:?}, four times as much: {more:?}: {piece:?}");
}

/// Of the shorter text, in bytes.
const LENGTH: usize = 8_000;
/// What is taken for noise.
const LEAST: Duration = Duration::from_millis(20);

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
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
        "#",
        "\n===\n",
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
