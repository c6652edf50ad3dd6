use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::conversation::{Problem, check_request};
use crate::message::{Media, Reasoning};

fn call(id: &str) -> Block {
    Block::ToolUse { id: id.to_owned(), name: "lookup".to_owned(), input: json!({"q": "x"}) }
}

fn result(id: &str) -> Block {
    answer(id, "ok")
}

fn answer(id: &str, text: &str) -> Block {
    Block::ToolResult { tool_use_id: id.to_owned(), content: vec![Block::text(text)], is_error: false }
}

fn interrupted(id: &str) -> Block {
    let content = vec![Block::text(NOT_EXECUTED)];
    Block::ToolResult { tool_use_id: id.to_owned(), content, is_error: true }
}

fn user(content: impl Into<Vec<Block>>) -> Message {
    Message::new(Role::User, content.into())
}

fn assistant(content: impl Into<Vec<Block>>) -> Message {
    Message::new(Role::Assistant, content.into())
}

fn signed(text: &str) -> Block {
    Block::Reasoning(Reasoning { text: text.to_owned(), signature: Some("c2ln".to_owned()), ..Reasoning::default() })
}

/// The repaired messages, which are held to be valid and to stay as they are.
fn repaired(messages: &[Message]) -> Vec<Message> {
    let repaired = repair(messages);
    assert_eq!(check(&repaired.messages), []);
    assert_eq!(repaired.changes.is_empty(), repaired.messages == messages, "{:?}", repaired.changes);
    assert_eq!(repair(&repaired.messages).messages, repaired.messages);
    repaired.messages
}

#[test]
fn br_result_exceeds() {
    let history = [Message::user("go"), assistant([call("t1")]), user([result("t1"), result("t2")])];
    assert_eq!(check(&history), [Problem::OrphanResult { message: 2 }]);
    assert_eq!(repaired(&history), [Message::user("go"), assistant([call("t1")]), user([result("t1")])]);
    let twice = [Message::user("go"), assistant([call("t1")]), user([result("t1"), answer("t1", "again")])];
    assert_eq!(repaired(&twice), [Message::user("go"), assistant([call("t1")]), user([result("t1")])]);
}

#[test]
fn br_result_missing() {
    let history = [Message::user("go"), assistant([call("t1"), call("t2")]), user([result("t1")])];
    assert_eq!(check(&history), [Problem::UnansweredUse { message: 1 }]);
    let healed = repaired(&history);
    assert_eq!(healed[..2], history[..2]);
    assert_eq!(healed[2..], [user([interrupted("t2"), result("t1")])], "all results of one turn in one message");
}

