//! The traces of the protocol check: the shortest stories that broke an earlier wording of the protocol, played against
//! this one. Each says at which moment it stands where that wording went wrong, so that a story which no longer gets
//! there fails as well.

mod approvals;
mod steering;
mod steps;

use serde_json::{Value, json};

use crate::run::{Run, played};

pub(crate) const CHAT: &str = "telegram:main:1000001";
const SEED: u64 = 11;
/// What is said of an event that was given up.
pub(crate) const SORRY: &str = "Sorry, something went wrong and I could not answer this message. Please send it again.";
/// What is said when a new conversation begins.
const NEW: &str = "This is a new conversation. What can I do for you?";

/// A message of the private chat; without a line for the model it is answered with its own text.
pub(crate) fn say(text: &str) -> Value {
    json!({"say": {"channel": "telegram", "chat": 1_000_001, "text": text}})
}

/// A message of a topic of a group.
fn say_in(thread: u32, text: &str) -> Value {
    json!({"say": {"channel": "telegram", "chat": -1001, "chat_type": "supergroup", "from": 1_000_001,
        "thread": thread, "text": text}})
}

/// The id of the private chat's event that came with the replay's nth delivery.
pub(crate) fn event(delivery: u32) -> String {
    format!("telegram:1:{delivery}")
}

pub(crate) fn advance(seconds: u32) -> Value {
    json!({"advance": seconds})
}

/// What holds at this very moment; stands right after an `advance`.
pub(crate) fn expect(facts: Value) -> Value {
    json!({"expect": facts})
}

/// The worker at the nth request from here takes no step for so long.
pub(crate) fn freeze(port: &str, operation: &str, nth: u32, seconds: u32) -> Value {
    json!({"freeze": {port: operation, "nth": nth, "for": seconds}})
}

pub(crate) fn limits(limits: Value) -> Value {
    json!({"config": {"agent": {"limits": limits}}})
}

/// Plays the lines; every fault was met and every fact held.
pub(crate) fn play(title: &str, lines: &[Value]) -> Run {
    let played = played(title, lines, SEED);
    let output = played.output.to_json().unwrap();
    let run = Run { title: title.to_owned(), output, may_double: false };
    run.check(played.failures.is_empty(), &format!("{:#?}", played.failures));
    run.check(played.faults_left == 0, "a fault was never met");
    run
}

impl Run {
    /// How often `operation` of `port` was asked for in the work on an event.
    pub(crate) fn asked(&self, port: &str, event: &str, operation: &str) -> u64 {
        self.at(&format!("/requests/{port}/by_turn/{event}/by_operation/{operation}")).as_u64().unwrap_or(0)
    }

    /// The outcome of each event, with its reason, in the order in which they came.
    pub(crate) fn outcomes(&self) -> Vec<String> {
        let word = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let events = self.list("/events");
        events.iter().map(|event| format!("{} {}", word(event, "outcome"), word(event, "reason"))).collect()
    }

    /// The whole request that the model was asked with, the nth of the replay, as text.
    pub(crate) fn model_request(&self, nth: usize) -> String {
        self.at(&format!("/model_requests/{nth}/request")).to_string()
    }

    pub(crate) fn model_requests(&self) -> usize {
        self.list("/model_requests").len()
    }
}

/// Two workers; the first one froze before it did anything, its record's visibility (540 s) has ended, and the second
/// one has answered and deleted the message. At 600 s the first one wakes and acquires the session for an event that is
/// committed and gone.
fn late_acquire(more: Value) -> Vec<Value> {
    let mut config = json!({"concurrency": 2, "turn_seconds": 90});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    vec![
        limits(config),
        say("one"),
        freeze("queue", "set_visibility", 1, 600),
        advance(599),
        expect(json!({"/events/0/outcome": "committed", "/sessions/0/fence": 1, "/sessions/0/locked": false,
            "/chats/telegram:main:1000001/messages/#": 1, "/unsettled/#": 0})),
    ]
}

