use proptest::prelude::*;

use super::*;

/// The final text of `chunks`, and the frame after each of them.
fn stream(chunks: &[&str], starts_in_reasoning: bool) -> (Vec<String>, String) {
    let mut filter = ThinkingFilter::new(starts_in_reasoning);
    let mut frames = Vec::new();
    for chunk in chunks {
        filter.push(chunk);
        frames.push(filter.visible().to_owned());
    }
    (frames, filter.finish())
}

fn characters(text: &str) -> Vec<&str> {
    text.split("").filter(|c| !c.is_empty()).collect()
}

/// Strips `text`, and holds every chunking into one, two or single-character pieces to the same result.
fn stripped(text: &str) -> String {
    let whole = strip(text, false);
    assert_eq!(stream(&characters(text), false).1, whole, "{text:?} by characters");
    for (at, _) in text.char_indices() {
        assert_eq!(stream(&[&text[..at], &text[at..]], false).1, whole, "{text:?} cut at {at}");
    }
    whole
}

#[test]
fn rs_close_split() {
    let (frames, text) = stream(&["<think>secret</thi", "nk>ANSWER"], false);
    assert_eq!((frames, text.as_str()), (vec![String::new(), "ANSWER".to_owned()], "ANSWER"));
}

#[test]
fn rs_long_alias_split() {
    let (frames, text) = stream(&["V1 <reasoni", "ng>SECRET</reasoning> V2"], false);
    assert_eq!((frames[0].as_str(), text.as_str()), ("V1 ", "V1  V2"));
    assert_eq!(stripped("V1 <reasoning effort=\"high\" lang='de'>SECRET</reasoning> V2"), "V1  V2");
}

#[test]
fn rs_unclosed_midstream() {
    let (frames, text) = stream(&["Sure. ", "<think>", "step 1 "], false);
    assert_eq!(frames, ["Sure. ", "Sure. ", "Sure. "]);
    assert_eq!(text, "Sure.");
}

#[test]
fn rs_unclosed_after_text() {
    assert_eq!(stripped("Hello! <think> I am thinking."), "Hello!");
}

#[test]
fn rs_unclosed_all() {
    assert_eq!(stripped("<think>internal plan without end"), "");
}

#[test]
fn rs_orphan_close_stream() {
    let chunks = ["internal", " reasoning</thi", "nk>answer"];
    assert_eq!(stream(&chunks, true), (vec![String::new(), String::new(), "answer".into()], "answer".into()));
    let (frames, text) = stream(&chunks, false);
    assert_eq!(frames.last().map(String::as_str), Some("answer"), "the preview is replaced");
    assert_eq!(text, "answer");
}

#[test]
fn under_the_hint_the_template_may_have_written_the_opener_or_not() {
    assert_eq!(strip("\n<think>plan</think>answer", true), "answer");
    assert_eq!(strip("plan <think>more</think> plan</think>answer", true), "answer");
    assert_eq!(strip("cut off in the middle", true), "");
    assert_eq!(strip("</think>answer <think>x</think>more", true), "answer more");
}

#[test]
fn rs_inline_code() {
    let text = "Wrap it in `<think>` and then close it. Next step: deploy.";
    assert_eq!(stripped(text), text);
    assert_eq!(stripped(r"a backslash \\`<think>` first"), r"a backslash \\`<think>` first");
    let text = "Doubled: ``<think> ` </think>``, and ``` </think> ``` too.";
    assert_eq!(stripped(text), text);
}

#[test]
fn rs_fenced_code() {
    let text = "<think>plan</think>Example:\n```xml\n<think>demo</think>\n```\nok";
    assert_eq!(stripped(text), "Example:\n```xml\n<think>demo</think>\n```\nok");
    for code in ["~~~ a`b\n</think>\n~~~~\nok", "1. x\n   ````\n   ```\n   <think>\n   ````\nok", "```\n<think>"] {
        assert_eq!(stripped(code), code);
    }
    assert_eq!(stripped("```\n<think>\n```\na<think>b</think>c"), "```\n<think>\n```\nac");
    assert_eq!(stripped("<think>x\n</think>```\n</think>\n```"), "```\n</think>\n```", "a reader sees a fence");
    assert_eq!(stripped("a<think>x\n</think>```\n<think>y"), "a```", "a reader sees none");
}

#[test]
fn rs_discussing_tags() {
    let text = "Use `<think>` to start and `</think>` to end the block.";
    assert_eq!(stripped(text), text);
}

#[test]
fn rs_variants() {
    for text in [
        "<thinking>a</thinking>ok",
        "<reasoning>b</reasoning>ok",
        "<thought>c</thought>ok",
        "<REASONING_SCRATCHPAD>d</REASONING_SCRATCHPAD>ok",
        "<Think>e</tHINK>ok",
        "<think\n a = '1' >f</ think >ok",
        "<think/>ok",
        "<thinking>g</think>ok",
    ] {
        assert_eq!(stripped(text), "ok", "{text}");
    }
}