#[test]
fn br_tooluseid_shape() {
    let id = "call 123/é-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    let history = [Message::user("go"), assistant([call(id), call("")]), user([result(""), answer(id, "long")])];
    let healed = repaired(&history);
    let ids = |message: &Message| -> Vec<String> {
        message
            .content
            .iter()
            .map(|block| match block {
                Block::ToolUse { id, .. } | Block::ToolResult { tool_use_id: id, .. } => id.clone(),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    let (calls, results) = (ids(&healed[1]), ids(&healed[2]));
    assert_eq!((&calls[0], &calls[1]), (&results[1], &results[0]));
    assert!(calls[0].starts_with("call_123__-xxx"));
}

#[test]
fn ids_that_every_turn_uses_are_told_apart() {
    let turn = |text| {
        [Message::user("go"), assistant([call("call_0")]), user([answer("call_0", text)]), Message::assistant("ok")]
    };
    let history = [turn("first"), turn("second")].concat();
    assert_eq!(check(&history), [Problem::DuplicateUseId { message: 5 }]);
    let healed = repaired(&history);
    assert_eq!(healed[..4], history[..4]);
    assert!(matches!(&healed[6].content[..], [Block::ToolResult { tool_use_id, content, .. }]
        if tool_use_id != "call_0" && content[..] == [Block::text("second")]));
}

#[test]
fn equal_ids_of_one_message_are_answered_in_order() {
    let calls = assistant([call("x"), call("x")]);
    let healed = repaired(&[Message::user("go"), calls, user([answer("x", "1"), answer("x", "2")])]);
    let [Block::ToolUse { id: first, .. }, Block::ToolUse { id: second, .. }] = &healed[1].content[..] else {
        panic!("two calls");
    };
    assert_eq!(healed[2], user([answer(first, "1"), answer(second, "2")]));
}

#[test]
fn a_result_belongs_to_the_last_call_of_its_id() {
    let again = [assistant([call("x")]), user([answer("x", "2")])];
    let healed =
        repaired(&[&[Message::user("go"), assistant([call("x")]), Message::user("again")], &again[..]].concat());
    assert_eq!(healed[2], user([interrupted("x"), Block::text("again")]));
    assert!(matches!(&healed[4].content[..], [Block::ToolResult { content, .. }] if content[..] == [Block::text("2")]));
}

#[test]
fn changes_say_what_was_done_and_no_more() {
    let two = || vec![Block::text("a"), Block::text("b")];
    let turn = |blocks: Vec<Block>| vec![user(two()), assistant([call("t1")]), user(blocks)];
    for (history, changes) in [
        (turn(vec![Block::text("later"), result("t1")]), vec![Change::ResultMoved(2)]),
        (turn(two()), vec![Change::ResultAdded(1)]),
        (turn(vec![result("t1"), result("t2")]), vec![Change::OrphanDropped(2)]),
        (vec![user(two()), user(two())], vec![Change::Merged(1)]),
        (vec![user(two()), assistant([])], vec![Change::MessageDropped(1)]),
        (vec![assistant(two())], vec![Change::FillerAdded(0)]),
    ] {
        assert_eq!(repair(&history).changes, changes);
    }
    let late = [turn(vec![Block::text("hm")]), vec![Message::assistant("?"), user([result("t1")])]].concat();
    assert_eq!(repair(&late).changes, [Change::ResultMoved(4), Change::Merged(2)]);
}

#[test]
fn a_new_id_collides_with_none_that_is_there() {
    let taken = fresh_id("a b", &HashSet::new());
    let history = [Message::user("go"), assistant([call("a b"), call(&taken)]), user([result("a b"), result(&taken)])];
    assert_eq!(repaired(&history)[1].content[1], call(&taken));
}

#[test]
fn br_blank_text() {
    assert_eq!(check(&[Message::user("   ")]), [Problem::BlankBlock { message: 0 }]);
    assert_eq!(repaired(&[Message::user("   ")]), []);
    assert_eq!(check_request(&[]), [Problem::LastNotUser], "nothing left: no call is made");
    let image = Block::Image(Media { url: "telegram-file:F".to_owned(), ..Media::default() });
    assert_eq!(repaired(&[user([Block::text("\u{200b}"), image.clone()])]), [user([image])]);
}

#[test]
fn br_blank_space_placeholder() {
    let history = [Message::user(" "), Message::assistant("summary..."), Message::user("next")];
    let healed = repaired(&history);
    assert_eq!(healed[1..], history[1..]);
    assert!(!text::is_blank(&healed[0].text()), "the filler is visible");
}

#[test]
fn every_text_of_our_own_is_visible() {
    for filler in [NOT_EXECUTED, NO_OUTPUT, NO_TEXT, BEGINNING] {
        assert!(!text::is_blank(filler) && matches!(text::clean(filler), Cow::Borrowed(_)));
    }
}

/// A lone surrogate is U+FFFD by the time it is a text (`text::parse_json`); what cleaning leaves nothing of is blank.
#[test]
fn br_sanitise_to_empty() {
    let replaced = [Message::user("\u{fffd}")];
    assert_eq!(repaired(&replaced), replaced);
    let tags = Message::user("\u{e0041}\u{e0042}\0");
    assert_eq!(repaired(&[tags, Message::assistant("a"), Message::user("b")])[0], Message::user(BEGINNING));
}

#[test]
fn br_reasoning_signature_only() {
    let history = [Message::user("go"), assistant([signed(""), Block::text("Hi")]), Message::user("next")];
    assert_eq!(check(&history), []);
    assert_eq!(repaired(&history), history);
    let alone = repaired(&[Message::user("go"), assistant([signed("")]), Message::user("next")]);
    assert_eq!(alone[1], assistant([signed(""), Block::text(NO_TEXT)]));
    let unsigned = Block::Reasoning(Reasoning::default());
    assert_eq!(repaired(&[Message::user("go"), assistant([unsigned, Block::text("Hi")])])[1], Message::assistant("Hi"));
}

/// Case br-reasoning-dropped: the signed block stays, byte for byte, where it was.
#[test]
fn br_reasoning_dropped() {
    let history = [Message::user(" go\0"), assistant([signed("pl\0an"), call("t1")]), user([result("t1")])];
    assert_eq!(repaired(&history)[1..], history[1..]);
}

#[test]
fn br_tool_name_dot() {
    let use_of = |name: &str| Block::ToolUse { id: "t1".to_owned(), name: name.to_owned(), input: json!({}) };
    let history = [Message::user("go"), assistant([use_of("debug.state.get_full")]), user([result("t1")])];
    assert_eq!(check(&history), [Problem::BadToolName { message: 1 }]);
    assert_eq!(repaired(&history)[1], assistant([use_of(&alias("debug.state.get_full"))]));
}

#[test]
fn br_doc_name_poison() {
    let file = |name: &str| Block::File(Media { name: Some(name.to_owned()), ..Media::default() });
    let history = [user([file("slack-file://F0XXXX")])];
    assert_eq!(check(&history), [Problem::BadFileName { message: 0 }]);
    assert_eq!(repaired(&history), [user([file("slack-file-F0XXXX")])]);
}

/// Bedrock refuses two documents of one name anywhere in a request, and those without a name are two of one name.
#[test]
fn files_have_names_of_their_own() {
    let file = |name: Option<&str>| Block::File(Media { name: name.map(str::to_owned), ..Media::default() });
    let tool = |file| Block::ToolResult { tool_use_id: "t1".to_owned(), content: vec![file], is_error: false };
    let history = [
        user([file(Some("report")), file(None), file(Some("Report"))]),
        assistant([call("t1")]),
        user([tool(file(Some("report"))), file(None)]),
    ];
    assert!(check(&history).contains(&Problem::DuplicateFileName { message: 2 }));
    let healed = repaired(&history);
    assert_eq!(healed[0], user([file(Some("report")), file(Some("document")), file(Some("Report-2"))]));
    assert_eq!(healed[2], user([tool(file(Some("report-3"))), file(Some("document-2"))]));
}

#[test]
fn mem_orphan_kept() {
    let healed = repaired(&[Message::user("go"), assistant([call("t9")])]);
    assert_eq!(healed[2], user([interrupted("t9")]));
    assert_eq!(check_request(&healed), []);
    assert_eq!(repaired(&[assistant([call("t9")])])[0], Message::user(BEGINNING));
}

/// Case mem-stale-marker: whatever stands between a call and its result is told behind the result.
#[test]
fn mem_stale_marker() {
    let as_user = [assistant([call("t1")]), Message::user("[summary]"), user([result("t1")])];
    assert_eq!(repaired(&as_user)[1..], [assistant([call("t1")]), user([result("t1"), Block::text("[summary]")])]);
    let as_turn = [
        Message::user("go"),
        assistant([call("t1")]),
        Message::user("[summary]"),
        Message::assistant("noted"),
        user([result("t1")]),
        Message::assistant("done"),
    ];
    assert_eq!(
        repaired(&as_turn)[1..],
        [
            assistant([call("t1")]),
            user([result("t1"), Block::text("[summary]")]),
            assistant([Block::text("noted"), Block::text("done")]),
        ]
    );
}

/// Case un-session-bricked: a tool output that was cut inside a character, as old items hold it, is text like any other.
#[test]
fn un_session_bricked() {
    let stored = br#"[{"role":"user","content":[{"type":"text","text":"go"}]},
        {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"lookup","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[
            {"type":"text","text":"\ud83d\ude00\ud83d\ude00\ud83d\ude00\ud83d"}]}]}]"#;
    let history: Vec<Message> = text::from_json(stored).expect("loads");
    assert_eq!(repaired(&history), history);
    assert_eq!(history[2].content, [answer("t1", "😀😀😀\u{fffd}")]);
}