/// Trace V1: the late worker dies between its acquire and its look at the marker. Nobody has the event's message any
/// more, so whoever comes next clears it out of the way, as soon as the dead one's lease is over.
#[test]
fn v1_a_late_acquire_of_a_committed_event_and_a_death_leave_no_session_stuck() {
    let mut lines = late_acquire(json!({}));
    lines.extend([
        json!({"kill": {"store": "BatchGetItem", "nth": 1}}),
        advance(2),
        expect(json!({"/sessions/0/fence": 2, "/sessions/0/locked": true, "/sessions/0/unfinished": event(1)})),
        say("two"),
        advance(60),
        expect(json!({"/events/1/outcome": null, "/sessions/0/fence": 2})),
        advance(10),
        expect(json!({"/events/1/outcome": "committed", "/sessions/0/fence": 3})),
        say("three"),
    ]);
    let run = play("V1", &lines);
    run.settled();
    run.check(run.shown(CHAT) == ["one", "two", "three"], "each message is answered once");
    run.check(run.model_requests() == 3, "a committed event was asked for again");
}

/// Trace V1 when the late worker's request was already written when it froze: the lock that it gets is over at once.
#[test]
fn v1_a_late_acquire_that_was_asked_for_long_ago_is_cleared_at_once() {
    let lines = [
        limits(json!({"concurrency": 2})),
        say("one"),
        freeze("store", "UpdateItem", 1, 200),
        advance(199),
        expect(json!({"/events/0/outcome": "committed", "/sessions/0/fence": 1, "/unsettled/#": 0})),
        json!({"kill": {"store": "BatchGetItem", "nth": 1}}),
        advance(2),
        expect(json!({"/sessions/0/fence": 2, "/sessions/0/locked": true, "/sessions/0/unfinished": event(1)})),
        say("two"),
        advance(1),
        expect(json!({"/events/1/outcome": "committed", "/sessions/0/fence": 3})),
    ];
    let run = play("V1, an old request", &lines);
    run.settled();
    run.check(run.shown(CHAT) == ["one", "two"], "each message is answered once");
}

/// Trace V1, variant A1b: the late worker lives. What it releases is the lock and the event, so the next message finds
/// nothing in its way; and so does a second copy of the first message.
#[test]
fn v1_a1b_a_late_acquire_of_a_committed_event_releases_the_event_as_well() {
    let mut lines = late_acquire(json!({}));
    lines.extend([
        advance(2),
        expect(json!({"/sessions/0/fence": 2, "/sessions/0/locked": false, "/sessions/0/unfinished": null})),
        json!({"deliver": {"again": 0}}),
        advance(1),
        expect(json!({"/sessions/0/fence": 3, "/sessions/0/locked": false, "/sessions/0/unfinished": null})),
        say("two"),
        advance(1),
        expect(json!({"/events/1/outcome": "committed", "/sessions/0/fence": 4})),
    ]);
    let run = play("V1, variant A1b", &lines);
    run.settled();
    run.check(run.shown(CHAT) == ["one", "two"], "each message is answered once");
    run.check(run.model_requests() == 2, "a committed event was asked for again");
    run.check(run.asked("store", &event(2), "GetItem") == 0, "something stood in the second message's way");
}

