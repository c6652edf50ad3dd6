use serde_json::json;
use turnlock_domain::session::SessionKey;

use super::*;
use crate::request::Purpose;

fn result(id: &str, text: &str) -> Message {
    Message::new(
        Role::User,
        vec![Block::ToolResult { tool_use_id: id.into(), content: vec![Block::text(text)], is_error: false }],
    )
}

fn call(id: &str) -> Message {
    Message::new(Role::Assistant, vec![Block::ToolUse { id: id.into(), name: "f".into(), input: json!({}) }])
}

/// About `tokens` tokens, and never fewer.
fn long(tokens: usize) -> String {
    "word ".repeat(tokens)
}

fn fitted(messages: Vec<Message>, budget: usize) -> Conversation {
    let mut conversation = Conversation::weighed(messages, budget);
    conversation.fit();
    conversation
}

/// What is left, in few words.
fn shape(conversation: &Conversation) -> Vec<String> {
    let block = |block: &Block| match block {
        Block::Text { text } => text.chars().take(6).collect(),
        Block::ToolUse { id, .. } => format!("call {id}"),
        Block::ToolResult { tool_use_id, content, .. } => match &content[..] {
            [Block::Text { text }] if text == LEFT_OUT => format!("no result {tool_use_id}"),
            [Block::Text { text }] if text.contains("[cut here") => format!("part of result {tool_use_id}"),
            _ => format!("result {tool_use_id}"),
        },
        other => panic!("{other:?}"),
    };
    conversation.messages.iter().flat_map(|message| &message.content).map(block).collect()
}

fn two_turns_with_tools() -> Vec<Message> {
    vec![
        Message::user("first"),
        call("a"),
        result("a", &long(1000)),
        call("b"),
        result("b", &long(1000)),
        Message::assistant("done"),
        Message::user("second"),
        call("c"),
        result("c", &long(1000)),
        call("d"),
        result("d", &long(1000)),
    ]
}

/// Old results go first, then old turns, then what is old in the turn at hand; the question and the last step stay.
#[test]
fn what_is_oldest_goes_first() {
    let one = tokens(&long(1000));
    let weight: usize = two_turns_with_tools().iter().map(message).sum();
    let saved = one - tokens(LEFT_OUT);
    let whole = ["first", "call a", "result a", "call b", "result b", "done"];
    let rest = ["second", "call c", "result c", "call d", "result d"];
    let first_pruned = ["first", "call a", "no result a", "call b", "result b", "done"];
    let all_pruned = ["first", "call a", "no result a", "call b", "no result b", "done"];
    let table: [(usize, Vec<&str>); 6] = [
        (weight, [&whole[..], &rest].concat()),
        (weight - 1, [&first_pruned[..], &rest].concat()),
        (weight - saved - 1, [&all_pruned[..], &rest].concat()),
        (weight - 2 * saved - 1, rest.to_vec()),
        (one * 3 / 2, vec!["second", "call c", "no result c", "call d", "result d"]),
        (one / 2 + 200, vec!["second", "call c", "no result c", "call d", "part of result d"]),
    ];
    for (budget, want) in table {
        let got = fitted(two_turns_with_tools(), budget);
        assert_eq!(shape(&got), want, "{budget}");
        assert_eq!(got.weight, got.messages.iter().map(message).sum::<usize>(), "what is weighed is what is left");
        assert!(got.fits(), "{budget}");
    }
    let got = fitted(two_turns_with_tools(), 0);
    assert_eq!(shape(&got)[0], "second", "the question stays, whatever fits");
}

#[test]
fn the_oldest_turns_go_first_and_the_last_turn_stays() {
    let messages = || -> Vec<Message> {
        (0..3).flat_map(|n| [Message::user(format!("{n} {}", long(99))), Message::assistant(long(100))]).collect()
    };
    let turn: usize = messages()[..2].iter().map(message).sum();
    // What goes is a whole number of steps, of an eighth of the budget.
    for (budget, want) in [(3 * turn, 6), (3 * turn - 1, 4), (turn * 11 / 5, 4), (turn * 3 / 2, 2), (turn, 2), (10, 2)]
    {
        let got = fitted(messages(), budget);
        assert_eq!((got.messages.len(), got.left_out), (want, 6 - want), "{budget}");
    }
}

/// A conversation that grows loses its beginning in steps: in between, each request begins like the one before.
#[test]
fn a_growing_conversation_keeps_its_beginning_for_a_while() {
    let mut messages = Vec::new();
    let mut beginnings: Vec<String> = Vec::new();
    for turn in 0..200 {
        messages.extend([Message::user(format!("{turn} {}", long(20))), Message::assistant("ok")]);
        let got = fitted(messages.clone(), 2000);
        assert!(got.fits());
        beginnings.push(got.messages[0].text());
    }
    beginnings.dedup();
    assert!((20..=60).contains(&beginnings.len()), "{} beginnings", beginnings.len());
}

/// What a person says while a turn is under way begins no turn: its question would be left out for it.
#[test]
fn a_turn_is_not_cut_inside() {
    let steered = vec![Message::user("a"), call("t"), result("t", "z"), Message::user("b")];
    assert_eq!(shape(&fitted(steered, 1)), ["a", "call t", "result t", "b"]);
}

#[test]
fn an_oversized_result_says_that_it_was_cut() {
    let mut block = Block::text("é".repeat(RESULT_MAX));
    cut_result(&mut block, RESULT_MAX);
    let Block::Text { text } = block else { panic!("text") };
    assert!(text.ends_with("\n[cut here: 65536 of 131072 bytes left out]"), "{}", &text[text.len() - 60..]);
}

/// After a provider found a request too long half of it is asked for: of the window, or of the request.
#[test]
fn a_tighter_request_is_half_as_large() {
    let mut request = ModelRequest::new(Purpose::Turn, SessionKey::from_text("cli:1"), two_turns_with_tools());
    request.system = "s".into();
    let known = Capabilities { context_tokens: Some(8000), ..Capabilities::default() };
    assert_eq!(budget(&request, &known), Some(6999), "an eighth is the answer's");
    assert_eq!(budget(&request, &Capabilities::default()), None);
    request.tighter = true;
    assert_eq!(budget(&request, &known), Some(3499));
    let weight: usize = request.messages.iter().map(message).sum();
    assert_eq!(budget(&request, &Capabilities::default()), Some(weight.div_ceil(2) - 1));
    (request.tighter, request.max_tokens) = (false, Some(1000));
    assert_eq!(budget(&request, &known), Some(6999));
    request.max_tokens = Some(100_000);
    assert_eq!(budget(&request, &known), Some(3999), "a question needs room, too");
}

#[test]
fn media_weighs_by_what_is_sent_of_it() {
    let media = |url: &str| Media { url: url.into(), name: Some("n".into()), mime_type: String::new() };
    assert_eq!(weight(&Block::Image(media("data:image/png;base64,AAAA"))), FRAME + IMAGE);
    assert!(weight(&Block::Image(media("telegram-file:F"))) < 20);
    let text = format!("data:text/plain;base64,{}", "A".repeat(8000));
    assert!(weight(&Block::File(media(&text))) >= 8000);
    let pdf = format!("data:application/pdf;base64,{}", "A".repeat(8000));
    assert!((2000..3000).contains(&weight(&Block::File(media(&pdf)))));
}
