//! Files that are read, and files that are refused: with file, line, field and what is allowed.

use std::time::Duration;

use serde_json::json;
use turnlock_domain::event::Channel;
use turnlock_domain::message::{Block, Message, Role};

use super::*;
use crate::faults::{Failure, Fault, Operation, Port, Rule, Span};

fn parse(source: &str) -> Result<Script, ScriptError> {
    Script::parse("story.jsonl", source, &Feature::ALL)
}

fn line(source: &str) -> Line {
    parse(source).unwrap().lines.remove(0).line
}

#[test]
fn every_line_of_the_format_is_read() {
    let source = include_str!("fixtures/every_line.jsonl");
    let script = parse(source).unwrap();
    assert_eq!(script.header.case.as_deref(), Some("every-line"));
    let keys: Vec<_> = script.lines.iter().map(|numbered| numbered.line.key()).collect();
    let mut distinct = keys.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 17, "all but the header: {keys:?}");
}

#[test]
fn blank_lines_and_comments_are_skipped_and_lines_keep_their_numbers() {
    let script = parse("# a story\n\n  {\"run\": true}\n\t\n{\"advance\": 1.5}").unwrap();
    let expected = [(3, Line::Run), (5, Line::Advance(Duration::from_millis(1_500)))];
    assert_eq!(script.lines, expected.map(|(number, line)| Numbered { number, line }));
}

#[test]
fn a_delivery_is_a_request_or_a_repetition() {
    let Line::Deliver(list) = line(
        r#"{"deliver": [{"route": "/webhook/main", "headers": {"webhook-id": "m1"}, "body_text": {"repeat": "x", "times": 3}, "sign": {"age": 600}},
            {"again": 0, "sign": {"secret": "other"}}, {"route": "/healthz", "method": "GET", "sign": false},
            {"route": "/telegram/main", "body": {"b": 1, "a": 2}}, {"route": "/slack/main", "body_base64": "AP8="}]}"#
            .replace('\n', " ")
            .as_str(),
    ) else {
        panic!("deliver")
    };
    let bodies: Vec<_> = list
        .iter()
        .map(|deliver| match &deliver.request {
            Request::New { body, .. } => format!("{:?}", body.bytes()),
            Request::Again(index) => format!("again {index}"),
        })
        .collect();
    assert_eq!(bodies[..3], ["b\"xxx\"", "again 0", "b\"\""]);
    assert_eq!(bodies[4], "b\"\\0\\xff\"");
    let signs: Vec<_> = list.into_iter().map(|deliver| deliver.sign).collect();
    let expected = [Sign::Aged(600.0), Sign::With("other".into()), Sign::Unsigned, Sign::Configured, Sign::Configured];
    assert_eq!(signs, expected);
}

