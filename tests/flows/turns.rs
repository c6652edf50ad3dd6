//! How a turn ends when its model or its tools do not do what one would wish: played as replays, seen as the user sees it.

use serde_json::{Value, json};
use turnlock_replay::script::Script;
use turnlock_replay::{FEATURES, play};

/// Plays the lines; the whole output.
fn played(lines: &[Value]) -> Value {
    let source: Vec<String> = lines.iter().map(Value::to_string).collect();
    let script = Script::parse("turns", &source.join("\n"), FEATURES).unwrap();
    let played = play(&script, 3).unwrap();
    assert_eq!(played.faults_left, 0);
    assert!(played.failures.is_empty(), "{:?}", played.failures);
    let output = played.output.to_json().unwrap();
    for request in output["model_requests"].as_array().unwrap() {
        assert_eq!(request["problems"], json!([]));
    }
    assert_eq!(output["unsettled"], json!([]));
    output
}

fn say(text: &str) -> Value {
    json!({"say": {"channel": "telegram", "chat": 1_000_001, "text": text}})
}

fn texts(output: &Value) -> Vec<String> {
    let messages = output["chats"]["telegram:main:1000001"]["messages"].as_array().cloned().unwrap_or_default();
    messages.iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

fn history(output: &Value) -> Vec<String> {
    let messages = output["sessions"][0]["messages"].as_array().cloned().unwrap_or_default();
    let line = |message: &Value| format!("{}: {}", message["role"].as_str().unwrap(), message["content"]);
    messages.iter().map(line).collect()
}

/// How often the model was asked by turns, jobs excepted.
fn requests(output: &Value) -> usize {
    output["model_requests"].as_array().unwrap().iter().filter(|request| request["for"] == json!("turn")).count()
}

const SORRY: &str = "Sorry, something went wrong and I could not answer this message. Please send it again.";

/// Case sqs-fifo-poison: after five attempts, of three tries each, the turn is recorded as failed and answered; the next
/// message runs on a well-formed history.
#[test]
fn sqs_fifo_poison_a_message_that_always_fails_is_answered_and_the_next_one_runs() {
    let output = played(&[
        json!({"model": {"error": "overloaded", "times": 15}}),
        json!({"model": {"chunks": ["fine"]}}),
        say("poison"),
        say("next question"),
    ]);
    assert_eq!(texts(&output), [SORRY, "fine"]);
    assert_eq!(requests(&output), 16);
    assert_eq!(output["events"][0]["outcome"], json!("failed"));
    assert_eq!(output["events"][0]["reason"], json!("too_many_attempts"));
    assert_eq!(history(&output).len(), 4);
    assert_eq!(output["dead"], json!([]));
}

#[test]
fn throttling_is_no_attempt_and_ends_with_max_wait() {
    let output = played(&[
        json!({"config": {"agent": {"limits": {"max_wait": "35m"}}}}),
        json!({"model": {"error": "throttled", "times": 999}}),
        say("hi"),
    ]);
    assert_eq!(texts(&output), [SORRY]);
    assert_eq!(output["events"][0]["reason"], json!("too_old"));
    assert!(requests(&output) > 10, "{}", requests(&output));
}

#[test]
fn a_permanent_refusal_is_answered_at_once() {
    let output = played(&[json!({"model": {"error": "invalid"}}), say("hi")]);
    let refused =
        "The language model refused this message, so I have no answer. Whoever runs me finds the reason in my log.";
    assert_eq!(texts(&output), [refused]);
    assert_eq!((requests(&output), &output["events"][0]["reason"]), (1, &json!("model_refused")));
}

#[test]
fn a_stream_that_breaks_off_is_no_answer_and_is_tried_again() {
    for error in ["mid_stream", "eof"] {
        let output = played(&[
            json!({"model": {"chunks": ["Hel"], "error": error}}),
            json!({"model": {"chunks": ["Hello."]}}),
            say("hi"),
        ]);
        assert_eq!(texts(&output), ["Hello."]);
        assert_eq!(history(&output).len(), 2);
    }
}

#[test]
fn a_model_that_hangs_is_given_up_within_the_turns_time() {
    let output = played(&[json!({"model": {"error": "hang"}}), json!({"model": {"chunks": ["late"]}}), say("hi")]);
    assert_eq!(texts(&output), ["late"]);
    assert!(output["elapsed"].as_f64().unwrap() < 300.0);
}

/// Case rs-unclosed-all: nothing visible is no answer: one more try, then an honest sentence, never an empty message.
#[test]
fn rs_unclosed_all_an_empty_answer_is_retried_once_then_said_honestly() {
    let thinking = json!({"model": {"chunks": ["<think>internal plan without end"], "times": 2}});
    let output = played(&[thinking, say("hi")]);
    assert_eq!(texts(&output), ["I thought about this but did not come to an answer. Could you put it another way?"]);
    assert_eq!((requests(&output), &output["events"][0]["reason"]), (2, &json!("no_answer")));
    assert!(!output.to_string().contains("internal plan"));
    let output =
        played(&[json!({"model": {"chunks": ["<think>a</think>"]}}), json!({"model": {"chunks": ["b"]}}), say("hi")]);
    assert_eq!(texts(&output), ["b"]);
}

#[test]
fn partial_calls_of_an_answer_that_was_cut_are_never_run_or_stored() {
    let output = played(&[
        json!({"tool": {"name": "pay", "risk": "write"}}),
        json!({"model": {"chunks": ["I will"], "tools": [{"name": "pay", "input": {"amount": 1}}], "stop": "max_tokens"}}),
        say("pay"),
    ]);
    assert_eq!(texts(&output), ["I will\n\n(This answer reached its length limit. Ask me to go on.)"]);
    assert_eq!(output["tool_runs"], json!([]));
    assert!(!output["sessions"].to_string().contains("tool_use"));
}

/// Case br-partial-json-run: arguments that do not parse never reach the tool; the model is told.
#[test]
fn br_partial_json_run_unreadable_arguments_never_run() {
    let output = played(&[
        json!({"tool": {"name": "delete_rows", "risk": "dangerous"}}),
        json!({"model": {"tools": [{"name": "delete_rows", "input_chunks": ["{\"table\":\"a", "\",\"where\":"]}]}}),
        json!({"model": {"chunks": ["I could not."]}}),
        say("delete"),
    ]);
    assert_eq!(texts(&output), ["I could not."]);
    let runs = output["tool_runs"].as_array().unwrap();
    assert!(runs.iter().all(|run| run["outcome"] == json!("error") && run["input"].is_null()), "{runs:?}");
}

#[test]
fn the_fourth_identical_call_is_refused() {
    let output = played(&[
        json!({"tool": {"name": "look", "risk": "read", "keyed": true, "result": "nothing"}}),
        json!({"model": {"tools": [{"name": "look", "input": {"q": 1}}], "times": 4}}),
        json!({"model": {"chunks": ["I give up."]}}),
        say("look"),
    ]);
    assert_eq!(texts(&output), ["I give up."]);
    let outcomes: Vec<_> =
        output["tool_runs"].as_array().unwrap().iter().map(|run| run["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["ok", "ok", "ok", "refused"]);
}

#[test]
fn a_turn_takes_forty_steps_at_most() {
    let mut lines = vec![json!({"tool": {"name": "look", "risk": "read", "keyed": true, "result": "more"}})];
    for n in 0..45 {
        lines.push(json!({"model": {"tools": [{"name": "look", "input": {"n": n}}]}}));
    }
    lines.push(say("look"));
    let output = played(&lines);
    assert_eq!(output["events"][0]["reason"], json!("too_many_steps"));
    assert_eq!(requests(&output), 40);
    assert_eq!(
        texts(&output),
        ["This took more steps than I am allowed, so I stopped. Could you ask for a smaller piece?"]
    );
    assert_eq!(history(&output).len(), 82, "what was done stays in the history");
}

/// Case un-session-bricked: a result is cut on a grapheme, and what the model reads is whole.
#[test]
fn un_session_bricked_a_long_result_is_cut_on_a_grapheme() {
    let output = played(&[
        json!({"tool": {"name": "read", "risk": "read", "result": {"repeat": "👩‍👩‍👧", "times": 9000}}}),
        json!({"model": {"tools": [{"name": "read", "input": {}}]}}),
        json!({"model": {"chunks": ["long"]}}),
        say("read"),
    ]);
    let result = &output["sessions"][0]["messages"][2]["content"][0]["content"];
    let text: String = result.as_array().unwrap().iter().filter_map(|block| block["text"].as_str()).collect();
    assert!(text.chars().count() < 16_200, "{}", text.chars().count());
    assert!(text.starts_with("👩‍👩‍👧👩‍👩‍👧") && !text.contains('\u{FFFD}'));
    let families = text.matches("👩‍👩‍👧").count();
    assert_eq!(families, 3200, "16,000 characters of five each");
}

/// A worker that died after a step: the successor takes the results there are and asks no tool again.
#[test]
fn a_resumed_turn_repeats_nothing() {
    let output = played(&[
        json!({"tool": {"name": "pay", "risk": "write", "result": "paid"}}),
        json!({"model": {"tools": [{"name": "pay", "input": {"amount": 3}}]}}),
        json!({"model": {"chunks": ["slow", {"wait": 5}]}}),
        json!({"model": {"chunks": ["Done."]}}),
        json!({"kill": {"store": "TransactWriteItems", "nth": 2, "after": false}}),
        say("pay"),
    ]);
    assert_eq!(texts(&output), ["Done."]);
    assert_eq!(output["tool_runs"].as_array().unwrap().len(), 1);
    assert_eq!(output["sessions"][0]["messages"].as_array().unwrap().len(), 4);
    assert_eq!(output["sessions"][0]["fence"], json!(2));
}

/// Invariant 6: a stop reaches a running stream within 2 s; what there was is committed with the mark, and what is sent
/// later is not touched.
#[test]
fn invariant_6_a_stop_reaches_a_stream_and_nothing_later() {
    let output = played(&[
        json!({"model": {"chunks": ["One", {"wait": 60}, " two."]}}),
        json!({"model": {"chunks": ["again"]}}),
        say("count"),
        say("queued"),
        json!({"advance": 5}),
        say("/stop"),
        say("later"),
        json!({"advance": 2.5}),
        json!({"expect": {"/chats/telegram:main:1000001/messages/#": 4}}),
    ]);
    // The first one's message stands where its preview was.
    assert_eq!(texts(&output), ["One\n\n(stopped)", "Stopping.", "(stopped)", "again"]);
    assert_eq!(requests(&output), 2, "the queued one asks no model");
}

/// What a streamed turn costs beside a plain one, on Telegram: each frame is a message to send and to hide, a read of the
/// chat and of the ledger, its slot, a write before and after the call, and in one process the copy that API clients can
/// read (on AWS there is none); a stream looks for a stop every two seconds. On Slack an edit is a write more, and the
/// final's is a read more.
#[test]
fn what_a_streamed_turn_costs() {
    let cost = |output: &Value, port: &str| output["requests"][port]["by_operation"].clone();
    let plain = played(&[json!({"model": {"chunks": ["One ", "two ", "three."]}}), say("count")]);
    let store =
        json!({"BatchGetItem": 1, "GetItem": 2, "PutItem": 2, "Query": 1, "TransactWriteItems": 1, "UpdateItem": 3});
    assert_eq!(cost(&plain, "store"), store);
    assert_eq!(cost(&plain, "queue"), json!({"send": 2, "set_visibility": 2, "waiting": 1}));
    assert_eq!(cost(&plain, "platform"), json!({"sendMessage": 1}));
    let chunks = json!(["One ", {"wait": 3}, "two ", {"wait": 3}, "three."]);
    let streamed = played(&[json!({"model": {"chunks": chunks}}), say("count")]);
    let (frames, looks) = (2, 3);
    let store = json!({"BatchGetItem": 1, "GetItem": 2 + 2 * frames + looks, "PutItem": 2 + 2 * frames, "Query": 1,
        "TransactWriteItems": 1, "UpdateItem": 3 + 2 * frames});
    assert_eq!(cost(&streamed, "store"), store);
    assert_eq!(cost(&streamed, "queue"), json!({"send": 2 + frames, "set_visibility": 2 + frames, "waiting": 1}));
    assert_eq!(cost(&streamed, "platform"), json!({"sendMessage": 1, "editMessageText": 2}));
}

/// What a turn without a text costs beside a plain one, on Telegram: each sign of work is a message to send and to hide, a
/// read of the chat and of the ledger (a sign that comes behind its final would show somebody typing who is not) and a call.
/// Nothing is written; a stream looks for a stop every two seconds.
#[test]
fn what_a_sign_of_work_costs() {
    let cost = |output: &Value, port: &str| output["requests"][port]["by_operation"].clone();
    let slow = played(&[json!({"model": {"chunks": [{"wait": 11}, "done."]}}), say("think")]);
    let (signs, looks) = (3, 5);
    let store = json!({"BatchGetItem": 1, "GetItem": 2 + 2 * signs + looks, "PutItem": 2, "Query": 1,
        "TransactWriteItems": 1, "UpdateItem": 3});
    assert_eq!(cost(&slow, "store"), store);
    assert_eq!(cost(&slow, "queue"), json!({"send": 2 + signs, "set_visibility": 2 + signs, "waiting": 1}));
    assert_eq!(cost(&slow, "platform"), json!({"sendChatAction": signs, "sendMessage": 1}));
}

#[test]
fn an_intro_is_joined_to_the_first_reply_only() {
    let output =
        played(&[json!({"config": {"agent": {"intro": {"telegram": "Hi, I am {name}."}}}}), say("one"), say("two")]);
    assert_eq!(texts(&output), ["Hi, I am Echo.\n\none", "two"]);
    assert!(history(&output)[1].contains("Hi, I am Echo."));
}

#[test]
fn reasoning_goes_back_to_its_model_and_to_nobody_else() {
    let output = played(&[
        json!({"tool": {"name": "look", "risk": "read", "result": "x"}}),
        json!({"model": {"chunks": [{"reasoning": "secret plan", "signature": "c2ln"}], "tools": [{"name": "look", "input": {}}]}}),
        json!({"model": {"chunks": ["done"]}}),
        say("go"),
    ]);
    assert_eq!(texts(&output), ["done"]);
    let second = &output["model_requests"][1]["request"]["messages"];
    assert_eq!(second[1]["content"][0]["signature"], json!("c2ln"));
    for place in ["chats", "logs", "platform_calls", "observed"] {
        assert!(!output[place].to_string().contains("secret plan"), "{place}");
    }
}

/// A turn that gets somewhere is not given up for the failures in between: attempts count receives without progress.
#[test]
fn a_step_between_failures_sets_the_attempts_back() {
    let mut lines = vec![json!({"tool": {"name": "look", "risk": "read", "result": "more"}})];
    for n in 0..7 {
        lines.push(json!({"model": {"tools": [{"name": "look", "input": {"n": n}}]}}));
        lines.push(json!({"model": {"error": "overloaded", "times": 3}}));
    }
    lines.extend([json!({"model": {"chunks": ["Found."]}}), say("look")]);
    let output = played(&lines);
    assert_eq!(texts(&output), ["Found."]);
    assert_eq!(output["tool_runs"].as_array().unwrap().len(), 7, "no call was made twice");
    assert_eq!(output["sessions"][0]["fence"], json!(8));
}

/// Arguments that could not be read never run, also when a successor finds the call in the journal.
#[test]
fn unreadable_arguments_never_run_after_a_crash_either() {
    let output = played(&[
        json!({"tool": {"name": "note", "risk": "write", "keyed": true}}),
        json!({"model": {"tools": [{"name": "note", "input_chunks": ["{\"text\":\"a"]}]}}),
        json!({"model": {"chunks": ["I could not."]}}),
        json!({"kill": {"store": "TransactWriteItems", "nth": 1, "after": true}}),
        say("note"),
    ]);
    assert_eq!(texts(&output), ["I could not."]);
    let runs = output["tool_runs"].as_array().unwrap();
    assert!(runs.iter().all(|run| run["outcome"] == json!("error") && run["input"].is_null()), "{runs:?}");
}

/// An outage of the table is no fault of the message: it is answered when the table is back.
#[test]
fn an_outage_of_the_table_gives_up_no_message() {
    let output = played(&[
        say("hi"),
        json!({"fault": {"store": "*", "error": "unreachable", "for": 900}}),
        json!({"run": true}),
    ]);
    assert_eq!(texts(&output), ["hi"]);
    assert_eq!(output["events"][0]["outcome"], json!("committed"));
}
