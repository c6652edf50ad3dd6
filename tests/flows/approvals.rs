//! Calls that wait for a person: who is asked, who may answer and how, and what the model is told.

use serde_json::{Value, json};

use crate::kit::{advance, calls, column, played, played_to, run, say, says, shown, texts};

fn tool(name: &str, policy: &str) -> Value {
    json!({"tool": {"name": name, "risk": "dangerous", "policy": policy, "keyed": false, "result": "paid"}})
}

fn tap(button: &str, from: u64) -> Value {
    json!({"tap": {"channel": "telegram", "chat": 1_000_001, "button": button, "from": from}})
}

/// A turn that waits for somebody to allow `pay`, with what the model says afterwards.
fn parked(more: &[Value]) -> Vec<Value> {
    let asks =
        [tool("pay", "ask"), calls(&[("pay", json!({"amount": 3, "to": "<b>Ann & Bob</b> @here"}))]), says("Done.")];
    [&asks[..], &[say("pay"), run()], more].concat()
}

fn api(method: &str, route: &str, body: Option<Value>) -> Value {
    let mut deliver = json!({"route": route, "method": method});
    if let Some(body) = body {
        deliver["body"] = body;
    }
    json!({"deliver": deliver})
}

/// The id of the approval that the story has asked for: the same every time, as the story is.
fn id(lines: &[Value]) -> String {
    let output = played_to(lines);
    let cards = column(&output, "observed", "event_id");
    let id = cards.iter().find_map(|id| id.as_str()?.split_once(".approval.").map(|(_, id)| id.to_owned()));
    id.unwrap_or_else(|| panic!("an id: {output:#}"))
}

/// What the model read of the call.
fn told(output: &Value) -> String {
    output["sessions"][0]["messages"][2]["content"][0].to_string()
}

#[test]
fn a_card_shows_the_whole_call_and_its_buttons_and_nobody_waits_for_it() {
    let output = played_to(&parked(&[]));
    let card = &output["chats"]["telegram:main:1000001"]["messages"][0];
    let text = card["text"].as_str().unwrap();
    // As it was sent: nothing of it is markup, nobody is called, nothing is cut.
    for whole in ["pay", "\"amount\": 3", "\"to\": \"<b>Ann & Bob</b> @here\""] {
        assert!(text.contains(whole), "{text}");
    }
    assert_eq!(card["buttons"], json!(["Allow", "Deny"]));
    assert_eq!((column(&output, "approvals", "state"), output["tool_runs"].clone()), (vec![json!("open")], json!([])));
    assert_eq!(output["sessions"][0]["locked"], json!(false), "no worker holds it");
    assert_eq!(output["unsettled"].as_array().unwrap().len(), 1);
    assert!(output["unsettled"][0].as_str().unwrap().ends_with("sleeps until a person decides"));
    assert!(output["elapsed"].as_f64().unwrap() < 60.0, "no time passes for it");
    assert_eq!(output["pings"], json!([]));
}

#[test]
fn what_is_allowed_runs_and_the_card_says_by_whom() {
    let output = played(&parked(&[tap("Allow", 1_000_001)]));
    assert_eq!(column(&output, "tool_runs", "outcome"), ["ok"]);
    let shown = texts(&output);
    assert!(shown[0].ends_with("Allowed by telegram:1000001."), "{shown:?}");
    assert_eq!(shown[1..], ["Done."]);
    assert_eq!(output["chats"]["telegram:main:1000001"]["messages"][0]["buttons"], json!([]));
    assert_eq!(
        output["approvals"],
        json!([{"session": "telegram:1000001", "tool": "pay", "state": "allowed",
        "decided_by": "telegram:1000001"}])
    );
    assert_eq!(output["platform_calls"]["telegram.answerCallbackQuery"].as_array().unwrap().len(), 1);
}

/// What was denied does not run; the model is told that a person said no, and says so.
#[test]
fn what_is_denied_does_not_run_and_the_model_is_told_so() {
    let output = played(&parked(&[tap("Deny", 1_000_001)]));
    assert_eq!(column(&output, "tool_runs", "outcome"), ["refused"]);
    assert_eq!(column(&output, "approvals", "state"), ["denied"]);
    let told = told(&output);
    let sentence = "A person was asked whether this call may run, and did not allow it: it was not executed. Do not try it \
                    again or get around it; ask the user how to go on.";
    assert!(told.contains("\"is_error\":true") && told.contains(sentence), "{told}");
    assert_eq!(texts(&output)[1..], ["Done."]);
}