#[test]
fn rs_prefixed_names() {
    assert_eq!(stripped("<M2_7think>x</M2_7think>ok"), "ok");
    assert_eq!(stripped("<seed:think>x</seed:think>ok"), "ok");
    assert_eq!(stripped("Hello</think>world"), "world");
}

#[test]
fn rs_channel_markers() {
    assert_eq!(stripped("<|channel>thought\nplan<channel|>Answer"), "Answer");
    assert_eq!(stripped("a <|channel>b <|chan"), "a <|channel>b <|chan");
}

#[test]
fn rs_close_written_as_open() {
    assert_eq!(stripped("<thinking> bla bla <thinking>Answer"), "");
}

#[test]
fn rs_partial_close_swallow() {
    let (frames, text) = stream(&["<thought>why</thou", "ght>answer"], false);
    assert_eq!((frames[1].as_str(), text.as_str()), ("answer", "answer"));
}

#[test]
fn what_is_left_of_a_text_with_tags() {
    for (text, visible) in [
        ("Before <think>internal reasoning</think> After", "Before  After"),
        ("Start\n<think>\nline1\nline2\n</think>\nEnd", "Start\n\nEnd"),
        ("plain text", "plain text"),
        ("<think>a</think>", ""),
        ("<think>x</think>\n\nHello\n", "Hello"),
        ("<think>unclosed tail", ""),
        ("tail</think> answer", "answer"),
        ("a<think>b<think>c</think>d</think>e", "ae"),
        ("abc <thi", "abc <thi"),
        ("", ""),
    ] {
        assert_eq!(stripped(text), visible, "{text}");
    }
    assert_eq!(stream(&["abc <thi"], false).0, ["abc "]);
}

#[test]
fn what_only_resembles_a_tag_is_text() {
    for text in [
        "a < b > c",
        "<div>x</div>",
        "<thinker>x",
        "<rethink>x",
        "<think, then",
        "x<",
        "</",
        "<>",
        "<think <b>",
        "1 << think >",
    ] {
        assert_eq!(stripped(text), text);
    }
    let long = format!("<think {}>x", "a".repeat(TAG_MAX));
    assert_eq!(stripped(&long), long);
    let name = format!("<|channel>{}_thought x", "a".repeat(TAG_MAX));
    assert_eq!(stripped(&name), name);
}

#[test]
fn a_backtick_that_nothing_closes_hides_no_tag() {
    assert_eq!(stripped("it`s <think>secret</think>ok"), "it`s ok");
    assert_eq!(stripped("a `b\n<think>secret`</think>ok"), "a `b\nok");
    assert_eq!(stripped("a ``b` <think>secret</think>ok"), "a ``b` ok");
    assert_eq!(stripped("a \\`<think>secret</think>\\` ok"), "a \\`\\` ok");
    let far = format!("a `{}<think>secret</think>` ok", "x".repeat(SPAN_MAX));
    assert_eq!(stripped(&far), far.replace("<think>secret</think>", ""));
}

#[test]
fn code_within_reasoning_neither_ends_it_nor_swallows_the_answer() {
    for text in [
        "<think>the tag `</think>` ends it</think>ok",
        "<think>the tag `<think>` begins it</think>ok",
        "<think>write `<think>x</think>` so</think>ok",
        "<think>one ` only</think>ok",
        "<think>a\n```\ncut off in code</think>ok",
        "<think>a\n```\n<think>\n```\nb</think>ok",
        "<think>a\n```\n</think>  \n```\nb</think>ok",
        "<think>a\n~~~\n<think>x</think> y\n~~~\nb</think>ok",
    ] {
        assert_eq!(stripped(text), "ok", "{text}");
    }
    assert_eq!(stripped("<think>one ` only</think>ok with `code`"), "ok with `code`");
}

#[test]
fn what_is_held_back_is_bounded() {
    for start in ["<", "<think ", "`", "```", "</", "<|channel>", "a\n~~~", "```\n ", "<think>```\n</think>"] {
        for filler in ["a", " ", "`", "~", "é"] {
            let mut filter = ThinkingFilter::new(false);
            filter.push(start);
            for _ in 0..4 * SPAN_MAX {
                filter.push(filler);
                assert!(filter.held.len() <= 2 * SPAN_MAX, "{start:?} {filler:?}");
            }
        }
    }
}

/// Around every limit, what is too long is so in pieces as in one.
#[test]
fn limits_fall_at_the_same_place_in_pieces() {
    for (start, filler, end) in [
        ("<", "a", "_think>x</think>y"),
        ("<think ", "a", ">x</think>y"),
        ("</", " ", "think>y"),
        ("<|channel>", "a", "_thought x<channel|>y"),
        ("`", "a", "` <think>x</think>y"),
        ("`", "a", "<think>`x</think>y"),
        ("```", "a", "\n<think>x</think>y"),
        ("```\n", " ", "```\n<think>x</think>y"),
        ("```\n```", " ", "\n<think>x</think>y"),
        ("", "`", " <think>x</think>y"),
        ("<think>```\n</think>", " ", "\n```\nx</think>y"),
    ] {
        for limit in [RUN_MAX, TAG_MAX, SPAN_MAX] {
            for length in limit - 12..limit + 3 {
                let text = [start, &filler.repeat(length), end].concat();
                let whole = strip(&text, false);
                assert_eq!(stream(&characters(&text), false).1, whole, "{length} between {start:?} and {end:?}");
            }
        }
    }
}