/// Trace V2: m1 is given up before it was ever acquired, m2 while it is the unfinished one. In the queue of dead letters
/// m1 stands before m2, and m2 is in m1's way. Whoever settles m1 takes the lock whatever is unfinished, and leaves m2
/// unfinished, with what it had done, for whoever settles m2.
#[test]
fn v2_a_dead_letter_is_not_blocked_by_an_unfinished_event_that_stands_behind_it() {
    const ASLEEP: u32 = 5_000;
    let mut lines = vec![
        limits(json!({"concurrency": 24, "turn_seconds": 90})),
        json!({"tool": {"name": "look", "risk": "read", "keyed": true, "result": "rain"}}),
        // Its late worker holds the lock when m1 is given up: so m1 is never acquired.
        say("zero"),
        freeze("queue", "set_visibility", 1, 1_420),
        advance(541),
        expect(json!({"/events/0/outcome": "committed", "/unsettled/#": 0})),
        say("one"),
        say("two"),
    ];
    // Ten workers of m1 end before they acquire, from 541 s on, 90 s after each other.
    lines.extend((0..10).map(|_| freeze("store", "UpdateItem", 1, ASLEEP)));
    lines.extend([
        advance(860),
        freeze("store", "BatchGetItem", 1, ASLEEP),
        advance(39),
        expect(json!({"/sessions/0/unfinished": event(1), "/sessions/0/locked": true, "/sessions/0/fence": 2})),
        // m1 is received once more and given up, m2 is received and busy; the fourth change of visibility is that of
        // m1's dead letter. Whoever settles it sleeps until m2 is given up as well.
        freeze("queue", "set_visibility", 4, 1_500),
    ]);
    // The first worker of m2 ends in the middle of a step, seven more after they acquired.
    lines.extend((0..7).map(|_| freeze("store", "BatchGetItem", 2, ASLEEP)));
    lines.extend([
        json!({"model": {"tools": [{"name": "look", "input": {}}]}}),
        freeze("store", "PutItem", 1, ASLEEP),
        advance(1_500),
        expect(json!({"/sessions/0/unfinished": event(3), "/sessions/0/locked": false, "/sessions/0/fence": 11,
            "/events/1/outcome": null, "/events/2/outcome": null, "/dead/#": 0, "/unsettled/#": 2})),
        advance(2),
        expect(json!({"/events/1/outcome": "dead", "/events/2/outcome": "dead", "/unsettled/#": 0})),
        say("three"),
        advance(1),
        expect(json!({"/events/3/outcome": "committed"})),
    ]);
    let run = play("V2", &lines);
    run.quiet();
    run.check(run.asked("store", &event(2), "BatchGetItem") > 0, "m1 is settled by its dead letter");
    run.check(run.shown(CHAT) == ["zero", SORRY, SORRY, "three"], "each message is answered once, in order");
    run.check(run.list("/platform_calls/telegram.sendMessage").len() == 4, "an answer was sent twice");
    let dead: Vec<Value> = run.list("/dead").iter().map(|dead| dead["event"].clone()).collect();
    run.check(
        dead.len() == 2 && dead.contains(&json!(event(2))) && dead.contains(&json!(event(3))),
        "the dead are kept",
    );
    let history = run.at("/sessions/0/messages").to_string();
    run.check(run.starts("look") == 1 && history.contains("tool_use"), "what m2 had done is gone");
    run.check(run.model_requests() == 3, "what was given up was asked for");
}

/// Trace V3: the late worker of a committed event holds the lock, and the message behind it is received and found busy
/// more often than a message may be received. It waited; it did not kill anybody: it is answered when the lease is over.
#[test]
fn v3_a_message_that_only_waits_is_not_given_up() {
    let mut lines = late_acquire(json!({"lease_seconds": 900}));
    lines.extend([
        freeze("store", "BatchGetItem", 1, 5_000),
        advance(2),
        expect(json!({"/sessions/0/fence": 2, "/sessions/0/locked": true, "/sessions/0/unfinished": event(1)})),
        say("two"),
        // It was received for the eleventh time by now, and nothing of it was done.
        advance(700),
        expect(json!({"/events/1/outcome": null, "/sessions/0/fence": 2, "/dead/#": 0})),
        advance(260),
        expect(json!({"/events/1/outcome": "committed", "/sessions/0/fence": 3})),
    ]);
    let run = play("V3", &lines);
    run.settled();
    run.check(run.shown(CHAT) == ["one", "two"], "each message is answered once");
    // Each receive but the last hides the record and gives it back.
    let visibilities = run.asked("queue", &event(2), "set_visibility");
    run.check((2 * 11..=2 * 20).contains(&visibilities), &format!("{visibilities} changes of visibility"));
}

/// Trace V4, the short one: the worker has read the head, then the stop is stored. Its step is refused, so the tool is
/// never started.
#[test]
fn v4_a_stored_stop_is_not_overtaken_by_a_step_and_its_tool() {
    let lines = [
        json!({"tool": {"name": "pay", "risk": "write", "keyed": false, "result": "paid"}}),
        json!({"model": {"chunks": ["I pay."], "tools": [{"name": "pay", "input": {"amount": 3}}]}}),
        say("pay"),
        freeze("store", "BatchGetItem", 1, 30),
        advance(3),
        say("/stop"),
        advance(3),
        expect(json!({"/sessions/0/locked": true, "/sessions/0/fence": 1, "/model_requests/#": 0,
            "/events/1/reason": "answered", "/chats/telegram:main:1000001/messages/0/text": "Stopping."})),
        advance(30),
        expect(json!({"/model_requests/#": 1, "/tool_runs/#": 0, "/events/0/reason": "stopped"})),
        say("and now?"),
    ];
    let run = play("V4, a step", &lines);
    run.settled();
    run.check(run.starts("pay") == 0, "a tool was started after the stop");
    run.check(
        run.shown(CHAT) == ["Stopping.", "I pay.\n\n(stopped)", "and now?"],
        "what there was is shown with the mark",
    );
    // The step that was refused, and the commit with the mark.
    run.check(run.asked("store", &event(1), "TransactWriteItems") == 2, "the step was not tried");
}