/// A tool that may not be used is not asked for: the model hears at once that it may not.
#[test]
fn what_is_not_allowed_at_all_is_not_asked_for() {
    let lines = [tool("pay", "deny"), calls(&[("pay", json!({}))]), says("I may not."), say("pay")];
    let output = played(&lines);
    assert_eq!((texts(&output), output["approvals"].clone()), (vec!["I may not.".to_owned()], json!([])));
    assert_eq!(column(&output, "tool_runs", "outcome"), ["refused"]);
}

/// Nobody waits for the answer of an unattended turn: nobody is asked, and what would be asked for does not run.
#[test]
fn an_unattended_turn_never_asks() {
    let lines = [
        tool("pay", "ask"),
        calls(&[("pay", json!({}))]),
        says("I may not."),
        json!({"say": {"channel": "webhook", "chat": "x", "text": "pay"}}),
    ];
    let output = played(&lines);
    assert_eq!(
        (column(&output, "tool_runs", "outcome"), output["approvals"].clone()),
        (vec![json!("refused")], json!([]))
    );
    assert_eq!(column(&output, "events", "outcome"), ["committed"]);
}

/// A word is no decision: it is the next message, and waits behind the question.
#[test]
fn a_plain_yes_is_no_approval() {
    let lines = parked(&[say("yes"), run()]);
    let output = played_to(&lines);
    assert_eq!((column(&output, "approvals", "state"), output["tool_runs"].clone()), (vec![json!("open")], json!([])));
    assert_eq!(output["events"][1]["outcome"], Value::Null);
    assert_eq!(output["unsettled"].as_array().unwrap().len(), 2);
    let output = played(&[&lines[..], &[tap("Deny", 1_000_001), run()]].concat());
    assert_eq!(texts(&output)[1..], ["Done.", "yes"]);
}

#[test]
fn a_call_is_allowed_or_denied_by_command() {
    for (command, outcome, state) in [("/approve", "ok", "allowed"), ("/deny", "refused", "denied")] {
        let asked = parked(&[]);
        let id = id(&asked);
        let code = id[id.len() - 6..].to_ascii_uppercase();
        for text in [format!("{command} {code}"), command.to_owned()] {
            let output = played(&[&asked[..], &[advance(1.0), say(&text), run()]].concat());
            assert_eq!(column(&output, "tool_runs", "outcome"), [outcome], "{text}");
            assert_eq!(column(&output, "approvals", "state"), [state], "{text}");
        }
        let wrong = played_to(&[&asked[..], &[say(&format!("{command} ZZZZZZ")), run()]].concat());
        assert_eq!(column(&wrong, "approvals", "state"), ["open"], "a wrong code decides nothing");
        assert_eq!(texts(&wrong).len(), 2, "whoever typed it is told");
    }
}

/// A decision counts once: whoever presses again, or the other button, changes nothing and is told what holds.
#[test]
fn a_decision_is_single_use() {
    let twice = json!({"tap": {"channel": "telegram", "chat": 1_000_001, "button": "Allow", "times": 3}});
    let lines = parked(&[twice, tap("Deny", 1_000_001), run(), json!({"deliver": {"again": 1}}), run()]);
    let output = played(&lines);
    assert_eq!(column(&output, "tool_runs", "outcome"), ["ok"]);
    assert_eq!(column(&output, "approvals", "state"), ["allowed"]);
    assert_eq!(texts(&output)[1..], ["Done."]);
    let answers = output["platform_calls"]["telegram.answerCallbackQuery"].as_array().unwrap();
    assert_eq!(answers.len(), 4, "each press is answered, once");
}

/// Nobody decided: the turn says so, and the message behind it is answered.
#[test]
fn an_expiry_settles_the_turn_and_says_so() {
    let mut lines = vec![json!({"config": {"agent": {"limits": {"approval_expiry": "20m"}}}})];
    lines.extend(parked(&[say("and now?"), advance(1_190.0)]));
    let waiting = played_to(&lines);
    assert_eq!(column(&waiting, "approvals", "state"), ["open"]);
    lines.extend([
        advance(15.0),
        json!({"expect": {"/approvals/0/state": "expired", "/events/0/reason": "approval_expired"}}),
    ]);
    let output = played(&lines);
    assert_eq!(column(&output, "events", "outcome"), ["failed", "committed"]);
    let shown = texts(&output);
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(shown[0].contains("Nobody decided in time"), "{shown:?}");
    assert_eq!(shown[2], "Done.");
    assert_eq!(output["chats"]["telegram:main:1000001"]["messages"][0]["buttons"], json!([]));
    assert_eq!(output["tool_runs"], json!([]));
}