#[test]
fn odd_arguments_and_contents_are_mended() {
    let odd = |input| Block::ToolUse { id: "t1".to_owned(), name: "lookup".to_owned(), input };
    for (input, mended) in [(json!("{\"a"), json!({"input": "{\"a"})), (Value::Null, json!({}))] {
        let healed = repaired(&[Message::user("go"), assistant([odd(input)]), user([result("t1")])]);
        assert_eq!(healed[1], assistant([odd(mended)]));
    }
    let empty = Block::ToolResult { tool_use_id: "t1".to_owned(), content: vec![Block::Unknown], is_error: false };
    let healed = repaired(&[Message::user("go"), assistant([call("t1")]), user([Block::text("later"), empty])]);
    assert_eq!(healed[2], user([answer("t1", NO_OUTPUT), Block::text("later")]));
}

#[test]
fn problems_and_changes_quote_nothing() {
    let history = [assistant([call("sécret"), Block::text("secret\0")]), assistant([Block::text(" ")])];
    for words in
        check(&history).iter().map(Problem::to_string).chain(repair(&history).changes.iter().map(Change::to_string))
    {
        assert!(words.is_ascii() && !words.contains("secret"), "{words}");
    }
}

fn any_block(depth: u32) -> BoxedStrategy<Block> {
    let words = prop::sample::select(vec!["hi", "", " ", "a\0b", "\u{e0041}", "\u{200b}", "😀"]);
    let ids = prop::sample::select(vec!["t1", "t2", "t3", "", "a b"]);
    let media = prop::sample::select(vec![None, Some("a.pdf"), Some("ok")])
        .prop_map(|name| Media { name: name.map(str::to_owned), ..Media::default() });
    let reasoning = (words.clone(), prop::option::of(Just("s".to_owned()))).prop_map(|(text, signature)| {
        Block::Reasoning(Reasoning { text: text.to_owned(), signature, ..Reasoning::default() })
    });
    let inputs = prop::sample::select(vec![json!({}), json!(null), json!("x")]);
    let names = prop::sample::select(vec!["lookup", "a.b", ""]);
    let calls = (ids.clone(), names, inputs).prop_map(|(id, name, input)| Block::ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
        input,
    });
    let leaf = prop_oneof![
        3 => words.prop_map(Block::text),
        1 => media.clone().prop_map(Block::File),
        1 => media.prop_map(Block::Image),
        1 => reasoning,
        1 => Just(Block::Unknown),
        4 => calls,
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let results = (ids, prop::collection::vec(any_block(depth - 1), 0..3), any::<bool>())
        .prop_map(|(id, content, is_error)| Block::ToolResult { tool_use_id: id.to_owned(), content, is_error });
    prop_oneof![3 => leaf, 2 => results].boxed()
}