/// Trace V4, the full answer: the stop is stored after the last look at the head. The commit of the whole answer is
/// refused; what there is is committed with the mark, and nothing without it is ever shown.
#[test]
fn v4_a_stored_stop_is_not_overtaken_by_the_final() {
    let lines = [
        json!({"tool": {"name": "look", "risk": "read", "keyed": true, "result": "rain"}}),
        json!({"model": {"tools": [{"name": "look", "input": {}}]}}),
        json!({"model": {"chunks": ["It rains."]}}),
        say("weather"),
        // The first is the step's.
        freeze("store", "TransactWriteItems", 2, 30),
        advance(3),
        say("/stop"),
        advance(3),
        expect(
            json!({"/sessions/0/locked": true, "/model_requests/#": 2, "/tool_runs/#": 1, "/events/0/outcome": null,
            "/events/1/reason": "answered", "/chats/telegram:main:1000001/messages/#": 1}),
        ),
        advance(30),
        expect(json!({"/events/0/reason": "stopped"})),
        say("and now?"),
    ];
    let run = play("V4, the final", &lines);
    run.settled();
    run.check(run.shown(CHAT) == ["Stopping.", "It rains.\n\n(stopped)", "and now?"], "the final carries the mark");
    run.check(run.messages(0)[3].text() == "It rains.\n\n(stopped)", "the history carries the mark");
    // The step, the commit that was refused, and the one with the mark.
    run.check(run.asked("store", &event(1), "TransactWriteItems") == 3, "the commit was not refused");
}

/// Trace V10 (a): m1 runs, m1' is queued, then `/new`. Both were sent before it, so both end with the mark; the reset
/// comes in its own place, and once.
#[test]
fn v10a_what_was_sent_before_a_reset_does_not_run_in_the_new_conversation() {
    let lines = [
        json!({"model": {"chunks": ["One", {"wait": 20}, " two."]}}),
        say("m1"),
        advance(1),
        say("m1'"),
        say("/new"),
        // Control has stored it; the turn that runs looks every two seconds.
        advance(0),
        expect(json!({"/sessions/0/generation": 0, "/sessions/0/unfinished": event(1), "/events/2/outcome": null})),
        advance(2),
        expect(json!({"/sessions/0/generation": 1, "/sessions/0/messages/#": 0, "/model_requests/#": 1})),
        say("m2"),
    ];
    let run = play("V10 (a)", &lines);
    run.settled();
    run.check(
        run.outcomes() == ["committed stopped", "committed stopped", "committed reset", "committed "],
        "what was sent before the reset was not stopped",
    );
    run.check(run.shown(CHAT) == ["One\n\n(stopped)", "(stopped)", NEW, "m2"], "the order is wrong");
    run.check(run.at("/sessions/0/generation") == json!(1), "it was reset more than once");
    run.check(run.user_texts(0) == ["m2"], "the new conversation holds something old");
    // The turn's acquire, control's stop, and the copy that API clients could read.
    run.check(run.asked("store", &event(3), "UpdateItem") == 3, "control stored no stop");
}