#[test]
fn the_expiry_is_an_hour_unless_it_is_configured() {
    let waiting = played_to(&parked(&[advance(3_590.0)]));
    assert_eq!(column(&waiting, "approvals", "state"), ["open"]);
    let over = played(&parked(&[advance(3_615.0)]));
    assert_eq!(column(&over, "approvals", "state"), ["expired"]);
}

#[test]
fn approvals_are_listed_and_decided_by_api() {
    let asked = parked(&[]);
    let id = id(&asked);
    let route = format!("/v1/approvals/{id}");
    let config = json!({"config": {"approvals": {"approvers": ["gateway:main"]}}});
    let with_key = [&[config][..], &asked].concat();
    for (verdict, outcome, state) in [("allow", "ok", "allowed"), ("deny", "refused", "denied")] {
        let id = self::id(&with_key);
        let decide = api("POST", &format!("/v1/approvals/{id}"), Some(json!({"decision": verdict})));
        let output = played(&[&with_key[..], &[decide, run()]].concat());
        let status = output["deliveries"].as_array().unwrap().last().unwrap()["status"].clone();
        assert!(status == json!(200) || status == json!(202), "{output:#}");
        assert_eq!(column(&output, "tool_runs", "outcome"), [outcome]);
        assert_eq!(column(&output, "approvals", "state"), [state]);
        assert_eq!(output["approvals"][0]["decided_by"], json!("gateway:main"));
    }
    // A key that is no approver decides for nobody but those it names.
    let refused = played_to(&[&asked[..], &[api("POST", &route, Some(json!({"decision": "allow"}))), run()]].concat());
    assert_eq!(column(&refused, "approvals", "state"), ["open"]);
    let status = refused["deliveries"].as_array().unwrap().last().unwrap()["status"].as_u64().unwrap();
    assert!(status == 403 || status == 404, "{status}");
}

/// A stop by API reaches the turn that waits, and what is asked for is asked for no longer.
#[test]
fn a_turn_that_waits_is_stopped_by_command_and_by_api() {
    let config = json!({"config": {"approvals": {"approvers": ["gateway:main"]}}});
    let by_api = api("POST", "/v1/sessions/telegram:1000001/stop", None);
    for stop in [say("/stop"), by_api] {
        let lines =
            [&[config.clone()][..], &parked(&[stop, advance(2.0), json!({"expect": {"/events/0/reason": "stopped"}})])]
                .concat();
        let output = played(&lines);
        assert_eq!(column(&output, "approvals", "state"), ["stopped"]);
        assert_eq!(output["tool_runs"], json!([]));
        assert_eq!(output["chats"]["telegram:main:1000001"]["messages"][0]["buttons"], json!([]));
    }
}

/// Two calls of one step are asked for one after the other; what needs nobody's leave runs meanwhile.
#[test]
fn calls_of_one_step_are_asked_for_in_turn() {
    let lines = [
        tool("pay", "ask"),
        tool("look", "allow"),
        calls(&[
            ("look", json!({"n": 1})),
            ("pay", json!({"n": 2})),
            ("pay", json!({"n": 3})),
            ("look", json!({"n": 4})),
        ]),
        says("Done."),
        say("pay"),
        run(),
        json!({"expect": {"/approvals/#": 1, "/tool_runs/#": 1}}),
        tap("Allow", 1_000_001),
        run(),
        json!({"expect": {"/approvals/#": 2, "/tool_runs/#": 2}}),
        tap("Deny", 1_000_001),
        run(),
    ];
    let output = played(&lines);
    assert_eq!(column(&output, "approvals", "state"), ["allowed", "denied"]);
    assert_eq!(column(&output, "tool_runs", "outcome"), ["ok", "ok", "refused", "ok"]);
    assert_eq!(texts(&output).last().unwrap(), "Done.");
}