#[test]
fn faults_are_rules() {
    let rule = |operation: &str, nth, span, fault| Rule {
        port: Port::Store,
        operation: Operation::from_text(operation),
        nth,
        span,
        fault,
    };
    let kill = rule("*", 5, Span::Times(1), Fault::Kill { after: true });
    assert_eq!(line(r#"{"kill": {"store": "*", "nth": 5, "after": true}}"#), Line::Kill(kill));
    let reasons = vec!["None".to_owned(), "TransactionConflict".to_owned()];
    let conflict = Fault::Fail { failure: Failure::Conflict { reasons }, delay: Duration::ZERO };
    let fault = rule("TransactWriteItems", 1, Span::For(Duration::from_secs(30)), conflict);
    assert_eq!(
        line(
            r#"{"fault": {"store": "TransactWriteItems", "for": 30, "error": "conflict", "reasons": ["None", "TransactionConflict"]}}"#
        ),
        Line::Fault(fault)
    );
    let freeze = rule("Query", 1, Span::Times(1), Fault::Freeze(Duration::from_secs(300)));
    assert_eq!(line(r#"{"freeze": {"store": "Query", "for": 300}}"#), Line::Freeze(freeze));
}

#[test]
fn a_session_may_be_broken_but_not_misspelt() {
    let Line::Session(session) = line(
        r#"{"session": {"key": "telegram:1", "messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "pay", "input": {}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "gone", "content": "done"}]}, {"role": "user", "content": []}]}}"#,
    ) else {
        panic!("session")
    };
    let result = Block::ToolResult {
        tool_use_id: "gone".into(),
        content: vec![Block::Text { text: "done".into() }],
        is_error: false,
    };
    assert_eq!(session.messages[1..], [Message::new(Role::User, vec![result]), Message::new(Role::User, vec![])]);
}

#[test]
fn a_message_names_chat_and_sender_by_number_or_text() {
    let Line::Say(say) = line(r#"{"say": {"channel": "telegram", "chat": -100, "from": "7", "text": ["a", "b"]}}"#)
    else {
        panic!("say")
    };
    assert_eq!((say.chat.as_str(), say.from.as_deref(), say.text.0.as_str()), ("-100", Some("7"), "ab"));
    assert_eq!((say.channel, say.account.as_str()), (Channel::Telegram, "main"));
}

#[test]
fn what_is_not_known_is_refused_with_what_is_allowed() {
    let table = [
        ("{", "story.jsonl:1: not one JSON object: EOF while parsing an object at line 1 column 1"),
        (
            "[]",
            "story.jsonl:1: not one JSON object: invalid type: sequence, expected one JSON object a line at line 1 column 0",
        ),
        ("{}", "story.jsonl:1: an empty object; the first key is one of `replay`, `config`,"),
        ("{\"wait\": 3}", "story.jsonl:1: wait: no line starts with this key; allowed: `replay`, `config`,"),
        ("{\"run\": true, \"then\": 1}", "story.jsonl:1: then: nothing may stand beside `run`"),
        ("{\"run\": false}", "story.jsonl:1: run: allowed: true"),
        ("{\"run\": true}\n{\"replay\": 1}", "story.jsonl:2: replay: may only stand in the first line"),
        ("{\"replay\": 2}", "story.jsonl:1: replay: version 2 is not known; allowed: 1"),
        (
            "{\"replay\": 1, \"wire\": \"soap\"}",
            "story.jsonl:1: wire: unknown variant `soap`, expected one of `neutral`, `bedrock`, `openai`",
        ),
        ("{\"replay\": 1, \"now\": \"soon\"}", "story.jsonl:1: now: "),
        ("{\"advance\": -1}", "story.jsonl:1: advance: -1 is no time; allowed: seconds from 0 on"),
        (
            "{\"deliver\": {\"rout\": \"/x\"}}",
            "story.jsonl:1: deliver.rout: unknown field `rout`, expected one of `route`, `method`,",
        ),
        (
            "{\"deliver\": [{\"route\": \"/x\", \"sign\": 3}]}",
            "story.jsonl:1: deliver[0].sign: 3 is no signature; allowed: true, false,",
        ),
        (
            "{\"deliver\": {\"again\": 0, \"body\": {}}}",
            "story.jsonl:1: deliver.again: allowed beside it: `sign`, `headers`",
        ),
        (
            "{\"deliver\": {\"route\": \"/x\", \"body\": 1, \"body_text\": \"\"}}",
            "story.jsonl:1: deliver: allowed: one of `body`,",
        ),
        ("{\"deliver\": {}}", "story.jsonl:1: deliver: `route` is missing, or `again`"),
        (
            "{\"say\": {\"channel\": \"cron\", \"chat\": 1, \"text\": \"x\"}}",
            "story.jsonl:1: say.channel: nobody talks there; allowed: telegram,",
        ),
        (
            "{\"say\": {\"channel\": \"telegram\", \"chat\": 1, \"text\": 5}}",
            "story.jsonl:1: say.text: 5 is no text; allowed: a text,",
        ),
        (
            "{\"tap\": {\"channel\": \"gateway\", \"chat\": 1, \"button\": \"Allow\"}}",
            "story.jsonl:1: tap.channel: there are no buttons there; allowed: telegram, slack",
        ),
        (
            "{\"tap\": {\"channel\": \"slack\", \"chat\": 1, \"button\": \"Allow\", \"times\": 0}}",
            "story.jsonl:1: tap.times: 0 is no number of presses; allowed: 1 to 1000",
        ),
        ("{\"kill\": {\"nth\": 1}}", "story.jsonl:1: kill: allowed: exactly one of `store`,"),
        (
            "{\"fault\": {\"queue\": \"send\", \"error\": \"conflict\"}}",
            "story.jsonl:1: fault: `conflict` cannot happen at the queue; allowed: unreachable,",
        ),
        (
            "{\"fault\": {\"store\": \"*\", \"error\": \"slow\", \"delay\": 1, \"times\": 1, \"for\": 1}}",
            "story.jsonl:1: fault: allowed: one of `times` and `for`",
        ),
        (
            "{\"platform\": {\"method\": \"sendMessage\", \"times\": 0}}",
            "story.jsonl:1: platform.times: 0 is no number of calls;",
        ),
        ("{\"platform\": {\"where\": {\"chat_id\": 1}}}", "story.jsonl:1: platform.where.chat_id: not a JSON pointer;"),
        (
            "{\"session\": {\"key\": \"k\", \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"txt\"}]}]}}",
            "story.jsonl:1: session.messages[0].content: `txt` is no type of a block; allowed: `text`,",
        ),
        (
            "{\"model\": {\"error\": \"flood\"}}",
            "story.jsonl:1: model.error: unknown variant `flood`, expected one of `throttled`,",
        ),
        ("{\"expect\": {\"chats\": 1}}", "story.jsonl:1: expect.chats: not a JSON pointer;"),
        (
            "{\"tool\": {\"name\": \"pay\", \"result\": \"ok\", \"error\": \"no\"}}",
            "story.jsonl:1: tool.error: not beside `result`",
        ),
    ];
    for (source, expected) in table {
        let message = parse(source).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{source}\n  want {expected}\n  got  {message}");
    }
}

#[test]
fn a_line_whose_feature_is_missing_says_so() {
    let source = r#"{"tap": {"channel": "telegram", "chat": 1, "button": "Allow"}}"#;
    let error = Script::parse("story.jsonl", source, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "story.jsonl:1: tap: this version has no buttons and approvals yet, which the line needs"
    );
    let source = r#"{"platform": {"method": "file", "file": "DOC1", "body": {"a": 1}}}"#;
    assert!(Script::parse("story.jsonl", source, &[]).is_err());
    let Line::Platform(PlatformLine::File { file, content, .. }) = line(source) else { panic!("file") };
    assert_eq!(
        (file.as_str(), serde_json::from_slice::<serde_json::Value>(&content).unwrap()),
        ("DOC1", json!({ "a": 1 }))
    );
}