/// Every text of up to five of the pieces that matter, character by character against whole.
#[test]
fn every_short_text_comes_to_the_same_in_pieces() {
    const PIECES: [&str; 7] = ["<think>", "</think>", "`", "```", "\n", "a ", "<think"];
    for number in 0..PIECES.len().pow(5) {
        let text: String = (0..5_u32).map(|place| PIECES[number / PIECES.len().pow(place) % PIECES.len()]).collect();
        assert_eq!(stream(&characters(&text), false).1, strip(&text, false), "{text:?}");
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "<think>",
        "</think>",
        "<THINKING a=\"1\">",
        "</reasoning>",
        "<M2_7think>",
        "<think/>",
        "<|channel>thought",
        "<channel|>",
        "<think",
        "</",
        "<",
        ">",
        "`",
        "``",
        "```",
        "```xml\n",
        "~~~",
        "~~~~\n",
        "\n",
        "\n\n",
        " ",
        "  ",
        "\\",
        "\r\n",
        "> ",
        "word",
        "é",
        "👩‍👩‍👧",
        "你好",
        "<b>",
        "thought",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// `text` cut at the given places.
fn chunks<'a>(text: &'a str, places: &[prop::sample::Index]) -> Vec<&'a str> {
    let mut cuts: Vec<usize> =
        places.iter().map(|place| text.floor_char_boundary(place.index(text.len() + 1))).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

/// Pieces of an output with what is visible of each; hidden text has a `§`.
fn piece() -> impl Strategy<Value = (&'static str, &'static str)> {
    let shown = prop::sample::select(vec![
        "word ",
        "héllo 👩‍👩‍👧 ",
        "`<think>` ",
        "``</think> ` x`` ",
        "it`s\n",
        "a < b ",
        "\n```xml\n<think>x</think>\n```\n",
        "\n~~~\n</think>\n~~~\n",
        "\n\n",
        "<b>",
        "1. x\n   ```\n   <think>\n   ```\n",
    ])
    .prop_map(|text| (text, text));
    let hidden = prop::sample::select(vec![
        "<think>§</think>",
        "<Thinking a='1'>§ `</think>` §\n</thinking>",
        "<think>§<think>§</think>§</think>",
        "<think>§ ` §</think>\n",
        "<M2_7think>§\n```\n§ cut</M2_7think>",
        "<|channel>thought\n§<channel|>",
        "<think>§\n```\n<think>§\n```\n§</think>",
        "<reasoning>`§ <think>` §</reasoning>",
        "<think/>",
    ])
    .prop_map(|text| (text, if text.ends_with('\n') { "\n" } else { "" }));
    prop_oneof![shown, hidden]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_chunking_does_not_matter(
        text in any_text(), places in prop::collection::vec(any::<prop::sample::Index>(), 0..12), hint: bool,
    ) {
        let whole = strip(&text, hint);
        prop_assert_eq!(&stream(&chunks(&text, &places), hint).1, &whole);
        prop_assert_eq!(&stream(&characters(&text), hint).1, &whole);
    }

    #[test]
    fn no_frame_shows_reasoning_and_frames_only_grow(pieces in prop::collection::vec(piece(), 0..12)) {
        let text: String = pieces.iter().map(|(text, _)| *text).collect();
        let visible: String = pieces.iter().map(|(_, visible)| *visible).collect();
        let (frames, last) = stream(&characters(&text), false);
        prop_assert_eq!(&last, visible.trim());
        for pair in frames.windows(2) {
            prop_assert!(pair[1].starts_with(&pair[0]));
        }
        for frame in &frames {
            prop_assert!(visible.trim_start().starts_with(frame.as_str()));
        }
        prop_assert_eq!(strip(&last, false), last);
    }

    #[test]
    fn an_orphan_closer_hides_all_before_it(before in "[a-z \n]{0,20}", after in "[a-z]{0,8}", tag in "</(think|Thought)>") {
        let text = format!("{before}{tag}{after}");
        prop_assert_eq!(strip(&text, false), after.clone());
        prop_assert_eq!(strip(&text, true), after);
    }

    #[test]
    fn under_the_hint_nothing_shows_before_a_closer(
        text in any_text(), places in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let text = text.replace("</", "").replace("<channel|>", "");
        let (frames, last) = stream(&chunks(&text, &places), true);
        prop_assert!(last.is_empty() && frames.iter().all(String::is_empty));
    }

    #[test]
    fn text_without_tags_is_only_trimmed(text in "[^<]{0,60}") {
        prop_assert_eq!(strip(&text, false), text.trim());
    }
}