/// In Slack the card stands in the thread of its message, with buttons of its own.
#[test]
fn slack_has_cards_too() {
    let say = json!({"say": {"channel": "slack", "chat": "C0CHAN", "from": "U0ANN", "text": "<@U0BOT> pay"}});
    let asks = [tool("pay", "ask"), calls(&[("pay", json!({"amount": 3}))]), says("Done."), say, run()];
    let waiting = played_to(&asks);
    let (chat, card) = waiting["chats"]
        .as_object()
        .unwrap()
        .iter()
        .next()
        .map(|(name, chat)| (name.clone(), chat["messages"][0].clone()))
        .unwrap();
    assert_eq!(card["buttons"], json!(["Allow", "Deny"]), "{waiting:#}");
    let tap = json!({"tap": {"channel": "slack", "chat": "C0CHAN", "button": "Allow", "from": "U0ANN"}});
    let output = played(&[&asks[..], &[tap, run()]].concat());
    let shown = shown(&output, &chat);
    assert!(shown[0].contains("Allowed by"), "{shown:?}");
    assert_eq!(shown.last().unwrap(), "Done.");
    assert_eq!(column(&output, "tool_runs", "outcome"), ["ok"]);
}

/// Case sl-approval-dead-end: what was allowed by API goes on where it was asked for: the answer stands in that thread.
#[test]
fn sl_approval_dead_end_a_decision_by_api_goes_on_in_the_thread_it_came_from() {
    let say = json!({"say": {"channel": "slack", "chat": "C0CHAN", "from": "U0ANN", "thread": "1760000000.000100",
        "text": "<@U0BOT> pay"}});
    let asks = [
        json!({"config": {"approvals": {"approvers": ["gateway:main"]}}}),
        tool("pay", "ask"),
        calls(&[("pay", json!({"amount": 3}))]),
        says("Done."),
        say,
        run(),
    ];
    let decide = api("POST", &format!("/v1/approvals/{}", id(&asks)), Some(json!({"decision": "allow"})));
    let output = played(&[&asks[..], &[decide, run()]].concat());
    let shown = shown(&output, "slack:main:C0CHAN:1760000000.000100");
    assert!(shown.len() == 2 && shown[0].contains("Allowed by"), "{output:#}");
    assert_eq!(shown[1], "Done.");
}

/// A typed decision whose worker dies behind it, or whose answer finds no room, comes again: it says what was decided the
/// first time, settles that card, and touches no call that is asked for by then.
#[test]
fn a_typed_decision_that_comes_again_means_the_same_call() {
    let death = json!({"kill": {"queue": "wake", "nth": 1, "after": true}});
    let full = json!({"fault": {"queue": "send", "nth": 2, "times": 1, "error": "full"}});
    for (fault, command, decided) in [(death, "/approve", "allowed"), (full, "/deny", "denied")] {
        let pay = json!({"tool": {"name": "pay", "risk": "dangerous", "result": "ok", "policy": "ask"}});
        let lines = [
            pay,
            calls(&[("pay", json!({"n": 1}))]),
            calls(&[("pay", json!({"n": 2}))]),
            says("Done."),
            say("pay"),
            run(),
            advance(5.0),
            fault,
            say(command),
            run(),
        ];
        let output = played_to(&lines);
        let states: Vec<_> =
            output["approvals"].as_array().unwrap().iter().map(|it| it["state"].as_str().unwrap()).collect();
        assert_eq!(states, [decided, "open"], "{output:#}");
        let messages = output["chats"]["telegram:main:1000001"]["messages"].as_array().unwrap();
        let with_buttons = messages.iter().filter(|it| it["buttons"].as_array().is_some_and(|all| !all.is_empty()));
        assert_eq!(with_buttons.count(), 1, "{command}: the first card is settled: {messages:#?}");
        let said = output["chats"].to_string();
        assert!(!said.contains("no such request") && !said.contains("newer request"), "{command}: {said}");
    }
}

/// A reason behind a denial denies, also one whose first word has the form of a code.
#[test]
fn a_denial_with_a_reason_is_a_denial() {
    let pay = json!({"tool": {"name": "pay", "risk": "dangerous", "result": "ok", "policy": "ask"}});
    let lines = [
        pay,
        calls(&[("pay", json!({"n": 1}))]),
        says("I left it."),
        say("pay"),
        run(),
        advance(5.0),
        say("/deny facade is wrong"),
        run(),
    ];
    let output = played(&lines);
    assert_eq!(output["approvals"][0]["state"], "denied", "{output:#}");
    assert!(texts(&output).contains(&"I left it.".to_owned()));
}