/// Trace V10 (b): control is slow. The queued `/new` has reset, and m2, sent after it, runs when control stores the
/// stop: m2 is not touched, and nothing is reset again.
#[test]
fn v10b_a_slow_control_does_not_reset_again() {
    let lines = [
        say("m1"),
        advance(1),
        say("/new"),
        // The first is the turn's acquire, the second control's stop.
        freeze("store", "UpdateItem", 2, 30),
        advance(1),
        expect(json!({"/sessions/0/generation": 1, "/events/1/reason": "reset", "/sessions/0/fence": 2,
            "/unsettled": ["control: message 4 of telegram:1000001 is in flight"]})),
        json!({"model": {"chunks": ["Still", {"wait": 60}, " here."]}}),
        say("m2"),
        advance(10),
        expect(json!({"/sessions/0/unfinished": event(3), "/sessions/0/locked": true})),
        // Control wakes at 31 s, and m2 looks at the head long before it ends.
        advance(40),
        expect(json!({"/sessions/0/unfinished": event(3), "/sessions/0/generation": 1, "/unsettled/#": 1})),
    ];
    let run = play("V10 (b)", &lines);
    run.settled();
    run.check(run.outcomes() == ["committed ", "committed reset", "committed "], "a later message was touched");
    run.check(run.shown(CHAT) == ["m1", NEW, "Still here."], "a later message was touched");
    run.check(run.at("/sessions/0/generation") == json!(1), "it was reset twice");
    run.check(run.user_texts(0) == ["m2"], "a later message is gone from the conversation");
}

/// Trace V10 (c): the running turn is about to commit when control gets `/new`. Control resets nothing: the turn's
/// commit goes to the old conversation, with the mark, and the new one is empty.
#[test]
fn v10c_a_turn_that_runs_during_a_reset_commits_into_the_old_conversation() {
    let lines = [
        say("m1"),
        freeze("store", "TransactWriteItems", 1, 30),
        advance(1),
        say("/new"),
        advance(1),
        expect(json!({"/sessions/0/generation": 0, "/sessions/0/unfinished": event(1), "/model_requests/#": 1,
            "/events/0/outcome": null, "/events/1/outcome": null})),
        advance(30),
        expect(json!({"/sessions/0/generation": 1, "/sessions/0/messages/#": 0})),
        say("m2"),
    ];
    let run = play("V10 (c)", &lines);
    run.settled();
    run.check(run.outcomes() == ["committed stopped", "committed reset", "committed "], "the outcomes are wrong");
    run.check(run.shown(CHAT) == ["m1\n\n(stopped)", NEW, "m2"], "the order is wrong");
    run.check(run.asked("store", &event(1), "TransactWriteItems") == 2, "the commit was not refused");
    run.check(run.user_texts(0) == ["m2"], "the new conversation holds something old");
}

/// Trace V11: a delivery worker freezes in its call, its record's visibility ends, another one shows the final. What the
/// first one posts when it wakes is refused by the ledger, and taken back.
#[test]
fn v11_a_frozen_delivery_worker_takes_back_what_it_posts_late() {
    let lines = [
        say("hello"),
        freeze("platform", "sendMessage", 1, 300),
        advance(89),
        expect(json!({"/ledger/0/state": "sending", "/platform_calls": {}})),
        advance(10),
        expect(json!({"/platform_calls/telegram.sendMessage/#": 1, "/chats/telegram:main:1000001/messages/#": 1,
            "/unsettled/#": 0})),
        advance(202),
        expect(json!({"/platform_calls/telegram.sendMessage/#": 2, "/platform_calls/telegram.deleteMessage/#": 1})),
    ];
    let run = play("V11, a call", &lines);
    run.settled();
    run.shows_once(CHAT, "hello");
    run.check(run.list("/ledger/0/parts/0/message_ids").len() == 1, "the ledger names the one that stands");
}

/// Trace V11 one step earlier: the worker freezes before it has written `sending`. Its write is refused, so it calls
/// nobody.
#[test]
fn v11_a_frozen_delivery_worker_whose_write_is_refused_calls_nobody() {
    let lines = [
        say("hello"),
        freeze("store", "PutItem", 1, 300),
        advance(89),
        expect(json!({"/ledger": [], "/platform_calls": {}, "/events/0/outcome": "committed"})),
        advance(10),
        expect(json!({"/ledger/0/state": "sent", "/platform_calls/telegram.sendMessage/#": 1})),
        advance(210),
    ];
    let run = play("V11, a write", &lines);
    run.settled();
    run.check(run.list("/platform_calls/telegram.sendMessage").len() == 1, "it was sent twice");
    run.check(run.list("/platform_calls/telegram.deleteMessage").is_empty(), "something was taken back");
}

