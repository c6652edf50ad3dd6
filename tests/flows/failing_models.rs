//! Models that are busy, down or cut off: the next one answers, or the message waits; and what a day may cost.

use serde_json::{Value, json};

use crate::kit::{advance, column, played, played_to, run, say, says, texts};

/// Two models in their order of preference.
fn two_models() -> Value {
    let model = |name: &str| {
        json!({"provider": "scripted", "model": name, "capabilities": ["tools"],
        "price": {"input": 1.0, "output": 2.0}})
    };
    json!({"config": {"models": [model("first"), model("second")]}})
}

/// The first model fails before anything was shown, the second one answers in the same turn.
#[test]
fn the_next_model_answers_where_one_fails() {
    for error in ["throttled", "overloaded", "eof"] {
        let output = played(&[two_models(), json!({"model": {"error": error, "times": 1}}), says("Hello."), say("hi")]);
        assert_eq!(texts(&output), ["Hello."], "{error}");
        assert_eq!(output["events"][0]["attempts"], json!(1), "{error}");
    }
}

/// What somebody has seen the beginning of is not gone on with by another model in the same turn: the preview says that it
/// broke off, and the retry writes into the same message.
#[test]
fn a_preview_that_broke_off_is_marked_and_becomes_the_answer() {
    let lines = [
        two_models(),
        json!({"model": {"chunks": ["The first half", {"wait": 3}, " and more"], "error": "mid_stream"}}),
        says("The whole answer."),
        say("hi"),
        advance(3.5),
    ];
    let broken = played_to(&[&lines[..], &[json!({"expect": {"/events/0/outcome": null}})]].concat());
    let output = played(&lines);
    assert_eq!(texts(&output), ["The whole answer."], "{broken:#}");
    let posts = output["platform_calls"]["telegram.sendMessage"].as_array().unwrap();
    assert_eq!(posts.len(), 1, "it is the same message");
    let edits = output["platform_calls"]["telegram.editMessageText"].as_array().unwrap();
    let marked = edits.iter().any(|edit| {
        let text = edit["arguments"]["text"].as_str().unwrap();
        text.starts_with("The first half") && text != "The first half and more" && text != "The first half"
    });
    assert!(marked, "{edits:#?}");
    assert_eq!(output["sessions"][0]["messages"].as_array().unwrap().len(), 2);
}

/// All are busy for longer than a turn: the message waits, which is neither a failure nor an attempt, and is answered when
/// there is room.
#[test]
fn throttling_for_longer_than_a_turn_is_waited_out() {
    let mut lines =
        vec![two_models(), json!({"model": {"error": "throttled", "times": 120}}), says("At last."), say("hi")];
    let output = played(&lines);
    assert_eq!((texts(&output), &output["events"][0]["attempts"]), (vec!["At last.".to_owned()], &json!(1)));
    assert!(output["elapsed"].as_f64().unwrap() > 600.0, "{}", output["elapsed"]);
    // Until it is too old.
    lines[1] = json!({"model": {"error": "throttled", "times": 999}});
    let output = played(&lines);
    assert_eq!(column(&output, "events", "reason"), ["too_old"]);
    assert!(output["elapsed"].as_f64().unwrap() < 2.0 * 3600.0, "{}", output["elapsed"]);
}

/// The day's money is spent: no model is asked, and whoever writes is told so. The next day it goes on.
#[test]
fn a_day_that_cost_enough_is_over_and_the_next_one_is_not() {
    let usage = json!({"input_tokens": 1_000_000, "output_tokens": 0});
    let lines = [
        two_models(),
        json!({"config": {"agent": {"limits": {"daily_cost": 1.5}}}}),
        json!({"model": {"chunks": ["One."], "usage": usage}}),
        json!({"model": {"chunks": ["Two."], "usage": usage}}),
        says("Tomorrow."),
        say("one"),
        run(),
        advance(15.0),
        say("two"),
        run(),
        advance(15.0),
        say("three"),
        run(),
        json!({"expect": {"/events/2/reason": "daily_limit", "/model_requests/#": 2}}),
        advance(86_400.0),
        say("four"),
    ];
    let output = played(&lines);
    let shown = texts(&output);
    assert_eq!((shown[0].as_str(), shown[1].as_str(), shown[3].as_str()), ("One.", "Two.", "Tomorrow."), "{shown:?}");
    assert_eq!(column(&output, "events", "outcome"), ["committed", "committed", "failed", "committed"]);
}

/// A stop by API reaches a stream within two seconds, and what there was is kept with the mark.
#[test]
fn a_stop_by_api_reaches_a_stream() {
    let lines = [
        json!({"config": {"approvals": {"approvers": ["gateway:main"]}}}),
        json!({"model": {"chunks": ["One", {"wait": 60}, " two."]}}),
        say("count"),
        advance(5.0),
        json!({"deliver": {"route": "/v1/sessions/telegram:1000001/stop", "method": "POST"}}),
        advance(2.5),
        json!({"expect": {"/events/0/reason": "stopped", "/deliveries/1/status": 202}}),
    ];
    assert_eq!(texts(&played(&lines)), ["One\n\n(stopped)"]);
}

/// A secret that an answer ends in the middle of is no secret yet by its shape, and is not shown all the same.
#[test]
fn a_cut_answer_shows_no_half_of_a_secret() {
    let half = format!("ghp_{}", "a1B2c".repeat(7));
    for stop in ["max_tokens", "content_filtered", "bored"] {
        let cut = json!({"model": {"chunks": [format!("The key is {half}")], "stop": stop}});
        let output = played(&[say("what is the key?"), cut, run()]);
        let shown = texts(&output);
        assert_eq!(shown.len(), 1, "{shown:?}");
        assert!(shown[0].starts_with("The key is") && !output["chats"].to_string().contains("ghp_"), "{shown:?}");
    }
}

/// A queue that takes every visibility and says so to nobody costs time, and no reply.
#[test]
fn a_queue_that_confirms_nothing_for_two_minutes_costs_no_reply() {
    let fault = json!({"fault": {"queue": "set_visibility", "for": 120, "error": "lost_answer"}});
    let output = played(&[say("hi"), fault, run()]);
    assert_eq!((texts(&output).len(), &output["dead"]), (1, &json!([])));
}