fn any_history() -> impl Strategy<Value = Vec<Message>> {
    let message = (any::<bool>(), prop::collection::vec(any_block(1), 0..4))
        .prop_map(|(is_user, content)| Message::new(if is_user { Role::User } else { Role::Assistant }, content));
    prop::collection::vec(message, 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(768))]

    #[test]
    fn any_history_becomes_valid_and_stays_so(history in any_history()) {
        let healed = repair(&history);
        prop_assert_eq!(check(&healed.messages), vec![]);
        prop_assert_eq!(healed.changes.is_empty(), healed.messages == history);
        prop_assert_eq!(healed.changes.is_empty(), check(&history).is_empty());
        prop_assert_eq!(repair(&healed.messages).messages, healed.messages);
    }

    #[test]
    fn no_visible_text_of_a_message_is_lost(history in any_history()) {
        let texts = |messages: &[Message]| -> Vec<String> {
            let mut texts: Vec<String> = messages
                .iter()
                .flat_map(|message| &message.content)
                .filter_map(|block| match block {
                    Block::Text { text } => Some(text::clean(text).into_owned()),
                    _ => None,
                })
                .filter(|text| !text::is_blank(text) && ![NO_TEXT, BEGINNING].contains(&text.as_str()))
                .collect();
            texts.sort();
            texts
        };
        prop_assert_eq!(texts(&repair(&history).messages), texts(&history));
    }
}