/// Trace V11 the other way round: a worker finds that another one, older, has begun its call after all. It leaves a call
/// alone that may be running, and comes back when that is over.
#[test]
fn v11_a_delivery_worker_leaves_a_call_alone_that_may_be_running() {
    let lines = [
        json!({"platform": {"channel": "telegram", "method": "sendMessage", "delay": 1.5}}),
        say("hello"),
        // The first worker writes `sending` at 97 s; the second one wants to at 98 s, while the first one's call runs.
        freeze("store", "PutItem", 1, 97),
        freeze("store", "PutItem", 2, 8),
        advance(96),
        expect(json!({"/ledger": [], "/platform_calls": {}})),
        advance(1),
        expect(json!({"/ledger/0/state": "sending"})),
    ];
    let run = play("V11, two calls", &lines);
    run.settled();
    run.shows_once(CHAT, "hello");
    run.check(run.list("/platform_calls/telegram.sendMessage").len() == 1, "both called");
}

/// Trace V11 for a frame's edit: the worker wakes when the final stands in its message, and edits that back to half a text.
/// Its write is refused, so it puts the committed final back.
#[test]
fn v11_a_frozen_frame_does_not_stand_over_the_final() {
    let lines = [
        json!({"model": {"chunks": ["Half", {"wait": 3}, " a", {"wait": 3}, " text."]}}),
        say("hello"),
        freeze("platform", "editMessageText", 1, 300),
        advance(120),
        expect(json!({"/chats/telegram:main:1000001/messages/0/text": "Half a text.", "/ledger/0/state": "sent"})),
        advance(200),
        // The final, the late frame, and the repair.
        expect(json!({"/platform_calls/telegram.editMessageText/#": 3})),
    ];
    let run = play("V11, a frame's edit", &lines);
    run.settled();
    run.check(run.shown(CHAT) == ["Half a text."], "half a text stands over the final");
}

/// Trace V11 for a preview: the worker wakes when the final is a message of its own, and posts half a text under it. It
/// takes that back, and with it the doubt about it.
#[test]
fn v11_a_frozen_preview_does_not_stand_beside_the_final() {
    let lines = [
        json!({"model": {"chunks": ["Half", {"wait": 3}, " a", {"wait": 3}, " text."]}}),
        say("hello"),
        freeze("platform", "sendMessage", 1, 300),
        advance(320),
        expect(json!({"/platform_calls/telegram.sendMessage/#": 2, "/platform_calls/telegram.deleteMessage/#": 1})),
    ];
    let run = play("V11, a preview", &lines);
    run.settled();
    run.check(run.shown(CHAT) == ["Half a text."], "half a text stands beside the final");
}

/// Trace V11 for an API client: a frame is frozen on its way to the item, and comes after the final. The final stays.
#[test]
fn v11_a_late_frame_is_not_shown_over_an_api_final() {
    let lines = [
        json!({"model": {"chunks": ["Half", {"wait": 3}, " a text", {"wait": 3}, "."]}}),
        json!({"deliver": {"route": "/v1/messages", "headers": {"Idempotency-Key": "k1"},
            "body": {"text": "hi", "session": "room"}}}),
        // The first is the turn's acquire. Two frames and the final wait for the worker, until its time is over.
        freeze("store", "UpdateItem", 2, 300),
        advance(89),
        expect(json!({"/events/0/outcome": "committed", "/ledger": [], "/unsettled/#": 3})),
        advance(10),
        expect(json!({"/ledger/0/state": "sent", "/unsettled/#": 0})),
        advance(202),
        json!({"deliver": {"route": "/v1/events/gateway:main:k1", "method": "GET", "body_text": ""}}),
    ];
    let run = play("V11, a frame", &lines);
    run.settled();
    // The frame that was late and its copy, another one, and the final.
    let frames =
        run.list("/observed").iter().filter(|seen| seen["event_id"] == json!("gateway:main:k1.frame.1.1")).count();
    run.check(frames == 2 && run.list("/observed").len() == 4, "nothing came late");
    run.check(run.at("/deliveries/1/body/status") == json!("done"), "the final is gone");
    run.check(run.at("/deliveries/1/body/message/text") == json!("Half a text."), "the final is gone");
}

/// Trace V12: the first final's call fails plainly, and the second final is in the same batch: it goes back with it.
#[test]
fn v12_a_final_does_not_overtake_one_that_is_given_back() {
    let lines = [
        json!({"fault": {"platform": "sendMessage", "times": 2, "error": "unreachable"}}),
        say("one"),
        advance(1),
        say("two"),
        // The first comes again after two seconds, and the second is behind it in the same batch.
        advance(2),
        expect(json!({"/events/1/outcome": "committed", "/requests/platform/total": 2, "/ledger/0/state": "pending",
            "/platform_calls": {}, "/unsettled/#": 2})),
    ];
    let run = play("V12", &lines);
    run.settled();
    run.check(run.shown(CHAT) == ["one", "two"], "the finals changed places");
    run.check(run.at("/requests/platform/total") == json!(4), "one call for each final, and two that failed");
}

/// Trace V13: the process dies at the commit, when the preview's message is on record: the successor's final is that message.
#[test]
fn v13_a_crash_between_preview_and_final_ends_in_the_same_message() {
    let lines = [
        json!({"model": {"chunks": ["Half", {"wait": 3}, " a text."], "times": 2}}),
        say("hello"),
        json!({"kill": {"store": "TransactWriteItems", "nth": 1, "after": false}}),
    ];
    let run = play("V13, on record", &lines);
    run.settled();
    run.check(run.shown(CHAT) == ["Half a text."], "there is more than one message");
    run.check(run.list("/platform_calls/telegram.sendMessage").len() == 1, "it was posted twice");
    run.check(run.at("/ledger/0/state") == json!("sent"), "it is not sent");
}

/// Trace V13: the process dies when the platform has the preview and the ledger does not: the final is a new message, and
/// the ledger says that half a text may stand above it.
#[test]
fn v13_a_preview_that_nobody_knows_is_marked_and_the_final_is_a_new_message() {
    let lines = [
        json!({"model": {"chunks": ["Half", {"wait": 3}, " a text."], "times": 2}}),
        say("hello"),
        json!({"kill": {"platform": "sendMessage", "nth": 1, "after": true}}),
    ];
    let run = play("V13, lost", &lines);
    run.quiet();
    run.check(run.shown(CHAT) == ["Half", "Half a text."], "the final is not a message of its own");
    run.check(run.at("/ledger/0/state") == json!("uncertain"), "nothing says that a preview may stand there");
    run.check(run.list("/dead").is_empty(), "the final arrived");
}

/// Trace V14: a turn has read the facts for its snapshot when one of them is replaced. It stores the snapshot under the
/// epoch that it read before, so no later turn believes it. Two topics of a group share the group's memory.
#[test]
fn v14_a_replaced_fact_does_not_come_back_through_a_snapshot() {
    let remember =
        |text: &str| json!({"model": {"tools": [{"name": "remember", "input": {"key": "cat", "text": text}}]}});
    let lines = [
        json!({"config": {"agent": {"limits": {"concurrency": 2}}, "telegram": {"main": {"groups": "always"}}}}),
        remember("The cat is called Mia."),
        json!({"model": {"chunks": ["Noted."]}}),
        say_in(5, "my cat is called Mia"),
        json!({"run": true}),
        say_in(5, "hello"),
        // The first reads the history, the second the facts, the third the episodes.
        freeze("store", "Query", 3, 30),
        advance(1),
        expect(json!({"/model_requests/#": 2, "/sessions/0/locked": true})),
        remember("The cat is called Tom."),
        json!({"model": {"chunks": ["Corrected."]}}),
        say_in(6, "no, my cat is called Tom"),
        advance(1),
        expect(json!({"/model_requests/#": 4, "/sessions/1/messages/#": 4, "/sessions/0/locked": true})),
        advance(30),
        expect(json!({"/model_requests/#": 5, "/sessions/0/locked": false})),
        say_in(6, "what is it called?"),
    ];
    let run = play("V14", &lines);
    run.settled();
    run.check(run.model_request(4).contains("called Mia"), "the turn had read the facts before they changed");
    let last = run.at("/model_requests/5/request/system").to_string();
    run.check(last.contains("called Tom") && !last.contains("called Mia"), "the replaced fact came back");
}
